"""Gardening, when asked for: what has been paused for long is closed, and a model, if there is one, reads the facts of
closed blocks. It never sees a secret or a private note, and must quote. One step with one undo; nothing is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import accumulate
from typing import Final, Unpack

from simplemem.errors import SimplememError
from simplemem.kinds.answers import Closed
from simplemem.kinds.kind import ChangeSet
from simplemem.kinds.talk.block import Block, Turn, closed_off
from simplemem.kinds.talk.conversation import MOST_SENT, QUESTIONS, Conversation
from simplemem.kinds.talk.facts import Statement, stated_by
from simplemem.memory import By
from simplemem.note.clock import now
from simplemem.services.chat import Chat

_FACT: Final = ("turn_id", "key", "value", "evidence")
_Read = tuple[str, str, list[tuple[Turn, Statement]]]  # a block's path, the turn it is read up to, what that gave


def garden(
    talk: Conversation, ref: str = "all", *, after_days: int = 60, dry_run: bool = False, **by: Unpack[By]
) -> Closed:
    """What was closed and read, or would be: what has been paused for so long, or one block whatever it is."""
    every = talk.items(Block) if ref == "all" else [talk.find(ref)]
    chat, before, read = talk.chat, now() - timedelta(days=after_days), list[_Read]()

    def is_ripe(block: Block) -> bool:
        is_old = block.status == "paused" and block.last <= before and not block.problem
        return is_old if ref == "all" else block.status != "closed"

    def draft(step: ChangeSet) -> None:
        there = {each.path: each for each in talk.held(Block)}
        left = [there[each.path] for each in ripe if each.path in there]
        done["closed"], done["facts"] = [each.id for each in left], []
        for block in left:
            step.put(block.path, closed_off(step.text(block.path), block, "closed"))
        for path, mark, facts in read:
            if path in there:
                step.set(path, facts_read=mark)
                done["facts"] += [talk.keep(step, said, turn, path, there[path].id) for turn, said in facts]

    ripe, method = [each for each in every if is_ripe(each)], chat.method if chat else "rules"
    done = Closed(closed=[each.id for each in ripe], facts=[], method=method, warnings=[])
    if chat and not dry_run:
        closed = [each for each in every if each in ripe or (each.status == "closed" and not each.problem)]
        private = talk.bench.private(each.path for each in closed)
        try:
            for block in closed:
                read.extend(_read(chat, block) if block.path not in private else ())
        except SimplememError as error:
            done["warnings"].append(error.message)
    if (ripe or read) and not dry_run:
        _, carried = talk.shelf.change(draft, By(reason="closed what was paused for long") | by)
        done["warnings"] += carried.warnings
    return done


def _read(chat: Chat, block: Block) -> Iterator[_Read]:
    """What a model reads in the turns of a block that none has read, as far as it quotes them literally, in portions of
    what one question may hold. Unavailable when it cannot be asked."""
    turns = [turn for turn in block.turns if turn.mark > block.facts_read]
    while turns:
        number = max(1, sum(size <= MOST_SENT for size in accumulate(len(turn.message) for turn in turns)))
        by_id = {turn.id: turn for turn in turns[:number]}
        said = [{"turn_id": turn.id, "message": turn.message[:MOST_SENT]} for turn in by_id.values()]
        answer, found = chat.ask(QUESTIONS["facts"], {"turns": said})["facts"], list[tuple[Turn, Statement]]()
        for row in answer if isinstance(answer, list) else ():
            told = row if isinstance(row, dict) else {}
            id_, name, value, evidence = (str(told.get(each) or "").strip() for each in _FACT)
            turn, stated = by_id.get(id_), stated_by(chat.method, name, value, evidence, 0.7)
            if turn and stated.key and value and evidence in turn.message and value in evidence and "\n" not in value:
                found.append((turn, stated))
        yield block.path, turns[number - 1].mark, found
        turns = turns[number:]
