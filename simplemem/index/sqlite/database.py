"""The SQLite engine: one file, shared by threads and processes, rebuilt beside itself and swapped in.

The file may be deleted, damaged or replaced at any moment. `Replaced` or `Damaged` is then raised once,
and the next use works on a fresh file (docs/internals/engines.md).
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import apsw

from simplemem.errors import Unavailable
from simplemem.index.engine import SET_META, Damaged, Engine, Replaced, Row, StatementFailed, Value
from simplemem.index.sqlite.connection import (
    BUSY_MS,
    LOG_SUFFIXES,
    SqliteConnection,
    connect,
    is_beside_notes,
    translating_errors,
)
from simplemem.index.sqlite.files import SCHEMA_VERSION, create, identify, remove
from simplemem.index.sqlite.vectors import describe_storage
from simplemem.index.terms.writer import (
    MAX_PACKED_NOTES,
    MAX_PACKED_NOTES_DURING_IMPORT,
    merge_segments,
)
from simplemem.vault.folder.lock import FileLock, is_alive

T = TypeVar("T")
VaultLock = Callable[[], AbstractContextManager[None]]
_FileIdentity = tuple[int, int]  # device and inode

_MAX_LOG_BYTES = 8 * 1024 * 1024
_MAX_LOG_BYTES_IN_BULK = 128 * 1024 * 1024  # pages that are written repeatedly are folded in once
# A query is over by then. Who reads for longer is not waited for under the vault's lock.
_CHECKPOINT_MS = 200


def open_engine(path: Path, lock: VaultLock) -> SqliteEngine:
    """Open the index at `path`, or beside it if that is the index of a newer simplemem."""
    # An error is raised again when the file is opened, and then reported.
    with suppress(OSError, Unavailable):
        if identify(path) == "newer":
            path = path.with_name(f"{path.stem}-v{SCHEMA_VERSION}{path.suffix}")
    return SqliteEngine(path, lock)


class SqliteEngine:
    """The index of one vault in one file. Guards one connection per thread.

    `lock` is the vault's kernel lock. The file is made, replaced and folded together under it.
    """

    def __init__(self, path: Path, lock: VaultLock) -> None:
        self.path = path
        self.place = str(path)
        self.engine = f"SQLite {apsw.sqlite_lib_version()}"
        self.generation = -1
        self._lock = lock
        self._connections: dict[threading.Thread, tuple[int, SqliteConnection]] = {}
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._next_to_write = threading.Lock()
        self._identity: _FileIdentity | None = None
        self._adopt_file()

    @property
    def vector_storage(self) -> str:
        """How vectors are stored: in a table of sqlite-vec, or as bytes where it has no build."""
        return describe_storage()

    # -- the file

    def _adopt_file(self, bad: _FileIdentity | None = None) -> None:
        """Go on with the file that is there now. Make it if there is none, or a damaged or `bad` one.

        It is made outside of the guard, because who has the vault's lock may wait for the guard. Many
        servers that start at the same moment meet here.
        """
        try:
            # Beside the notes only the folder itself is made. Where a vault was, none is made again.
            self.path.parent.mkdir(parents=not is_beside_notes(self.path), exist_ok=True)
            if not self._is_usable(bad):
                with self._lock(), translating_errors():
                    is_made_meanwhile = self._is_usable(bad)
                    if not is_made_meanwhile:
                        remove(self.path)
                        create(self.path)
        except OSError as error:
            raise Unavailable(
                f"the index {self.path} cannot be created: {error.strerror or error}",
                hint="Check that its folder is writable and that the disk is not full.",
            ) from error
        except (Damaged, StatementFailed) as error:
            # The folder, and the lock in it, went away while the file was made.
            raise Unavailable(
                f"the index was deleted while simplemem was creating it ({error})",
                hint="Check whether another program deletes it, then try again.",
            ) from error

        with self._guard:
            identity = self._identity_on_disk()
            if bad is not None or identity != self._identity:
                self._identity = identity
                self.generation += 1

    def _is_usable(self, bad: _FileIdentity | None) -> bool:
        """Return whether a sound index of ours is there. Raises Unavailable for a foreign file."""
        owner = identify(self.path)
        if owner == "foreign":
            raise Unavailable(
                f"{self.path} belongs to another program",
                hint="Choose another place with --db. "
                "simplemem never changes a file of another program.",
            )
        return owner == "ours" and (bad is None or self._identity_on_disk() != bad)

    def _identity_on_disk(self) -> _FileIdentity | None:
        with suppress(OSError):
            status = os.stat(self.path)
            return status.st_dev, status.st_ino
        return None

    def discard(self) -> None:
        """Put a fresh, empty index in the place of this one, unless somebody else just did."""
        self._adopt_file(self._identity)
        self.connection()

    def beside(self) -> SqliteEngine:
        """Return an empty index, private to this process. What dead processes left is removed."""
        prefix = f"{self.path.name}.new-"
        for file in self.path.parent.glob(f"{prefix}*"):
            owner = file.name.removeprefix(prefix).partition("-")[0]
            if not (owner.isdecimal() and is_alive(int(owner))):
                file.unlink(missing_ok=True)
        name = f"{prefix}{os.getpid()}-{uuid.uuid4().hex[:8]}"
        return SqliteEngine(self.path.with_name(name), self._lock)

    def replace_with(self, fresh: Engine) -> None:
        """Put an index from `beside` in the place of this one.

        Other threads and processes notice that the file is another.
        """
        with self._lock():
            with self._guard:
                ours = self._connections.pop(threading.current_thread(), None)
            if ours is not None:
                ours[1].close()
            with closing(connect(fresh.path)) as db:
                # Leaving WAL mode folds the log in, so that all of the index is in one file.
                db.execute("PRAGMA journal_mode = DELETE").fetchall()
                db.execute("PRAGMA journal_mode = WAL").fetchall()
            remove(self.path, LOG_SUFFIXES)
            os.replace(fresh.path, self.path)
            remove(fresh.path, LOG_SUFFIXES)
        self.connection()

    def drop(self) -> None:
        """Close the index and remove it from the disk."""
        self.close()
        remove(self.path)

    def size(self) -> int:
        """Return its bytes on disk."""
        files = self.path.parent.glob(f"{self.path.name}*")
        return sum(file.stat().st_size for file in files)

    # -- connections

    def connection(self) -> SqliteConnection:
        """Return this thread's connection to the file that is at the path now.

        A snapshot or a transaction ends on the file on which it began.
        """
        thread = threading.current_thread()
        generation, connection = self._connections.get(thread, (None, None))
        if connection is not None and connection.in_transaction:
            return connection
        if self._identity_on_disk() != self._identity:
            self._adopt_file()
        if connection is not None and generation == self.generation:
            return connection

        with translating_errors():
            connection = connect(self.path)
        with self._guard:
            self._close_unused(thread)
            self._connections[thread] = (self.generation, connection)
        return connection

    def _close_unused(self, thread: threading.Thread) -> None:
        """Close the old connection of a thread, and those of ended threads."""
        for owner in list(self._connections):
            if owner is thread or not owner.is_alive():
                self._connections.pop(owner)[1].close()

    def refresh(self) -> None:
        """Notice whether another file took the place of the index."""
        self.connection()

    def close(self) -> None:
        """Close every connection. No other thread may be using them."""
        with self._guard:
            for _, connection in self._connections.values():
                connection.close()
            self._connections.clear()

    # -- reading and writing

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of one statement."""
        with translating_errors():
            return self.connection().execute(statement, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        """Open one snapshot for several statements."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        with self._transaction(connection, "BEGIN"):
            yield connection

    def answer(self, ask: Callable[[SqliteConnection], T]) -> T:
        """Return what `ask` finds in one snapshot."""
        with self.reading() as db:
            return ask(db)

    @contextmanager
    def writing(self, generation: int | None = None) -> Iterator[SqliteConnection]:
        """Open one transaction, re-entrant in a thread: the outermost commits.

        A thread that writes much lets others go first. Raises Replaced if the index is no longer the
        one of `generation`.
        """
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        with self._next_to_write:
            self._writing.acquire()
        try:
            with self._transaction(connection, "BEGIN IMMEDIATE"):
                if generation not in (None, self.generation):
                    raise Replaced
                yield connection
        finally:
            self._writing.release()

    @contextmanager
    def _transaction(self, connection: SqliteConnection, begin: str) -> Iterator[None]:
        with translating_errors():
            connection.execute(begin).fetchall()
            try:
                yield
                connection.execute("COMMIT").fetchall()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").fetchall()
                raise

    def meta(self, key: str) -> str | None:
        """Return a fact about the index itself."""
        rows = self.rows("SELECT value FROM meta WHERE key = $1", (key,))
        return str(rows[0][0]) if rows else None

    def set_meta(self, key: str, value: str) -> None:
        """Store a fact about the index itself."""
        with self.writing() as db:
            db.execute(SET_META, (key, value)).fetchall()

    # -- upkeep

    def expect_much(self) -> None:
        """Do nothing: SQLite needs no preparation for many notes."""

    def fold(self, generation: int | None = None) -> None:
        """Merge segments of the term index, if many have come together."""
        merge_segments(self, generation)

    def checkpoint(self, *, is_bulk: bool = False) -> None:
        """Merge segments of the term index, and fold the log into the file once it has grown.

        The log is folded in under the vault's lock, and waits for no reader.
        """
        merge_segments(
            self, max_packed=MAX_PACKED_NOTES_DURING_IMPORT if is_bulk else MAX_PACKED_NOTES
        )
        self.fold_log(_MAX_LOG_BYTES_IN_BULK if is_bulk else _MAX_LOG_BYTES)

    def fold_log(self, min_bytes: int = 0) -> None:
        """Fold the log into the file, if it has grown to so many bytes."""
        try:
            if os.stat(f"{self.path}-wal").st_size < min_bytes:
                return
        except OSError:
            return
        raw = self.connection().raw
        with self._lock(), suppress(apsw.BusyError):
            raw.set_busy_timeout(_CHECKPOINT_MS)
            try:
                raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                raw.set_busy_timeout(BUSY_MS)

    def check(self) -> list[str]:
        """Return what is wrong with the file, as SQLite and the term index see it.

        SQLite's quick check costs hardly less than the whole, and compares no index with its table.
        """
        from simplemem.index.terms.integrity import find_damage  # numpy: not at the start

        try:
            with self.reading() as db:
                answers = [str(answer) for (answer,) in db.execute("PRAGMA integrity_check(5)")]
                problems = [answer for answer in answers if answer != "ok"]
                return problems or find_damage(db)
        except (Damaged, StatementFailed) as error:
            return [str(error)]

    def leadership(self) -> FileLock:
        """Return the lead of this index, which is one of this machine."""
        return FileLock(str(self.path.parent), f"{self.path.stem}.leader")
