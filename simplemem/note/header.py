"""Read the header of a note: the YAML between a `---` on its first line and the next `---`. Pure.

A header gives the properties as YAML 1.2 core values, and the place of each value in the text, so
that an edit can replace one and leave the rest as it was. Two readers produce the same nodes:
`plain_yaml.py` for plain headers, `yaml_reader.py` for the others. Reading never raises and never
stalls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple

from simplemem.note.words import LINE_END
from simplemem.note.yaml import Document, Node, RefusedError, read_plain_yaml, read_yaml

_OPENING: Final = re.compile(r"\ufeff?---[ \t]*(?:\r\n|\r|\n)")
_CLOSING: Final = re.compile(r"---[ \t]*(?:\r\n|\r|\n|\Z)")


Properties = Mapping[str, Any]
"""The properties of a note by their names, with YAML 1.2 core values."""


class HeaderProblem(NamedTuple):
    """What is wrong with a header, and where in the file (line and column count from 1)."""

    message: str
    line: int
    column: int


class Scalar(NamedTuple):
    """A text in a header and its place. Links in properties are read and rewritten as scalars."""

    path: tuple[str, ...]  # ("related", "0")
    value: str
    start: int  # in the whole note, with the quotes
    end: int
    verbatim: int  # where `value` stands letter for letter; -1 if escapes or folding changed it
    flow: bool = False  # whether it is inside brackets or braces


@dataclass(frozen=True)
class Header:
    """The properties of a note, in order. If `problem` is set, the header must not be rewritten."""

    style: Literal["none", "yaml", "broken"]
    properties: Properties
    problem: HeaderProblem | None
    body_start: int
    end: int = 0  # where a property can be added
    text: str = ""  # the whole note
    root: Node | None = None

    @cached_property
    def scalars(self) -> tuple[Scalar, ...]:
        """The texts among the values, in order."""
        if self.root is None:
            return ()
        return tuple(_scalars(self.text, self.root, ()))

    def get(self, key: str) -> Any:
        """Return the value of a property, whatever the case of its name; None without one."""
        return find_value(self.properties, key)


def find_key(properties: Properties, key: str) -> str | None:
    """Return the name of a property as the note spells it, None if the note does not have it.

    Obsidian ignores the case of names. A note can have two that differ only in case; then the exact
    one wins.
    """
    if key in properties:
        return key

    folded = key.casefold()
    for name in properties:
        if name.casefold() == folded:
            return name
    return None


def find_value(properties: Properties, key: str) -> Any:
    """Return the value of a property, whatever the case of its name; None without one."""
    name = find_key(properties, key)
    if name is None:
        return None
    return properties[name]


@lru_cache(maxsize=1)  # a change of a note asks several times for the header of the same text
def read_header(text: str) -> Header:
    """Return the header of a note. Never raises and never stalls."""
    fences = _find_fences(text)
    if fences is None:
        return Header("none", {}, None, 0)

    try:
        root, end = _read_properties(text, fences.start, fences.end)
    except RefusedError as refused:
        refusal = _problem_at(text, refused.message, refused.offset)
        return Header("broken", {}, refusal, fences.body_start)

    if root is None:
        return Header("yaml", {}, None, fences.body_start, end, text)

    problem: HeaderProblem | None = None
    if root.style == "{":  # Obsidian reads JSON as properties too. It is YAML in braces.
        message = "it is JSON or one pair of braces, which is read but not rewritten"
        problem = _problem_at(text, message, root.start)
    return Header(
        style="yaml",
        properties=root.value,
        problem=problem,
        body_start=fences.body_start,
        end=end,
        text=text,
        root=root,
    )


def content_start(text: str, header: Header) -> int:
    """Return where the content starts: after the header and the blank lines below it."""
    position = header.body_start
    if position == 0:
        return 0

    while text[position : position + 1] in ("\n", "\r"):
        position += 1
    return position


class _Fences(NamedTuple):
    """Where the text between the fences starts and ends, and where the body starts."""

    start: int
    end: int
    body_start: int


def _find_fences(text: str) -> _Fences | None:
    """Find the fences of a header: only a BOM may stand before the first, and both are required."""
    opening = _OPENING.match(text)
    if opening is None:
        return None

    for closing in _CLOSING.finditer(text, opening.end()):
        is_at_line_start = text[closing.start() - 1] in "\r\n"
        if is_at_line_start:
            return _Fences(opening.end(), closing.start(), closing.end())
    return None


def _read_properties(text: str, start: int, end: int) -> Document:
    """Read text[start:end] as a map, or as nothing at all; raise RefusedError."""
    document = read_plain_yaml(text, start, end) or read_yaml(text, start, end)
    root = document.root
    if root is not None and root.style not in (":", "{"):
        raise RefusedError("it is not a list of properties (name: value)", root.start)
    return document


def _problem_at(text: str, message: str, offset: int) -> HeaderProblem:
    line_feed = text.rfind("\n", 0, offset)
    carriage_return = text.rfind("\r", 0, offset)
    line_start = max(line_feed, carriage_return) + 1

    lines_before = sum(1 for _ in LINE_END.finditer(text, 0, line_start))
    return HeaderProblem(message, lines_before + 1, offset - line_start + 1)


def _scalars(text: str, node: Node, path: tuple[str, ...], flow: bool = False) -> Iterator[Scalar]:
    """Yield the texts in a node. `path` is that of the node, `flow` that of the node around it."""
    is_flow = flow or node.style in ("[", "{")
    value = node.value
    if isinstance(value, dict):
        for key, entry in node.pairs():
            yield from _scalars(text, entry, (*path, key.value), is_flow)
    elif isinstance(value, list):
        for index, item in enumerate(node.children):
            yield from _scalars(text, item, (*path, str(index)), is_flow)
    elif isinstance(value, str):
        verbatim = _find_verbatim(text, node)
        yield Scalar(
            path=path,
            value=value,
            start=node.start,
            end=node.end,
            verbatim=verbatim,
            flow=is_flow,
        )


def _find_verbatim(text: str, node: Node) -> int:
    """Return where the text of a scalar stands letter for letter, -1 if it does so nowhere."""
    style = node.style
    if style in ("|", ">"):
        return -1

    quote_length = len(style)  # the style of a quoted scalar is its quote, of a plain one ""
    start = node.start + quote_length
    if text[start : node.end - quote_length] == node.value:
        return start
    return -1
