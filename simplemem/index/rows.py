"""Rows on their way into the tables, kept by statement.

SQLite takes a thousand rows of one kind in less time than a few of each kind in turn: what one statement needs is then
still at hand. While many notes are put, their rows are written together at the end of the transaction, and what they have
in common is asked once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw

from simplemem.index.generations import Generation


class Table(NamedTuple):
    """Rows that belong to a note: how those it has are asked for, as they are put, and how they go. In no
    order: SQLite would prepare a statement that orders anew for every note."""

    held: str
    clear: str
    put: str


class Rows:
    """What is still to be written, in the order in which its statements first came. For one transaction."""

    def __init__(self) -> None:
        self.rev: int | None = None  # the number of the change that they all are
        self.generations: list[Generation] | None = None  # of vectors, as they are while it lasts
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}

    def add(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep rows for a statement."""
        waiting = self._waiting.get(sql)
        if waiting is None:
            waiting = self._waiting[sql] = []
        waiting.extend(rows)

    def replace(
        self, db: apsw.Connection, table: Table, note_id: int, wanted: Sequence[tuple[Any, ...]], *, new: bool
    ) -> None:
        """Keep the rows of a note for a table, unless they are there already: most changes of a note leave most of its rows
        as they were, and every page that is not touched need not be written."""
        if not new:
            if sorted(db.execute(table.held, (note_id,))) == wanted:
                return
            db.execute(table.clear, (note_id,)).fetchall()
        if wanted:
            self.add(table.put, wanted)

    def write(self, db: apsw.Connection) -> None:
        """Write all that is kept."""
        for sql, rows in self._waiting.items():
            db.executemany(sql, rows)
        self._waiting.clear()
