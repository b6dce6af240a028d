"""What a model should know before it answers, within a budget: constraints whole and first, then the person, facts, the
subject that is spoken of, what was said elsewhere, and the message last. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from simplemem.errors import TooLong
from simplemem.kinds.talk.block import Block, Turn
from simplemem.kinds.talk.facts import Fact
from simplemem.kinds.talk.profile import Profile

_PERSON: Final = 300  # tokens for what is known of the person beside constraints, at most
_FACTS: Final = 5  # the part of what is left that facts may take
_NOW: Final = 2  # and the subject that is spoken of
_MOST_ANSWER: Final = 400  # characters of an answer

Count = Callable[[str], int]


class Context(NamedTuple):
    """The text for a model, what went into it, and how much found no room."""

    text: str
    tokens: int
    items: list[dict[str, Any]]
    left_out: int


class _Taker:
    """Takes lines into sections while they fit."""

    def __init__(self, budget: int, count: Count) -> None:
        self.budget, self._count = budget, count
        self.sections: list[list[str]] = []
        self.items: list[dict[str, Any]] = []
        self.left_out = 0

    @property
    def room(self) -> int:
        return self.budget - self._count("\n\n".join("\n".join(lines) for lines in self.sections))

    def take(self, title: str, lines: Iterable[tuple[str, dict[str, Any]]], most: int) -> int:
        """A section of those lines that fit into `most` tokens and the budget; how many did."""
        section, took = [title], 0
        self.sections.append(section)
        least = min(most, max(0, self.room)) if most else 0
        used = self._count(title)
        for line, item in lines:
            cost = self._count(line) + 1
            section.append(line)
            if used + cost > least or self.room < 0:
                section.pop()
                self.left_out += 1
                continue
            used, took = used + cost, took + 1
            self.items.append(item)
        if not took:
            self.sections.pop()
        return took


def line_of(turn: Turn) -> str:
    """A turn on a few lines, with its time."""
    said = f"- {turn.at.astimezone():%Y-%m-%d %H:%M} You: {turn.message.strip()}"
    answer = " ".join(turn.answer.split())
    shown = answer if len(answer) <= _MOST_ANSWER else answer[:_MOST_ANSWER].rsplit(" ", 1)[0] + " …"
    return f"{said}\n  Answer: {shown}" if answer else said


def hydrate(
    message: str,
    budget: int,
    profile: Profile | None,
    facts: Sequence[Fact],
    current: Block | None,
    elsewhere: Sequence[tuple[Block, Sequence[Turn]]],
    count: Count,
) -> Context:
    """The context for a message. TooLong says how much room constraints and message need."""
    bounds = [f"- {each.text} ({each.severity})" for each in profile.constraints] if profile else []
    must = ["# What always holds\n" + "\n".join(bounds)] if bounds else []
    last = f"# The message\n{message.strip()}"
    least = count("\n\n".join([*must, last])) + 2 * len(must)
    if least > budget:
        raise TooLong(f"constraints and message need {least} tokens", hint=f"budget_tokens={least} would do.")
    taker = _Taker(budget - least, count)
    taker.items += [{"kind": "constraint", "text": each.text} for each in profile.constraints] if profile else []
    if profile is not None:
        person = [f"- Name: {profile.name}"] if profile.name else []
        person += [f"- {each}" for each in (*profile.preferences.values(), *profile.identity)]
        taker.take("# The person", [(line, {"kind": "person", "text": line[2:]}) for line in person], _PERSON)
    told = [(f"- {each.key.replace('_', ' ')}: {each.value}", {"kind": "fact", "key": each.key}) for each in facts]
    taker.take("# Facts", told, taker.room // _FACTS)
    if current is not None:
        newest = [(line_of(turn), _item(current, turn)) for turn in reversed(current.turns)]
        head = f"# Spoken of now: {current.label}"
        before, room = len(taker.items), taker.room // _NOW
        took = taker.take(head, newest, room - 10)
        if took:
            lines, omitted = taker.sections[-1], len(newest) - took
            more = [f"({omitted} earlier turn{'s' if omitted > 1 else ''} omitted)"] if omitted else []
            taker.sections[-1] = [lines[0], *more, *reversed(lines[1:])]
            taker.items[before:] = reversed(taker.items[before:])
    for block, turns in elsewhere:
        said = [(line_of(turn), _item(block, turn)) for turn in turns]
        taker.take(f"# Said before, about {block.label}", said, taker.room)
    text = "\n\n".join([*must, *("\n".join(lines) for lines in taker.sections), last])
    return Context(text, count(text), taker.items, taker.left_out)


def _item(block: Block, turn: Turn) -> dict[str, Any]:
    return {"kind": "turn", "block_id": block.id, "turn_id": turn.id}
