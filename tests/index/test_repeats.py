"""Text that stands in many notes is found without going through all notes."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import apsw
import pytest

from simplemem.index import notes, text
from simplemem.index.database import Database, open_database
from simplemem.index.door import Stat
from simplemem.index.notes import Rows
from simplemem.index.repeats import ask_spans
from simplemem.note.note import read_note

FOOTER = "Back to the overview of all pages"


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return open_database(tmp_path / "index.db", nullcontext)


def put(db: apsw.Connection, name: str, body: str) -> int:
    read = text.understood(f"{name}.md", read_note(body.encode()), Stat(0, 0, 0))
    rows = Rows(db)
    note_id = notes.put(rows, None, read, None, None)
    text.put(rows, note_id, read, new=True)
    rows.write()
    return note_id


def add_notes(db: apsw.Connection, first: int, last: int) -> list[int]:
    """Add notes with a paragraph of their own and a footer that all of them have. Return their ids."""
    return [
        put(db, f"n{k}", f"Paragraph {k} about plums.\n\n{FOOTER}.\n") for k in range(first, last)
    ]


def steps_of_ask_spans(db: apsw.Connection, some: list[int]) -> int:
    """Return the steps of SQLite's machine that the spans of some notes take."""
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    db.set_progress_handler(count, 1)
    try:
        spans = list(ask_spans(db, some))
    finally:
        db.set_progress_handler(None)
    assert len(spans) == len(some)  # each has the footer
    return steps


def test_repeated_text_of_a_few_notes_costs_the_same_in_a_vault_of_ten_times_as_many_notes(
    database: Database,
) -> None:
    with database.writing() as db:
        some = add_notes(db, 0, 100)[:5]
        few = steps_of_ask_spans(db, some)
        add_notes(db, 100, 1000)
        many = steps_of_ask_spans(db, some)
    assert many < 1.5 * few
