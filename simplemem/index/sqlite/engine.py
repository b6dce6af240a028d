"""The SQLite engine: one file for all threads and processes, rebuilt beside itself and swapped in.

The file may be deleted, damaged or replaced at any moment. `Replaced` or `Damaged` is then raised
once, and the next use works on a fresh file (docs/internals/engines.md). The module has the vectors
of an index, a connection to it, its file, and the engine, in this order.
"""

from __future__ import annotations

import ctypes
import os
import threading
import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast

import apsw

from simplemem.errors import Unavailable
from simplemem.index.engine import (
    SET_META,
    Cursor,
    Damaged,
    DatabaseRow,
    Dialect,
    Engine,
    IntegerList,
    Replaced,
    StatementFailed,
    TextList,
    Value,
)
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.writer import (
    MAX_PACKED_NOTES,
    MAX_PACKED_NOTES_DURING_IMPORT,
    is_merge_due,
)
from simplemem.vault.folder.lock import FileLock, is_alive

# -- vectors

_MAX_DIMENSION = 8_192  # of a vector in a `vec0` table
# Rows for which a `vec0` table takes space at a time. With its default, 1,024, most of the space
# would be empty in a small vault.
_CHUNK_SIZE = 256

_CREATE_VEC0 = """
    CREATE VIRTUAL TABLE vectors USING vec0(
        id INTEGER PRIMARY KEY, is_block INTEGER PARTITION KEY,
        vector INT8[{dimension}] DISTANCE_METRIC=cosine, CHUNK_SIZE={chunk_size}
    )"""
_CREATE_BYTES = "CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL)"

_SELECT_NOTES = """
    SELECT v.id, v.vector
    FROM carray($1) n CROSS JOIN vectors v
    WHERE v.id >= (n.value << {shift}) + {first} AND v.id < (n.value << {shift}) + {after}
    ORDER BY v.id"""

# The chunk and the offset in it of each vector of some notes. A `vec0` table cannot look up a range
# of ids, but the table of its row ids can.
_SELECT_OFFSETS = """
    SELECT r.rowid, r.chunk_id, r.chunk_offset
    FROM carray($1) n CROSS JOIN vectors_rowids r
    WHERE r.rowid >= (n.value << {shift}) + {first} AND r.rowid < (n.value << {shift}) + {after}
    ORDER BY r.rowid"""

# A `vec0` table keeps its rows in chunks. For each chunk, `vectors_chunks` has the ids of its rows
# and a bit per row that is in use (`validity`), and `vectors_vector_chunks00` has their vectors.
# Reading the rows one by one takes 15 times as long as reading whole chunks (bench/vectors.py).
# CROSS JOIN makes SQLite read the vectors in their order. It would otherwise sort all of them in
# memory.
_CHUNK_TABLE = "vectors_vector_chunks00"
_CHUNKS = """
    FROM vectors_vector_chunks00 v CROSS JOIN vectors_chunks c ON c.chunk_id = v.rowid
    WHERE c.partition00 = $1"""
_SELECT_CHUNKS = f"SELECT c.validity, c.rowids, v.vectors {_CHUNKS} ORDER BY v.rowid"
_SELECT_CHUNK_BYTES = f"SELECT sum(length(v.vectors)) {_CHUNKS}"


@cache
def _extension() -> str | None:
    """Return the path of sqlite-vec without its suffix; None if it is not installed.

    It has no build for systems with musl, such as Alpine Linux.
    """
    # Importing the package would import numpy, which takes longer than a short command.
    package = find_spec("sqlite_vec")
    if package is None or package.origin is None:
        return None
    return str(Path(package.origin).with_name("vec0"))


def has_vector_extension() -> bool:
    """Return whether sqlite-vec is installed for this interpreter. Loads nothing."""
    return _extension() is not None


def describe_storage() -> str:
    """Return how this process keeps vectors in SQLite, for people."""
    if _extension() is None:
        return "bytes, compared in memory (sqlite-vec is not available here)"
    return "a vec0 table of sqlite-vec"


def load_extension(raw: apsw.Connection) -> bool:
    """Load sqlite-vec into a connection. Return whether it is installed."""
    path = _extension()
    if path is None:
        return False
    raw.enable_load_extension(True)
    try:
        raw.load_extension(path)
    finally:
        raw.enable_load_extension(False)
    return True


