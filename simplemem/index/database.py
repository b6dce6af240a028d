"""The sidecar's file: opened, checked, shared by threads and processes, rebuilt beside itself and swapped in.

It may be deleted, damaged or replaced at any moment; then `Replaced` or `Damaged` is raised once and the next use works on
a fresh file. Nothing here knows what the tables mean, and nothing outside this room opens the file.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from simplemem.errors import Unavailable
from simplemem.index import file
from simplemem.index.file import Damaged, Replaced
from simplemem.index.legs import teach_bm25

_WAL_LIMIT = 8 * 1024 * 1024
_WAL_LIMIT_AMID_MUCH = 128 * 1024 * 1024
_WAL_ALARM = 64 * 1024 * 1024
_FOLD_MS = 200  # a question is over by then; who reads for longer is not waited for under the vault's lock

_LOG = logging.getLogger(__name__)


class Database:
    """Connections to one index file, one a thread. `lock` is the vault's kernel lock: creating, replacing and
    checkpointing happen under it (durability.md §3)."""

    def __init__(self, path: Path, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self.path = path
        self._lock = lock
        self._local = threading.local()
        self._open: dict[int, tuple[threading.Thread, apsw.Connection]] = {}
        self._guard = threading.Lock()
        self._turns = Turns()
        self.generation = 0  # grows when another file took the place of ours
        self._identity: tuple[int, int] | None = None
        self.vectors_in_sql = False
        self._prepare()

    # -- opening

    def _prepare(self) -> None:
        """Make the file if there is none, and refuse one that is not ours. Cold starts of many servers meet here."""
        try:
            # Beside the notes, only the folder itself is made: where a vault was, none is made in its place.
            self.path.parent.mkdir(parents=not file.is_beside_notes(self.path), exist_ok=True)
        except OSError as error:
            raise file.cannot_be_made(self.path, error.strerror or str(error)) from error
        with speaking_plainly():
            if not file.is_ready(self.path):
                with self._lock():
                    if not file.is_ready(self.path):
                        file.create(self.path)
        self._identity = self._identity_on_disk()

    def _identity_on_disk(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # -- using

    def connection(self) -> apsw.Connection:
        """This thread's connection to the file that lies at the path now (durability.md §0.8). What has begun on one file
        ends on it."""
        held: tuple[int, apsw.Connection] | None = getattr(self._local, "held", None)
        if held is not None and held[1].in_transaction:
            return held[1]
        if self._identity_on_disk() != self._identity:
            self._reopen()
        if held is not None and held[0] == self.generation:
            return held[1]
        with speaking_plainly():
            connection = file.connect(self.path)
        self.vectors_in_sql = file.load_sqlite_vec(connection)
        teach_bm25(connection)
        with self._guard:
            self._close_dead_threads()
            old = self._open.pop(threading.get_ident(), None)
            self._open[threading.get_ident()] = (threading.current_thread(), connection)
        if old is not None:
            old[1].close()
        self._local.held = (self.generation, connection)
        return connection

    def _reopen(self) -> None:
        with self._guard:
            if self._identity_on_disk() == self._identity:
                return
            self._prepare()
            self.generation += 1

    def _close_dead_threads(self) -> None:
        for ident, (thread, connection) in list(self._open.items()):
            if not thread.is_alive():
                connection.close()
                del self._open[ident]

    def rows(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with speaking_plainly():
            return self.connection().execute(sql, values).fetchall()

    def value(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> Any:
        """The first column of the first row, None when there is no row."""
        with speaking_plainly():
            row = self.connection().execute(sql, values).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """One transaction: all of it or nothing. Re-entrant in a thread; the outermost commits."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        with self._turns, speaking_plainly():
            connection.execute("BEGIN IMMEDIATE").fetchall()
            try:
                yield connection
                connection.execute("COMMIT").fetchall()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").fetchall()
                raise

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
        with speaking_plainly():
            connection.execute("BEGIN").fetchall()
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT").fetchall()

    def meta(self, key: str) -> str | None:
        found = self.value("SELECT value FROM meta WHERE key = ?", (key,))
        return None if found is None else str(found)

    def set_meta(self, key: str, value: str) -> None:
        with self.writing() as db:
            db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value)).fetchall()

    # -- caring

    def checkpoint(self, *, force: bool = False, amid_much: bool = False) -> None:
        """Fold the write-ahead log into the file once it has grown, under the vault lock (durability.md §0.6). Amid much
        writing it may grow further: pages that are written again and again are folded in once."""
        try:
            size = os.stat(f"{self.path}-wal").st_size
        except OSError:
            return
        if size < (1 if force else _WAL_LIMIT_AMID_MUCH if amid_much else _WAL_LIMIT):
            return
        connection = self.connection()
        with self._lock():
            connection.set_busy_timeout(_FOLD_MS)
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError:  # somebody reads an older state: what can be is folded in, the rest another time
                if size > _WAL_ALARM and not amid_much:
                    _LOG.warning("the log of the index has grown to %d MB: a process reads it for long", size >> 20)
            finally:
                connection.set_busy_timeout(file.BUSY_MS)

    def check(self) -> list[str]:
        """What is wrong with the file, as SQLite and the tables of words see it (§0.9). It only reads, so that nobody has
        to wait; a file that is busy is not a damaged one, and is said to be so."""
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
            if self._identity_on_disk() == seen or not self._usable():
                fresh = file.beside(self.path)
                with speaking_plainly():
                    file.create(fresh)
                self._swap_in(fresh)
        self.connection()

    def _usable(self) -> bool:
        try:
            with speaking_plainly():
                return file.is_ready(self.path)
        except Damaged:
            return False

    def replace_with(self, fresh: Path) -> None:
        """Swap a completely built index in. Other processes notice by the file's identity."""
        with self._lock():
            self._swap_in(fresh)
        self.connection()

    def _swap_in(self, fresh: Path) -> None:
        file.fold_log(fresh)
        self._close_all()
        file.remove_logs(self.path)
        os.replace(fresh, self.path)
        file.remove_logs(fresh)

    def _close_all(self) -> None:
        """Close this thread's connection; the others close when their threads next ask."""
        with self._guard:
            held = self._open.pop(threading.get_ident(), None)
        if held is not None:
            held[1].close()
            self._local.held = None

    def close(self) -> None:
        """Close every connection. Call when no other thread is using the database."""
        with self._guard:
            for _, connection in self._open.values():
                connection.close()
            self._open.clear()
        self._local = threading.local()


