"""Find names by a part of them, as a person types it to open a note. Pure.

Imported only where notes are listed by such a part. docs/reference/cli.md describes `open`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simplemem.note.words import split_words, without_accents, words_key

# A typed word of this many letters may have one wrong letter; one of the second length, two.
_MIN_LENGTH = 4
_LONG_LENGTH = 8

# How well a name matches; a lower number is better.
_EQUAL = 0
_BEGINNING = 1
_WORDS = 2
_PART = 3
_SIMILAR_WORDS = 4
_LETTERS = 5


class NamedNote(NamedTuple):
    """A note with one of its names: its title or file name, or an alias."""

    path: str
    title: str
    name: str


def best_matches(typed: str, notes: Iterable[NamedNote], limit: int) -> list[NamedNote]:
    """Return the notes that have a matching name, each once, with the name that matches best.

    Letter case, accents and punctuation do not matter. The order is: the name is equal, begins with
    the typed text, has words that begin with each typed word, contains the typed text, has words
    that differ from the typed ones by a few letters, has the typed letters in their order. Equal
    matches are in the order of length, then of paths. A text without letters or digits matches
    nothing.
    """
    key = words_key(typed)
    if not key:
        return []
    words = _words_of(typed)
    best: dict[str, tuple[tuple[int, int, str], NamedNote]] = {}
    for note in notes:
        rank = _rank(key, words, note.name)
        if rank is None:
            continue
        order = rank, len(note.name), note.path
        known = best.get(note.path)
        if known is None or order < known[0]:
            best[note.path] = order, note
    in_order = sorted(best.values())
    return [note for _, note in in_order[:limit]]


def _rank(key: str, words: Sequence[str], name: str) -> int | None:
    """Return how well a name matches, by the typed text's `words_key` and words.

    Returns None if it does not match.
    """
    name_key = words_key(name)
    if name_key.startswith(key):
        return _EQUAL if name_key == key else _BEGINNING

    words_of_name = _words_of(name)
    if all(_begins_one_of(word, words_of_name) for word in words):
        return _WORDS
    if key in name_key:
        return _PART
    if all(_resembles_one_of(word, words_of_name) for word in words):
        return _SIMILAR_WORDS
    if len(key) < _MIN_LENGTH or not _has_letters(name_key, key):
        return None
    return _LETTERS


def _words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents."""
    return split_words(without_accents(text))


def _begins_one_of(word: str, words: Iterable[str]) -> bool:
    """Return whether one of some words begins with a word."""
    return any(other.startswith(word) for other in words)


def _resembles_one_of(word: str, words: Iterable[str]) -> bool:
    """Return whether one of some words begins with a word, or differs from it by a few letters."""
    max_edits = _max_edits(word)
    for other in words:
        if other.startswith(word):
            return True
        is_near = other[0] == word[0] and abs(len(other) - len(word)) <= max_edits
        if is_near and count_edits(word, other) <= max_edits:
            return True
    return False


def _max_edits(word: str) -> int:
    """Return by how many letters a typed word may differ."""
    if len(word) < _MIN_LENGTH:
        return 0
    return 2 if len(word) >= _LONG_LENGTH else 1


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


def _has_letters(name_key: str, key: str) -> bool:
    """Return whether a name has the typed letters in their order, beginning with its first."""
    if name_key[0] != key[0]:
        return False
    rest = iter(name_key)
    return all(letter in rest for letter in key)