class SqliteVectors:
    """The vectors of one index, through one connection; methods as in `VectorIndex`.

    They are in a `vec0` table of sqlite-vec, or in a table of bytes where it is not available.
    Keeps no state of its own: each method looks up which table exists.
    """

    def __init__(self, raw: apsw.Connection, *, has_extension: bool) -> None:
        self._raw = raw
        self._has_extension = has_extension

    def _tables(self) -> set[str]:
        """Return which of the tables `vectors` and `vectors_chunks` exist; empty before `create`.

        The second exists only if the first is a `vec0` table.
        """
        sql = "SELECT name FROM sqlite_schema WHERE name IN ('vectors', 'vectors_chunks')"
        return {name for (name,) in self._raw.execute(sql)}

    def create(self, dimension: int) -> None:
        """Make the table for vectors of this width. Does nothing if there is one, of any width."""
        if self._tables():
            return
        if self._has_extension and dimension <= _MAX_DIMENSION:
            sql = _CREATE_VEC0.format(dimension=dimension, chunk_size=_CHUNK_SIZE)
        else:
            sql = _CREATE_BYTES
        self._raw.execute(sql).fetchall()

    def clear(self) -> None:
        """Remove all vectors with their table. `create` must be called again."""
        self._raw.execute("DROP TABLE IF EXISTS vectors").fetchall()

    def write(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Store vectors, given as (place, vector), in place of those that the places have.

        The table must exist (`create`).
        """
        rows = list(vectors)
        if not rows:
            return

        # A `vec0` table has no INSERT OR REPLACE.
        ids = [(place,) for place, _ in rows]
        self._raw.executemany("DELETE FROM vectors WHERE id = $1", ids)
        if self._is_vec0():
            sql = "INSERT INTO vectors (id, is_block, vector) VALUES ($1, $2, vec_int8($3))"
            vec0_rows = [(place, int(place & BLOCK != 0), vector) for place, vector in rows]
            self._raw.executemany(sql, vec0_rows)
        else:
            self._raw.executemany("INSERT INTO vectors (id, vector) VALUES ($1, $2)", rows)

    def _is_vec0(self) -> bool:
        """Return whether the vectors are in a `vec0` table."""
        return "vectors_chunks" in self._tables()

    def remove(self, places: Sequence[int]) -> None:
        """Remove the vectors of some places. Places without a vector are ignored."""
        if places and self._tables():
            # One statement per id: for a list of ids, a `vec0` table would read all of its rows.
            sql = "DELETE FROM vectors WHERE id = $1"
            self._raw.executemany(sql, [(place,) for place in places])

    def read(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return vectors by place. Places without a vector are absent."""
        if not places or not self._tables():
            return {}
        sql = "SELECT v.id, v.vector FROM carray($1) p CROSS JOIN vectors v ON v.id = p.value"
        return dict(self._raw.execute(sql, (apsw.carray(array("q", places)),)))

    def read_notes(self, note_ids: Iterable[int], *, blocks: bool) -> list[tuple[int, bytes]]:
        """Return (place, vector) of the passages of some notes, or of their blocks, by place.

        Notes without vectors are absent.
        """
        ids = array("q", note_ids)
        if not ids or not self._tables():
            return []
        first, after = _number_range(blocks=blocks)
        is_vec0 = self._is_vec0()
        sql = _SELECT_OFFSETS if is_vec0 else _SELECT_NOTES
        statement = sql.format(shift=SHIFT, first=first, after=after)
        rows: Any = self._raw.execute(statement, (apsw.carray(ids),)).fetchall()
        return self._read_from_chunks(rows) if is_vec0 else list(rows)

    def _read_from_chunks(self, rows: Iterable[tuple[int, int, int]]) -> list[tuple[int, bytes]]:
        """Return (place, vector) for rows of (place, chunk, offset in the chunk), in their order.

        Of each run of rows in one chunk, the vectors are read at once, with those between them. The
        vectors of a note are usually side by side, and this takes a tenth of the time that `vec0`
        takes to look up each of them.
        """
        vectors: list[tuple[int, bytes]] = []
        for chunk_id, rows_of_chunk in groupby(rows, key=itemgetter(1)):
            places_and_offsets = [(place, offset) for place, _, offset in rows_of_chunk]
            first_offset = min(offset for _, offset in places_and_offsets)
            last_offset = max(offset for _, offset in places_and_offsets)

            chunk = self._raw.blob_open("main", _CHUNK_TABLE, "vectors", chunk_id, False)
            with closing(chunk):
                width = chunk.length() // _CHUNK_SIZE
                chunk.seek(first_offset * width)
                packed = chunk.read((last_offset + 1 - first_offset) * width)

            for place, offset in places_and_offsets:
                start = (offset - first_offset) * width
                vectors.append((place, packed[start : start + width]))
        return vectors

    def read_all(self, *, blocks: bool) -> tuple[array[int], bytearray]:
        """Return the places of all passages (or blocks) that have a vector, and the packed vectors.

        Raises Damaged if a chunk of a `vec0` table has the wrong size.
        """
        tables = self._tables()
        if "vectors_chunks" in tables:
            return self._read_all_chunks(blocks=blocks)

        places, vectors = array("q"), bytearray()
        if tables:
            sql = f"SELECT id, vector FROM vectors WHERE (id & {BLOCK}) = $1 ORDER BY id"
            for place, vector in self._raw.execute(sql, (BLOCK if blocks else 0,)):
                places.append(place)
                vectors += vector
        return places, vectors

    def _read_all_chunks(self, *, blocks: bool) -> tuple[array[int], bytearray]:
        """Return what `read_all` does, from a `vec0` table. Raises Damaged for a wrong chunk."""
        places = array("q")
        # The buffer gets its full size at once: one that grows would leave as much memory unused.
        max_size = self._raw.execute(_SELECT_CHUNK_BYTES, (int(blocks),)).get or 0
        vectors = bytearray(max_size)
        size = 0
        for validity, rowids, vectors_of_chunk in self._raw.execute(_SELECT_CHUNKS, (int(blocks),)):
            used_places, used_vectors = _unpack_chunk(validity, rowids, vectors_of_chunk)
            places.frombytes(used_places)
            vectors[size : size + len(used_vectors)] = used_vectors
            size += len(used_vectors)
        del vectors[size:]
        return places, vectors

    def count(self) -> int:
        """Return how many vectors there are, of passages and blocks together."""
        if not self._tables():
            return 0
        table = "vectors_rowids" if self._is_vec0() else "vectors"
        return int(self._raw.execute(f"SELECT count(*) FROM {table}").get)

    @property
    def is_indexed(self) -> bool:
        """False: a `vec0` table compares all vectors, as a process does in memory."""
        return False

    def nearest_notes(
        self,
        _query: bytes,
        _note_ids: Sequence[int] | None,
        _limit: int,
    ) -> list[int] | None:
        """Return None, so that the caller compares all vectors in memory.

        A `vec0` table takes five times as long for 50,000 vectors, even if they are read for one
        query only (bench/vectors.py).
        """
        return None


def _number_range(*, blocks: bool) -> tuple[int, int]:
    """Return which numbers the passages (or blocks) of any note can have: the first, the end.

    The numbers are those in ids of places (`index/places.py`). The end is one above the last.
    """
    return (BLOCK, 1 << SHIFT) if blocks else (0, BLOCK)


def _unpack_chunk(validity: bytes, rowids: bytes, vectors: bytes) -> tuple[bytes, bytes]:
    """Return the ids (8 bytes each) and packed vectors of the rows of a chunk that are in use.

    The arguments are the columns of the chunk in a `vec0` table: a bit, 8 bytes and a vector per
    row. Raises Damaged if they are empty or not of the same number of rows.
    """
    import numpy as np  # not at the start

    is_used = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)
    row_count = len(is_used)
    if not row_count or len(rowids) != 8 * row_count or len(vectors) % row_count:
        raise Damaged("a chunk of vectors has the wrong size")
    if is_used.all():
        return rowids, vectors

    ids = np.frombuffer(rowids, np.int64)
    vector_rows = np.frombuffer(vectors, np.uint8).reshape(row_count, -1)
    return ids[is_used].tobytes(), vector_rows[is_used].tobytes()


