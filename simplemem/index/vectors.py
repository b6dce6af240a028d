"""Vectors of passages and blocks, and the notes nearest to one: those with the nearest passages, exactly; their blocks,
and the blocks of notes that the words have found, are compared then. int8.

They lie in an ordinary table, so that a filter skips rows and removal is by range. A server holds them in memory
(resident.py); a command that runs once lets sqlite-vec compare them in SQL, which loads nothing. Both compare the same
integers and give the same scores.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Mapping, Sequence
from operator import mul
from typing import Any, NamedTuple

import apsw

from simplemem.index import notes
from simplemem.index.generations import NOW, Shelf
from simplemem.index.text import BLOCK, SHIFT


class Nearness(NamedTuple):
    """How near a note is: its best passage and its best block, by cosine. A passage of one block is both."""

    passage: float
    block: float

    @property
    def score(self) -> float:
        return max(0.0, (self.passage + self.block) / 2)


class QueryVector(bytes):
    """A question's vector, which knows whose it is: another embedder's vectors are never compared with it."""

    embedder: str

    def __new__(cls, vector: bytes, embedder: str) -> QueryVector:
        made = super().__new__(cls, vector)
        made.embedder = embedder
        return made


def put(
    db: apsw.Connection,
    note_id: int,
    sha256: str,
    vectors: Mapping[int, bytes],
    shelf: Shelf = NOW,
    refused: str = "",
) -> bool:
    """Store a note's vectors, unless the note has changed since its text was read. Says whether they were stored.
    `refused` is what the embedder said of texts it would not take; the note asks for no more then."""
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
        f"INSERT OR REPLACE INTO {shelf.table} (id, hash, vector) VALUES (?, ?, ?)",
        ((id_, hashes[id_], vector) for id_, vector in vectors.items() if id_ in hashes),
    )
    if refused:
        db.execute("INSERT OR REPLACE INTO refused (note_id, why) VALUES (?, ?)", (note_id, refused)).fetchall()
    done = 2 if refused else 1
    db.execute(f"UPDATE notes SET {shelf.flag} = ? WHERE id = ?", (done, note_id)).fetchall()
    if shelf == NOW:  # whoever holds the vectors in use in memory follows by the number of the change
        db.execute("UPDATE notes SET rev = ? WHERE id = ?", (notes.next_rev(db), note_id)).fetchall()
    return True


def missing(db: apsw.Connection, limit: int, shelf: Shelf = NOW) -> list[tuple[int, str]]:
    """Notes whose vectors are still to be made, as (id, path)."""
    return list(db.execute(f"SELECT id, path FROM notes WHERE {shelf.flag} = 0 ORDER BY id LIMIT ?", (limit,)))


def count_missing(db: apsw.Connection, shelf: Shelf = NOW) -> int:
    return int(db.execute(f"SELECT count(*) FROM notes WHERE {shelf.flag} = 0").get)


def settle(db: apsw.Connection, note_id: int, shelf: Shelf) -> None:
    """A note that a generation wants nothing of."""
    db.execute(f"UPDATE notes SET {shelf.flag} = 1 WHERE id = ?", (note_id,)).fetchall()


def places_without_vectors(db: apsw.Connection, note_id: int, shelf: Shelf = NOW) -> dict[int, bytes]:
    """The places of a note that wait for a vector, with the hash of what it is to be made of."""
    sql = f"""SELECT id, hash FROM (SELECT id, hash FROM passages UNION ALL SELECT id, hash FROM blocks)
              WHERE id >= :first AND id < :after AND hash IS NOT NULL
                AND id NOT IN (SELECT id FROM {shelf.table} WHERE id >= :first AND id < :after)"""
    return dict(db.execute(sql, {"first": note_id << SHIFT, "after": (note_id + 1) << SHIFT}))


def vectors_of(db: apsw.Connection, note_id: int) -> list[bytes]:
    """The vectors of a note's passages."""
    sql = "SELECT vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id"
    first = note_id << SHIFT
    return [row[0] for row in db.execute(sql, (first, first | BLOCK))]


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
            norm = sum(map(mul, values, values)) ** 0.5 or 1.0
            score = sum(map(mul, asked, values)) / norm
            if best is None or score > best[0]:
                best = (score, id_)
    return None if best is None else best[1]


def _signed(vector: bytes) -> memoryview:
    return memoryview(vector).cast("b")
