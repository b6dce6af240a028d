"""What a question finds in conversations: blocks with the turns that answer, and facts; and what a model should know before
it answers a message, within a budget. Changes nothing."""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from heapq import nlargest
from typing import Any, Final

from simplemem.errors import TooLong
from simplemem.features.answers import Constraint, Context, FactOut, Recalled, TurnOut
from simplemem.features.changes import StatedSubject, find_doubtful
from simplemem.features.conversations.facts import (
    ConversationFact,
    fact_out,
    find_facts,
    stated_changes,
)
from simplemem.features.conversations.service import ConversationService, new_exchange
from simplemem.features.conversations.topic import TOPIC, Topic, Turn, turns_out
from simplemem.models import NOTHING_FOUND, Filter
from simplemem.note.dates import format_moment
from simplemem.note.names import path_of
from simplemem.note.stems import stem
from simplemem.note.words import STOP_WORDS, count_tokens, format_count, shorten, unique_words
from simplemem.store import as_words

_MAX_TURNS, _MOST_FACTS, _ELSEWHERE = (
    6,
    10,
    4,
)  # turns of one block; blocks whose turns may go into a context
_MOST_QUESTION, _MOST_ANSWER = 2_000, 400  # characters
_LEAST: Final = 1e-4  # of a score
_IN_DOUBT: Final = (
    0.5  # confidence of a sentence that no rule reads, and share of that of the fact it disputes
)
_PERSON: Final = (
    300  # tokens of a context for what is known of the person beside constraints, at most
)
_FACTS, _NOW = (
    5,
    2,
)  # the part of what is left that facts may take, and the subject that is spoken of
_WINDOW: Final = (
    20  # turns of a session, those said last, that belong into a context whatever they are about
)
_OMITTED: Final = 10  # tokens for a line that says how many turns are left out

Lines = dict[str, dict[str, Any]]  # of a context, each with the item that it tells of


def recall(talk: ConversationService, query: str, limit: int = 5) -> Recalled:
    """The blocks, with turns, and facts that answer a question, best first. It is words alone, whatever it holds."""
    asked, least = query[:_MOST_QUESTION], 1.0
    with talk.collection.reading():
        blocks, every = {each.path: each for each in talk.held(Topic)}, talk.held(ConversationFact)
    facts = find_facts(asked, every, {block.id: block.label for block in blocks.values()})[
        :_MOST_FACTS
    ]
    shown = [row for fact in facts for row in _both_sides(fact, blocks.values())]
    answer = Recalled(memories=[], facts=shown, method="words")
    if asked.strip() and blocks:
        told, only = as_words(_telling(asked, blocks.values())), Filter(type=TOPIC.type)
        found = talk.store.search(told, filter=only, limit=limit)
        if found.mode != "text" and talk.extension.embedder:
            answer["method"] += f" and meaning ({talk.extension.embedder})"
        if found.notice and found.hits:
            is_whole = told == as_words(asked)  # else a name was left out, which topics do contain
            answer["degraded"] = found.notice if is_whole else NOTHING_FOUND
            answer["only_nearest"] = True
        elif found.degraded:
            answer["degraded"] = found.degraded
        if not found.index.is_ready:
            answer["degraded"] = f"{answer.get('degraded', '')} {found.index.reason}".strip()
        for hit in found.hits:
            if block := blocks.get(path_of(hit.name)):
                least = min(
                    least, max(round(hit.score, 4), _LEAST)
                )  # a score never grows from one to the next
                summary = (
                    "" if block.status == "active" else block.summary
                )  # what it was about before it was resumed
                answer["memories"].append({
                    "block_id": block.id, "topic": block.label, "relevance_score": least, "summary": summary,
                    "turns": turns_out(answering(block, asked)),
                })  # fmt: skip
    return answer


def _both_sides(fact: ConversationFact, blocks: Collection[Topic]) -> list[FactOut]:
    """Return a fact as clients know it, and before it the later sentence that puts it in doubt, if there is one.

    A turn that was deleted disputes nothing.
    """
    row = fact_out(fact, fact.block_id)
    if fact.disputed is None:
        return [row]
    turns = (
        (block, turn) for block in blocks for turn in block.turns if turn.mark == fact.disputed_by
    )
    block, turn = next(turns, (None, None))
    if block is None or turn is None:
        return [row]

    changes = stated_changes(turn.message)
    subjects = [StatedSubject(fact.subject, fact.valid_from.year)]
    sentences = [
        sentence for sentence, change in changes.items() if find_doubtful(subjects, change)
    ]
    later = FactOut(
        key=fact.key,
        value=" ".join(sentences or [shorten(turn.message, _MOST_ANSWER)]),
        block_id=block.id,
        confidence=_IN_DOUBT,
        valid_from=format_moment(turn.at),
    )
    row["confidence"] = round(_IN_DOUBT * fact.confidence, 4)
    row["valid_from"] = format_moment(fact.valid_from)
    row["disputed"] = format_moment(fact.disputed)
    return [later, row]


def _telling(question: str, blocks: Collection[Topic]) -> str:
    """A question without the names that most of the last blocks hold: they tell none from another (docs/decisions.md)."""
    told, last = (
        question,
        [*blocks][-50:] if question.rstrip().endswith("?") else [],
    )  # else a block may be called so
    for name in {*re.findall(r"(?<=\s)[^\W\d_]{2,}", question)} - {*day_name, *month_name}:
        if name.istitle() and 2 * sum(
            bool(re.search(rf"{name}\b", each.text)) for each in last
        ) > len(last):
            told = re.sub(rf"\b{name}(?:['’]s)?\b", "", told)
    return told if len(_stems(told)) > 1 else question  # one word alone says less than the name


