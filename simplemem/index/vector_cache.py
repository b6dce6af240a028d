"""Vectors that were paid for, kept outside the index in a file of hashes and vectors, and no text. It may vanish or be
damaged at any moment; then vectors are made anew. Nothing that goes wrong here is an error for anybody.
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
    """Vectors by the name of their embedder and the hash of their text, for all threads and processes. A connection
    lasts one operation, so that nobody holds a file that was replaced; the rollback journal needs no files beside
    it."""

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
        sql = "SELECT dimension FROM models WHERE name = ?"
        return self._ask(lambda db: next((int(width) for (width,) in db.execute(sql, (name,))), None), None)

    def count(self) -> dict[str, int]:
        """How many vectors there are, by the name of their embedder."""
        sql = "SELECT m.name, count(v.id) FROM models m LEFT JOIN vectors v ON v.model = m.id GROUP BY m.id"
        return self._ask(lambda db: dict(db.execute(sql)), {})

    def clear(self) -> int:
        """Throw every vector out, and give the room back. How many there were."""
        if count := sum(self.count().values()):
            sql = "DELETE FROM vectors; DELETE FROM models"
            self._ask(lambda db: len(db.execute(sql).fetchall()), 0, write=True)
        return count

    def _keep(self, db: apsw.Connection, name: str, vectors: Mapping[bytes, bytes]) -> None:
        width = len(next(iter(vectors.values())))
        # Another model under the same name: what it made is of no use.
        db.execute("DELETE FROM models WHERE name = ? AND dimension <> ?", (name, width)).fetchall()
        if db.changes():
            db.execute("DELETE FROM vectors WHERE model NOT IN (SELECT id FROM models)").fetchall()
        db.execute("INSERT OR IGNORE INTO models (name, dimension) VALUES (?, ?)", (name, width)).fetchall()
        sql = "INSERT OR IGNORE INTO vectors (model, hash, vector) SELECT id, ?, ? FROM models WHERE name = ?"
        db.executemany(sql, ((hash_, vector, name) for hash_, vector in vectors.items() if len(vector) == width))
        pages, free, size = (db.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        if (used := (pages - free) * size) > self._most_bytes:
            sql = """DELETE FROM vectors WHERE id IN (SELECT id FROM vectors ORDER BY id
                     LIMIT max(1, CAST((SELECT count(*) FROM vectors) * ? AS INTEGER)))"""
            db.execute(sql, (1 - _KEPT_WHEN_FULL * self._most_bytes / used,)).fetchall()

    def _ask(self, ask: Callable[[apsw.Connection], T], otherwise: T, *, write: bool = False) -> T:
        """The answer; `otherwise` when the file cannot be used. A damaged one is thrown away, unless it may be
        another's."""
        try:
            if link_among(self.path) is not None:
                raise OSError("it is a link")
            if not write and not self.path.exists():
                return otherwise
            self.path.parent.mkdir(parents=not is_beside_notes(self.path), exist_ok=True)
            with closing(apsw.Connection(str(self.path))) as db:  # closing rolls an open transaction back
                db.set_busy_timeout(BUSY_MS)
                db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
                db.execute("PRAGMA auto_vacuum = FULL").fetchall()  # heeded by a file that is being made
                db.execute("BEGIN IMMEDIATE" if write else "BEGIN").fetchall()
                of_tables = db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'trigger')")
                shape = db.pragma("application_id"), db.pragma("user_version"), {str(name) for (name,) in of_tables}
                if shape == (0, 0, set()):
                    if not write:
                        return otherwise
                    db.execute(_SCHEMA).fetchall()
                elif shape != (_APPLICATION_ID, _VERSION, {"models", "vectors"}):
                    raise apsw.NotADBError("it is of another version, or no cache of vectors")
                answer = ask(db)
                db.execute("COMMIT").fetchall()
                return answer
        except (apsw.Error, OSError) as error:
            if not self._warned:
                self._warned = True
                _LOG.warning("the cache of vectors %s cannot be used: %s", self.path, error)
            is_damaged = isinstance(error, (apsw.CorruptError, apsw.NotADBError))
            if is_damaged and (is_beside_notes(self.path) or bears_mark(self.path, _APPLICATION_ID)):
                for end in ("", "-journal"):
                    Path(f"{self.path}{end}").unlink(missing_ok=True)
        return otherwise
