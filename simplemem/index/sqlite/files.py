"""The file of an index: making it, telling whose it is, and removing it with its logs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

from simplemem.index.engine import Damaged
from simplemem.index.sqlite.connection import (
    LOG_SUFFIXES,
    connect,
    is_beside_notes,
    translating_errors,
)
from simplemem.index.sqlite.vectors import has_vector_extension

SCHEMA_VERSION = 20
APPLICATION_ID = 0x736D656D  # "smem"
_SQLITE_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID_OFFSET = 68  # in the header of an SQLite file
_TABLES = {"meta", "notes", "segments"}  # enough to recognise our schema

IndexFile = Literal["ours", "none", "newer", "foreign"]
"""What is at the place of an index.

For "none" an index can be made there; "newer" (of a later simplemem) and "foreign" are left alone.
"""


def create(path: Path) -> None:
    """Make an empty index."""
    with closing(connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        with db.raw:
            db.execute(db.dialect.schema()).fetchall()
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}").fetchall()


def remove(path: Path, suffixes: Sequence[str] = ("", *LOG_SUFFIXES)) -> None:
    """Remove an index with its logs, or only what `suffixes` name."""
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def identify(path: Path) -> IndexFile:
    """Return whose file is at a path.

    A file without our mark is a damaged index of ours only in a folder where nobody else puts files.
    """
    if not path.exists() or path.stat().st_size == 0:
        return "none"
    is_replaceable = _has_our_mark(path) or is_beside_notes(path)
    if_unreadable: IndexFile = "none" if is_replaceable else "foreign"
    try:
        with translating_errors(), closing(connect(path)) as db:
            application_id = db.execute("PRAGMA application_id").get
            version = db.execute("PRAGMA user_version").get
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    except Damaged:
        return if_unreadable

    if application_id != APPLICATION_ID:
        is_empty = application_id == 0 and version == 0 and not tables
        return "none" if is_empty else if_unreadable
    if version > SCHEMA_VERSION:
        return "newer"
    # An interpreter without sqlite-vec cannot read its table, and builds an index without it.
    is_readable = "vectors_chunks" not in tables or has_vector_extension()
    is_current = version == SCHEMA_VERSION and tables >= _TABLES
    return "ours" if is_current and is_readable else "none"


def _has_our_mark(path: Path) -> bool:
    """Return whether a file begins as an index of ours does, even if SQLite cannot open it."""
    header = b""
    with suppress(OSError), path.open("rb") as file:
        header = file.read(_APPLICATION_ID_OFFSET + 4)
    mark = APPLICATION_ID.to_bytes(4, "big")
    return header.startswith(_SQLITE_MAGIC) and header[_APPLICATION_ID_OFFSET:] == mark
