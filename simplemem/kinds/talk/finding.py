"""What a question finds in conversations: blocks with the turns that answer, and facts; and what a model should know before
it answers a message, within a budget. Changes nothing."""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from simplemem.errors import TooLong
from simplemem.kinds.talk.block import TOPIC, Block, Turn
from simplemem.kinds.talk.conversation import Conversation, said_now
from simplemem.kinds.talk.facts import Fact, facts_for
from simplemem.memory import Filter, Value
from simplemem.note.names import path_of
from simplemem.note.words import STOP_WORDS, count_tokens, counted, shortened, stem, words_of

_MOST_TURNS, _MOST_FACTS, _ELSEWHERE = 6, 10, 4  # turns of one block; blocks whose turns may go into a context
_MOST_QUESTION, _MOST_ANSWER = 2_000, 400  # characters
_LEAST: Final = 1e-4  # of a score
_PERSON: Final = 300  # tokens of a context for what is known of the person beside constraints, at most
_FACTS, _NOW = 5, 2  # the part of what is left that facts may take, and the subject that is spoken of
_OMITTED: Final = 10  # tokens for a line that says how many turns are left out

Lines = dict[str, dict[str, Any]]  # of a context, each with the item that it tells of


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


class Context(Value):
    """The text for a model, what went into it, and how much found no room."""

    text: str
    tokens: int
    items: list[dict[str, Any]]
    left_out: int


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
                memories.append(Memory(block, round(least, 4), answering(block, asked)))
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
    """Constraints whole and first, then the person, facts, the subject that is spoken of, what was said elsewhere, and the
    message last. TooLong says how much room constraints and message need."""
    profile, current = talk.profile(), talk.decide(said_now(message, session=session), talk.items(Block))[1].block
    found = remembered(talk, message, _ELSEWHERE + 1)
    bounds = {
        f"- {c['text']} ({c['severity']})": {"kind": "constraint", "text": c["text"]} for c in profile.constraints
    }
    sections = ["\n".join(["# What always holds", *bounds])] if bounds else []
    items, left_out, last = list[dict[str, Any]](bounds.values()), 0, f"# The message\n{message.strip()}"

    def needed(*more: str) -> int:
        return count_tokens("\n\n".join([*sections, *more, last]))

    def take(title: str, lines: Lines, most: int, *, newest: bool = False) -> None:
        """A section of those lines that fit into so many tokens, the first or the newest, in their order."""
        nonlocal left_out
        taken = list[str]()
        for line in reversed(lines) if newest else lines:
            section = "\n".join([title, *taken, line])
            if count_tokens(section) <= most and needed(section) <= budget:
                taken.append(line)
        omitted = len(lines) - len(taken)
        left_out += omitted
        if taken:
            title += f"\n({counted(omitted, 'earlier turn')} omitted)" if newest and omitted else ""
            sections.append("\n".join([title, *(line for line in lines if line in taken)]))
            items.extend(lines[line] for line in lines if line in taken)

    if (least := needed()) > budget:
        raise TooLong(f"constraints and message need {least} tokens", hint=f"budget_tokens={least} would do.")
    person = [f"Name: {profile.name}"] if profile.name else []
    person += [*profile.preferences.values(), *profile.identity]
    take("# The person", {f"- {each}": {"kind": "person", "text": each} for each in person}, _PERSON)
    known = {f"- {each.key.replace('_', ' ')}: {each.value}": {"kind": "fact", "key": each.key} for each in found.facts}
    take("# Facts", known, (budget - needed()) // _FACTS)
    if current is not None:
        most = (budget - needed()) // _NOW - _OMITTED
        take(f"# Spoken of now: {current.label}", _lines(current, current.turns), most, newest=True)
    for block, _, turns in [each for each in found.memories if not current or each.block.id != current.id][:_ELSEWHERE]:
        take(f"# Said before, about {block.label}", _lines(block, turns), budget)
    text = "\n\n".join([*sections, last])
    return Context(text, count_tokens(text), items, left_out)


def _lines(block: Block, turns: Sequence[Turn]) -> Lines:
    """Turns on a line or two each, with their times."""
    lines = Lines()
    for turn in turns:
        answer = shortened(turn.answer, _MOST_ANSWER)
        said = f"- {turn.at.astimezone():%Y-%m-%d %H:%M} You: {turn.message.strip()}"
        said += f"\n  Answer: {answer}" if answer else ""
        lines[said] = {"kind": "turn", "block_id": block.id, "turn_id": turn.id}
    return lines
