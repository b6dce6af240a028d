"""Vectors of passages and blocks, and the notes nearest to one. int8, exact.

They lie in an ordinary table, so that a filter skips rows and removal is by range. A server holds them in memory as
`Resident` and asks numpy; a command that runs once lets sqlite-vec compare them in SQL, which loads nothing. Both compare
the same integers and give the same scores.
"""

from __future__ import annotations

import heapq
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from simplemem.index import notes
from simplemem.index.text import BLOCK, SHIFT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near a note is: its best passage and its best block, by cosine. A passage of one block is both."""

    passage: float
    block: float

    @property
    def score(self) -> float:
        return max(0.0, (self.passage + self.block) / 2)


def put(db: apsw.Connection, note_id: int, sha256: str, vectors: Mapping[int, bytes]) -> bool:
    """Store a note's vectors, unless the note has changed since its text was read. Says whether they were stored."""
    row = db.execute("SELECT sha256 FROM notes WHERE id = ?", (note_id,)).fetchone()
    if row is None or row[0] != sha256:
        return False
    first, after = note_id << SHIFT, (note_id + 1) << SHIFT
    hashes = dict(
        db.execute(
            """SELECT id, hash FROM passages WHERE id >= :first AND id < :after
               UNION ALL SELECT id, hash FROM blocks WHERE id >= :first AND id < :after""",
            {"first": first, "after": after},
        )
    )
    db.executemany(
        "INSERT OR REPLACE INTO vectors (id, hash, vector) VALUES (?, ?, ?)",
        ((id_, hashes[id_], vector) for id_, vector in vectors.items() if id_ in hashes),
    )
    db.execute("UPDATE notes SET embedded = 1, rev = ? WHERE id = ?", (notes.next_rev(db), note_id)).fetchall()
    return True


def missing(db: apsw.Connection, limit: int) -> list[tuple[int, str]]:
    """Notes whose vectors are still to be made, as (id, path)."""
    return list(db.execute("SELECT id, path FROM notes WHERE embedded = 0 ORDER BY id LIMIT ?", (limit,)))


