"""Find names by a part of them, as a person types it to open a note. Pure.

Imported only where notes are listed by such a part. docs/reference/cli.md describes `open`.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from simplemem.note.words import key_of_words, split_words, without_accents, words_key

_MIN_LENGTH = 4  # a typed word of this length may have one wrong letter; a shorter one, none
_LONG_LENGTH = 8  # a typed word of this length may have two wrong letters

_MAX_FOLDED_NAMES = 50_000  # remembered from one index to the next; 20 MB


class NamedNote(NamedTuple):
    """A note with one of its names: its title or file name, or an alias."""

    path: str
    title: str
    name: str


class _FoldedName(NamedTuple):
    """A name as it is compared: its `words_key`, and its words without case and accents."""

    key: str
    words: tuple[str, ...]


class NameIndex:
    """The names of all notes of one state of a vault, for any number of queries. Immutable.

    The id of a name is its position in `_notes`, which are sorted by the length of the name, then
    by path. A query therefore returns equally good matches in the order of their ids.
    """

    def __init__(self, notes: Iterable[NamedNote]) -> None:
        """Index the names of some notes."""
        self._notes = sorted(notes, key=_sort_key)
        folded = [_fold(note.name) for note in self._notes]

        ids_by_word: defaultdict[str, list[int]] = defaultdict(list)
        for name_id, name in enumerate(folded):
            for word in name.words:
                ids_by_word[word].append(name_id)
        self._ids_by_word = dict(ids_by_word)
        self._words = sorted(ids_by_word)

        self._keys = [name.key for name in folded]
        self._ids_by_key = sorted(range(len(folded)), key=self._keys.__getitem__)
        self._sorted_keys = [self._keys[name_id] for name_id in self._ids_by_key]

        self._text = "\n".join(self._keys)  # no key contains a line break
        lengths = (len(key) + 1 for key in self._keys)
        self._starts = list(accumulate(lengths, initial=0))  # of each key in `_text`

    def best_matches(self, typed: str, limit: int) -> list[NamedNote]:
        """Return the notes that have a matching name, each once, with the name that matches best.

        Letter case, accents and punctuation do not matter. The order is: the name is equal, begins
        with the typed text, has words that begin with each typed word, contains the typed text, has
        words that differ from the typed ones by a few letters, has the typed letters in their
        order. Equal matches are in the order of length, then of paths. A text without letters or
        digits matches nothing.
        """
        key = words_key(typed)
        if not key:
            return []

        best: dict[str, NamedNote] = {}
        matched: set[int] = set()
        for ids in self._ids_by_rank(key, _words_of(typed)):
            for name_id in sorted(ids - matched):
                note = self._notes[name_id]
                best.setdefault(note.path, note)
                if len(best) >= limit:
                    return list(best.values())[:limit]
            matched |= ids
        return list(best.values())

    def _ids_by_rank(self, key: str, words: Sequence[str]) -> Iterator[set[int]]:
        """Yield the ids of the names that match in each way, the best way first.

        The order is that of `best_matches`. An id may come again in a later set. Each set is
        computed only when the caller asks for it.
        """
        beginning = _range_of(self._sorted_keys, key)
        ids = self._ids_by_key[beginning.start : beginning.stop]
        yield {name_id for name_id in ids if self._keys[name_id] == key}
        yield set(ids)
        yield self._with_all(words, similar=False)
        yield self._containing(key)
        yield self._with_all(words, similar=True)
        if len(key) >= _MIN_LENGTH:
            yield self._with_letters(key)

    def _with_all(self, words: Sequence[str], *, similar: bool) -> set[int]:
        """Return the ids of the names that have, for each typed word, a word beginning with it.

        With `similar`, the word of the name may also differ from the typed one by a few letters.
        Without typed words, returns all ids.
        """
        ids: set[int] | None = None
        for word in dict.fromkeys(words):
            words_of_names = self._words_beginning(word)
            if similar:
                words_of_names |= self._similar_words(word)
            with_word: set[int] = set()
            with_word.update(*(self._ids_by_word[other] for other in words_of_names))
            ids = with_word if ids is None else ids & with_word
            if not ids:
                return set()
        if ids is None:
            return set(range(len(self._notes)))
        return ids

    def _words_beginning(self, word: str) -> set[str]:
        """Return the words of all names that begin with a word."""
        beginning = _range_of(self._words, word)
        return set(self._words[beginning.start : beginning.stop])

    def _similar_words(self, word: str) -> set[str]:
        """Return the words of all names that differ from a word by a few letters, not the first."""
        max_edits = _max_edits(word)
        if max_edits == 0:
            return set()
        letters = set(word)
        similar: set[str] = set()
        for other in self._words_beginning(word[0]):
            if abs(len(other) - len(word)) > max_edits:
                continue
            # Each letter that only one of the words has takes an edit. This is cheap to count.
            other_letters = set(other)
            if len(letters - other_letters) > max_edits or len(other_letters - letters) > max_edits:
                continue
            if differs_by(word, other, max_edits):
                similar.add(other)
        return similar

    def _containing(self, key: str) -> set[int]:
        """Return the ids of the names whose key contains `key`."""
        ids: set[int] = set()
        position = self._text.find(key)
        while position >= 0:
            name_id = bisect_right(self._starts, position) - 1
            ids.add(name_id)
            next_start = self._starts[name_id + 1]
            position = self._text.find(key, next_start)
        return ids

    def _with_letters(self, key: str) -> set[int]:
        """Return the ids of the names that start like `key` and have all its letters in order."""
        same_letter = _range_of(self._sorted_keys, key[0])
        ids = self._ids_by_key[same_letter.start : same_letter.stop]
        return {name_id for name_id in ids if _has_letters(self._keys[name_id], key)}


def _sort_key(note: NamedNote) -> tuple[int, str]:
    """Return the sort key of a name among names that match equally well: its length, its path."""
    return len(note.name), note.path


def _range_of(texts: Sequence[str], beginning: str) -> range:
    """Return the positions of the texts that start with `beginning`. `texts` must be sorted."""
    start = bisect_left(texts, beginning)
    length = len(beginning)
    stop = bisect_right(texts, beginning, lo=start, key=lambda text: text[:length])
    return range(start, stop)


@lru_cache(_MAX_FOLDED_NAMES)
def _fold(name: str) -> _FoldedName:
    """Return a name as it is compared. Cached, so that a new index folds only changed names."""
    if name.isascii():
        words = split_words(name)
        key = key_of_words(words)
    else:
        words = _words_of(name)
        key = words_key(name)
    # Names share most of their words. Interning stores each word once.
    return _FoldedName(key, tuple(map(sys.intern, dict.fromkeys(words))))


def _words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents."""
    return split_words(without_accents(text))


