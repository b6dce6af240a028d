"""Blocks as `markdown-it-py` finds them: the measure of the scanner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import reference
from markdown_it.rules_block.state_block import StateBlock

from simplemem.note.blocks import MAX_CONTAINERS, BlockScanner, Leaf, trim_leaf


def parse_blocks(lines: Sequence[str]) -> list[Leaf] | None:
    """The leaves as `markdown-it-py` finds them, None where it gave up (nested too deep)."""
    tokens = _parser().parse("\n".join(lines))
    leaves: list[Leaf] = []
    containers: list[str] = []
    passed: list[str] = []
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
            leaf = Leaf(
                kind, token.map[0], token.map[1], int(token.tag[1]) if kind == "heading" else 0
            )
            passed += lines[reached : leaf.first]
            leaves.append(trim_leaf(lines, leaf) if token.type in ("fence", "html_block") else leaf)
            reached = leaf.end
        before = token.type
    passed += lines[reached:]
    # What it passed over holds nothing but marks, unless it gave up there.
    return leaves if all(map(_EMPTY.match, passed)) else None


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
    """A line `$$` opens a block up to the next `$$`, over empty lines and whatever looks like a list."""
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
    """The scanner, and whether it met one of the corners in which `markdown-it-py` and CommonMark differ."""

    sure = True

    def _read_line(self, number: int, line: str) -> None:
        # A tab after a mark is as wide as the mark lets it be; a quote indented by four is code to CommonMark alone.
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
