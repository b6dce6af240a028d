"""The sidecar's file in use: shared by threads and processes, rebuilt beside itself and swapped in. It may be deleted,
damaged or replaced at any moment: `Replaced` or `Damaged` is raised once, and the next use works on a fresh file.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import apsw

from simplemem.errors import Unavailable
from simplemem.index import file
from simplemem.index.file import Damaged, Replaced
from simplemem.index.legs import scored

WAL_LIMIT = 8 * 1024 * 1024
WAL_LIMIT_AMID_MUCH = 128 * 1024 * 1024  # pages that are written again and again are folded in once
_FOLD_MS = 200  # a question is over by then; who reads for longer is not waited for under the vault's lock

Lock = Callable[[], AbstractContextManager[None]]
Found = Literal["nothing", "ours", "damaged", "newer", "foreign"]
"""What lies where the index should be: "damaged" is ours to make anew, "newer" and "foreign" are left alone."""


def what_lies_at(path: Path) -> Found:
    """Whose file lies there. Only where nobody else puts files is one without our mark taken for a damaged one of
    ours."""
    if not path.exists() or path.stat().st_size == 0:
        return "nothing"
    if_strange: Found = (
        "damaged" if file.is_beside_notes(path) or file.bears_mark(path, file.APPLICATION_ID) else "foreign"
    )
    try:
        with errors_as_ours(), closing(file.connect(path)) as db:
            mark, version = (db.execute(f"PRAGMA {name}").get for name in ("application_id", "user_version"))
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    except Damaged:
        return if_strange
    if (mark, version, tables) == (0, 0, set()):
        return "nothing"
    if mark != file.APPLICATION_ID:
        return if_strange
    if version > file.SCHEMA_VERSION:
        return "newer"
    return "ours" if version == file.SCHEMA_VERSION and tables >= file.TABLES else "damaged"


def open_database(path: Path, lock: Lock) -> Database:
    """The index at `path`. One that is damaged or older is replaced; beside a newer one ours takes another name."""
    with suppress(OSError, Unavailable):  # to be met, and said, when it is opened
        if what_lies_at(path) == "newer":
            path = path.with_name(f"{path.stem}-v{file.SCHEMA_VERSION}{path.suffix}")
    for _ in range(3):
        try:
            return Database(path, lock)
        except Damaged:
            with lock():
                if what_lies_at(path) == "damaged":  # nobody else has just made it anew
                    path.unlink(missing_ok=True)
                    file.remove_logs(path)
    raise _cannot_be_made(path, "it was damaged again and again")


def state_of(db: apsw.Connection) -> tuple[int, int]:
    """What changes whenever anybody writes: others, or this connection itself."""
    return int(db.execute("PRAGMA data_version").get), db.total_changes()


def _cannot_be_made(path: Path, why: str) -> Unavailable:
    return Unavailable(f"the index {path} cannot be made: {why}", hint="Is its folder writable, and the disk not full?")


class Database:
    """Connections to one index file, one a thread. `lock` is the vault's kernel lock (durability.md §3)."""

    def __init__(self, path: Path, lock: Lock) -> None:
        self.path = path
        self._lock = lock
        self._local = threading.local()
        self._open: dict[int, tuple[threading.Thread, apsw.Connection]] = {}
        self._guard = threading.Lock()
        self._writing, self._next_to_write = threading.Lock(), threading.Lock()
        self.generation = 0  # grows when another file took the place of ours
        self._identity: tuple[int, int] | None = None
        self._prepare()

    # -- opening

    def _prepare(self) -> None:
        """Make the file if there is none, and refuse one that is not ours. Cold starts of many servers meet here."""
        try:
            # Beside the notes, only the folder itself is made: where a vault was, none is made in its place.
            self.path.parent.mkdir(parents=not file.is_beside_notes(self.path), exist_ok=True)
            if not self._is_made():
                with self._lock(), errors_as_ours():
                    if not self._is_made():
                        file.create(self.path)
        except OSError as error:
            raise _cannot_be_made(self.path, error.strerror or str(error)) from error
        self._identity = self._identity_on_disk()

    def _is_made(self) -> bool:
        """Whether an index of ours lies there, False for nothing at all. Damaged, or a refusal, for anything else."""
        found = what_lies_at(self.path)
        if found == "foreign":
            hint = "Choose another place with --db; simplemem never touches a file that is not its own."
            raise Unavailable(f"{self.path} belongs to another program", hint=hint)
        if found not in ("ours", "nothing"):
            raise Damaged(f"it is no index of version {file.SCHEMA_VERSION}")
        return found == "ours"

    def _identity_on_disk(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # -- using

    def connection(self) -> apsw.Connection:
        """This thread's connection to the file that lies at the path now. What has begun on one file ends on it."""
        held: tuple[int, apsw.Connection] | None = getattr(self._local, "held", None)
        if held is not None and held[1].in_transaction:
            return held[1]
        if self._identity_on_disk() != self._identity:
            with self._guard:
                if self._identity_on_disk() != self._identity:
                    self._prepare()
                    self.generation += 1
        if held is not None and held[0] == self.generation:
            return held[1]
        with errors_as_ours():
            connection = file.connect(self.path)
        connection.register_fts5_function("scored", scored)
        with self._guard:
            for ident, (thread, old) in list(self._open.items()):
                if thread is threading.current_thread() or not thread.is_alive():
                    old.close()
                    del self._open[ident]
            self._open[threading.get_ident()] = (threading.current_thread(), connection)
        self._local.held = (self.generation, connection)
        return connection

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with errors_as_ours():
            return self.connection().execute(sql, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """One transaction: all of it or nothing. Re-entrant in a thread; the outermost commits. Who writes much, as a
        first scan does, lets one who waits go first: SQLite's own waiting only looks now and then, and would miss the
        moment."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        with self._next_to_write:
            self._writing.acquire()
        try:
            with self._transaction(connection, "BEGIN IMMEDIATE"):
                yield connection
        finally:
            self._writing.release()

    @contextmanager
    def writing_on(self, generation: int) -> Iterator[apsw.Connection]:
        """A transaction on the very file that was read before: what its ids mean, another may give to other notes."""
        with self.writing() as connection:
            if self.generation != generation:
                raise Replaced
            yield connection

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """One snapshot for several queries."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        with self._transaction(connection, "BEGIN"):
            yield connection

    @contextmanager
    def _transaction(self, connection: apsw.Connection, begin: str) -> Iterator[None]:
        with errors_as_ours():
            connection.execute(begin).fetchall()
            try:
                yield
                connection.execute("COMMIT").fetchall()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").fetchall()
                raise

    def meta(self, key: str) -> str | None:
        found = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def set_meta(self, key: str, value: str) -> None:
        with self.writing() as db:
            db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value)).fetchall()

    # -- caring

    def checkpoint(self, most: int = WAL_LIMIT) -> None:
        """Fold the write-ahead log into the file once it has grown, under the vault's lock, waiting for no reader."""
        try:
            if os.stat(f"{self.path}-wal").st_size < most:
                return
        except OSError:
            return
        connection = self.connection()
        with self._lock(), suppress(apsw.BusyError):
            connection.set_busy_timeout(_FOLD_MS)
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                connection.set_busy_timeout(file.BUSY_MS)

    def check(self) -> list[str]:
        """What is wrong with the file, as SQLite and its tables of words see it. It only reads; nobody has to wait."""
        try:
            # Since SQLite 3.44 it asks FTS5 too, whose own command would hold up every writer. The quick check costs hardly
            # less, and does not see an index of a table that says something else than the table.
            return [str(row[0]) for row in self.rows("PRAGMA integrity_check(5)") if row[0] != "ok"]
        except (apsw.Error, Damaged) as error:
            return [str(error)]

    def discard(self) -> None:
        """Put a fresh, empty index in the place of this one. Under the lock, and only if nobody else just did."""
        seen = self._identity
        with self._lock():
            if self._identity_on_disk() == seen or what_lies_at(self.path) not in ("ours", "foreign"):
                fresh = file.beside(self.path)
                with errors_as_ours():
                    file.create(fresh)
                self._swap_in(fresh)
        self.connection()

    def replace_with(self, fresh: Path) -> None:
        """Swap a completely built index in. Other processes notice by the file's identity."""
        with self._lock():
            self._swap_in(fresh)
        self.connection()

    def _swap_in(self, fresh: Path) -> None:
        with self._guard:  # other threads close their connections when they next ask
            held = self._open.pop(threading.get_ident(), None)
        if held is not None:
            held[1].close()
            self._local.held = None
        file.put_in_place(fresh, self.path)

    def close(self) -> None:
        """Close every connection. Call when no other thread is using the database."""
        with self._guard:
            for _, connection in self._open.values():
                connection.close()
            self._open.clear()
        self._local = threading.local()


