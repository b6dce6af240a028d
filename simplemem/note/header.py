"""The header of a note: its properties, and where each of them stands. Pure; it reads and never changes.

A header is what stands between `---` on line 1 and the next `---` (obsidian.md §3.1). Reading never raises and never
stalls; a header that cannot be read says why and where in `problem`. Changing a property is the work of `properties.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from simplemem.note.yaml_values import Node, RefusedError, read_plain_yaml, read_yaml


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a header, and where in the file (both counted from 1)."""

    message: str
    line: int
    column: int


class Scalar(NamedTuple):
    """One text in a header, with its place: links in properties are found, and rewritten, through these."""

    path: tuple[str, ...]  # ("related", "0")
    value: str
    start: int  # with its quotes, in the whole text
    end: int
    verbatim: int  # where `value` stands letter for letter, or -1 when escapes or folding changed it
    flow: bool = False  # inside brackets or braces


@dataclass(frozen=True)
class Header:
    """A note's properties as YAML 1.2 core values, in order. `problem` says why nothing may be rewritten."""

    style: Literal["none", "yaml", "broken"]
    properties: Mapping[str, Any]
    problem: Problem | None
    body_start: int
    end: int = 0  # where a property may be added
    text: str = ""  # of the whole note
    root: Node | None = None

    @cached_property
    def scalars(self) -> tuple[Scalar, ...]:
        """The texts in it, in order."""
        return () if self.root is None else tuple(_scalars(self.text, self.root, ()))

    @property
    def may_hold_links(self) -> bool:
        """Whether any of its texts may be a link: most headers have none, and need not be looked through."""
        return self.root is not None and any(self.text.find(sign, 0, self.body_start) >= 0 for sign in "[\\")

    def get(self, key: str) -> Any:
        """A property's value whatever the case of its name (obsidian.md §3.1), None when there is none."""
        return self.properties.get(find_key(self.properties, key) or key)

    @property
    def editable(self) -> bool:
        return self.style in ("none", "yaml") and self.problem is None


_OPENING: Final = re.compile(r"\ufeff?---[ \t]*(?:\r\n|\r|\n)")
_CLOSING: Final = re.compile(r"---[ \t]*(?:\r\n|\r|\n|\Z)")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_MOST_KEPT: Final = 1 << 20  # characters
_last: tuple[str, Header] | None = None


def read_header(text: str) -> Header:
    """The header of a note. Never raises and never stalls. One change of a note asks for the header of the very same text
    again and again: the last one read is kept, and known by being that object, so that no text is compared."""
    global _last
    last = _last
    if last is not None and last[0] is text:
        return last[1]
    header = _read(text)
    if len(text) <= _MOST_KEPT:
        _last = (text, header)
    return header


def _read(text: str) -> Header:
    fences = _find_fences(text)
    if fences is None:
        return Header("none", {}, None, 0)
    start, end, body = fences
    try:
        root, end = read_plain_yaml(text, start, end) or read_yaml(text, start, end)
    except RefusedError as refused:
        return Header("broken", {}, _problem(text, refused.message, refused.offset), body)
    if root is None:
        return Header("yaml", {}, None, body, end)
    if root.style == ":":
        return Header("yaml", root.value, None, body, end, text, root)
    if root.style != "{":
        problem = _problem(text, "it is not a list of properties (name: value)", root.start)
        return Header("broken", {}, problem, body)
    # JSON, as Obsidian reads it as well, is YAML in braces.
    problem = _problem(text, "it is JSON or one pair of braces, which is read but not rewritten", root.start)
    return Header("yaml", root.value, problem, body, end, text, root)


def _find_fences(text: str) -> tuple[int, int, int] | None:
    """Where a header begins and ends between its fences, and where the body begins. None when the note has none: nothing
    but a BOM may stand before it, and it has to be closed."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    start = opening.end()
    for closing in _CLOSING.finditer(text, start):
        if text[closing.start() - 1] in "\r\n":
            return start, closing.start(), closing.end()
    return None


def find_key(properties: Mapping[str, Any], key: str) -> str | None:
    """The property's name as the note spells it: the same letters first, then the same but for case."""
    if key in properties:
        return key
    folded = key.casefold()
    for spelled in properties:
        if spelled.casefold() == folded:
            return spelled
    return None


def _problem(text: str, message: str, offset: int) -> Problem:
    line_start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return Problem(message, _line_of(text, line_start), offset - line_start + 1)


def _line_of(text: str, offset: int) -> int:
    return 1 + sum(1 for _ in _LINE_END.finditer(text, 0, offset))


def _scalars(text: str, node: Node, path: tuple[str, ...], flow: bool = False) -> Iterator[Scalar]:
    style = node.style
    flow = flow or style in ("[", "{")
    if isinstance(node.value, dict):
        for key, value in node.pairs():
            yield from _scalars(text, value, (*path, key.value), flow)
    elif isinstance(node.value, list):
        for number, item in enumerate(node.children):
            yield from _scalars(text, item, (*path, str(number)), flow)
    elif isinstance(node.value, str):
        inset = 1 if style in ("'", '"') else 0
        start = node.content + inset
        stands_there = style not in ("|", ">") and text[start : node.end - inset] == node.value
        yield Scalar(path, node.value, node.content, node.end, start if stands_there else -1, flow)
