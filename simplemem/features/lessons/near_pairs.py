"""Near pairs: lessons that are about one thing, by the words that they share. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from simplemem.features.lessons.statements import Reading, Stems

MIN_NEARNESS: Final = 0.15
"""Pairs that are less near are about two things."""

# A word that more lessons have says too little about them to make two of them candidates.
_MAX_LESSONS_OF_LINK: Final = 50
_MIN_STEMS: Final = 4  # a lesson with fewer says too little to be compared
_MAX_NEIGHBOURS: Final = 8  # per lesson


class NearPair(NamedTuple):
    """The positions of two lessons that are about one thing, the smaller one first."""

    one: int
    other: int
    nearness: float  # from 0 to 1, as `Weights.share_of` returns it


class Weights:
    """Guards the weight of each stem in some lessons: the fewer lessons have it, the greater.

    `counts` says how many of the lessons have a stem. A stem of none of them weighs 0.
    """

    def __init__(self, readings: Sequence[Reading]) -> None:
        """Weigh the stems of these lessons."""
        self.counts: Counter[str] = Counter()
        for reading in readings:
            self.counts.update(reading.stems)

        total = max(1, len(readings))
        self._min_distinctive = math.log(1 + total) / 2
        self._weights: dict[str, float] = {}
        for stem, count in self.counts.items():
            self._weights[stem] = math.log(1 + total / count)

    def sum_of(self, stems: Iterable[str]) -> float:
        """Return the sum of the weights of some stems."""
        return sum(self._weights.get(stem, 0.0) for stem in stems)

    def distinctive(self, stems: Iterable[str]) -> set[str]:
        """Return those of some stems that few lessons have, so that they identify a subject.

        Their weight is at least half of the greatest that is possible.
        """
        distinctive: set[str] = set()
        for stem in stems:
            weight = self._weights.get(stem, 0.0)
            if weight >= self._min_distinctive:
                distinctive.add(stem)
        return distinctive

    def nearness(self, one: Stems, other: Stems) -> float:
        """Return how near two sets of stems are, from 0 to 1, as `share_of` defines it."""
        shared = one & other
        one_weight = self.sum_of(one)
        other_weight = self.sum_of(other)
        return self.share_of(shared, one_weight, other_weight)

    def share_of(self, shared: Iterable[str], one_weight: float, other_weight: float) -> float:
        """Return the weight of the shared stems of two sets, as a share of the lighter set.

        The other two arguments are the weights of the sets. The share is 0 if one weighs nothing.
        """
        lighter_weight = min(one_weight, other_weight)
        if not lighter_weight:
            return 0.0
        return self.sum_of(shared) / lighter_weight


def find_near_pairs(readings: Sequence[Reading], weights: Weights) -> list[NearPair]:
    """Return the pairs that are near, the nearest first, up to eight per lesson.

    `weights` are those of these lessons. A lesson of fewer than four stems is in no pair.
    """
    # A lesson is in many pairs, so its weight is computed once.
    lesson_weights = [weights.sum_of(reading.stems) for reading in readings]

    pairs: list[NearPair] = []
    for one, other in _candidate_pairs(readings, weights):
        shared = readings[one].stems & readings[other].stems
        nearness = weights.share_of(shared, lesson_weights[one], lesson_weights[other])
        if nearness >= MIN_NEARNESS:
            pairs.append(NearPair(one, other, nearness))

    pairs.sort(key=_nearest_first)
    return _limit_per_lesson(pairs)


def _nearest_first(pair: NearPair) -> tuple[float, int, int]:
    """Return a sort key: the nearest pairs come first, otherwise in the order of the lessons."""
    return -pair.nearness, pair.one, pair.other


def _limit_per_lesson(pairs: Iterable[NearPair]) -> list[NearPair]:
    """Return the pairs without those of a lesson that is in eight earlier ones already."""
    neighbour_counts: Counter[int] = Counter()
    limited: list[NearPair] = []
    for pair in pairs:
        one_count = neighbour_counts[pair.one]
        other_count = neighbour_counts[pair.other]
        if max(one_count, other_count) < _MAX_NEIGHBOURS:
            neighbour_counts.update((pair.one, pair.other))
            limited.append(pair)
    return limited


def neighbours_of(
    reading: Reading, others: Sequence[Reading], weights: Weights
) -> list[tuple[int, float]]:
    """Return the positions in `others` of the lessons that are near to one, and their nearness.

    The nearest come first, up to eight. `weights` are those of all these lessons. A lesson of fewer
    than four stems is near to none.
    """
    if len(reading.stems) < _MIN_STEMS:
        return []

    weight = weights.sum_of(reading.stems)
    neighbours: list[tuple[int, float]] = []
    for position, other in enumerate(others):
        if len(other.stems) < _MIN_STEMS:
            continue
        shared = reading.stems & other.stems
        other_weight = weights.sum_of(other.stems)
        nearness = weights.share_of(shared, weight, other_weight)
        if nearness >= MIN_NEARNESS:
            neighbours.append((position, nearness))

    neighbours.sort(key=lambda neighbour: -neighbour[1])
    return neighbours[:_MAX_NEIGHBOURS]


def _candidate_pairs(readings: Sequence[Reading], weights: Weights) -> list[tuple[int, int]]:
    """Return the positions of two lessons that share a stem, sorted, each pair once.

    Stems that more than 50 lessons have do not count. A lesson of fewer than four stems is in no
    pair.
    """
    positions_by_stem: dict[str, list[int]] = defaultdict(list)
    for position, reading in enumerate(readings):
        if len(reading.stems) < _MIN_STEMS:
            continue
        for stem in reading.stems:
            if weights.counts[stem] <= _MAX_LESSONS_OF_LINK:
                positions_by_stem[stem].append(position)

    candidates: set[tuple[int, int]] = set()
    for positions in positions_by_stem.values():
        candidates.update(combinations(positions, 2))
    return sorted(candidates)
