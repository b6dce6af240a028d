"""Vectors of passages and blocks, int8: generations, what waits for them, what they would cost, and the notes nearest
to one. They are compared in memory, all of them: passages from the first question on, blocks from the second."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import apsw

from simplemem.index import notes
from simplemem.index.door import Embedded, Generation, Nearness
from simplemem.index.legs import IDS, bound
from simplemem.index.notes import NEXT, NOW, VectorTable, generations, shelf_of, waiting
from simplemem.index.text import BLOCK, SHIFT, span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_HELD = 64_000_000  # numbers: 250,000 passages of 256
_LEFT = 1_000  # rows of notes that changed or went, and a quarter of all: then all are loaded anew
_CANDIDATES = 8  # times as many passages as notes are wanted
_NOBODY = 0  # is no note

Bests = dict[int, float]
"""By note, the cosine of its nearest passage or block."""


def generation_of(db: apsw.Connection, embedder: str) -> Generation | None:
    """The generation of this embedder, in use or being made."""
    return next((found for found in generations(db) if found.embedder == embedder), None)


def begin(db: apsw.Connection, embedder: str, *, remote: bool) -> None:
    """Give an embedder a generation, if it has none: beside vectors in use the next, in place of any other being
    made."""
    found = generation_of(db, embedder)
    if found is None:
        shelf, place = (NEXT, "next") if db.execute("SELECT EXISTS (SELECT 1 FROM vectors)").get else (NOW, "now")
        db.execute("DELETE FROM vectors_next; UPDATE notes SET refused = NULL WHERE refused IS NOT NULL").fetchall()
        db.execute("DELETE FROM generations WHERE place IN ('next', ?)", (place,)).fetchall()
        db.execute("INSERT INTO generations VALUES (?, ?, 0, ?)", (place, embedder, remote)).fetchall()
        wants_nothing = "hidden IS NOT NULL OR (:remote AND private IS NOT NULL)"
        db.execute(f"UPDATE notes SET {shelf.flag} = ({wants_nothing})", {"remote": remote}).fetchall()
    elif (
        found.remote != remote
    ):  # the same model on another machine, which must have no private note, or back on this one
        shelf = shelf_of(found)
        db.execute("UPDATE generations SET remote = ? WHERE embedder = ?", (remote, embedder)).fetchall()
        if remote:
            private = "SELECT id FROM notes WHERE private IS NOT NULL"
            db.execute(f"DELETE FROM {shelf.table} WHERE id >> {SHIFT} IN ({private})").fetchall()
        sql = f"UPDATE notes SET {shelf.flag} = ? WHERE private IS NOT NULL AND hidden IS NULL"
        db.execute(sql, (int(remote),)).fetchall()


def switch_if_complete(db: apsw.Connection, embedder: str, without: Set[int]) -> None:
    """Put the next generation in use when no note waits for it, but for those that nobody can read just now. Only who
    makes it does: the settings of another process ask for the one that is in use."""
    found = generation_of(db, embedder)
    waiting = db.execute("SELECT id FROM notes WHERE embedded_next = 0 LIMIT ?", (len(without) + 1,)).fetchall()
    if found is None or found.in_use or not without >= {note_id for (note_id,) in waiting}:
        return
    db.execute(
        """ALTER TABLE vectors RENAME TO vectors_before;
           ALTER TABLE vectors_next RENAME TO vectors;
           ALTER TABLE vectors_before RENAME TO vectors_next;
           DELETE FROM vectors_next;
           UPDATE notes SET embedded = embedded_next WHERE embedded != embedded_next;
           DELETE FROM generations WHERE place = 'now';
           UPDATE generations SET place = 'now' WHERE place = 'next'"""
    ).fetchall()


# -- a note's vectors


def put(
    db: apsw.Connection,
    note_id: int,
    sha256: str,
    vectors: Mapping[int, bytes],
    shelf: VectorTable = NOW,
    refused: str = "",
) -> bool:
    """Store a note's vectors, unless the note has changed since its text was read; and what the embedder refused."""
    if db.execute("SELECT sha256 FROM notes WHERE id = ?", (note_id,)).get != sha256:
        return False
    wanted = hashes_of(db, note_id)
    db.executemany(
        f"INSERT OR REPLACE INTO {shelf.table} (id, hash, vector) VALUES (?, ?, ?)",
        ((place, wanted[place], vector) for place, vector in vectors.items() if place in wanted),
    )
    sql = f"UPDATE notes SET {shelf.flag} = 1, refused = nullif(?, '') WHERE id = ?"
    db.execute(sql, (refused, note_id)).fetchall()
    if shelf == NOW:  # whoever holds the vectors in use in memory follows by the number of the change
        db.execute("UPDATE notes SET rev = ? WHERE id = ?", (notes.next_rev(db), note_id)).fetchall()
    return True


