"""The note names that a mistyped name may have meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from simplemem.note.names import compare_key

# A name is suggested if this share of its letters, or of the letters of some of its words, is as typed.
_MIN_SIMILARITY = 0.66

# A name that is this much less similar than the best one was hardly meant.
_MAX_DISTANCE = 0.15

# Part of a name that matches counts a little less than a whole name that matches equally well.
_PART = 0.97

# Fewer letters are similar to some word of almost any name.
_MIN_LETTERS_BY_PART = 4

# In a larger vault only whole names are compared: comparing parts would take seconds.
_MAX_NAMES_BY_PART = 20_000


def similar_names(typed: str, names: Iterable[str], limit: int = 5) -> list[str]:
    """Return the names that are most similar to `typed`, the best first, at most `limit`.

    A name is similar as a whole path, by its last part, or by as many neighbouring words as were typed: `flihgt 2`
    finds `flights/Flight 2 Dipper`. If none is similar, names that contain all typed words are returned.
    """
    key = compare_key(typed)
    last_part = key.rsplit("/", 1)[-1]
    all_names = list(names)
    by_part = len(last_part) >= _MIN_LETTERS_BY_PART and len(all_names) <= _MAX_NAMES_BY_PART

    path_matcher = _matcher(key)
    part_matcher = _matcher(last_part)
    word_count = len(last_part.split())
    ranked = []  # the negative similarity first, so that sorting puts the best name first
    for name in all_names:
        name_key = compare_key(name)
        name_part = name_key.rsplit("/", 1)[-1]
        similarity = max(_similarity(path_matcher, name_key), _similarity(part_matcher, name_part))
        if by_part:
            for words in _runs_of_words(name_part, word_count):
                similarity = max(similarity, _PART * _similarity(part_matcher, words))
        if similarity >= _MIN_SIMILARITY:
            ranked.append((-similarity, len(name), name))
    if ranked:
        ranked.sort()
        best = ranked[0][0]
        return [
            name for similarity, _, name in ranked[:limit] if similarity - best <= _MAX_DISTANCE
        ]
    return _names_with_words(last_part, all_names)[:limit]


def _matcher(text: str) -> SequenceMatcher[str]:
    """Return what compares other texts with `text`."""
    matcher = SequenceMatcher[str](autojunk=False)
    matcher.set_seq2(text)
    return matcher


def _similarity(matcher: SequenceMatcher[str], text: str) -> float:
    """Return how similar `text` is, from 0 to 1; 0 if the cheap bounds show that it is not similar enough."""
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < _MIN_SIMILARITY or matcher.quick_ratio() < _MIN_SIMILARITY:
        return 0.0
    return matcher.ratio()


def _runs_of_words(name: str, count: int) -> list[str]:
    """Return each run of `count` neighbouring words of a name that has more words than that."""
    words = name.split()
    if not 0 < count < len(words):
        return []
    return [" ".join(words[start : start + count]) for start in range(len(words) - count + 1)]


def _names_with_words(typed: str, names: Iterable[str]) -> list[str]:
    """Return the names whose last part contains every word of `typed`, the shortest first."""
    words = set(re.findall(r"\w+", typed))
    if not words:
        return []
    found = []
    for name in names:
        name_words = set(re.findall(r"\w+", compare_key(name).rsplit("/", 1)[-1]))
        if words <= name_words:
            found.append(name)
    return sorted(found, key=lambda name: (len(name), name))