# -- connections

DIALECT = Dialect(
    membership="{column} IN (SELECT value FROM carray({mark}))",
    list_table="carray({mark}) AS {alias}",
    # CROSS JOIN makes SQLite walk the list, and look up the table for each of its values.
    rows_of_each="{outer} CROSS JOIN {name} AS {alias} WHERE {condition}",
    integer_type="",
    text_type="",
    column_types={
        "text": "TEXT",
        "integer": "INTEGER",
        "bytes": "BLOB",
        "numbered_key": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "by_key": " WITHOUT ROWID",
        "long_text": "",
    },
)
LOG_SUFFIXES = ("-wal", "-shm")
BUSY_MS = 15_000

_SETTINGS = (
    "synchronous = NORMAL",
    "wal_autocheckpoint = 0",  # `checkpoint_log` empties the log, under the vault's lock
    "temp_store = MEMORY",
    "cache_size = -16000",
)

# If one of these operations fails, the disk or the system refused it, and the file may be sound.
# Any other I/O error, such as one of reading, means that the file is damaged.
_REFUSED_OPERATIONS = (
    "WRITE FSYNC DIR_FSYNC TRUNCATE LOCK RDLOCK UNLOCK NOMEM SHMOPEN SHMSIZE SHMLOCK SHMMAP"
)
_REFUSALS = {getattr(apsw, f"SQLITE_IOERR_{name}") for name in _REFUSED_OPERATIONS.split()}


