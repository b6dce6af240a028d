"""Find the note names that are similar to a mistyped one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from simplemem.note.names import compare_key

# A name is suggested if it, or a run of its words, is at least this similar to the typed name. The
# similarity is that of `difflib`: the share of the letters of both that match.
_MIN_SIMILARITY: Final = 0.66

# A name whose similarity is lower than the best one by more than this is left out.
_MAX_DISTANCE: Final = 0.15

# Some words of a name count a little less than a whole name that is equally similar.
_WEIGHT_OF_WORDS: Final = 0.97

# If fewer letters were typed, words are not compared: some word of almost any name is similar.
_MIN_LETTERS_FOR_WORDS: Final = 4

# If at most so many letters were typed, words must be more similar: "nope" is not meant as "note".
_FEW_LETTERS: Final = 5
_MIN_SIMILARITY_OF_SHORT_WORDS: Final = 0.8

# In a larger vault only whole names are compared: comparing their words would take seconds.
_MAX_NAMES_FOR_WORDS: Final = 20_000


def similar_names(typed: str, names: Iterable[str], limit: int = 5) -> list[str]:
    """Return the names that are most similar to `typed`, the best first, at most `limit`.

    A name is similar as a whole path, by its last part, or by as many neighbouring words as were
    typed: `flihgt 2` finds `flights/Flight 2 Dipper`. Case does not matter, and names much less
    similar than the best one are left out. If none is similar, returns the names that contain all
    typed words, which may be none.
    """
    all_names = list(names)
    typed_name = _TypedName(typed)
    compares_words = len(all_names) <= _MAX_NAMES_FOR_WORDS

    # Each with its distance, the negative similarity, so that the sort puts the best name first;
    # of equally similar names, the shortest.
    candidates: list[tuple[float, int, str]] = []
    for name in all_names:
        similarity = typed_name.similarity(name, compares_words=compares_words)
        if similarity >= _MIN_SIMILARITY:
            candidates.append((-similarity, len(name), name))

    if not candidates:
        return _names_with_words(typed_name.last_part, all_names)[:limit]

    candidates.sort()
    best, _, _ = candidates[0]
    return [name for distance, _, name in candidates[:limit] if distance - best <= _MAX_DISTANCE]


class _TypedName:
    """A typed name, prepared to be compared with many names: as a path, and by its last part."""

    def __init__(self, typed: str) -> None:
        key = compare_key(typed)
        self.last_part = _last_part(key)
        self._path_matcher = _build_matcher(key)
        self._part_matcher = _build_matcher(self.last_part)
        self._word_count = len(self.last_part.split())
        self._has_enough_letters = len(self.last_part) >= _MIN_LETTERS_FOR_WORDS

    def similarity(self, name: str, *, compares_words: bool) -> float:
        """Return how similar a name is, from 0 to 1: the best of its path and its last part.

        With `compares_words`, runs of its words count too, a little less. A similarity too low to
        be suggested may be returned as 0.
        """
        name_key = compare_key(name)
        name_part = _last_part(name_key)
        by_path = _similarity(self._path_matcher, name_key)
        by_part = _similarity(self._part_matcher, name_part)
        similarity = max(by_path, by_part)
        if not compares_words or not self._has_enough_letters:
            return similarity

        min_similarity = _MIN_SIMILARITY
        if len(self.last_part) <= _FEW_LETTERS:
            min_similarity = _MIN_SIMILARITY_OF_SHORT_WORDS
        for words in _runs_of_words(name_part, self._word_count):
            by_words = _similarity(self._part_matcher, words)
            if by_words >= min_similarity:
                similarity = max(similarity, _WEIGHT_OF_WORDS * by_words)
        return similarity


def _last_part(key: str) -> str:
    """Return what is behind the last slash of a path, or the path itself if it has none."""
    return key.rsplit("/", 1)[-1]


def _build_matcher(text: str) -> SequenceMatcher[str]:
    """Return a matcher that compares other texts with `text`."""
    matcher = SequenceMatcher[str](autojunk=False)
    matcher.set_seq2(text)
    return matcher


def _similarity(matcher: SequenceMatcher[str], text: str) -> float:
    """Return how similar `text` is to that of the matcher, from 0 to 1.

    The result is 0 if a bound that is cheap to compute shows that the texts are not similar enough.
    """
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < _MIN_SIMILARITY:
        return 0.0
    if matcher.quick_ratio() < _MIN_SIMILARITY:
        return 0.0
    return matcher.ratio()


def _runs_of_words(name: str, count: int) -> list[str]:
    """Return each run of `count` neighbouring words of a name, with a space between words.

    Returns none if the name has no more words than that, or for a `count` of 0.
    """
    words = name.split()
    if not 0 < count < len(words):
        return []

    runs = []
    for start in range(len(words) - count + 1):
        run = words[start : start + count]
        runs.append(" ".join(run))
    return runs


def _names_with_words(typed: str, names: Iterable[str]) -> list[str]:
    """Return the names whose last part contains every word of `typed`, the shortest first."""
    words = set(re.findall(r"\w+", typed))
    if not words:
        return []

    matches = []
    for name in names:
        last_part = _last_part(compare_key(name))
        name_words = set(re.findall(r"\w+", last_part))
        if words <= name_words:
            matches.append(name)
    return sorted(matches, key=lambda name: (len(name), name))
