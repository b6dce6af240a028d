"""The rows of notes and files: put, renamed, removed and found. Links are resolved when a note is put, and again when a
file comes, goes or moves: only those that could mean it, by the name they are looked up by; so are conflict copies."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from simplemem.index.changes import is_named_by_us
from simplemem.index.door import SIZE_OF_MOVED, Outline, Row, Stat, StoredLink, VectorSpace
from simplemem.index.engine import (
    LAST,
    Connection,
    IntegerList,
    TextList,
    Value,
    marks,
    read_integer,
)
from simplemem.index.terms.small_segment import SegmentBuilder
from simplemem.index.terms.tokens import NoteTokens
from simplemem.index.terms.writer import add_notes
from simplemem.note.conflict_copies import COPY_REASON, ConflictName, parse_conflict_name
from simplemem.note.inline import Link
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.note.tags import filter_pairs
from simplemem.note.words import words_key
from simplemem.obsidian.links import FilesNamed, Resolution, lookup_keys, name_key, resolve_link
from simplemem.vault.values import Entry

if TYPE_CHECKING:
    from simplemem.index.parsed_note import ParsedNote

OF_NOTE = {
    "aliases": "note_id, seq, alias, key",
    "names": "note_id, seq, key, is_alias",
    "tags": "note_id, seq, tag, source",
    "tag_pairs": "note_id, key, value",
    "properties": "note_id, seq, key, value",
    "links": "note_id, seq, form, target, subpath, display, line, key, path, ambiguous",
}  # the rows that belong to a note, the note first
_ROW = ", ".join(f"n.{name}" for name in Row._fields)
_OWN = (
    "sha256", "size", "mtime_ns", "ctime_ns", "checked_ns", "title", "title_key", "description", "type", "type_key",
    "created", "modified", "words", "hidden", "problem", "private", "embedded", "refused", "rev",
)  # fmt: skip
_ALL = (*_OWN, "path", "path_key", "name_key")
_INSERT = f"INSERT INTO notes ({', '.join(_ALL)}) VALUES ({marks(len(_ALL))}) RETURNING id"
# What a path says of a note stands there already. SQLite writes anew the index of each column that is named here.
_ASSIGNMENTS = ", ".join(f"{column} = ${number}" for number, column in enumerate(_OWN, 1))
_UPDATE = f"UPDATE notes SET {_ASSIGNMENTS} WHERE id = ${len(_OWN) + 1}"
_BELOW = "path = $1 OR (path >= $1 || '/' AND path < $1 || '0')"


def stat_of(entry: Entry) -> Stat:
    return Stat(entry.size, entry.mtime_ns, entry.ctime_ns)


def is_note(path: str) -> bool:
    return path[-3:].lower() == ".md"


_MAX_WAITING_TOKENS = 200_000  # of notes that are not written yet


class Rows:
    """What is still to be written of notes, in the order in which its statements first came. For one transaction, in
    which nobody else writes: which files have a name (`named`) is asked of the index once each."""

    def __init__(self, db: Connection) -> None:
        self.db, self.named = db, cache(partial(files_named, db))
        self.rev: int | None = None  # the number of the change that they all are
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        self._words = SegmentBuilder()
        self._vectors: list[tuple[int, bytes]] = []

    def add(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep rows for a statement."""
        self._waiting.setdefault(sql, []).extend(rows)

    def add_words(self, note: NoteTokens) -> None:
        """Keep the words of a note. Those of many notes are written at once, to save memory."""
        if len(self._words.tokens) > _MAX_WAITING_TOKENS:
            self._write_words()
        self._words.add(note)

    def add_vectors(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep the vectors of places, which have none."""
        self._vectors.extend(vectors)

    def replace(
        self, table: str, note_id: int, wanted: list[tuple[Any, ...]], *, new: bool
    ) -> None:
        """Keep the rows of a note for a table, unless they are there: a page that is not touched is not written."""
        columns = OF_NOTE[table]
        if not new:
            # In no order: SQLite would prepare a statement that orders anew for every note.
            if (
                sorted(
                    self.db.execute(f"SELECT {columns} FROM {table} WHERE note_id = $1", (note_id,))
                )
                == wanted
            ):
                return
            self.db.execute(f"DELETE FROM {table} WHERE note_id = $1", (note_id,)).fetchall()
        if wanted:
            count = len(columns.split())
            self.add(f"INSERT INTO {table} ({columns}) VALUES ({marks(count)})", wanted)

    def write(self) -> None:
        for sql, rows in self._waiting.items():
            self.db.executemany(sql, rows)
        self._waiting.clear()
        self._write_words()
        self.db.vectors.write(self._vectors)
        self._vectors = []

    def _write_words(self) -> None:
        if self._words.note_ids:
            add_notes(self.db, self._words)
            self._words = SegmentBuilder()


def put(
    rows: Rows, note_id: int | None, read: ParsedNote, hidden: str | None, private: str | None
) -> int:
    """Write the note's own row, and keep what belongs to it (not its text) in `rows`. Returns its id."""
    path, note, stat, head, *_ = read
    db, new = rows.db, note_id is None
    if rows.rev is None:
        rows.rev = next_rev(db)
    values = (
        note.sha256, *stat, time.time_ns(), head.title, compare_key(head.title), head.description,
        head.type, compare_key(head.type or "memory"), head.created, head.modified, len(note.content.split()),
        hidden, note.problem, private, int(hidden is not None), None, rows.rev,
    )  # fmt: skip
    if note_id is None:
        note_id = read_integer(db.execute(_INSERT, (*values, path, *_name_keys(path))))
    else:
        db.execute(_UPDATE, (*values, note_id)).fetchall()
    header = note.header.properties
    pairs = {(note_id, key, compare_key(value)) for key, value in filter_pairs(note.tags, header)}
    if note.open_tasks:  # so that a filter by tags finds them
        pairs.add((note_id, "task", "open"))
    wanted: dict[str, list[tuple[Any, ...]]] = {
        "aliases": [
            (note_id, seq, alias, compare_key(alias)) for seq, alias in enumerate(note.aliases)
        ],
        "names": _name_rows(note_id, (head.title, base_name(path)), note.aliases),
        "tags": [(note_id, seq, tag.name, tag.source) for seq, tag in enumerate(note.tags)],
        "tag_pairs": sorted(pairs),
        "properties": [
            (note_id, seq, str(key), _as_json(value))
            for seq, (key, value) in enumerate(header.items())
        ],
        "links": [
            (note_id, seq, *_link_row(link, path, rows.named))
            for seq, link in enumerate(note.links)
        ],
    }
    for table, of in wanted.items():
        rows.replace(table, note_id, of, new=new)
    return note_id


def _name_rows(
    note_id: int, titles: Iterable[str], aliases: Iterable[str]
) -> list[tuple[Any, ...]]:
    """What a note is called, each name once: as title or file name, else as alias."""
    is_alias = {words_key(alias): 1 for alias in aliases} | {
        words_key(title): 0 for title in titles
    }
    is_alias.pop("", None)
    return [(note_id, seq, *name) for seq, name in enumerate(is_alias.items())]


def _link_row(link: Link, source: str, named: FilesNamed) -> tuple[Any, ...]:
    """A link as it stands, and what it means now."""
    meant = _meant(resolve_link(link.target, source, named))
    return (
        link.kind(),
        link.target,
        link.subpath,
        link.display,
        link.line,
        name_key(link.target),
        *meant,
    )


def _as_json(value: Any) -> str:
    if type(value) is str:  # nearly all are, and the encoder's own way there is long
        return json.encoder.encode_basestring(value)
    return json.dumps(value, ensure_ascii=False, default=str, allow_nan=True)


def _name_keys(path: str) -> tuple[str, str]:
    """What a note is found by when its path or its file name is given."""
    return compare_key(name_of(path)), compare_key(base_name(path))


def remove(db: Connection, note_id: int) -> None:
    """Forget a note's own rows and its links."""
    next_rev(db)
    for table in OF_NOTE:
        db.execute(f"DELETE FROM {table} WHERE note_id = $1", (note_id,)).fetchall()
    db.execute("DELETE FROM notes WHERE id = $1", (note_id,)).fetchall()


def rename(db: Connection, note_id: int, path: str) -> None:
    """Give a note another path. It must be put again, because a title may come from the name; its vectors stay."""
    sql = "UPDATE notes SET path = $1, path_key = $2, name_key = $3 WHERE id = $4"
    db.execute(sql, (path, *_name_keys(path), note_id)).fetchall()


def follow_move(db: Connection, note_id: int, path: str) -> None:
    """Give a note the path that its file was moved to, before the note is read and put again there."""
    rename(db, note_id, path)
    db.execute("UPDATE notes SET size = $1 WHERE id = $2", (SIZE_OF_MOVED, note_id)).fetchall()


def refresh(db: Connection, note_id: int, stat: Stat, modified: str | None = None) -> None:
    """The file was read again and holds the same bytes; with `modified`, its date is another."""
    sql = """UPDATE notes SET size = $1, mtime_ns = $2, ctime_ns = $3, checked_ns = $4, modified = coalesce($5, modified)
             WHERE id = $6"""
    db.execute(sql, (*stat, time.time_ns(), modified, note_id)).fetchall()


def newest_rev(db: Connection) -> int:
    """The number of the last change of any note."""
    return read_integer(db.execute("SELECT value FROM meta WHERE key = 'rev'"))


def next_rev(db: Connection) -> int:
    """The number of the change that is being made."""
    sql = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE key = 'rev' RETURNING value"
    return read_integer(db.execute(sql))


def count(db: Connection) -> int:
    return read_integer(db.execute("SELECT count(*) FROM notes"))


def rows(db: Connection, where: str, *values: Value) -> list[Row]:
    """The rows of `notes n` of which this is so."""
    return list(map(Row._make, db.execute(f"SELECT {_ROW} FROM notes n WHERE {where}", values)))


def known(db: Connection, path: str) -> Row | None:
    return next(iter(rows(db, "path = $1", path)), None)


def known_at(db: Connection, paths: Iterable[str] | None = None) -> dict[str, Row]:
    """What the index knows of these notes, if they are there; of every note without paths."""
    if paths is None:
        every_row = rows(db, "TRUE")
    else:
        every_row = rows(db, db.dialect.in_texts("path", "$1"), TextList(paths))
    return {row.path: row for row in every_row}


def below(db: Connection, path: str) -> tuple[dict[str, Row], set[str]]:
    """What the index knows of the notes, and which files there are, at a path and in the folder of that name."""
    files = db.execute(f"SELECT path FROM files WHERE {_BELOW}", (path,))
    return {known.path: known for known in rows(db, _BELOW, path)}, {each for (each,) in files}


def rows_of(db: Connection, ids: Iterable[int]) -> dict[int, Row]:
    is_wanted = db.dialect.in_integers("id", "$1")
    return {row.id: row for row in rows(db, is_wanted, IntegerList(ids))}


def paths_of(db: Connection, ids: Iterable[int]) -> dict[int, str]:
    sql = f"SELECT id, path FROM notes WHERE {db.dialect.in_integers('id', '$1')}"
    return dict(db.execute(sql, (IntegerList(ids),)))


def called(db: Connection, key: str) -> tuple[list[str], ...]:
    """Notes whose path, file name, title or alias compares equal to `key`: four lists, each in path order."""
    of_column = "SELECT path FROM notes WHERE {} = $1 ORDER BY path"
    of_alias = "SELECT DISTINCT n.path FROM aliases a JOIN notes n ON n.id = a.note_id WHERE a.key = $1 ORDER BY n.path"
    every = (
        *(of_column.format(column) for column in ("path_key", "name_key", "title_key")),
        of_alias,
    )
    return tuple([row[0] for row in db.execute(sql, (key,))] for sql in every)


def named(db: Connection, title: str, keys: Iterable[str]) -> Iterable[tuple[Any, ...]]:
    """The visible notes with a name, and whether it is an alias (1) or a title or file name (0): letter for letter
    without case the `title`, and then with "" as the last value; else one of the `keys` (words.words_key), which is the
    last value. A note may come several times. The mark behind a question is no part of a name, unless a name has it."""
    is_one_of_the_keys = db.dialect.in_texts("k.key", "$3")
    sql = f"""SELECT id, 0, '' FROM notes WHERE hidden IS NULL AND (title_key IN ($1, $2) OR name_key IN ($1, $2))
             UNION ALL SELECT n.id, 1, '' FROM aliases a JOIN notes n ON n.id = a.note_id
                       WHERE n.hidden IS NULL AND a.key IN ($1, $2)
             UNION ALL SELECT n.id, k.is_alias, k.key FROM names k JOIN notes n ON n.id = k.note_id
                       WHERE n.hidden IS NULL AND {is_one_of_the_keys}"""
    values = compare_key(title), compare_key(title.rstrip("?？!. ")), TextList(keys)
    names: Iterable[tuple[Any, ...]] = db.execute(sql, values)
    return names


def with_property(db: Connection, key: str) -> dict[str, str]:
    """The paths of the notes that have a property, by the text it holds."""
    sql = "SELECT value, path FROM properties JOIN notes ON id = note_id WHERE key = $1 ORDER BY path DESC"
    return {str(json.loads(value)): str(path) for value, path in db.execute(sql, (key,))}


def near_names(
    db: Connection, prefix: str, limit: int, last: Iterable[str]
) -> list[tuple[str, bool]]:
    """Return the visible notes whose name or path starts with `prefix` (compared), for completion.

    Each is a path, and whether no other note has its file name. Notes in the folders `last` come last.
    """
    sql = f"""SELECT path, NOT EXISTS (SELECT 1 FROM notes o WHERE o.name_key = notes.name_key AND o.id <> notes.id)
             FROM notes
             WHERE hidden IS NULL AND (substr(path_key, 1, length($1)) = $1 OR substr(name_key, 1, length($1)) = $1)
             ORDER BY EXISTS (
                 SELECT 1 FROM {db.dialect.texts("$2", "f")}
                 WHERE substr(path_key, 1, length(f.value)) = f.value
             ), path
             LIMIT $3"""
    values = compare_key(prefix), TextList(map(compare_key, last)), limit
    return [(path, bool(is_unique)) for path, is_unique in db.execute(sql, values)]


def with_notes(db: Connection, folders: Iterable[str]) -> tuple[str, ...]:
    """Those of some folders that notes lie in."""
    sql = f"SELECT EXISTS (SELECT 1 FROM notes WHERE path_key >= $1 AND path_key < $1 || '{LAST}')"
    return tuple(each for each in folders if db.execute(sql, (compare_key(each),)).get)


def vector_space(db: Connection) -> VectorSpace:
    """Whose vectors the index holds; nobody's before the first embedder has come by."""
    row: Any = db.execute("SELECT embedder, dimension, remote FROM vector_space").fetchone()
    return VectorSpace() if row is None else VectorSpace(row[0], row[1], remote=bool(row[2]))


def waiting(db: Connection) -> int:
    """How many notes wait for their vectors."""
    return read_integer(db.execute("SELECT count(*) FROM notes WHERE embedded = 0"))


def files_named(db: Connection, key: str) -> list[str]:
    """The files of a name, as names are compared."""
    # Not ORDER BY: SQLite prepares a statement that orders and has a value given anew for every value.
    return sorted(
        row[0] for row in db.execute("SELECT path FROM files WHERE name_key = $1", (key,))
    )


def named_in_memory(paths: Iterable[str]) -> FilesNamed:
    """Which files have a name, from a dictionary: cheaper than SQL where many links are resolved."""
    names: dict[str, list[str]] = {}
    for path in sorted(paths):
        names.setdefault(name_key(path), []).append(path)
    return lambda key: names.get(key, ())


def all_files(db: Connection) -> set[str]:
    """Every file that a link can mean."""
    return {row[0] for row in db.execute("SELECT path FROM files")}


def follow_files(db: Connection, came: Collection[str], went: Collection[str]) -> None:
    """Take in which files came and went, and resolve the links that could mean them anew."""
    if not (came or went):
        return

    def row(path: str) -> tuple[str, str, str | None]:
        copy = parse_conflict_name(path)
        return path, name_key(path), None if copy is None else compare_key(copy.original)

    if came:
        sql = f"""
            SELECT c.value FROM {db.dialect.texts("$1", "c")}
            WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.path = c.value)"""
        came = [str(path) for (path,) in db.execute(sql, (TextList(came),))]
    db.executemany(
        "INSERT INTO files (path, name_key, copy_of) VALUES ($1, $2, $3)", map(row, came)
    )
    db.executemany("DELETE FROM files WHERE path = $1", ((path,) for path in went))
    sql = f"""SELECT l.note_id, l.seq, n.path, l.target, l.path, l.ambiguous
              FROM links l JOIN notes n ON n.id = l.note_id
              WHERE {db.dialect.in_texts("l.key", "$1")}"""
    named = cache(partial(files_named, db))
    linked: Any = db.execute(sql, (TextList(_keys({*came, *went})),)).fetchall()
    for note_id, seq, source, target, *meant in linked:
        if (now := _meant(resolve_link(target, source, named))) != tuple(meant):
            sql = "UPDATE links SET path = $1, ambiguous = $2 WHERE note_id = $3 AND seq = $4"
            db.execute(sql, (*now, note_id, seq)).fetchall()


def _meant(found: Resolution) -> tuple[str | None, str]:
    return found.path, json.dumps(found.ambiguous, ensure_ascii=False) if found.ambiguous else "[]"


def sources_that_could_mean(db: Connection, files: Iterable[str]) -> list[str]:
    """The notes with a link that is looked up by the name of one of these files."""
    sql = f"""SELECT DISTINCT n.path FROM links l JOIN notes n ON n.id = l.note_id
              WHERE {db.dialect.in_texts("l.key", "$1")} ORDER BY n.path"""
    return [path for (path,) in db.execute(sql, (TextList(_keys(files)),))]


def _keys(files: Iterable[str]) -> list[str]:
    """What links are looked up by that could mean one of these files."""
    return sorted({key for path in files for key in lookup_keys(path)})


def links(db: Connection, to: str | None = None, source: str | None = None) -> Iterator[StoredLink]:
    """The links that mean this file (a conflict copy's only repeat its note's), or those of a note; else every link.
    Asked at once, and read when they are wanted."""
    where = ""
    values: list[Value] = []
    if to is not None:
        where = """WHERE l.path = $1 AND s.path != l.path
                     AND instr(coalesce(s.hidden, ''), $2) != 1"""
        values = [to, COPY_REASON]
    elif source is not None:
        where = "WHERE s.path = $1"
        values = [source]
    sql = f"""SELECT s.id, s.path, l.form, l.target, l.subpath, l.display, l.line, l.path, l.ambiguous
              FROM links l JOIN notes s ON s.id = l.note_id {where} ORDER BY s.path, l.seq"""
    rows = db.execute(sql, values)
    return (StoredLink._make((*link, tuple(json.loads(ambiguous)))) for *link, ambiguous in rows)


def outline(db: Connection, path: str) -> Outline | None:
    """What is shown of a note that is read."""
    if (row := known(db, path)) is None:
        return None
    tags: Any = db.execute(
        "SELECT tag, source FROM tags WHERE note_id = $1 ORDER BY seq", (row.id,)
    )
    aliases = db.execute("SELECT alias FROM aliases WHERE note_id = $1 ORDER BY seq", (row.id,))
    return Outline(
        row, list(tags), tuple(alias for (alias,) in aliases), list(links(db, source=path))
    )


# A copy whose name nobody else gives is left out of recall while its note is there; one with a name that people give too
# ("Chapter 2") only while its text is akin to the note's. A note that simplemem itself named is no copy. Nothing else
# decides: an index equals one made afresh from the vault and its log.
def copy_at(db: Connection, path: str) -> tuple[ConflictName, str] | None:
    """What the name of a file says of the note it would be a copy of, and that note.

    None when that note is not there, or when the log says that simplemem gave this file its name. The table of changes
    must have all that is in the log about this path.
    """
    if (name := parse_conflict_name(path)) is None:
        return None
    key = compare_key(name.original)
    named = files_named(db, key.rsplit("/", 1)[-1])
    original = next((each for each in named if compare_key(each) == key and each != path), None)
    if original is None or is_named_by_us(db, path):
        return None
    return name, original


def copies_of(db: Connection, originals: Iterable[str]) -> list[str]:
    """The files that are copies of one of these notes, by their names."""
    keys = sorted({compare_key(path) for path in originals})
    sql = f"SELECT path FROM files WHERE {db.dialect.in_texts('copy_of', '$1')} ORDER BY path"
    return [path for (path,) in db.execute(sql, (TextList(keys),))]


def conflict_copies(db: Connection) -> list[tuple[str, str, str]]:
    """Every conflict copy of a note that is there, with that note and what made it."""
    sql = """SELECT f.path, n.hidden IS NULL FROM files f LEFT JOIN notes n ON n.path = f.path
             WHERE f.copy_of IS NOT NULL ORDER BY f.path"""
    files: Any = db.execute(sql).fetchall()
    return [
        (path, copy[1], copy[0].maker)
        for path, takes_part in files
        if (copy := copy_at(db, path)) is not None
        and (copy[0].certain or not takes_part or not is_note(path))
    ]
