"""Vectors that were paid for, kept outside the index: a rebuild, a moved note or a change of mind costs nothing again.

A file of its own that holds hashes and vectors, and no text. It may vanish or be damaged at any moment; then vectors
are made anew. Nothing that goes wrong here is an error for anybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from simplemem.index.file import link_among

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_APPLICATION_ID = 0x736D7663  # "smvc"
_VERSION = 1
_BUSY_MS = 15_000
_ASKED_AT_ONCE = 500
_KEPT_WHEN_FULL = 0.9
_SCHEMA = f"""
    CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
    CREATE TABLE vectors (id INTEGER PRIMARY KEY, model INTEGER NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL);
    CREATE UNIQUE INDEX vectors_by_hash ON vectors (model, hash);
    PRAGMA application_id = {_APPLICATION_ID:d};
    PRAGMA user_version = {_VERSION:d};
"""


class VectorCache:
    """Vectors by the name of their embedder and the hash of their text. Threads and processes may share the file.

    A connection lasts one operation: there are few, each beside a request over the network, and so nobody ever holds
    a file that has been replaced. The file has a rollback journal, which needs no other files beside it.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._warned = False

    def get(self, name: str, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """The vectors there are, by hash."""
        wanted = list(dict.fromkeys(hashes))
        return self._asked(lambda db: _found(db, name, wanted), {}, write=False)

    def put(self, name: str, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors, and throw out the oldest when there are too many."""
        if vectors:
            self._asked(lambda db: self._kept(db, name, vectors), None, write=True)

    def dimension(self, name: str) -> int | None:
        """How wide this embedder's vectors are, None when there are none of it."""
        return self._asked(lambda db: _dimension(db, name), None, write=False)

    def count(self) -> dict[str, int]:
        """How many vectors there are, by the name of their embedder."""
        sql = "SELECT m.name, count(v.id) FROM models m LEFT JOIN vectors v ON v.model = m.id GROUP BY m.id"
        return self._asked(lambda db: dict(db.execute(sql)), {}, write=False)

    def clear(self) -> int:
        """Throw every vector out, and give the room back. How many there were."""
        return self._asked(_cleared, 0, write=True) if self.path.exists() else 0

    def _kept(self, db: apsw.Connection, name: str, vectors: Mapping[bytes, bytes]) -> None:
        dimension = len(next(iter(vectors.values())))
        known = _dimension(db, name)
        if known is not None and known != dimension:  # another model under the same name: what it made is of no use
            db.execute("DELETE FROM vectors WHERE model = (SELECT id FROM models WHERE name = ?)", (name,)).fetchall()
            db.execute("DELETE FROM models WHERE name = ?", (name,)).fetchall()
        db.execute("INSERT OR IGNORE INTO models (name, dimension) VALUES (?, ?)", (name, dimension)).fetchall()
        model = db.execute("SELECT id FROM models WHERE name = ?", (name,)).get
        db.executemany(
            "INSERT OR IGNORE INTO vectors (model, hash, vector) VALUES (?, ?, ?)",
            ((model, hash_, vector) for hash_, vector in vectors.items() if len(vector) == dimension),
        )
        self._thin(db)

    def _thin(self, db: apsw.Connection) -> None:
        pages, free, size = (db.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        used = (pages - free) * size
        if used <= self._most_bytes:
            return
        too_many = 1 - _KEPT_WHEN_FULL * self._most_bytes / used
        sql = """DELETE FROM vectors WHERE id IN (SELECT id FROM vectors ORDER BY id
                 LIMIT max(1, CAST((SELECT count(*) FROM vectors) * ? AS INTEGER)))"""
        db.execute(sql, (too_many,)).fetchall()
        db.execute("PRAGMA incremental_vacuum").fetchall()

    # -- a file that may be anything

    def _asked(self, ask: Callable[[apsw.Connection], T], otherwise: T, *, write: bool) -> T:
        """The answer; `otherwise` when the file cannot be used. One that is damaged is emptied, and asked again."""
        if not write and not self.path.exists():
            return otherwise
        try:
            try:
                return self._once(ask, otherwise, write=write)
            except (apsw.CorruptError, apsw.NotADBError, _Strange) as error:
                self._warn(f"the cache of vectors {self.path} is thrown away: {error}")
                if not self._empty():
                    return otherwise
                return self._once(ask, otherwise, write=write)
        except (apsw.Error, _Strange, OSError) as error:
            self._warn(f"the cache of vectors {self.path} cannot be used: {error}")
            return otherwise

    def _once(self, ask: Callable[[apsw.Connection], T], otherwise: T, *, write: bool) -> T:
        with _connected(self.path) as db:
            if write:
                db.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()  # heard by a file that is being made
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN").fetchall()
            if not _is_made(db):
                if not write:
                    return otherwise
                db.execute(_SCHEMA).fetchall()
            answer = ask(db)
            db.execute("COMMIT").fetchall()
            return answer

    def _empty(self) -> bool:
        """Empty the file in its place: another process may have it open, and its journal must not meet another file.
        A file that may be somebody else's is left alone."""
        if link_among(self.path) is not None or not (
            self.path.parent.name == ".simplemem" or _bears_our_mark(self.path)
        ):
            return False
        with _connected(self.path) as db:
            db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
            db.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
            db.execute("VACUUM").fetchall()
            db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
        return True

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            _LOG.warning("%s", text)


class _Strange(Exception):
    """A readable file that is no cache of ours."""


@contextmanager
def _connected(path: Path) -> Iterator[apsw.Connection]:
    if link_among(path) is not None:
        raise _Strange("it is a link")
    path.parent.mkdir(parents=path.parent.name != ".simplemem", exist_ok=True)
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(_BUSY_MS)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        yield connection
    finally:
        connection.close()  # an open transaction is rolled back


def _is_made(db: apsw.Connection) -> bool:
    """Whether our tables are there; a file without any is new."""
    mark, version = db.pragma("application_id"), db.pragma("user_version")
    tables = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'trigger')")}
    if (mark, version, tables) == (0, 0, set()):
        return False
    if (mark, version, tables) != (_APPLICATION_ID, _VERSION, {"models", "vectors"}):
        raise _Strange("it is of another version, or no cache of vectors")
    return True


def _found(db: apsw.Connection, name: str, wanted: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(wanted), _ASKED_AT_ONCE):
        some = wanted[start : start + _ASKED_AT_ONCE]
        marks = ", ".join("?" * len(some))
        sql = f"""SELECT v.hash, v.vector FROM models m JOIN vectors v ON v.model = m.id
                  WHERE m.name = ? AND v.hash IN ({marks}) AND length(v.vector) = m.dimension"""
        found.update(db.execute(sql, (name, *some)))
    return found


def _dimension(db: apsw.Connection, name: str) -> int | None:
    row = db.execute("SELECT dimension FROM models WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def _cleared(db: apsw.Connection) -> int:
    count = int(db.execute("SELECT count(*) FROM vectors").get)
    db.execute("DELETE FROM vectors").fetchall()
    db.execute("DELETE FROM models").fetchall()
    db.execute("PRAGMA incremental_vacuum").fetchall()
    return count


def _bears_our_mark(path: Path) -> bool:
    """Whether a file begins as a cache of ours does, however damaged the rest of it is."""
    with path.open("rb") as file:
        head = file.read(72)
    return head[:16] == b"SQLite format 3\0" and head[68:72] == _APPLICATION_ID.to_bytes(4, "big")
