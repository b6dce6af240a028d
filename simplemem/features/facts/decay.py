"""What time does to a statement: how sure it is now, whether it holds, when it is forgotten. Computed, never written."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

from simplemem.features.fact import CURRENT_STATUSES, Fact

_HALF_LIVES: Final = {
    kind: timedelta(days) for kind, days in (("preference", 180), ("episode", 7), ("derived", 90))
}
_LASTS: Final = timedelta(days=30)  # an episode that tells no end
_LAST_YEAR: Final = 9000  # what begins to fade later never does
_DISPUTED: Final = 0.5  # share of its confidence that a disputed statement is shown with
_FLOOR: Final = 0.1  # of confidence, below which a statement is forgotten


def _fades_from(atom: Fact) -> datetime | None:
    """Since when a statement fades; a fact does not."""
    if atom.memory_type == "episode":
        return atom.valid_to or (atom.valid_from and atom.valid_from + _LASTS)
    return None if atom.memory_type == "fact" else atom.reinforced or atom.valid_from


def confidence_at(atom: Fact, at: datetime) -> float:
    """How sure a statement is at a moment."""
    if (since := _fades_from(atom)) is None or at <= since:
        return atom.confidence
    return float(atom.confidence * 0.5 ** ((at - since) / _HALF_LIVES[atom.memory_type]))


def displayed_confidence(atom: Fact, at: datetime) -> float:
    """Return how sure a statement is at a moment, as answers show it: a disputed one is half as sure."""
    return confidence_at(atom, at) * (_DISPUTED if atom.is_disputed else 1.0)


def display_text(atom: Fact) -> str:
    """Return a statement as lists of texts show it, with a mark where a later one puts it in doubt."""
    if not atom.is_disputed:
        return atom.statement
    since = f" since {atom.disputed:%Y-%m-%d}" if atom.disputed else ""
    return f"{atom.statement} (disputed{since})"


def is_current(atom: Fact, at: datetime) -> bool:
    """Whether a statement is latest, not past and not forgotten."""
    is_past = atom.memory_type != "episode" and atom.valid_to is not None and at > atom.valid_to
    return atom.status in CURRENT_STATUSES and not is_past and confidence_at(atom, at) >= _FLOOR


def is_permanent(atom: Fact) -> bool:
    """Whether a statement holds at any time."""
    is_sure = atom.status in CURRENT_STATUSES and atom.confidence >= _FLOOR
    return (
        is_sure and atom.memory_type == "fact" and atom.valid_to is None and not atom.derived_from
    )


def forgotten_at(atom: Fact) -> datetime | None:
    """When a statement fades below the floor; None where it never does."""
    if (since := _fades_from(atom)) is None or since.year > _LAST_YEAR:
        return None
    return since + math.log2(max(atom.confidence, _FLOOR) / _FLOOR) * _HALF_LIVES[atom.memory_type]
