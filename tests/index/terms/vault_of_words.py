"""Notes of random words in an index, and the same notes in SQLite's FTS5 tables for comparison."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import apsw

from simplemem.index import notes
from simplemem.index.api import Stat, Term
from simplemem.index.engine import Connection
from simplemem.index.notes import PendingRows
from simplemem.index.sqlite.engine import SqliteEngine, open_engine
from simplemem.index.terms.query_terms import SegmentCache
from simplemem.index.terms.reader import TermIndex
from simplemem.index.text import parse_note, put_text, remove_text
from simplemem.note.note import read_note

WORDS = [
    f"{first}{second}{third}"
    for first in "bdfgk"
    for second in ("ara", "ele", "ino", "ulu")
    for third in "mnprst"
]
_TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"


def draw_words(chance: random.Random, count: int) -> list[str]:
    """Return words of which a few are frequent and most are rare."""
    return [WORDS[int(len(WORDS) ** chance.random()) - 1] for _ in range(count)]


def draw_note(chance: random.Random) -> str:
    """Return a note with a description, a title of two words, and some paragraphs."""
    paragraphs = [
        " ".join(draw_words(chance, chance.randint(3, 25))) for _ in range(chance.randint(1, 4))
    ]
    title = " ".join(draw_words(chance, 2))
    description = " ".join(draw_words(chance, 3))
    header = f"---\ntitle: {title}\ndescription: {description}\n---\n"
    return header + "\n\n".join(paragraphs) + "\n"


def open_index(folder: Path) -> SqliteEngine:
    """Return an empty index."""
    return open_engine(folder / "index.db", nullcontext)


def term_index(db: Connection, known_notes: int = 0) -> TermIndex:
    """Return the term index as it is now, in a vault of so many notes."""
    return TermIndex(db, SegmentCache(), known_notes)


def put_notes(db: Connection, texts: dict[str, str]) -> dict[str, int]:
    """Put notes by their names, in one segment, and return their ids."""
    rows = PendingRows(db)
    ids = {}
    for name, content in texts.items():
        read = parse_note(f"{name}.md", read_note(content.encode()), Stat(0, 0, 0))
        known = notes.row_at(db, read.path)
        ids[name] = notes.put(rows, None if known is None else known.id, read, None, None)
        put_text(rows, ids[name], read, new=known is None)
    rows.write()
    return ids


def remove_notes(db: Connection, ids: Iterable[int]) -> None:
    """Remove notes from the index."""
    for note_id in ids:
        remove_text(db, note_id)
        notes.remove(db, note_id)


class FullText:
    """Notes and their blocks in FTS5 tables, scored by FTS5's own bm25()."""

    def __init__(self) -> None:
        self._db = apsw.Connection(":memory:")
        for table in ("note", "block"):
            sql = (
                f'CREATE VIRTUAL TABLE {table} USING fts5 (title, body, tokenize = "{_TOKENIZER}")'
            )
            self._db.execute(sql)

    def put(self, note_id: int, name: str, content: str) -> None:
        """Add a note, or replace it."""
        self.remove(note_id)
        note = read_note(content.encode())
        read = parse_note(f"{name}.md", note, Stat(0, 0, 0))
        title = f"{read.metadata.title}\n{name}"
        bodies = [block.text for block in read.blocks]
        body = "\n".join([read.metadata.description, *bodies])
        row = (note_id, title, body)
        self._db.execute("INSERT INTO note (rowid, title, body) VALUES (?, ?, ?)", row)
        for number, block in enumerate(bodies):
            row = (note_id << 20 | 1 << 19 | number, title, block)
            self._db.execute("INSERT INTO block (rowid, title, body) VALUES (?, ?, ?)", row)

    def remove(self, note_id: int) -> None:
        """Remove a note."""
        self._db.execute("DELETE FROM note WHERE rowid = ?", (note_id,))
        self._db.execute("DELETE FROM block WHERE rowid >> 20 = ?", (note_id,))

    def scores(
        self, kind: str, terms: Sequence[Term], ids: Sequence[int] | None = None
    ) -> dict[int, float]:
        """Return the score of every note or block that holds a term, by its id."""
        any_term = " OR ".join(
            '"' + " ".join(term.words) + '"' + "*" * term.beginning for term in terms
        )
        sql = f"SELECT rowid, -bm25({kind}, 10.0, 1.0) FROM {kind} WHERE {kind} MATCH ?"
        scores = dict(self._db.execute(sql, (any_term,)))
        if ids is None:
            return scores
        wanted = set(ids)
        return {
            row: score
            for row, score in scores.items()
            if (row if kind == "note" else row >> 20) in wanted
        }
