"""The rows of notes: put, renamed, removed, found by name, and narrowed by a filter."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from simplemem.index.database import Rows, Table
from simplemem.index.door import Row
from simplemem.index.facts import Facts, facts_of, pair_rows, property_rows
from simplemem.note.names import base_name, compare_key, is_copy_reason, name_of
from simplemem.note.note import Note
from simplemem.vault.disk import Entry

if TYPE_CHECKING:
    from simplemem.index.links import StoredLink

# A file changed this shortly before it was read may change again without its time changing (durability.md F31).
RACY_NS = 2_000_000_000


class Stat(NamedTuple):
    """What the disk said about a file when it was read: what tells whether it may be another."""

    size: int
    mtime_ns: int
    ctime_ns: int


def stat_of(entry: Entry) -> Stat:
    return Stat(entry.size, entry.mtime_ns, entry.ctime_ns)


class Understood(NamedTuple):
    """A note file that was read and understood, ready to be put."""

    path: str
    note: Note
    stat: Stat
    facts: Facts


def is_note(path: str) -> bool:
    return path[-3:].lower() == ".md"


def understood(path: str, note: Note, stat: Stat) -> Understood:
    return Understood(path, note, stat, facts_of(path, note, stat.mtime_ns))


class Known(NamedTuple):
    """What the index knows of a note without reading it."""

    id: int
    path: str
    sha256: str
    size: int
    mtime_ns: int
    ctime_ns: int
    checked_ns: int
    type: str
    hidden: str | None
    private: str | None
    rev: int  # the change that made it what it is

    @property
    def is_copy(self) -> bool:
        """Whether it is left out of recall as a conflict copy."""
        return is_copy_reason(self.hidden)

    @property
    def stat(self) -> Stat:
        """What the disk said when it was last read."""
        return Stat(self.size, self.mtime_ns, self.ctime_ns)

    def may_have_changed(self, size: int, mtime_ns: int, ctime_ns: int) -> bool:
        """Whether the file must be read again: another size or time, or a time too near to the last reading."""
        if size != self.size or mtime_ns != self.mtime_ns or ctime_ns != self.ctime_ns:
            return True
        long_ago = self.checked_ns - RACY_NS
        return mtime_ns > long_ago or ctime_ns > long_ago


_ROW = """n.id, n.path, n.title, n.description, n.type, n.created, n.modified, n.size, n.words, n.sha256, n.hidden,
          n.problem, n.private, n.mtime_ns, n.ctime_ns"""


_KNOWN = ", ".join(Known._fields)
_ALIASES = Table(
    "SELECT note_id, seq, alias, key FROM aliases WHERE note_id = ?",
    "DELETE FROM aliases WHERE note_id = ?",
    "INSERT INTO aliases (note_id, seq, alias, key) VALUES (?, ?, ?, ?)",
)
_TAGS = Table(
    "SELECT note_id, seq, tag, source FROM tags WHERE note_id = ?",
    "DELETE FROM tags WHERE note_id = ?",
    "INSERT INTO tags (note_id, seq, tag, source) VALUES (?, ?, ?, ?)",
)
_PAIRS = Table(
    "SELECT key, value, note_id FROM tag_pairs WHERE note_id = ?",
    "DELETE FROM tag_pairs WHERE note_id = ?",
    "INSERT INTO tag_pairs (key, value, note_id) VALUES (?, ?, ?)",
)
_PROPERTIES = Table(
    "SELECT note_id, seq, key, value FROM properties WHERE note_id = ?",
    "DELETE FROM properties WHERE note_id = ?",
    "INSERT INTO properties (note_id, seq, key, value) VALUES (?, ?, ?, ?)",
)


def put(
    db: apsw.Connection,
    note_id: int | None,
    read: Understood,
    hidden: str | None,
    private: str | None,
    rows: Rows,
) -> int:
    """Write the note's own row, and keep what belongs to it (not its links and text) in `rows`. `note_id` is
    the note that the index has at the path, None for none. Returns the note's id, which it keeps for life. `hidden` says
    why it is left out of recall, `private` why its text stays here."""
    path, note, stat, facts = read
    new, title_key = note_id is None, compare_key(facts.title)
    if rows.rev is None:
        rows.rev = next_rev(db)
    values = (
        note.sha256, stat.size, stat.mtime_ns, stat.ctime_ns, time.time_ns(), facts.title, facts.description, facts.type,
        compare_key(facts.type or "memory"), facts.created, facts.modified, facts.words, hidden, note.problem, private,
        0, rows.rev,
    )  # fmt: skip
    if note_id is None:
        db.execute(
            """INSERT INTO notes (path, path_key, name_key, title_key, sha256, size, mtime_ns, ctime_ns, checked_ns,
                                  title, description, type, type_key, created, modified, words, hidden, problem, private,
                                  embedded, rev)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (path, *_name_keys(path), title_key, *values),
        ).fetchall()
        note_id = db.last_insert_rowid()
    else:
        # What a path says of a note stands there already. SQLite writes anew the index of each column that is named here.
        db.execute(
            """UPDATE notes SET sha256 = ?, size = ?, mtime_ns = ?, ctime_ns = ?, checked_ns = ?, title = ?,
                                description = ?, type = ?, type_key = ?, created = ?, modified = ?, words = ?, hidden = ?,
                                problem = ?, private = ?, embedded = ?, rev = ?, embedded_next = 0
               WHERE id = ?""",
            (*values, note_id),
        ).fetchall()
        db.execute(
            "UPDATE notes SET title_key = ? WHERE id = ? AND title_key <> ?", (title_key, note_id, title_key)
        ).fetchall()
    aliases = [(note_id, seq, alias, compare_key(alias)) for seq, alias in enumerate(note.aliases)]
    tags = [(note_id, seq, tag.name, tag.source) for seq, tag in enumerate(note.tags)]
    pairs = sorted((key, value, note_id) for key, value in pair_rows(note))
    properties = [(note_id, seq, key, value) for seq, (key, value) in enumerate(property_rows(note))]
    for table, wanted in ((_TAGS, tags), (_PAIRS, pairs), (_PROPERTIES, properties), (_ALIASES, aliases)):
        rows.replace(db, table, note_id, wanted, new=new)
    return note_id


