"""Attributes of an observation or a relation, in a comment at the end of its line.

They look like `%% confidence=0.8 at=2026-11-19 %%`: a text without spaces is written without
quotes, every other value as JSON. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_MARK: Final = "%%"  # begins and ends a comment
_ATTRIBUTE: Final = re.compile(r"\s*([A-Za-z][\w-]*)=(\"(?:[^\"\\]|\\.)*\"|[^\s%\"]\S*)")
_WORD: Final = re.compile(r"(?!\S*%%)[^\s%\"{\[]\S*")  # without the mark, anywhere in it


def format_attributes(attributes: Mapping[str, Any]) -> str:
    """Return the comment with these attributes, after a space; "" for no attributes.

    The values are of JSON's types. `split_attributes` returns the same ones from the comment.
    """
    if not attributes:
        return ""

    comment = ""
    for key, value in attributes.items():
        comment += f"{key}={_format_value(value)} "
    return f" {_MARK} {comment}{_MARK}"


def split_attributes(line: str) -> tuple[str, dict[str, Any]]:
    """Return a line without the comment at its end, and the attributes in that comment.

    A line that does not end with a comment, or whose comment contains anything but attributes, is
    returned unchanged, with {}.
    """
    start = _comment_start(line)
    if start is None:
        return line, {}

    attributes: dict[str, Any] = {}
    position = start + len(_MARK)
    end = len(line) - len(_MARK)
    match = _ATTRIBUTE.match(line, position, end)
    while match is not None:
        attributes[match[1]] = _parse_value(match[2])
        position = match.end()
        match = _ATTRIBUTE.match(line, position, end)

    has_other_text = line[position:end].strip()
    if has_other_text or not attributes:
        return line, {}
    return line[:start].rstrip(), attributes


def _comment_start(line: str) -> int | None:
    """Return where the comment at the end of a line begins.

    None if there is no comment, or if it follows a word without a space.
    """
    if not line.endswith(_MARK):
        return None
    start = line.rfind(_MARK, 0, -len(_MARK))
    if start < 0:
        return None
    if start > 0 and not line[start - 1].isspace():
        return None
    return start


def _format_value(value: Any) -> str:
    """Return a word as it is, and any other value as JSON without spaces and without `%`."""
    if isinstance(value, str) and _is_word(value):
        return value
    encoded = json.dumps(value, separators=(",", ":"))
    return encoded.replace(" ", "\\u0020").replace("%", "\\u0025")


def _is_word(value: str) -> bool:
    """Return whether `_parse_value` returns a text unchanged, so that it needs no quotes.

    The text "1" is no word, because it would be parsed as a number.
    """
    if not _WORD.fullmatch(value) or not value.isprintable():
        return False
    is_same: bool = _parse_value(value) == value
    return is_same


def _parse_value(value: str) -> Any:
    """Return the value of JSON, or the text itself if it is not JSON."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
