"""Files and the links that mean them: resolved when a note is put, and again when a file comes, goes or moves. A change
touches only the links that could mean it, found by the name they are looked up by; so are conflict copies."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import cache, partial
from typing import Any

import apsw

from simplemem.index import notes
from simplemem.index.door import Outline, StoredLink
from simplemem.index.notes import Rows, is_note
from simplemem.note.names import COPY_REASON, ConflictName, compare_key, conflict_name
from simplemem.note.note import Note
from simplemem.vault.links import Named, Resolution, lookup_keys, name_key, resolve


def files_named(db: apsw.Connection, key: str) -> list[str]:
    """The files of a name, as names are compared."""
    # Not ORDER BY: SQLite prepares a statement that orders and has a value given anew for every value.
    return sorted(row[0] for row in db.execute("SELECT path FROM files WHERE name_key = ?", (key,)))


def named_by(db: apsw.Connection) -> Named:
    """Which files have a name, asked of the index once each: for a transaction in which nobody else writes."""
    return cache(partial(files_named, db))


def named_in_memory(paths: Iterable[str]) -> Named:
    """Which files have a name, from a dictionary: cheaper than SQL where many links are resolved."""
    names: dict[str, list[str]] = {}
    for path in sorted(paths):
        names.setdefault(name_key(path), []).append(path)
    return lambda key: names.get(key, ())


def files_at(db: apsw.Connection, path: str) -> set[str]:
    """The file at a path, and those in the folder of that name."""
    sql = "SELECT path FROM files WHERE path = ? OR (path >= ? || '/' AND path < ? || '0')"
    return {row[0] for row in db.execute(sql, (path, path, path))}


def all_files(db: apsw.Connection) -> set[str]:
    """Every file that a link can mean."""
    return {row[0] for row in db.execute("SELECT path FROM files")}


def follow_files(db: apsw.Connection, came: Collection[str], went: Collection[str]) -> None:
    """Take in which files came and went, and resolve the links that could mean them anew."""

    def row(path: str) -> tuple[str, str, str | None]:
        copy = conflict_name(path)
        return path, name_key(path), None if copy is None else compare_key(copy.original)

    sql = "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT path FROM files)"
    came = [str(path) for (path,) in db.execute(sql, (json.dumps(list(came)),))]
    db.executemany("INSERT INTO files (path, name_key, copy_of) VALUES (?, ?, ?)", map(row, came))
    db.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in went))
    sql = """SELECT l.note_id, l.seq, n.path, l.target, l.path, l.ambiguous
             FROM links l JOIN notes n ON n.id = l.note_id WHERE l.key IN (SELECT value FROM json_each(?))"""
    named = named_by(db)
    rows: list[tuple[Any, ...]] = db.execute(sql, (_keys({*came, *went}),)).fetchall() if came or went else []
    for note_id, seq, source, target, *meant in rows:
        now = _meant(resolve(target, source, named))
        if now != tuple(meant):
            sql = "UPDATE links SET path = ?, ambiguous = ? WHERE note_id = ? AND seq = ?"
            db.execute(sql, (*now, note_id, seq)).fetchall()


def put(db: apsw.Connection, note_id: int, path: str, note: Note, named: Named, rows: Rows, *, new: bool) -> None:
    """Keep a note's links, resolved, in `rows`."""
    wanted: list[tuple[Any, ...]] = []
    for seq, link in enumerate(note.links):
        form = "property" if link.property is not None else "embed" if link.embed else link.form
        key, meant = name_key(link.target), _meant(resolve(link.target, path, named))
        wanted.append((note_id, seq, form, link.target, link.subpath, link.display, link.line, key, *meant))
    columns = "note_id, seq, form, target, subpath, display, line, key, path, ambiguous"
    rows.replace(db, "links", columns, note_id, wanted, new=new)


def _meant(found: Resolution) -> tuple[str | None, str]:
    return found.path, json.dumps(found.ambiguous, ensure_ascii=False) if found.ambiguous else "[]"


