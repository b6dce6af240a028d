"""The ends of lines. Pure.

As in CommonMark, a line ends at LF, CRLF or a lone CR.
"""

from __future__ import annotations

import re
from typing import Final

BYTE_ORDER_MARK: Final = "\ufeff"
LINE_END: Final = re.compile(r"\r\n?|\n")


def count_lines(text: str, start: int, end: int) -> int:
    """Return how many lines end between two offsets."""
    if text.find("\r", start, end) < 0:
        return text.count("\n", start, end)
    return sum(1 for _ in LINE_END.finditer(text, start, end))


def newline_of(text: str) -> str:
    """Return the first line end of a text, or a line feed if it has none."""
    line_end = LINE_END.search(text)
    return line_end[0] if line_end else "\n"
