"""How long a text is to its reader: the letters between the marks. Pure.

SM-16: text nodes only, the end of a block counts as a space, code blocks and raw HTML count nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_PARSED = 100_000
"""Characters beyond which a text is not taken apart: it is too long for any limit that is meant."""

_BREAKS = frozenset({"softbreak", "hardbreak"})
_READ = _BREAKS | {"text", "code_inline"}


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 40})


def plain_length(text: str) -> int:
    """Characters of plain text in a Markdown text."""
    if len(text) > _PARSED:
        return len(text)
    inlines = [token.children or [] for token in _parser().parse(text) if token.type == "inline"]
    letters = sum(
        1 if child.type in _BREAKS else len(child.content) for line in inlines for child in line if child.type in _READ
    )
    return letters + max(0, len(inlines) - 1)
