"""All vectors in memory, for a process that searches more than once: what vectors.py answers in SQL, by numpy."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from simplemem.index import notes
from simplemem.index.text import BLOCK, SHIFT
from simplemem.index.vectors import Nearness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Ids = NDArray[np.int64]


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