def count_missing(db: apsw.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM notes WHERE embedded = 0").get)


def places_with_vectors(db: apsw.Connection, note_id: int) -> set[int]:
    """The places of a note that have a vector already."""
    return {row[0] for row in db.execute("SELECT id FROM vectors WHERE id >= ? AND id < ?",
                                         (note_id << SHIFT, (note_id + 1) << SHIFT))}  # fmt: skip


def vectors_of(db: apsw.Connection, note_id: int) -> list[bytes]:
    """The vectors of a note's passages."""
    sql = "SELECT vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id"
    first = note_id << SHIFT
    return [row[0] for row in db.execute(sql, (first, first | BLOCK))]


def forget_all(db: apsw.Connection) -> None:
    """Another embedder came: no vector of the old one may meet one of the new."""
    db.execute("DELETE FROM vectors").fetchall()
    db.execute("UPDATE notes SET embedded = 0").fetchall()


# -- asking in SQL


def nearest_in_sql(
    db: apsw.Connection, query: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
) -> dict[int, Nearness]:
    """The nearest notes by sqlite-vec, over exactly the rows that `ids` leave; and the notes in `also`, near or not."""
    narrowed = "" if ids is None else f"WHERE (id >> {SHIFT}) IN (SELECT value FROM json_each(:ids))"
    sql = f"""SELECT id >> {SHIFT}, id & {BLOCK}, min(vec_distance_cosine(vec_int8(vector), vec_int8(:query)))
              FROM vectors {narrowed} GROUP BY id >> {SHIFT}, id & {BLOCK}"""
    values: dict[str, object] = {"query": query}
    if ids is not None:
        values["ids"] = json.dumps(list(ids))
    best: dict[int, list[float]] = {}
    for note, block, distance in db.execute(sql, values):
        best.setdefault(note, [0.0, 0.0])[1 if block else 0] = 1.0 - (1.0 if distance is None else distance)
    found = {note: Nearness(passage, max(passage, block)) for note, (passage, block) in best.items()}
    top = set(heapq.nlargest(limit, found, key=lambda note: (found[note].score, -note)))
    return {note: nearness for note, nearness in found.items() if note in top or note in also}


def nearest_place(db: apsw.Connection, note_id: int, query: bytes) -> int | None:
    """The place of a note's passage that is nearest, None when it has no vector."""
    first = note_id << SHIFT
    rows = db.execute("SELECT id, vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id", (first, first | BLOCK))
    asked = _signed(query)
    best: tuple[float, int] | None = None
    for id_, vector in rows:
        values = _signed(vector)
        if len(values) == len(asked):
            norm = sum(v * v for v in values) ** 0.5 or 1.0
            score = sum(a * b for a, b in zip(asked, values, strict=True)) / norm
            if best is None or score > best[0]:
                best = (score, id_)
    return None if best is None else best[1]


def _signed(vector: bytes) -> memoryview:
    return memoryview(vector).cast("b")


# -- asking in memory


class Resident:
    """All vectors in memory, unit length, in order of id. Follows the table by the notes' `rev`.

    Notes that changed since the last full load lie in a small part of their own, so that a write never copies the whole.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._lock = threading.Lock()
        self._seen = (-1, -1)  # the index's generation and its newest rev
        self._loaded_rev = -1  # the newest rev when all of it was loaded
        self._base: _Part | None = None
        self._fresh: _Part | None = None
        self._stale: Ids | None = None

    def nearest(
        self,
        db: apsw.Connection,
        generation: int,
        query: bytes,
        ids: Sequence[int] | None,
        limit: int,
        also: Collection[int],
    ) -> dict[int, Nearness]:
        """The nearest notes, as `nearest_in_sql` gives them."""
        import numpy as np

        with self._lock:
            self._follow(db, generation)
            base, fresh, stale = self._base, self._fresh, self._stale
        asked = _unit(np.frombuffer(query, np.int8).reshape(1, -1))[0]
        found: dict[int, Nearness] = {}
        for part, without in ((base, stale), (fresh, None)):  # the sum of two tops holds the top of the sum
            if part is not None and len(part.ids):
                found.update(part.nearest(asked, ids, without, limit, also))
        return found

    def _follow(self, db: apsw.Connection, generation: int) -> None:
        import numpy as np

        rev = notes.newest_rev(db)
        if (generation, rev) == self._seen and self._base is not None:
            return
        changed = [row[0] for row in db.execute("SELECT id FROM notes WHERE rev > ?", (self._loaded_rev,))]
        if self._base is None or generation != self._seen[0] or len(changed) > 200 + len(self._base.starts) // 20:
            self._base = _Part.load(db, self._dimension, None)
            self._fresh, self._stale, self._loaded_rev = None, None, rev
        else:
            self._fresh = _Part.load(db, self._dimension, changed)
            present = np.fromiter((row[0] for row in db.execute("SELECT id FROM notes ORDER BY id")), np.int64)
            gone = np.setdiff1d(self._base.notes, present, assume_unique=True)
            self._stale = np.union1d(gone, np.asarray(changed, np.int64))
        self._seen = (generation, rev)


@dataclass(frozen=True, slots=True)
class _Part:
    """Vectors in order of id, and where each note's passages and blocks begin among them."""

    ids: Ids
    matrix: Matrix
    starts: Ids  # first row of every run of one note's passages or blocks
    notes: Ids  # distinct notes, in order

    @classmethod
    def load(cls, db: apsw.Connection, dimension: int, notes: Sequence[int] | None) -> _Part:
        import numpy as np

        if notes is None:
            found = db.execute("SELECT id, vector FROM vectors ORDER BY id")
        else:
            sql = f"""SELECT v.id, v.vector FROM json_each(?) n
                      JOIN vectors v ON v.id >= (n.value << {SHIFT}) AND v.id < ((n.value + 1) << {SHIFT})
                      ORDER BY v.id"""
            found = db.execute(sql, (json.dumps(list(notes)),))
        rows: list[tuple[Any, ...]] = [row for row in found if len(row[1]) == dimension]
        ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        raw = np.frombuffer(b"".join(row[1] for row in rows), np.int8).reshape(-1, dimension)
        runs = ids >> 19
        starts = np.flatnonzero(np.diff(runs, prepend=-1)) if len(ids) else np.empty(0, np.int64)
        return cls(ids, _unit(raw), starts, np.unique(ids >> SHIFT))

    def nearest(
        self, query: Matrix, ids: Sequence[int] | None, without: Ids | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]:
        import numpy as np

        best = np.maximum.reduceat(self.matrix @ query, self.starts)
        runs = self.ids[self.starts] >> 19
        at, blocks = np.searchsorted(self.notes, runs >> 1), (runs & 1).astype(bool)
        scores = np.zeros((len(self.notes), 2), np.float32)
        scores[at[~blocks], 0] = best[~blocks]
        scores[at[blocks], 1] = best[blocks]
        scores[:, 1] = scores.max(axis=1)
        keep = np.ones(len(self.notes), bool)
        if ids is not None:
            keep &= np.isin(self.notes, np.asarray(ids, np.int64))
        if without is not None and len(without):
            keep &= ~np.isin(self.notes, without)
        rows = np.flatnonzero(keep)
        if len(rows) > limit:
            top = rows[np.argpartition(-scores[rows].sum(axis=1), limit)[:limit]]
            wanted = np.isin(self.notes, np.fromiter(also, np.int64, len(also))) & keep
            rows = np.union1d(top, np.flatnonzero(wanted))
        return {
            note: Nearness(passage, block)
            for note, (passage, block) in zip(self.notes[rows].tolist(), scores[rows].tolist(), strict=True)
        }


def _unit(raw: NDArray[np.int8]) -> Matrix:
    """Rows of unit length. Sixteen megabytes at a time, so that a million rows need no second copy."""
    import numpy as np

    matrix = np.empty(raw.shape, np.float32)
    for first in range(0, len(raw), 16384):
        part = raw[first : first + 16384].astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", part, part))
        matrix[first : first + 16384] = part / np.maximum(norms, 1e-9)[:, None]
    return matrix
