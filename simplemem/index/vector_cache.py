"""Vectors that were paid for, kept outside the index: a rebuild, a moved note or a change of mind costs nothing again.

A file of its own that holds hashes and vectors, and no text. It may vanish or be damaged at any moment; then vectors
are made anew. Nothing that goes wrong here is an error for anybody.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import apsw

from simplemem.index.file import BUSY_MS, bears_mark, is_beside_notes, link_among

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_APPLICATION_ID = 0x736D7663  # "smvc"
_VERSION = 1
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
        sql = """SELECT v.hash, v.vector FROM models m JOIN vectors v ON v.model = m.id
                 WHERE m.name = ? AND v.hash IN (SELECT unhex(value) FROM json_each(?))
                   AND length(v.vector) = m.dimension"""
        wanted = json.dumps([hash_.hex() for hash_ in hashes])
        return self._ask(lambda db: dict(db.execute(sql, (name, wanted))), {})

    def put(self, name: str, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors, and throw out the oldest when there are too many."""
        if vectors:
            self._ask(lambda db: self._keep(db, name, vectors), None, write=True)

    def dimension(self, name: str) -> int | None:
        """How wide this embedder's vectors are, None when there are none of it."""
        return self._ask(lambda db: _dimension(db, name), None)

    def count(self) -> dict[str, int]:
        """How many vectors there are, by the name of their embedder."""
        sql = "SELECT m.name, count(v.id) FROM models m LEFT JOIN vectors v ON v.model = m.id GROUP BY m.id"
        return self._ask(lambda db: dict(db.execute(sql)), {})

    def clear(self) -> int:
        """Throw every vector out, and give the room back. How many there were."""

        def clear(db: apsw.Connection) -> int:
            count = int(db.execute("SELECT count(*) FROM vectors").get)
            for sql in ("DELETE FROM vectors", "DELETE FROM models", "PRAGMA incremental_vacuum"):
                db.execute(sql).fetchall()
            return count

        return self._ask(clear, 0, write=True) if self.path.exists() else 0

    def _keep(self, db: apsw.Connection, name: str, vectors: Mapping[bytes, bytes]) -> None:
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
        pages, free, size = (db.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        if (used := (pages - free) * size) > self._most_bytes:
            too_many = 1 - _KEPT_WHEN_FULL * self._most_bytes / used
            sql = """DELETE FROM vectors WHERE id IN (SELECT id FROM vectors ORDER BY id
                     LIMIT max(1, CAST((SELECT count(*) FROM vectors) * ? AS INTEGER)))"""
            db.execute(sql, (too_many,)).fetchall()
            db.execute("PRAGMA incremental_vacuum").fetchall()

    # -- a file that may be anything

    def _ask(self, ask: Callable[[apsw.Connection], T], otherwise: T, *, write: bool = False) -> T:
        """The answer; `otherwise` when the file cannot be used. One that is damaged is thrown away, and asked again."""
        try:
            if not write and not self.path.exists():
                return otherwise
            if link_among(self.path) is not None:
                raise _Strange("it is a link")
            try:
                return self._ask_once(ask, otherwise, write=write)
            except (apsw.CorruptError, apsw.NotADBError, _Strange) as error:
                self._warn(f"the cache of vectors {self.path} is thrown away: {error}")
                if not (is_beside_notes(self.path) or bears_mark(self.path, _APPLICATION_ID)):
                    return otherwise  # it may be somebody else's
                for end in ("", "-journal"):
                    Path(f"{self.path}{end}").unlink(missing_ok=True)
                return self._ask_once(ask, otherwise, write=write) if write else otherwise
        except (apsw.Error, _Strange, OSError) as error:
            self._warn(f"the cache of vectors {self.path} cannot be used: {error}")
            return otherwise

    def _ask_once(self, ask: Callable[[apsw.Connection], T], otherwise: T, *, write: bool) -> T:
        self.path.parent.mkdir(parents=not is_beside_notes(self.path), exist_ok=True)
        with closing(apsw.Connection(str(self.path))) as db:  # closing rolls an open transaction back
            db.set_busy_timeout(BUSY_MS)
            db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            if write:
                db.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()  # heeded by a file that is being made
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN").fetchall()
            if not _is_made(db):
                if not write:
                    return otherwise
                db.execute(_SCHEMA).fetchall()
            answer = ask(db)
            db.execute("COMMIT").fetchall()
            return answer

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            _LOG.warning("%s", text)


class _Strange(Exception):
    """A readable file that is no cache of ours."""


def _is_made(db: apsw.Connection) -> bool:
    """Whether our tables are there; a file without any is new."""
    mark, version = db.pragma("application_id"), db.pragma("user_version")
    tables = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'trigger')")}
    if (mark, version, tables) not in ((0, 0, set()), (_APPLICATION_ID, _VERSION, {"models", "vectors"})):
        raise _Strange("it is of another version, or no cache of vectors")
    return bool(tables)


def _dimension(db: apsw.Connection, name: str) -> int | None:
    row = db.execute("SELECT dimension FROM models WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])
