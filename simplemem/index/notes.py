"""The rows of notes: put, renamed, removed, and found by path, name, id or number of change."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import apsw

from simplemem.index.door import Row, Stat, VectorSpace
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.note.note import tag_pairs
from simplemem.vault.disk import Entry

if TYPE_CHECKING:
    from simplemem.index.text import Understood


def stat_of(entry: Entry) -> Stat:
    return Stat(entry.size, entry.mtime_ns, entry.ctime_ns)


def is_note(path: str) -> bool:
    return path[-3:].lower() == ".md"


class Rows:
    """What is still to be written of notes, in the order in which its statements first came. For one transaction."""

    def __init__(self) -> None:
        self.rev: int | None = None  # the number of the change that they all are
        self.is_remote: bool | None = None  # whether the vectors are made elsewhere, as long as it lasts
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}

    def add(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep rows for a statement."""
        self._waiting.setdefault(sql, []).extend(rows)

    def replace(
        self, db: apsw.Connection, table: str, columns: str, note_id: int, wanted: list[tuple[Any, ...]], *, new: bool
    ) -> None:
        """Keep the rows of a note for a table, unless they are there: a page that is not touched is not written."""
        if not new:
            # In no order: SQLite would prepare a statement that orders anew for every note.
            if sorted(db.execute(f"SELECT {columns} FROM {table} WHERE note_id = ?", (note_id,))) == wanted:
                return
            db.execute(f"DELETE FROM {table} WHERE note_id = ?", (note_id,)).fetchall()
        if wanted:
            marks = ", ".join("?" * len(columns.split()))
            self.add(f"INSERT INTO {table} ({columns}) VALUES ({marks})", wanted)

    def write(self, db: apsw.Connection) -> None:
        """Write all that is kept."""
        for sql, rows in self._waiting.items():
            db.executemany(sql, rows)
        self._waiting.clear()


_TABLES = ("aliases", "tags", "tag_pairs", "properties", "links")
_OWN = (
    "sha256", "size", "mtime_ns", "ctime_ns", "checked_ns", "title", "description", "type", "type_key", "created",
    "modified", "words", "hidden", "problem", "private", "embedded", "refused", "rev",
)  # fmt: skip
_ALL = (*_OWN, "title_key", "path", "path_key", "name_key")
_INSERT = f"INSERT INTO notes ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))})"
# What a path says of a note stands there already. SQLite writes anew the index of each column that is named here.
_UPDATE = f"UPDATE notes SET {' = ?, '.join(_OWN)} = ? WHERE id = ?"


def put(
    db: apsw.Connection, note_id: int | None, read: Understood, hidden: str | None, private: str | None, rows: Rows
) -> int:
    """Write the note's own row, and keep what belongs to it (not links and text) in `rows`. Returns its id."""
    path, note, stat, head, *_ = read
    new, title_key = note_id is None, compare_key(head.title)
    if rows.rev is None:
        rows.rev = next_rev(db)
    values = (
        note.sha256, *stat, time.time_ns(), head.title, head.description, head.type, compare_key(head.type or "memory"),
        head.created, head.modified, len(note.content.split()), hidden, note.problem, private,
        hidden is not None, None, rows.rev,
    )  # fmt: skip
    if note_id is None:
        db.execute(_INSERT, (*values, title_key, path, *_name_keys(path))).fetchall()
        note_id = db.last_insert_rowid()
    else:
        db.execute(_UPDATE, (*values, note_id)).fetchall()
        sql = "UPDATE notes SET title_key = ? WHERE id = ? AND title_key <> ?"
        db.execute(sql, (title_key, note_id, title_key)).fetchall()
    header = note.header.properties
    aliases = [(note_id, seq, alias, compare_key(alias)) for seq, alias in enumerate(note.aliases)]
    tags = [(note_id, seq, tag.name, tag.source) for seq, tag in enumerate(note.tags)]
    pairs = sorted({(key, compare_key(value), note_id) for key, value in tag_pairs(note.tags, header)})
    properties = [(note_id, seq, str(key), _as_json(value)) for seq, (key, value) in enumerate(header.items())]
    rows.replace(db, "tags", "note_id, seq, tag, source", note_id, tags, new=new)
    rows.replace(db, "tag_pairs", "key, value, note_id", note_id, pairs, new=new)
    rows.replace(db, "properties", "note_id, seq, key, value", note_id, properties, new=new)
    rows.replace(db, "aliases", "note_id, seq, alias, key", note_id, aliases, new=new)
    return note_id


def _as_json(value: Any) -> str:
    if type(value) is str:  # nearly all are, and the encoder's own way there is long
        return json.encoder.encode_basestring(value)
    return json.dumps(value, ensure_ascii=False, default=str, allow_nan=True)


