"""Blocks as `markdown-it-py` finds them, with which the tests compare the scanner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import reference
from markdown_it.rules_block.state_block import StateBlock

from simplemem.note.blocks import MAX_CONTAINERS, BlockScanner, Leaf, trim_leaf


def parse_blocks(lines: Sequence[str]) -> list[Leaf] | None:
    """Return the leaves as `markdown-it-py` finds them, or None at its depth limit."""
    tokens = _parser().parse("\n".join(lines))
    leaves: list[Leaf] = []
    containers: list[str] = []
    skipped_lines: list[str] = []
    read_lines = 0
    previous_type = ""
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
                elif previous_type == "list_item_open":
                    kind = "item"
            level = int(token.tag[1]) if kind == "heading" else 0
            leaf = Leaf(kind, token.map[0], token.map[1], level)
            skipped_lines += lines[read_lines : leaf.first]
            read_lines = leaf.end
            if token.type in ("fence", "html_block"):
                leaf = trim_leaf(lines, leaf)
            leaves.append(leaf)
        previous_type = token.type
    skipped_lines += lines[read_lines:]

    # Lines between leaves have only marks, unless the parser stopped at its depth limit.
    return leaves if all(map(_EMPTY.match, skipped_lines)) else None


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


@cache
def _parser() -> MarkdownIt:
    def definition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
        # A footnote's text holds links in Obsidian; to CommonMark "[^1]: [[x]]" would be a link
        # definition.
        if state.src.startswith("[^", state.bMarks[first] + state.tShift[first]):
            return False
        return reference(state, first, end, silent)

    parser = MarkdownIt(
        "commonmark", {"maxNesting": MAX_CONTAINERS + 10, "inline_definitions": True}
    ).enable("table")
    parser.block.ruler.at("reference", definition)
    parser.block.ruler.before(
        "fence", "math", _math, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _math(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Read a block from a line `$$` to the next `$$`, with any lines between them."""
    if state.is_code_block(first):
        return False
    begins = state.bMarks[first] + state.tShift[first]
    if (
        not state.src.startswith("$$", begins)
        or "$$" in state.src[begins + 2 : state.eMarks[first]]
    ):
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


class Watched(BlockScanner):
    """The scanner, and whether `markdown-it-py` and CommonMark surely agree about the text."""

    sure = True

    def _read_line(self, number: int, line: str) -> None:
        # The width of a tab after a marker depends on the marker. A quote that is indented by four
        # is code in CommonMark only.
        in_doubt = ">" in line and ("\t" in line or (-1 in self.stack and "    >" in line))
        self.sure = self.sure and not in_doubt
        super()._read_line(number, line)

    def _begin_blocks(self) -> None:
        is_lazy = self._is_lazy()
        self.sure = self.sure and not (
            is_lazy and self.indent >= 4
        )  # the parser counts from the item
        super()._begin_blocks()

    def _add_math(self) -> bool:
        starts_math = self.line.startswith("$$", self.offset)
        self.sure = self.sure and not (self.matched and starts_math)
        return super()._add_math()

    def _begin_table(self) -> bool:
        is_plain = (
            self.open == "paragraph"
            and not self._is_lazy()
            and not self.is_lazy_line
            and self.entered_line != self.number - 1
        )
        may_be = (
            self.number > 0
            and self.open != "table"
            and "|" in self.lines[self.number - 1]
            and _DELIMITERS.match(self.line, self.offset)
        )
        self.sure = self.sure and (is_plain or not may_be)
        return super()._begin_table()

    def _is_definition(self) -> bool:
        begins = super()._is_definition()
        no_definition = _NO_DEFINITION.match(self.line, self.offset)
        self.sure = self.sure and (begins or no_definition is not None)
        return begins


_DELIMITERS = re.compile(r"(?:[|:][-|: \t]|-[-|:])[-|: \t]*$")
_NO_DEFINITION = re.compile(
    r"\[(?:\^|(?:[^\[\]\\]|\\.)*(?:\[|\](?!:)))"
)  # a footnote, or brackets without a colon
