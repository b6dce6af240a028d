"""Nearness in PostgreSQL beyond the size up to which a server compares all vectors in its memory: pgvector's index chooses
passages, the stored vectors rank their notes. Without the extension, all are compared as before."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from simplemem.index.door import Ids, Nearness
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.vectors import distances

if TYPE_CHECKING:
    from simplemem.index.postgres.connection import Connection

_WIDEST = 4_000  # numbers of a vector; pgvector's index takes no more
_FEW = 5_000  # notes that a filter leaves: so many are compared one by one, for less than the index asks
_PASSAGES_A_NOTE = 1.5  # that are looked for: several passages of a near note are near
_MOST_SOUGHT = 1_000
_LARGE = 0.5  # of the notes: so large a share is sought among all, and a smaller one by itself
_NAME = "vectors_near_{0}"
_INDEXED = f"(id & {BLOCK}) = 0 AND length(vector) = {{0}}"
_HALF = "half(vector)::public.halfvec({0})"
# Made when they are needed: the extension may come after the tables. A byte is a number from -128 to 127.
_FUNCTION = """CREATE OR REPLACE FUNCTION half(BYTEA) RETURNS public.halfvec LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    'SELECT ARRAY(
        SELECT (get_byte($1, i) + 128) % 256 - 128 FROM generate_series(0, length($1) - 1) i
    )::REAL[]::public.halfvec'"""
_INDEX = f"""CREATE INDEX CONCURRENTLY {_NAME} ON vectors USING hnsw (({_HALF}) public.halfvec_cosine_ops)
             WHERE {_INDEXED}"""
_LOCK = "to_regclass('vectors')::oid::bigint"
_THERE = "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
_OURS = f"{_THERE} WHERE i.indrelid = to_regclass('vectors') AND c.relname LIKE 'vectors_near_%'"


def build(db: Connection, beyond: int) -> bool:
    """Make the index of passages, if they hold more numbers than that and the extension is there or may be had."""
    are_made = "NOT EXISTS (SELECT 1 FROM notes WHERE embedded = 0)"
    rows = (
        "(SELECT reltuples FROM pg_class WHERE oid = to_regclass('vectors'))"  # -1: never looked at
    )
    sql = f"SELECT pg_table_size('vectors'), max(dimension), {are_made}, {rows} FROM vector_space"
    size, dimension, is_whole, rows_known = next(db.execute(sql))
    if is_whole and rows_known < 0:  # it would plan for an empty table until it looks by itself
        db.execute("ANALYZE vectors")
    if not dimension or dimension > _WIDEST or size <= beyond or not is_whole:
        return False
    found = dict(db.execute(_OURS).fetchall())
    name, most = _NAME.format(dimension), beyond // dimension + 1
    if found.get(name):
        return False
    passages = f"SELECT count(*) FROM (SELECT 1 FROM vectors WHERE {_INDEXED.format(dimension)} LIMIT {most}) p"
    if db.execute(passages).get < most:
        return False
    with suppress(psycopg.Error):  # not installed, or not for this user: all are compared
        db.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        version = db.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").get
        is_old = tuple(map(int, version.split(".")[:2])) < (0, 8)
        if is_old or not db.execute(f"SELECT pg_try_advisory_lock({_LOCK})").get:
            return False
        try:
            for other in found:  # of another embedder, or of a server that died
                db.execute(f"DROP INDEX IF EXISTS {other}")
            db.execute(_FUNCTION)
            needed = (size + most * dimension * 4) // 1_000_000
            db.execute(f"SET maintenance_work_mem = '{min(4_000, 100 + needed)}MB'")
            db.execute(_INDEX.format(dimension))
            return True
        finally:
            db.execute("RESET maintenance_work_mem")
            db.execute(f"SELECT pg_advisory_unlock({_LOCK})")
    return False


def is_indexed(db: Connection, dimension: int) -> bool:
    return (_NAME.format(dimension), True) in db.execute(_OURS).fetchall()


def nearest(
    db: Connection, query: bytes, ids: Ids, limit: int, also: Iterable[int]
) -> dict[int, Nearness]:
    """The notes with the nearest passages, among `ids`, and those in `also`."""
    also = set(also)
    if ids is None or len(ids) > _FEW:
        some = _chosen(db, query, ids, limit)
    else:
        some = (
            ids
            if len(ids) <= limit
            else _best(_compared(db, query, ids, passages_alone=True), limit)
        )
    found = _compared(db, query, also.union(some))
    best = _best({note: found[note] for note in some if note in found}, limit)
    return {note: found[note] for note in also.union(best) if note in found}


def _best(found: dict[int, Nearness], limit: int) -> list[int]:
    return sorted(found, key=lambda note: (-found[note].passage, note))[:limit]


def _chosen(db: Connection, query: bytes, ids: Ids, limit: int) -> Collection[int]:
    """The notes of the nearest passages, as the index sees them."""
    dimension, passages = len(query), min(_MOST_SOUGHT, max(40, int(_PASSAGES_A_NOTE * limit)))
    share = 1.0 if ids is None else len(ids) / max(ids)  # of all notes; few went
    is_large = share >= _LARGE
    passages = min(_MOST_SOUGHT, int(passages / share)) if is_large else passages
    # Looked up in a hash, whatever the plan: `= ANY` in a prepared statement goes through them for each passage.
    among = "" if is_large else f"AND (id >> {SHIFT} IN (SELECT unnest(?2::bigint[]))) IS TRUE"
    statement = f"""SELECT id >> {SHIFT} FROM vectors WHERE {_INDEXED} {among}
                    ORDER BY {_HALF} OPERATOR(public.<=>) ?1::text::public.halfvec({{0}}) LIMIT {passages}"""
    asked = str(np.frombuffer(query, np.int8).tolist())
    settings = "SELECT set_config('hnsw.ef_search', ?, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)"
    _, rows = db.together(
        (
            settings,
            (str(_MOST_SOUGHT),),
        ),  # the more it looks at, the fewer it misses, at little cost
        (statement.format(dimension), (asked,) if is_large else (asked, list(ids or ()))),
    )
    found = {note for (note,) in rows}
    return found if ids is None else found.intersection(ids)


def _compared(
    db: Connection, query: bytes, some: Collection[int], *, passages_alone: bool = False
) -> dict[int, Nearness]:
    """How near notes are, by their stored vectors; those without a passage's are absent."""
    stop = f"(n.value << {SHIFT} | {BLOCK})" if passages_alone else f"(n.value + 1) << {SHIFT}"
    statement = f"""SELECT n.value, v.passages, v.vectors FROM carray(:ids) n CROSS JOIN LATERAL (
                        SELECT count(*) FILTER (WHERE (id & {BLOCK}) = 0), string_agg(vector, '' ORDER BY id)
                        FROM vectors WHERE id >= n.value << {SHIFT} AND id < {stop}
                    ) v (passages, vectors)"""
    rows: list[Any] = [row for row in db.execute(statement, {"ids": sorted(some)}) if row[1]]
    near = 1 - distances(query, b"".join(row[2] for row in rows))
    found, at = {}, 0
    for note, passages, vectors in rows:
        after = at + len(vectors) // len(query)
        passage = float(near[at : at + passages].max())
        found[note] = Nearness(passage, max(0.0, float(near[at:after].max())))
        at = after
    return found
