"""The sidecar's file: opened, checked, shared by threads and processes, rebuilt beside itself and swapped in.

It may be deleted, damaged or replaced at any moment; then `Replaced` or `Damaged` is raised once and the next use works on
a fresh file. Nothing here knows what the tables mean, and nothing outside this room opens the file.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import logging
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw

from simplemem.errors import Unavailable
from simplemem.index import bm25
from simplemem.vault.kernel import is_alive

SCHEMA_VERSION = 6
APPLICATION_ID = 0x736D656D  # "smem"
_TABLES = {"meta", "notes", "note_text"}  # enough to know our shape by
_BUSY_MS = 15_000
_WAL_LIMIT = 8 * 1024 * 1024
_WAL_LIMIT_AMID_MUCH = 128 * 1024 * 1024
_WAL_ALARM = 64 * 1024 * 1024
_FOLD_MS = 200  # a question is over by then; who reads for longer is not waited for under the vault's lock
_SCHEMA = Path(__file__).with_name("schema.sql")

_LOG = logging.getLogger(__name__)

Row = tuple[Any, ...]
SqliteError = apsw.Error  # whatever SQLite itself reports


class Damaged(Exception):
    """The file is not a usable index. `Database.discard` and a rebuild are the way out."""


class Replaced(Exception):
    """Another file took the place of the index in the middle of something that stands on the old one. Begin again."""


class Database:
    """Connections to one index file, one a thread. `lock` is the vault's kernel lock: creating, replacing and
    checkpointing happen under it (durability.md §3)."""

    def __init__(self, path: Path, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self.path = path
        self._lock = lock
        self._local = threading.local()
        self._open: dict[int, tuple[threading.Thread, apsw.Connection]] = {}
        self._guard = threading.Lock()
        self._turns = _Turns()
        self.generation = 0  # grows when another file took the place of ours
        self._identity: tuple[int, int] | None = None
        self.vectors_in_sql = False
        self._prepare()

    # -- opening

    def _prepare(self) -> None:
        """Make the file if there is none, and refuse one that is not ours. Cold starts of many servers meet here."""
        try:
            # Beside the notes, only the folder itself is made: where a vault was, none is made in its place.
            self.path.parent.mkdir(parents=self.path.parent.name != ".simplemem", exist_ok=True)
        except OSError as error:
            raise _cannot_be_made(self.path, error.strerror or str(error)) from error
        if self._is_ready():
            self._identity = self._identity_on_disk()
            return
        with self._lock():
            if not self._is_ready():
                self._create(self.path)
            self._identity = self._identity_on_disk()

    def _is_ready(self) -> bool:
        try:
            if self.path.stat().st_size == 0:
                return False
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _cannot_be_made(self.path, error.strerror or str(error)) from error
        try:
            with _speaking_plainly():
                mark, version, tables = _marks(self.path)
        except apsw.Error as error:
            raise Damaged(str(error)) from error
        if (mark, version, tables) == (0, 0, set()):
            return False
        if mark != APPLICATION_ID and self.path.parent.name == ".simplemem":
            raise Damaged("it bears no mark of ours")  # nobody else puts files there
        if mark != APPLICATION_ID:
            raise _not_ours(self.path)
        if version != SCHEMA_VERSION or not tables >= _TABLES:
            raise Damaged(f"index version {version}, wanted {SCHEMA_VERSION}")
        return True

    @staticmethod
    def _create(path: Path) -> None:
        with _speaking_plainly(), _connected(path) as connection:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            with connection:
                connection.execute(_SCHEMA.read_text(encoding="utf-8")).fetchall()
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}").fetchall()
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}").fetchall()

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
        with _speaking_plainly():
            connection = _connect(self.path)
        self.vectors_in_sql = _load_sqlite_vec(connection)
        bm25.teach(connection)
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

    def rows(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[Row]:
        """All rows of a query."""
        with _speaking_plainly():
            return self.connection().execute(sql, values).fetchall()

    def value(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> Any:
        """The first column of the first row, None when there is no row."""
        with _speaking_plainly():
            row = self.connection().execute(sql, values).fetchone()
        return None if row is None else row[0]

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """One transaction: all of it or nothing. Re-entrant in a thread; the outermost commits."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        with self._turns, _speaking_plainly():
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
        with _speaking_plainly():
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
                connection.set_busy_timeout(_BUSY_MS)

    def copy_to(self, path: Path) -> None:
        """A copy of all of it as of one moment, in a file that is not there yet. Others may write meanwhile."""
        source = self.connection()
        try:
            with _connected(path) as copy, copy.backup("main", source, "main") as backup:
                backup.step(-1)  # in one go: it would begin again whenever another process writes in between
        except apsw.Error as error:  # which of the two files it is about cannot be told, and ours is asked every day
            hint = "Is there room? The environment variable TMPDIR names another place for it."
            raise Unavailable(f"a copy of the index could not be made at {path.parent}: {error}", hint=hint) from error

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
                fresh = _beside(self.path)
                self._create(fresh)
                self._swap_in(fresh)
        self.connection()

    def _usable(self) -> bool:
        try:
            return self._is_ready()
        except Damaged:
            return False

    def replace_with(self, fresh: Path) -> None:
        """Swap a completely built index in. Other processes notice by the file's identity."""
        with self._lock():
            self._swap_in(fresh)
        self.connection()

    def _swap_in(self, fresh: Path) -> None:
        with _connected(fresh) as connection:
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()  # folds its log in; WAL again below
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        self._close_all()
        for suffix in ("-wal", "-shm"):
            _remove(Path(f"{self.path}{suffix}"), alone=True)
        os.replace(fresh, self.path)
        for suffix in ("-wal", "-shm"):
            _remove(Path(f"{fresh}{suffix}"), alone=True)

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