def _name_keys(path: str) -> tuple[str, str]:
    """What a note is found by when its path or its file name is given."""
    return compare_key(name_of(path)), compare_key(base_name(path))


def newest_rev(db: apsw.Connection) -> int:
    """The number of the last change of any note."""
    return int(db.execute("SELECT value FROM meta WHERE key = 'rev'").get)


def next_rev(db: apsw.Connection) -> int:
    """The number of the change that is being made."""
    sql = "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'rev' RETURNING value"
    return int(db.execute(sql).get)


def _clear(db: apsw.Connection, note_id: int) -> None:
    for table in (_ALIASES, _TAGS, _PAIRS, _PROPERTIES):
        db.execute(table.clear, (note_id,)).fetchall()


def remove(db: apsw.Connection, note_id: int) -> None:
    """Forget a note's own rows."""
    next_rev(db)
    _clear(db, note_id)
    db.execute("DELETE FROM notes WHERE id = ?", (note_id,)).fetchall()


def rename(db: apsw.Connection, note_id: int, path: str) -> None:
    """Give a note another path. It must be put again, because a title may come from the name; its vectors stay."""
    sql = "UPDATE notes SET path = ?, path_key = ?, name_key = ? WHERE id = ?"
    db.execute(sql, (path, *_name_keys(path), note_id)).fetchall()


def refresh(db: apsw.Connection, note_id: int, stat: Stat, modified: str | None = None) -> None:
    """The file was read again and holds the same bytes. Without `modified` its date is the same as well, and SQLite need
    not write its index anew."""
    sql = "UPDATE notes SET size = ?, mtime_ns = ?, ctime_ns = ?, checked_ns = ? WHERE id = ?"
    db.execute(sql, (*stat, time.time_ns(), note_id)).fetchall()
    if modified is not None:
        db.execute("UPDATE notes SET modified = ? WHERE id = ?", (modified, note_id)).fetchall()


