"""The turns of a topic: as text in its note, and as clients get them. Pure.

A message of the user is an open quote with its block id below it; answers and contexts are folded
callouts. A text that would be structure of the note, or lose bytes in a quote, is fenced. A message
is read back byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.features.answers import TurnOut
from simplemem.features.conversations.patterns import PATTERNS
from simplemem.note.body import read_body
from simplemem.note.dates import format_moment, parse_moment

_TURN: Final = PATTERNS["turn"]
_FOLDED: Final = re.compile(
    r"^> \[!\w+\]-? (Answer|Context)[ \t\r]*+(?:\n|\Z)((?:^>.*(?:\n|\Z))*+)", re.MULTILINE
)
_TITLE: Final = re.compile(r"\A> \[!.*\n?")
_QUOTE_MARK: Final = re.compile(r"(?m)^> ?|\r$")
_FENCED: Final = re.compile(r"(`{3,}+)\n(.*)\n\1", re.DOTALL)
# What would have an effect outside of a quote, or be lost in it. `read_body` finds the rest.
_STRUCTURE: Final = {"html", "definition", "math"}
_LEAKS: Final = re.compile(
    r"%%|\$\$|<[!/?A-Za-z]|\t|[ ]$|\[[ ]\]|\[!|\A[ ]*(?:```|~~~)", re.MULTILINE
)


class Turn(NamedTuple):
    """A message of the user, its answer, and where both are in the note's text."""

    id: str  # "turn_", the day, the time and a few random characters
    at: datetime  # UTC
    message: str
    answer: str
    context: str  # what the agent knew at the time
    start: int = 0  # of its text in the note
    end: int = 0

    @property
    def mark(self) -> str:
        """Its block id in the note, without the caret."""
        return self.id.replace("_", "-")


def turns_out(turns: Iterable[Turn]) -> list[TurnOut]:
    """Return turns in the form that clients get, in their order."""
    rows = []
    for turn in turns:
        row = TurnOut(
            turn_id=turn.id,
            timestamp=format_moment(turn.at),
            user_message=turn.message,
            ai_response=turn.answer,
        )
        rows.append(row)
    return rows


def read_turns(text: str, start: int) -> Iterator[Turn]:
    """Yield the turns in the text of a note, in their order. The body begins at `start`.

    Quotes without a block id, and turns whose time cannot be read, are skipped.
    """
    for match in _TURN.finditer(text, start):
        time = parse_moment(f"{match['day']}T{match['time']}Z")
        if not match["mark"] or not time:
            continue

        folded = {}
        for title, quote in _FOLDED.findall(match["folded"]):
            folded[title] = _unquote(quote)
        message = _TITLE.sub("", match["message"])
        yield Turn(
            id=match["mark"].replace("-", "_"),
            at=time,
            message=_unquote(message),
            answer=folded.get("Answer", ""),
            context=folded.get("Context", ""),
            start=match.start(),
            end=match.end(),
        )


def render_turn(turn: Turn) -> str:
    """Return the text of a turn in its note: the message, the block id, answer and context.

    `read_turns` returns all of them byte for byte.
    """
    text = _quote(f"[!quote] You, {turn.at.astimezone():%H:%M}", turn.message)
    text += f"\n^{turn.mark}\n"
    if turn.answer:
        text += "\n" + _quote("[!note]- Answer", turn.answer)
    if turn.context:
        text += "\n" + _quote("[!info]- Context", turn.context)
    return text


def _quote(title: str, text: str) -> str:
    """Return a callout with a text and a final line break.

    `title` is its first line, such as "[!note]- Answer". The text is in a fence if it would be
    structure of the note, or if bytes of it would be lost.
    """
    lines = "\n".join(map(_quote_line, text.split("\n")))
    if _needs_fence(title, lines, text):
        backtick_runs = re.findall("`+", text)
        longest_run = max(map(len, backtick_runs), default=0)
        fence = "`" * max(3, 1 + longest_run)
        lines = f"> {fence}\n{lines}\n> {fence}"
    return f"> {title}\n{lines}\n"


def _quote_line(line: str) -> str:
    """Return a line of a quote; an empty one gets no space after the `>`."""
    return f"> {line}" if line else ">"


def _needs_fence(title: str, lines: str, text: str) -> bool:
    """Return whether a text must be fenced so that nothing in it is structure of the note.

    `lines` is the text as quoted lines, `title` the line above them without its `> `. They are read
    with a heading after them, which must be the only heading that is found.
    """
    if _LEAKS.search(text):
        return True

    body = read_body(f"> {title}\n{lines}\n\n# end\n", 0)
    if body.links or body.tags or body.block_ids:
        return True

    kinds = {block.kind for block in body.blocks}
    headings = [heading.text for heading in body.headings]
    return bool(kinds & _STRUCTURE) or headings != ["end"]


def _unquote(quote: str) -> str:
    """Return the text of a quote, without its fence if it has one."""
    lines = quote.removesuffix("\n")
    text = _QUOTE_MARK.sub("", lines)
    fenced = _FENCED.fullmatch(text)
    return fenced[2] if fenced else text