def hashes_of(db: apsw.Connection, note_id: int, without: VectorTable | None = None) -> dict[int, bytes]:
    """The places of a note that are to have a vector, or lack it in a table, with the hash of what it is made of."""
    waits = "" if without is None else f"AND id NOT IN (SELECT id FROM {without.table} WHERE id >= ?1 AND id < ?2)"
    sql = f"SELECT id, hash FROM places WHERE id >= ?1 AND id < ?2 AND hash IS NOT NULL {waits}"
    return dict(db.execute(sql, span(note_id)))


def missing(db: apsw.Connection, limit: int, shelf: VectorTable = NOW) -> list[tuple[int, str]]:
    """Notes whose vectors are still to be made, as (id, path)."""
    return list(db.execute(f"SELECT id, path FROM notes WHERE {shelf.flag} = 0 ORDER BY id LIMIT ?", (limit,)))


# -- how far they are, and what they would cost


def embedded(db: apsw.Connection, embedder: str, remote: bool) -> Embedded:
    """How far an embedder is, which may not have a generation yet."""
    sql = "SELECT count(*), coalesce(sum(private IS NOT NULL), 0) FROM notes WHERE hidden IS NULL"
    visible, private = next(db.execute(sql))
    wanted = visible - private if remote else visible
    found = generation_of(db, embedder)
    refused: Any = db.execute("SELECT path, refused FROM notes WHERE refused IS NOT NULL ORDER BY path")
    return Embedded(wanted if found is None else waiting(db, found), wanted, private, list(refused))


# -- the nearest


def stored(db: apsw.Connection, some: Iterable[int] | None, *, blocks: bool = False) -> Iterable[tuple[int, bytes]]:
    """The places and vectors of the passages of some notes or of all, or of their blocks, in order."""
    where = f"(v.id & {BLOCK} <> 0) = :blocks"
    if some is None:
        return db.execute(f"SELECT v.id, v.vector FROM vectors v WHERE {where} ORDER BY v.id", {"blocks": blocks})
    sql = f"""SELECT v.id, v.vector FROM {IDS} n CROSS JOIN vectors v
              WHERE v.id >= (n.value << {SHIFT}) AND v.id < ((n.value + 1) << {SHIFT}) AND {where}"""
    return db.execute(sql, {"ids": bound(sorted(some)), "blocks": blocks})


def nearest_places(db: apsw.Connection, query: bytes, some: Iterable[int]) -> dict[int, int]:
    """Of each of some notes the passage that is nearest; those without a vector are absent."""
    rows = list(stored(db, some))
    near = distances(query, b"".join(vector for _, vector in rows)).tolist()
    best: dict[int, tuple[float, int]] = {}
    for (place, _), distance in zip(rows, near, strict=True):
        best[place >> SHIFT] = min(best.get(place >> SHIFT, (distance, place)), (distance, place))
    return {note: place for note, (_, place) in best.items()}


def vectors_of(db: apsw.Connection, note_id: int) -> list[bytes]:
    """The vectors of a note's passages."""
    return [vector for _, vector in stored(db, [note_id])]


def mean_vector(db: apsw.Connection, note: int) -> bytes | None:
    """The middle of a note's passages, as a vector of the same kind."""
    import numpy as np

    rows = [np.frombuffer(vector, np.int8) for vector in vectors_of(db, note)[:64]]
    if not rows:
        return None
    sums = np.sum(rows, axis=0, dtype=np.float64)
    return np.rint(sums * 127 / (np.abs(sums).max() or 1)).astype(np.int8).tobytes()


def distances(query: bytes, rows: Any) -> NDArray[np.float64]:
    """How far each row of a buffer is from a query, by cosine; a vector of zeros is near to nothing."""
    import numpy as np
    import simsimd

    count = len(rows) // len(query) if query else 0
    if not count or not any(query):
        return np.ones(count)
    asked = memoryview(query).cast("b", shape=[1, len(query)])
    found: Any = simsimd.cdist(asked, memoryview(rows).cast("b", shape=[count, len(query)]), "cosine", dtype="int8")
    return np.frombuffer(memoryview(found).cast("B"), np.float64)