def answering(block: Topic, question: str) -> Sequence[Turn]:
    """The turns of a block that answer a question, each with the one after it, in their order."""
    if len(block.turns) <= _MAX_TURNS:
        return block.turns
    asked = _stems(question)
    heads = {each[:2] for each in asked}  # a stem begins as its word does
    stems = [asked & _stems(f"{turn.message} {turn.answer}", heads) for turn in block.turns]
    common = Counter(each for some in stems for each in some)
    worth = [sum(1 / common[each] for each in some) for some in stems]
    best = sorted(range(len(worth)), key=lambda at: (worth[at], at), reverse=True)
    near = dict.fromkeys(each for at in best for each in (at, at + 1) if each < len(stems))
    return [block.turns[at] for at in sorted([*near][:_MAX_TURNS])]


def _stems(text: str, heads: Collection[str] = ()) -> set[str]:
    words = (
        word
        for word in unique_words(text.lower())
        if word not in STOP_WORDS and (not heads or word[:2] in heads)
    )
    return {stem(word, "") for word in words}


def build_context(
    talk: ConversationService, message: str, budget: int, session: str = ""
) -> Context:
    """Constraints whole and first, then the person, facts, the subject that is spoken of, what was said elsewhere, and the
    message last. TooLong says how much room constraints and message need."""
    profile, every = talk.profile(), talk.items(Topic)
    current = talk.decide(new_exchange(message, session=session), every)[1].block
    found, now = recall(talk, message, _ELSEWHERE + 1), current.id if current else ""
    must = {
        _constraint_line(each): {"kind": "constraint", "text": each["text"]}
        for each in profile.constraints
    }
    sections = ["\n".join(["# Constraints", *must])] if must else []
    items, left_out, last = list[dict[str, Any]](must.values()), 0, f"# Message\n{message.strip()}"

    def needed(*more: str) -> int:
        return count_tokens("\n\n".join([*sections, *more, last]))

    def take(title: str, lines: Lines, most: int, *, newest: bool = False) -> None:
        """A section of those lines that fit into so many tokens, the first or the newest, in their order."""
        nonlocal left_out
        taken, spare = list[str](), _OMITTED if newest else 0
        for line in reversed(lines) if newest else lines:
            section = "\n".join([title, *taken, line])
            if count_tokens(section) <= most - spare and needed(section) <= budget - spare:
                taken.append(line)
        omitted = len(lines) - len(taken)
        left_out += omitted
        if taken:
            title += (
                f"\n({format_count(omitted, 'earlier turn')} omitted)" if newest and omitted else ""
            )
            sections.append("\n".join([title, *(line for line in lines if line in taken)]))
            items.extend(lines[line] for line in lines if line in taken)

    if (least := needed()) > budget:
        raise TooLong(
            f"constraints and message need {least} tokens",
            hint=f"Set budget_tokens to at least {least}.",
        )
    person = [f"Name: {profile.name}"] if profile.name else []
    person += [*profile.preferences.values(), *profile.identity]
    take("# The user", {f"- {each}": {"kind": "person", "text": each} for each in person}, _PERSON)
    facts = {_fact_line(fact): {"kind": "fact", "key": fact["key"]} for fact in found["facts"]}
    take("# Facts", facts, (budget - needed()) // _FACTS)
    if current is not None:
        lines, most = _lines(now, turns_out(current.turns)), (budget - needed()) // _NOW
        take(f"# Current topic: {current.label}", lines, most, newest=True)
    before = (
        "Nothing earlier answers this; the closest is" if found.get("only_nearest") else "Earlier,"
    )
    earlier = [each for each in found["memories"] if each["block_id"] != now]
    if found.get("only_nearest") and not _stems(message):
        earlier = []  # "And so?" asks for nothing, so nothing is near it
    for each in earlier[:_ELSEWHERE]:
        take(f"# {before} about {each['topic']}", _lines(each["block_id"], each["turns"]), budget)
    said = (
        (turn.at, each.id, turn) for each in every if each.session == session for turn in each.turns
    )
    window, shown = Lines(), {now, *(item.get("turn_id") for item in items)}
    for _, id_, turn in reversed(nlargest(_WINDOW, said)):
        window |= _lines(id_, turns_out([turn])) if not {id_, turn.id} & shown else {}
    take("# Last messages, on other topics", window, budget, newest=True)
    return Context(
        text="\n\n".join([*sections, last]), tokens=needed(), items=items, left_out=left_out
    )


def _fact_line(fact: FactOut) -> str:
    """Return a fact on a line of a context, with a mark where a later sentence puts it in doubt."""
    mark = f" (disputed since {fact['disputed'][:10]})" if "disputed" in fact else ""
    return f"- {fact['key'].replace('_', ' ')}: {fact['value']}{mark}"


def _constraint_line(constraint: Constraint) -> str:
    """Return a constraint on a line of a context, with a mark where a later sentence puts it in doubt."""
    mark = f", disputed since {constraint['disputed']}" if "disputed" in constraint else ""
    return f"- {constraint['text']} ({constraint['severity']}{mark})"


def _lines(block: str, turns: Sequence[TurnOut]) -> Lines:
    """Turns on a line or two each, with their times."""
    lines = Lines()
    for turn in turns:
        at, answer = (
            datetime.fromisoformat(turn["timestamp"]),
            shorten(turn["ai_response"], _MOST_ANSWER),
        )
        said = f"- {at.astimezone():%Y-%m-%d %H:%M} You: {turn['user_message'].strip()}"
        said += f"\n  Answer: {answer}" if answer else ""
        lines[said] = {"kind": "turn", "block_id": block, "turn_id": turn["turn_id"]}
    return lines
