"""The sidecar's file: shared by threads and processes, rebuilt beside itself and swapped in. It may be deleted, damaged
or replaced at any moment: `Replaced` or `Damaged` is raised once, and the next use works on a fresh file."""

from __future__ import annotations

import ctypes
import os
import threading
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import apsw

from simplemem.errors import Unavailable
from simplemem.index.connection import SET_META
from simplemem.index.door import Ids, Nearness
from simplemem.index.engine import Damaged, Replaced
from simplemem.index.terms.small_segment import SegmentBuilder
from simplemem.index.terms.writer import (
    MAX_PACKED_NOTES,
    MAX_PACKED_NOTES_DURING_IMPORT,
    add_notes,
    merge_segments,
    remove_note,
)
from simplemem.vault.folder.lock import FileLock, is_alive

if TYPE_CHECKING:
    from simplemem.index.terms.query_terms import SegmentCache
    from simplemem.index.terms.reader import TermIndex

T = TypeVar("T")
SCHEMA_VERSION = 19
APPLICATION_ID = 0x736D656D  # "smem"
BUSY_MS = 15_000
WAL_LIMIT = 8 * 1024 * 1024
WAL_LIMIT_AMID_MUCH = 128 * 1024 * 1024  # pages that are written again and again are folded in once
_FOLD_MS = (
    200  # a question is over by then; who reads for longer is not waited for under the vault's lock
)
_TABLES = {"meta", "notes", "segments"}  # enough to know our shape by
_SCHEMA = Path(__file__).with_name("schema.sql")
_LOGS = ("-wal", "-shm")
# What the disk refuses to take says nothing about the file: it is only damaged when it cannot be read.
_REFUSALS = "WRITE FSYNC DIR_FSYNC TRUNCATE LOCK RDLOCK UNLOCK NOMEM SHMOPEN SHMSIZE SHMLOCK SHMMAP"
_NOT_TAKEN = {getattr(apsw, f"SQLITE_IOERR_{name}") for name in _REFUSALS.split()}

Lock = Callable[[], AbstractContextManager[None]]
Found = Literal["ours", "none", "newer", "foreign"]
"""What lies where the index should be: with "none" one is to be made, "newer" and "foreign" are left alone."""


def is_beside_notes(path: Path) -> bool:
    """Whether a path is in our own folder of a vault."""
    return path.parent.name == ".simplemem"


def create(path: Path) -> None:
    """An empty index."""
    with closing(connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        with db:
            db.execute(_SCHEMA.read_text(encoding="utf-8")).fetchall()
            db.execute(
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}"
            ).fetchall()


def remove(path: Path, ends: Sequence[str] = ("", *_LOGS)) -> None:
    """Remove an index, or the logs of one."""
    for end in ends:
        Path(f"{path}{end}").unlink(missing_ok=True)


class Connection(apsw.Connection):
    """A connection to SQLite."""

    get_segment_cache: Callable[[], SegmentCache]  # of the process, for all connections to a file

    def many(self, values: Iterable[Any]) -> Any:
        """Many values as `carray` takes them. An array of nothing cannot be handed over, and no id is negative."""
        given = values if isinstance(values, array) else tuple(values)
        is_text = bool(given) and isinstance(given[0], str)
        return apsw.carray(
            given if is_text or (isinstance(given, array) and given) else array("q", given or (-1,))
        )

    def state(self) -> tuple[int, int]:
        """What changes whenever anybody writes: others, or this connection itself."""
        return int(self.execute("PRAGMA data_version").get), self.total_changes()

    def nearest(
        self, _query: bytes, _ids: Ids, _limit: int, _also: Iterable[int]
    ) -> dict[int, Nearness] | None:
        """What `VectorsInMemory.nearest` answers, by an index of the engine's own; None where it has none."""
        return None

    def add_words(self, words: SegmentBuilder) -> None:
        """Write the words of some notes."""
        add_notes(self, words)

    def remove_words(self, note_id: int) -> None:
        """Remove the words of a note."""
        remove_note(self, note_id)

    def term_index(self, known_notes: int = 0) -> TermIndex:
        """Return the term index as it is now, in a vault of so many notes."""
        from simplemem.index.terms.reader import TermIndex  # numpy: not at the start

        return TermIndex(self, self.get_segment_cache(), known_notes)