def is_beside_notes(path: Path) -> bool:
    """Return whether a path is directly in a folder `.simplemem`, so in a vault.

    Judges by the path alone; neither of them needs to exist.
    """
    return path.parent.name == ".simplemem"


class SqliteConnection:
    """A connection to one index file; methods as in `Connection`.

    Only for the thread that opened it.
    """

    dialect = DIALECT

    def __init__(self, raw: apsw.Connection) -> None:
        self.raw = raw
        self.vectors = SqliteVectors(raw, has_extension=load_extension(raw))

    @property
    def in_transaction(self) -> bool:
        """Whether a snapshot or a transaction is open."""
        return self.raw.in_transaction

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement, with the values of `$1`, `$2`, …, and return its rows.

        One that changes something is complete once its rows were fetched. Raises SQLite's own
        errors.
        """
        return cast("Cursor", self.raw.execute(statement, [_bound(value) for value in values]))

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement once per row of values, which contain no lists.

        Raises SQLite's own errors.
        """
        self.raw.executemany(statement, rows)

    def state(self) -> object:
        """Return a token that differs once anybody has written: another connection, or this one."""
        return int(self.raw.execute("PRAGMA data_version").get), self.raw.total_changes()

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


def _bound(value: Value) -> object:
    """Return a value as SQLite takes it: lists become arrays for `carray`, other values stay.

    An empty list becomes an array of -1, which equals no id and no text.
    """
    if not isinstance(value, (IntegerList, TextList)):
        return value
    if not value.values:
        # `carray` takes no empty array. No id is negative, and no text equals a number.
        return apsw.carray(array("q", (-1,)))
    return apsw.carray(value.values)


def connect(path: Path) -> SqliteConnection:
    """Open a connection with the settings that all have. Makes an empty file if there is none.

    Raises SQLite's own errors (see `translating_errors`), and Unavailable if the file, one of its
    logs or its folder `.simplemem` is a link or a pipe: SQLite would write through it, anywhere, or
    wait for its other end.
    """
    _refuse_links(path)
    raw = apsw.Connection(str(path))
    raw.set_busy_timeout(BUSY_MS)
    for setting in _SETTINGS:
        raw.execute(f"PRAGMA {setting}").fetchall()
    # SQLite keeps the log when the last connection closes. Otherwise a process that closes a
    # replaced index would remove the log of the new one, because both logs have the same name.
    keeps_log = ctypes.c_int(1)
    raw.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keeps_log))
    return SqliteConnection(raw)


