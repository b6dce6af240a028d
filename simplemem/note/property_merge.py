"""Merge two versions of a header property by property. Pure.

The conflict marks of a property are at the top of the body, because a header that contains them
could not be read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.note.dates import parse_moment
from simplemem.note.header import Properties, equal_in_yaml, find_key, read_header
from simplemem.note.line_merge import LINE, mark_conflict, take_only_change
from simplemem.note.note import tag_items
from simplemem.note.properties import remove_property, set_property
from simplemem.note.yaml_writer import render_header

_ABSENT: Final = object()  # the value of a property that a side does not have
_CONFLICT: Final = object()  # what comes of two values that cannot be merged
_MAX_LIST_ITEMS: Final = 1_000  # of both sides; the work grows with the square of their number


class MergedHeader(NamedTuple):
    """The merged header, and the properties in conflict with their values on either side."""

    text: str
    current_values: dict[str, object]
    other_values: dict[str, object]


def is_only_removed(base: str | None, current: str, other: str) -> bool:
    """Return whether the header was removed by both sides, or by one and not changed by the other.

    "" stands for no header. If the base has none or is not known, nothing was removed.
    """
    if not base or (current and other):
        return False

    remaining = current or other  # the header of the side that did not remove it
    if not remaining:
        return True
    return remaining.rstrip("\r\n") == base.rstrip("\r\n")


def merge_headers(base: str | None, current: str, other: str) -> MergedHeader:
    """Merge headers, with their fences, property by property. "" stands for no header.

    A property in conflict keeps its current value in the merged header, and both values are
    returned with it. Comments that the other side added are kept. Raises a SimplememError if a
    property cannot be changed without changing something else.
    """
    only_change = take_only_change(base, current, other)
    if only_change is not None:
        return MergedHeader(only_change, {}, {})

    base_properties = read_header(base or "").properties
    current_properties = read_header(current).properties
    other_properties = read_header(other).properties

    header = current
    current_values: dict[str, object] = {}
    other_values: dict[str, object] = {}
    for key in _union_of_keys(current_properties, other_properties):
        current_value = _value_of(current_properties, key)
        other_value = _value_of(other_properties, key)
        base_value = _value_of(base_properties, key)
        value = _merge_values(key, base_value, current_value, other_value)

        if value is _CONFLICT:
            current_values[key] = _none_if_absent(current_value)
            other_values[key] = _none_if_absent(other_value)
        elif value is _ABSENT:
            header = remove_property(header, key)
        else:
            header = set_property(header, key, value)
    return MergedHeader(_add_comments(header, base, other), current_values, other_values)


def _union_of_keys(current: Properties, other: Properties) -> list[str]:
    """Return the names of the properties of both sides, those of the current side first.

    Of names that differ only in case, the one of the current side is returned.
    """
    added_keys = [key for key in other if find_key(current, key) is None]
    return [*current, *added_keys]


def _value_of(properties: Properties, key: str) -> object:
    """Return the value of a property, whatever the case of its name; _ABSENT if there is none."""
    spelled_key = find_key(properties, key)
    if spelled_key is None:
        return _ABSENT
    return properties[spelled_key]


def _none_if_absent(value: object) -> object:
    """Return a value, or None for the mark of a property that a side does not have."""
    return None if value is _ABSENT else value


def _add_comments(header: str, base: str | None, other: str) -> str:
    """Return a header with the comment lines that the other side added above its last fence.

    If they would become part of a property there, the header is returned without them.
    """
    lines = LINE.findall(header)
    old_lines = {*lines, *LINE.findall(base or "")}
    comments = [
        line
        for line in LINE.findall(other)
        if line.lstrip().startswith("#") and line not in old_lines
    ]
    if not comments or not header:
        return header

    lines_above = lines[:-1]
    last_line = lines[-1:]
    commented = "".join([*lines_above, *comments, *last_line])

    # Below a block scalar, a comment would become part of its text.
    if read_header(commented).properties != read_header(header).properties:
        return header
    return commented


def _merge_values(key: str, base: object, current: object, other: object) -> object:
    """Return the merged value of a property; _CONFLICT if no rule decides between two changes.

    A value is _ABSENT where a side does not have the property. Lists are merged as sets. Of two
    times in `modified`, the later is taken; of two in `created`, the earlier.
    """
    if equal_in_yaml(current, other) or equal_in_yaml(other, base):
        return current
    if equal_in_yaml(current, base):
        return other

    name = key.casefold()
    if name == "tags":
        base = _split_if_text(base)
        current = _split_if_text(current)
        other = _split_if_text(other)
    if isinstance(current, list) and isinstance(other, list):
        return _merge_lists(base, current, other)
    if name in ("modified", "created"):
        return _merge_times(name, current, other)
    return _CONFLICT


def _split_if_text(tags: object) -> object:
    """Return tags that are written as one text as a list; any other value as it is."""
    if isinstance(tags, str):
        return tag_items(tags)
    return tags


def _merge_lists(base: object, current: list[object], other: list[object]) -> object:
    """Return the items that neither side removed, in their order, then the added ones, sorted.

    They are sorted so that the result does not depend on which side is the current one. A base that
    is no list has no items. Returns _CONFLICT if there are too many items.
    """
    if len(current) + len(other) > _MAX_LIST_ITEMS:
        return _CONFLICT

    old_items = base if isinstance(base, list) else []
    items = [item for item in old_items if _contains(current, item)]
    items = [item for item in items if _contains(other, item)]

    added: list[object] = []
    for item in (*current, *other):
        if not _contains(old_items, item) and not _contains(added, item):
            added.append(item)
    added.sort(key=_sort_key)
    return items + added


def _sort_key(item: object) -> tuple[str, str]:
    """Return a key that can be compared with that of an item of any other type."""
    return str(type(item)), str(item)


def _contains(items: list[object], item: object) -> bool:
    """Return whether an item is in a list, where 1, 1.0 and true are different items."""
    return any(equal_in_yaml(item, other) for other in items)


def _merge_times(name: str, current: object, other: object) -> object:
    """Return the later time of "modified", the earlier one of "created".

    Returns _CONFLICT if one of the values is no time.
    """
    current_time = _parse_time(current)
    other_time = _parse_time(other)
    if current_time is None or other_time is None:
        return _CONFLICT

    is_current_later = current_time >= other_time
    if name == "modified":
        return current if is_current_later else other
    return other if is_current_later else current


def _parse_time(value: object) -> datetime | None:
    """Return the time that a value states, in UTC; None if it is no text, or no time."""
    if not isinstance(value, str):
        return None
    return parse_moment(value)


def mark_properties(
    header: MergedHeader,
    names: tuple[str, str],
    newline: str,
) -> str:
    """Return the properties in conflict, with the values of both sides between conflict marks.

    `names` are those of the sides, `newline` ends each line. Returns "" if there is no conflict.
    """
    if not header.current_values:
        return ""
    current_lines = _property_lines(header.current_values)
    other_lines = _property_lines(header.other_values)
    return "".join(mark_conflict(current_lines, other_lines, names, newline))


def _property_lines(properties: Properties) -> list[str]:
    """Return the lines of a header with these properties, without the `---` around them.

    Values that YAML cannot have are written as Python shows them: the lines are only for a person.
    """
    try:
        header = render_header(properties)
    except SimplememError:
        return [f"{key}: {value}" for key, value in properties.items()]
    lines = header.removesuffix("\n").split("\n")
    return lines[1:-1]
