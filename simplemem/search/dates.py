"""The days that a query names: how they change the order of notes, and which notes match."""

from __future__ import annotations

from simplemem.index.api import NoteRow
from simplemem.note.dates import date_in_name, full_day_in
from simplemem.note.names import base_name

# The days that a query names change the order of this many of the best notes; they filter nothing.
DATED_NOTES = 40

# Relative to 1 of all other signals. The ranking is equally good from 0.05 to 0.2.
DATED_WEIGHT = 0.15


def belongs_to_day(row: NoteRow, days: tuple[str, ...]) -> bool:
    """Return whether a note belongs to one of the days, which are in the form of `days_in`.

    The day in its name or title decides. A note without one belongs to the days of its creation and
    last change.
    """
    named_day = date_in_name(base_name(row.path)) or full_day_in(row.title)
    days_of_note = (named_day,) if named_day else (row.created[:10], row.modified[:10])
    # A month or day of any year begins with a hyphen, as `day[4:]` does: `-06` or `-06-03`.
    return any(day.startswith(days) or day[4:].startswith(days) for day in days_of_note)
