"""YAML values: nodes with their places in the text, and the scalars of YAML 1.2 core. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

CoreValue = str | int | float | bool | None

# Python refuses to convert numbers of more than 4,300 digits. Longer ones than this stay text.
_MAX_DIGITS: Final = 3_000
_CORE_FIRST: Final = frozenset("~nNtTfF+-.0123456789")
_CORE_WORDS: Final[dict[str, bool | float | None]] = {
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    ".inf": math.inf,
    ".Inf": math.inf,
    ".INF": math.inf,
    "+.inf": math.inf,
    "+.Inf": math.inf,
    "+.INF": math.inf,
    "-.inf": -math.inf,
    "-.Inf": -math.inf,
    "-.INF": -math.inf,
    ".nan": math.nan,
    ".NaN": math.nan,
    ".NAN": math.nan,
}
_NUMBER: Final = re.compile(
    r"(?P<decimal>[-+]?[0-9]+)"
    r"|0o(?P<octal>[0-7]+)"
    r"|0x(?P<hexadecimal>[0-9a-fA-F]+)"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)


class RefusedError(Exception):
    """Raised for YAML that is not supported as a header; `offset` counts from the note's start."""

    def __init__(self, message: str, offset: int) -> None:
        self.message = message
        self.offset = offset


class Node(NamedTuple):
    """A value and its place in the text. Offsets count the characters of the whole note."""

    style: str  # "" plain, "'", '"', "|", ">": a scalar; "-" and "[": a list; ":" and "{": a map
    value: Any
    start: int
    end: int  # a block scalar ends with its last line, without the line break
    children: tuple[Node, ...] = ()  # the items of a list; key, value, key, value ... of a map

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Iterate over the keys and values of a map."""
        nodes = iter(self.children)
        return zip(nodes, nodes, strict=True)


class Document(NamedTuple):
    """A YAML document: its root, None if it has only comments and blanks, and where it ends."""

    root: Node | None
    end: int


def parse_plain_scalar(text: str) -> CoreValue:
    """Return the value of a plain scalar in YAML 1.2 core; dates, `yes` and `12:30` are text."""
    if not text:
        return None
    if text[0] not in _CORE_FIRST:
        return text
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    if len(text) > _MAX_DIGITS:
        return text

    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    if number["decimal"]:
        return int(number["decimal"])
    if number["octal"]:
        return int(number["octal"], 8)
    if number["hexadecimal"]:
        return int(number["hexadecimal"], 16)
    return float(text)


def equal_in_yaml(one: object, other: object) -> bool:
    """Return whether two values are equal in YAML.

    1, 1.0 and true differ, .nan equals itself, and the order of keys counts.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal_in_yaml, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(equal_in_yaml, one.values(), other.values()))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)
