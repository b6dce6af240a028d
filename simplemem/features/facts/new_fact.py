"""A new fact as both forms of notes give it to the reconciler, and what was read with it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from simplemem.features.fact import Fact, Slot
from simplemem.features.facts.decay import is_past


class Ruling(NamedTuple):
    """What a model says that a new fact does to a current one."""

    target: Fact
    relation: str  # UPDATES, EXTENDS or DERIVES
    derived: str  # for DERIVES: what follows from the two facts; "" if it is not usable
    method: str  # the name of the model, as events show it


class AgentReading(NamedTuple):
    """What an agent that read a text says of it as a whole: whom it is about, what it outdates."""

    subjects: frozenset[str]  # of the facts that it read; "" is the user
    names_replaced: bool  # it says by their ids which earlier facts are outdated


class NewFact(NamedTuple):
    """A fact to store, as a statement or under a key.

    Rules read in the text of a statement the type, the slot and the end if they are empty.
    """

    text: str
    memory_type: str = ""
    slot: Slot | None = None
    valid_from: datetime | None = None  # None: from when it is stored
    valid_to: datetime | None = None
    quote: str = ""  # the words from which it was extracted, if they differ
    confidence: float = 1.0
    decided_by: str = ""  # the model that extracted it; "": the rule that stores it
    replaces: tuple[str, ...] = ()  # ids of the current facts that the caller says are outdated
    rulings: tuple[Ruling, ...] | None = None  # of a model that saw the current facts, if one did
    agent_reading: AgentReading | None = None  # of the text that it is from, if an agent read that
    key: str = ""  # under which a conversation finds it again; "" for a statement
    is_secret: bool = False  # whether the value of its key is a credential

    @property
    def value(self) -> str:
        """The value of its slot, "" without a slot."""
        return "" if self.slot is None else self.slot.object

    def is_over(self, at: datetime) -> bool:
        """Return whether it held before a time only."""
        return is_past(self.valid_to, at)
