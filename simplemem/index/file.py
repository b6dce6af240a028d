"""The file of an index by itself: how it is made, put in place and opened. Nothing is written through a link."""

from __future__ import annotations

import ctypes
import os
import uuid
from contextlib import closing
from pathlib import Path

import apsw

from simplemem.errors import Unavailable
from simplemem.vault.lock import is_alive

SCHEMA_VERSION = 12
APPLICATION_ID = 0x736D656D  # "smem"
BUSY_MS = 15_000
TABLES = {"meta", "notes", "note_text"}  # enough to know our shape by
_SCHEMA = Path(__file__).with_name("schema.sql")
_LOGS = ("-wal", "-shm")


class Damaged(Exception):
    """The file is not a usable index. `Database.discard` and a rebuild are the way out."""


class Replaced(Exception):
    """Another file took the place of the index in the middle of something that stands on the old one. Begin again."""


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
    with closing(connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        with db:
            db.execute(_SCHEMA.read_text(encoding="utf-8")).fetchall()
            db.execute(
                f"PRAGMA application_id = {APPLICATION_ID:d}; PRAGMA user_version = {SCHEMA_VERSION:d}"
            ).fetchall()


def beside(path: Path) -> Path:
    """A free name next to `path`. What lies under such a name and is of a process that is no more is cleared away."""
    for left in path.parent.glob(f"{path.name}.new-*"):
        owner = left.name.removeprefix(f"{path.name}.new-").partition("-")[0]
        if not (owner.isdecimal() and is_alive(int(owner))):
            left.unlink(missing_ok=True)
    return path.with_name(f"{path.name}.new-{os.getpid()}-{uuid.uuid4().hex[:8]}")


def put_in_place(fresh: Path, path: Path) -> None:
    """Give a finished index the place of another, all of it in one file."""
    with closing(connect(fresh)) as db:  # leaving WAL folds its log in
        db.execute("PRAGMA journal_mode = DELETE; PRAGMA journal_mode = WAL").fetchall()
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
    """A connection as all of ours are. Nothing is folded into the file by itself: that is done under the vault's
    lock."""
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
