"""Find what is always relevant: pinned notes, and the constraints of the user profile.

A note is pinned if its frontmatter says `pinned: true`. The index knows the properties of all
notes, so only the pinned ones are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from simplemem.index.api import IndexFilter, IndexQuery, NoteDetails, NoteId, NoteRow, TextSpan
from simplemem.index.service import IndexService
from simplemem.note.names import name_of
from simplemem.note.passages import section_span
from simplemem.note.plain_text import blank_spans, without_html_comments
from simplemem.note.words import count_lines
from simplemem.search.needs import NoteReader
from simplemem.search.packing import Piece
from simplemem.search.quality import Quotable

_PROPERTY: Final = "pinned"
_MAX_NOTES: Final = 50

# The note and the section in which conversations keep the constraints of the user
# (docs/conversations.md).
_PROFILE: Final = "profiles/default.md"
_CONSTRAINTS: Final = "Constraints"

# Behind each constraint: its marks, and links to the turn that states it.
_SOURCE_OF_CONSTRAINT: Final = re.compile(
    r"(?m)(?: %%(?![^%\n]*disputed=)[^%\n]*%%)?(?: \[\[[^\[\]\n]*\]\])*[ \t]*\r?$"
)

# Constraints come before preferences, and these before all others.
_ORDER_OF_TYPES: Final = {"constraint": 0, "preference": 1}


class PinnedNotes:
    """Finds what is always relevant in one vault. Guards no state."""

    def __init__(self, index: IndexService, notes: NoteReader) -> None:
        self._index = index
        self._notes = notes

    def rows(self, narrow: IndexFilter) -> list[NoteRow]:
        """Return the pinned notes and the user profile, the constraints first.

        Only those that pass the filter; its phrases and excluded words do not count. Notes that are
        excluded from search are never among them. At most 50 are returned.
        """
        paths = self._index.paths_with_property(_PROPERTY, "true")
        only = tuple(sorted({*paths, _PROFILE}))
        filter = replace(narrow, only=only, phrases=(), without=(), without_forms=())
        rows = self._index.page(filter, "name", _MAX_NOTES).rows
        return sorted(rows, key=_order)

    def pieces(self, rows: Sequence[NoteRow]) -> list[Piece]:
        """Return what a pack quotes of pinned notes and of the user profile, in their order.

        Reads the files now, and leaves out notes that were deleted or say nothing.
        """
        details = self._index.details(_without_places(rows), IndexQuery()) if rows else {}
        pieces = []
        for row in rows:
            text = self._notes.text_of(row.path)
            if text is None or row.id not in details:
                continue
            if row.path == _PROFILE:
                pieces += _constraints_of(row, text)
            else:
                pieces += _whole_note(details[row.id], text)
        return pieces


def _order(row: NoteRow) -> tuple[int, int, str]:
    """Return what pinned notes are sorted by."""
    is_no_profile = int(row.path != _PROFILE)
    type_order = _ORDER_OF_TYPES.get(row.type.casefold(), len(_ORDER_OF_TYPES))
    return is_no_profile, type_order, row.path


def _without_places(rows: Iterable[NoteRow]) -> Mapping[NoteId, int]:
    """Return the ids of notes, each with 0: no place in them matched."""
    return {row.id: 0 for row in rows}


def _whole_note(details: NoteDetails, text: str) -> list[Piece]:
    """Return a note as one passage; nothing if nothing of it may be quoted."""
    if not details.passages:
        return []
    span = details.passages[0]._replace(stop=details.passages[-1].stop)
    visible = Quotable.of(text).passage(span, ())
    return _pieces_of(details.row, span, visible, text, "pinned")


def _constraints_of(row: NoteRow, text: str) -> list[Piece]:
    """Return the section with the constraints of the user profile, without their sources.

    A constraint that a later turn disputes keeps its marks. Returns nothing if there are none.
    """
    span = section_span(text, _CONSTRAINTS)
    if span is None:
        return []
    start, stop = span
    part = without_html_comments(text)[start:stop]
    visible = blank_spans(part, (match.span() for match in _SOURCE_OF_CONSTRAINT.finditer(part)))
    line = count_lines(text, 0, start) + 1
    place = TextSpan(start, stop, line, (_CONSTRAINTS,))
    return _pieces_of(row, place, visible, text, "constraint of the user")


def _pieces_of(row: NoteRow, span: TextSpan, visible: str, text: str, why: str) -> list[Piece]:
    """Return a part of a pinned note as a passage; nothing if it is blank.

    `visible` is its text as it is quoted, `why` says why it is always relevant.
    """
    if not visible.strip():
        return []
    piece = Piece(
        name=name_of(row.path),
        title=row.title,
        heading=" > ".join(span.headings),
        line=span.line,
        modified=row.modified,
        text=visible,
        score=1.0,
        start=span.start,
        via=why,
        has_gaps=visible != text[span.start : span.stop],
    )
    return [piece]
