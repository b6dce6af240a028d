"""The blocks of a Markdown body: from the scanner where it is sure, else from `markdown-it-py`. Pure; no
inline markup.

The parser recurses and looks at a line once for every quote around it, so what is too deep or too long for it
is read by plain rules (fences, headings, list marks, empty lines) instead: nothing in a note may stall the
program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from simplemem.note.scan import Leaf, scan_blocks, trimmed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block.state_block import StateBlock

MOST_NESTING = 60
MOST_CHARACTERS = 400_000
_DEEP = re.compile(r"(?:>[-+*0-9.) \t]{0,12}+){8}")
_SMALL = 4096


def find_blocks(lines: Sequence[str]) -> list[Leaf]:
    """The leaves of these lines, in order."""
    leaves = scan_blocks(lines)
    if leaves is not None:
        return leaves
    size = sum(map(len, lines)) + len(lines)
    if size > MOST_CHARACTERS or (size > _SMALL and any(_DEEP.search(line) for line in lines)):
        return plain_blocks(lines, 0, len(lines))
    return parse_blocks(lines)


def parse_blocks(lines: Sequence[str]) -> list[Leaf]:
    """The leaves as `markdown-it-py` finds them, and by plain rules where it gave up (nested too deep)."""
    tokens = _parser().parse("\n".join(lines))
    leaves: list[Leaf] = []
    containers: list[str] = []
    reached = 0
    before = ""
    for token in tokens:
        if token.nesting < 0 and containers and token.type.startswith(containers[-1]):
            containers.pop()
        elif token.type in ("list_item_open", "blockquote_open"):
            containers.append(token.type.removesuffix("_open"))
        kind = _KINDS.get(token.type)
        if kind is not None and token.map is not None:
            if kind == "paragraph" and containers:
                if containers[-1] == "blockquote":
                    kind = "quote"
                elif before == "list_item_open":
                    kind = "item"
            leaf = Leaf(kind, token.map[0], token.map[1], int(token.tag[1]) if kind == "heading" else 0)
            leaves += _gap(lines, reached, leaf.first)
            leaves.append(trimmed(lines, leaf) if token.type in ("fence", "html_block") else leaf)
            reached = leaf.end
        before = token.type
    return leaves + _gap(lines, reached, len(lines))


_KINDS = {
    "paragraph_open": "paragraph",
    "heading_open": "heading",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "table_open": "table",
    "math_block": "math",
    "definition": "definition",
    "hr": "rule",
}

_EMPTY = re.compile(r"[ \t]*+(?:(?:>|[-+*](?=[ \t]|$)|[0-9]{1,9}[.)](?=[ \t]|$))[ \t]*+)*+$")


def _gap(lines: Sequence[str], first: int, end: int) -> list[Leaf]:
    """Lines between two leaves hold nothing but marks, unless the parser gave up on them."""
    if all(_EMPTY.match(line) for line in lines[first:end]):
        return []
    return plain_blocks(lines, first, end)


_PLAIN_MARKS = re.compile(r"[ \t>]*+")
_PLAIN_ITEM = re.compile(r"(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]|$)")
_PLAIN_HEADING = re.compile(r"(#{1,6})(?:[ \t]|$)")
_PLAIN_FENCE = re.compile(r"(?:`{3,}(?=[^`]*$)|~{3,})")


def plain_blocks(lines: Sequence[str], first: int, end: int) -> list[Leaf]:
    """Leaves by rules that look at one line at a time, for what is beyond the parser."""
    leaves: list[Leaf] = []
    start, kind, fence = -1, "paragraph", ""

    def close(number: int) -> None:
        nonlocal start
        if start >= 0:
            leaves.append(trimmed(lines, Leaf(kind, start, number)))
        start = -1

    for number in range(first, end):
        line = lines[number]
        at = _PLAIN_MARKS.match(line).end()  # type: ignore[union-attr]  # it matches everything
        if fence:
            rest = line[at:].rstrip(" \t")
            if len(rest) >= len(fence) and not rest.strip(fence[0]):
                close(number + 1)
                fence = ""
        elif at == len(line):
            close(number)
        elif (mark := _PLAIN_FENCE.match(line, at)) is not None:
            close(number)
            start, kind, fence = number, "code", mark[0]
        elif (mark := _PLAIN_HEADING.match(line, at)) is not None:
            close(number)
            leaves.append(Leaf("heading", number, number + 1, len(mark[1])))
        elif _PLAIN_ITEM.match(line, at):
            close(number)
            start, kind = number, "item"
        elif start < 0:
            start, kind = number, "paragraph"
    close(end)
    return leaves


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import reference

    def definition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
        # A footnote's text holds links (obsidian.md §1.2); to CommonMark "[^1]: [[x]]" would be a link
        # definition.
        if state.src.startswith("[^", state.bMarks[first] + state.tShift[first]):
            return False
        return reference(state, first, end, silent)

    parser = MarkdownIt("commonmark", {"maxNesting": MOST_NESTING, "inline_definitions": True}).enable("table")
    parser.block.ruler.at("reference", definition)
    parser.block.ruler.before("fence", "math", _math, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _math(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A line `$$` opens a block up to the next `$$`, over empty lines and whatever looks like a list."""
    if state.is_code_block(first):
        return False
    begins = state.bMarks[first] + state.tShift[first]
    if not state.src.startswith("$$", begins) or "$$" in state.src[begins + 2 : state.eMarks[first]]:
        return False
    if silent:
        return True
    for number in range(first + 1, end):
        outdented = state.sCount[number] < state.blkIndent
        if outdented and not state.isEmpty(number):
            return False
        if "$$" in state.src[state.bMarks[number] : state.eMarks[number]]:
            state.line = number + 1
            token = state.push("math_block", "", 0)
            token.map = [first, state.line]
            return True
    return False