def count(db: apsw.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM notes").get)


def all_known(db: apsw.Connection) -> dict[str, Known]:
    """Every note by path, as a scan compares it."""
    return {known.path: known for known in map(Known._make, db.execute(f"SELECT {_KNOWN} FROM notes"))}


def known(db: apsw.Connection, path: str) -> Known | None:
    row = db.execute(f"SELECT {_KNOWN} FROM notes WHERE path = ?", (path,)).fetchone()
    return None if row is None else Known._make(row)


def known_at(db: apsw.Connection, paths: Iterable[str]) -> dict[str, Known]:
    """Those of the notes at these paths that the index knows."""
    sql = f"SELECT {_KNOWN} FROM notes WHERE path IN (SELECT value FROM json_each(?))"
    return {known.path: known for known in map(Known._make, db.execute(sql, (json.dumps(list(paths)),)))}


def known_below(db: apsw.Connection, folder: str) -> list[Known]:
    """The notes in a folder and its folders."""
    sql = f"SELECT {_KNOWN} FROM notes WHERE path >= ? || '/' AND path < ? || '0'"
    return [Known._make(row) for row in db.execute(sql, (folder, folder))]


def known_since(db: apsw.Connection, rev: int) -> list[Known]:
    """The notes put after `rev`."""
    return [Known._make(row) for row in db.execute(f"SELECT {_KNOWN} FROM notes WHERE rev > ? ORDER BY rev", (rev,))]


def with_property(db: apsw.Connection, key: str, rev: int) -> frozenset[str]:
    """The paths of those of the notes put after `rev` whose header has a property."""
    sql = """SELECT path FROM notes n
             WHERE rev > ? AND EXISTS (SELECT 1 FROM properties p WHERE p.note_id = n.id AND p.key = ?)"""
    return frozenset(row[0] for row in db.execute(sql, (rev, key)))


def rows_of(db: apsw.Connection, ids: Iterable[int]) -> dict[int, Row]:
    """Notes by id."""
    sql = f"SELECT {_ROW} FROM notes n WHERE n.id IN (SELECT value FROM json_each(?))"
    return {row[0]: Row(*row) for row in db.execute(sql, (json.dumps(list(ids)),))}


def row_at(db: apsw.Connection, path: str) -> Row | None:
    row = db.execute(f"SELECT {_ROW} FROM notes n WHERE n.path = ?", (path,)).fetchone()
    return None if row is None else Row(*row)


class Outline(NamedTuple):
    """What the index knows of a note and shows when it is read: its tags with their sources, and the links in it."""

    row: Row
    tags: Sequence[tuple[str, Any]]
    aliases: tuple[str, ...]
    links: Sequence[StoredLink] = ()


def outline(db: apsw.Connection, path: str) -> Outline | None:
    """A note without its links."""
    row = row_at(db, path)
    if row is None:
        return None
    tags = [(tag, source) for _, _, tag, source in sorted(db.execute(_TAGS.held, (row.id,)))]
    return Outline(row, tags, tuple(alias for _, _, alias, _ in sorted(db.execute(_ALIASES.held, (row.id,)))))


def paths_of(db: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """The paths of notes by id."""
    sql = "SELECT id, path FROM notes WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.execute(sql, (json.dumps(list(ids)),)))


def paths_named(db: apsw.Connection, key: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Notes whose path, file name, title or alias compares equal to `key`, each in path order."""
    by_path = "SELECT path FROM notes WHERE path_key = ? ORDER BY path"
    by_name = "SELECT path FROM notes WHERE name_key = ? ORDER BY path"
    by_title = "SELECT path FROM notes WHERE title_key = ? ORDER BY path"
    by_alias = (
        """SELECT DISTINCT n.path FROM aliases a JOIN notes n ON n.id = a.note_id WHERE a.key = ? ORDER BY n.path"""
    )
    found = [[row[0] for row in db.execute(sql, (key,))] for sql in (by_path, by_name, by_title, by_alias)]
    return found[0], found[1], found[2], found[3]


def near_names(db: apsw.Connection, prefix: str, limit: int) -> list[str]:
    """Paths of visible notes whose name or path starts with `prefix` (compared), for completion."""
    key = compare_key(prefix)
    sql = """SELECT path FROM notes
             WHERE hidden IS NULL AND (substr(path_key, 1, ?) = ? OR substr(name_key, 1, ?) = ?)
             ORDER BY path LIMIT ?"""
    return [row[0] for row in db.execute(sql, (len(key), key, len(key), key, limit))]


def paths_in(db: apsw.Connection, folder: str) -> list[str]:
    """The paths of the visible notes that lie in a folder itself; "" is the vault's root."""
    first = f"{folder}/" if folder else ""
    sql = """SELECT path FROM notes WHERE hidden IS NULL AND path >= :first AND substr(path, 1, length(:first)) = :first
             AND instr(substr(path, length(:first) + 1), '/') = 0 AND (:first = '' OR path < :after) ORDER BY path"""
    return [row[0] for row in db.execute(sql, {"first": first, "after": f"{folder}0"})]
