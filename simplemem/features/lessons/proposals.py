"""Pairs of lessons that may contradict each other, each with the reason, for a reader to judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.near_pairs import Weights, find_near_pairs, neighbours_of
from simplemem.features.lessons.opposition import NearReadings, Reason, find_reason
from simplemem.features.lessons.statements import Reading

NO_REASON: Final = Reason("near", "they are about the same thing", "", "")
"""The reason of a near pair in which no rule finds an opposition."""


class Proposal(NamedTuple):
    """Two lessons about one thing, and why they may contradict each other."""

    one: Lesson  # the older one
    other: Lesson
    nearness: float  # from 0 to 1
    reason: Reason  # `NO_REASON` if no rule finds one

    @property
    def is_offered(self) -> bool:
        """Whether a rule found a reason, so that the pair is offered to a reader."""
        return self.reason is not NO_REASON

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the two lessons."""
        return frozenset((self.one.path, self.other.path))


def propose_pairs(readings: Sequence[Reading]) -> list[Proposal]:
    """Return the near pairs of lessons, those with a reason first, then by nearness."""
    weights = Weights(readings)
    proposals: list[Proposal] = []
    for pair in find_near_pairs(readings, weights):
        near = NearReadings(readings[pair.one], readings[pair.other], pair.nearness, weights)
        proposals.append(_make_proposal(near))
    return sorted(proposals, key=lambda proposal: not proposal.is_offered)


def propose_against(reading: Reading, others: Sequence[Reading]) -> list[Proposal]:
    """Return the pairs of a lesson with one of the others for which a rule finds a reason."""
    weights = Weights([reading, *others])
    proposals: list[Proposal] = []
    for position, nearness in neighbours_of(reading, others, weights):
        proposal = _make_proposal(NearReadings(reading, others[position], nearness, weights))
        if proposal.is_offered:
            proposals.append(proposal)
    return proposals


def _make_proposal(pair: NearReadings) -> Proposal:
    """Return the proposal for a near pair, the older lesson first."""
    if _age_key(pair.other) < _age_key(pair.one):
        pair = pair._replace(one=pair.other, other=pair.one)
    reason = find_reason(pair) or NO_REASON
    return Proposal(pair.one.lesson, pair.other.lesson, round(pair.nearness, 3), reason)


def _age_key(reading: Reading) -> tuple[str, str]:
    """Return a sort key by which older lessons come first."""
    return reading.lesson.created, reading.lesson.path
