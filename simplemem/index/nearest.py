"""The notes nearest to a vector: those with the nearest passages, exactly; their blocks, and those of notes that the words
have found, are compared then. Vectors are int8, a row a passage or block.

They are held in memory and compared by simsimd: those of passages from the first question on, those of blocks from the
second, unless there are more than MOST_HELD numbers of passages.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any

import apsw

from simplemem.index import notes
from simplemem.index.door import Nearness
from simplemem.index.legs import IDS, bound
from simplemem.index.text import BLOCK, SHIFT

MOST_HELD = 64_000_000  # numbers: 250,000 passages of 256
_LEFT = 1_000  # rows of notes that changed or went, and a quarter of all: then all are loaded anew
_CANDIDATES = 8  # times as many passages as notes are wanted
NOBODY = 0  # is no note
_FARTHEST = 3.0  # more than any cosine distance

Bests = dict[int, float]
"""By note, the cosine of its best passage or block."""


# -- of a few notes


def stored(db: apsw.Connection, some: Iterable[int]) -> Iterable[tuple[int, bytes]]:
    """The places and vectors of some notes, in order."""
    sql = f"""SELECT v.id, v.vector FROM {IDS} n CROSS JOIN vectors v
              WHERE v.id >= (n.value << {SHIFT}) AND v.id < ((n.value + 1) << {SHIFT})"""
    return db.execute(sql, {"ids": bound(sorted(some))})


def _compared(
    db: apsw.Connection, query: bytes, some: Iterable[int], *, blocks: bool = False
) -> Iterable[tuple[int, float]]:
    """How far each passage or block of some notes is, by its id."""
    rows = [row for row in stored(db, some) if bool(row[0] & BLOCK) == blocks and len(row[1]) == len(query)]
    return zip(map(itemgetter(0), rows), distances(query, b"".join(map(itemgetter(1), rows))), strict=True)


def read_best(db: apsw.Connection, query: bytes, some: Iterable[int], *, blocks: bool = False) -> Bests:
    """The best passage or block of each of some notes, read from the table."""
    return _bests((id_ >> SHIFT, distance) for id_, distance in _compared(db, query, some, blocks=blocks))


def nearest_places(db: apsw.Connection, query: bytes, some: Sequence[int]) -> dict[int, int]:
    """Of each of some notes the passage that is nearest; those without a vector are absent."""
    best: dict[int, tuple[float, int]] = {}
    for id_, distance in _compared(db, query, some):
        best[id_ >> SHIFT] = min(best.get(id_ >> SHIFT, (_FARTHEST, 0)), (distance, id_))
    return {note: id_ for note, (_, id_) in best.items()}


def mean_vector(db: apsw.Connection, note: int) -> bytes | None:
    """The middle of a note's passages, as a vector of the same kind."""
    rows = [memoryview(vector).cast("b") for id_, vector in stored(db, [note]) if not id_ & BLOCK][:64]
    if not rows:
        return None
    sums = [sum(column) for column in zip(*rows, strict=True)]
    largest = max(map(abs, sums)) or 1
    return bytes((round(value * 127 / largest)) & 0xFF for value in sums)


def distances(query: bytes, rows: bytes | bytearray) -> Any:  # a buffer of floats
    """How far each row is from a query, by cosine; a vector of zeros is near to nothing."""
    import simsimd

    count = len(rows) // len(query) if query else 0
    if not count or not any(query):
        return array("d", [1.0]) * count
    asked = memoryview(query).cast("b", shape=[1, len(query)])
    there = memoryview(rows).cast("b", shape=[count, len(query)])
    found: Any = simsimd.cdist(asked, there, "cosine", dtype="int8")
    return memoryview(found).cast("B").cast("d")


def _bests(rows: Iterable[tuple[int, float]], allowed: Collection[int] | None = None) -> Bests:
    """The nearest row of each note, as a cosine."""
    best: Bests = {}
    for note, distance in rows:
        if distance < best.get(note, _FARTHEST) and (allowed is None or note in allowed):
            best[note] = distance
    best.pop(NOBODY, None)
    return {note: 1.0 - distance for note, distance in best.items()}


# -- in memory


class _Rows:
    """The vectors of notes, one behind the other. Those of a note that changed come last, and what it had
    before belongs to nobody."""

    def __init__(self, width: int) -> None:
        self.vectors = bytearray()
        self.owners = array("q")
        self._width = width
        self._spans: dict[int, tuple[int, int]] = {}

    def add(self, note: int, vector: bytes) -> None:
        """A row more of the note that has the last ones, or of another."""
        first, _ = self._spans.get(note, (len(self.owners), 0))
        self._spans[note] = first, len(self.owners) + 1
        self.owners.append(note)
        self.vectors += vector

    def forget(self, note: int) -> int:
        """Take a note out. How many rows it had."""
        first, after = self._spans.pop(note, (0, 0))
        self.owners[first:after] = array("q", [NOBODY]) * (after - first)
        return after - first

    def best_of(self, query: bytes, some: Iterable[int]) -> Bests:
        """The best row of each of some notes."""
        spans = [(note, *self._spans[note]) for note in some if note in self._spans]
        rows = b"".join([self.vectors[first * self._width : after * self._width] for _, first, after in spans])
        owners = [note for note, first, after in spans for _ in range(after - first)]
        return _bests(zip(owners, distances(query, rows), strict=True))


