"""Find what is always relevant: pinned notes, and the constraints of the user profile.

A note is pinned if its frontmatter says `pinned: true`. The user profile is the note with the
constraints of the user, such as an allergy. The index knows the properties of all notes, so no
others are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from simplemem.index.api import IndexFilter, IndexQuery, NoteDetails, NoteId, NoteRow, TextSpan
from simplemem.index.service import IndexService
from simplemem.note.header import read_header
from simplemem.note.names import name_of
from simplemem.note.passages import section_span
from simplemem.note.plain_text import Span, blank_spans, without_html_comments
from simplemem.note.scopes import DEFAULT_SCOPE, folder_of, scope_of
from simplemem.note.words import count_lines
from simplemem.search.needs import NoteReader
from simplemem.search.packing import Piece
from simplemem.search.quality import Quotable

CONSTRAINT: Final = "constraint of the user"
"""What the `via` of a passage says that has the constraints of a user profile."""

_PROPERTY: Final = "pinned"
_MAX_NOTES: Final = 50

# The user profile, and the section in which conversations keep the constraints of the user
# (docs/conversations.md).
_PROFILE: Final = f"profiles/{DEFAULT_SCOPE}.md"
_CONSTRAINTS: Final = "Constraints"

# What is behind a constraint on its line: `%%…%%` marks, unless they say that a later turn disputes
# it, and links to the turn that states it.
_SOURCE_OF_CONSTRAINT: Final = re.compile(
    r"(?: %%(?![^%\n]*disputed=)[^%\n]*%%)?(?: \[\[[^\[\]\n]*\]\])*\Z"
)

# Notes of the type "constraint" come before those of the type "preference", then all others.
_ORDER_OF_TYPES: Final = {"constraint": 0, "preference": 1}


class PinnedNotes:
    """Finds the pinned notes and the user profile of one vault. Guards no state."""

    def __init__(self, index: IndexService, notes: NoteReader) -> None:
        self._index = index
        self._notes = notes

    def rows(self, narrow: IndexFilter, profile: str = _PROFILE) -> list[NoteRow]:
        """Return the rows of the user profile, if there is one, and of the pinned notes.

        `profile` is the path of the user profile.

        They are in this order: the profile, constraints, preferences, others; of one type, by path.
        Only notes that pass the filter are among them, but its phrases and excluded words do not
        count, and its `only` must be empty. At most 50 are returned, the first in this order. Reads
        only the index.
        """
        filter = replace(narrow, phrases=(), without=(), without_forms=())
        rows = self._index.notes_with_property(_PROPERTY, "true", filter, profile)

        def order(row: NoteRow) -> tuple[int, int, str]:
            """Return what pinned notes are ordered by: the profile first, then type and path."""
            is_no_profile = int(row.path != profile)
            type_order = _ORDER_OF_TYPES.get(row.type.casefold(), len(_ORDER_OF_TYPES))
            return is_no_profile, type_order, row.path

        return sorted(rows, key=order)[:_MAX_NOTES]

    def rows_of_scope(self, scope: str | None) -> list[NoteRow]:
        """Return the rows of the profile and the pinned notes of one user; None for all users.

        For all users, the profile is that of the scope `default`. The order is that of `rows`.
        Reads the frontmatter of the pinned notes, which may name their scopes.
        """
        profile = profile_path(scope)
        rows = self.rows(IndexFilter(), profile)
        if scope is None:
            return rows
        return [row for row in rows if row.path == profile or self._scope_of(row.path) == scope]

    def _scope_of(self, path: str) -> str:
        """Return the scope of a note; that of its path if the note was deleted."""
        text = self._notes.text_of(path) or ""
        named = str(read_header(text).get("scope") or "")
        return scope_of(path, named)

    def pieces(self, rows: Sequence[NoteRow], profile: str = _PROFILE) -> list[Piece]:
        """Return what a pack quotes of the notes of `rows`, in their order.

        `profile` is the path of the user profile. What is quoted is the whole of a pinned note, but
        only the constraints of the user profile. Reads the files now. Leaves out notes that were
        deleted, and those of which nothing may be quoted.
        """
        if not rows:
            return []
        details = self._index.details(_without_places(rows), IndexQuery())

        pieces: list[Piece] = []
        for row in rows:
            text = self._notes.text_of(row.path)
            if text is None or row.id not in details:
                continue
            if row.path == profile:
                pieces += _constraints_of(row, text)
            else:
                pieces += _whole_note(details[row.id], text)
        return pieces


def profile_path(scope: str | None) -> str:
    """Return the path of the profile of a user; for all users, that of the scope `default`."""
    return f"profiles/{folder_of(scope or DEFAULT_SCOPE)}.md"


def _without_places(rows: Iterable[NoteRow]) -> Mapping[NoteId, int]:
    """Return the ids of notes as `IndexService.details` wants them, each with 0 for no place."""
    return {row.id: 0 for row in rows}


def _whole_note(details: NoteDetails, text: str) -> list[Piece]:
    """Return a note as a list of one passage; an empty list if nothing of it may be quoted."""
    if not details.passages:
        return []
    span = details.passages[0]._replace(stop=details.passages[-1].stop)
    visible = Quotable.of(text).passage(span, ())
    return _pieces_of(details.row, span, visible, text, "pinned")


def _constraints_of(row: NoteRow, text: str) -> list[Piece]:
    """Return the section with the constraints of the user profile as a list of one passage.

    Marks and links to sources are left out (`_SOURCE_OF_CONSTRAINT`), but a constraint that a later
    turn disputes keeps its marks. Returns an empty list if there are no constraints.
    """
    span = section_span(text, _CONSTRAINTS)
    if span is None:
        return []
    start, stop = span
    part = without_html_comments(text)[start:stop]
    visible = blank_spans(part, _sources_of_constraints(part))
    line = count_lines(text, 0, start) + 1
    place = TextSpan(start, stop, line, (_CONSTRAINTS,))
    return _pieces_of(row, place, visible, text, CONSTRAINT)


def _sources_of_constraints(text: str) -> Iterator[Span]:
    """Yield the spans of the marks and links at the ends of the lines of a text."""
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line.rstrip())
        match = _SOURCE_OF_CONSTRAINT.search(text, start, end)
        if match is not None:
            yield match.span()
        start += len(line)


def _pieces_of(row: NoteRow, span: TextSpan, visible: str, text: str, why: str) -> list[Piece]:
    """Return the part of a note at a span as a list of one passage; an empty list if it is blank.

    `visible` is the part as it is quoted, and `text` the whole note. The header of the passage in
    a pack shows `why` it is always relevant.
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
