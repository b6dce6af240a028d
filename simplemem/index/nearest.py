"""The notes nearest to a vector: those with the nearest passages, exactly; their blocks, and those of notes that the words
have found, are compared then. Vectors are int8, a row a passage or block.

A process that asks once lets sqlite-vec compare them in SQL, which loads nothing. One that asks again holds them in memory
and compares them with simsimd (`VectorsInMemory`); of more than MOST_COMPARED numbers it holds the signs alone, which
choose the passages that are read and compared. All give the same scores.
"""

from __future__ import annotations

import json
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import apsw

from simplemem.index import notes
from simplemem.index.door import Nearness
from simplemem.index.facts import BLOCK, SHIFT
from simplemem.index.legs import IDS, bound

MOST_COMPARED = 64_000_000  # numbers: 250,000 passages of 256, in twelve milliseconds
_MOST_CHANGED = 2_000  # notes
_SAMPLED = 64  # every so many distances tell how near the nearest are about
_CANDIDATES = 4  # times as many passages as notes are wanted
_READ = 800  # notes that signs choose, at least
_FEW = 1_000  # notes: their vectors are read at once
_FARTHEST = 3.0  # more than any cosine distance

Bests = dict[int, float]
"""By note, the cosine of its best passage or block."""


# -- in SQL


def nearest_in_sql(
    db: apsw.Connection, query: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
) -> dict[int, Nearness]:
    """The notes with the nearest passages by sqlite-vec, over exactly the rows that `ids` leave; and the notes in `also`,
    near or not."""
    narrowed = "" if ids is None else f"AND (id >> {SHIFT}) IN (SELECT value FROM {IDS})"
    sql = f"""SELECT id >> {SHIFT}, min(vec_distance_cosine(vec_int8(vector), vec_int8(:query)))
              FROM vectors WHERE id & {BLOCK} = 0 {narrowed} GROUP BY id >> {SHIFT}"""
    values: dict[str, Any] = {"query": query}
    if ids is not None:
        values["ids"] = bound(ids)
    passages = {note: _cosine(distance) for note, distance in db.execute(sql, values)}
    wanted = _nearest(passages, limit, also)
    sql = f"""SELECT n.value, min(vec_distance_cosine(vec_int8(v.vector), vec_int8(:query)))
              FROM json_each(:notes) n
              JOIN vectors v ON v.id >= (n.value << {SHIFT}) + {BLOCK} AND v.id < ((n.value + 1) << {SHIFT})
              GROUP BY n.value"""
    rows = db.execute(sql, {"query": query, "notes": json.dumps(sorted(wanted))})
    return _together(wanted, passages, {note: _cosine(distance) for note, distance in rows})


def _cosine(distance: Any) -> float:
    return 0.0 if distance is None else 1.0 - float(distance)


def _nearest(passages: Bests, limit: int, also: Collection[int]) -> set[int]:
    best = sorted([(-cosine, note) for note, cosine in passages.items()])[:limit]
    return {*(note for _, note in best), *(passages.keys() & set(also))}


def _together(wanted: Iterable[int], passages: Bests, blocks: Bests) -> dict[int, Nearness]:
    return {note: Nearness(passages[note], max(passages[note], blocks.get(note, 0.0))) for note in wanted}


# -- of a few notes


def nearest_places(db: apsw.Connection, query: bytes, some: Sequence[int]) -> dict[int, int]:
    """Of each of some notes the passage that is nearest; those without a vector are absent."""
    rows = [row for row in stored(db, sorted(some)) if not row[0] & BLOCK and len(row[1]) == len(query)]
    best: dict[int, tuple[float, int]] = {}
    for (id_, _), distance in zip(rows, distances(query, b"".join(map(itemgetter(1), rows))), strict=True):
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


def stored(db: apsw.Connection, some: Sequence[int]) -> Iterable[tuple[int, bytes]]:
    """The places and vectors of some notes, in order."""
    sql = f"""SELECT v.id, v.vector FROM {IDS} n CROSS JOIN vectors v
              WHERE v.id >= (n.value << {SHIFT}) AND v.id < ((n.value + 1) << {SHIFT})"""
    return db.execute(sql, {"ids": bound(some)})


def distances(query: bytes, rows: bytes | bytearray) -> list[float]:
    """How far each row is from a query, by cosine; a vector of zeros is near to nothing."""
    import simsimd

    count = len(rows) // len(query) if query else 0
    if not count or not any(query):
        return [1.0] * count
    asked = memoryview(query).cast("b", shape=[1, len(query)])
    there = memoryview(rows).cast("b", shape=[count, len(query)])
    found: Any = simsimd.cdist(asked, there, "cosine", dtype="int8")
    return list(memoryview(found).cast("B").cast("d"))


# -- in memory


