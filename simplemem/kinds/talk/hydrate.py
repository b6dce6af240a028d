"""What a model should know before it answers, within a budget: constraints whole and first, then the person, facts, the
subject that is spoken of, what was said elsewhere, and the message last. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from simplemem.errors import TooLong
from simplemem.kinds.talk.block import Block, Turn
from simplemem.kinds.talk.facts import Fact
from simplemem.kinds.talk.profile import Profile
from simplemem.memory import Value
from simplemem.note.words import count_tokens, counted

_PERSON: Final = 300  # tokens for what is known of the person beside constraints, at most
_FACTS: Final = 5  # the part of what is left that facts may take
_NOW: Final = 2  # and the subject that is spoken of
_OMITTED: Final = 10  # tokens for a line that says how many turns are left out
_MOST_ANSWER: Final = 400  # characters of an answer

Item = dict[str, Any]
Line = tuple[str, Item]


class Context(Value):
    """The text for a model, what went into it, and how much found no room."""

    text: str
    tokens: int
    items: list[Item]
    left_out: int


def line_of(turn: Turn) -> str:
    """A turn on a few lines, with its time."""
    said = f"- {turn.at.astimezone():%Y-%m-%d %H:%M} You: {turn.message.strip()}"
    answer = " ".join(turn.answer.split())
    shown = answer if len(answer) <= _MOST_ANSWER else answer[:_MOST_ANSWER].rsplit(" ", 1)[0] + " …"
    return f"{said}\n  Answer: {shown}" if answer else said


def hydrate(
    message: str,
    budget: int,
    profile: Profile,
    facts: Sequence[Fact],
    current: Block | None,
    elsewhere: Sequence[tuple[Block, Sequence[Turn]]],
) -> Context:
    """The context for a message. TooLong says how much room constraints and message need."""
    bounds = [f"- {each['text']} ({each['severity']})" for each in profile.constraints]
    sections = ["\n".join(["# What always holds", *bounds])] if bounds else []
    items: list[Item] = [{"kind": "constraint", "text": each["text"]} for each in profile.constraints]
    last, left_out = f"# The message\n{message.strip()}", 0

    def needed(*more: str) -> int:
        return count_tokens("\n\n".join([*sections, *more, last]))

    def take(title: str, lines: Sequence[Line], most: int, *, newest: bool = False) -> None:
        """A section of those lines that fit into so many tokens, behind the others; or of the newest, in their order."""
        nonlocal left_out
        taken = list[Line]()
        for line in reversed(lines) if newest else lines:
            section = "\n".join([title, *(said for said, _ in taken), line[0]])
            if count_tokens(section) <= most and needed(section) <= budget:
                taken.append(line)
        omitted = len(lines) - len(taken)
        left_out += omitted
        if taken:
            title += f"\n({counted(omitted, 'earlier turn')} omitted)" if newest and omitted else ""
            taken = taken[::-1] if newest else taken
            sections.append("\n".join([title, *(said for said, _ in taken)]))
            items.extend(item for _, item in taken)

    def told(block: Block, turns: Sequence[Turn]) -> list[Line]:
        return [(line_of(turn), {"kind": "turn", "block_id": block.id, "turn_id": turn.id}) for turn in turns]

    if (least := needed()) > budget:
        raise TooLong(f"constraints and message need {least} tokens", hint=f"budget_tokens={least} would do.")
    person = [f"Name: {profile.name}"] if profile.name else []
    person += [*profile.preferences.values(), *profile.identity]
    take("# The person", [(f"- {each}", {"kind": "person", "text": each}) for each in person], _PERSON)
    known = [(f"- {each.key.replace('_', ' ')}: {each.value}", {"kind": "fact", "key": each.key}) for each in facts]
    take("# Facts", known, (budget - needed()) // _FACTS)
    if current is not None:
        most = (budget - needed()) // _NOW - _OMITTED
        take(f"# Spoken of now: {current.label}", told(current, current.turns), most, newest=True)
    for block, turns in elsewhere:
        take(f"# Said before, about {block.label}", told(block, turns), budget)
    text = "\n\n".join([*sections, last])
    return Context(text, count_tokens(text), items, left_out)
