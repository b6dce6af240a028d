"""Vectors in memory, for a process that searches more than once: what vectors.py answers in SQL, by numpy.

Up to a quarter of a million passages they lie here whole, and all are compared. Above that only codes of
them do (codes.py): these choose the notes whose vectors are then read and compared.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, Self

import apsw

from simplemem.index import among, notes
from simplemem.index.codes import Codes
from simplemem.index.matrix import Matrix, unit
from simplemem.index.vectors import Nearness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

MOST_COMPARED = 64_000_000  # numbers: 250,000 passages of 256, in eleven milliseconds
_MOST_FRESH = 2_000  # notes


class Part(Protocol):
    """Some notes and what is known of their vectors. Never changed, only replaced: a question may be using it."""

    @property
    def notes(self) -> Ids: ...

    def of(self, db: apsw.Connection, notes: Sequence[int]) -> Self: ...

    def joined(self, other: Self) -> Self: ...

    def without(self, notes: Collection[int]) -> Self: ...

    def nearest(
        self, db: apsw.Connection, /, asked: Floats, ids: Ids | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]: ...


class Resident:
    """The vectors of one index. Follows the table by the notes' `rev`: a change costs what it changes.

    Notes that changed since the last full load lie in a small part of their own, and what was known of them is passed
    over. Notes that are gone are met when they are about to be returned.
    """

    def __init__(self, dimension: int, most_compared: int = MOST_COMPARED) -> None:
        self._dimension = dimension
        self._most_compared = most_compared
        self._lock = threading.Lock()
        self._seen = (-1, -1)  # the index's generation and its newest rev
        self._loaded_rev = -1  # the newest rev when all of it was loaded
        self._parts: list[Part] = []  # all notes, and those that changed since

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

        asked = unit(np.frombuffer(query, np.int8).reshape(1, -1))[0]
        among_these = None if ids is None else np.asarray(ids, np.int64)
        while True:
            with self._lock:
                self._follow(db, generation)
                parts = list(self._parts)
                is_as_loaded = self._seen[1] == self._loaded_rev
            found: dict[int, Nearness] = {}
            for part in parts:  # the sum of two tops holds the top of the sum
                found.update(part.nearest(db, asked, among_these, limit, also))
            gone = set() if is_as_loaded else _gone(db, found)
            if not gone:
                return _nearest_of(found, limit, also) if len(parts) > 1 else found
            with self._lock:
                self._parts = [part.without(gone) for part in self._parts]

    def _follow(self, db: apsw.Connection, generation: int) -> None:
        rev = notes.newest_rev(db)
        if (generation, rev) == self._seen and self._parts:
            return
        changed = [row[0] for row in db.execute("SELECT id FROM notes WHERE rev > ?", (self._seen[1],))]
        fresh = len(changed) + (len(self._parts[1].notes) if len(self._parts) > 1 else 0)
        if not self._parts or generation != self._seen[0] or fresh > self._most_fresh():
            self._parts = []  # not two of them at once
            self._parts, self._loaded_rev = [self._loaded(db)], rev
        elif changed:
            base, *rest = (part.without(changed) for part in self._parts)
            came = base.of(db, changed)
            self._parts = [base, rest[0].joined(came) if rest else came]
        self._seen = (generation, rev)

    def _most_fresh(self) -> int:
        return min(_MOST_FRESH, 200 + len(self._parts[0].notes) // 20)

    def _loaded(self, db: apsw.Connection) -> Part:
        passages = int(db.execute("SELECT count(*) FROM passages").get)
        kind = Codes if passages * self._dimension > self._most_compared else Matrix
        return kind.load(db, self._dimension)


def _gone(db: apsw.Connection, found: Collection[int]) -> set[int]:
    """Those of some notes that are not there any more."""
    sql = f"SELECT id FROM notes WHERE id IN (SELECT value FROM {among.TABLE})"
    return set(found) - {row[0] for row in db.execute(sql, {"ids": among.bound(found)})}


def _nearest_of(found: dict[int, Nearness], limit: int, also: Collection[int]) -> dict[int, Nearness]:
    best = sorted(found, key=lambda note: (-found[note].passage, note))[:limit]
    return {note: found[note] for note in {*best, *(found.keys() & set(also))}}