def _refuse_links(path: Path) -> None:
    """Raise Unavailable if the file, one of its logs, or its `.simplemem` is a link or a pipe."""
    folders = [path.parent] if is_beside_notes(path) else []
    files = [Path(f"{path}{suffix}") for suffix in ("", *LOG_SUFFIXES, "-journal")]
    for file in (*folders, *files):
        if file.is_symlink() or file.is_fifo():
            raise Unavailable(
                f"{file} is a link or a pipe, which simplemem does not write through",
                hint="Remove it, or choose another place for the index with --db.",
            )


@contextmanager
def translating_errors() -> Iterator[None]:
    """Raise ours in place of SQLite's errors that a `with` block raises.

    A busy index, a full disk, refused writes and a file that cannot be opened become Unavailable. A
    file that cannot be read or lacks tables becomes Damaged, and every other error of SQLite
    StatementFailed. Exceptions that are not SQLite's pass.
    """
    try:
        yield
    except apsw.Error as error:
        raise _as_our_error(error) from error


def _as_our_error(error: apsw.Error) -> Exception:
    """Return the error to raise for one of SQLite's; see `translating_errors`."""
    if isinstance(error, apsw.BusyError):
        return Unavailable("the index is busy", hint="Another process is writing to it. Try again.")
    if isinstance(error, apsw.FullError):
        return Unavailable(
            "the index could not be written: the disk is full",
            hint="Free some space and try again. The notes are safe.",
        )
    if getattr(error, "extendedresult", 0) in _REFUSALS:
        return Unavailable(
            f"the index could not be written: the disk refuses writes ({error})",
            hint="Check the disk, then try again. The notes are safe.",
        )
    if isinstance(error, apsw.CantOpenError):
        return Unavailable(
            f"the index cannot be opened ({error})",
            hint="Check that its folder is readable and that not too many files are open.",
        )
    # A file that was emptied has none of our tables.
    lacks_tables = isinstance(error, apsw.SQLError) and "no such" in str(error)
    if lacks_tables or isinstance(error, (apsw.IOError, apsw.CorruptError, apsw.NotADBError)):
        return Damaged(str(error))
    return StatementFailed(str(error))


# -- the file

SCHEMA_VERSION = 22
APPLICATION_ID = 0x736D656D  # "smem"
_SQLITE_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_OFFSET = 68  # in the header of an SQLite file
_TABLES = {"meta", "notes", "segments"}  # enough to recognise our schema

IndexFile = Literal["ours", "none", "newer", "foreign"]
"""What is at the path of an index.

If it is "none", an index may be made there. "newer" is an index of a later simplemem, and "foreign"
a file of another program; both are left alone.
"""


def create_file(path: Path) -> None:
    """Make the tables of an empty index in a file that does not exist or is empty.

    Raises what `connect` raises, and SQLite's own errors.
    """
    with closing(connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        with db.raw:
            db.execute(db.dialect.schema()).fetchall()
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}").fetchall()


def remove_file(path: Path, suffixes: Sequence[str] = ("", *LOG_SUFFIXES)) -> None:
    """Remove an index with its logs, or only what `suffixes` name. Missing files are ignored."""
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def identify_file(path: Path) -> IndexFile:
    """Return what is at a path: an index of ours, of a newer simplemem, a foreign file, or "none".

    A damaged or outdated index of ours counts as "none", so that it is made anew. A file that
    cannot be recognised counts as a damaged index only if it begins with our mark or is in a folder
    `.simplemem`, where no other program puts files. Raises Unavailable if it cannot be opened, is
    busy, or is a link or a pipe.
    """
    if not path.exists() or path.stat().st_size == 0:
        return "none"
    may_be_ours = _has_our_mark(path) or is_beside_notes(path)
    unrecognised: IndexFile = "none" if may_be_ours else "foreign"
    try:
        marks = _read_marks(path)
    except Damaged:
        return unrecognised

    if marks.is_empty:
        return "none"
    if marks.application_id != APPLICATION_ID:
        return unrecognised
    if marks.version > SCHEMA_VERSION:
        return "newer"
    return "ours" if marks.is_usable else "none"


