"""The YAML that most headers are: `key: value` lines and simple lists, read line by line. Pure; it only reads.

It gives what `yaml_read.py` gives, values and places, at a quarter of its cost. Where a line is anything else (a
comment, a flow list, an escape, a second line of a value) it gives no answer, and libyaml is asked; a property test holds
the two equal.
"""

from __future__ import annotations

import re
from typing import Final

from simplemem.note.yaml_read import Document, Node, core_value

_MOST_CHARACTERS: Final = 8_000
# Nothing that begins or ends something in YAML: no tabs, no hash, a colon only where it is part of a word.
_INSIDE: Final = r"\w ./+(),&!?=;@\[\]{}|%~^$*<>\-"
_PLAIN: Final = rf"\w(?:[{_INSIDE}'\"]|:(?=\S))*+"
_VALUE: Final = rf"(?:(\"[{_INSIDE}':#]*+\"|'[{_INSIDE}\":#]*+') *|({_PLAIN}))"
_ENTRY: Final = re.compile(rf"(\w(?:[\w-]| (?=[\w-])){{0,99}}):(?: *| +{_VALUE})\n")
_ITEM: Final = re.compile(rf"( *)(-) +{_VALUE}\n")


def read_plain_yaml(text: str, start: int, end: int) -> Document | None:
    """text[start:end] as one block map of texts and lists of texts, or None where it may be more than that."""
    if end - start > _MOST_CHARACTERS:
        return None
    nodes: list[Node] = []
    at = start
    while at < end:
        found = _ENTRY.match(text, at, end)
        if found is None:
            return None
        key_end = found.end(1)
        nodes.append(Node("", found[1], at, at, key_end, ()))
        at = found.end()
        if found.lastindex != 1:
            nodes.append(_scalar(found))
        elif (items := _items(text, at, end)) is not None:
            dash, children, at = items
            values = [item.value for item in children]
            nodes.append(Node("-", values, dash, dash, children[-1].end, tuple(children)))
        else:
            nodes.append(Node("", None, key_end + 1, key_end + 1, key_end + 1, ()))
    if not nodes:
        return None
    properties = {key.value: value.value for key, value in zip(nodes[::2], nodes[1::2], strict=True)}
    if 2 * len(properties) != len(nodes):
        return None  # a key is there twice: the full reader says where
    return Document(Node(":", properties, start, start, nodes[-1].end, tuple(nodes)), end)


def _items(text: str, at: int, end: int) -> tuple[int, list[Node], int] | None:
    """The list that begins here: its first dash, its items, and where the next line begins; None when none does."""
    found = _ITEM.match(text, at, end)
    if found is None:
        return None
    dash, indent = found.start(2), found[1]
    items: list[Node] = []
    while found is not None and found[1] == indent:
        items.append(_scalar(found))
        at = found.end()
        found = _ITEM.match(text, at, end)
    return dash, items, at


def _scalar(found: re.Match[str]) -> Node:
    group = found.lastindex or 0
    start, end = found.span(group)
    written = found[group]
    if written[0] in "\"'":
        return Node(written[0], written[1:-1], start, start, end, ())
    plain = written.rstrip(" ")
    return Node("", core_value(plain), start, start, start + len(plain), ())
