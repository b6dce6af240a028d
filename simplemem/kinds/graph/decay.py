"""Confidence that fades: a relation that nobody has confirmed for long is worth less than one of today. Pure.

It halves every thirty days and never falls below a tenth, as the graph memory servers promise (memento.md §4). It is
worked out when it is asked for; what stands in the notes does not change.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from simplemem.kinds.graph.values import Relation

HALF_LIFE: Final = timedelta(days=30)
FLOOR: Final = 0.1
FACTOR: Final = 0.5
"""What is left of a confidence after one half-life."""


def decayed(relation: Relation, said: datetime, now: datetime, factor: float = FACTOR) -> Relation:
    """A relation with the confidence it has at a moment, if it has one. What was said later than that is not older."""
    confidence = relation.attributes.get("confidence")
    if not isinstance(confidence, (int, float)) or isinstance(confidence, bool):
        return relation
    left = faded(float(confidence), max(now - said, timedelta(0)), factor)
    return replace(relation, attributes={**relation.attributes, "confidence": left})


def faded(confidence: float, age: timedelta, factor: float = FACTOR) -> float:
    """A confidence after some time; the floor lifts none that was below it."""
    return max(min(confidence, FLOOR), confidence * math.pow(factor, age / HALF_LIFE))
