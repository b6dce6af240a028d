"""Which block is meant: by a session, by an agent's word, by the room that is left; and a block as it is left. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from operator import attrgetter
from typing import Final

from simplemem.errors import Ambiguous, NotFound
from simplemem.kinds.talk.block import Block, with_status
from simplemem.kinds.talk.cues import keywords_of
from simplemem.note.names import base_name
from simplemem.note.passages import sentence_spans
from simplemem.note.properties import set_property

_MOST_TURNS, _MOST_BYTES = 300, 500_000  # of a block; then a successor goes on
_BY_LAST: Final = attrgetter("last", "id")
_ODD: Final = re.compile(r"[`#|<>\[\]]|.{301}", re.DOTALL)  # no sentence to quote in a summary


def current_of(every: Sequence[Block], session: str, at: datetime) -> Block | None:
    """The block a session is in: the active one; for what is told late, the one that was spoken in last before."""
    mine = [each for each in every if each.session == session and not each.problem]
    newest = max((each for each in mine if each.status == "active"), key=_BY_LAST, default=None)
    if newest is None or at >= newest.last:
        return newest
    before = [(turn.at, each) for each in mine if each.status != "closed" for turn in each.turns if turn.at <= at]
    return max(before, key=lambda each: each[0], default=(at, newest))[1]


def within(every: Sequence[Block], session: str) -> list[Block]:
    """The blocks a session may go on in: all that can be changed, but for the active ones of others."""
    return [each for each in every if not each.problem and (each.session == session or each.status != "active")]


def named(every: Sequence[Block], topic: str, session: str) -> Block | None:
    """The block that an agent means: by its id, else the newest live one of that label; None for a new one."""
    if topic.startswith("block_"):
        return found(every, topic)
    live = (each for each in within(every, session) if each.status != "closed")
    return max((each for each in live if each.label.casefold() == topic.casefold()), key=_BY_LAST, default=None)


def found(every: Sequence[Block], ref: str) -> Block:
    """The block of this id, label or note name. NotFound names near ids, Ambiguous all there are."""
    wanted = ref.strip().removeprefix("[[").removesuffix("]]")

    def is_called(block: Block) -> bool:
        return wanted.casefold() in map(str.casefold, (block.label, base_name(block.path), block.path[:-3]))

    alike = [each for each in every if each.id == wanted] or [*filter(is_called, every)]
    if len(alike) > 1:
        names = [f"{each.id} ({each.path[:-3]})" for each in alike]
        raise Ambiguous(f"{wanted[:80]} may be any of {len(alike)} topics", candidates=names)
    if not alike:
        near = get_close_matches(wanted[:80], [each.id for each in every], 3, 0.5)
        hint = f"Near: {', '.join(near)}." if near else "list_active_topics lists them."
        raise NotFound(f"there is no topic {wanted[:80]}", hint=hint, candidates=near)
    return alike[0]


def scenario_of(every: Sequence[Block], current: Block | None, target: Block | None) -> str:
    if not every:
        return "new_topic_first"
    if target is None:
        return "topic_shift"
    return "topic_continuation" if current is not None and target.id == current.id else "topic_resumption"


def is_full(block: Block) -> bool:
    return len(block.turns) >= _MOST_TURNS or len(block.text.encode()) >= _MOST_BYTES


def with_room(every: Sequence[Block], target: Block | None) -> Block | None:
    """The block itself, or where it goes on when it is full; None when that has to be made."""
    if target is None or not is_full(target):
        return target
    later = (e for e in every if e.label == target.label and e.created >= target.created and not is_full(e))
    return max(later, key=lambda each: (each.created, each.id), default=None)


def closed_off(text: str, block: Block, status: str = "") -> str:
    """The note of a block that is left, with a summary in words that were said. A person's own description stays."""
    text = with_status(text, status or ("closed" if is_full(block) else "paused"))
    is_ours = not block.summary or (block.summary.startswith("“") and block.summary.endswith("”"))
    said = summary_of(block) if is_ours else ""
    return set_property(text, "description", said) if said else text


def summary_of(block: Block) -> str:
    """The two most central sentences that the person said, quoted, in their order."""
    said = (turn.message[start:stop] for turn in block.turns for start, stop in sentence_spans(turn.message))
    every = list(dict.fromkeys(" ".join(each.split()) for each in said if not _ODD.search(each)))
    central = set(keywords_of([turn.message for turn in block.turns]))
    best = sorted(every, key=lambda each: -len(central & set(re.findall(r"\w+", each.lower()))))[:2]
    return f"“{' … '.join(each for each in every if each in best)}”" if best else ""
