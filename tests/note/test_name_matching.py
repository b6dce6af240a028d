"""Notes are found by a part of a name, best first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.name_matching import NamedNote, NameIndex, differs_by
from simplemem.note.words import split_words, without_accents, words_key

NAMES = ["QuickAdd", "Quick switcher", "Obsidian git", "Pressure sensor calibration", "Café", "Add"]
NOTES = [NamedNote(f"{name}.md", name, name) for name in NAMES]


def matches(typed: str, limit: int = 10) -> list[str]:
    return [note.name for note in NameIndex(NOTES).best_matches(typed, limit)]


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
    assert NameIndex(notes).best_matches("lo", 10) == [notes[1]]
    assert matches("quick", limit=1) == ["QuickAdd"]


# Few letters, so that names match in many ways; digits, accents, marks and other scripts.
LETTERS = "aabbceéßx 1-_.ñ東京🎉"
WORDS = st.sampled_from(["abba", "abab", "abbaceab", "Café", "cafe", "x1", "1", "2", "ab", "ça"])
TEXTS = st.one_of(
    st.text(LETTERS, max_size=12),
    st.lists(WORDS, max_size=4).map(" ".join),
    st.lists(WORDS, max_size=3).map("-".join),
)
PATHS = st.sampled_from([f"{letter}.md" for letter in "abcdefgh"])
NAMED = st.lists(st.builds(NamedNote, PATHS, st.just(""), TEXTS), max_size=25)


@given(TEXTS, NAMED, st.integers(1, 30))
def test_the_index_answers_as_a_look_at_every_name(
    typed: str, notes: list[NamedNote], limit: int
) -> None:
    expected = look_at_every_name(typed, notes, limit)
    assert NameIndex(notes).best_matches(typed, limit) == expected


def look_at_every_name(typed: str, notes: list[NamedNote], limit: int) -> list[NamedNote]:
    """Return what `best_matches` promises, by comparing the typed text with each name."""
    key = words_key(typed)
    words = split_words(without_accents(typed))
    best: dict[str, tuple[tuple[int, int, str], NamedNote]] = {}
    for note in notes:
        rank = rank_of(key, words, note.name) if key else None
        if rank is None:
            continue
        order = rank, len(note.name), note.path
        if note.path not in best or order < best[note.path][0]:
            best[note.path] = order, note
    return [note for _, note in sorted(best.values())[:limit]]


def rank_of(key: str, words: list[str], name: str) -> int | None:
    """Return how well a name matches, from 0 for an equal name; None if it does not match."""
    name_key = words_key(name)
    name_words = split_words(without_accents(name))
    rest = iter(name_key)
    is_subsequence = name_key[:1] == key[0] and all(letter in rest for letter in key)
    ways = [
        name_key == key,
        name_key.startswith(key),
        all(any(other.startswith(word) for other in name_words) for word in words),
        key in name_key,
        all(any(resembles(word, other) for other in name_words) for word in words),
        len(key) >= 4 and is_subsequence,
    ]
    return ways.index(True) if any(ways) else None


def resembles(word: str, other: str) -> bool:
    """Return whether a word of a name begins with a typed word or differs by a few letters."""
    max_edits = 0
    if len(word) >= 4:
        max_edits = 2 if len(word) >= 8 else 1
    is_near = other[0] == word[0] and count_edits(word, other) <= max_edits
    return other.startswith(word) or is_near


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(0, 3))
def test_words_differ_by_as_many_edits_as_a_whole_table_counts(
    word: str, other: str, max_edits: int
) -> None:
    assert differs_by(word, other, max_edits) == (count_edits(word, other) <= max_edits)
    assert differs_by(other, word, max_edits) == differs_by(word, other, max_edits)


def count_edits(word: str, other: str) -> int:
    """Return how many letters must be inserted, removed, replaced or swapped with the next."""
    row_before: list[int] = []
    row = list(range(len(other) + 1))
    for number, letter in enumerate(word, 1):
        new_row = [number]
        for place, other_letter in enumerate(other, 1):
            replaced = row[place - 1] + (letter != other_letter)
            best = min(replaced, row[place] + 1, new_row[place - 1] + 1)
            if number > 1 and place > 1:
                before = word[number - 2 : number]
                is_swapped = before == other_letter + other[place - 2]
                if is_swapped:
                    best = min(best, row_before[place - 2] + 1)
            new_row.append(best)
        row_before = row
        row = new_row
    return row[-1]
