"""Read from a note what has changed: which note replaces it, and the earlier values of a fact.

The properties and the section are those that facts, lessons and conversations write
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

_REPLACED_BY: Final = "superseded_by"
_REPLACES: Final = ("updates", "supersedes")
_ENDED: Final = ("valid_to", "superseded_at")

_FACT: Final = "fact"
_VALUE: Final = "value"
_HISTORY: Final = "History"
_VERSION: Final = re.compile(r"^- (?P<value>.*?) · (?P<when>\d{4}-\d\d-\d\d)\S*", re.MULTILINE)

_LINK: Final = re.compile(r"\[\[([^\[\]|#]+)")


class EarlierValue(NamedTuple):
    """A value that a fact had before, and where the note states it."""

    value: str
    line: int
    when: str  # a day


class Changed(NamedTuple):
    """What a note says about changes."""

    # Which note replaces this one, or which one it replaces; "" for none.
    remark: str = ""

    # The newest first.
    earlier: tuple[EarlierValue, ...] = ()

    # The part of the text that states the earlier values.
    history: Span | None = None


def changes_in(row: NoteRow, text: str) -> Changed:
    """Return what a note says about changes: nothing for most notes."""
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
    """Return which note replaces the note with these properties, or which one it replaces."""
    replaced_by = _linked_names(properties.get(_REPLACED_BY))
    if replaced_by:
        ends = (str(properties[key])[:10] for key in _ENDED if properties.get(key))
        end = next(ends, "")
        since = f" since {end}" if end else ""
        return f"superseded{since} by {replaced_by}"
    for key in _REPLACES:
        names = _linked_names(properties.get(key))
        if names:
            return f"replaces {names}"
    return ""


def _linked_names(value: object) -> str:
    """Return the names of the notes that a property links to, as one text."""
    names = _LINK.findall(str(value)) if value else []
    # A name on two lines could pass for text of the pack.
    on_one_line = (" ".join(name.split()) for name in names)
    return ", ".join(f'"{name}"' for name in on_one_line)


def _earlier_values(text: str, span: Span, current: str) -> Iterator[EarlierValue]:
    """Yield the values in the history of a fact that differ from the current one, in its order."""
    for version in _VERSION.finditer(text, *span):
        value = version["value"].strip()
        if value != current:
            line = count_lines(text, 0, version.start()) + 1
            yield EarlierValue(value, line, version["when"])