def sources_that_could_mean(db: apsw.Connection, files: Iterable[str]) -> list[str]:
    """The notes with a link that is looked up by the name of one of these files."""
    sql = """SELECT DISTINCT n.path FROM links l JOIN notes n ON n.id = l.note_id
             WHERE l.key IN (SELECT value FROM json_each(?)) ORDER BY n.path"""
    return [row[0] for row in db.execute(sql, (_keys(files),))]


def _keys(files: Iterable[str]) -> str:
    """What links are looked up by that could mean one of these files."""
    return json.dumps(sorted({key for path in files for key in lookup_keys(path)}))


def stored(db: apsw.Connection, to: str | None = None, source: str | None = None) -> list[StoredLink]:
    """The links that mean this file (a conflict copy's only repeat its note's), or those of a note; else every link."""
    where = ""
    if to is not None:
        where = "WHERE l.path = :to AND s.path != l.path AND instr(coalesce(s.hidden, ''), :copy) != 1"
    elif source is not None:
        where = "WHERE s.path = :source"
    sql = f"""SELECT s.id, s.path, l.form, l.target, l.subpath, l.display, l.line, l.path, l.ambiguous
              FROM links l JOIN notes s ON s.id = l.note_id {where} ORDER BY s.path, l.seq"""
    rows = db.execute(sql, {"to": to, "source": source, "copy": COPY_REASON})
    return [StoredLink._make((*link, tuple(json.loads(ambiguous)))) for *link, ambiguous in rows]


def outline(db: apsw.Connection, path: str) -> Outline | None:
    """What is shown of a note that is read."""
    row = notes.known(db, path)
    if row is None:
        return None
    tags: Any = db.execute("SELECT tag, source FROM tags WHERE note_id = ? ORDER BY seq", (row.id,))
    aliases = db.execute("SELECT alias FROM aliases WHERE note_id = ? ORDER BY seq", (row.id,))
    return Outline(row, list(tags), tuple(alias for (alias,) in aliases), stored(db, source=path))


# -- conflict copies

# A copy whose name nobody else gives is left out of recall while its note is there; one with a name that people give as
# well ("Chapter 2") only while its text is akin to the note's. The rule looks at both files and at nothing else, so that an
# index after any changes equals one made afresh.


def copy_at(db: apsw.Connection, path: str) -> tuple[ConflictName, str] | None:
    """What the name of a file says of the note it would be a copy of, and that note; None when it is not there."""
    name = conflict_name(path)
    if name is None:
        return None
    key = compare_key(name.original)
    named = files_named(db, key.rsplit("/", 1)[-1])
    original = next((each for each in named if compare_key(each) == key and each != path), None)
    return None if original is None else (name, original)


def copies_of(db: apsw.Connection, originals: Iterable[str]) -> list[str]:
    """The files that are copies of one of these notes, by their names."""
    if db.execute("SELECT 1 FROM files WHERE copy_of IS NOT NULL LIMIT 1").fetchone() is None:
        return []
    keys = sorted({compare_key(path) for path in originals})
    sql = "SELECT path FROM files WHERE copy_of IN (SELECT value FROM json_each(?)) ORDER BY path"
    return [row[0] for row in db.execute(sql, (json.dumps(keys),))]


def conflict_copies(db: apsw.Connection) -> list[tuple[str, str]]:
    """Every conflict copy of a note that is there, with that note."""
    sql = """SELECT f.path, n.hidden IS NULL FROM files f LEFT JOIN notes n ON n.path = f.path
             WHERE f.copy_of IS NOT NULL ORDER BY f.path"""
    found = []
    for path, takes_part in db.execute(sql).fetchall():
        copy = copy_at(db, str(path))
        if copy is not None and (copy[0].certain or not takes_part or not is_note(str(path))):
            found.append((str(path), copy[1]))
    return found
