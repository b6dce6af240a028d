"""Merge two versions of a note that began as one text. Pure.

The header is merged property by property (`property_merge.py`), the body line by line
(`line_merge.py`). The sides are named as in `git merge-file`: the current text, the base and the
other text.
"""

from __future__ import annotations

from simplemem.errors import SimplememError
from simplemem.note.header import read_header
from simplemem.note.line_merge import Merged, merge_lines
from simplemem.note.lines import newline_of
from simplemem.note.property_merge import (
    MergedHeader,
    is_only_removed,
    mark_properties,
    merge_headers,
)


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
        return merge_lines(base, current, other, names, both=both)

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
        if is_only_removed(base_header, current_header, other_header):
            header = MergedHeader("", {}, {})
        else:
            header = merge_headers(base_header, current_header, other_header)
    except SimplememError:  # a property cannot be changed without changing something else
        return merge_lines(base, current, other, names, both=both)
    body = merge_lines(base_body, current_body, other_body, names, both=both)

    newline = newline_of(current)
    content = mark_properties(header, names, newline) + body.text
    header_text = header.text
    if content and header_text and not header_text.endswith(("\n", "\r")):
        header_text += newline  # the note ended with its header
    text = header_text + content
    conflicts = body.conflicts + len(header.current_values)
    return Merged(text, conflicts)
