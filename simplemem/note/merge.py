"""Merge two versions of a note that began as one text. Pure.

The header is merged property by property, the body line by line by the rules of diff3. A change
that only one side made is taken from that side. Where both sides changed the same place
differently, both texts are kept between the conflict marks that git uses. The marks of a property
are at the top of the body, because a header that contains them could not be read.

The sides are named as in `git merge-file`: the current text, the base and the other text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.note.body import newline_of
from simplemem.note.diff import matches
from simplemem.note.header import LINE_END, find_key, read_header, same
from simplemem.note.note import tag_items
from simplemem.note.properties import remove_property, render_header, set_property

_ABSENT: Final = object()  # the value of a property that a side does not have
_CONFLICT: Final = object()  # what comes of two values that cannot be merged
_MAX_LIST_ITEMS: Final = 1_000  # of both sides; the work grows with the square of their number
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")

_Properties = Mapping[str, object]


class Merged(NamedTuple):
    """The merged text, and in how many places the sides conflict."""

    text: str
    conflicts: int

    @property
    def clean(self) -> bool:
        """Whether there is no conflict."""
        return self.conflicts == 0


class _Chunk(NamedTuple):
    """The lines between two cuts of each text."""

    base: list[str]
    current: list[str]
    other: list[str]


class _Cut(NamedTuple):
    """A place that the three texts have in common, as an index into the lines of each."""

    base: int
    current: int
    other: int


class _MergedHeader(NamedTuple):
    """The merged header, and the properties in conflict with their values on either side."""

    text: str
    current_values: dict[str, object]
    other_values: dict[str, object]


def merge(
    base: str | None,
    current: str,
    other: str,
    names: tuple[str, str] = ("ours", "theirs"),
    *,
    both: bool = False,
) -> Merged:
    """Merge the current and the other text of a note that began as `base`.

    Without a base, nothing counts as deleted. `names` are written into the conflict marks. With
    `both`, if the two sides added different lines in the same place, the result has the lines of
    both, one after the other, and there is no conflict. Never raises.
    """
    headers = [read_header(text or "") for text in (base, current, other)]
    has_problem = any(header.problem for header in headers)
    has_header = any(header.style != "none" for header in headers)
    if has_problem or not has_header:
        return _merge_lines(base, current, other, names, both=both)

    base_start, current_start, other_start = (header.body_start for header in headers)
    base_header = None
    base_body = None
    if base is not None:
        base_header = base[:base_start]
        base_body = base[base_start:]
    current_header = current[:current_start]
    current_body = current[current_start:]
    other_header = other[:other_start]
    other_body = other[other_start:]

    try:
        if _is_only_removed(base_header, current_header, other_header):
            header = _MergedHeader("", {}, {})
        else:
            header = _merge_headers(base_header, current_header, other_header)
    except SimplememError:  # a property cannot be changed without changing something else
        return _merge_lines(base, current, other, names, both=both)
    body = _merge_lines(base_body, current_body, other_body, names, both=both)

    newline = newline_of(current)
    content = _mark_properties(header, names, newline) + body.text
    header_text = header.text
    if content and header_text and not header_text.endswith(("\n", "\r")):
        header_text += newline  # the note ended with its header
    text = header_text + content
    conflicts = body.conflicts + len(header.current_values)
    return Merged(text, conflicts)


def _take_only_change(base: str | None, current: str, other: str) -> str | None:
    """Return the changed text if at most one side changed it, or both alike; else None."""
    if other in (current, base):
        return current
    if current == base:
        return other
    return None


# Lines


def _merge_lines(
    base: str | None,
    current: str,
    other: str,
    names: tuple[str, str],
    *,
    both: bool,
) -> Merged:
    """Merge texts line by line.

    Lines are compared without their ends, so a side that was saved with other line ends has not
    changed every line.
    """
    only_change = _take_only_change(base, current, other)
    if only_change is not None:
        return Merged(only_change, 0)

    newline = _choose_newline(base, current, other)
    base_lines = None if base is None else _LINE.findall(base)
    current_lines = _split_lines(current, newline)
    other_lines = _split_lines(other, newline)
    keeps_additions = both and base is not None

    lines: list[str] = []
    conflicts = 0
    for chunk in _cut_into_chunks(base_lines, current_lines, other_lines):
        merged_lines = _merge_chunk(chunk, keeps_additions=keeps_additions)
        if merged_lines is None:
            merged_lines = _mark_conflict(chunk.current, chunk.other, names, newline)
            conflicts += 1
        lines += merged_lines
    return Merged(_join_lines(lines, newline), conflicts)


def _choose_newline(base: str | None, current: str, other: str) -> str:
    """Return the line end of the merged text: that of the side that changed it, else the lesser."""
    base_newline = newline_of(base) if base else None
    current_newline = newline_of(current)
    other_newline = newline_of(other)

    only_change = _take_only_change(base_newline, current_newline, other_newline)
    return only_change or min(current_newline, other_newline)


def _split_lines(text: str, newline: str) -> list[str]:
    """Return the lines of a text. If its first line ends in another way, all get this line end."""
    if newline_of(text) != newline:
        text = LINE_END.sub(newline, text)
    return _LINE.findall(text)


def _join_lines(lines: Sequence[str], newline: str) -> str:
    """Join lines. One without an end, which was the last of its text, gets one if others follow."""
    ended_lines = [_end_line(line, newline) for line in lines[:-1]]
    return "".join([*ended_lines, *lines[-1:]])


def _end_line(line: str, newline: str) -> str:
    if line.endswith(("\n", "\r")):
        return line
    return line + newline


def _merge_chunk(chunk: _Chunk, *, keeps_additions: bool) -> list[str] | None:
    """Return the merged lines of a chunk; None if the sides conflict."""
    base = _without_ends(chunk.base)
    current = _without_ends(chunk.current)
    other = _without_ends(chunk.other)

    if current == other:
        # If only one side ends its last line, the greater of the two is the line with the end.
        return list(map(max, chunk.current, chunk.other))
    if other == base:
        return chunk.current
    if current == base:
        return chunk.other
    if keeps_additions and not chunk.base:
        return _join_additions(chunk.current, chunk.other)
    return None


def _join_additions(current: list[str], other: list[str]) -> list[str]:
    """Return the lines of both sides, those that both have only once."""
    lines: list[str] = []
    for chunk in _cut_into_chunks(None, current, other):
        lines += chunk.current
        if _without_ends(chunk.current) != _without_ends(chunk.other):
            lines += chunk.other
    return lines


def _cut_into_chunks(
    base: list[str] | None,
    current: list[str],
    other: list[str],
) -> Iterator[_Chunk]:
    """Yield the chunks of three texts in order.

    Chunks of lines that all three texts share alternate with chunks of the lines between. Without a
    base, the lines that both sides share take its place: nothing else of it is certain.
    """
    current_keys = _without_ends(current)
    other_keys = _without_ends(other)
    if base is None:
        base = _shared_lines(current_keys, other_keys)

    base_keys = _without_ends(base)
    in_current = matches(base_keys, current_keys)
    in_other = matches(base_keys, other_keys)

    start = _Cut(0, 0, 0)
    last = _Cut(len(base), len(current), len(other))
    while start != last:
        end = _end_of_shared_lines(start, in_current, in_other)
        if end == start:
            end = _next_shared_line(start, in_current, in_other, last)
        yield _Chunk(
            base[start.base : end.base],
            current[start.current : end.current],
            other[start.other : end.other],
        )
        start = end


def _shared_lines(one: list[str], other: list[str]) -> list[str]:
    positions = matches(one, other)
    return [line for line, position in zip(one, positions, strict=True) if position >= 0]


def _end_of_shared_lines(
    start: _Cut,
    in_current: Sequence[int],
    in_other: Sequence[int],
) -> _Cut:
    """Return the cut after the lines that follow `start` in all three texts."""
    to_current = start.current - start.base
    to_other = start.other - start.base
    end = start.base
    while (
        end < len(in_current)
        and in_current[end] == end + to_current
        and in_other[end] == end + to_other
    ):
        end += 1
    return _Cut(end, end + to_current, end + to_other)


def _next_shared_line(
    start: _Cut,
    in_current: Sequence[int],
    in_other: Sequence[int],
    last: _Cut,
) -> _Cut:
    """Return the cut before the next line that all three texts share; `last` if there is none."""
    for line in range(start.base, last.base):
        if in_current[line] >= 0 and in_other[line] >= 0:
            return _Cut(line, in_current[line], in_other[line])
    return last


def _mark_conflict(
    current: list[str],
    other: list[str],
    names: tuple[str, str],
    newline: str,
) -> list[str]:
    """Return the lines of both sides between conflict marks."""
    lines = [
        f"<<<<<<< {names[0]}",
        *_without_ends(current),
        "=======",
        *_without_ends(other),
        f">>>>>>> {names[1]}",
    ]
    return [line + newline for line in lines]


def _without_ends(lines: list[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


# Properties


def _is_only_removed(base: str | None, current: str, other: str) -> bool:
    """Return whether one side removed the header, and the other did not change it."""
    if not base or (current and other):
        return False
    left = current or other
    return not left or left.rstrip("\r\n") == base.rstrip("\r\n")


def _merge_headers(base: str | None, current: str, other: str) -> _MergedHeader:
    """Merge headers property by property. A property in conflict keeps its current value.

    Raises a SimplememError if a property cannot be changed without changing something else.
    """
    only_change = _take_only_change(base, current, other)
    if only_change is not None:
        return _MergedHeader(only_change, {}, {})

    base_properties = read_header(base or "").properties
    current_properties = read_header(current).properties
    other_properties = read_header(other).properties

    header = current
    current_values: dict[str, object] = {}
    other_values: dict[str, object] = {}
    for key in _union_of_keys(current_properties, other_properties):
        current_value = _value_of(current_properties, key)
        other_value = _value_of(other_properties, key)
        value = _merge_values(key, _value_of(base_properties, key), current_value, other_value)

        if value is _CONFLICT:
            current_values[key] = _none_if_absent(current_value)
            other_values[key] = _none_if_absent(other_value)
        elif value is _ABSENT:
            header = remove_property(header, key)
        else:
            header = set_property(header, key, value)
    return _MergedHeader(_add_comments(header, base, other), current_values, other_values)


def _union_of_keys(current: _Properties, other: _Properties) -> list[str]:
    """Return the names of the properties of both sides, those that differ only in case once."""
    added_keys = [key for key in other if find_key(current, key) is None]
    return [*current, *added_keys]


def _value_of(properties: _Properties, key: str) -> object:
    """Return the value of a property, whatever the case of its name; _ABSENT if there is none."""
    spelled_key = find_key(properties, key)
    if spelled_key is None:
        return _ABSENT
    return properties[spelled_key]


def _none_if_absent(value: object) -> object:
    return None if value is _ABSENT else value


def _add_comments(header: str, base: str | None, other: str) -> str:
    """Add the comments that the other side added, which are part of no property, to a header."""
    lines = _LINE.findall(header)
    old_lines = {*lines, *_LINE.findall(base or "")}
    comments = [
        line
        for line in _LINE.findall(other)
        if line.lstrip().startswith("#") and line not in old_lines
    ]
    if not comments or not header:
        return header

    commented = "".join([*lines[:-1], *comments, *lines[-1:]])
    # Below a block of text, what was a comment would become part of the text.
    if read_header(commented).properties != read_header(header).properties:
        return header
    return commented


def _merge_values(key: str, base: object, current: object, other: object) -> object:
    """Merge the values of a property; _CONFLICT if both sides changed it and no rule decides.

    Lists are merged as sets. Of two times of a change the later is taken, of two times of a
    creation the earlier.
    """
    if same(current, other) or same(other, base):
        return current
    if same(current, base):
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

    They are sorted so that the result does not depend on which side is the current one. Returns
    _CONFLICT if there are too many items.
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
    return any(same(item, other) for other in items)


def _merge_times(name: str, current: object, other: object) -> object:
    """Return the later time of "modified", the earlier of "created"; _CONFLICT if not both are."""
    current_time = _read_time(current)
    other_time = _read_time(other)
    if current_time is None or other_time is None:
        return _CONFLICT

    is_current_later = current_time >= other_time
    takes_later = name == "modified"
    if is_current_later == takes_later:
        return current
    return other


def _read_time(value: object) -> datetime | None:
    """Return the time that a value states, in the local time zone if it names none, else None."""
    if not isinstance(value, str):
        return None
    iso_text = value.strip().replace(" ", "T", 1)
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(iso_text).astimezone()
    return None


def _mark_properties(header: _MergedHeader, names: tuple[str, str], newline: str) -> str:
    """Return the properties in conflict with the values of both sides between conflict marks."""
    if not header.current_values:
        return ""
    current_lines = _property_lines(header.current_values)
    other_lines = _property_lines(header.other_values)
    return "".join(_mark_conflict(current_lines, other_lines, names, newline))


def _property_lines(properties: _Properties) -> list[str]:
    """Return the lines of a header with these properties, without the `---` around them."""
    try:
        header = render_header(properties)
    except SimplememError:
        return [f"{key}: {value}" for key, value in properties.items()]
    lines = header.removesuffix("\n").split("\n")
    return lines[1:-1]