def connect(path: Path) -> Connection:
    """A connection as all of ours are. Its log is folded in under the vault's lock, never by itself."""
    ours = [path.parent] if is_beside_notes(path) else []
    for each in (*ours, *(Path(f"{path}{end}") for end in ("", *_LOGS, "-journal"))):
        if (
            each.is_symlink() or each.is_fifo()
        ):  # SQLite would write through it, anywhere, or wait for its other end
            hint = "Remove it, or choose another place for the index with --db."
            raise Unavailable(
                f"{each} is a link or a pipe, which simplemem does not write through", hint=hint
            )
    connection = Connection(str(path))
    connection.set_busy_timeout(BUSY_MS)
    for setting in (
        "synchronous = NORMAL",
        "wal_autocheckpoint = 0",
        "temp_store = MEMORY",
        "cache_size = -16000",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
    # A process that still holds a replaced index would otherwise on closing remove, by name, the log of the new one.
    on = ctypes.c_int(1)
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(on))
    return connection


def what_lies_at(path: Path) -> Found:
    """Whose file lies there. Only where nobody else puts files is one without our mark a damaged one of ours."""
    if not path.exists() or path.stat().st_size == 0:
        return "none"
    head = b""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(72)
    is_marked = head[:16] == b"SQLite format 3\0" and head[68:72] == APPLICATION_ID.to_bytes(
        4, "big"
    )
    if_strange: Found = "none" if is_marked or is_beside_notes(path) else "foreign"
    try:
        with errors_as_ours(), closing(connect(path)) as db:
            mark, version = (
                db.execute(f"PRAGMA {name}").get for name in ("application_id", "user_version")
            )
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    except Damaged:
        return if_strange
    if mark != APPLICATION_ID:
        return if_strange if (mark, version, tables) != (0, 0, set()) else "none"
    if version > SCHEMA_VERSION:
        return "newer"
    return "ours" if version == SCHEMA_VERSION and tables >= _TABLES else "none"


def open_database(path: Path, lock: Lock) -> Database:
    """The index at `path`, or beside that of a newer simplemem."""
    with suppress(OSError, Unavailable):  # to be met, and said, when it is opened
        if what_lies_at(path) == "newer":
            path = path.with_name(f"{path.stem}-v{SCHEMA_VERSION}{path.suffix}")
    return Database(path, lock)


