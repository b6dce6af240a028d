"""Vectors of passages and blocks, and the notes nearest to one: those with the nearest passages, exactly; their blocks,
and the blocks of notes that the words have found, are compared then. int8.

They lie in an ordinary table, so that a filter skips rows and removal is by range. A server holds them in memory as
`Resident` and asks numpy; a command that runs once lets sqlite-vec compare them in SQL, which loads nothing. Both compare
the same integers and give the same scores.
"""

from __future__ import annotations

import heapq
import itertools
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


def places_without_vectors(db: apsw.Connection, note_id: int) -> dict[int, bytes]:
    """The places of a note that wait for a vector, with the hash of what it is to be made of."""
    sql = """SELECT id, hash FROM (SELECT id, hash FROM passages UNION ALL SELECT id, hash FROM blocks)
             WHERE id >= :first AND id < :after AND hash IS NOT NULL
               AND id NOT IN (SELECT id FROM vectors WHERE id >= :first AND id < :after)"""
    return dict(db.execute(sql, {"first": note_id << SHIFT, "after": (note_id + 1) << SHIFT}))


def vectors_of(db: apsw.Connection, note_id: int) -> list[bytes]:
    """The vectors of a note's passages."""
    sql = "SELECT vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id"
    first = note_id << SHIFT
    return [row[0] for row in db.execute(sql, (first, first | BLOCK))]


def forget_all(db: apsw.Connection) -> None:
    """Another embedder came: no vector of the old one may meet one of the new."""
    db.execute("DELETE FROM vectors").fetchall()
    db.execute("UPDATE notes SET embedded = 0 WHERE hidden IS NULL").fetchall()


# -- asking in SQL


def nearest_in_sql(
    db: apsw.Connection, query: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
) -> dict[int, Nearness]:
    """The notes with the nearest passages by sqlite-vec, over exactly the rows that `ids` leave; and the notes in `also`,
    near or not."""
    narrowed = "" if ids is None else f"AND (id >> {SHIFT}) IN (SELECT value FROM json_each(:ids))"
    sql = f"""SELECT id >> {SHIFT}, min(vec_distance_cosine(vec_int8(vector), vec_int8(:query)))
              FROM vectors WHERE id & {BLOCK} = 0 {narrowed} GROUP BY id >> {SHIFT}"""
    values: dict[str, object] = {"query": query}
    if ids is not None:
        values["ids"] = json.dumps(list(ids))
    passages = {note: _cosine(distance) for note, distance in db.execute(sql, values)}
    wanted = {
        *heapq.nlargest(limit, passages, key=lambda note: (passages[note], -note)),
        *(passages.keys() & set(also)),
    }
    sql = f"""SELECT n.value, min(vec_distance_cosine(vec_int8(v.vector), vec_int8(:query)))
              FROM json_each(:notes) n
              JOIN vectors v ON v.id >= (n.value << {SHIFT}) + {BLOCK} AND v.id < ((n.value + 1) << {SHIFT})
              GROUP BY n.value"""
    values = {"query": query, "notes": json.dumps(sorted(wanted))}
    blocks = {note: _cosine(distance) for note, distance in db.execute(sql, values)}
    return {note: Nearness(passages[note], max(passages[note], blocks.get(note, 0.0))) for note in wanted}


