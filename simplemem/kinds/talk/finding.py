"""What a question finds in conversations: blocks with the turns that answer, facts, and the context for a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simplemem.kinds.talk.block import TOPIC, Block, Turn, stamp
from simplemem.kinds.talk.conversation import Conversation
from simplemem.kinds.talk.facts import Fact, facts_for
from simplemem.kinds.talk.hydrate import Context, hydrate
from simplemem.kinds.talk.saying import said_now
from simplemem.memory import Filter
from simplemem.note.names import path_of
from simplemem.note.words import STOP_WORDS, count_tokens, stem, words_of

_MOST_TURNS: Final = 6  # of one block
_MOST_QUESTION: Final = 2_000  # characters
_MOST_FACTS: Final = 10
_ELSEWHERE: Final = 4  # blocks whose turns may go into a context


@dataclass(frozen=True)
class Memory:
    """A block that answers, and how well from 0 to 1."""

    block: Block
    score: float
    turns: Sequence[Turn]


@dataclass(frozen=True)
class Remembered:
    """What a question found; by what, and what was missing."""

    memories: Sequence[Memory]
    facts: Sequence[Fact]
    method: str
    degraded: str


def remembered(talk: Conversation, query: str, limit: int = 5) -> Remembered:
    """The blocks and facts that answer a question, best first. It is words and nothing else, whatever it holds."""
    asked = query[:_MOST_QUESTION]
    with talk.shelf.reading():
        blocks = {each.path: each for each in talk.held(Block)}
        facts = talk.held(Fact)
    found = talk.store.search(asked, filter=Filter(type=TOPIC.type), limit=limit) if asked.strip() and blocks else None
    hits = [(blocks[path], hit.score) for hit in (found.hits if found else ()) if (path := path_of(hit.name)) in blocks]
    memories = [Memory(block, min(1.0, max(score, 1e-4)), answering(block, asked)) for block, score in hits]
    labels = {block.id: block.label for block in blocks.values()}
    embedder = talk.bench.embedder
    method = f"words and meaning ({embedder})" if found and found.mode != "text" and embedder else "words"
    return Remembered(memories, facts_for(asked, facts, labels)[:_MOST_FACTS], method, found.degraded if found else "")


def answering(block: Block, question: str) -> Sequence[Turn]:
    """The turns of a block that answer a question, each with the one after it, in their order."""
    if len(block.turns) <= _MOST_TURNS:
        return block.turns
    stems = [_stems(f"{turn.message} {turn.answer}") for turn in block.turns]
    common = Counter(each for some in stems for each in some)
    asked = _stems(question)
    worth = [sum(1 / common[each] for each in asked & some) for some in stems]
    best = sorted(range(len(worth)), key=lambda at: (worth[at], at), reverse=True)
    chosen: dict[int, None] = {}
    for at in best:
        for near in (at, at + 1):
            if near < len(stems) and len(chosen) < _MOST_TURNS:
                chosen[near] = None
    return [block.turns[at] for at in sorted(chosen)]


def _stems(text: str) -> set[str]:
    return {stem(word, "") for word in words_of(text.lower()) if word not in STOP_WORDS}


def context_for(talk: Conversation, message: str, budget: int, session: str = "") -> Context:
    """What a model should know before it answers this message. Changes nothing."""
    saying = said_now(message, session=session)
    found = remembered(talk, message, _ELSEWHERE + 1)
    current = talk.spoken_of(saying)
    others = [(each.block, each.turns) for each in found.memories if current is None or each.block.id != current.id]
    return hydrate(message, budget, talk.profile(), found.facts, current, others[:_ELSEWHERE], count_tokens)


def shown(block: Block, turns: Sequence[Turn] | None = None) -> list[Mapping[str, Any]]:
    """Turns with the fields that clients know."""
    return [
        {"turn_id": each.id, "timestamp": stamp(each.at), "user_message": each.message, "ai_response": each.answer}
        for each in (block.turns if turns is None else turns)
    ]
