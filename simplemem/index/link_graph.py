"""Read all visible notes and the links between them, for a drawing of the vault."""

from __future__ import annotations

import json
from collections.abc import Mapping

from simplemem.index.api import LinkedNote, LinkGraph, Mark, NoteId
from simplemem.index.details import group_by_note
from simplemem.index.engine import Connection


def read_link_graph(db: Connection, mark: Mark, kind_property: str) -> LinkGraph:
    """Return the notes and links of one state of the index. `mark` is that of the state.

    `kind_property` is the property that becomes the `kind` of a note. Sends four statements,
    however many notes there are.
    """
    kinds = _read_texts_of_property(db, kind_property)
    tag_rows = db.execute("SELECT note_id, tag FROM tags ORDER BY note_id, seq")
    tags: Mapping[NoteId, tuple[str, ...]] = group_by_note(tag_rows)

    rows = db.execute("""
        SELECT id, path, title, type, modified
        FROM notes
        WHERE hidden IS NULL
        ORDER BY path""")
    notes: list[LinkedNote] = []
    positions: dict[NoteId, int] = {}
    for note_id, path, title, note_type, modified in rows:
        positions[note_id] = len(notes)
        kind = kinds.get(note_id, "")
        notes.append(LinkedNote(path, title, note_type, kind, modified, tags[note_id]))

    return LinkGraph(mark, notes, _read_links(db, positions))


def _read_texts_of_property(db: Connection, key: str) -> dict[NoteId, str]:
    """Return the value that a property has in each note, for the notes in which it is a text."""
    rows = db.execute("SELECT note_id, value FROM properties WHERE key = $1", (key,))
    values = {note_id: json.loads(value) for note_id, value in rows}
    return {note_id: value for note_id, value in values.items() if isinstance(value, str)}


def _read_links(db: Connection, positions: dict[NoteId, int]) -> list[tuple[int, int]]:
    """Return the links between the notes at these positions, as pairs of positions, each once."""
    rows = db.execute("""
        SELECT DISTINCT l.note_id, target.id
        FROM links l JOIN notes target ON target.path = l.path
        WHERE target.id != l.note_id
        ORDER BY l.note_id, target.id""")
    return [
        (positions[source], positions[target])
        for source, target in rows
        if source in positions and target in positions
    ]
