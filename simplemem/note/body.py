"""What stands in a note's body: headings, blocks, links, tags, tasks, block ids, each with its place. Pure.

Blocks are CommonMark's (`blocks.py`), links and tags Obsidian's (`inline.py`). Offsets are into the whole text
of the note, lines are counted from 1 in the whole file. Nothing here knows what a link leads to.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from simplemem.note.blocks import SPACES, Leaf, find_blocks
from simplemem.note.header import Scalar
from simplemem.note.inline import InlineScanner, InlineTag, Link, read_value_link


class Heading(NamedTuple):
    """A heading: its text without the marks around it. `end` is the end of its own line or lines."""

    level: int
    text: str
    line: int
    start: int
    end: int


class Block(NamedTuple):
    """A piece of the body: paragraph, item, quote, heading, table, code, math, html or definition.

    It begins after the indent of its first line, with the marks that stand there, and ends before its last
    line's end. `heading` is the index of the heading it stands under (a heading's own), -1 above the first.
    """

    kind: str
    start: int
    end: int
    line: int
    heading: int


class Task(NamedTuple):
    """A list item with a box. `status` is the character in the box."""

    text: str
    status: str
    line: int
    start: int
    end: int


class Body(NamedTuple):
    """Everything found in a body, in the order it stands there. `block_ids` are (id, line) pairs."""

    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    links: tuple[Link, ...]
    tags: tuple[InlineTag, ...]
    tasks: tuple[Task, ...]
    block_ids: tuple[tuple[str, int], ...]
    start: int = 0


_LINE_END = re.compile(r"\r\n?|\n")
_MARKS = r"[ \t]*+(?:(?:>|[-+*](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))[ \t]*+)*+"
_HEADING = re.compile(rf"{_MARKS}(#{{1,6}})(?:[ \t]|$)")
_LEADING_MARKS = re.compile(_MARKS)
_QUOTE_MARKS = re.compile(r"[ \t>]*+")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_TASK = re.compile(rf"{_MARKS}(?<=[ \t])\[(.)\](?:[ \t]+(.*))?$", re.DOTALL)
_BLOCK_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]+)[ \t]*$")
_ID_ALONE = re.compile(r"[ \t>]*+\^([A-Za-z0-9-]+)[ \t]*$")

_WITH_TEXT = frozenset({"paragraph", "item", "quote", "heading", "math"})
_WITH_IDS = frozenset({"paragraph", "item", "quote", "heading", "table"})


def read_body(text: str, start: int) -> Body:
    """The facts of the body that begins at `start`. Never raises; time grows with the length of the text."""
    if start == 0 and text.startswith("\ufeff"):
        start = 1
    lines, starts = _split(text, start)
    first_line = 1 + count_lines(text, 0, start)
    scanner = InlineScanner(text, starts, first_line)
    headings: list[Heading] = []
    blocks: list[Block] = []
    tasks: list[Task] = []
    ids: list[tuple[str, int]] = []
    has_ids = text.find("^", start) >= 0
    for leaf in find_blocks(lines):
        kind, first, end, level = leaf
        if kind == "rule":
            continue
        line = lines[first]
        begins = starts[first] + len(line) - len(line.lstrip(" \t"))
        ends = starts[end - 1] + len(lines[end - 1].rstrip(" \t"))
        if kind == "heading":
            headings.append(Heading(level, _heading_text(lines, leaf), first + first_line, begins, ends))
        if kind in _WITH_TEXT:
            # In a heading on one line with nothing but its marks there is nothing.
            if kind != "heading" or end - first > 1 or "[" in line or line.count("#") != level:
                scanner.read(starts[first], ends)
            if kind == "item" and (task := _TASK.match(line)) is not None:
                said = (task[2] or "").strip()
                tasks.append(Task(said, task[1], first + first_line, begins, starts[first] + len(line)))
        elif kind == "table":
            for row in range(first, end):
                scanner.read_row(starts[row], starts[row] + len(lines[row]))
        if has_ids and kind in _WITH_IDS and (found := _BLOCK_ID.search(lines[end - 1])) is not None:
            ids.append((found[1], end - 1 + first_line))
        blocks.append(Block(kind, begins, ends, first + first_line, len(headings) - 1))
    inline = tuple(scanner.links), tuple(scanner.tags)
    return Body(tuple(headings), tuple(blocks), *inline, tuple(tasks), tuple(ids), start)


def _split(text: str, start: int) -> tuple[list[str], list[int]]:
    """The lines from `start` on and where each begins. Lines end at LF, CRLF or a lone CR."""
    if text.find("\r", start) < 0:
        lines = text[start:].split("\n")
        ends = accumulate((len(line) + 1 for line in lines), initial=start)
        return lines, list(ends)[:-1]
    lines, starts, at = [], [start], start
    for found in _LINE_END.finditer(text, start):
        lines.append(text[at : found.start()])
        at = found.end()
        starts.append(at)
    lines.append(text[at:])
    return lines, starts


def count_lines(text: str, start: int, end: int) -> int:
    """How many lines end between two offsets."""
    if text.find("\r", start, end) < 0:
        return text.count("\n", start, end)
    return sum(1 for _ in _LINE_END.finditer(text, start, end))


def _heading_text(lines: Sequence[str], leaf: Leaf) -> str:
    """What a heading says, without the marks of the heading and of what it stands in."""
    found = _HEADING.match(lines[leaf.first]) if leaf.end == leaf.first + 1 else None
    if found is not None:
        return _CLOSING_HASHES.sub("", lines[leaf.first][found.end() :]).strip(SPACES)
    marks = _LEADING_MARKS.match(lines[leaf.first])[0]  # type: ignore[index]  # it matches everything
    more = lines[leaf.first + 1 : leaf.end - 1]
    if ">" in marks:
        more = [_QUOTE_MARKS.sub("", line, count=1) for line in more]
    return " ".join(part.strip(SPACES) for part in (lines[leaf.first][len(marks) :], *more)).strip(SPACES)


def read_property_links(text: str, scalars: Iterable[Scalar]) -> tuple[Link, ...]:
    """The links in a header: values that are one link and nothing else (obsidian.md §1.3)."""
    found = ((read_value_link(scalar.value), scalar) for scalar in scalars)
    return tuple(
        link.in_property(scalar, 1 + count_lines(text, 0, scalar.start)) for link, scalar in found if link is not None
    )


def find_section(text: str, body: Body, wanted: str) -> tuple[int, int] | None:
    """The span of a section ("Heading", "#Heading#Sub", or "Heading > Sub" as hits say it) or of the block with an id
    ("^id"), or None."""
    found = _find_section(text, body, wanted)
    return _find_section(text, body, wanted.replace(" > ", "#")) if found is None and " > " in wanted else found


def _find_section(text: str, body: Body, wanted: str) -> tuple[int, int] | None:
    parts = [part for part in wanted.split("#") if part.strip()]
    if not parts:
        return None
    if parts[-1].strip().startswith("^"):
        return _find_block(text, body, parts[-1].strip()[1:])
    after, until, found = -1, len(body.headings), None
    for part in parts:
        key = _heading_key(part)
        found = next((k for k in range(after + 1, until) if _heading_key(body.headings[k].text) == key), None)
        if found is None:
            return None
        after, until = found, _section_end(body, found)
    assert found is not None
    end = body.headings[until].start if until < len(body.headings) else len(text)
    return body.headings[found].start, end


def _section_end(body: Body, heading: int) -> int:
    """The index of the heading that ends a section: the next of its level or above."""
    level = body.headings[heading].level
    for k in range(heading + 1, len(body.headings)):
        if body.headings[k].level <= level:
            return k
    return len(body.headings)


def _heading_key(text: str) -> str:
    """Headings are compared without case, ASCII punctuation and double spaces (obsidian.md §1.1)."""
    return " ".join(re.sub(r"[!-/:-@\[-`{-~]", " ", text).casefold().split())


def _find_block(text: str, body: Body, wanted: str) -> tuple[int, int] | None:
    line = next((line for name, line in body.block_ids if name.casefold() == wanted.casefold()), None)
    if line is None:
        return None
    k = bisect_right([block.line for block in body.blocks], line) - 1
    block = body.blocks[k]
    if k > 0 and _ID_ALONE.fullmatch(text[block.start : block.end]):
        return body.blocks[k - 1].start, block.end  # an id alone on its line names the block before it
    return block.start, block.end