# -- what SQLite reports, as failures of ours

# What the disk refuses to take says nothing about the file: it is only damaged when it cannot be read.
_NOT_TAKEN = {
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_LOCK, apsw.SQLITE_IOERR_RDLOCK, apsw.SQLITE_IOERR_UNLOCK, apsw.SQLITE_IOERR_NOMEM,
    apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMLOCK, apsw.SQLITE_IOERR_SHMMAP,
}  # fmt: skip


@contextmanager
def errors_as_ours() -> Iterator[None]:
    """A busy index is Unavailable, a damaged one Damaged, and a lack of room is not its fault."""
    try:
        yield
    except apsw.BusyError as error:
        raise Unavailable("the index is busy", hint="Another process is writing to it; try again.") from error
    except apsw.Error as error:
        said, extended = str(error), getattr(error, "extendedresult", 0)
        if isinstance(error, apsw.FullError) or extended in _NOT_TAKEN:
            why = "the disk is full" if isinstance(error, apsw.FullError) else f"the disk does not take it ({said})"
            hint = "Free some space; notes are safe without it."
            raise Unavailable(f"{why}; the index could not be written", hint=hint) from error
        if isinstance(error, apsw.CantOpenError) and _lacks_descriptors():
            raise Unavailable("the index cannot be opened: too many files are open", hint="Try again.") from error
        # A file that was emptied has none of our tables; one whose pages were mixed up has none of FTS5's.
        lacks_tables = isinstance(error, apsw.SQLError) and ("no such" in said or "fts5 file format" in said)
        if lacks_tables or isinstance(error, (apsw.IOError, apsw.CantOpenError, apsw.CorruptError, apsw.NotADBError)):
            raise Damaged(said) from error
        raise


def _lacks_descriptors() -> bool:
    """Whether as many files as SQLite needs could not be opened now."""
    held: list[int] = []
    try:
        held.extend(os.dup(2) for _ in range(5))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for fd in held:
            os.close(fd)
    return False
