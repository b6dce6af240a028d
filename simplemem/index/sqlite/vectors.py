"""Vectors in SQLite: a `vec0` table of sqlite-vec, or a table of bytes where sqlite-vec has no build.

The `vec0` table can be queried by anyone with SQL (docs/internals/engines.md#vectors-in-sqlite).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw

from simplemem.index.engine import Damaged
from simplemem.index.places import BLOCK, SHIFT

_MAX_DIMENSION = 8_192  # of a vector in a `vec0` table
# Rows that a `vec0` table makes room for at a time. Of its default, 1,024, a small vault would use little.
_CHUNK_SIZE = 256
_PASSAGES_PER_NOTE = (
    4  # that are read for each note that is looked for, before all that can be read
)

_CREATE_VEC0 = """
    CREATE VIRTUAL TABLE vectors USING vec0(
        id INTEGER PRIMARY KEY, is_block INTEGER PARTITION KEY,
        vector INT8[{dimension}] DISTANCE_METRIC=cosine, CHUNK_SIZE={chunk_size}
    )"""
_CREATE_BYTES = "CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL)"

# The vectors of a note are looked up by the ids of its places. A `vec0` table has no ranges of ids.
_SELECT_NOTES = """
    SELECT p.id, v.vector
    FROM carray($1) n CROSS JOIN places p CROSS JOIN vectors v ON v.id = p.id
    WHERE p.id >= (n.value << {shift}) + {first} AND p.id < (n.value << {shift}) + {after}
      AND p.hash IS NOT NULL
    ORDER BY p.id"""

# A `vec0` table keeps its rows in chunks: ids and vectors in a row each, and a bit per place that is in
# use. Reading its rows takes 15 times as long as reading whole chunks (bench/vectors.py).
_SELECT_CHUNKS = """
    SELECT c.validity, c.rowids, v.vectors
    FROM vectors_chunks c JOIN vectors_vector_chunks00 v ON v.rowid = c.chunk_id
    WHERE c.partition00 = $1 ORDER BY c.chunk_id"""


@cache
def _extension() -> str | None:
    """Return the path of sqlite-vec, or None if it is not installed (there is no build for musl)."""
    # Importing the package would import numpy, which takes longer than a short command.
    package = find_spec("sqlite_vec")
    if package is None or package.origin is None:
        return None
    return str(Path(package.origin).with_name("vec0"))


def has_vector_extension() -> bool:
    """Return whether sqlite-vec is available to this process."""
    return _extension() is not None


def describe_storage() -> str:
    """Return how this process keeps vectors in SQLite, for people."""
    if _extension() is None:
        return "bytes, compared in memory (sqlite-vec is not available here)"
    return "a vec0 table of sqlite-vec"


def load_extension(raw: apsw.Connection) -> bool:
    """Load sqlite-vec into a connection, and return whether it is available."""
    path = _extension()
    if path is None:
        return False
    raw.enable_load_extension(True)
    try:
        raw.load_extension(path)
    finally:
        raw.enable_load_extension(False)
    return True


class SqliteVectors:
    """The vectors of one index, through one connection. Guards nothing: which table there is, it asks."""

    def __init__(self, raw: apsw.Connection, *, has_extension: bool) -> None:
        self._raw = raw
        self._has_extension = has_extension

    def _tables(self) -> set[str]:
        sql = "SELECT name FROM sqlite_schema WHERE name IN ('vectors', 'vectors_chunks')"
        return {name for (name,) in self._raw.execute(sql)}

    def create(self, dimension: int) -> None:
        """Make the table for vectors of this width, if it is not there."""
        if self._tables():
            return
        if self._has_extension and dimension <= _MAX_DIMENSION:
            sql = _CREATE_VEC0.format(dimension=dimension, chunk_size=_CHUNK_SIZE)
        else:
            sql = _CREATE_BYTES
        self._raw.execute(sql).fetchall()

    def clear(self) -> None:
        """Remove all vectors."""
        self._raw.execute("DROP TABLE IF EXISTS vectors").fetchall()

    def write(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Store the vectors of places, in place of those that they have."""
        rows = list(vectors)
        if not rows:
            return
        # A `vec0` table knows no INSERT OR REPLACE.
        self._raw.executemany("DELETE FROM vectors WHERE id = $1", [(row[0],) for row in rows])
        if self._is_vec0():
            sql = "INSERT INTO vectors (id, is_block, vector) VALUES ($1, $2, vec_int8($3))"
            self._raw.executemany(
                sql, [(place, int(place & BLOCK != 0), vector) for place, vector in rows]
            )
        else:
            self._raw.executemany("INSERT INTO vectors (id, vector) VALUES ($1, $2)", rows)

    def _is_vec0(self) -> bool:
        return "vectors_chunks" in self._tables()

    def remove(self, note_id: int) -> None:
        """Remove the vectors of a note, whose rows in `places` must still be there."""
        if not self._tables():
            return
        sql = "SELECT id FROM places WHERE id >= $1 AND id < $2 AND hash IS NOT NULL"
        values = note_id << SHIFT, (note_id + 1) << SHIFT
        places = self._raw.execute(sql, values).fetchall()
        self._raw.executemany("DELETE FROM vectors WHERE id = $1", places)

    def read(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of those places that have one."""
        if not places or not self._tables():
            return {}
        sql = "SELECT v.id, v.vector FROM carray($1) p CROSS JOIN vectors v ON v.id = p.value"
        return dict(self._raw.execute(sql, (apsw.carray(array("q", places)),)))

    def read_notes(self, note_ids: Iterable[int], *, blocks: bool) -> list[tuple[int, bytes]]:
        """Return the places and vectors of the passages of notes, or of their blocks, in order."""
        ids = array("q", note_ids)
        if not ids or not self._tables():
            return []
        first, after = _range_in_note(blocks=blocks)
        sql = _SELECT_NOTES.format(shift=SHIFT, first=first, after=after)
        rows: Any = self._raw.execute(sql, (apsw.carray(ids),)).fetchall()
        return list(rows)

    def read_all(self, *, blocks: bool) -> tuple[array[int], bytearray]:
        """Return the places of all passages or blocks, and their vectors in a row."""
        places, vectors = array("q"), bytearray()
        tables = self._tables()
        if "vectors_chunks" in tables:
            for chunk in self._raw.execute(_SELECT_CHUNKS, (int(blocks),)):
                chunk_places, chunk_vectors = _unpack_chunk(*chunk)
                places.frombytes(chunk_places)
                vectors += chunk_vectors
        elif tables:
            sql = f"SELECT id, vector FROM vectors WHERE (id & {BLOCK}) = $1 ORDER BY id"
            for place, vector in self._raw.execute(sql, (BLOCK if blocks else 0,)):
                places.append(place)
                vectors += vector
        return places, vectors

    def count(self) -> int:
        """Return how many vectors there are."""
        if not self._tables():
            return 0
        table = "vectors_rowids" if self._is_vec0() else "vectors"
        return int(self._raw.execute(f"SELECT count(*) FROM {table}").get)

    @property
    def is_indexed(self) -> bool:
        """False: a `vec0` table compares all vectors, as a process does in memory."""
        return False

    def nearest_notes(
        self, _query: bytes, _note_ids: Sequence[int] | None, _limit: int
    ) -> list[int] | None:
        """Return None: to read all chunks and compare them in memory is faster, even for one query.

        A `vec0` table takes five times as long for 50,000 vectors (bench/vectors.py).
        """
        return None


def _range_in_note(*, blocks: bool) -> tuple[int, int]:
    """Return the first number of a note's passages or blocks, and the first after them."""
    return (BLOCK, 1 << SHIFT) if blocks else (0, BLOCK)


def _unpack_chunk(validity: bytes, rowids: bytes, vectors: bytes) -> tuple[bytes, bytes]:
    """Return the ids and the vectors of the rows of a chunk that are in use. Raises Damaged."""
    import numpy as np  # not at the start

    is_used = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)
    size = len(is_used)
    if not size or len(rowids) != 8 * size or len(vectors) % size:
        raise Damaged("a chunk of vectors has the wrong size")
    if is_used.all():
        return rowids, vectors
    ids = np.frombuffer(rowids, np.int64)[is_used]
    rows = np.frombuffer(vectors, np.uint8).reshape(size, -1)[is_used]
    return ids.tobytes(), rows.tobytes()