class _Marks(NamedTuple):
    """What tells whose file an SQLite file is."""

    application_id: int
    version: int
    tables: set[str]

    @property
    def is_empty(self) -> bool:
        """Whether no program has put anything into the file."""
        return self.application_id == 0 and self.version == 0 and not self.tables

    @property
    def is_usable(self) -> bool:
        """Whether this version of simplemem can use the tables of an index of ours as they are.

        False if they have vectors of sqlite-vec and it is not installed.
        """
        if self.version != SCHEMA_VERSION or not self.tables >= _TABLES:
            return False
        # An interpreter without sqlite-vec cannot read its table, and builds an index without it.
        return "vectors_chunks" not in self.tables or has_vector_extension()


def _read_marks(path: Path) -> _Marks:
    """Read the marks of an SQLite file. Raises Damaged if it cannot be read as one.

    Raises Unavailable if it cannot be opened or is busy.
    """
    with translating_errors(), closing(connect(path)) as db:
        application_id = db.execute("PRAGMA application_id").get
        version = db.execute("PRAGMA user_version").get
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    return _Marks(application_id, version, tables)


def _has_our_mark(path: Path) -> bool:
    """Return whether a file begins as an index of ours does, even if SQLite cannot open it.

    False if it cannot be read.
    """
    header = b""
    with suppress(OSError), path.open("rb") as file:
        header = file.read(_APPLICATION_ID_OFFSET + 4)
    mark = APPLICATION_ID.to_bytes(4, "big")
    return header.startswith(_SQLITE_MAGIC) and header[_APPLICATION_ID_OFFSET:] == mark


# -- the engine

T = TypeVar("T")
VaultLock = Callable[[], AbstractContextManager[None]]
_FileIdentity = tuple[int, int]  # device and inode

_MAX_LOG_BYTES = 8 * 1024 * 1024
_MAX_LOG_BYTES_IN_BULK = 128 * 1024 * 1024  # a page that was written often is moved only once
# How long a checkpoint waits for readers, with the vault's lock held. Most queries end within this
# time; for a longer one, the log stays as it is.
_CHECKPOINT_MS = 200


def open_engine(path: Path, lock: VaultLock) -> SqliteEngine:
    """Open the index at `path`, or beside it if that is the index of a newer simplemem.

    Makes the index if there is none, or replaces one that is damaged or outdated. `lock` returns a
    context that holds the vault's kernel lock. Raises Unavailable if the index cannot be made, or
    if the file belongs to another program.
    """
    return SqliteEngine(path, lock)


