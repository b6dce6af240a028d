"""Conflict copies in the index: which files are one by their name, and of which note that is there.

A copy whose name nobody else gives is left out of recall while its note is there; one with a name that people give as
well ("Chapter 2") only while its text is akin to the note's. The rule looks at both files and at nothing else, so that an
index after any changes equals one made afresh.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import apsw

from simplemem.note.copies import ConflictName, are_akin, conflict_name
from simplemem.note.names import compare_key

Read = Callable[[str], str | None]
"""The text of a note as the vault has it, None when it cannot be read."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that is a conflict copy by its name, and the note it would be a copy of, which is there."""

    path: str
    original: str
    name: ConflictName
    hidden: str | None  # why the index leaves it out of recall; None also for what is no note


def copy_key(path: str) -> str | None:
    """What a file is found under by its original: the original's path, compared."""
    found = conflict_name(path)
    return None if found is None else compare_key(found.original)


def copy_reason(db: apsw.Connection, path: str, text: str, read: Read) -> str | None:
    """Why the note at `path` is left out of recall as a conflict copy, None when it is not."""
    found = conflict_name(path)
    original = None if found is None else original_of(db, path)
    if found is None or original is None:
        return None
    if found.certain:
        return found.reason
    theirs = read(original)
    return found.reason if theirs is not None and are_akin(text, theirs) else None


def original_of(db: apsw.Connection, path: str) -> str | None:
    """The note that a file is a copy of by its name; None when no such file is there."""
    key = copy_key(path)
    if key is None:
        return None
    sql = "SELECT path FROM files WHERE name_key = ? ORDER BY path"
    candidates = (row[0] for row in db.execute(sql, (key.rsplit("/", 1)[-1],)))
    return next((found for found in candidates if compare_key(found) == key and found != path), None)


def copies_of(db: apsw.Connection, originals: Iterable[str]) -> list[str]:
    """The files that are copies of one of these notes, by their names."""
    if db.execute("SELECT 1 FROM files WHERE copy_of IS NOT NULL LIMIT 1").fetchone() is None:
        return []
    keys = sorted({compare_key(path) for path in originals})
    sql = "SELECT path FROM files WHERE copy_of IN (SELECT value FROM json_each(?)) ORDER BY path"
    return [row[0] for row in db.execute(sql, (json.dumps(keys),))]


def all_copies(db: apsw.Connection) -> list[Copy]:
    """Every file that is a conflict copy by its name of a note that is there."""
    sql = """SELECT f.path, n.hidden FROM files f LEFT JOIN notes n ON n.path = f.path
             WHERE f.copy_of IS NOT NULL ORDER BY f.path"""
    found = []
    rows: list[tuple[Any, ...]] = db.execute(sql).fetchall()
    for path, hidden in rows:
        name, original = conflict_name(path), original_of(db, path)
        if name is not None and original is not None:
            found.append(Copy(path, original, name, hidden))
    return found
