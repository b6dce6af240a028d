"""Divides a long note into parts, which the page shows one after another."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

PART_CHARACTERS: Final = 40_000
"""The length of a part, unless the block at its end goes on."""

MAX_PART_CHARACTERS: Final = 400_000
"""The most characters of a part. A longer block is divided."""

_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*+\n")
_FENCE: Final = re.compile(r"^ {0,3}(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\n]*)$", re.MULTILINE)
_DEFINITION: Final = re.compile(r"^ {0,3}\[[^\]\n]{1,200}+\]:[^\n]*+$", re.MULTILINE)
_MAX_DEFINITION_CHARACTERS: Final = 40_000

MAX_CHARACTERS: Final = 450_000
"""The most characters that are rendered at once: a part, and what other parts define."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a note. `number` counts from 1, and `first_line` is the line of the text, from 0.

    `definitions` are the footnotes and addresses of links that other parts define.
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
    """Return a part of a text; the last one if `number` is greater than their count.

    All parts together are the text. A part ends at a blank line outside of code, if there is one.
    """
    if len(text) <= PART_CHARACTERS:
        return Part(text, 1, 1, 0)

    starts = _starts_of_parts(text)
    number = min(max(number, 1), len(starts))
    start = starts[number - 1]
    end = starts[number] if number < len(starts) else len(text)
    definitions = _definitions_in(text, start, end)
    return Part(text[start:end], number, len(starts), text.count("\n", 0, start), definitions)


@lru_cache(maxsize=2)
def _starts_of_parts(text: str) -> list[int]:
    """Return where each part of a text begins. The page asks for one part after the other."""
    code = _spans_of_code(text)
    starts = [0]
    while len(text) - starts[-1] > PART_CHARACTERS:
        start = _start_of_next(text, starts[-1], code)
        if start >= len(text):
            break
        starts.append(start)
    return starts


def _start_of_next(text: str, start: int, code: list[tuple[int, int]]) -> int:
    """Return where the part begins that follows the one at `start`."""
    limit = start + MAX_PART_CHARACTERS
    position = start + PART_CHARACTERS
    blank_line = _BLANK_LINE.search(text, position, limit)
    while blank_line is not None:
        end_of_code = _end_of_code_around(blank_line.start(), code)
        if end_of_code is None:
            return blank_line.end()
        if end_of_code >= limit:
            break
        blank_line = _BLANK_LINE.search(text, end_of_code, limit)

    if len(text) <= limit:
        return len(text)
    line_end = text.rfind("\n", position, limit)
    return limit if line_end < 0 else line_end + 1


def _spans_of_code(text: str) -> list[tuple[int, int]]:
    """Return where the fenced blocks of code begin and end, in their order."""
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


def _end_of_code_around(position: int, code: list[tuple[int, int]]) -> int | None:
    """Return where the code ends that a position is in, None if it is in none."""
    index = bisect_right(code, (position, position)) - 1
    if index >= 0 and code[index][0] <= position < code[index][1]:
        return code[index][1]
    return None


def _definitions_in(text: str, start: int, end: int) -> str:
    """Return the lines outside of a part that define footnotes and addresses of links.

    They are needed where the part refers to them. At most 40,000 characters are returned.
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