class _Turns:
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


def open_database(path: Path, lock: Callable[[], AbstractContextManager[None]]) -> Database:
    """The index at `path`. One that is damaged or older is replaced; a newer one is left alone and ours lies beside it.
    A file that bears no mark of ours is replaced only where nobody else puts files."""
    version = _version_of(path)
    if version is not None and version > SCHEMA_VERSION:
        path = path.with_name(f"{path.stem}-v{SCHEMA_VERSION}{path.suffix}")
    for _ in range(3):
        try:
            return Database(path, lock)
        except Damaged:
            if path.parent.name != ".simplemem" and not _bears_our_mark(path):
                raise _not_ours(path) from None
            with lock():
                if not _is_sound(path):  # nobody else has just made it anew
                    _remove(path)
    raise _cannot_be_made(path, "it was damaged again and again")


def _cannot_be_made(path: Path, why: str) -> Unavailable:
    return Unavailable(f"the index {path} cannot be made: {why}", hint="Is its folder writable, and the disk not full?")


def _not_ours(path: Path) -> Unavailable:
    hint = "Choose another place with --db; simplemem never touches a file that is not its own."
    return Unavailable(f"{path} belongs to another program", hint=hint)


def _bears_our_mark(path: Path) -> bool:
    """Whether a file begins as an index of ours does, however damaged the rest of it is."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head[:16] == b"SQLite format 3\0" and head[68:72] == APPLICATION_ID.to_bytes(4, "big")


_OWN_ENDS = ("", "-wal", "-shm", "-journal")


def build_beside(path: Path, lock: Callable[[], AbstractContextManager[None]]) -> Database:
    """A fresh, empty index next to `path`, private to this process until `Database.replace_with` swaps it in."""
    return Database(_beside(path), lock)


def _beside(path: Path) -> Path:
    """A free name next to `path`. What lies under such a name and is of a process that is no more is cleared away."""
    for left in path.parent.glob(f"{path.name}.new-*"):
        owner = left.name.removeprefix(f"{path.name}.new-").partition("-")[0]
        if not (owner.isdecimal() and is_alive(int(owner))):
            left.unlink(missing_ok=True)
    return path.with_name(f"{path.name}.new-{os.getpid()}-{uuid.uuid4().hex[:8]}")


def _version_of(path: Path) -> int | None:
    """The schema version of a file, None when it is not a readable index of ours."""
    if not path.exists():
        return None
    try:
        mark, version, _ = _marks(path)
    except apsw.Error:
        return None
    return version if mark == APPLICATION_ID else None


def _is_sound(path: Path) -> bool:
    """Whether an index of our version can be opened and has our tables."""
    try:
        with _speaking_plainly():
            mark, version, tables = _marks(path)
    except (apsw.Error, Damaged):
        return False
    return (mark, version) == (APPLICATION_ID, SCHEMA_VERSION) and tables >= _TABLES


def _marks(path: Path) -> tuple[int, int, set[str]]:
    """What tells whose file it is: its mark, its version, and its tables."""
    with _connected(path) as connection:
        mark, version = (connection.execute(f"PRAGMA {name}").get for name in ("application_id", "user_version"))
        return mark, version, {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def link_among(path: Path) -> Path | None:
    """A link that lies where the index or a file of its own should be: SQLite would write through it, anywhere."""
    ours = [path.parent] if path.parent.name == ".simplemem" else []
    return next((each for each in (*ours, *(Path(f"{path}{end}") for end in _OWN_ENDS)) if each.is_symlink()), None)


def _connect(path: Path) -> apsw.Connection:
    if (link := link_among(path)) is not None:
        hint = "Remove the link. Another place for the index is chosen with --db."
        raise Unavailable(f"{link} is a link, and simplemem writes nothing through a link", hint=hint)
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(_BUSY_MS)
    connection.execute("PRAGMA synchronous = NORMAL").fetchall()
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    connection.execute("PRAGMA temp_store = MEMORY").fetchall()
    connection.execute("PRAGMA cache_size = -16000").fetchall()
    _keep_log(connection)
    return connection


@contextmanager
def _connected(path: Path) -> Iterator[apsw.Connection]:
    connection = _connect(path)
    try:
        yield connection
    finally:
        connection.close()


def _keep_log(connection: apsw.Connection) -> None:
    """Leave the write-ahead log in its place on closing. A process that still holds a replaced index would otherwise
    remove, by name, the log of the new one."""
    on = ctypes.c_int(1)
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(on))


def _load_sqlite_vec(connection: apsw.Connection) -> bool:
    """Load the extension by its file: importing the package would import numpy with it (limits.md A)."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        return False
    try:
        connection.enable_load_extension(True)
        connection.load_extension(str(Path(spec.submodule_search_locations[0]) / "vec0"))
        connection.enable_load_extension(False)
    except apsw.Error:
        return False
    return True


def _remove(path: Path, *, alone: bool = False) -> None:
    for name in [path] if alone else [path, Path(f"{path}-wal"), Path(f"{path}-shm")]:
        name.unlink(missing_ok=True)


# What the disk refuses to take says nothing about the file: it is only damaged when it cannot be read.
_NOT_TAKEN = {
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_LOCK, apsw.SQLITE_IOERR_RDLOCK, apsw.SQLITE_IOERR_UNLOCK, apsw.SQLITE_IOERR_NOMEM,
    apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMLOCK, apsw.SQLITE_IOERR_SHMMAP,
}  # fmt: skip


@contextmanager
def _speaking_plainly() -> Iterator[None]:
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
