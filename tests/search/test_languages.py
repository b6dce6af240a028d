"""Notes in many languages, in code, and by words not yet typed to their end or mistyped, found through a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simplemem.models import Filter
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]

NOTES = {
    "zh": "我们决定在上海港口使用氢气作为燃料。会议在星期三举行。",
    "ja": "昨日私は京都の図書館に行きました。ガラスの器を買いました。",
    "ko": "한국어를 공부하고 있습니다. 서울에서 친구를 만났어요.",
    "th": "ฉันชอบดื่มน้ำชาทุกวันที่บ้าน",
    "de": "Die Häuser der Siedlung wurden im Winter nicht geheizt. Über die Verträge mit der Gemeinde und die "
    "Entscheidungen zum Datenschutz wird noch gesprochen. Die Straße ist groß.",
    "es": "Las decisiones del equipo fueron rápidas y los canales de la ciudad están abiertos. Cantamos canciones.",
    "fr": "Les journaux de l'équipe sont dans le pré. Les chevaux ont été réparés pendant la réunion.",
    "ru": "Мы решили использовать водород в порту.",
    "en": "The kubernetes cluster costs more since the migration. Organization of the harbour, and a lighthouse.",
    "code": "Call `getUserName()` in HTTPServer2, set snake_case and kebab-case in path/to/file.py at v1.2.3; see #123 and "
    "foo.bar(). Written in C++.",
    "parts": "The user has a name. This path leads to a file; the py is short. A server uses http. 1, then 2, then 3. The "
    "letter C. A snake, then a case.",
    "other": "Nothing of it: an ordinary day with bread and butter.",
}


@pytest.fixture(scope="module")
def vault_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnhancedStore]:
    folder = tmp_path_factory.mktemp("vault")
    for name, text in NOTES.items():
        (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    with EnhancedStore(folder, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.sync()
        yield store


def found(store: EnhancedStore, question: str) -> list[str]:
    return [hit.name for hit in store.search(question, limit=5, mode="text").hits]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("上海", "zh"), ("氢气", "zh"), ("我们什么时候决定使用氢气", "zh"), ("京都", "ja"), ("図書館", "ja"), ("ｶﾞﾗｽ", "ja"),
        ("한국", "ko"), ("친구", "ko"), ("친구가 서울에", "ko"), ("ชา", "th"), ("บ้าน", "th"), ("น้ำ", "th"),
        ("Haus", "de"), ("hauser", "de"), ("haeuser", "de"), ("Strasse", "de"), ("STRASSE", "de"), ("Vertrages", "de"),
        ("Entscheidung", "de"), ("Wie wurden die Häuser geheizt?", "de"),
        ("decisión", "es"), ("canción", "es"), ("rapido", "es"), ("¿Qué decisión tomó el equipo?", "es"),
        ("cheval", "fr"), ("journal", "fr"), ("réparer", "fr"), ("reparer", "fr"),
        ("Où sont les chevaux de l'équipe ?", "fr"),
        ("водород", "ru"), ("costs of the migrations", "en"), ("organized", "en"),
    ],
)  # fmt: skip
def test_a_question_finds_the_note_in_its_language_first(
    vault_of_all: EnhancedStore, question: str, name: str
) -> None:
    assert found(vault_of_all, question)[:1] == [name]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Un hors-d'œuvre", "oeuvre"), ("Ma soeur", "sœur"), ("Łódź", "lodz"), ("Smørrebrød", "smorrebrod"),
        ("Ærøskøbing", "aeroskobing"), ("Đà Nẵng", "da nang"), ("Þingvellir", "thingvellir"), ("Groß", "GROẞ"),
        ("IŞIK", "ışık"), ("ılık", "ILIK"), ("İstanbul", "istanbul"), ("ISTANBUL", "İstanbul"),
        ("Καφές", "καφες"), ("ΟΔΥΣΣΕΑΣ", "Οδυσσέας"), ("Ёлка", "елка"), ("שָׁלוֹם", "שלום"), ("كِتَابٌ", "كتاب"),
        ("co\u00adoper\u00adation", "cooperation"), ("cafe\u0301", "cafe"),
    ],
)  # fmt: skip
def test_letters_are_found_with_and_without_what_a_keyboard_may_lack(
    store: EnhancedStore, write: Write, written: str, asked: str
) -> None:
    write("note.md", f"{written}.")
    write("asked the other way round.md", f"{asked}.")
    store.sync()
    for question in (written, asked):
        assert set(found(store, question)) == {"note", "asked the other way round"}


@pytest.mark.parametrize(
    "question",
    [
        "getUserName", "getusername", "get_user_name", "get user name", "HTTPServer2", "http server", "snake_case",
        "snakeCase", "kebab-case", "path/to/file.py", "file.py", "v1.2.3", "1.2.3", "what changed in v1.2.3?", "#123",
        "foo.bar()", "C++", "cpp",
    ],
)  # fmt: skip
def test_code_is_found_by_the_whole_before_its_parts(
    vault_of_all: EnhancedStore, question: str
) -> None:
    assert found(vault_of_all, question)[:1] == ["code"]


@pytest.mark.parametrize("typed", ["kub", "kubern", "kubernete", "lightho", "the costs of kubern"])
def test_a_word_is_found_while_it_is_typed(vault_of_all: EnhancedStore, typed: str) -> None:
    assert found(vault_of_all, typed)[:1] == ["en"]


def test_a_star_asks_for_every_word_that_begins_so(store: EnhancedStore, write: Write) -> None:
    for name in ("light", "lighthouse", "lightning", "heavy"):
        write(f"{name}.md", f"About {name}.")
    store.sync()
    assert sorted(found(store, "light*")) == ["light", "lighthouse", "lightning"]
    assert found(store, "light") == ["light"]


def test_a_last_word_that_no_memory_holds_is_taken_for_a_beginning(
    vault_of_all: EnhancedStore,
) -> None:
    answer = vault_of_all.search("kubern", mode="text")
    assert [hit.name for hit in answer.hits][:1] == ["en"]
    assert (
        answer.degraded == 'No note contains "kubern"; words that begin with it were searched for.'
    )


def test_what_is_excluded_is_so_in_all_its_forms(vault_of_all: EnhancedStore) -> None:
    assert found(vault_of_all, "Gemeinde -Haus") == []
    assert found(vault_of_all, "Gemeinde -Brot") == ["de"]


def test_a_pair_of_characters_that_is_nowhere_is_looked_for_by_them(
    vault_of_all: EnhancedStore,
) -> None:
    answer = vault_of_all.search("行く", mode="text")
    assert "ja" in [hit.name for hit in answer.hits]
    assert "its characters" in answer.degraded


def test_a_phrase_that_is_nowhere_is_told_without_hits_too(vault_of_all: EnhancedStore) -> None:
    let_go = 'No note contains "bread of butter" word for word'
    found = vault_of_all.search('"bread of butter"', mode="text")
    assert found.hits and found.degraded == f"{let_go}; the hits match its words."
    found = vault_of_all.search(
        '"bread of butter"', filter=Filter.of(prefix="nowhere/"), mode="text"
    )
    assert (found.hits, found.degraded.partition(" No note")[0]) == ((), f"{let_go}.")


def an_english_vault_with(write: Write, **others: str) -> None:
    """200 English notes that hold "project", "meeting" and "tag", beside some notes in other languages."""
    topics = ("budget", "report", "design", "travel", "hiring", "launch", "survey")
    for k in range(200):
        about = f"{topics[k % 7]} and the {topics[k % 5]}"
        write(
            f"english/Note {k}.md",
            f"The project is about the {about}. We tag it after the meeting number {k}.\n",
        )
    for name, text in others.items():
        write(f"{name}.md", text)


REUNION = (
    "La reunión del equipo fue larga. El meeting sobre el project se repite cada semana, y también hablamos de los "
    "viajes, de las facturas y de la casa, que ya no está en la lista.\n"
)


@pytest.mark.parametrize(
    "question", ["project meeting", "meeting", "What was the project meeting about?"]
)
@pytest.mark.parametrize("mode", ["hybrid", "text"])
def test_the_one_note_in_another_language_is_not_first_for_words_that_all_notes_hold(
    store: EnhancedStore, write: Write, question: str, mode: str
) -> None:
    an_english_vault_with(write, reunion=REUNION)
    store.sync()
    assert "reunion" not in [hit.name for hit in store.search(question, limit=20, mode=mode).hits]


def test_a_stem_counts_no_more_than_its_word_where_it_leads_to_a_further_note(
    plain_store: EnhancedStore, write: Write
) -> None:
    one_form = "Der Tag mit dem Team war lang, und wir haben über die Reise, die Rechnung und das Haus gesprochen.\n"
    another_form = (
        "Die Tage mit dem Team waren lang, und wir haben über die Reise und das Haus gesprochen.\n"
    )
    an_english_vault_with(write, one=one_form, another=another_form)
    plain_store.sync()
    names = [hit.name for hit in plain_store.search("tag", limit=200).hits]
    assert "one" not in names[:20]
    assert "another" not in names[:20]
    by_its_form = [hit.name for hit in plain_store.search("Tages", limit=2, mode="text").hits]
    assert set(by_its_form) == {"one", "another"}