def state_of(db: apsw.Connection) -> tuple[int, int]:
    """What changes whenever anybody writes: others, or this connection itself."""
    return int(db.execute("PRAGMA data_version").get), db.total_changes()


def open_database(path: Path, lock: Callable[[], AbstractContextManager[None]]) -> Database:
    """The index at `path`. One that is damaged or older is replaced; a newer one is left alone and ours lies beside it.
    A file that bears no mark of ours is replaced only where nobody else puts files."""
    if file.is_newer(path):
        path = path.with_name(f"{path.stem}-v{file.SCHEMA_VERSION}{path.suffix}")
    for _ in range(3):
        try:
            return Database(path, lock)
        except Damaged:
            if not file.may_be_replaced(path):
                raise file.not_ours(path) from None
            with lock():
                if not file.is_sound(path):  # nobody else has just made it anew
                    file.remove(path)
    raise file.cannot_be_made(path, "it was damaged again and again")


def build_beside(path: Path, lock: Callable[[], AbstractContextManager[None]]) -> Database:
    """A fresh, empty index next to `path`, private to this process until `Database.replace_with` swaps it in."""
    return Database(file.beside(path), lock)


class Turns:
    """Writers of this process one after another, in the order they came: whoever writes much, as a first scan does,
    hands over to one who waits. SQLite's own waiting only looks now and then, and would miss the moment."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False


class Table(NamedTuple):
    """Rows that belong to a note: how those it has are asked for, as they are put, and how they go. In no
    order: SQLite would prepare a statement that orders anew for every note."""

    held: str
    clear: str
    put: str


class Rows:
    """What is still to be written, in the order in which its statements first came. For one transaction."""

    def __init__(self) -> None:
        self.rev: int | None = None  # the number of the change that they all are
        self.generations: Any = None  # of vectors, as they are while it lasts
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}

    def add(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep rows for a statement."""
        waiting = self._waiting.get(sql)
        if waiting is None:
            waiting = self._waiting[sql] = []
        waiting.extend(rows)

    def replace(
        self, db: apsw.Connection, table: Table, note_id: int, wanted: Sequence[tuple[Any, ...]], *, new: bool
    ) -> None:
        """Keep the rows of a note for a table, unless they are there already: most changes of a note leave most of its rows
        as they were, and every page that is not touched need not be written."""
        if not new:
            if sorted(db.execute(table.held, (note_id,))) == wanted:
                return
            db.execute(table.clear, (note_id,)).fetchall()
        if wanted:
            self.add(table.put, wanted)

    def write(self, db: apsw.Connection) -> None:
        """Write all that is kept."""
        for sql, rows in self._waiting.items():
            db.executemany(sql, rows)
        self._waiting.clear()


# -- what SQLite reports, as failures of ours

# What the disk refuses to take says nothing about the file: it is only damaged when it cannot be read.
_NOT_TAKEN = {
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_LOCK, apsw.SQLITE_IOERR_RDLOCK, apsw.SQLITE_IOERR_UNLOCK, apsw.SQLITE_IOERR_NOMEM,
    apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMLOCK, apsw.SQLITE_IOERR_SHMMAP,
}  # fmt: skip


@contextmanager
def speaking_plainly() -> Iterator[None]:
    """SQLite's failures as ours: a busy index is Unavailable, a damaged one Damaged, and a lack of room is not its fault."""
    try:
        yield
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) in _NOT_TAKEN:
            raise _not_written(f"the disk does not take what is written ({error})") from error
        raise Damaged(str(error)) from error
    except apsw.CantOpenError as error:
        if _lacks_descriptors():
            raise Unavailable("the index cannot be opened: too many files are open", hint="Try again.") from error
        raise Damaged(str(error)) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Damaged(str(error)) from error
    except apsw.SQLError as error:
        # A file that was emptied has none of our tables; one whose pages were mixed up has none of FTS5's.
        if "no such" in str(error) or "fts5 file format" in str(error):
            raise Damaged(str(error)) from error
        raise
    except apsw.BusyError as error:
        raise Unavailable("the index is busy", hint="Another process is writing to it; try again.") from error
    except apsw.FullError as error:
        raise _not_written("the disk is full") from error


def _not_written(why: str) -> Unavailable:
    return Unavailable(f"{why}; the index could not be written", hint="Free some space; notes are safe without it.")


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
