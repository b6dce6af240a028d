"""One thread's connection to an index file, and SQLite's errors as ours."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import apsw

from simplemem.errors import Unavailable
from simplemem.index.engine import (
    Cursor,
    Damaged,
    Dialect,
    IntegerList,
    StatementFailed,
    TextList,
    Value,
)
from simplemem.index.sqlite.vectors import SqliteVectors, load_extension

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
    "wal_autocheckpoint = 0",  # the log is folded in under the vault's lock
    "temp_store = MEMORY",
    "cache_size = -16000",
)

# If the disk refuses one of these, that says nothing about the file. It is damaged only if it cannot be
# read.
_REFUSED_OPERATIONS = (
    "WRITE FSYNC DIR_FSYNC TRUNCATE LOCK RDLOCK UNLOCK NOMEM SHMOPEN SHMSIZE SHMLOCK SHMMAP"
)
_REFUSALS = {getattr(apsw, f"SQLITE_IOERR_{name}") for name in _REFUSED_OPERATIONS.split()}


def is_beside_notes(path: Path) -> bool:
    """Return whether a path is in simplemem's own folder of a vault."""
    return path.parent.name == ".simplemem"


class SqliteConnection:
    """A connection to one index file. It is used by the thread that opened it."""

    dialect = DIALECT

    def __init__(self, raw: apsw.Connection) -> None:
        self.raw = raw
        self.vectors = SqliteVectors(raw, has_extension=load_extension(raw))

    @property
    def in_transaction(self) -> bool:
        """Whether a snapshot or a transaction is open."""
        return self.raw.in_transaction

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement."""
        return cast("Cursor", self.raw.execute(statement, [_bound(value) for value in values]))

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement for each of some rows of values, which hold no lists."""
        self.raw.executemany(statement, rows)

    def state(self) -> object:
        """Return what changes whenever anybody writes: other connections, or this one."""
        return int(self.raw.execute("PRAGMA data_version").get), self.raw.total_changes()

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


def _bound(value: Value) -> object:
    """Return a value as SQLite takes it."""
    if isinstance(value, IntegerList):
        # `carray` takes no empty array, and no id is negative.
        return apsw.carray(value.values or array("q", (-1,)))
    if isinstance(value, TextList):
        return apsw.carray(value.values) if value.values else apsw.carray(array("q", (-1,)))
    return value


def connect(path: Path) -> SqliteConnection:
    """Open a connection with the settings that all of them have.

    Raises Unavailable if the file or one of its logs is a link or a pipe: SQLite would write through
    it, anywhere, or wait for its other end.
    """
    _refuse_links(path)
    raw = apsw.Connection(str(path))
    raw.set_busy_timeout(BUSY_MS)
    for setting in _SETTINGS:
        raw.execute(f"PRAGMA {setting}").fetchall()
    # A process that still has a replaced index open would otherwise, when it closes it, remove the log
    # of the new one, because both have the same name.
    is_kept = ctypes.c_int(1)
    raw.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(is_kept))
    return SqliteConnection(raw)


def _refuse_links(path: Path) -> None:
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
    """Turn SQLite's errors into ours.

    A busy index and a lack of room are Unavailable, a file that cannot be read is Damaged, and what is
    left is StatementFailed.
    """
    try:
        yield
    except apsw.Error as error:
        raise _as_our_error(error) from error


def _as_our_error(error: apsw.Error) -> Exception:
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
