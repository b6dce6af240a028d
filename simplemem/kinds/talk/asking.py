"""What a language model is asked, if a person set one: where a turn belongs when the numbers are close, and which facts a
closed block holds. It never sees a secret or a private note; whatever it gets wrong, the rules' answer stands."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simplemem.errors import SimplememError
from simplemem.kinds.talk.block import Block, Turn
from simplemem.kinds.talk.statements import Statement, category_of, key_of
from simplemem.services.chat import Chat, questions_in

if TYPE_CHECKING:
    from simplemem.kinds.kind import Keeper

_MOST_SENT: Final = 20_000  # characters of turns in one question
_QUESTIONS: Final = questions_in(Path(__file__).with_name("questions.toml"))
_FACT: Final = ("key", "value", "evidence", "turn_id")


def asked_where(keeper: Keeper, message: str, nearest: Sequence[Block]) -> tuple[str, str] | None:
    """By which model, and the id of the block a message belongs to, "" for a new one; None if it is no help."""
    private = keeper.bench.private(each.path for each in nearest)
    shown = {each.id: each for each in nearest if each.path not in private}
    if not shown or (chat := keeper.chat) is None:
        return None
    topics = [
        {"block_id": each.id, "topic": each.label, "about": each.summary, "keywords": list(each.keywords[:5])}
        for each in shown.values()
    ]
    try:
        said = {"topics": topics, "message": message[:_MOST_SENT]}
        found = chat.ask(_QUESTIONS["route"], said, keeper.settings.llm.route_seconds)
    except SimplememError:
        return None
    if found["new"] is True:
        return chat.method, ""
    return (chat.method, found["block_id"]) if found["block_id"] in [*shown] else None


def portions(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    """Turns in portions of what one question may hold."""
    while turns:
        sizes = list(accumulate(len(turn.message) for turn in turns))
        number = max(1, bisect_right(sizes, _MOST_SENT))
        yield turns[:number]
        turns = turns[number:]


def facts_in(chat: Chat, turns: Sequence[Turn]) -> list[tuple[Turn, Statement]]:
    """The facts that a model reads in turns, as far as it quotes them literally. Unavailable when it cannot be asked."""
    by_id = {turn.id: turn for turn in turns}
    said = [{"turn_id": turn.id, "message": turn.message[:_MOST_SENT]} for turn in turns]
    answer = chat.ask(_QUESTIONS["facts"], {"turns": said})
    found = []
    for each in answer["facts"] if isinstance(answer["facts"], list) else []:
        told = {name: str(each.get(name) or "").strip() for name in _FACT} if isinstance(each, dict) else {}
        if not told or not all(told.values()):
            continue
        turn_of, key, value, evidence = by_id.get(told["turn_id"]), key_of(told["key"]), told["value"], told["evidence"]
        if turn_of is not None and key and evidence in turn_of.message and value in evidence and "\n" not in value:
            found.append((turn_of, Statement(key, value, category_of(key, "model"), evidence, chat.method, 0.7)))
    return found
