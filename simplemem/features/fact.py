"""A fact as conversations and the facts feature share it, whatever its note looks like. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

from simplemem.note.words import STOP_WORDS, words_in_order

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)  # since when a fact holds whose note does not say
MEMORY_TYPES: Final = ("fact", "preference", "episode", "derived")
STATUSES: Final = ("active", "disputed", "superseded", "ended", "forgotten")
CURRENT_STATUSES: Final = ("active", "disputed")
"""The statuses of what answers contain. A later statement puts a disputed fact in doubt."""


class Slot(NamedTuple):
    """What a fact states in three parts: "my sister", "lives in", "Rome"."""

    subject: str = ""  # "" for the user
    relation: str = ""
    object: str = ""  # the value


@dataclass(frozen=True, eq=False)
class Fact:
    """A fact as its note states it, or as the note of a new fact will state it.

    `updates`, `extends`, `superseded_by`, `disputed_by`, `derived_from` and `source` are links: the
    text between the brackets. Those of a new fact may also have the brackets.
    """

    path: str
    sha256: str  # "" for a fact whose note is not written yet
    id: str
    statement: str  # "" if a conversation's note quotes no sentence
    scope: str
    memory_type: str = "fact"  # one of MEMORY_TYPES
    slot: Slot | None = None
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    reinforced: datetime | None = None  # when a preference was stated again
    status: str = "active"  # one of STATUSES, as the note states it; `decay.status_at` has it now
    superseded_by: str = ""
    disputed: datetime | None = None  # when a later statement said that it changed, but not to what
    disputed_by: str = ""  # a link; for a conversation's fact, the block id of a turn
    updates: str = ""
    extends: str = ""
    derived_from: tuple[str, ...] = ()
    source: str = ""  # the document from which it was extracted
    decided_by: str = ""  # the rule or the model that stored it; "" if a person wrote it
    created: str = ""
    problem: str = ""  # why simplemem must not change its note; "" if it may
    stated: datetime | None = None  # when it was stated; None: at `valid_from`
    is_own: bool = True  # whether its note is of the type of the facts feature
    block_id: str = ""  # of the topic in which a conversation's fact was stated last
    text: str = ""  # of a conversation's note

    @property
    def is_disputed(self) -> bool:
        """Whether a later statement puts the fact in doubt."""
        return self.status == "disputed"

    @property
    def key(self) -> str:
        """The relation in snake case, by which conversations name a fact; "" without a slot."""
        if self.slot is None:
            return ""
        return self.slot.relation.replace(" ", "_")

    @property
    def value(self) -> str:
        """The value of the fact's slot, "" if it has none."""
        if self.slot is None:
            return ""
        return self.slot.object

    @cached_property
    def names(self) -> list[str]:
        """The normalized names of the fact's subject and value, in this order.

        Empty names are left out, such as that of the user. The list is empty without a slot.
        """
        if self.slot is None:
            return []
        names = [normalize_name(self.slot.subject), normalize_name(self.slot.object)]
        return [name for name in names if name]


def normalize_name(text: str) -> str:
    """Return a text in the form in which names are compared: its words, in lower case.

    It is "" if all its words are stop words.
    """
    words = words_in_order(text)
    if STOP_WORDS.issuperset(words):
        return ""
    return " ".join(words)
