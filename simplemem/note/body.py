"""The contents of a body: headings, blocks, links, tags and block ids, with their places. Pure.

Blocks are those of CommonMark (`blocks.py`), links and tags those of Obsidian (`inline.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from simplemem.note.blocks import SPACES, BlockScanner, Leaf
from simplemem.note.inline import QUOTE_MARKS, InlineScanner, Link
from simplemem.note.lines import BYTE_ORDER_MARK, LINE_END, count_lines

# The marks of the quotes and list items that a line stands in, and those of a heading.
_MARKS = r"[ \t]*+(?:(?:>|[-+*](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))[ \t]*+)*+"
_LEADING_MARKS = re.compile(_MARKS)
_ATX_START = re.compile(rf"{_MARKS}#{{1,6}}(?:[ \t]|$)")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_BLOCK_ID = re.compile(r"(?:^|[ \t])\^(?P<id>[A-Za-z0-9-]+)[ \t]*$")

_KINDS_WITH_TEXT = frozenset({"paragraph", "item", "quote", "heading", "math"})
_KINDS_WITH_IDS = frozenset({"paragraph", "item", "quote", "heading", "table"})


class Heading(NamedTuple):
    """A heading: its text without the marks around it. It ends with its own line or lines."""

    level: int
    text: str
    line: int
    start: int
    end: int


class Block(NamedTuple):
    """A piece of the body: its kind, and where it stands."""

    kind: str  # paragraph, item, quote, heading, table, code, math, html or definition
    start: int  # after the indent of its first line
    end: int
    line: int
    heading: int  # the index of the one it stands under (a heading's own), -1 above the first


class Body(NamedTuple):
    """The contents of a body, each kind in the order of the text."""

    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    links: tuple[Link, ...]
    tags: tuple[str, ...]  # without their hashes
    block_ids: tuple[tuple[str, int], ...]  # pairs of id and line
    start: int = 0
    tag_lines: tuple[int, ...] = ()  # the line of each tag


def read_body(text: str, start: int) -> Body:
    """Return the contents of the body that begins at `start`, with places in the whole text.

    Any text is a body: this never raises. The time is proportional to the length of the text.
    """
    if start == 0 and text.startswith(BYTE_ORDER_MARK):
        start = 1
    lines, line_starts = _split_lines(text, start)
    first_line = 1 + count_lines(text, 0, start)
    scanner = InlineScanner(text, line_starts, first_line)

    headings: list[Heading] = []
    blocks: list[Block] = []
    block_ids: list[tuple[str, int]] = []
    for leaf in BlockScanner(lines).read():
        kind, first, end, level = leaf
        if kind == "rule":
            continue

        line = lines[first]
        last_line = lines[end - 1]
        block_start = line_starts[first] + len(line) - len(line.lstrip(" \t"))
        block_end = line_starts[end - 1] + len(last_line.rstrip(" \t"))
        line_number = first + first_line

        if kind == "heading":
            heading = Heading(
                level=level,
                text=_heading_text(lines, leaf),
                line=line_number,
                start=block_start,
                end=block_end,
            )
            headings.append(heading)
        block = Block(
            kind=kind,
            start=block_start,
            end=block_end,
            line=line_number,
            heading=len(headings) - 1,
        )
        blocks.append(block)

        _read_inline(scanner, lines, leaf, block_end)
        block_id = _find_block_id(kind, last_line)
        if block_id is not None:
            last_line_number = end - 1 + first_line
            block_ids.append((block_id, last_line_number))

    # A link that is the text of another is complete before the other, and so precedes it.
    links = sorted(scanner.links, key=lambda link: link.start)
    tags = sorted(scanner.tags)
    return Body(
        headings=tuple(headings),
        blocks=tuple(blocks),
        links=tuple(links),
        tags=tuple(name for _, name in tags),
        block_ids=tuple(block_ids),
        start=start,
        tag_lines=tuple(scanner.line_of(offset) for offset, _ in tags),
    )


def _read_inline(scanner: InlineScanner, lines: Sequence[str], leaf: Leaf, block_end: int) -> None:
    """Collect the links and tags of a block, whose last line has its text up to `block_end`."""
    kind, first, end, level = leaf
    if kind in _KINDS_WITH_TEXT:
        # For speed: most blocks have neither brackets nor hashes, except those of a heading.
        line = lines[first]
        if end > first + 1 or "[" in line or line.count("#") != level:
            scanner.read(scanner.line_starts[first], block_end)
    elif kind == "table":
        for row in range(first, end):
            row_start = scanner.line_starts[row]
            scanner.read_row(row_start, row_start + len(lines[row]))


def _find_block_id(kind: str, last_line: str) -> str | None:
    """Return the id at the end of a block, without its caret; None if it has none."""
    if "^" not in last_line or kind not in _KINDS_WITH_IDS:
        return None
    block_id = _BLOCK_ID.search(last_line)
    if block_id is None:
        return None
    return block_id["id"]


def _split_lines(text: str, start: int) -> tuple[list[str], list[int]]:
    """Return the lines from `start` on, without their ends, and where each of them begins.

    As in CommonMark, lines end at LF, CRLF or a lone CR.
    """
    if text.find("\r", start) < 0:  # for speed
        lines = text[start:].split("\n")
        lengths = (len(line) + 1 for line in lines)
        line_starts = list(accumulate(lengths, initial=start))
        return lines, line_starts[:-1]

    lines = []
    line_starts = [start]
    for line_end in LINE_END.finditer(text, start):
        lines.append(text[line_starts[-1] : line_end.start()])
        line_starts.append(line_end.end())
    lines.append(text[line_starts[-1] :])
    return lines, line_starts


def _heading_text(lines: Sequence[str], leaf: Leaf) -> str:
    """Return the text of a heading without its own marks and those of its containers."""
    line = lines[leaf.first]
    if leaf.end == leaf.first + 1:
        atx_start = _ATX_START.match(line)
        if atx_start is not None:
            return _CLOSING_HASHES.sub("", line[atx_start.end() :]).strip(SPACES)

    # A heading that is underlined may have several lines. Its last line is the underline.
    first_text = _LEADING_MARKS.sub("", line, count=1)
    further_lines = lines[leaf.first + 1 : leaf.end - 1]
    is_quoted = ">" in line.removesuffix(first_text)
    if is_quoted:
        further_lines = [QUOTE_MARKS.sub("", text, count=1) for text in further_lines]

    parts = [part.strip(SPACES) for part in (first_text, *further_lines)]
    return " ".join(parts).strip(SPACES)
