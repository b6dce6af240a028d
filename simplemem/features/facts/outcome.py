"""Everything that becomes of a new fact and of known ones, as the reconciler decides it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from simplemem.features.fact import Fact
from simplemem.features.facts.comparing import SimilarFact
from simplemem.features.facts.new_fact import NewFact, Ruling


class FactAt(NamedTuple):
    """A known fact, and the time at which it ends or since which it is disputed."""

    fact: Fact
    at: datetime


class Outcome(NamedTuple):
    """Everything that becomes of a new fact, and of known facts because of it."""

    new: NewFact  # with the key, the type and the times with which it is stored
    at: datetime  # its place in the history of its key; of a statement, when it was made
    event: str  # "ADD", "UPDATE", "NOOP" if a known fact states it already, or "DELETE"
    rule: str  # the name of the rule, the agent or the model that decided
    relation: str | None = None  # of an update: "UPDATES" if it replaces the target, or "EXTENDS"
    # The fact that is replaced, extended or stated again; of a key, the one with its history.
    target: Fact | None = None
    # The fact that states a new statement already, which gets no note then; None if none does.
    restated: Fact | None = None
    takes_times: bool = False  # whether the restated fact gets the times of `new`
    is_in_force: bool = True  # False for a value that only goes into the history of its key
    superseded: Sequence[FactAt] = ()  # all facts that it replaces, the target first
    ended: Sequence[FactAt] = ()  # facts that hold no more, although nothing replaced them
    disputed: Sequence[FactAt] = ()
    candidates: Sequence[SimilarFact] = ()  # facts that it may replace, which the user decides
    derived: Sequence[Ruling] = ()  # what a model derives from it and known facts
    forgotten: Sequence[Fact] = ()
    not_forgotten: Sequence[str] = ()  # why facts stay that it asks to forget, one reason for each
    unknown_ids: Sequence[str] = ()  # those of `new.replaces` that no fact has which holds


class TurnOutcome(NamedTuple):
    """What a turn says of known facts, beside those that it states."""

    ended: Sequence[FactAt]  # those that hold no more
    disputed: Sequence[FactAt]  # those that have changed, without their new values