class Database:
    """Connections to one index file, one a thread.

    `lock` is the vault's kernel lock (docs/internals/writing.md#the-lock).
    """

    def __init__(self, path: Path, lock: Lock) -> None:
        self.path, self._lock = path, lock
        self._open: dict[
            threading.Thread, tuple[int, Connection]
        ] = {}  # of each thread, and to which generation
        self._guard = threading.Lock()
        self._writing, self._next_to_write = threading.Lock(), threading.Lock()
        self.engine, self.place = f"SQLite {apsw.sqlite_lib_version()}", str(path)
        self.generation = -1  # grows when another file took the place of ours
        self._identity: tuple[int, int] | None = None
        self._segment_cache: SegmentCache | None = None  # made when words are queried first
        self._take_up()

    def _take_up(self, bad: tuple[int, int] | None = None) -> None:
        """Go on with the file that lies there now. If there is none of ours, or a `bad` or damaged one, it is made, outside
        the guard: who has the vault's lock may wait for it. Cold starts of many servers meet here."""
        try:
            # Beside the notes, only the folder itself is made: where a vault was, none is made in its place.
            self.path.parent.mkdir(parents=not is_beside_notes(self.path), exist_ok=True)
            if not self._is_made(bad):
                with self._lock(), errors_as_ours():
                    if not self._is_made(bad):  # nobody else has just made it
                        remove(self.path)
                        create(self.path)
        except OSError as error:
            hint = "Check that its folder is writable and that the disk is not full."
            raise Unavailable(
                f"the index {self.path} cannot be created: {error.strerror or error}", hint=hint
            ) from error
        except (
            Damaged,
            apsw.Error,
        ) as error:  # its folder, and the lock in it, went away under those who made it
            hint = "Check whether another program deletes it, then try again."
            raise Unavailable(
                f"the index was deleted while simplemem was creating it ({error})", hint=hint
            ) from error
        with self._guard:
            if bad is not None or self._identity_on_disk() != self._identity:
                self._identity = self._identity_on_disk()
                self.generation += 1

    def _is_made(self, bad: tuple[int, int] | None) -> bool:
        """Whether a sound index of ours lies there. Another program's file is refused."""
        if (found := what_lies_at(self.path)) == "foreign":
            hint = (
                "Choose another place with --db. simplemem never changes a file of another program."
            )
            raise Unavailable(f"{self.path} belongs to another program", hint=hint)
        return found == "ours" and (bad is None or self._identity_on_disk() != bad)

    def _identity_on_disk(self) -> tuple[int, int] | None:
        with suppress(OSError):
            found = os.stat(self.path)
            return found.st_dev, found.st_ino
        return None

    def connection(self) -> Connection:
        """This thread's connection to the file that lies at the path now. What has begun on one file ends on it."""
        thread = threading.current_thread()
        held = self._open.get(thread)
        if held is not None and held[1].in_transaction:
            return held[1]
        if self._identity_on_disk() != self._identity:
            self._take_up()
        if held is not None and held[0] == self.generation:
            return held[1]
        with errors_as_ours():
            connection = connect(self.path)
        connection.get_segment_cache = self._get_segment_cache
        with self._guard:
            for each in list(self._open):
                if each is thread or not each.is_alive():
                    self._open.pop(each)[1].close()
            self._open[thread] = (self.generation, connection)
        return connection

    def _get_segment_cache(self) -> SegmentCache:
        from simplemem.index.terms.query_terms import SegmentCache  # numpy: not at the start

        with self._guard:
            if self._segment_cache is None:
                self._segment_cache = SegmentCache()
            return self._segment_cache

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with errors_as_ours():
            return self.connection().execute(sql, values).fetchall()

    @contextmanager
    def writing(self, generation: int | None = None) -> Iterator[Connection]:
        """One transaction, re-entrant in a thread: the outermost commits. Who writes much lets others go first. With the
        `generation` that was read before, Replaced in any other: there, ids may mean other notes."""
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
    def reading(self) -> Iterator[Connection]:
        """One snapshot for several queries."""
        connection = self.connection()
        with nullcontext() if connection.in_transaction else self._transaction(connection, "BEGIN"):
            yield connection

    def answer(self, ask: Callable[[Connection], T]) -> T:
        """What is found in one snapshot."""
        with self.reading() as db:
            return ask(db)

    @contextmanager
    def _transaction(self, connection: Connection, begin: str) -> Iterator[None]:
        with errors_as_ours():
            connection.execute(begin).fetchall()
            try:
                yield
                connection.execute("COMMIT").fetchall()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").fetchall()
                raise

    def leadership(self) -> FileLock:
        """The lead of this index, which is of this machine."""
        return FileLock(str(self.path.parent), f"{self.path.stem}.leader")

    def meta(self, key: str) -> str | None:
        return next(
            (str(value) for (value,) in self.rows("SELECT value FROM meta WHERE key = ?", (key,))),
            None,
        )

    def set_meta(self, key: str, value: str) -> None:
        with self.writing() as db:
            db.execute(SET_META, (key, value)).fetchall()

    def checkpoint(self, most: int = WAL_LIMIT) -> None:
        """Fold the write-ahead log into the file once it has grown, under the vault's lock, waiting for no reader.

        Before that, segments of the term index are merged.
        """
        is_importing = most > WAL_LIMIT
        max_packed = MAX_PACKED_NOTES_DURING_IMPORT if is_importing else MAX_PACKED_NOTES
        merge_segments(self, max_packed=max_packed)
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
                connection.set_busy_timeout(BUSY_MS)

    def expect_much(self) -> None:
        """Prepare for very many notes: nothing to do for SQLite."""

    def fold(self, generation: int | None = None) -> None:
        """Merge segments of the term index, if many have come together."""
        merge_segments(self, generation)

    def check(self) -> list[str]:
        """What is wrong with the file, as SQLite and the term index see it. It only reads; nobody has to wait."""
        from simplemem.index.terms.integrity import find_damage  # numpy: not at the start

        try:
            with (
                self.reading() as db
            ):  # the quick check costs hardly less, and compares no index with its table
                found = [
                    str(row[0]) for row in db.execute("PRAGMA integrity_check(5)") if row[0] != "ok"
                ]
                return found or find_damage(db)
        except (apsw.Error, Damaged) as error:
            return [str(error)]

    def discard(self) -> None:
        """Put a fresh, empty index in the place of this one, unless somebody else just did."""
        self._take_up(self._identity)
        self.connection()

    def beside(self) -> Database:
        """A fresh, empty index, private to this process until `replace_with` swaps it in. What others left is removed."""
        name = f"{self.path.name}.new-"
        for left in self.path.parent.glob(f"{name}*"):
            owner = left.name.removeprefix(name).partition("-")[0]
            if not (owner.isdecimal() and is_alive(int(owner))):
                left.unlink(missing_ok=True)
        return Database(
            self.path.with_name(f"{name}{os.getpid()}-{uuid.uuid4().hex[:8]}"), self._lock
        )

    def drop(self) -> None:
        """Close it and remove it from the disk."""
        self.close()
        remove(self.path)

    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.path.parent.glob(f"{self.path.name}*"))

    def replace_with(self, fresh: Any) -> None:
        """Swap a completely built index in. Other threads and processes notice by the file's identity."""
        with self._lock():
            with self._guard:
                if (held := self._open.pop(threading.current_thread(), None)) is not None:
                    held[1].close()
            with closing(
                connect(fresh.path)
            ) as db:  # leaving WAL folds its log in: all of it is in one file
                db.execute("PRAGMA journal_mode = DELETE; PRAGMA journal_mode = WAL").fetchall()
            remove(self.path, _LOGS)
            os.replace(fresh.path, self.path)
            remove(fresh.path, _LOGS)
        self.connection()

    def close(self) -> None:
        """Close every connection. Call when no other thread is using the database."""
        with self._guard:
            for _, connection in self._open.values():
                connection.close()
            self._open.clear()


