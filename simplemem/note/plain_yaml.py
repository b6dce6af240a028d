"""Read plain YAML line by line, in a quarter of the time that libyaml needs. Pure.

Nearly all headers are plain: a block map of texts and of lists of texts, without comments, tabs and
nested maps. The nodes equal those of `yaml_reader.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from simplemem.note.yaml_values import Document, Node, parse_plain_scalar

_MAX_PLAIN_CHARACTERS: Final = 8_000
# What neither begins nor ends anything in YAML: no tabs, no hash, and a colon only within a word.
_INSIDE: Final = r"\w ./+(),&!?=;@\[\]{}|%~^$*<>\-"
_QUOTED: Final = rf"\"[{_INSIDE}':#]*+\"|'[{_INSIDE}\":#]*+'"
_PLAIN: Final = rf"\w(?:[{_INSIDE}'\"]|:(?=\S))*+"
_VALUE: Final = rf"(?:(?P<quoted>{_QUOTED}) *|(?P<plain>{_PLAIN}))"
_ENTRY: Final = re.compile(rf"(?P<key>\w(?:[\w-]| (?=[\w-])){{0,99}}):(?: *| +{_VALUE})\n")
_ITEM: Final = re.compile(rf"(?P<indent> *)- +{_VALUE}\n")


def read_plain_yaml(text: str, start: int, end: int) -> Document | None:
    """Read text[start:end] as a block map of plain texts and lists of such texts.

    Returns None if it is empty or may be more than that; then `read_yaml` has to read it.
    """
    if end - start > _MAX_PLAIN_CHARACTERS:
        return None

    nodes: list[Node] = []
    properties: dict[str, Any] = {}
    position = start
    while position < end:
        entry = _ENTRY.match(text, position, end)
        if entry is None:
            return None
        name = entry["key"]
        if name in properties:
            return None  # `read_yaml` reports where the key occurs again

        value, position = _read_value(text, entry, end)
        nodes.append(Node("", name, entry.start(), entry.end("key")))
        nodes.append(value)
        properties[name] = value.value

    if not nodes:
        return None
    root = Node(":", properties, start, nodes[-1].end, tuple(nodes))
    return Document(root, end)


def _read_value(text: str, entry: re.Match[str], end: int) -> tuple[Node, int]:
    """Return the value of an entry, and the offset of the line behind the entry."""
    if entry.lastgroup != "key":
        return _plain_scalar(entry), entry.end()

    items = _match_items(text, entry.end(), end)
    if items:
        return _plain_list(items), items[-1].end()
    value_start = entry.end("key") + len(":")
    return Node("", None, value_start, value_start), entry.end()


def _match_items(text: str, position: int, end: int) -> list[re.Match[str]]:
    """Match the lines of a block list at a position, as far as their indentation is the same."""
    items: list[re.Match[str]] = []
    item = _ITEM.match(text, position, end)
    while item is not None and (not items or item["indent"] == items[0]["indent"]):
        items.append(item)
        item = _ITEM.match(text, item.end(), end)
    return items


def _plain_list(items: Sequence[re.Match[str]]) -> Node:
    first_dash = items[0].end("indent")
    nodes = tuple([_plain_scalar(item) for item in items])
    values = [node.value for node in nodes]
    return Node("-", values, first_dash, nodes[-1].end, nodes)


def _plain_scalar(match: re.Match[str]) -> Node:
    """Return the value that a line of an entry or an item has, in quotes or without."""
    if match.lastgroup == "quoted":
        start, end = match.span("quoted")
        source = match["quoted"]
        return Node(source[0], source[1:-1], start, end)

    start = match.start("plain")
    source = match["plain"].rstrip(" ")
    return Node("", parse_plain_scalar(source), start, start + len(source))
