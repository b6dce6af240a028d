"""What entries show together: compared, judged and counted, with the entries behind each finding."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest

from simplemem.features.lessons.analysis import Analysis, analysis_of
from simplemem.features.lessons.contradictions import Contradiction
from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.service import LessonService, lesson_service
from simplemem.store import EnhancedStore

Look = Callable[..., Analysis]


def lesson(id_: str, content: str = "", kind: str = "insight", **more: Any) -> Lesson:
    name, day = more.get("name", f"knowledge/{kind}/{id_}"), "2026-11-01T10:00:00"
    fields: dict[str, Any] = {
        "context": "",
        "confidence": 0.8,
        "verified": False,
        "tags": ("t",),
        "sha256": "",
    }
    fields |= {"created": day, "modified": day, "name": name, "path": f"{name}.md"}
    return Lesson(id_, kind, content or f"text of {id_}", **fields | more)


@pytest.fixture
def look(plain_store: EnhancedStore) -> Look:
    """What can be said of some entries without vectors."""
    return lambda *lessons: Analysis(plain_store, lessons)


@pytest.fixture
def service(store: EnhancedStore) -> Iterator[LessonService]:
    """Entries with the vectors that come in the package: three of one error, two of other things."""
    service = lesson_service(store)
    for text in ("under load", "under heavy load", "under a heavy load"):
        content = f"The postgres connection pool is exhausted {text}"
        service.save(
            "error", content, confidence=0.9, tags=["Pool"] if text != "under load" else []
        )
    service.save("insight", "Balloons fly with hydrogen", confidence=0.8)
    service.save("insight", "Tea is best with lemon", confidence=0.8)
    store.sync()
    yield service


# -- what belongs together


def test_a_theme_grows_around_the_entry_that_is_read_most(
    service: LessonService, store: EnhancedStore
) -> None:
    most_read = service.lessons()[1]
    service.record_reads([most_read.id])
    (theme,) = analysis_of(store).themes()
    words, members = theme
    assert (
        members[0] == most_read
        and len(members) == 3
        and words == ["connection", "exhausted", "load", "pool"]
    )
    assert analysis_of(store).themes(min_size=4) == []
    themes = analysis_of(store).themes(0.0, min_size=1)
    assert sum(len(members) for _, members in themes) == 5  # no entry is in two


def test_tags_are_suggested_to_those_that_lack_them_in_the_spelling_there_is(
    service: LessonService, store: EnhancedStore
) -> None:
    suggested = {finding["tag"]: finding for finding in analysis_of(store).suggested_tags()}
    pool_tag, new_tag = suggested["Pool"], suggested["connection"]
    assert (pool_tag["having"], pool_tag["of"], pool_tag["known"], len(pool_tag["entries"])) == (
        2,
        3,
        True,
        1,
    )
    assert (new_tag["having"], new_tag["known"], len(new_tag["entries"])) == (0, False, 3)


def test_insights_tell_themes_errors_that_come_again_and_what_nobody_reads(
    service: LessonService, store: EnhancedStore
) -> None:
    result = [
        (finding["kind"], finding["priority"], len(finding["entries"]))
        for finding in analysis_of(store).insights()
    ]
    assert result == [
        *[("recurring error", "critical", 3), ("errors without solution", "high", 3)],
        ("never read", "medium", 5),
    ]


def test_duplicates_of_unlike_confidence_are_only_suspected(
    service: LessonService, store: EnhancedStore
) -> None:
    service.save("error", "The postgres connection pool is exhausted under load!", confidence=0.5)
    store.sync()
    analysis = analysis_of(store)
    assert set(rules(analysis.contradictions())) == {"duplicate?"}
    assert len(analysis.contradictions(0.97)) == 1 and analysis.contradictions(min_delta=0.5) == []
    suspected = analysis.contradictions(0.97)[0].data
    service.link(suspected["one"]["id"], suspected["other"]["id"])
    assert analysis_of(store).contradictions(0.97) == []


# -- what cannot all be right

POSTGRES = lesson("p", "Use Postgres for the billing store.", "decision")
MYSQL = lesson("m", "Use MySQL for the billing store.", "decision")
ONE_THING_TWO_VALUES = [
    ("Use Postgres for the billing store.", "We should use MySQL for the billing store."),
    (
        "The database of the billing service is Postgres.",
        "The database of the billing service is MySQL.",
    ),
    ("Aurora's owner is Ada Lovelace.", "The owner of Aurora is Grace Hopper."),
    ("The default log level is debug.", "The default log level is warning."),
    ("The cache defaults to memory", "The cache defaults to disk"),
    ("The gateway listens on 8080.", "The gateway listens on 9090."),
    ("The upload limit of the gateway is 30 MB.", "The upload limit of the gateway is 50 MB."),
    (
        "The nightly import takes about 12.5 minutes.",
        "The nightly import takes about 19.5 minutes.",
    ),
    (
        "The gateway listens on 8080 in staging.",
        "In short, no.\n\nThe gateway listens on 9090 in staging.",
    ),
    ("Adopt pnpm as package manager", "Adopt yarn as package manager, since it is quick"),
]
DENIED = [
    ("Never use eval in templates.", "Always use eval in templates."),
    ("Don't restart the worker during deploys.", "Restart the worker during deploys."),
]
NOT_AT_ODDS = [
    ("Use Postgres for the billing store.", "Use Postgres 16 for the billing store."),
    ("Use Postgres for the billing store.", "Use MySQL for the search index."),
    ("The owner of Aurora is Ada.", "The owner of Borealis is Grace."),
    ("Is the default log level debug?", "Is the default log level warning?"),
    ("The default of x is not 5.", "The default of x is 6."),
    ("Do not use eval in templates.", "Use eval in the build scripts of the docs."),
    ("It is not so.", "It is so."),
    ("Scripts use bash for deploys.", "Services use python for deploys."),
    ("The worker is slow.", "The worker is quick."),
    ("```\nuse a for b\n```", "```\nuse c for b\n```"),
    (
        "hears the tracker of the balloon %% strength=0.6 %%",
        "hears the tracker of the balloon %% strength=0.9 %%",
    ),
]


# Numbers that name and qualifiers make two facts.
TWO_FACTS = [
    (
        "Version 2.3 of the SDK fixed the crash on start.",
        "Version 2.4 of the SDK fixed the crash on start.",
    ),
    (
        "The crash on start was fixed in version 2.3.",
        "The crash on start was fixed in version 2.4.",
    ),
    ("The latest release of the SDK is 2.3.", "The latest release of the SDK is 2.4."),
    ("The crash on start is gone since 2.3.", "The crash on start is gone since 2.4."),
    ("Step 1: run the migration script.", "Step 2: run the migration script."),
    ("Ticket 1201 is about the login page.", "Ticket 1388 is about the login page."),
    ("The login page is broken, see #1201.", "The login page is broken, see #1388."),
    ("The gateway listens on 8080 in staging.", "The gateway listens on 9090 in production."),
    ("The gateway listens on 8080 (staging).", "The gateway listens on 9090 (production)."),
    ("The gateway listens on 8080 if TLS is off.", "The gateway listens on 9443 if TLS is on."),
    (
        "The port of the gateway is 8080 in staging.",
        "The port of the gateway is 9090 in production.",
    ),
    ("The default font is Arial on Safari.", "The default font is Roboto on Chrome."),
    ("Use polling on Safari for updates.", "Use sockets on Chrome for updates."),
    ("The deploy on 3 May failed with a timeout.", "The deploy on 4 May failed with a timeout."),
    (
        "The outage of the gateway was on 2026-01-24.",
        "The outage of the gateway was on 2026-02-11.",
    ),
    ("Server 3 has a failing disk in bay two.", "Server 4 has a failing disk in bay two."),
    ("The error code of a lost lease is 4001.", "The error code of a lost lease is 4002."),
    (
        "The price of the plan is 10 euro for 3 users.",
        "The price of the plan is 10 euro for 5 users.",
    ),
    ("For 3 users the price of the plan is low.", "For 5 users the price of the plan is low."),
    ("Never restart the worker before a backup.", "Restart the worker after a backup."),
    ("The owner of Aurora is on leave.", "The owner of Aurora is Ada."),
    ("The owner of Aurora is responsible for billing.", "The owner of Aurora is Ada."),
    ("The owners of Aurora are Ada and Bo.", "The owners of Aurora are Cleo and Dan."),
    (
        "The performance of the gateway is good.",
        "The performance of the gateway is measured every week.",
    ),
    ("PR 88 adds retries to the client.", "PR 91 adds retries to the client."),
    (
        "The owner of the billing team is Ada in 2025.",
        "The owner of the billing team is Grace in 2026.",
    ),
    (
        "The budget was raised to 2025 levels by the board.",
        "The budget was raised to 2026 levels by the board.",
    ),
]


def rules(result: list[Contradiction]) -> list[str]:
    return [finding.data["rule"] for finding in result]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [*((*pair, ["slot"]) for pair in ONE_THING_TWO_VALUES), *((*pair, ["polarity"]) for pair in DENIED),
     *((*pair, []) for pair in NOT_AT_ODDS), *((*pair, []) for pair in TWO_FACTS)],
)  # fmt: skip
def test_what_disagrees_is_told_and_what_can_both_be_so_is_left_alone(
    look: Look, one: str, other: str, expected: list
) -> None:
    assert rules(look(lesson("a", one), lesson("b", other)).contradictions()) == expected


def test_a_pair_is_told_with_the_words_that_disagree(look: Look) -> None:
    (finding,) = look(POSTGRES, MYSQL, lesson("x", "Something else altogether.")).contradictions()
    ends = [(finding.data[end]["id"], finding.data[end]["said"]) for end in ("one", "other")]
    assert (
        ends == [("p", POSTGRES.content), ("m", MYSQL.content)]
        and finding.data["about"] == "billing store"
    )


@pytest.mark.parametrize("more", [{"status": "superseded"}, {"superseded_by": "x"}])
def test_what_is_superseded_takes_no_part(look: Look, more: dict) -> None:
    assert look(POSTGRES, lesson("m", MYSQL.content, "decision", **more)).contradictions() == []


def test_a_value_in_the_names_of_two_notes_tells_them_apart(look: Look) -> None:
    june = lesson(
        "a",
        "The flight lasted 3 hours over the northern sea.",
        is_own=False,
        name="flights/Flight 3",
    )
    july = lesson(
        "b",
        "The flight lasted 4 hours over the northern sea.",
        is_own=False,
        name="flights/Flight 4",
    )
    assert look(june, july).contradictions() == []


def test_a_form_that_is_filled_in_again_and_again_is_no_quarrel(look: Look) -> None:
    filled = [
        lesson(str(k), f"The build of the nightly release took {k + 10} minutes in total.")
        for k in range(60)
    ]
    assert look(*filled).contradictions() == []


# -- who wins


@pytest.mark.parametrize(
    ("one", "other", "winner", "why"),
    [
        ({"verified": True, "confidence": 1.0}, {"is_by_hand": True}, "m", "the user edited it"),
        ({"confidence": 1.0, "modified": "2026-11-09"}, {"verified": True}, "m", "it is verified"),
        ({"confidence": 1.0}, {"modified": "2026-11-09T00:00:00"}, "m", "it is newer"),
        ({"confidence": 0.5}, {"confidence": 0.7}, "m", "it has the higher confidence"),
        ({"confidence": 0.7}, {"confidence": None}, "p", "it has the higher confidence"),
    ],
)
def test_who_wins_is_decided_in_this_order(
    look: Look, monkeypatch: pytest.MonkeyPatch, one: dict, other: dict, winner: str, why: str
) -> None:
    is_by_hand = other.pop("is_by_hand", False)
    pair = (
        lesson("p", POSTGRES.content, "decision", **one),
        lesson("m", MYSQL.content, "decision", **other),
    )
    analysis = look(*pair)
    monkeypatch.setattr(
        analysis.store.extension, "is_by_hand", lambda path, _: is_by_hand and path == pair[1].path
    )
    (result,) = analysis.contradictions()
    assert (result.data["winner"], result.data["why"]) == (winner, why)


def test_what_nothing_decides_is_left_and_what_lost_takes_no_part(look: Look) -> None:
    (undecided,) = look(POSTGRES, MYSQL).contradictions()
    assert undecided.verdict is None and "winner" not in undecided.data
    sqlite = lesson("s", "Use SQLite for the billing store.", "decision", verified=True)
    result = look(POSTGRES, MYSQL, sqlite).contradictions()
    assert {
        (finding.verdict[0].id, finding.verdict[1].id) for finding in result if finding.verdict
    } == {
        ("s", "p"),
        ("s", "m"),
    }


# -- counts


def test_patterns_are_what_begins_alike_and_what_was_made_lately(look: Look) -> None:
    long = "The worker cannot reach the broker behind the proxy"
    lessons = [
        lesson("a", f"{long} at night", "error", created="2026-11-22"),
        lesson("b", f"**{long.upper()}** by day", "error", created="2026-11-16T10:00:00"),
        lesson("c", f"{long} at noon", "decision", created="2026-11-15", confidence=None),
        lesson("d", "another error", "error", created="2026-10-23", confidence=0.5),
        lesson("e", created="2026-08-25"),
        lesson("f", created=""),
    ]
    result = look(*lessons).patterns(date(2026, 11, 22))
    assert [
        (finding["type"], [e["id"] for e in finding["entries"]]) for finding in result["recurring"]
    ] == [("error", ["a", "b"])]
    assert result["types"] == {"error": 3, "insight": 2, "decision": 1} and result["tags"] == {
        "t": 6
    }
    assert result["lately"] == {"7": 2, "30": 3, "90": 5} and (
        result["before"],
        result["trend"],
    ) == (
        1,
        "rising",
    )
    assert result["confidence"] == {"error": 0.7, "insight": 0.8}


def test_antipatterns_are_told_from_their_share_on(look: Look) -> None:
    def kinds(*lessons: Lesson) -> set[str]:
        return {finding["kind"] for finding in look(*lessons).antipatterns()}

    same = (
        "The very same words, which go on for more than a hundred characters so that both begin alike: "
        + "x" * 20
    )
    assert kinds(lesson("a", same + "1"), lesson("b", same + "2")) == {"duplicates"}
    assert kinds(*(lesson(str(k), confidence=0.9 if k else 0.4) for k in range(5))) == set()
    assert kinds(*(lesson(str(k), confidence=0.9 if k else 0.4) for k in range(4))) == {
        "low confidence"
    }
    assert kinds(lesson("a", tags=()), lesson("b"), lesson("c")) == {"untagged"}
    assert kinds(lesson("a", kind="error")) == {"errors without solution"}


@pytest.mark.parametrize(("source", "target"), [("solution", "error"), ("error", "solution")])
def test_an_error_is_solved_by_a_solution_linked_either_way(
    plain_store: EnhancedStore, source: str, target: str
) -> None:
    service = lesson_service(plain_store)
    one, other = (
        service.save(kind, kind, confidence=1, tags=["t"])[0] for kind in (source, target)
    )
    assert [finding["kind"] for finding in analysis_of(plain_store).antipatterns()] == [
        "errors without solution"
    ]
    service.link(one.id, other.id)
    assert analysis_of(plain_store).antipatterns() == []


def test_the_index_and_the_history_are_asked_once_for_each_entry_that_is_compared(
    service: LessonService, store: EnhancedStore
) -> None:
    for number in range(30):  # each contradicts all others
        service.save("decision", f"The default port is {9000 + number}", confidence=0.8)
    store.sync()
    analysis = analysis_of(store)
    calls = 0

    def count(frame: Any, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_name == "with_retry"

    sys.setprofile(count)
    try:
        result = analysis.contradictions()
    finally:
        sys.setprofile(None)
    assert len(result) > 300
    assert calls < 3 * len(analysis.current)
