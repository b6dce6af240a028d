"""Everything that becomes of a new fact and of known ones, as the reconciler decides it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    unknown_ids: Sequence[str] = ()  # those of `new.replaces` for which nothing is replaced


class TurnOutcome(NamedTuple):
    """What a turn says of known facts, beside those that it states."""

    ended: Sequence[FactAt]  # those that hold no more
    disputed: Sequence[FactAt]  # those that have changed, without their new values


def superseded_by(
    facts: Iterable[Fact], new: NewFact, begins: datetime, at: datetime
) -> list[FactAt]:
    """Return facts with the ends that they get from a new one, which supersedes them at a time.

    A fact ends when the new one begins, at the latest when that one ends, and at the latest now,
    but not before it began itself.
    """
    end = min(begins, at)
    if new.valid_to is not None:
        end = min(end, new.valid_to)

    superseded = []
    for fact in facts:
        fact_begins = fact.valid_from or end
        superseded.append(FactAt(fact, max(end, fact_begins)))
    return superseded


def disputed_since(facts: Iterable[Fact], at: datetime) -> list[FactAt]:
    """Return facts with the times since when they are disputed that are put in doubt at a time.

    A fact that is disputed already keeps the time since when it is.
    """
    return [FactAt(fact, fact.disputed or at) for fact in facts]