def _cosine(distance: Any) -> float:
    return 0.0 if distance is None else 1.0 - float(distance)


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
            if part is not None and len(part.notes):
                found.update(part.nearest(asked, ids, without, limit, also))
        return found

    def _follow(self, db: apsw.Connection, generation: int) -> None:
        import numpy as np

        rev = notes.newest_rev(db)
        if (generation, rev) == self._seen and self._base is not None:
            return
        changed = [row[0] for row in db.execute("SELECT id FROM notes WHERE rev > ?", (self._loaded_rev,))]
        if self._base is None or generation != self._seen[0] or len(changed) > 200 + len(self._base.notes) // 20:
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
    """Vectors in order of id: passages as they are multiplied, blocks as they are stored, and where each note begins."""

    notes: Ids  # with a passage, in order
    passages: Matrix
    first_passages: Ids  # of each note, among the passages
    blocks: NDArray[np.int8]
    first_blocks: Ids  # of each note, and where its blocks end
    after_blocks: Ids

    @classmethod
    def load(cls, db: apsw.Connection, dimension: int, notes: Sequence[int] | None) -> _Part:
        import numpy as np

        places, raw = _stored(db, dimension, notes)
        is_block = (places & BLOCK).astype(bool)
        owners = places[~is_block] >> SHIFT
        first = np.flatnonzero(np.diff(owners, prepend=-1))
        distinct = owners[first]
        owners_of_blocks = places[is_block] >> SHIFT
        begins, ends = (np.searchsorted(owners_of_blocks, distinct, side) for side in ("left", "right"))
        return cls(distinct, _unit(raw[~is_block]), first, raw[is_block], begins, ends)

    def nearest(
        self, query: Matrix, ids: Sequence[int] | None, without: Ids | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]:
        import numpy as np

        near = np.maximum.reduceat(self.passages @ query, self.first_passages)
        keep = np.ones(len(self.notes), bool)
        if ids is not None:
            keep &= np.isin(self.notes, np.asarray(ids, np.int64))
        if without is not None and len(without):
            keep &= ~np.isin(self.notes, without)
        rows = np.flatnonzero(keep)
        if len(rows) > limit:
            top = rows[np.argpartition(-near[rows], limit)[:limit]]
            wanted = np.isin(self.notes, np.fromiter(also, np.int64, len(also))) & keep
            rows = np.union1d(top, np.flatnonzero(wanted))
        passages, blocks = near[rows].tolist(), self._best_blocks(rows, query).tolist()
        return {
            note: Nearness(passage, max(passage, block))
            for note, passage, block in zip(self.notes[rows].tolist(), passages, blocks, strict=True)
        }

    def _best_blocks(self, rows: Ids, query: Matrix) -> Matrix:
        """The best block of each of some notes; 0 where there is none."""
        import numpy as np

        first = self.first_blocks[rows]
        counts = self.after_blocks[rows] - first
        best = np.zeros(len(rows), np.float32)
        if counts.any():
            starts = np.cumsum(counts) - counts
            at = np.arange(counts.sum()) + np.repeat(first - starts, counts)
            there = counts > 0
            best[there] = np.maximum.reduceat(_unit(self.blocks[at]) @ query, starts[there])
        return best


def _stored(db: apsw.Connection, dimension: int, notes: Sequence[int] | None) -> tuple[Ids, NDArray[np.int8]]:
    """The places and vectors of some notes, or of all, in order. A few at a time, so that a million need no second copy."""
    import numpy as np

    if notes is None:
        found = db.execute("SELECT id, vector FROM vectors WHERE length(vector) = ? ORDER BY id", (dimension,))
    else:
        sql = f"""SELECT v.id, v.vector FROM json_each(:notes) n
                  JOIN vectors v ON v.id >= (n.value << {SHIFT}) AND v.id < ((n.value + 1) << {SHIFT})
                  WHERE length(v.vector) = :dimension ORDER BY v.id"""
        found = db.execute(sql, {"notes": json.dumps(list(notes)), "dimension": dimension})
    places, parts = [np.empty(0, np.int64)], [np.empty((0, dimension), np.int8)]
    while rows := list(itertools.islice(found, 16384)):
        places.append(np.fromiter((row[0] for row in rows), np.int64, len(rows)))
        joined = b"".join([row[1] for row in rows])
        parts.append(np.frombuffer(joined, np.int8).reshape(-1, dimension))
    return np.concatenate(places), np.concatenate(parts)


def _unit(raw: NDArray[np.int8]) -> Matrix:
    """Rows of unit length. Sixteen megabytes at a time, so that a million rows need no second copy."""
    import numpy as np

    matrix = np.empty(raw.shape, np.float32)
    for first in range(0, len(raw), 16384):
        part = raw[first : first + 16384].astype(np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", part, part))
        matrix[first : first + 16384] = part / np.maximum(norms, 1e-9)[:, None]
    return matrix
