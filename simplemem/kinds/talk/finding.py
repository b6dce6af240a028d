"""What a question finds in conversations: blocks with the turns that answer, facts, and the context for a message."""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from simplemem.kinds.talk.block import TOPIC, Block, Turn
from simplemem.kinds.talk.conversation import Conversation
from simplemem.kinds.talk.facts import Fact, facts_for
from simplemem.kinds.talk.hydrate import Context, hydrate
from simplemem.kinds.talk.saying import said_now
from simplemem.memory import Filter
from simplemem.note.names import path_of
from simplemem.note.words import STOP_WORDS, stem, words_of

_MOST_TURNS: Final = 6  # of one block
_MOST_QUESTION: Final = 2_000  # characters
_MOST_FACTS: Final = 10
_ELSEWHERE: Final = 4  # blocks whose turns may go into a context
_LEAST: Final = 1e-4  # of a score


class Memory(NamedTuple):
    """A block that answers, how well from 0 to 1, and its turns that do."""

    block: Block
    score: float
    turns: Sequence[Turn]


class Remembered(NamedTuple):
    """What a question found; by what, and what was missing."""

    memories: Sequence[Memory]
    facts: Sequence[Fact]
    method: str
    degraded: str


def remembered(talk: Conversation, query: str, limit: int = 5) -> Remembered:
    """The blocks and facts that answer a question, best first. It is words and nothing else, whatever it holds."""
    asked, method, degraded = query[:_MOST_QUESTION], "words", ""
    with talk.shelf.reading():
        blocks, every = {each.path: each for each in talk.held(Block)}, talk.held(Fact)
    memories, least = list[Memory](), 1.0
    if asked.strip() and blocks:
        found = talk.store.search(_telling(asked, blocks.values()), filter=Filter(type=TOPIC.type), limit=limit)
        method += f" and meaning ({talk.bench.embedder})" if found.mode != "text" and talk.bench.embedder else ""
        degraded = "Nothing was found; these are the nearest." if found.only_nearest else found.degraded
        for block, hit in ((blocks.get(path_of(hit.name)), hit) for hit in found.hits):
            if block is not None:
                least = min(least, max(hit.score, _LEAST))  # a score never grows from one to the next
                memories.append(Memory(block, least, answering(block, asked)))
    facts = facts_for(asked, every, {block.id: block.label for block in blocks.values()})
    return Remembered(memories, facts[:_MOST_FACTS], method, degraded)


def _telling(question: str, blocks: Collection[Block]) -> str:
    """A question without the names that most of the last blocks hold: they tell none from another (docs/decisions.md)."""
    told, last = question, [*blocks][-50:] if question.rstrip().endswith("?") else []  # else a block may be called so
    for name in {*re.findall(r"(?<=\s)[^\W\d_]{2,}", question)} - {*day_name, *month_name}:
        if name.istitle() and 2 * sum(bool(re.search(rf"{name}\b", each.text)) for each in last) > len(last):
            told = re.sub(rf"\b{name}(?:['’]s)?\b", "", told)
    return told if len(_stems(told)) > 1 else question  # one word alone says less than the name


def answering(block: Block, question: str) -> Sequence[Turn]:
    """The turns of a block that answer a question, each with the one after it, in their order."""
    if len(block.turns) <= _MOST_TURNS:
        return block.turns
    asked = _stems(question)
    heads = {each[:2] for each in asked}  # a stem begins as its word does
    stems = [asked & _stems(f"{turn.message} {turn.answer}", heads) for turn in block.turns]
    common = Counter(each for some in stems for each in some)
    worth = [sum(1 / common[each] for each in some) for some in stems]
    best = sorted(range(len(worth)), key=lambda at: (worth[at], at), reverse=True)
    near = dict.fromkeys(each for at in best for each in (at, at + 1) if each < len(stems))
    return [block.turns[at] for at in sorted([*near][:_MOST_TURNS])]


def _stems(text: str, heads: Collection[str] = ()) -> set[str]:
    words = (word for word in words_of(text.lower()) if word not in STOP_WORDS and (not heads or word[:2] in heads))
    return {stem(word, "") for word in words}


def context_for(talk: Conversation, message: str, budget: int, session: str = "") -> Context:
    """What a model should know before it answers this message. Changes nothing."""
    current = talk.spoken_of(said_now(message, session=session))
    found = remembered(talk, message, _ELSEWHERE + 1)
    others = [(each.block, each.turns) for each in found.memories if current is None or each.block.id != current.id]
    return hydrate(message, budget, talk.profile(), found.facts, current, others[:_ELSEWHERE])