def _name_keys(path: str) -> tuple[str, str]:
    """What a note is found by when its path or its file name is given."""
    return compare_key(name_of(path)), compare_key(base_name(path))


def remove(db: apsw.Connection, note_id: int) -> None:
    """Forget a note's own rows and its links."""
    next_rev(db)
    for table in _TABLES:
        db.execute(f"DELETE FROM {table} WHERE note_id = ?", (note_id,)).fetchall()
    db.execute("DELETE FROM notes WHERE id = ?", (note_id,)).fetchall()


def rename(db: apsw.Connection, note_id: int, path: str) -> None:
    """Give a note another path. It must be put again, because a title may come from the name; its vectors stay."""
    sql = "UPDATE notes SET path = ?, path_key = ?, name_key = ? WHERE id = ?"
    db.execute(sql, (path, *_name_keys(path), note_id)).fetchall()


def refresh(db: apsw.Connection, note_id: int, stat: Stat, modified: str | None = None) -> None:
    """The file was read again and holds the same bytes; with `modified`, its date is another."""
    sql = "UPDATE notes SET size = ?, mtime_ns = ?, ctime_ns = ?, checked_ns = ? WHERE id = ?"
    db.execute(sql, (*stat, time.time_ns(), note_id)).fetchall()
    if modified is not None:
        db.execute("UPDATE notes SET modified = ? WHERE id = ?", (modified, note_id)).fetchall()


def newest_rev(db: apsw.Connection) -> int:
    """The number of the last change of any note."""
    return int(db.execute("SELECT value FROM meta WHERE key = 'rev'").get)


def next_rev(db: apsw.Connection) -> int:
    """The number of the change that is being made."""
    sql = "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'rev' RETURNING value"
    return int(db.execute(sql).get)


_ROW = ", ".join(f"n.{name}" for name in Row._fields)


def count(db: apsw.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM notes").get)


def rows(db: apsw.Connection, where: str, *values: Any) -> list[Row]:
    """The rows of `notes n` of which this is so."""
    return list(map(Row._make, db.execute(f"SELECT {_ROW} FROM notes n WHERE {where}", values)))


def known(db: apsw.Connection, path: str) -> Row | None:
    return next(iter(rows(db, "path = ?", path)), None)


def known_at(db: apsw.Connection, paths: Iterable[str] | None = None) -> dict[str, Row]:
    """What the index knows of these notes, if they are there; of every note without paths."""
    some = ("1",) if paths is None else ("path IN (SELECT value FROM json_each(?))", json.dumps(list(paths)))
    return {known.path: known for known in rows(db, *some)}


def known_below(db: apsw.Connection, path: str) -> dict[str, Row]:
    """The note at a path, and those in the folder of that name and its folders."""
    below = "path = ? OR (path >= ? || '/' AND path < ? || '0')"
    return {known.path: known for known in rows(db, below, path, path, path)}


def rows_of(db: apsw.Connection, ids: Iterable[int]) -> dict[int, Row]:
    """Notes by id."""
    return {row.id: row for row in rows(db, "id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))}


def paths_of(db: apsw.Connection, ids: Iterable[int]) -> dict[int, str]:
    """The paths of notes by id."""
    sql = "SELECT id, path FROM notes WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.execute(sql, (json.dumps(list(ids)),)))


def called(db: apsw.Connection, key: str) -> tuple[list[str], ...]:
    """Notes whose path, file name, title or alias compares equal to `key`: four lists, each in path order."""
    of_column = "SELECT path FROM notes WHERE {} = ? ORDER BY path"
    of_alias = "SELECT DISTINCT n.path FROM aliases a JOIN notes n ON n.id = a.note_id WHERE a.key = ? ORDER BY n.path"
    every = (*(of_column.format(column) for column in ("path_key", "name_key", "title_key")), of_alias)
    return tuple([row[0] for row in db.execute(sql, (key,))] for sql in every)


def near_names(db: apsw.Connection, prefix: str, limit: int) -> list[str]:
    """Paths of visible notes whose name or path starts with `prefix` (compared), for completion."""
    sql = """SELECT path FROM notes
             WHERE hidden IS NULL AND (substr(path_key, 1, length(?1)) = ?1 OR substr(name_key, 1, length(?1)) = ?1)
             ORDER BY path LIMIT ?2"""
    return [row[0] for row in db.execute(sql, (compare_key(prefix), limit))]


def vector_space(db: apsw.Connection) -> VectorSpace | None:
    """Whose vectors the index holds; None before the first embedder has come by."""
    row: Any = db.execute("SELECT embedder, dimension, remote FROM vector_space").fetchone()
    return None if row is None else VectorSpace(row[0], row[1], remote=bool(row[2]))


def waiting(db: apsw.Connection) -> int:
    """How many notes wait for their vectors."""
    return int(db.execute("SELECT count(*) FROM notes WHERE embedded = 0").get)
