"""Tables: the alignment of columns as classes, because the page forbids `style`."""

from __future__ import annotations

from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

_CLASSES: Final = {  # by the attribute `style` that the parser gives to a cell
    "text-align:left": "align-left",
    "text-align:center": "align-center",
    "text-align:right": "align-right",
}


def add_rules(parser: MarkdownIt) -> None:
    """Add the rule that gives cells a class instead of their style to a parser."""
    parser.core.ruler.push("table_alignment", _align_cells)


def _align_cells(state: StateCore) -> None:
    """Replace the style of each cell by a class."""
    for token in state.tokens:
        if token.type in ("th_open", "td_open"):
            style = str(token.attrs.pop("style", ""))
            if style in _CLASSES:
                token.attrSet("class", _CLASSES[style])
