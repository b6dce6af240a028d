"""Texts on one line of a note.

A text stands there as it is if it reads back as the same text, else as a literal, which is a JSON
string in ASCII. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

_DECODER: Final = json.JSONDecoder()

# What would begin a block of its own inside a list item.
_BLOCK_START: Final = re.compile(
    r"#{1,6}(?:\s|$)|```|~~~|[<>|]|[-+*](?:\s|$)|\d{1,9}[.)](?:\s|$)|[-_*](?:[ ]?[-_*]){2,}$|\$\$"
)


class LeadingLiteral(NamedTuple):
    """The text of a literal at the start of a line, and the position at which the literal ends."""

    text: str
    end: int


def format_text(text: str) -> str:
    """Return a text as it stands on a line, from which `parse_text` returns the same text."""
    return text if is_plain(text) else format_literal(text)


def format_literal(text: str) -> str:
    """Return a text as a JSON string in ASCII, without `%%`, which would begin a comment."""
    return json.dumps(text).replace("%%", "\\u0025\\u0025")


def is_plain(text: str) -> bool:
    """Return whether a text can stand on a line of a list as it is.

    It cannot if it is empty, has characters that are not printable or spaces at an end, contains
    the mark of a comment, or begins like a literal or like a Markdown block.
    """
    if not text or not text.isprintable() or text != text.strip():
        return False
    return text[0] != '"' and "%%" not in text and not _BLOCK_START.match(text)


def parse_text(line: str) -> str:
    """Return the text of a line that is one literal, and any other line unchanged."""
    text = parse_literal(line)
    return line if text is None else text


def parse_literal(line: str) -> str | None:
    """Return the text of a line that is one literal, None for any other line."""
    literal = leading_literal(line)
    if literal is None or literal.end != len(line):
        return None
    return literal.text


def leading_literal(line: str) -> LeadingLiteral | None:
    """Return the literal that a line begins with; None if it begins with none or never ends."""
    if not line.startswith('"'):
        return None
    try:
        text, end = _DECODER.raw_decode(line)
    except ValueError:
        return None
    return LeadingLiteral(text, end)
