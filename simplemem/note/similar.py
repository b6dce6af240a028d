"""Find the note names that are similar to a mistyped one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from simplemem.note.names import compare_key

# A name is suggested if this share of its letters, or of those of some of its words, is as typed.
_MIN_SIMILARITY: Final = 0.66

# A name that is this much less similar than the best one is left out.
_MAX_DISTANCE: Final = 0.15

# Some words of a name count a little less than a whole name that is equally similar.
_WEIGHT_OF_WORDS: Final = 0.97

# Fewer letters are similar to some word of almost any name.
_MIN_LETTERS_FOR_WORDS: Final = 4

# In a larger vault only whole names are compared: comparing their words would take seconds.
_MAX_NAMES_FOR_WORDS: Final = 20_000


def similar_names(typed: str, names: Iterable[str], limit: int = 5) -> list[str]:
    """Return the names that are most similar to `typed`, the best first, at most `limit`.

    A name is similar as a whole path, by its last part, or by as many neighbouring words as were
    typed: `flihgt 2` finds `flights/Flight 2 Dipper`. If none is similar, return the names that
    contain all typed words.
    """
    all_names = list(names)
    key = compare_key(typed)
    last_part = key.rsplit("/", 1)[-1]
    path_matcher = _build_matcher(key)
    part_matcher = _build_matcher(last_part)
    word_count = len(last_part.split())
    has_enough_letters = len(last_part) >= _MIN_LETTERS_FOR_WORDS
    compares_words = has_enough_letters and len(all_names) <= _MAX_NAMES_FOR_WORDS

    # The distances are negative similarities, so that the sort puts the best name first.
    distances = []
    for name in all_names:
        name_key = compare_key(name)
        name_part = name_key.rsplit("/", 1)[-1]
        similarity = max(
            _similarity(path_matcher, name_key),
            _similarity(part_matcher, name_part),
        )
        if compares_words:
            for words in _runs_of_words(name_part, word_count):
                similarity = max(similarity, _WEIGHT_OF_WORDS * _similarity(part_matcher, words))
        if similarity >= _MIN_SIMILARITY:
            distances.append((-similarity, len(name), name))

    if not distances:
        return _names_with_words(last_part, all_names)[:limit]
    distances.sort()
    best = distances[0][0]
    return [name for distance, _, name in distances[:limit] if distance - best <= _MAX_DISTANCE]


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
    """Return each run of `count` neighbouring words of a name that has more words than that."""
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
        last_part = compare_key(name).rsplit("/", 1)[-1]
        name_words = set(re.findall(r"\w+", last_part))
        if words <= name_words:
            matches.append(name)
    return sorted(matches, key=lambda name: (len(name), name))