def _max_edits(word: str) -> int:
    """Return how many edits a typed word may be away from a word of a name: 0, 1 or 2."""
    if len(word) < _MIN_LENGTH:
        return 0
    return 2 if len(word) >= _LONG_LENGTH else 1


def differs_by(word: str, other: str, max_edits: int) -> bool:
    """Return whether at most `max_edits` edits turn one word into the other.

    An edit inserts, removes or replaces a letter, or swaps it with the next.
    """
    start = 0
    for letter, other_letter in zip(word, other, strict=False):
        if letter != other_letter:
            break
        start += 1
    rest = word[start:]
    other_rest = other[start:]
    if rest == other_rest:
        return True
    if max_edits == 0 or abs(len(rest) - len(other_rest)) > max_edits:
        return False

    is_swapped = len(rest) > 1 and rest[1] + rest[0] == other_rest[:2]
    return (
        differs_by(rest[1:], other_rest[1:], max_edits - 1)
        or differs_by(rest[1:], other_rest, max_edits - 1)
        or differs_by(rest, other_rest[1:], max_edits - 1)
        or (is_swapped and differs_by(rest[2:], other_rest[2:], max_edits - 1))
    )


def _has_letters(name_key: str, key: str) -> bool:
    """Return whether a name has the letters of `key` in their order, others between them or not."""
    end = 0
    for letter in key:
        end = name_key.find(letter, end) + 1
        if end == 0:
            return False
    return True
