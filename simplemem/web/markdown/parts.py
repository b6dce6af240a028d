"""Divides a long note into parts, which the page shows one after another."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

PART_CHARACTERS: Final = 40_000
"""The characters after which a part ends at the next blank line outside of code."""

MAX_PART_CHARACTERS: Final = 400_000
"""The most characters of a part. It ends here even if there has been no such blank line."""

MAX_CHARACTERS: Final = 450_000
"""The most characters that are rendered at once: a part, and what other parts define."""

_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*+\n")
_FENCE: Final = re.compile(r"^ {0,3}(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\n]*)$", re.MULTILINE)
# A footnote, `[^1]: Text`, or the address of links, `[label]: https://…`.
_DEFINITION: Final = re.compile(r"^ {0,3}\[[^\]\n]{1,200}+\]:[^\n]*+$", re.MULTILINE)
_MAX_DEFINITION_CHARACTERS: Final = 40_000  # of all definitions that a part gets

Span = tuple[int, int]
"""Where a piece of a text begins, and where it ends."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a note.

    Attributes:
        text: The text of the part.
        number: Which part it is, from 1.
        count: How many parts the note has.
        first_line: The line of the whole text at which the part begins, from 0.
        definitions: The footnotes and addresses of links that other parts define.
    """

    text: str
    number: int
    count: int
    first_line: int
    definitions: str = ""

    @property
    def has_next(self) -> bool:
        """Whether another part follows."""
        return self.number < self.count


def part_of(text: str, number: int) -> Part:
    """Return a part of a text. For a `number` that no part has, return the first or last part.

    All parts together are the text. A part ends at a blank line outside of code, if there is one.
    """
    if len(text) <= PART_CHARACTERS:
        return Part(text, number=1, count=1, first_line=0)

    starts = _starts_of_parts(text)
    count = len(starts)
    number = min(max(number, 1), count)
    start = starts[number - 1]
    end = starts[number] if number < count else len(text)

    return Part(
        text[start:end],
        number=number,
        count=count,
        first_line=text.count("\n", 0, start),
        definitions=_definitions_outside(text, start, end),
    )


@lru_cache(maxsize=2)
def _starts_of_parts(text: str) -> list[int]:
    """Return where each part of a text begins.

    The result is cached, because the page asks for one part after the other.
    """
    code = _spans_of_code(text)
    starts = [0]
    while len(text) - starts[-1] > PART_CHARACTERS:
        start = _start_of_next(text, starts[-1], code)
        if start >= len(text):
            break
        starts.append(start)
    return starts


def _start_of_next(text: str, start: int, code: list[Span]) -> int:
    """Return where the part ends that begins at `start`, and the next one begins.

    This is after a blank line outside of code. Without one, it is the end of the text if that is
    near enough, else the beginning of a line, else the middle of a line.
    """
    earliest_end = start + PART_CHARACTERS
    latest_end = start + MAX_PART_CHARACTERS

    end = _end_of_blank_line(text, earliest_end, latest_end, code)
    if end is not None:
        return end
    if len(text) <= latest_end:
        return len(text)

    line_end = text.rfind("\n", earliest_end, latest_end)
    if line_end >= 0:
        return line_end + 1
    return latest_end


def _end_of_blank_line(text: str, start: int, end: int, code: list[Span]) -> int | None:
    """Return where the first blank line outside of code ends that is between two positions."""
    blank_line = _BLANK_LINE.search(text, start, end)
    while blank_line is not None:
        end_of_code = _end_of_code_around(blank_line.start(), code)
        if end_of_code is None:
            return blank_line.end()

        # For an `end_of_code` after `end`, this finds nothing.
        blank_line = _BLANK_LINE.search(text, end_of_code, end)
    return None


def _spans_of_code(text: str) -> list[Span]:
    """Return the fenced blocks of code, in their order. One left open ends with the text."""
    spans = []
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
            continue

        is_closing = fence["mark"].startswith(opening["mark"]) and not fence["info"].strip()
        if is_closing:
            spans.append((opening.start(), fence.end()))
            opening = None

    if opening is not None:
        spans.append((opening.start(), len(text)))
    return spans


def _end_of_code_around(position: int, code: list[Span]) -> int | None:
    """Return the end of the block of code that contains a position, or None if none does."""
    # The last block that begins at or before the position is the only one that can contain it.
    count_before = bisect_right(code, position, key=_start_of_span)
    if count_before == 0:
        return None

    _, end = code[count_before - 1]
    return end if position < end else None


def _start_of_span(span: Span) -> int:
    """Return where a span begins."""
    return span[0]


def _definitions_outside(text: str, start: int, end: int) -> str:
    """Return the lines outside of a part that define footnotes and addresses of links.

    The part may refer to them. At most 40,000 characters are returned.
    """
    lines = []
    length = 0
    for position, line in _all_definitions(text):
        if start <= position < end:
            continue

        length += len(line)
        if length > _MAX_DEFINITION_CHARACTERS:
            break
        lines.append(line)
    return "\n".join(lines)


@lru_cache(maxsize=2)
def _all_definitions(text: str) -> list[tuple[int, str]]:
    """Return the place and the text of each line that defines a footnote or an address."""
    return [(definition.start(), definition[0]) for definition in _DEFINITION.finditer(text)]