class VectorsInMemory:
    """The vectors of one index. Follows the table by the notes' `rev`: a change costs what it changes. Notes that are gone
    are met when they are about to be returned. One question at a time."""

    def __init__(self, dimension: int, most_held: int = MOST_HELD) -> None:
        self._dimension = dimension
        self._most_held = most_held
        self._lock = threading.Lock()
        self._seen = (-1, -1)  # the index's generation and its newest rev
        self._left = 0  # rows that belong to nobody
        self._passages = _Rows(dimension)
        self._blocks: _Rows | None = None  # whoever asks once is read those it needs
        self._asked = False

    def nearest(
        self,
        db: apsw.Connection,
        generation: int,
        query: bytes,
        ids: Sequence[int] | None,
        limit: int,
        also: Collection[int],
    ) -> dict[int, Nearness]:
        """The notes with the nearest passages, among `ids` when given; and the notes in `also`, near or not."""
        allowed = None if ids is None else frozenset(ids)
        with self._lock:
            self._follow(db, generation)
            while True:
                passages = self._passages_near(query, allowed, limit, also)
                best = sorted([(-cosine, note) for note, cosine in passages.items()])[:limit]
                wanted = {*(note for _, note in best), *(passages.keys() & set(also))}
                gone = wanted - notes.paths_of(db, wanted).keys()
                if not gone:
                    break
                self._forget(gone)
            blocks = (
                read_best(db, query, wanted, blocks=True)
                if self._blocks is None
                else self._blocks.best_of(query, wanted)
            )
        return {note: Nearness(passages[note], max(passages[note], blocks.get(note, 0.0))) for note in wanted}

    def _follow(self, db: apsw.Connection, generation: int) -> None:
        seen = (generation, notes.newest_rev(db))
        if seen != self._seen and generation == self._seen[0] and self._left < _LEFT + len(self._passages.owners) // 4:
            changed = [row[0] for row in db.execute("SELECT id FROM notes WHERE rev > ?", (self._seen[1],))]
            self._forget(changed)
            self._load(db, self._passages, changed)
            if self._blocks is not None:
                self._load(db, self._blocks, changed)
        elif seen != self._seen:
            self._passages, self._blocks, self._left = _Rows(self._dimension), None, 0
            self._load(db, self._passages)
        if self._asked and self._blocks is None and len(self._passages.vectors) <= self._most_held:
            self._blocks = _Rows(self._dimension)
            self._load(db, self._blocks)
        self._seen, self._asked = seen, True

    def _load(self, db: apsw.Connection, rows: _Rows, changed: Sequence[int] | None = None) -> None:
        """The vectors of notes that changed, or all there are."""
        where = f"length(v.vector) = :width AND (v.id & {BLOCK} <> 0) = :blocks"
        values: dict[str, Any] = {"width": self._dimension, "blocks": rows is self._blocks}
        sql = f"SELECT v.id, v.vector FROM vectors v WHERE {where} ORDER BY v.id"
        if changed is not None:
            sql = f"""SELECT v.id, v.vector FROM {IDS} n CROSS JOIN vectors v
                      WHERE v.id >= (n.value << {SHIFT}) AND v.id < ((n.value + 1) << {SHIFT}) AND {where}"""
            values["ids"] = bound(changed)
        for id_, row in db.execute(sql, values):
            rows.add(id_ >> SHIFT, row)

    def _forget(self, some: Iterable[int]) -> None:
        for note in some:
            self._left += self._passages.forget(note)
            if self._blocks is not None:
                self._blocks.forget(note)

    def _passages_near(self, query: bytes, allowed: frozenset[int] | None, limit: int, also: Collection[int]) -> Bests:
        """The best passage of the nearest notes, and of those in `also`, among those that a filter leaves."""
        if allowed is not None and len(allowed) <= len(self._passages.owners) // 12:
            return self._passages.best_of(query, allowed)
        best = self._nearest(query, allowed, limit)
        others = [note for note in also if note not in best and (allowed is None or note in allowed)]
        return best | self._passages.best_of(query, others)

    def _nearest(self, query: bytes, allowed: frozenset[int] | None, limit: int) -> Bests:
        """At least so many of the nearest notes: the nearest passages, and more until they are of enough notes."""
        import numpy as np

        owners = np.frombuffer(self._passages.owners, np.int64)
        found = np.frombuffer(distances(query, self._passages.vectors), np.float64)
        count = _CANDIDATES * limit
        while True:
            near = found <= (np.partition(found, count)[count] if count < len(found) else _FARTHEST)
            best = _bests(zip(owners[near].tolist(), found[near].tolist(), strict=True), allowed)
            if len(best) >= limit or count >= len(found):
                return best
            count *= 4