class VectorsInMemory:
    """The vectors of one index. Follows the table by the notes' `rev`: a change costs what it changes.

    Notes that changed since all were loaded lie in a small part of their own, and what was known of them is passed over.
    Notes that are gone are met when they are about to be returned.
    """

    def __init__(self, dimension: int, *, with_signs: bool, most_compared: int = MOST_COMPARED) -> None:
        self._dimension = dimension
        self._with_signs = with_signs  # whether sqlite-vec is there to make them
        self._most_compared = most_compared
        self._lock = threading.Lock()
        self._seen = (-1, -1)  # the index's generation and its newest rev
        self._loaded_rev = -1  # the newest rev when all of it was loaded
        self._all: Part | None = None
        self._changed: set[int] = set()  # notes that changed since...
        self._since: Part | None = None  # ...and their vectors

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
        allowed = None if ids is None else frozenset(ids)
        while True:
            with self._lock:
                parts = self._followed(db, generation)
                is_as_loaded = self._seen[1] == self._loaded_rev
            passages: Bests = {}
            for part, passed_over in parts:  # the sum of two tops holds the top of the sum
                passages.update(part.passages_near(db, query, _Passing(allowed, passed_over), limit, also))
            wanted = _nearest(passages, limit, also)
            gone = set() if is_as_loaded else wanted - _there(db, wanted)
            if not gone:
                break
            with self._lock:
                self._changed |= gone
                self._since = None
        blocks: Bests = {}
        for part, passed_over in parts:
            blocks.update(part.blocks_near(db, query, [note for note in wanted if note not in passed_over]))
        return _together(wanted, passages, blocks)

    def _followed(self, db: apsw.Connection, generation: int) -> list[tuple[Part, Collection[int]]]:
        """All notes and those that changed, each with the notes that are passed over in it."""
        rev = notes.newest_rev(db)
        if self._all is not None and generation == self._seen[0] and rev != self._seen[1]:
            self._changed |= {row[0] for row in db.execute("SELECT id FROM notes WHERE rev > ?", (self._seen[1],))}
            self._since = None
        if self._all is None or generation != self._seen[0] or len(self._changed) > self._most_changed(self._all):
            self._all = self._since = None  # not two of them at once
            self._all, self._changed, self._loaded_rev = self._loaded(db), set(), rev
        self._seen = (generation, rev)
        if not self._changed:
            return [(self._all, ())]
        if self._since is None:
            self._since = Part(self._dimension, stored(db, sorted(self._changed)))
        return [(self._all, frozenset(self._changed)), (self._since, ())]

    def _most_changed(self, every: Part) -> int:
        return min(_MOST_CHANGED, 200 + len(every.passages.notes) // 20)

    def _loaded(self, db: apsw.Connection) -> Part:
        count = int(db.execute("SELECT count(*) FROM passages").get)
        if self._with_signs and count * self._dimension > self._most_compared:
            return Signs(self._dimension, db)
        return Part(self._dimension, db.execute("SELECT id, vector FROM vectors ORDER BY id"))


@dataclass(frozen=True, slots=True)
class _Passing:
    """Which notes count: those that a filter leaves, but for some."""

    allowed: frozenset[int] | None
    passed_over: Collection[int]

    def __contains__(self, note: object) -> bool:
        return note not in self.passed_over and (self.allowed is None or note in self.allowed)

    def are_all(self) -> bool:
        return self.allowed is None and not self.passed_over

    def few(self, most: int) -> list[int] | None:
        """The notes that a filter leaves when they are few, else None."""
        if self.allowed is None or len(self.allowed) > most:
            return None
        return [note for note in self.allowed if note not in self.passed_over]


class _Rows:
    """Vectors, or what stands for them, note by note in order of their ids."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.notes = array("q")
        self._first = array("i")  # of each note
        self.vectors = bytearray()
        self.count = 0

    def add(self, note: int, vector: bytes) -> None:
        if len(vector) == self.width:
            if not self.notes or self.notes[-1] != note:
                self.notes.append(note)
                self._first.append(self.count)
            self.vectors += vector
            self.count += 1

    def note_of(self, row: int) -> int:
        return self.notes[bisect_right(self._first, row) - 1]

    def span(self, note: int) -> tuple[int, int]:
        """The first row of a note and the one after its last."""
        at = bisect_left(self.notes, note)
        if at == len(self.notes) or self.notes[at] != note:
            return 0, 0
        return self._first[at], self._first[at + 1] if at + 1 < len(self._first) else self.count

    def best_of(self, query: bytes, some: Iterable[int]) -> Bests:
        """The best row of each of some notes."""
        spans = [(note, *self.span(note)) for note in some]
        rows = b"".join([self.vectors[first * self.width : after * self.width] for _, first, after in spans])
        found, at, best = distances(query, rows), 0, {}
        for note, first, after in spans:
            if first < after:
                best[note] = 1.0 - min(found[at : at + after - first])
                at += after - first
        return best


class Part:
    """The vectors of some notes. Never changed, only replaced: a question may be using it."""

    def __init__(self, dimension: int, rows: Iterable[tuple[int, bytes]]) -> None:
        self.passages, self._blocks = _Rows(dimension), _Rows(dimension)
        for id_, vector in rows:
            (self._blocks if id_ & BLOCK else self.passages).add(id_ >> SHIFT, vector)

    def passages_near(
        self,
        db: apsw.Connection,  # noqa: ARG002 - the signs ask it
        query: bytes,
        passing: _Passing,
        limit: int,
        also: Collection[int],
    ) -> Bests:
        """The best passage of the nearest notes, and of those in `also`."""
        if (few := passing.few(len(self.passages.notes) // 4)) is not None:
            return self.passages.best_of(query, few)
        found = distances(query, self.passages.vectors)
        best = self._best(found, passing, limit)
        for note in also:
            if note not in best and note in passing:
                first, after = self.passages.span(note)
                if first < after:
                    best[note] = 1.0 - min(found[first:after])
        return best

    def _best(self, found: Sequence[float], passing: _Passing, limit: int) -> Bests:
        """At least so many of the nearest notes: the passages nearer than some distance, which is widened until they are
        of enough notes."""
        sample = sorted(found[::_SAMPLED])
        place = max(1, _CANDIDATES * limit // _SAMPLED)
        while True:
            near = sample[place] if place < len(sample) else _FARTHEST
            rows = [row for row, distance in enumerate(found) if distance <= near]
            owners = [self.passages.note_of(row) for row in rows]
            best = _bests(owners, [found[row] for row in rows], None if passing.are_all() else passing)
            if len(best) >= limit or near == _FARTHEST:
                return best
            place *= 4

    def blocks_near(self, db: apsw.Connection, query: bytes, some: Iterable[int]) -> Bests:  # noqa: ARG002
        """The best block of each of some notes."""
        return self._blocks.best_of(query, some)


class Signs(Part):
    """The signs of all passages' numbers, an eighth of a byte a number. The passages whose signs differ least from the
    question's choose the notes whose vectors are read from the table and compared."""

    def __init__(self, dimension: int, db: apsw.Connection) -> None:
        sql = f"""SELECT id, vec_quantize_binary(vec_int8(vector)) FROM vectors
                  WHERE id & {BLOCK} = 0 AND length(vector) = ? ORDER BY id"""
        super().__init__(dimension // 8, db.execute(sql, (dimension,)))

    def passages_near(
        self, db: apsw.Connection, query: bytes, passing: _Passing, limit: int, also: Collection[int]
    ) -> Bests:
        """The best passage of the notes that are likely nearest, and of those in `also`."""
        few = passing.few(_FEW)
        likely = self._likely(db, query, passing, limit) if few is None else few
        return _read_best(db, query, [*{*likely, *(note for note in also if note in passing)}], BLOCK)

    def blocks_near(self, db: apsw.Connection, query: bytes, some: Iterable[int]) -> Bests:
        """The best block of each of some notes."""
        return _read_best(db, query, list(some), 0)

    def _likely(self, db: apsw.Connection, query: bytes, passing: _Passing, limit: int) -> list[int]:
        import simsimd

        signs = bytes(db.execute("SELECT vec_quantize_binary(vec_int8(?))", (query,)).get)
        asked = memoryview(signs).cast("B", shape=[1, len(signs)])
        there = memoryview(self.passages.vectors).cast("B", shape=[self.passages.count, len(signs)])
        kind: Any = "uint8"  # which its stub does not know
        found: Any = simsimd.cdist(asked, there, "hamming", dtype="bin8", out_dtype=kind)
        differing = memoryview(found).tobytes()
        likely: dict[int, None] = {}
        for bits in range(256):
            row = differing.find(bits)
            while row >= 0:
                note = self.passages.note_of(row)
                if note in passing:
                    likely[note] = None
                row = differing.find(bits, row + 1)
            if len(likely) >= max(_READ, _CANDIDATES * limit):
                break
        return list(likely)


def _read_best(db: apsw.Connection, query: bytes, some: Sequence[int], leave_out: int) -> Bests:
    """The best passage or block of each of some notes, read from the table; those with the bits in `leave_out` are not
    looked at."""
    rows = [row for row in stored(db, sorted(some)) if (row[0] & BLOCK) != leave_out and len(row[1]) == len(query)]
    return _bests((id_ >> SHIFT for id_, _ in rows), distances(query, b"".join(map(itemgetter(1), rows))))


def _bests(owners: Iterable[int], found: Iterable[float], passing: Container[int] | None = None) -> Bests:
    """The nearest row of each note, as a cosine."""
    best: Bests = {}
    for note, distance in zip(owners, found, strict=True):
        if distance < best.get(note, _FARTHEST) and (passing is None or note in passing):
            best[note] = distance
    return {note: 1.0 - distance for note, distance in best.items()}


def _there(db: apsw.Connection, some: Collection[int]) -> set[int]:
    sql = f"SELECT id FROM notes WHERE id IN (SELECT value FROM {IDS})"
    return {row[0] for row in db.execute(sql, {"ids": bound(some)})}
