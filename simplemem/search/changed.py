"""Read from a note what has changed: which note replaces it, and the earlier values of a fact.

The properties and the section `History` are those that facts, lessons and conversations write
(docs/file-formats.md). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from simplemem.index.api import NoteRow
from simplemem.note.header import read_header
from simplemem.note.passages import section_span
from simplemem.note.plain_text import Span
from simplemem.note.words import count_lines

# Properties: links to the note that replaces this one, or to the notes that this one replaces, and
# the day since when it is replaced. Of two, the first one that a note has counts.
_REPLACED_BY: Final = "superseded_by"
_REPLACES: Final = ("updates", "supersedes")
_ENDED: Final = ("valid_to", "superseded_at")

_FACT: Final = "fact"
_VALUE: Final = "value"
_HISTORY: Final = "History"

# A line of the history: `- Lisbon · 2024-03-12 …`.
_VERSION: Final = re.compile(r"^- (?P<value>.*?) · (?P<when>\d{4}-\d\d-\d\d)\S*", re.MULTILINE)

_LINK: Final = re.compile(r"\[\[([^\[\]|#]+)")


class EarlierValue(NamedTuple):
    """A value that a fact had before, and where the note states it."""

    value: str
    line: int  # of the note
    when: str  # when it was stated, as an ISO day


class Changed(NamedTuple):
    """What a note says about changes."""

    # Which note replaces this one, or which one it replaces, such as `replaces "Home"`; else "".
    remark: str = ""

    # Only for a fact; the newest first.
    earlier: tuple[EarlierValue, ...] = ()

    # The part of the text that states the earlier values.
    history: Span | None = None


def changes_in(row: NoteRow, text: str) -> Changed:
    """Return what a note says about changes; an empty `Changed` for most notes.

    `text` is the whole note. Most notes are recognised without reading their frontmatter.
    """
    if not text.startswith("---") and not text.startswith("\ufeff---"):
        return Changed()
    is_fact = row.type.casefold() == _FACT
    if not is_fact and not any(key in text for key in (_REPLACED_BY, *_REPLACES)):
        return Changed()

    properties = read_header(text).properties
    remark = _remark_of(properties)
    span = section_span(text, _HISTORY) if is_fact else None
    if span is None:
        return Changed(remark)
    current = str(properties.get(_VALUE, ""))
    earlier = reversed(list(_earlier_values(text, span, current)))
    return Changed(remark, tuple(earlier), span)


def _remark_of(properties: Mapping[str, Any]) -> str:
    """Return which note replaces the note with these properties, or which ones it replaces.

    Returns "" if none does. If both are there, the note that replaces it counts.
    """
    replaced_by = _linked_names(properties.get(_REPLACED_BY))
    if replaced_by:
        since = ""
        for key in _ENDED:
            if properties.get(key):
                day = str(properties[key])[:10]
                since = f" since {day}"
                break
        return f"superseded{since} by {replaced_by}"
    for key in _REPLACES:
        names = _linked_names(properties.get(key))
        if names:
            return f"replaces {names}"
    return ""


def _linked_names(value: object) -> str:
    """Return the names of the notes that a property links to: `"Home", "Work"`; "" for none."""
    names = _LINK.findall(str(value)) if value else []
    # A name on two lines could pass for text of the pack.
    on_one_line = (" ".join(name.split()) for name in names)
    return ", ".join(f'"{name}"' for name in on_one_line)


def _earlier_values(text: str, span: Span, current: str) -> Iterator[EarlierValue]:
    """Yield the values in a history that differ from the current one, in the order of the text.

    `span` is where the history is in the text of the note.
    """
    for version in _VERSION.finditer(text, *span):
        value = version["value"].strip()
        if value != current:
            line = count_lines(text, 0, version.start()) + 1
            yield EarlierValue(value, line, version["when"])