class SqliteEngine:
    """The index of one vault in one file; methods as in `Engine`.

    Guards one connection per thread. `lock` opens the vault's kernel lock, under which the file is
    made and replaced and its log is emptied. `path` changes if a newer simplemem puts its index
    there: it is left alone, and ours is made beside it.
    """

    def __init__(self, path: Path, lock: VaultLock) -> None:
        self.path = path
        self.place = str(path)
        self.engine = f"SQLite {apsw.sqlite_lib_version()}"
        self.generation = -1  # 0 once `_adopt_file` has found or made the file
        self._lock = lock
        # Each with the generation in which it was opened.
        self._connections: dict[threading.Thread, tuple[int, SqliteConnection]] = {}
        self._guard = threading.Lock()  # of the connections, the identity and the generation
        self._writing = threading.Lock()  # of the thread that writes
        self._next_to_write = threading.Lock()  # of the thread that waits for `_writing`
        self._identity: _FileIdentity | None = None
        self._adopt_file()

    @property
    def vector_storage(self) -> str:
        """How vectors are stored: in a table of sqlite-vec, or as bytes where it has no build."""
        return describe_storage()

    # -- the file

    def _adopt_file(self, bad: _FileIdentity | None = None) -> None:
        """Use the file that is at the path now, after making it if necessary.

        It is made if there is none, if it is damaged, or if it is still the `bad` one. `generation`
        grows if it is another file than before, or if `bad` is given. Raises Unavailable if the
        file cannot be made or is foreign.
        """
        # The guard is not held meanwhile: a thread that holds the vault's lock may wait for it.
        try:
            # Only the folder `.simplemem` is made, not the folder of a vault that was removed.
            self.path.parent.mkdir(parents=not is_beside_notes(self.path), exist_ok=True)
            if not self._is_usable(bad):
                with self._lock(), translating_errors():
                    # Another server that started at the same moment may have made it.
                    is_made_meanwhile = self._is_usable(bad)
                    if not is_made_meanwhile:
                        remove_file(self.path)
                        create_file(self.path)
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
        """Return whether a sound index of ours is there that is not the `bad` one.

        Raises Unavailable for a file of another program.
        """
        owner = self._identify_own_file()
        if owner == "foreign":
            raise Unavailable(
                f"{self.path} belongs to another program",
                hint="Choose another place with --db. "
                "simplemem never changes a file of another program.",
            )
        return owner == "ours" and (bad is None or self._identity_on_disk() != bad)

    def _identify_own_file(self) -> IndexFile:
        """Return what `identify_file` does, but never "newer".

        If the index at the path is of a newer simplemem, a path beside it is used from now on.
        """
        owner = identify_file(self.path)
        if owner != "newer":
            return owner
        name = f"{self.path.stem}-v{SCHEMA_VERSION}{self.path.suffix}"
        self.path = self.path.with_name(name)
        self.place = str(self.path)
        return identify_file(self.path)

    def _identity_on_disk(self) -> _FileIdentity | None:
        """Return device and inode of the file that is at the path now; None if there is none."""
        with suppress(OSError):
            status = os.stat(self.path)
            return status.st_dev, status.st_ino
        return None

    def discard(self) -> None:
        """Replace this index by an empty one, unless somebody else just did.

        `generation` grows in both cases. Raises Unavailable if the file cannot be made.
        """
        self._adopt_file(self._identity)
        self.connection()  # closes this thread's connection to the old file

    def build_replacement(self) -> SqliteEngine:
        """Return an empty index in a file beside this one, which no other process opens.

        Removes such files of processes that have ended.
        """
        prefix = f"{self.path.name}.new-"
        for file in self.path.parent.glob(f"{prefix}*"):
            process_id = file.name.removeprefix(prefix).partition("-")[0]
            if not (process_id.isdecimal() and is_alive(int(process_id))):
                file.unlink(missing_ok=True)

        name = f"{prefix}{os.getpid()}-{uuid.uuid4().hex[:8]}"
        return SqliteEngine(self.path.with_name(name), self._lock)

    def swap_in(self, fresh: Engine) -> None:
        """Replace this file by that of an index from `build_replacement`, under the vault's lock.

        Other threads and processes notice that the file is another. `fresh` must be closed. Not
        within a snapshot or transaction.
        """
        with self._lock():
            with self._guard:
                current = self._connections.pop(threading.current_thread(), None)
            if current is not None:
                _, connection = current
                connection.close()

            with closing(connect(fresh.path)) as db:
                # Leaving WAL mode moves the log into the file, so that all of the index is in one
                # file.
                db.execute("PRAGMA journal_mode = DELETE").fetchall()
                db.execute("PRAGMA journal_mode = WAL").fetchall()

            remove_file(self.path, LOG_SUFFIXES)
            os.replace(fresh.path, self.path)
            remove_file(fresh.path, LOG_SUFFIXES)
        self.connection()

    def drop(self) -> None:
        """Close every connection, and delete the file with its logs."""
        self.close()
        remove_file(self.path)

    def size(self) -> int:
        """Return the bytes on disk of the file, its logs and replacements beside it."""
        size = 0
        for file in self.path.parent.glob(f"{self.path.name}*"):
            with suppress(FileNotFoundError):  # a replacement may be swapped in meanwhile
                size += file.stat().st_size
        return size

    # -- connections

    def connection(self) -> SqliteConnection:
        """Return this thread's connection to the file that is at the path now, opened if necessary.

        If that is another file, `generation` grows. Within a snapshot or a transaction, the
        connection stays on the file on which it began. Raises Unavailable or Damaged.
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
        """Close the old connection of a thread, and those of ended threads.

        Called with the guard held.
        """
        for owner in list(self._connections):
            if owner is thread or not owner.is_alive():
                _, connection = self._connections.pop(owner)
                connection.close()

    def refresh(self) -> None:
        """Notice whether another file took the place of the index. Then `generation` has grown."""
        self.connection()

    def close(self) -> None:
        """Close every connection. No other thread may be using them."""
        with self._guard:
            for _, connection in self._connections.values():
                connection.close()
            self._connections.clear()

    # -- reading and writing

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[DatabaseRow]:
        """Return the rows of one statement, with the values of `$1`, `$2`, ….

        Within a transaction of this thread, it sees its writes.
        """
        with translating_errors():
            return self.connection().execute(statement, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        """Open a snapshot for a `with` block; within another one of this thread, yield that one."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        with self._transaction(connection, "BEGIN"):
            yield connection

    def answer(self, ask: Callable[[SqliteConnection], T]) -> T:
        """Call `ask` once, in one snapshot, and return what it returns."""
        with self.reading() as db:
            return ask(db)

    @contextmanager
    def writing(self, generation: int | None = None) -> Iterator[SqliteConnection]:
        """Open a transaction for a `with` block, which commits it; an exception rolls it back.

        Within a transaction of this thread, it yields that one, and only the outermost commits. A
        thread that writes much lets others go first. Raises Replaced if the index is no longer the
        one of `generation` (None: any), and Unavailable if another process writes for over 15 s.
        """
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return

        # Two locks, so that a thread that has just written cannot begin again before the one that
        # waits.
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
        """Run a `with` block between `begin` and COMMIT; roll back if it raises.

        Translates the errors of SQLite.
        """
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
        """Return a value about the index itself, from the table `meta`; None without such a key."""
        rows = self.rows("SELECT value FROM meta WHERE key = $1", (key,))
        return str(rows[0][0]) if rows else None

    def set_meta(self, key: str, value: str) -> None:
        """Store a fact about the index itself in the table `meta`, in a transaction."""
        with self.writing() as db:
            db.execute(SET_META, (key, value)).fetchall()

    # -- upkeep

    def begin_bulk_load(self) -> None:
        """Do nothing: SQLite needs no preparation for many notes."""

    def merge_segments_at_rest(self, generation: int | None = None) -> None:
        """Merge segments of the term index, also a few large ones, if they make queries slow.

        Called at the end of a scan. Does nothing if no merge is due. Raises Replaced as
        `writing(generation)` does. Not within a transaction.
        """
        self._merge(generation, is_at_rest=True)

    def checkpoint(self, *, is_bulk: bool = False) -> None:
        """Merge segments of the term index, and empty the write-ahead log if it has grown.

        If `is_bulk`, both wait until there are more notes to merge and the log is larger. The log
        is moved into the file under the vault's lock; see `checkpoint_log`. Raises Unavailable if
        another process holds that lock for long. Not within a transaction.
        """
        max_packed = MAX_PACKED_NOTES
        max_log_bytes = _MAX_LOG_BYTES
        if is_bulk:
            max_packed = MAX_PACKED_NOTES_DURING_IMPORT
            max_log_bytes = _MAX_LOG_BYTES_IN_BULK

        self._merge(max_packed=max_packed)
        self.checkpoint_log(max_log_bytes)

    def _merge(
        self,
        generation: int | None = None,
        max_packed: int = MAX_PACKED_NOTES,
        *,
        is_at_rest: bool = False,
    ) -> None:
        """Merge segments of the term index, if `is_merge_due(max_packed, is_at_rest)` says so.

        Raises Replaced if the index is no longer the one of `generation` (None: any).
        """
        if is_merge_due(self, max_packed, is_at_rest=is_at_rest):
            from simplemem.index.terms.merging import merge_segments  # imports numpy

            merge_segments(self, generation, max_packed, is_at_rest=is_at_rest)

    def checkpoint_log(self, min_bytes: int = 0) -> None:
        """Move the write-ahead log into the file and empty it, if it has `min_bytes` or more.

        Takes the vault's lock. Waits for readers for at most a fifth of a second; if one reads for
        longer, the log stays as it is. Does nothing without a log. Raises Unavailable if another
        process holds the lock for long. Not within a transaction.
        """
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

        Empty if all is well. The term index is checked only if SQLite finds nothing. Repairs
        nothing. Reads the whole file: SQLite's quick check takes nearly as long, and does not
        compare indexes with their tables.
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
        """Return the lead of this index, a lock of this machine. Takes no lead yet."""
        return FileLock(str(self.path.parent), f"{self.path.stem}.leader")
