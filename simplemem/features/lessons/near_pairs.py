"""Near pairs: lessons that are about one thing, by the words that they share. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from simplemem.features.lessons.statements import Reading, Stems

MIN_NEARNESS: Final = 0.15
"""Pairs that are less near are about two things."""

_MAX_LINKING: Final = 50  # lessons with a word; a more common one says too little to link two
_MIN_STEMS: Final = 4  # of a lesson that says enough to be compared
_MAX_NEIGHBOURS: Final = 8  # of one lesson


class NearPair(NamedTuple):
    """Two lessons that are about one thing."""

    one: int  # its position
    other: int  # its position, the greater one
    nearness: float  # from 0 to 1: the share of the shorter one's weight that both share


class Weights:
    """Guards how much each word says about what a lesson is about: more if it is rare."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        """Count in how many of the lessons each word is."""
        counts = Counter(stem for reading in readings for stem in reading.stems)
        total = max(1, len(readings))
        self.counts = counts
        self._min_distinctive = math.log(1 + total) / 2
        self._weights = {word: math.log(1 + total / count) for word, count in counts.items()}

    def sum_of(self, stems: Iterable[str]) -> float:
        """Return the sum of the weights of some words."""
        weights = self._weights
        return sum([weights[word] for word in stems if word in weights])

    def distinctive(self, stems: Iterable[str]) -> set[str]:
        """Return those of some words that few lessons have: they tell what one is about."""
        return {word for word in stems if self._weights.get(word, 0.0) >= self._min_distinctive}

    def nearness(self, one: Stems, other: Stems) -> float:
        """Return which share of the weight of the lighter one both have, from 0 to 1."""
        return self.share_of(one & other, self.sum_of(one), self.sum_of(other))

    def share_of(self, shared: Iterable[str], one_weight: float, other_weight: float) -> float:
        """Return which share of the lighter one of two weights some words have, from 0 to 1."""
        lighter = min(one_weight, other_weight)
        return self.sum_of(shared) / lighter if lighter else 0.0


def find_near_pairs(readings: Sequence[Reading], weights: Weights) -> list[NearPair]:
    """Return the pairs that are near, the nearest first, up to eight per lesson.

    Lessons of fewer than four words are near to none.
    """
    # Each lesson is in many pairs, so its weight is computed once.
    whole = [weights.sum_of(reading.stems) for reading in readings]
    pairs: list[NearPair] = []
    for one, other in _linked_pairs(readings, weights):
        shared = readings[one].stems & readings[other].stems
        nearness = weights.share_of(shared, whole[one], whole[other])
        if nearness >= MIN_NEARNESS:
            pairs.append(NearPair(one, other, nearness))

    pairs.sort(key=lambda pair: (-pair.nearness, pair.one, pair.other))
    counts: Counter[int] = Counter()
    nearest: list[NearPair] = []
    for pair in pairs:
        if max(counts[pair.one], counts[pair.other]) < _MAX_NEIGHBOURS:
            counts.update((pair.one, pair.other))
            nearest.append(pair)
    return nearest


def neighbours_of(
    reading: Reading, others: Sequence[Reading], weights: Weights
) -> list[tuple[int, float]]:
    """Return the positions of the lessons that are near to one, with their nearness.

    The nearest come first, up to eight. `weights` are those of all these lessons.
    """
    if len(reading.stems) < _MIN_STEMS:
        return []
    weight = weights.sum_of(reading.stems)
    neighbours: list[tuple[int, float]] = []
    for position, other in enumerate(others):
        if len(other.stems) < _MIN_STEMS:
            continue
        shared = reading.stems & other.stems
        nearness = weights.share_of(shared, weight, weights.sum_of(other.stems))
        if nearness >= MIN_NEARNESS:
            neighbours.append((position, nearness))
    neighbours.sort(key=lambda neighbour: -neighbour[1])
    return neighbours[:_MAX_NEIGHBOURS]


def _linked_pairs(readings: Sequence[Reading], weights: Weights) -> Iterator[tuple[int, int]]:
    """Yield each pair of positions of lessons that share a word, unless it is a common one.

    Lessons of fewer than four words are in no pair.
    """
    positions: dict[str, list[int]] = defaultdict(list)
    for position, reading in enumerate(readings):
        if len(reading.stems) < _MIN_STEMS:
            continue
        for word in reading.stems:
            if weights.counts[word] <= _MAX_LINKING:
                positions[word].append(position)

    linked: set[tuple[int, int]] = set()
    for with_word in positions.values():
        linked.update(combinations(with_word, 2))
    yield from sorted(linked)
