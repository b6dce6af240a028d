"""Vectors in PostgreSQL: a table of pgvector's `halfvec`, or of bytes without pgvector.

The server compares all vectors while there are few. Once there are many (`build_index`), an HNSW
index of pgvector chooses the passages. It may miss a few of the nearest.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import numpy as np
import psycopg

from simplemem.index.engine import Cursor, IntegerList, Value
from simplemem.index.places import BLOCK, SHIFT

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_DIMENSION = 4_000  # of a vector in an index of pgvector
_MIN_VERSION = (0, 8)  # of pgvector: since then, an index scan goes on until a filter passed enough
_MAX_COMPARED_NOTES = 5_000  # that a filter leaves: comparing so few is faster than the index
_PASSAGES_PER_NOTE = 4  # that are read for each note that is wanted, because a note has several
_INDEXED_PASSAGES_PER_NOTE = 1.5  # with the index, which takes longer per passage
_MIN_INDEXED_PASSAGES = 40
_MAX_INDEXED_PASSAGES = 1_000
# If a filter leaves at least this share of the notes, the index is asked without it, for more
# passages, and those of other notes are dropped. For a smaller share, the index applies the filter.
_LARGE_SHARE = 0.5
_HEADER_BYTES = 4  # of a halfvec in the protocol: how many numbers of two bytes follow

_INDEX = "vectors_near"
_IS_PASSAGE = f"(id & {BLOCK}) = 0"
_CREATE_INDEX = f"""
    CREATE INDEX CONCURRENTLY {_INDEX} ON vectors
    USING hnsw (vector public.halfvec_cosine_ops) WHERE {_IS_PASSAGE}"""
_SELECT_INDEX = """
    SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = to_regclass('vectors') AND c.relname = $1"""
_SELECT_TYPE = """
    SELECT format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = to_regclass('vectors') AND attname = 'vector'"""
_LOCK = "to_regclass('vectors')::oid::bigint"  # the advisory lock of whoever builds the index


class _Statements(Protocol):
    """What is needed of a connection; see `Connection`."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement, and return its rows."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement that returns no rows once per row of values."""
        ...

    def state(self) -> object:
        """Return a token of the index, which differs once anybody has written."""
        ...


class PostgresVectors:
    """The vectors of one index, through one connection; methods as in `VectorIndex`.

    Remembers the type of the vectors and whether they are indexed, until somebody writes.
    """

    def __init__(self, db: _Statements) -> None:
        self._db = db
        # The state of the index (`Connection.state`), and what `_read_facts` returned for it.
        self._facts: tuple[object, str, bool] | None = None

    def _read_facts(self) -> tuple[str, bool]:
        """Return the type of the vectors ("" if there is no table), and whether they are indexed.

        Asks the server only if somebody has written since the last call.
        """
        state = self._db.state()
        if self._facts is None or self._facts[0] != state:
            type_of_column = self._db.execute(_SELECT_TYPE)
            is_valid = self._db.execute(_SELECT_INDEX, (_INDEX,))
            type_name = str(type_of_column.get or "")
            without_schema = type_name.rpartition(".")[2]
            self._facts = state, without_schema, bool(is_valid.get)
        return self._facts[1:]

    def forget(self) -> None:
        """Ask the server again at the next use, after a change of the table or a rollback."""
        self._facts = None

    @property
    def storage(self) -> str:
        """The type of the column: `halfvec` or `bytea`; "" before the first vector."""
        return self._read_facts()[0]

    @property
    def _is_halfvec(self) -> bool:
        """Whether the vectors are in a column of pgvector."""
        return self.storage == "halfvec"

    @property
    def is_indexed(self) -> bool:
        """Whether an HNSW index of pgvector finds the nearest passages."""
        return self._read_facts()[1]

    def create(self, dimension: int) -> None:
        """Make the table for vectors of this width, unless there is one. For a write transaction.

        Its column is a halfvec if pgvector is available and takes this width, else bytes.
        """
        self.forget()
        if self.storage:
            return
        is_halfvec = dimension <= _MAX_DIMENSION and self._ensure_extension()
        column = f"public.halfvec({dimension})" if is_halfvec else "BYTEA"
        self._db.execute(
            f"CREATE TABLE vectors (id BIGINT PRIMARY KEY, vector {column} NOT NULL)"
        ).fetchall()
        self.forget()

    def _ensure_extension(self) -> bool:
        """Return whether pgvector 0.8 or later is installed, after installing it if necessary.

        For a transaction, which goes on if this user may not install it.
        """
        sql = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        if self._db.execute(sql).get is None:
            self._db.execute("SAVEPOINT before_extension").fetchall()
            try:
                self._db.execute("CREATE EXTENSION vector SCHEMA public").fetchall()
            except psycopg.Error:  # not available, not permitted, or another server was faster
                self._db.execute("ROLLBACK TO before_extension").fetchall()

        version = str(self._db.execute(sql).get or "0")
        major_and_minor = tuple(int(number) for number in version.split(".")[:2])
        return major_and_minor >= _MIN_VERSION

    def clear(self) -> None:
        """Remove all vectors, with their table and index. `create` must be called again."""
        self._db.execute("DROP TABLE IF EXISTS vectors").fetchall()
        self.forget()

    def write(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Store vectors, given as (place, vector), in place of those that the places have.

        The table must exist (`create`).
        """
        rows = list(vectors)
        if not rows:
            return
        is_halfvec = self._is_halfvec
        mark = "$2::text::public.halfvec" if is_halfvec else "$2"
        sql = f"""
            INSERT INTO vectors (id, vector) VALUES ($1, {mark})
            ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"""
        if is_halfvec:
            self._db.executemany(sql, [(place, _as_text(vector)) for place, vector in rows])
        else:
            self._db.executemany(sql, rows)

    def remove(self, places: Sequence[int]) -> None:
        """Remove the vectors of some places. Places without a vector are ignored."""
        if places and self.storage:
            sql = "DELETE FROM vectors WHERE id = ANY ($1::bigint[])"
            self._db.execute(sql, (IntegerList(places),)).fetchall()

    def read(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return vectors by place. Places without a vector are absent."""
        if not places or not self.storage:
            return {}
        sql = "SELECT id, vector FROM vectors WHERE id = ANY ($1::bigint[])"
        return dict(self._decoded(self._db.execute(sql, (IntegerList(places),))))

    def read_notes(self, note_ids: Iterable[int], *, blocks: bool) -> Iterable[tuple[int, bytes]]:
        """Query (place, vector) of the passages of some notes, or of their blocks, by place.

        The statement is sent at once; the answer is read when it is iterated.
        """
        if not self.storage:
            return ()
        first, after = (BLOCK, 1 << SHIFT) if blocks else (0, BLOCK)
        # OFFSET 0 keeps the planner from merging the subquery, so it looks up the rows of each
        # note.
        sql = f"""
            SELECT v.id, v.vector FROM unnest($1::bigint[]) AS n(value) CROSS JOIN LATERAL (
                SELECT id, vector FROM vectors
                WHERE id >= (n.value << {SHIFT}) + {first} AND id < (n.value << {SHIFT}) + {after}
                OFFSET 0
            ) v ORDER BY v.id"""
        return self._decoded(self._db.execute(sql, (IntegerList(note_ids),)))

    def read_all(self, *, blocks: bool) -> tuple[array[int], bytearray]:
        """Return the places of all passages (or blocks) with a vector, and the packed vectors."""
        places, vectors = array("q"), bytearray()
        if self.storage:
            sql = f"SELECT id, vector FROM vectors WHERE (id & {BLOCK}) = $1 ORDER BY id"
            for place, vector in self._decoded(self._db.execute(sql, (BLOCK if blocks else 0,))):
                places.append(place)
                vectors += vector
        return places, vectors

    def _decoded(self, rows: Cursor) -> Iterator[tuple[int, bytes]]:
        """Yield rows of (place, vector), with the vector as bytes. Read when it is iterated."""
        is_halfvec = self._is_halfvec
        for place, vector in rows:
            yield place, _as_bytes(vector) if is_halfvec else vector

    def count(self) -> int:
        """Return how many vectors there are, of passages and blocks together."""
        if not self.storage:
            return 0
        return int(self._db.execute("SELECT count(*) FROM vectors").get)

    # -- the nearest

    def nearest_notes(
        self,
        query: bytes,
        note_ids: Sequence[int] | None,
        limit: int,
    ) -> list[int] | None:
        """Return ids of candidates: notes of at least the `limit` nearest passages, in any order.

        `note_ids` are the notes to choose from; None for all. The index of pgvector, if there is
        one, may miss a few. Returns None if the caller should compare all vectors in memory:
        without pgvector, or if too few notes were found. For a query of zeros, returns an empty
        list if there is an index, else None.
        """
        if not self._is_halfvec:
            return None
        if not any(query):
            return [] if self.is_indexed else None
        if note_ids is not None and len(note_ids) <= _MAX_COMPARED_NOTES:
            return self._nearest_of(query, note_ids, limit)
        if self.is_indexed:
            return self._nearest_by_index(query, note_ids, limit)
        return self._nearest_of_all(query, note_ids, limit)

    def _nearest_of(self, query: bytes, note_ids: Sequence[int], limit: int) -> list[int]:
        """Return the `limit` + 1 nearest notes among `note_ids`, by comparing all their passages.

        If there are at most `limit`, returns all of them, and asks nothing.
        """
        if len(note_ids) <= limit:
            return list(note_ids)
        sql = f"""
            SELECT n.value FROM unnest($1::bigint[]) AS n(value) CROSS JOIN LATERAL (
                SELECT vector FROM vectors
                WHERE id >= n.value << {SHIFT} AND id < (n.value << {SHIFT}) + {BLOCK} OFFSET 0
            ) v
            GROUP BY n.value
            ORDER BY min(v.vector OPERATOR(public.<=>) $2::text::public.halfvec), n.value
            LIMIT $3"""
        values = IntegerList(note_ids), _as_text(query), limit + 1
        return [note_id for (note_id,) in self._db.execute(sql, values)]

    def _nearest_of_all(
        self,
        query: bytes,
        note_ids: Sequence[int] | None,
        limit: int,
    ) -> list[int] | None:
        """Return the notes of the 4 * `limit` nearest passages of `note_ids`, by comparing all.

        `note_ids` None means all notes. Returns None if these passages belong to at most `limit`
        notes, and there may be more passages.
        """
        count = _PASSAGES_PER_NOTE * limit
        is_among = _among(note_ids, "$3")
        sql = f"""
            SELECT id >> {SHIFT} FROM vectors WHERE {_IS_PASSAGE} {is_among}
            ORDER BY vector OPERATOR(public.<=>) $1::text::public.halfvec LIMIT $2"""
        values: list[Value] = [_as_text(query), count]
        if note_ids is not None:
            values.append(IntegerList(note_ids))
        rows = self._db.execute(sql, values).fetchall()
        notes = list(dict.fromkeys(note_id for (note_id,) in rows))
        is_complete = len(rows) < count or len(notes) > limit
        return notes if is_complete else None

    def _nearest_by_index(
        self,
        query: bytes,
        note_ids: Sequence[int] | None,
        limit: int,
    ) -> list[int]:
        """Return the notes of the nearest passages by the index of pgvector, which may miss some.

        Only notes in `note_ids` are returned (None: all), which must not be empty.
        """
        passage_count = max(_MIN_INDEXED_PASSAGES, int(_INDEXED_PASSAGES_PER_NOTE * limit))
        share = 1.0
        if note_ids is not None:
            # Ids count up, and few notes are ever removed: the largest id is about the number of
            # notes.
            share = len(note_ids) / max(note_ids)
        is_large_share = share >= _LARGE_SHARE
        if is_large_share:
            passage_count = int(passage_count / share)  # because others are dropped below
        count = min(passage_count, _MAX_INDEXED_PASSAGES)

        # The more candidates the index looks at (`ef_search`), the fewer it misses, at little cost.
        settings = """
            SELECT set_config('hnsw.ef_search', $1, true),
                   set_config('hnsw.iterative_scan', 'relaxed_order', true)"""
        is_among = "" if is_large_share else _among(note_ids, "$2")
        sql = f"""
            SELECT id >> {SHIFT} FROM vectors WHERE {_IS_PASSAGE} {is_among}
            ORDER BY vector OPERATOR(public.<=>) $1::text::public.halfvec LIMIT {count}"""
        values: list[Value] = [_as_text(query)]
        if not is_large_share:
            values.append(IntegerList(note_ids or ()))
        # Both statements are sent before an answer is read: one round trip.
        answers = [
            self._db.execute(settings, (str(_MAX_INDEXED_PASSAGES),)),
            self._db.execute(sql, values),
        ]
        _, rows = [answer.fetchall() for answer in answers]
        notes = list(dict.fromkeys(note_id for (note_id,) in rows))
        if note_ids is None or not is_large_share:
            return notes
        allowed = set(note_ids)
        return [note_id for note_id in notes if note_id in allowed]

    # -- the index

    def build_index(self, max_numbers: int) -> bool:
        """Build the index of passages if it is due. Return whether it was built.

        It is due once all notes have vectors, and those of passages have `max_numbers` numbers in
        all. Returns False if another server is building it, or if building it fails, for example
        because this user may not: then all vectors are compared. Not within a transaction.
        """
        if not self._is_index_due(max_numbers):
            return False
        with suppress(psycopg.Error):
            if not self._db.execute(f"SELECT pg_try_advisory_lock({_LOCK})").get:
                return False
            try:
                # An index that is not valid was left by a server that died while building it.
                self._db.execute(f"DROP INDEX IF EXISTS {_INDEX}").fetchall()
                megabytes = min(4_000, 100 + max_numbers * 4 // 1_000_000)
                self._db.execute(f"SET maintenance_work_mem = '{megabytes}MB'").fetchall()
                self._db.execute(_CREATE_INDEX).fetchall()
                return True
            finally:
                self._db.execute("RESET maintenance_work_mem").fetchall()
                self._db.execute(f"SELECT pg_advisory_unlock({_LOCK})").fetchall()
                self.forget()
        return False

    def _is_index_due(self, max_numbers: int) -> bool:
        """Return whether to build the index of passages: many vectors, none missing, no index yet.

        Also runs ANALYZE on a complete table of vectors that was never analyzed.
        """
        self.forget()
        if not self._is_halfvec or self.is_indexed:
            return False
        sql = """
            SELECT pg_table_size('vectors'), (SELECT max(dimension) FROM vector_space),
                   NOT EXISTS (SELECT 1 FROM notes WHERE embedded = 0),
                   (SELECT reltuples FROM pg_class WHERE oid = to_regclass('vectors'))"""
        row = self._db.execute(sql).fetchone()
        assert row is not None
        bytes_on_disk, dimension, is_complete, known_rows = row
        if is_complete and known_rows < 0:
            # The server would plan for an empty table until its autovacuum looks at it.
            self._db.execute("ANALYZE vectors").fetchall()
        # The size on disk tells without counting: a number takes two bytes.
        if not dimension or not is_complete or bytes_on_disk <= 2 * max_numbers:
            return False

        # Passages are counted only up to the number that is enough.
        enough_passages = max_numbers // dimension + 1
        sql = f"""
            SELECT count(*) FROM (SELECT 1 FROM vectors WHERE {_IS_PASSAGE} LIMIT $1) p"""
        passages = int(self._db.execute(sql, (enough_passages,)).get)
        return passages >= int(enough_passages)


def _among(note_ids: Sequence[int] | None, mark: str) -> str:
    """Return the condition, with AND before it, that a vector belongs to one of `note_ids`.

    They are bound at `mark`. Returns "" if they are None. The server looks each row up in a hash
    table of them; with `= ANY` in a prepared statement it would go through all of them per row.
    """
    if note_ids is None:
        return ""
    return f"AND (id >> {SHIFT} IN (SELECT unnest({mark}::bigint[]))) IS TRUE"


def _as_text(vector: bytes) -> str:
    """Return a vector of signed bytes as the text that pgvector reads."""
    numbers: NDArray[np.int8] = np.frombuffer(vector, np.int8)
    return str(numbers.tolist())


def _as_bytes(halfvec: bytes) -> bytes:
    """Return a halfvec, in the binary format of the protocol, as a vector of signed bytes."""
    return np.frombuffer(halfvec, ">f2", offset=_HEADER_BYTES).astype(np.int8).tobytes()