class _Rows:
    """Vectors one behind the other, with the notes they are of. What a note had before it changed belongs to nobody."""

    def __init__(self, rows: Iterable[tuple[int, bytes]]) -> None:
        self.vectors, self.owners = bytearray(), array("q")
        self.left = 0
        self.add(rows)

    def add(self, rows: Iterable[tuple[int, bytes]]) -> None:
        for place, vector in rows:
            self.owners.append(place >> SHIFT)
            self.vectors += vector

    def forget(self, some: Iterable[int]) -> None:
        """Take notes out."""
        import numpy as np

        rows = self._of(some)
        np.frombuffer(self.owners, np.int64)[rows] = _NOBODY
        self.left += int(np.count_nonzero(rows))

    def best(self, query: bytes, some: Iterable[int] | None = None, limit: int | None = None) -> Bests:
        """The best row of each of some notes; with a limit, of so many of the nearest notes at least."""
        import numpy as np

        owners = np.frombuffer(self.owners, np.int64)
        rows = slice(None) if some is None else self._of(some)
        if not isinstance(rows, slice) and 4 * np.count_nonzero(rows) < len(rows):  # else all are compared as soon
            vectors = np.frombuffer(self.vectors, np.int8).reshape(-1, len(query))[rows]
            found = distances(query, vectors.reshape(-1).data)
        else:
            found = distances(query, self.vectors)[rows]
        owners = owners[rows]
        count = len(found) if limit is None else _CANDIDATES * limit
        while True:
            near = found <= (np.partition(found, count)[count] if count < len(found) else np.inf)
            nearest_last = np.argsort(-found[near], kind="stable")
            ids, cosines = owners[near][nearest_last], 1 - found[near][nearest_last]
            best = dict(zip(ids.tolist(), cosines.tolist(), strict=True))
            best.pop(_NOBODY, None)
            if limit is None or len(best) >= limit or count >= len(found):
                return best
            count *= 4

    def _of(self, some: Iterable[int]) -> NDArray[np.bool_]:
        """Which rows are of some notes."""
        import numpy as np

        owners = np.frombuffer(self.owners, np.int64)
        ids = np.asarray(some if isinstance(some, array) else list(some), np.int64)
        marks = np.zeros(int(owners.max(initial=0)) + 1, bool)
        marks[ids[ids < len(marks)]] = True
        marked: NDArray[np.bool_] = marks[owners]
        return marked


class VectorsInMemory:
    """The vectors of one index. Follows the table by the notes' `rev`; notes that are gone are met in answers."""

    def __init__(self, most_held: int = MOST_HELD) -> None:
        self._most_held = most_held
        self._lock = threading.Lock()
        self._seen: tuple[object, int] = (None, -1)  # whose they are, and the newest rev
        self._passages = _Rows(())
        self._blocks: _Rows | None = None  # whoever asks once is read those it needs
        self._asked = False

    def nearest(
        self,
        db: apsw.Connection,
        whose: object,
        query: bytes,
        ids: Sequence[int] | None,
        limit: int,
        also: Collection[int],
    ) -> dict[int, Nearness]:
        """The notes with the nearest passages, among `ids`, and those in `also`. Vectors `whose` others are, are let
        go."""
        with self._lock:
            self._follow(db, whose)
            while True:
                passages = self._passages.best(query, ids, limit)
                passages |= self._passages.best(query, also)
                best = sorted([(-cosine, note) for note, cosine in passages.items()])[:limit]
                wanted = {*(note for _, note in best), *(passages.keys() & set(also))}
                if not (gone := wanted - notes.paths_of(db, wanted).keys()):
                    break
                for rows in filter(None, (self._passages, self._blocks)):
                    rows.forget(gone)
            blocks = (self._blocks or _Rows(stored(db, wanted, blocks=True))).best(query, wanted)
        return {note: Nearness(passages[note], max(passages[note], blocks.get(note, 0.0))) for note in wanted}

    def _follow(self, db: apsw.Connection, whose: object) -> None:
        seen, (before, rev) = (whose, notes.newest_rev(db)), self._seen
        if whose != before or self._passages.left > _LEFT + len(self._passages.owners) // 4:
            self._passages, self._blocks, self._asked = _Rows(stored(db, None)), None, self._asked and whose == before
        elif seen != self._seen:
            changed = [row[0] for row in db.execute("SELECT id FROM notes WHERE rev > ?", (rev,))]
            for rows in filter(None, (self._passages, self._blocks)):
                rows.forget(changed)
                rows.add(stored(db, changed, blocks=rows is self._blocks))
        if self._asked and self._blocks is None and len(self._passages.vectors) <= self._most_held:
            self._blocks = _Rows(stored(db, None, blocks=True))
        self._seen, self._asked = seen, True
