"""The file of an index by itself: whose it is, how a connection to it is made, and what SQLite's failures mean.

Nothing is written through a link, and no file is touched that bears another program's mark.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import apsw

from simplemem.errors import Unavailable
from simplemem.vault.disk import is_alive

SCHEMA_VERSION = 7
APPLICATION_ID = 0x736D656D  # "smem"
BUSY_MS = 15_000
_TABLES = {"meta", "notes", "note_text"}  # enough to know our shape by
_SCHEMA = Path(__file__).with_name("schema.sql")
_LOGS = ("-wal", "-shm")

Found = Literal["nothing", "ours", "damaged", "newer", "foreign"]
"""What lies where the index should be: "damaged" is ours to make anew, "newer" and "foreign" are left alone."""


class Damaged(Exception):
    """The file is not a usable index. `Database.discard` and a rebuild are the way out."""


class Replaced(Exception):
    """Another file took the place of the index in the middle of something that stands on the old one. Begin again."""


def what_lies_at(path: Path) -> Found:
    """Whose file lies there. Only where nobody else puts files is one without our mark taken for a damaged one of ours."""
    if not path.exists() or path.stat().st_size == 0:
        return "nothing"
    ours_if_broken: Found = "damaged" if is_beside_notes(path) or bears_mark(path, APPLICATION_ID) else "foreign"
    try:
        with errors_as_ours(), connected(path) as db:
            mark, version = (db.execute(f"PRAGMA {name}").get for name in ("application_id", "user_version"))
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    except Damaged:
        return ours_if_broken
    if (mark, version, tables) == (0, 0, set()):
        return "nothing"
    if mark != APPLICATION_ID:
        return ours_if_broken
    if version > SCHEMA_VERSION:
        return "newer"
    return "ours" if version == SCHEMA_VERSION and tables >= _TABLES else "damaged"


def is_beside_notes(path: Path) -> bool:
    """Whether a path is in our own folder of a vault."""
    return path.parent.name == ".simplemem"


def bears_mark(path: Path, application_id: int) -> bool:
    """Whether a file begins as a database of that mark does, however damaged the rest of it is."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head[:16] == b"SQLite format 3\0" and head[68:72] == application_id.to_bytes(4, "big")


# -- making and removing


def create(path: Path) -> None:
    """An empty index."""
    with connected(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        with connection:
            connection.execute(_SCHEMA.read_text(encoding="utf-8")).fetchall()
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}").fetchall()
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}").fetchall()


def beside(path: Path) -> Path:
    """A free name next to `path`. What lies under such a name and is of a process that is no more is cleared away."""
    for left in path.parent.glob(f"{path.name}.new-*"):
        owner = left.name.removeprefix(f"{path.name}.new-").partition("-")[0]
        if not (owner.isdecimal() and is_alive(int(owner))):
            left.unlink(missing_ok=True)
    return path.with_name(f"{path.name}.new-{os.getpid()}-{uuid.uuid4().hex[:8]}")


def put_in_place(fresh: Path, path: Path) -> None:
    """Give a finished index the place of another, all of it in one file."""
    with connected(fresh) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()  # folds its log in
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    remove_logs(path)
    os.replace(fresh, path)
    remove_logs(fresh)


def remove_logs(path: Path) -> None:
    for end in _LOGS:
        Path(f"{path}{end}").unlink(missing_ok=True)


# -- connections


def link_among(path: Path) -> Path | None:
    """A link that lies where the index or a file of its own should be: SQLite would write through it, anywhere."""
    ours = [path.parent] if is_beside_notes(path) else []
    ours += [Path(f"{path}{end}") for end in ("", *_LOGS, "-journal")]
    return next((each for each in ours if each.is_symlink()), None)


def connect(path: Path) -> apsw.Connection:
    """A connection as all of ours are. Nothing is folded into the file by itself: that is done under the vault's lock."""
    if (link := link_among(path)) is not None:
        hint = "Remove the link. Another place for the index is chosen with --db."
        raise Unavailable(f"{link} is a link, and simplemem writes nothing through a link", hint=hint)
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MS)
    for setting in ("synchronous = NORMAL", "wal_autocheckpoint = 0", "temp_store = MEMORY", "cache_size = -16000"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    # A process that still holds a replaced index would otherwise on closing remove, by name, the log of the new one.
    on = ctypes.c_int(1)
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(on))
    return connection


@contextmanager
def connected(path: Path) -> Iterator[apsw.Connection]:
    """A connection that is closed in the end."""
    connection = connect(path)
    try:
        yield connection
    finally:
        connection.close()


def load_sqlite_vec(connection: apsw.Connection) -> bool:
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
    except (apsw.IOError, apsw.FullError) as error:
        full = isinstance(error, apsw.FullError)
        if not full and getattr(error, "extendedresult", 0) not in _NOT_TAKEN:
            raise Damaged(str(error)) from error
        why = "the disk is full" if full else f"the disk does not take what is written ({error})"
        hint = "Free some space; notes are safe without it."
        raise Unavailable(f"{why}; the index could not be written", hint=hint) from error
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
