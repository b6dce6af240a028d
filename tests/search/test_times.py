"""The time that a question speaks of, in 14 languages, and the notes that gain by it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import simplemem.search
from simplemem.search.dates import Period, TimeAsked, languages_of_time, plain_words
from simplemem.search.times import read_time
from simplemem.store import EnhancedStore

Write = Callable[..., Path]

NOW = datetime(2026, 11, 18, 15, 30)  # noqa: DTZ001  (a Wednesday; local, as notes are)
PHRASES = Path(simplemem.search.__file__).parent / "time_phrases"


def asked(question: str, now: datetime = NOW) -> TimeAsked | None:
    languages = languages_of_time(plain_words(question))
    return read_time(question, languages, now) if languages else None


def days(question: str, now: datetime = NOW) -> tuple[str, str]:
    """Return the first day of the first period of a question, and the last day of it."""
    time_asked = asked(question, now)
    assert time_asked is not None and time_asked.periods, question
    period = time_asked.periods[0]
    return period.start.isoformat(), (period.end - timedelta(1)).isoformat()


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what did I write last week?", "2026-11-09", "2026-11-15"),
        ("what happened yesterday?", "2026-11-17", "2026-11-17"),
        ("what happened the day before yesterday?", "2026-11-16", "2026-11-16"),
        ("what happened 3 days ago?", "2026-11-15", "2026-11-15"),
        ("what did we do two months ago?", "2026-09-06", "2026-09-30"),
        ("what did we do a couple of weeks ago?", "2026-11-01", "2026-11-07"),
        ("what have I spent in the last 3 days?", "2026-11-15", "2026-11-18"),
        ("what did we decide in March 2024?", "2024-03-01", "2024-03-31"),
        ("what did we decide in March?", "2026-03-01", "2026-03-31"),
        ("what did we decide in December?", "2025-12-01", "2025-12-31"),
        ("what did we decide in March last year?", "2025-03-01", "2025-03-31"),
        ("who came on 13 October, 2023", "2023-10-13", "2023-10-13"),
        ("who came on October 13th, 2023", "2023-10-13", "2023-10-13"),
        ("notes of 2024-03-12", "2024-03-12", "2024-03-12"),
        ("notes of 2024-12", "2024-12-01", "2024-12-31"),
        ("how often in 2023?", "2023-01-01", "2023-12-31"),
        ("who came on Monday?", "2026-11-16", "2026-11-16"),
        ("who came last Saturday?", "2026-11-14", "2026-11-14"),
        ("who came the past weekend?", "2026-11-14", "2026-11-15"),
        ("who comes next week?", "2026-11-23", "2026-11-29"),
        ("who comes next Friday?", "2026-11-20", "2026-11-20"),
        ("what have I spent since Christmas?", "2025-12-25", "2026-11-18"),
        ("what have I spent since 2020?", "2020-01-01", "2026-11-18"),
        ("what did I buy before 11 August 2025?", "0001-01-01", "2025-08-10"),
        ("what did he do the week before August 3, 2023", "2023-07-27", "2023-08-03"),
        ("what did he get two weeks before August 11, 2023", "2023-07-25", "2023-07-31"),
        ("what was on the Sunday before October 25, 2022?", "2022-10-23", "2022-10-23"),
        ("where were we at Easter 2025?", "2025-04-20", "2025-04-20"),
        ("where were we at Easter 2024?", "2024-03-31", "2024-03-31"),
        ("¿Qué hice el lunes pasado?", "2026-11-16", "2026-11-16"),
        ("¿Qué hice hace dos semanas?", "2026-11-01", "2026-11-07"),
        ("¿Qué pasó el 3 de mayo de 2025?", "2025-05-03", "2025-05-03"),
        ("O que fiz na segunda-feira?", "2026-11-16", "2026-11-16"),
        ("O que fiz no ano passado?", "2025-01-01", "2025-12-31"),
        ("Qu\u2019est-ce que j\u2019ai fait avant-hier ?", "2026-11-16", "2026-11-16"),
        ("Qui est venu il y a trois jours ?", "2026-11-15", "2026-11-15"),
        ("Was war im letzten M\u00e4rz?", "2026-03-01", "2026-03-31"),
        ("Was war am 24.1.2026?", "2026-01-24", "2026-01-24"),
        ("Chi \u00e8 venuto luned\u00ec scorso?", "2026-11-16", "2026-11-16"),
        ("Wat deed ik vorig weekend?", "2026-11-14", "2026-11-15"),
        ("Co robi\u0142em w sobot\u0119?", "2026-11-14", "2026-11-14"),
        ("Co robi\u0142em tydzie\u0144 temu?", "2026-11-08", "2026-11-14"),
        ("Что было в прошлую субботу?", "2026-11-14", "2026-11-14"),
        ("Что было два месяца назад?", "2026-09-06", "2026-09-30"),
        ("上周一谁来了?", "2026-11-09", "2026-11-09"),
        ("去年三月我们决定了什么?", "2025-03-01", "2025-03-31"),
        ("2023年5月8日发生了什么?", "2023-05-08", "2023-05-08"),
        ("先週の月曜日に誰が来た?", "2026-11-09", "2026-11-09"),
        ("２週間前に何をした？", "2026-11-01", "2026-11-07"),
        ("7月以降に何を買った?", "2026-07-01", "2026-11-18"),
        ("작년 5월에 누가 왔나요?", "2025-05-01", "2025-05-31"),
        ("어제 누가 왔나요?", "2026-11-17", "2026-11-17"),
        ("ماذا فعلت أمس؟", "2026-11-17", "2026-11-17"),
        ("ماذا فعلت قبل ٣ أيام؟", "2026-11-15", "2026-11-15"),
        ("पिछले सोमवार को क्या हुआ?", "2026-11-16", "2026-11-16"),
        ("दो महीने पहले क्या हुआ?", "2026-09-06", "2026-09-30"),
    ],
)
def test_a_question_names_its_days(question: str, first: str, last: str) -> None:
    assert days(question) == (first, last)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "may we march on?",
        "what may I eat?",
        "give me a second",
        "what is the second step",
        "how do I march in a parade",
        "what did April say to June?",
        "an august poet",
        "who sat in the sun",
        "How many of the 2000 seats",
        "room 2024",
        "the summer of 69",
        "how long does the battery last",
        "what was in the last week of the project?",
        "before deploying, what must be checked",
        "photos of the mars rover",
        "did I fall in spring water?",
        "9999 years ago",
        "99999999 days ago",
        "30 February 2024",
        "2024-13-45",
        "a segunda reuni\u00e3o",
        "der August Macke im Museum",
    ],
)
def test_words_that_only_look_like_dates_mean_no_time(question: str) -> None:
    assert asked(question) is None


@pytest.mark.parametrize(
    ("question", "relation", "event"),
    [
        ("who visited us before I moved to Lyon?", "before", "i moved to lyon"),
        ("Before we met, where did I live?", "before", "we met"),
        ("what did I buy since the move?", "since", "the move"),
        ("Wen traf ich, nachdem ich umgezogen bin?", "after", "ich umgezogen bin"),
        ("\u00bfQu\u00e9 compr\u00e9 antes de mudarme?", "before", "mudarme"),
        ("大阪に引っ越す前に誰が来ましたか?", "before", "大阪に引っ越す"),
    ],
)
def test_an_event_limits_the_time(question: str, relation: str, event: str) -> None:
    time_asked = asked(question)
    assert time_asked is not None
    assert (time_asked.relation, time_asked.event) == (relation, event)


@pytest.mark.parametrize(
    "question",
    [
        "In what order did I visit Rome and Oslo?",
        "Who became a parent first, Rachel or Alex?",
        "What happened after the storm?",
        "\u00bfEn qu\u00e9 orden visit\u00e9 Roma y Oslo?",
        "Em que ordem visitei Roma e Oslo?",
        "Dans quel ordre ai-je visit\u00e9 Rome et Oslo ?",
        "In welcher Reihenfolge habe ich Rom und Oslo besucht?",
        "In che ordine ho visitato Roma e Oslo?",
        "In welke volgorde bezocht ik Rome en Oslo?",
        "W jakiej kolejno\u015bci odwiedzi\u0142em Rzym i Oslo?",
        "В каком порядке я посетил Рим и Осло?",
        "我按什么顺序去了罗马和奥斯陆?",
        "ローマとオスロはどの順番で訪れましたか?",
        "로마와 오슬로를 어떤 순서로 방문했나요?",
        "بأي ترتيب زرت روما وأوسلو؟",
        "मैंने रोम और ओस्लो किस क्रम में देखे?",
    ],
)
def test_a_question_may_ask_for_an_order(question: str) -> None:
    time_asked = asked(question)
    assert time_asked is not None and time_asked.in_order


def test_a_month_without_a_year_is_most_likely_the_last_one_but_may_be_any() -> None:
    time_asked = asked("what did we decide in March?")
    assert time_asked is not None
    values = {
        year: max(period.value(date(year, 3, 12)) for period in time_asked.periods)
        for year in (2001, 2025, 2026, 2027)
    }
    assert values[2026] == 1.0
    assert values[2001] == values[2025] == values[2027]
    assert 0 < values[2001] < 1


def test_weeks_begin_on_monday_and_the_days_beside_one_count_a_little() -> None:
    week = Period(date(2026, 11, 9), date(2026, 11, 16), slack=1)
    assert week.value(date(2026, 11, 9)) == week.value(date(2026, 11, 15)) == 1.0
    assert week.value(date(2026, 11, 8)) == week.value(date(2026, 11, 16)) == 0.25
    assert week.value(date(2026, 11, 7)) == week.value(date(2026, 11, 17)) == 0.0
    time_asked = asked("last week")
    assert time_asked is not None and time_asked.periods == (week,)


@pytest.mark.parametrize(
    "day",
    [
        "0001-01-01",
        pytest.param("0001-01-31", marks=pytest.mark.slow),
        "9999-12-31",
        pytest.param("2024-02-29", marks=pytest.mark.slow),
    ],
)
def test_no_day_of_the_calendar_breaks_a_phrase(day: str) -> None:
    now = datetime.fromisoformat(day)
    for file in sorted(PHRASES.glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        for key in ("periods", "ago", "within", "months", "holidays", "last", "next", "since"):
            for phrase in data[key]:
                text = phrase.replace("{count}", "3").replace("{date}", "2024-02-29")
                for name in (*data["weekdays"], *data["holidays"]):
                    asked(text.replace("{name}", name), now)
                    if "{name}" not in text:
                        break


@pytest.mark.parametrize(
    "question",
    [
        "what happened the year before 2025 years ago?",
        "what happened the week before 2025 years ago?",
        f"what happened {'9' * 5_000} days before May?",
    ],
)
def test_a_time_outside_of_the_calendar_is_none(question: str) -> None:
    assert asked(question, datetime(2026, 7, 5)) is None  # noqa: DTZ001


@pytest.mark.parametrize(
    "question",
    [
        "Quanti bicchieri ho comprato ieri?",
        "Which yesterdays were like yesterday?",
        "Was the last week of the project harder than last week?",
    ],
)
def test_a_phrase_counts_where_it_stands_as_whole_words(question: str) -> None:
    time_asked = asked(question)
    assert time_asked is not None and len(time_asked.periods) == 1


def test_no_phrase_is_missed_by_the_cheap_look_at_each_query() -> None:
    for file in sorted(PHRASES.glob("*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        for key in ("months", "weekdays", "holidays", "periods", "ago", "within", "order"):
            for phrase in data[key]:
                text = re.sub(r"\{\w+\}", "3", phrase)
                assert file.stem in languages_of_time(text), (file.stem, key, phrase)


def names(store: EnhancedStore, question: str, now: datetime = NOW) -> list[str]:
    return [hit.name for hit in store.search(question, now=now).hits]


def test_words_such_as_last_week_refer_to_the_time_that_the_caller_gives(
    store: EnhancedStore, write: Write
) -> None:
    for day in ("2026-10-07", "2026-11-11", "2026-11-17"):
        write(f"{day}.md", "The dentist filled a tooth.\n")
    store.sync()
    question = "what did the dentist do last week?"
    assert names(store, question)[0] == "2026-11-11"
    assert names(store, question, NOW + timedelta(7))[0] == "2026-11-17"
    assert names(store, question, NOW - timedelta(36))[0] == "2026-10-07"
    assert names(store, question, NOW.astimezone())[0] == "2026-11-11"
    assert names(store, question, NOW.astimezone(UTC))[0] == "2026-11-11"


def test_a_clock_that_was_set_back_finds_notes_all_the_same(
    store: EnhancedStore, write: Write
) -> None:
    write("2026-11-11.md", "The dentist filled a tooth.\n")
    store.sync()
    assert names(store, "what did the dentist do last week?", NOW.replace(year=2001))


def test_the_day_of_creation_counts_if_the_name_has_none(
    store: EnhancedStore, write: Write
) -> None:
    write("a.md", "---\ncreated: 2024-05-02T10:00:00\n---\nThe dentist filled a tooth.\n")
    write("b.md", "---\ncreated: 2024-03-12T10:00:00\n---\nThe dentist filled a tooth.\n")
    store.sync()
    assert names(store, "what did the dentist do in March 2024?") == ["b", "a"]
    assert names(store, "what did the dentist do in May 2024?") == ["a", "b"]


def test_notes_before_an_event_gain_if_a_note_is_about_it(
    store: EnhancedStore, write: Write
) -> None:
    for day in ("2025-02-03", "2025-07-30", "2026-01-12"):
        write(f"{day}.md", "A visitor stayed with us for a night.\n")
    question = "Which visitor stayed before I moved to Lyon?"
    store.sync()
    explained = store.search(question, now=NOW, explain=True)
    assert not any(hit.why and hit.why.get("dated") for hit in explained.hits), "no such event"

    write("2025-06-10.md", "I moved to Lyon with all the boxes.\n")
    store.sync()
    before = [name for name in names(store, question) if name != "2025-06-10"]
    assert before[0] == "2025-02-03"
    after = names(store, "Which visitor stayed after I moved to Lyon?")
    assert after.index("2025-02-03") > after.index("2025-07-30")


def test_a_question_about_order_lists_its_notes_by_date(store: EnhancedStore, write: Write) -> None:
    write("roof.md", "---\ncreated: 2026-02-01T08:00:00\n---\nThe roof broke.\n")
    write("log 2025-09-09.md", "The window broke, and the window was old.\n")
    write("boiler.md", "---\ntitle: Boiler (20 May, 2026)\n---\nThe boiler broke.\n")
    store.sync()
    found = store.search("In what order did the boiler, the roof and the window break?")
    assert [(note.name, note.day) for note in found.by_date] == [
        ("log 2025-09-09", "2025-09-09"),
        ("roof", "2026-02-01"),
        ("boiler", "2026-05-20"),
    ]
    assert [note.as_text() for note in found.by_date][:2] == ["log 2025-09-09", "2026-02-01 roof"]
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True), "the hits themselves are the best first"

    other = store.search("Did the boiler or the roof break?")
    assert other.by_date == () and "by_date" not in other.as_dict()


def test_the_text_of_a_context_is_in_the_order_that_the_question_asks_for(
    store: EnhancedStore, write: Write
) -> None:
    write("roof.md", "---\ncreated: 2026-02-01T18:00:00\n---\nThe roof broke.\n")
    write(
        "door.md", "---\ncreated: 2026-02-01T08:00:00\n---\nThe door broke, and the roof hit it.\n"
    )
    write("log 2025-09-09.md", "The window broke.\n")
    write("rule.md", "---\npinned: true\n---\nCall the landlord.\n")
    store.sync()
    pack = store.context("In what order did the roof, the door and the window break?")
    places = [pack.text.index(text) for text in ("landlord", "window", "The door", "The roof")]
    assert places == sorted(places)
    assert pack.chronological and "2026-02-01" in pack.text

    other = store.context("Did the roof or the door or the window break?")
    assert not other.chronological and "chronological" not in other.as_dict()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be set here")
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_days_are_those_of_the_local_time_zone(
    store: EnhancedStore, write: Write, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        moment = datetime(2026, 11, 18, 12, tzinfo=UTC)
        local_day = moment.astimezone().date()
        for offset in (-1, 0, 1):
            write(f"{local_day + timedelta(offset)}.md", "The dentist filled a tooth.\n")
        store.sync()
        assert names(store, "what did the dentist do today?", moment)[0] == str(local_day)
    finally:
        monkeypatch.undo()
        time.tzset()
