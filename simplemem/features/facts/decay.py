"""What time does to a fact: its confidence now, whether it is current, when it is forgotten.

Computed from the fact, never written. Pure.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

from simplemem.features.fact import CURRENT_STATUSES, Fact

_HALF_LIVES: Final = {
    "preference": timedelta(days=180),
    "episode": timedelta(days=7),
    "derived": timedelta(days=90),
}
_EPISODE_DURATION: Final = timedelta(days=30)  # of an episode without an end
_MAX_YEAR: Final = 9000  # a fact that fades from a later year is never forgotten
_DISPUTED_SHARE: Final = 0.5  # of its confidence, with which a disputed fact is displayed
_MIN_CONFIDENCE: Final = 0.1  # a fact below is forgotten
_REINFORCEMENT: Final = 0.15  # added to the confidence of a preference that is stated again


def _fades_from(fact: Fact) -> datetime | None:
    """Return when a fact begins to fade, None if it never does.

    An episode fades from its end, or 30 days after its beginning. A preference fades from when it
    was stated last, and so does what was derived. A fact of the type "fact" never fades.
    """
    if fact.memory_type == "fact":
        return None
    if fact.memory_type != "episode":
        return fact.reinforced or fact.valid_from
    if fact.valid_to or not fact.valid_from:
        return fact.valid_to
    return fact.valid_from + _EPISODE_DURATION


def confidence_at(fact: Fact, at: datetime) -> float:
    """Return the confidence of a fact at a time.

    Once the fact begins to fade, its confidence halves in each half-life of its type: 180 days for
    a preference, 7 for an episode, 90 for what was derived. A fact of the type "fact" never fades.
    """
    start = _fades_from(fact)
    if start is None or at <= start:
        return fact.confidence
    half_lives = (at - start) / _HALF_LIVES[fact.memory_type]
    return float(fact.confidence * 0.5**half_lives)


def renewed_confidence(fact: Fact, at: datetime) -> float | None:
    """Return the confidence of a preference that is stated again at a time.

    Return None if that does not change it: no other fact, and none that is certain, is renewed.
    """
    confidence = confidence_at(fact, at)
    if fact.memory_type != "preference" or confidence >= 1:
        return None
    return round(min(1.0, confidence + _REINFORCEMENT), 4)


def displayed_confidence(fact: Fact, at: datetime) -> float:
    """Return the confidence of a fact as answers show it: half of it if the fact is disputed."""
    confidence = confidence_at(fact, at)
    if fact.is_disputed:
        return confidence * _DISPUTED_SHARE
    return confidence


def display_text(fact: Fact) -> str:
    """Return the statement of a fact, with a mark if a later one disputes it.

    An example is "I live in Rome (disputed since 2026-01-24)".
    """
    if not fact.is_disputed:
        return fact.statement
    if fact.disputed is None:
        return f"{fact.statement} (disputed)"
    return f"{fact.statement} (disputed since {fact.disputed:%Y-%m-%d})"


def is_past(end: datetime | None, at: datetime) -> bool:
    """Return whether what lasts until `end` is over at a time. None stands for no end."""
    return end is not None and at > end


def status_at(fact: Fact, at: datetime) -> str:
    """Return the status of a fact at a time, one of STATUSES.

    It is the one that its note states, but "ended" for a fact that lasted until an earlier time and
    that nothing replaced. An episode does not end: it fades.
    """
    has_end = fact.memory_type != "episode" and fact.status in CURRENT_STATUSES
    return "ended" if has_end and is_past(fact.valid_to, at) else fact.status


def is_current(fact: Fact, at: datetime) -> bool:
    """Return whether a fact is neither replaced nor forgotten nor ended nor faded at a time.

    The facts from which it was derived do not count here.
    """
    if status_at(fact, at) not in CURRENT_STATUSES:
        return False
    return confidence_at(fact, at) >= _MIN_CONFIDENCE


def is_lasting(fact: Fact) -> bool:
    """Return whether a fact is of a type that does not end by itself."""
    return fact.memory_type in ("fact", "preference")


def is_permanent(fact: Fact) -> bool:
    """Return whether a fact is current at any time, so that callers need not compare times.

    A fact that may end, fade or lose the facts from which it was derived is not permanent.
    """
    if fact.status not in CURRENT_STATUSES or fact.confidence < _MIN_CONFIDENCE:
        return False
    return fact.memory_type == "fact" and fact.valid_to is None and not fact.derived_from


def forgotten_at(fact: Fact) -> datetime | None:
    """Return when a fact is forgotten because its confidence has fallen below 0.1.

    Return None if it never fades.
    """
    start = _fades_from(fact)
    if start is None or start.year > _MAX_YEAR:
        return None
    share = max(fact.confidence, _MIN_CONFIDENCE) / _MIN_CONFIDENCE
    return start + math.log2(share) * _HALF_LIVES[fact.memory_type]