@contextmanager
def errors_as_ours() -> Iterator[None]:
    """A busy index is Unavailable, a damaged one Damaged, and a lack of room is not its fault."""
    try:
        yield
    except apsw.BusyError as error:
        raise Unavailable(
            "the index is busy", hint="Another process is writing to it. Try again."
        ) from error
    except apsw.Error as error:
        said, extended = str(error), getattr(error, "extendedresult", 0)
        if isinstance(error, apsw.FullError) or extended in _NOT_TAKEN:
            why, hint = (
                f"the disk refuses writes ({said})",
                "Check the disk, then try again. The notes are safe.",
            )
            if isinstance(error, apsw.FullError):
                why, hint = "the disk is full", "Free some space and try again. The notes are safe."
            raise Unavailable(f"the index could not be written: {why}", hint=hint) from error
        if isinstance(error, apsw.CantOpenError):
            hint = "Check that its folder is readable and that not too many files are open."
            raise Unavailable(f"the index cannot be opened ({said})", hint=hint) from error
        # A file that was emptied has none of our tables; one whose pages were mixed up has none of FTS5's.
        lacks_tables = isinstance(error, apsw.SQLError) and (
            "no such" in said or "fts5 file format" in said
        )
        if lacks_tables or isinstance(error, (apsw.IOError, apsw.CorruptError, apsw.NotADBError)):
            raise Damaged(said) from error
        raise
