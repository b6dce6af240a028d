"""Entries in a YAML file: an entry is some lines of a map. A new one is put before the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from simplemem.clients.lines import end_last_line, indentation, line_end_of, line_span
from simplemem.note.header import Node, read_yaml
from simplemem.note.text_edits import apply_edits


def read(text: str) -> object:
    """Return the data of a YAML text, None for an empty one.

    Raises RefusedError, with an offset, if it is not valid.
    """
    root = _parse(text)
    if root is None:
        return None
    return root.value


def put(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry in place of the one of that name, or before the others.

    `key` is the key of the map of entries, which is added if it is missing. Raises RefusedError if
    the text is not valid YAML.
    """
    text = end_last_line(text)
    line_end = line_end_of(text)
    pair = _find_pair(_parse(text), key)
    if pair is None:
        key_line = f"{key}:{line_end}"
        new_lines = _render_entry("  ", name, entry, line_end)
        return text + key_line + new_lines

    label, servers = pair
    _, map_start = line_span(text, 0, label.end)
    if not servers.value:
        # The value is missing, null or {}. It is removed, so that a map can follow.
        value_start = _after_colon(text, label)
        value_end = max(value_start, servers.end)
        new_lines = _render_entry("  ", name, entry, line_end)
        edits = [
            (value_start, value_end, ""),
            (map_start, map_start, new_lines),
        ]
        return apply_edits(text, edits)

    first_label = servers.children[0]
    first_start = first_label.start
    indent = indentation(text, first_start)
    new_lines = _render_entry(indent, name, entry, line_end)
    start = map_start
    end = map_start
    old_entry = _find_pair(servers, name)
    if old_entry is not None:
        start, end = _entry_span(text, old_entry)
    edit = (start, end, new_lines)
    return apply_edits(text, [edit])


def remove(text: str, key: str, name: str) -> str:
    """Return the text without the lines of an entry; the same text if there is none.

    Raises RefusedError if the text is not valid YAML.
    """
    pair = _find_pair(_parse(text), key)
    if pair is None:
        return text
    label, servers = pair
    entry = _find_pair(servers, name)
    if entry is None:
        return text

    start, end = _entry_span(text, entry)
    removal = (start, end, "")
    edits = [removal]
    is_only = len(servers.value) == 1
    if is_only:
        # Not every reader takes a key without a value for an empty map.
        after_colon = _after_colon(text, label)
        empty_map = (after_colon, after_colon, " {}")
        edits.append(empty_map)
    return apply_edits(text, edits)


def _parse(text: str) -> Node | None:
    """Return the root of a YAML text, None for an empty one.

    Raises RefusedError if it is not valid.
    """
    root, *_ = read_yaml(text, 0, len(text))
    return root


def _find_pair(node: Node | None, key: str) -> tuple[Node, Node] | None:
    """Return the nodes of a key and its value in a map.

    None if the map lacks the key, for a node that is no map, and for None.
    """
    if node is None:
        return None
    for label, value in node.pairs():
        if label.value == key:
            return label, value
    return None


def _after_colon(text: str, label: Node) -> int:
    """Return the offset after the colon of a key."""
    colon = text.index(":", label.end)
    return colon + 1


def _entry_span(text: str, entry: tuple[Node, Node]) -> tuple[int, int]:
    """Return the offsets of the beginning and the end of the lines of an entry.

    `entry` is its key and its value.
    """
    label, value = entry
    end = max(label.end, value.end)
    return line_span(text, label.start, end)


def _render_entry(indent: str, name: str, entry: Mapping[str, Any], line_end: str) -> str:
    """Return an entry as lines: its name, and one line per value, which is JSON and so YAML.

    `indent` are the blanks before the name.
    """
    text = f"{indent}{name}:{line_end}"
    for field, value in entry.items():
        text += f"{indent}  {field}: "
        text += json.dumps(value, ensure_ascii=False)
        text += line_end
    return text
