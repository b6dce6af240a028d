"""The file of an index by itself: whose it is, whether it is one of ours, and how a connection to it is made.

Nothing is written through a link, and no file is touched that bears another program's mark.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from simplemem.errors import Unavailable
from simplemem.vault.disk import is_alive

SCHEMA_VERSION = 7
APPLICATION_ID = 0x736D656D  # "smem"
BUSY_MS = 15_000
_TABLES = {"meta", "notes", "note_text"}  # enough to know our shape by
_SCHEMA = Path(__file__).with_name("schema.sql")
_LOGS = ("-wal", "-shm")
_OWN_ENDS = ("", *_LOGS, "-journal")


class Damaged(Exception):
    """The file is not a usable index. `Database.discard` and a rebuild are the way out."""


class Replaced(Exception):
    """Another file took the place of the index in the middle of something that stands on the old one. Begin again."""


# -- whose it is


class _Marks(NamedTuple):
    """What tells whose file it is."""

    application: int
    version: int
    tables: set[str]

    @property
    def are_ours(self) -> bool:
        return (self.application, self.version) == (APPLICATION_ID, SCHEMA_VERSION) and self.tables >= _TABLES


def is_ready(path: Path) -> bool:
    """Whether an index of ours lies there. False where nothing does; Damaged, or a refusal, where something else does."""
    try:
        if path.stat().st_size == 0:
            return False
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot_be_made(path, error.strerror or str(error)) from error
    try:
        marks = _marks(path)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Damaged(str(error)) from error
    if marks == (0, 0, set()):
        return False
    if marks.application != APPLICATION_ID and not is_beside_notes(path):  # nobody else puts files there
        raise not_ours(path)
    if not marks.are_ours:
        raise Damaged(f"it is no index of version {SCHEMA_VERSION}")
    return True


def is_sound(path: Path) -> bool:
    """Whether an index of our version can be opened and has our tables."""
    try:
        return _marks(path).are_ours
    except apsw.Error:
        return False


def is_newer(path: Path) -> bool:
    """Whether an index of a later version than ours lies there."""
    try:
        marks = _marks(path) if path.exists() else _Marks(0, 0, set())
    except apsw.Error:
        return False
    return marks.application == APPLICATION_ID and marks.version > SCHEMA_VERSION


def may_be_replaced(path: Path) -> bool:
    """Whether a file that is no usable index may be removed: where nobody else puts files, or one that was ours."""
    return is_beside_notes(path) or bears_mark(path, APPLICATION_ID)


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


def _marks(path: Path) -> _Marks:
    with connected(path) as connection:
        mark, version = (connection.execute(f"PRAGMA {name}").get for name in ("application_id", "user_version"))
        tables = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        return _Marks(mark, version, tables)


def cannot_be_made(path: Path, why: str) -> Unavailable:
    return Unavailable(f"the index {path} cannot be made: {why}", hint="Is its folder writable, and the disk not full?")


def not_ours(path: Path) -> Unavailable:
    hint = "Choose another place with --db; simplemem never touches a file that is not its own."
    return Unavailable(f"{path} belongs to another program", hint=hint)


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


def fold_log(path: Path) -> None:
    """Fold the log of a file that is to take another's place into it, so that the file is all there is."""
    with connected(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()  # folds its log in; WAL again below
        connection.execute("PRAGMA journal_mode = WAL").fetchall()


def remove(path: Path) -> None:
    """Remove an index with its logs."""
    path.unlink(missing_ok=True)
    remove_logs(path)


def remove_logs(path: Path) -> None:
    for end in _LOGS:
        Path(f"{path}{end}").unlink(missing_ok=True)


# -- connections


def link_among(path: Path) -> Path | None:
    """A link that lies where the index or a file of its own should be: SQLite would write through it, anywhere."""
    ours = [path.parent] if is_beside_notes(path) else []
    return next((each for each in (*ours, *(Path(f"{path}{end}") for end in _OWN_ENDS)) if each.is_symlink()), None)


def connect(path: Path) -> apsw.Connection:
    """A connection as all of ours are. Nothing is folded into the file by itself: that is done under the vault's lock."""
    if (link := link_among(path)) is not None:
        hint = "Remove the link. Another place for the index is chosen with --db."
        raise Unavailable(f"{link} is a link, and simplemem writes nothing through a link", hint=hint)
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MS)
    connection.execute("PRAGMA synchronous = NORMAL").fetchall()
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    connection.execute("PRAGMA temp_store = MEMORY").fetchall()
    connection.execute("PRAGMA cache_size = -16000").fetchall()
    _keep_log(connection)
    return connection


@contextmanager
def connected(path: Path) -> Iterator[apsw.Connection]:
    """A connection that is closed in the end."""
    connection = connect(path)
    try:
        yield connection
    finally:
        connection.close()


def _keep_log(connection: apsw.Connection) -> None:
    """Leave the write-ahead log in its place on closing. A process that still holds a replaced index would otherwise
    remove, by name, the log of the new one."""
    on = ctypes.c_int(1)
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(on))


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
