"""What a new statement does to those that are known, by rules. What no rule decides is added. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simplemem.kinds.atoms.reading import Reading


class Verdict(NamedTuple):
    """What becomes of a statement, to which of the known, and by which rule."""

    event: str
    relation: str | None = None
    place: int | None = None
    rule: str = "rule:new"


def reconcile(new: Reading, known: Sequence[Reading]) -> Verdict:
    """What a new statement does among those that hold."""
    for place, old in enumerate(known):
        if new.words == old.words:
            return Verdict("NOOP", None, place, "rule:same")
    return Verdict("ADD")
