"""A word that no note contains is searched for as the word of the notes that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simplemem.models import Filter, Found
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

NOTES = {
    "QuickAdd": "QuickAdd runs a macro. This tutorial shows each step of a macro for templates.",
    "Obsidian git": "Back up your Obsidian vault with git, as a repository.",
    "Workspaces": "Save the settings of the panes. A house stands here. Привет, Владивосток: дорога.",
    "Straße": "Die Häuser der Gemeinde und der Datenschutz in den Verträgen wurden besprochen.",
    "Bakery": "An éclair with coffee.",
    "private/Zeppelin": "The zeppelin landed.",
    "First": "There was a lantern in the hall.",
    "Second": "There was a trumpet in the hall.",
    "Other": "An ordinary day with bread, butter and 1234567.",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnhancedStore]:
    folder = tmp_path_factory.mktemp("vault")
    for name, text in NOTES.items():
        path = folder / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    with EnhancedStore(folder, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.sync()
        yield store


def search(store: EnhancedStore, query: str, folder: str = "") -> Found:
    return store.search(query, filter=Filter(prefix=folder), mode="text")


@pytest.mark.parametrize(
    ("query", "name", "correction"),
    [
        ("quikadd macro tutorial", "QuickAdd", "No note contains quikadd; searched for quickadd."),
        ("obsidain git", "Obsidian git", "No note contains obsidain; searched for obsidian."),
        ("uqickadd", "QuickAdd", "No note contains uqickadd; searched for quickadd."),
        ("settngs of panes", "Workspaces", "No note contains settngs; searched for settings."),
        ("verträge hauesr", "Straße", "No note contains hauesr; searched for häuser."),
        ("eclari", "Bakery", "No note contains eclari; searched for éclair."),
        ("владивасток", "Workspaces", "No note contains владивасток; searched for владивосток."),
    ],
)
def test_a_misspelt_word_finds_what_was_meant_and_the_answer_names_it(
    store: EnhancedStore, query: str, name: str, correction: str
) -> None:
    found = search(store, query)
    assert found.hits[0].name == name
    assert found.degraded == correction
    assert not found.absent
    assert not found.only_nearest


def test_a_german_word_finds_the_compounds_that_end_with_it(store: EnhancedStore) -> None:
    found = search(store, "Schutz Verträge")
    assert found.hits[0].name == "Straße"
    assert found.degraded == "No note contains schutz; searched for words that end with it."
    assert not found.absent
    assert search(store, '"Schutz" Vertrag').absent == ("schutz",)


def test_compounds_are_found_only_where_a_language_joins_words(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A lighthouse and the datenschutz.", encoding="utf-8")
    settings = Settings.model_validate({"embed": {"provider": "none"}})
    with EnhancedStore(tmp_path, settings) as store:
        store.sync()
        assert search(store, "schutz lighthouse").absent == ("schutz",)


@pytest.mark.parametrize(
    "query",
    [
        '"quikadd" macro',  # a quoted phrase
        "macro -quikadd",
        "quikadd* macro",
        "1234576 macro",  # a number
        "quik4dd macro",
        "QUIKADD macro",  # a code in capitals
        "path/to/quikadd.py macro",
        "horse macro",  # a word of the language, though the notes have only "house"
        "horses macro",
        "git obs",  # the beginning of a word is not misspelt
        "gut",  # too short
        "quizzad macro",  # too different
    ],
)
def test_codes_phrases_and_words_of_the_language_are_searched_as_typed(
    store: EnhancedStore, query: str
) -> None:
    assert "searched for quickadd" not in search(store, query).degraded
    assert "searched for house" not in search(store, query).degraded
    explained = store.search(query, mode="text", explain=True)
    assert explained.explain is not None
    assert "corrected" not in explained.explain


def test_a_word_of_more_than_a_hundred_letters_is_searched_as_typed(tmp_path: Path) -> None:
    long_word = "abcdefghij" * 10
    (tmp_path / "Long.md").write_text(f"Here is {long_word}.\n", encoding="utf-8")
    with EnhancedStore(tmp_path, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.sync()
        misspelt = search(store, long_word[:-1])
        assert [hit.name for hit in misspelt.hits] == ["Long"]
        too_long = search(store, long_word + "k")
        assert not too_long.hits
        assert too_long.absent == (long_word + "k",)


def test_a_word_is_corrected_only_by_notes_that_pass_the_filter(store: EnhancedStore) -> None:
    assert "zeppelin" in search(store, "zepelin").degraded
    found = search(store, "-zeppelin zepelin bread")
    assert found.absent == ("zepelin",)
    narrowed = store.search("obsidain", filter=Filter(prefix="private/"), mode="text")
    assert narrowed.absent == ("obsidain",)


def test_no_word_is_corrected_to_a_stop_word_of_another_language(tmp_path: Path) -> None:
    (tmp_path / "Nonna.md").write_text("La nonna era in giardino con il coriandolo nel piatto.\n")
    with EnhancedStore(tmp_path, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        store.sync()
        found = search(store, "Quale erba aromatica bisogna togliere dal mio piatto?")
    assert "searched for era" not in found.degraded
    assert found.hits[0].name == "Nonna"


def test_a_corrected_word_weighs_less_than_a_typed_one(store: EnhancedStore) -> None:
    typed = search(store, "quickadd").hits[0]
    corrected = search(store, "quikadd").hits[0]
    assert typed.name == corrected.name
    assert corrected.score < typed.score

    # Both words are in the text of one note; the one that was typed decides.
    hits = search(store, "lanterm trumpet").hits
    assert [hit.name for hit in hits] == ["Second", "First"]
    hits = search(store, "lantern trumpte").hits
    assert [hit.name for hit in hits] == ["First", "Second"]


def test_the_explanation_has_the_corrected_words(store: EnhancedStore) -> None:
    explain = store.search("quikadd macro", mode="text", explain=True).explain
    assert explain is not None
    assert explain["corrected"] == {"quikadd": "quickadd"}
    assert explain["words"] == ["quickadd", "macro"]
    assert explain["matched_nowhere"] == []


def test_a_word_that_was_typed_correctly_too_is_not_repeated(store: EnhancedStore) -> None:
    explain = store.search("quikadd quickadd", mode="text", explain=True).explain
    assert explain is not None
    assert explain["words"] == ["quickadd"]


def test_a_note_that_is_written_later_ends_the_correction(tmp_path: Path) -> None:
    (tmp_path / "QuickAdd.md").write_text("QuickAdd runs a macro.", encoding="utf-8")
    settings = Settings.model_validate({"embed": {"provider": "none"}})
    with EnhancedStore(tmp_path, settings) as store:
        store.sync()
        assert search(store, "quikadd").hits[0].name == "QuickAdd"
        store.create("Quikadd", "A plugin with another name.")
        found = search(store, "quikadd")
        assert found.hits[0].name == "Quikadd"
        assert not found.degraded


def test_a_question_in_another_language_is_searched_as_typed(tmp_path: Path) -> None:
    (tmp_path / "fiets.md").write_text("Elke week repareer ik de fiets.", encoding="utf-8")
    with EnhancedStore(tmp_path, Settings()) as store:
        store.sync()
        assert not search(store, "Welk voertuig herstel ik?").degraded
        assert "searched for week" in search(store, "welk fiets").degraded
