"""Merge two versions of a note that began as one text. Pure.

The header is merged property by property (`property_merge.py`), the body line by line
(`line_merge.py`). The sides are named as in `git merge-file`: the current text, the base and the
other text.
"""

from __future__ import annotations

from typing import NamedTuple

from simplemem.errors import SimplememError
from simplemem.note.header import read_header
from simplemem.note.line_merge import Merged, merge_lines
from simplemem.note.property_merge import (
    MergedHeader,
    is_only_removed,
    mark_properties,
    merge_headers,
)
from simplemem.note.words import newline_of


def merge(
    base: str | None,
    current: str,
    other: str,
    names: tuple[str, str] = ("ours", "theirs"),
    *,
    both: bool = False,
) -> Merged:
    """Merge the current and the other text of a note that began as `base`. Never raises.

    The headers are merged property by property. If one of them cannot be read or changed safely, or
    none exists, the whole texts are merged line by line. Without a base, nothing counts as deleted.
    `names` of the two sides are written into the conflict marks. With `both`, if the two sides
    added different lines in the same place, the result has the lines of both, one after the other,
    and there is no conflict.
    """
    headers = [read_header(text or "") for text in (base, current, other)]
    has_problem = any(header.problem for header in headers)
    has_header = any(header.style != "none" for header in headers)
    if has_problem or not has_header:
        return merge_lines(base, current, other, names, both=both)

    base_header, base_body = (None, None) if base is None else _split(base)
    current_parts = _split(current)
    other_parts = _split(other)
    try:
        header = _merge_header(base_header, current_parts.header, other_parts.header)
    except SimplememError:  # a property cannot be changed without changing something else
        return merge_lines(base, current, other, names, both=both)
    body = merge_lines(base_body, current_parts.body, other_parts.body, names, both=both)
    return _join(header, body, names, newline_of(current))


class _NoteParts(NamedTuple):
    """The header of a note with its fences, and its body."""

    header: str
    body: str


def _split(text: str) -> _NoteParts:
    """Return the header with its fences, "" if there is none, and the rest of a note."""
    body_start = read_header(text).body_start
    return _NoteParts(text[:body_start], text[body_start:])


def _merge_header(base: str | None, current: str, other: str) -> MergedHeader:
    """Merge headers. One that a side removed, and the other did not change, is removed.

    Raises SimplememError if a property cannot be changed without changing something else.
    """
    if is_only_removed(base, current, other):
        return MergedHeader("", {}, {})
    return merge_headers(base, current, other)


def _join(header: MergedHeader, body: Merged, names: tuple[str, str], newline: str) -> Merged:
    """Return the merged note, with the properties in conflict at the top of its body.

    Each property in conflict counts as one conflict.
    """
    content = mark_properties(header, names, newline) + body.text
    header_text = header.text
    ends_line = header_text.endswith(("\n", "\r"))
    if content and header_text and not ends_line:  # the note ended with its header
        header_text += newline
    conflicts = body.conflicts + len(header.current_values)
    return Merged(header_text + content, conflicts)
