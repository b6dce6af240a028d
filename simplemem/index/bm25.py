"""BM25 as FTS5 counts it, for chosen rows only.

FTS5's own bm25() counts the rows of every word anew for every question, and looks up the size of every row that holds one.
In a large vault that is nearly all of the time. Here the counts are kept for as long as no note changes, and only the rows
that are asked for are scored; the scores are the same.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence

import apsw

from simplemem.index import among

TITLE_WEIGHT, BODY_WEIGHT = 10.0, 1.0  # docs/search.md
_K1, _B, _LEAST_IDF = 1.2, 0.75, 1e-6  # FTS5's
_MOST_TERMS = 20_000  # whose counts are kept


def teach(db: apsw.Connection) -> None:
    """Let a connection answer `scored(table, counts)`: the score of a row, given how many rows hold each term of the MATCH.
    How many rows there are FTS5 has written down; to count them takes longer than all else in a large vault."""
    db.register_fts5_function("scored", _scored)


def _scored(row: apsw.FTS5ExtensionApi, *given: apsw.SQLiteValue) -> float:
    told: tuple[list[float], float] | None = row.aux_data
    if told is None:  # the first row of a question
        rows = row.row_count
        idfs = [_idf(rows, count) for count in json.loads(str(given[0]))]
        told = idfs, _K1 * _B * rows / max(1, row.column_total_size(-1))
        row.aux_data = told
    idfs, by_size = told
    flat = _K1 * (1 - _B) + by_size * row.column_size(-1)
    score = 0.0
    for phrase, idf in enumerate(idfs):
        in_title, in_body = row.phrase_locations(phrase)[:2]
        if in_title or in_body:
            found = TITLE_WEIGHT * len(in_title) + BODY_WEIGHT * len(in_body)
            score += idf * found * (_K1 + 1) / (found + flat)
    return score


class Counts:
    """How many rows hold a term, for one state of the index."""

    def __init__(self, key: tuple[int, int]) -> None:
        self.key = key
        self._of: dict[tuple[str, str], int] = {}
        self._notes = -1

    def notes(self, db: apsw.Connection) -> int:
        """How many notes there are."""
        if self._notes < 0:
            self._notes = int(db.execute("SELECT count(*) FROM notes").get)
        return self._notes

    def of(self, db: apsw.Connection, table: str, term: str) -> int:
        """The number of rows of a table that hold a term, which is written as FTS5 takes it."""
        count = self._of.get((table, term))
        if count is None:
            count = int(db.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (term,)).get)
            self._keep(table, term, count)
        return count

    def of_with_rows(self, db: apsw.Connection, table: str, term: str, ids: Sequence[int]) -> list[int]:
        """Count the rows that hold a term, and return those among `ids`."""
        among_ids = f"(rowid >> 0) IN (SELECT value FROM {among.TABLE})"
        sql = f"SELECT count(*), json_group_array(rowid) FILTER (WHERE {among_ids}) FROM {table} WHERE {table} MATCH :term"
        count, rows = next(db.execute(sql, {"term": term, "ids": among.bound(ids)}))
        self._keep(table, term, int(count))
        found: list[int] = json.loads(rows)
        return found

    def _keep(self, table: str, term: str, count: int) -> None:
        if len(self._of) >= _MOST_TERMS:
            self._of.clear()
        self._of[(table, term)] = count

    def of_each(self, db: apsw.Connection, table: str, terms: Sequence[str]) -> str:
        """What `scored` is given for a MATCH of these terms."""
        return json.dumps([self.of(db, table, term) for term in terms])


def _idf(rows: int, count: int) -> float:
    return max(math.log((rows - count + 0.5) / (count + 0.5)), _LEAST_IDF)


class CountsKept:
    """The counts of the state that was asked for last. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts = Counts((-1, -1))

    def of_state(self, generation: int, rev: int) -> Counts:
        with self._guard:
            if self._counts.key != (generation, rev):
                self._counts = Counts((generation, rev))
            return self._counts
