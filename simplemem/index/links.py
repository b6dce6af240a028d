"""Links between notes: resolved when a note is put, and resolved again when a file comes, goes or moves.

A change of one file touches only the links that could mean it, found by the name they are looked up by, so the work
depends on the change and not on the vault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apsw

from simplemem.index.database import Rows, Table
from simplemem.note.names import COPY_REASON, ConflictName, are_akin, compare_key, conflict_name
from simplemem.note.note import Note
from simplemem.vault.links import Named, Resolution, lookup_keys, name_key, resolve


@dataclass(frozen=True, slots=True)
class StoredLink:
    """A link as the index keeps it, with what it means now."""

    source_id: int
    source: str
    form: str
    target: str
    subpath: str
    display: str
    line: int
    path: str | None
    via: str
    ambiguous: tuple[str, ...]


def named_by(db: apsw.Connection) -> Named:
    """Which files have a name, asked of the index."""

    return partial(files_named, db)


def files_named(db: apsw.Connection, key: str) -> list[str]:
    """The files of a name, as names are compared."""
    # Not ORDER BY: SQLite prepares a statement that orders and has a value given anew for every value.
    return sorted(row[0] for row in db.execute("SELECT path FROM files WHERE name_key = ?", (key,)))


def named_in_memory(paths: Iterable[str]) -> Named:
    """Which files have a name, from a dictionary: where many links are resolved, asking SQL for each would cost more."""
    names: dict[str, list[str]] = {}
    for path in sorted(paths):
        names.setdefault(name_key(path), []).append(path)
    return lambda key: names.get(key, ())


def is_file(db: apsw.Connection, path: str) -> bool:
    """Whether a file is known that links can mean."""
    return db.execute("SELECT 1 FROM files WHERE path = ?", (path,)).fetchone() is not None


def add_files(db: apsw.Connection, paths: Iterable[str]) -> None:
    sql = "INSERT OR REPLACE INTO files (path, name_key, copy_of) VALUES (?, ?, ?)"
    db.executemany(sql, ((path, name_key(path), copy_key(path)) for path in paths))


def remove_files(db: apsw.Connection, paths: Iterable[str]) -> None:
    db.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))


def files_at(db: apsw.Connection, path: str) -> set[str]:
    """The file at a path, and those in the folder of that name."""
    sql = "SELECT path FROM files WHERE path = ? OR (path >= ? || '/' AND path < ? || '0')"
    return {row[0] for row in db.execute(sql, (path, path, path))}


def all_files(db: apsw.Connection) -> set[str]:
    return {row[0] for row in db.execute("SELECT path FROM files")}


_LINKS = Table(
    """SELECT source_id, seq, form, target, subpath, display, line, key, path, via, ambiguous FROM links
       WHERE source_id = ?""",
    "DELETE FROM links WHERE source_id = ?",
    """INSERT INTO links (source_id, seq, form, target, subpath, display, line, key, path, via, ambiguous)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
)


def put(db: apsw.Connection, note_id: int, path: str, note: Note, named: Named, rows: Rows, *, new: bool) -> None:
    """Keep a note's links, resolved, in `rows`."""
    wanted = []
    for seq, link in enumerate(note.links):
        found = resolve(link.target, path, named)
        form = "property" if link.property is not None else "embed" if link.embed else link.form
        wanted.append(
            (note_id, seq, form, link.target, link.subpath, link.display, link.line, name_key(link.target),
             found.path, found.via, _ambiguous(found))
        )  # fmt: skip
    rows.replace(db, _LINKS, note_id, wanted, new=new)


def _ambiguous(found: Resolution) -> str:
    return json.dumps(found.ambiguous, ensure_ascii=False) if found.ambiguous else "[]"


def remove(db: apsw.Connection, note_id: int) -> None:
    db.execute(_LINKS.clear, (note_id,)).fetchall()


def resolve_again(db: apsw.Connection, files: Iterable[str], named: Named) -> None:
    """Resolve the links that could mean one of `files`, which came or went."""
    keys = {key for path in files for key in lookup_keys(path)}
    sql = """SELECT l.source_id, l.seq, n.path, l.target, l.path, l.via, l.ambiguous
             FROM links l JOIN notes n ON n.id = l.source_id
             WHERE l.key IN (SELECT value FROM json_each(?))"""
    rows: list[tuple[Any, ...]] = db.execute(sql, (json.dumps(sorted(keys)),)).fetchall()
    for source_id, seq, source, target, path, via, ambiguous in rows:
        found = resolve(target, source, named)
        if (found.path, found.via, _ambiguous(found)) != (path, via, ambiguous):
            db.execute(
                "UPDATE links SET path = ?, via = ?, ambiguous = ? WHERE source_id = ? AND seq = ?",
                (found.path, found.via, _ambiguous(found), source_id, seq),
            ).fetchall()


def sources_that_could_mean(db: apsw.Connection, files: Iterable[str]) -> list[str]:
    """The notes with a link that is looked up by the name of one of `files`: all that a move could concern."""
    keys = sorted({key for path in files for key in lookup_keys(path)})
    sql = """SELECT DISTINCT n.path FROM links l JOIN notes n ON n.id = l.source_id
             WHERE l.key IN (SELECT value FROM json_each(?)) ORDER BY n.path"""
    return [row[0] for row in db.execute(sql, (json.dumps(keys),))]


_LINK = "s.id, s.path, l.form, l.target, l.subpath, l.display, l.line, l.path, l.via, l.ambiguous"


def _stored(row: Sequence[Any]) -> StoredLink:
    id_, source, form, target, subpath, display, line, path, via, ambiguous = row
    return StoredLink(id_, source, form, target, subpath, display, line, path, via, tuple(json.loads(ambiguous)))


def links_from(db: apsw.Connection, path: str) -> list[StoredLink]:
    """The links of a note, in the order they stand."""
    sql = f"SELECT {_LINK} FROM links l JOIN notes s ON s.id = l.source_id WHERE s.path = ? ORDER BY l.seq"
    return [_stored(row) for row in db.execute(sql, (path,))]


def links_to(db: apsw.Connection, path: str) -> list[StoredLink]:
    """The links of other notes that mean this file. A conflict copy only says again what its note says."""
    sql = f"""SELECT {_LINK} FROM links l JOIN notes s ON s.id = l.source_id
              WHERE l.path = ? AND s.path != l.path AND instr(coalesce(s.hidden, ''), ?) != 1 ORDER BY s.path, l.seq"""
    return [_stored(row) for row in db.execute(sql, (path, COPY_REASON))]


def all_links(db: apsw.Connection) -> list[StoredLink]:
    sql = f"SELECT {_LINK} FROM links l JOIN notes s ON s.id = l.source_id ORDER BY s.path, l.seq"
    return [_stored(row) for row in db.execute(sql)]


# -- conflict copies

# A copy whose name nobody else gives is left out of recall while its note is there; one with a name that people give as
# well ("Chapter 2") only while its text is akin to the note's. The rule looks at both files and at nothing else, so that an
# index after any changes equals one made afresh.

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
