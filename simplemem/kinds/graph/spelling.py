"""Any string at all on one line of a note, and back: as it is where it reads well, as a JSON literal where it must be.

A line of Markdown cannot carry a newline, a space at its end, half a character or the marks of a comment. What cannot
stand as it is stands as `"…"`, all in ASCII; so what begins with a quotation mark is always written that way. A hidden
comment behind a bullet, `%% confidence=0.8 at=2026-11-19 %%`, holds attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_DECODER: Final = json.JSONDecoder()
# What would begin a block of its own inside a list item: a heading, a fence, HTML, a quote, a list, a table, a rule.
_BLOCK: Final = re.compile(
    r"#{1,6}(?:\s|$)|```|~~~|[<>|]|[-+*](?:\s|$)|\d{1,9}[.)](?:\s|$)|[-_*](?:[ ]?[-_*]){2,}$|\$\$"
)
_ATTRIBUTE: Final = re.compile(r"\s*([A-Za-z][\w-]*)=(\"(?:[^\"\\]|\\.)*\"|[^\s%\"]\S*)")
_BARE: Final = re.compile(r"[^\s%\"{\[]\S*")


def spell(text: str) -> str:
    """A text on one line, as it is if that reads back as the same."""
    return text if is_plain(text) else literal(text)


def is_plain(text: str) -> bool:
    """Whether a text may stand on a line of a list as it is."""
    if not text or not text.isprintable() or text != text.strip():
        return False
    return text[0] != '"' and "%%" not in text and not _BLOCK.match(text)


def literal(text: str) -> str:
    """A text as a JSON string, all in ASCII."""
    return json.dumps(text).replace("%%", "\\u0025\\u0025")


def read(line: str) -> str:
    """The text that a line says. A person's line that only looks like a literal is what it is."""
    text, end = literal_in(line)
    return text if text is not None and end == len(line) else line


def literal_in(line: str) -> tuple[str | None, int]:
    """The JSON string a line begins with, and where it ends; None when it begins with none."""
    try:
        return _DECODER.raw_decode(line) if line.startswith('"') else (None, 0)
    except ValueError:
        return None, 0


def spell_type(text: str) -> str:
    """The type of a relation as it stands before a link."""
    plain = is_plain(text) and "[[" not in text and '"' not in text and not text.startswith("[")
    return text if plain else literal(text)


def spell_attributes(attributes: Mapping[str, Any]) -> str:
    """The comment that holds attributes, with the space before it; nothing for none."""
    said = " ".join(f"{key}={_spelled(value)}" for key, value in attributes.items())
    return f" %% {said} %%" if said else ""


def _spelled(value: Any) -> str:
    """A number or a word as it is, everything else as JSON without a space or a mark that ends the comment."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.isprintable() and _read_value(value) == value:
        return value
    return json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020").replace("%", "\\u0025")


def _read_value(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def split_attributes(line: str) -> tuple[str, dict[str, Any]]:
    """A line without the attributes at its end, and those: all that stands between the last two marks. One is read
    after the other, since a pattern for all of them would try every way to divide them."""
    at, end = line.rfind("%%", 0, -2) if line.endswith("%%") else -1, len(line) - 2
    if at < 0 or (at and not line[at - 1].isspace()):
        return line, {}
    found: dict[str, Any] = {}
    behind = at + 2
    while (told := _ATTRIBUTE.match(line, behind, end)) is not None:
        found[told[1]] = _read_value(told[2])
        behind = told.end()
    return (line[:at].rstrip(), found) if found and not line[behind:end].strip() else (line, {})
