"""The type, the slot and the times with which a new statement is stored. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from simplemem.features.fact import Fact
from simplemem.features.facts.decay import is_lasting
from simplemem.features.facts.doubt import end_of_corrected_appointment
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.reading import read_statement


def as_stored(new: NewFact, at: datetime, in_doubt: Sequence[Fact] = ()) -> NewFact:
    """Return a statement with the type, the slot and the times of its note.

    Rules read in its text what it leaves empty, and it begins now. `in_doubt` are the facts that
    it puts in doubt.
    """
    by_rules = memory_type_of(new.text, at)
    memory_type = new.memory_type or by_rules.name
    if memory_type == "episode" and any(is_lasting(fact) for fact in in_doubt):
        memory_type = "fact"  # it must last as long as the facts that it disputes

    until = new.valid_to or end_of_corrected_appointment(new.text, in_doubt, at)
    # The day of an episode does not end what lasts.
    is_day_of_lasting = by_rules.name == "episode" and memory_type != "episode"
    if until is None and not is_day_of_lasting:
        until = by_rules.valid_to
    return new._replace(
        memory_type=memory_type,
        slot=new.slot or read_statement(new.text).slot,
        valid_from=new.valid_from or at,
        valid_to=until,
    )
