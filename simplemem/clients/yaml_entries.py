"""Entries in a YAML file: an entry is some lines of a map. A new one is put before the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from simplemem.clients.lines import end_last_line, indentation, line_end_of, line_span
from simplemem.note.header import Node, read_yaml
from simplemem.note.text_edits import apply_edits


def read(text: str) -> object:
    """Return the data of a YAML text, None for an empty one. Raises RefusedError if it is not valid."""
    root = _parse(text)
    if root is None:
        return None
    return root.value


def put(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry in place of the one of that name, or before the others."""
    text = end_last_line(text)
    line_end = line_end_of(text)
    pair = _find_pair(_parse(text), key)
    if pair is None:
        return text + f"{key}:{line_end}" + _render_entry("  ", name, entry, line_end)

    label, servers = pair
    _, offset = line_span(text, 0, label.end)
    if not servers.value:
        # The value is missing, null or {}: it makes way for a map.
        colon = text.index(":", label.end) + 1
        value_end = max(colon, servers.end)
        text = text[:colon] + text[value_end:]
        offset -= value_end - colon
        return text[:offset] + _render_entry("  ", name, entry, line_end) + text[offset:]

    indent = indentation(text, servers.children[0].start)
    old_entry = _find_pair(servers, name)
    if old_entry is not None:
        offset, entry_end = _entry_span(text, old_entry)
        text = text[:offset] + text[entry_end:]
    return text[:offset] + _render_entry(indent, name, entry, line_end) + text[offset:]


def remove(text: str, key: str, name: str) -> str:
    """Return the text without the lines of an entry; the same text if there is none."""
    pair = _find_pair(_parse(text), key)
    if pair is None:
        return text
    label, servers = pair
    entry = _find_pair(servers, name)
    if entry is None:
        return text

    edits = [(*_entry_span(text, entry), "")]
    if len(servers.value) == 1:
        # Not every reader takes a key without a value for an empty map.
        colon = text.index(":", label.end) + 1
        edits.append((colon, colon, " {}"))
    return apply_edits(text, edits)


def _parse(text: str) -> Node | None:
    """Return the root of a YAML text, None for an empty one. Raises RefusedError if it is not valid."""
    root, *_ = read_yaml(text, 0, len(text))
    return root


def _find_pair(node: Node | None, key: str) -> tuple[Node, Node] | None:
    """Return the key and the value of that name in a map; None if there is none."""
    if node is None:
        return None
    for label, value in node.pairs():
        if label.value == key:
            return label, value
    return None


def _entry_span(text: str, entry: tuple[Node, Node]) -> tuple[int, int]:
    """Return the span of the lines of an entry."""
    label, value = entry
    return line_span(text, label.start, max(label.end, value.end))


def _render_entry(indent: str, name: str, entry: Mapping[str, Any], line_end: str) -> str:
    """Return an entry as lines: its name, and one line per value, which is JSON and so YAML."""
    lines = [f"{indent}{name}:"]
    for field, value in entry.items():
        lines.append(f"{indent}  {field}: {json.dumps(value, ensure_ascii=False)}")
    return "".join(line + line_end for line in lines)
