"""Gardening, when asked for: what has been paused for long is closed, and a model, if there is one, reads the facts of
closed blocks. One step with one undo; nothing is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Unpack

from simplemem.errors import SimplememError
from simplemem.kinds.kind import ChangeSet
from simplemem.kinds.talk.asking import chat_of, facts_in
from simplemem.kinds.talk.block import Block, Turn
from simplemem.kinds.talk.choosing import closed_off
from simplemem.kinds.talk.conversation import Conversation
from simplemem.kinds.talk.facts import FactOut
from simplemem.kinds.talk.statements import Statement
from simplemem.memory import By
from simplemem.note.properties import set_property

_READ = "facts_read"  # the property that names the last turn a model has read


@dataclass
class Gardened:
    """What was closed and read, or would be."""

    closed: list[Block]
    method: str
    facts: list[FactOut] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As clients know it."""
        data = {"closed": [each.id for each in self.closed], "facts": self.facts, "method": self.method}
        return data | ({"warnings": self.warnings} if self.warnings else {})


def garden(
    talk: Conversation, ref: str = "all", *, after_days: int = 60, dry_run: bool = False, **by: Unpack[By]
) -> Gardened:
    """Close what has been paused for so long, or one block whatever it is."""
    wanted, moment = "" if ref == "all" else talk.find(ref).id, datetime.now(UTC)
    every = [each for each in talk.items(Block) if not each.problem]

    def is_ripe(block: Block) -> bool:
        is_old = block.status == "paused" and moment - block.last >= timedelta(days=after_days)
        return block.id == wanted and block.status != "closed" if wanted else is_old

    chat = chat_of(talk.store)
    done = Gardened([each for each in every if is_ripe(each)], f"llm:{talk.settings.llm.model}" if chat else "rules")
    if dry_run:
        return done
    read: dict[str, Sequence[tuple[Turn, Statement]]] = {}
    closed = (each for each in every if each in done.closed or each.status == "closed")
    for block in closed if chat else ():
        marks = [turn.mark for turn in block.turns]
        unread = block.turns[marks.index(block.facts_read) + 1 if block.facts_read in marks else 0 :]
        try:
            if unread and not block.private:
                read[block.id] = facts_in(talk.store, unread)
        except SimplememError as error:
            done.warnings.append(error.message)
            break

    def draft(step: ChangeSet) -> None:
        done.facts.clear()
        now = {each.id: each for each in talk.held(Block)}
        done.closed = [now[each.id] for each in done.closed if each.id in now]
        for block in done.closed:
            step.put(block.path, closed_off(step.text(block.path), block, "closed"))
        for id_, found in read.items():
            if (at := now.get(id_)) is not None and at.turns:
                step.put(at.path, set_property(step.text(at.path), _READ, at.turns[-1].mark))
                for turn, said in found:
                    link = talk.link_to(at.path, turn)
                    done.facts.append(talk.keep(step, said, turn.at, link, id_))

    if done.closed or read:
        _, carried = talk.shelf.change(draft, By(reason="closed what was paused for long") | by)
        done.warnings += carried.warnings
    return done
