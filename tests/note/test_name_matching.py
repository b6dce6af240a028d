"""Notes are found by a part of a name, best first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.name_matching import NamedNote, best_matches, count_edits

NAMES = ["QuickAdd", "Quick switcher", "Obsidian git", "Pressure sensor calibration", "Café", "Add"]
NOTES = [NamedNote(f"{name}.md", name, name) for name in NAMES]


def matches(typed: str, limit: int = 10) -> list[str]:
    return [note.name for note in best_matches(typed, NOTES, limit)]


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("quickadd", "QuickAdd"),
        ("quick add", "QuickAdd"),
        ("quikadd", "QuickAdd"),
        ("qckadd", "QuickAdd"),  # letters left out
        ("obsidain git", "Obsidian git"),
        ("git obs", "Obsidian git"),
        ("cafe", "Café"),
        ("presure sens", "Pressure sensor calibration"),
        ("switch", "Quick switcher"),
        ("add", "Add"),  # an equal name before one that contains it
    ],
)
def test_a_part_of_a_name_finds_it_also_with_wrong_letters(typed: str, best: str) -> None:
    assert matches(typed)[0] == best


def test_nothing_similar_and_no_letters_match_nothing() -> None:
    assert matches("zebra") == []
    assert matches("") == []
    assert matches("???") == []


def test_a_note_is_listed_once_with_its_best_name_and_the_number_is_limited() -> None:
    notes = [NamedNote("a.md", "Long title", "Long title"), NamedNote("a.md", "Long title", "Lo")]
    assert best_matches("lo", notes, 10) == [notes[1]]
    assert matches("quick", limit=1) == ["QuickAdd"]


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_edits_are_symmetric_and_bounded(word: str, other: str) -> None:
    edits = count_edits(word, other)
    assert edits == count_edits(other, word)
    assert abs(len(word) - len(other)) <= edits <= max(len(word), len(other))
    assert (edits == 0) == (word == other)
