"""Rows of notes, files and links: writing, renaming, removing and finding them.

A link is resolved when its note is written, and again when a file that it could mean is added,
removed or moved: links are looked up by the name of that file. So are conflict copies.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator
from functools import cache, partial
from typing import Any

from simplemem.index.api import (
    SIZE_OF_MOVED,
    NameRow,
    NoteRow,
    Outline,
    ParsedNote,
    Stat,
    StoredLink,
    VectorSpace,
)
from simplemem.index.changes import is_named_by_us
from simplemem.index.engine import (
    LAST,
    Connection,
    IntegerList,
    TextList,
    Value,
    marks,
    read_integer,
)
from simplemem.index.terms.tokens import NoteTokens, SegmentBuilder
from simplemem.index.terms.writer import add_notes
from simplemem.note.body import Link
from simplemem.note.names import (
    COPY_REASON,
    ConflictName,
    base_name,
    compare_key,
    name_of,
    parse_conflict_name,
)
from simplemem.note.note import Note, filter_pairs
from simplemem.note.words import words_key
from simplemem.obsidian.settings import FilesNamed, Resolution, lookup_keys, name_key, resolve_link
from simplemem.vault.values import Entry

# The tables whose rows belong to a note, with their columns; the first is the id of the note.
OF_NOTE = {
    "aliases": "note_id, seq, alias, key",
    "names": "note_id, seq, key, is_alias",
    "tags": "note_id, seq, tag, source",
    "tag_pairs": "note_id, key, value",
    "properties": "note_id, seq, key, value",
    "links": "note_id, seq, form, target, subpath, display, line, key, path, ambiguous",
}
_ROW_COLUMNS = ", ".join(f"n.{name}" for name in NoteRow._fields)

_CONTENT_COLUMNS = (
    "sha256", "size", "mtime_ns", "ctime_ns", "checked_ns",
    "title", "title_key", "description", "type", "type_key", "created", "modified", "words",
    "hidden", "problem", "private", "embedded", "refused", "rev",
)  # fmt: skip
_COLUMNS = (*_CONTENT_COLUMNS, "path", "path_key", "name_key")
_INSERT = f"INSERT INTO notes ({', '.join(_COLUMNS)}) VALUES ({marks(len(_COLUMNS))}) RETURNING id"
# The columns that follow from the path are left out: SQLite would write their indexes again.
_ASSIGNMENTS = ", ".join(
    f"{column} = ${number}" for number, column in enumerate(_CONTENT_COLUMNS, 1)
)
_UPDATE = f"UPDATE notes SET {_ASSIGNMENTS} WHERE id = ${len(_CONTENT_COLUMNS) + 1}"
# "0" is the character after "/", so the range has all paths that begin with the folder and "/".
_IS_BELOW = "path = $1 OR (path >= $1 || '/' AND path < $1 || '0')"

_MAX_WAITING_TOKENS = 200_000  # tokens that `PendingRows` keeps; more are written at once


def stat_of(entry: Entry) -> Stat:
    """Return the size and times of a listed file, by which a later change of it is noticed."""
    return Stat(entry.size, entry.mtime_ns, entry.ctime_ns)


def is_note(path: str) -> bool:
    """Return whether a path is that of a note: it ends in `.md`, in any case. Looks at no file."""
    return path[-3:].lower() == ".md"


# -- writing


class PendingRows:
    """Rows, words and vectors of notes that are still to be written.

    For one transaction. Nobody else writes meanwhile, so which files have a name is read once and
    remembered. What was added is not in the index before `write`.
    """

    def __init__(self, db: Connection) -> None:
        self.db = db
        self.files_named = cache(partial(files_named, db))
        self.rev: int | None = None  # of the change that all these rows belong to
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        self._words = SegmentBuilder()
        self._vectors: list[tuple[int, bytes]] = []

    def add(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keep rows to be inserted by `sql` when `write` is called."""
        self._waiting.setdefault(sql, []).extend(rows)

    def add_words(self, note: NoteTokens) -> None:
        """Keep the words of a note for `write`.

        If over 200,000 tokens of earlier notes wait, these are written first, to save memory.
        """
        if len(self._words.tokens) > _MAX_WAITING_TOKENS:
            self._write_words()
        self._words.add(note)

    def add_vectors(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep pairs of a place id and its vector for `write`."""
        self._vectors.extend(vectors)

    def replace(
        self,
        table: str,
        note_id: int,
        new_rows: list[tuple[Any, ...]],
        *,
        is_new: bool,
    ) -> None:
        """Keep rows of a note for `write`, which replace all rows that a table has of the note.

        `new_rows` are sorted. Old rows that are equal to the first new rows stay, and only the
        further new rows are kept. If any old row differs, all old rows are deleted now. If the note
        `is_new`, it has no rows yet, and the table is not queried.
        """
        columns = OF_NOTE[table]
        if not is_new:
            # With ORDER BY, SQLite would prepare the statement again for each note.
            sql = f"SELECT {columns} FROM {table} WHERE note_id = $1"
            old_rows = sorted(self.db.execute(sql, (note_id,)))
            if old_rows == new_rows:
                return
            if old_rows == new_rows[: len(old_rows)]:
                new_rows = new_rows[len(old_rows) :]  # usually, because text was appended
            else:
                self.db.execute(f"DELETE FROM {table} WHERE note_id = $1", (note_id,)).fetchall()
        if new_rows:
            count = len(columns.split())
            self.add(f"INSERT INTO {table} ({columns}) VALUES ({marks(count)})", new_rows)

    def write(self) -> None:
        """Write all rows, words and vectors that were added, and forget them here."""
        for sql, rows in self._waiting.items():
            self.db.executemany(sql, rows)
        self._waiting.clear()
        self._write_words()
        self.db.vectors.write(self._vectors)
        self._vectors = []

    def _write_words(self) -> None:
        """Write the words as a new segment of the term index; merge small segments if due."""
        if not self._words.note_ids:
            return
        segments_to_merge = add_notes(self.db, self._words)
        self._words = SegmentBuilder()
        if segments_to_merge:
            # Imported late, because it needs numpy.
            from simplemem.index.terms.merging import merge_packed

            merge_packed(self.db, segments_to_merge)


def put(
    rows: PendingRows,
    note_id: int | None,
    parsed: ParsedNote,
    hidden: str | None,
    private: str | None,
) -> int:
    """Write a note's row in `notes`, add its rows of other tables to `rows`, and return its id.

    `note_id` is the note that is replaced, None for a new one; it must have the path of `parsed`
    already (`rename`). `hidden` is the reason why the note is left out of search, `private` why it
    is not sent to services; None for no reason. Writes none of its text, words and vectors; see
    `put_text` in text.py.
    """
    db = rows.db
    is_new = note_id is None
    if rows.rev is None:
        rows.rev = next_rev(db)

    values = _content_values(parsed, hidden, private, rows.rev)
    if note_id is None:
        name_keys = _name_keys(parsed.path)
        cursor = db.execute(_INSERT, (*values, parsed.path, *name_keys))
        note_id = read_integer(cursor)
    else:
        db.execute(_UPDATE, (*values, note_id)).fetchall()

    rows_by_table = _rows_of_note(note_id, parsed, rows.files_named)
    for table, table_rows in rows_by_table.items():
        rows.replace(table, note_id, table_rows, is_new=is_new)
    return note_id


def _content_values(
    parsed: ParsedNote,
    hidden: str | None,
    private: str | None,
    rev: int,
) -> tuple[Value, ...]:
    """Return the values of `_CONTENT_COLUMNS` for a note that was read just now.

    `hidden` and `private` are reasons or None. By these values, a visible note waits for vectors,
    even if it is private. A hidden note needs none, so it counts as embedded.
    """
    note = parsed.note
    metadata = parsed.metadata
    words = note.content.split()
    embedded = int(hidden is not None)
    refused = None
    return (
        note.sha256,
        *parsed.stat,
        time.time_ns(),  # checked_ns
        metadata.title,
        compare_key(metadata.title),
        metadata.description,
        metadata.type,
        compare_key(metadata.type or "memory"),
        metadata.created,
        metadata.modified,
        len(words),
        hidden,
        note.problem,
        private,
        embedded,
        refused,
        rev,
    )


def _rows_of_note(
    note_id: int, parsed: ParsedNote, files_named: FilesNamed
) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of a note for each table of `OF_NOTE`, sorted.

    Links are resolved by `files_named`.
    """
    note = parsed.note
    titles = (parsed.metadata.title, base_name(parsed.path))
    alias_rows = [
        (note_id, seq, alias, compare_key(alias)) for seq, alias in enumerate(note.aliases)
    ]
    tag_rows = [(note_id, seq, tag.name, tag.source) for seq, tag in enumerate(note.tags)]
    property_rows = [
        (note_id, seq, str(key), _as_json(value))
        for seq, (key, value) in enumerate(note.header.properties.items())
    ]
    link_rows = [
        (note_id, seq, *_link_values(link, parsed.path, files_named))
        for seq, link in enumerate(note.links)
    ]
    return {
        "aliases": alias_rows,
        "names": _name_rows(note_id, titles, note.aliases),
        "tags": tag_rows,
        "tag_pairs": _tag_pair_rows(note_id, note),
        "properties": property_rows,
        "links": link_rows,
    }


def _tag_pair_rows(note_id: int, note: Note) -> list[tuple[Any, ...]]:
    """Return the rows of (note id, key, value) by which a filter by tags finds a note, sorted.

    A note with open tasks has the pair "task", "open" too.
    """
    pairs = {
        (note_id, key, compare_key(value))
        for key, value in filter_pairs(note.tags, note.header.properties)
    }
    if note.open_tasks:
        pairs.add((note_id, "task", "open"))
    return sorted(pairs)


def _name_rows(
    note_id: int, titles: Iterable[str], aliases: Iterable[str]
) -> list[tuple[Any, ...]]:
    """Return the rows of the table `names` for a note: the words of each title and alias.

    Names with the same words have one row. It is an alias only if no title has these words. A name
    without words is left out.
    """
    is_alias_by_key = {words_key(alias): 1 for alias in aliases}
    is_alias_by_key |= {words_key(title): 0 for title in titles}
    is_alias_by_key.pop("", None)
    return [
        (note_id, seq, key, is_alias) for seq, (key, is_alias) in enumerate(is_alias_by_key.items())
    ]


def _link_values(link: Link, source: str, files_named: FilesNamed) -> tuple[Any, ...]:
    """Return the columns of a link, `form` to `ambiguous`, resolved by `files_named`."""
    resolution = resolve_link(link.target, source, files_named)
    path, candidates = _resolution_values(resolution)
    return (
        link.kind(),
        link.target,
        link.subpath,
        link.display,
        link.line,
        name_key(link.target),
        path,
        candidates,
    )


def _as_json(value: Any) -> str:
    """Return a value of the frontmatter as JSON. A value that JSON lacks becomes its text."""
    if type(value) is str:  # nearly all are, and the general encoder is slower
        return json.encoder.encode_basestring(value)
    return json.dumps(value, ensure_ascii=False, default=str, allow_nan=True)


def _name_keys(path: str) -> tuple[str, str]:
    """Return two keys of a path: of the path without `.md`, and of the file name without `.md`."""
    path_key = compare_key(name_of(path))
    file_name_key = compare_key(base_name(path))
    return path_key, file_name_key


def remove(db: Connection, note_id: int) -> None:
    """Remove a note's row in `notes` and its rows in the tables of `OF_NOTE`.

    Links to it are not resolved again. Its text is not removed; see `remove_text` in text.py.
    """
    next_rev(db)  # by this number, others notice the removal
    for table in OF_NOTE:
        db.execute(f"DELETE FROM {table} WHERE note_id = $1", (note_id,)).fetchall()
    db.execute("DELETE FROM notes WHERE id = $1", (note_id,)).fetchall()


def rename(db: Connection, note_id: int, path: str) -> None:
    """Give a note another path, which must be free. Everything else of it stays, its vectors too.

    The caller must `put` the note again: its title may be the name of its file.
    """
    next_rev(db)  # by this number, others notice the new name
    name_keys = _name_keys(path)
    sql = "UPDATE notes SET path = $1, path_key = $2, name_key = $3 WHERE id = $4"
    db.execute(sql, (path, *name_keys, note_id)).fetchall()


def record_move(db: Connection, note_id: int, path: str) -> None:
    """Give a note the path that its file was moved to, and mark it as not yet read again there."""
    rename(db, note_id, path)
    db.execute("UPDATE notes SET size = $1 WHERE id = $2", (SIZE_OF_MOVED, note_id)).fetchall()


def record_stat(db: Connection, note_id: int, stat: Stat, modified: str | None = None) -> None:
    """Record the stat and date of a file that was read again and has the same bytes.

    With `modified` None, the date stays. `rev` stays, because the note has not changed.
    """
    sql = """
        UPDATE notes SET size = $1, mtime_ns = $2, ctime_ns = $3, checked_ns = $4,
                         modified = coalesce($5, modified)
        WHERE id = $6"""
    db.execute(sql, (*stat, time.time_ns(), modified, note_id)).fetchall()


def newest_rev(db: Connection) -> int:
    """Return the number of the last change of any note, also of a removal; 0 before the first."""
    return read_integer(db.execute("SELECT value FROM meta WHERE key = 'rev'"))


def next_rev(db: Connection) -> int:
    """Count the change that is being made, and return its number. For a write transaction."""
    sql = """
        UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE key = 'rev'
        RETURNING value"""
    return read_integer(db.execute(sql))


# -- finding


def count(db: Connection) -> int:
    """Return how many notes the index has, hidden ones included."""
    return read_integer(db.execute("SELECT count(*) FROM notes"))


def rows(db: Connection, where: str, *values: Value) -> list[NoteRow]:
    """Return the rows of `notes n` for which an SQL condition holds.

    `where` is the condition, and may end with ORDER BY. `values` are those of its `$1`, `$2`, ….
    """
    answer = db.execute(f"SELECT {_ROW_COLUMNS} FROM notes n WHERE {where}", values)
    return [NoteRow._make(row) for row in answer]


def row_at(db: Connection, path: str) -> NoteRow | None:
    """Return the row of the note at a path; None if the index has none there."""
    note_rows = rows(db, "path = $1", path)
    return note_rows[0] if note_rows else None


def rows_at(db: Connection, paths: Iterable[str] | None = None) -> dict[str, NoteRow]:
    """Return rows of notes by path: of all notes, or of those at `paths` that are indexed."""
    if paths is None:
        note_rows = rows(db, "TRUE")
    else:
        is_one_of_the_paths = db.dialect.in_texts("path", "$1")
        note_rows = rows(db, is_one_of_the_paths, TextList(paths))
    return {row.path: row for row in note_rows}


def below(db: Connection, path: str) -> tuple[dict[str, NoteRow], set[str]]:
    """Return what is at a path or at any depth below it: rows of notes by path, and files.

    The files are the paths of notes and attachments.
    """
    files = db.execute(f"SELECT path FROM files WHERE {_IS_BELOW}", (path,))
    note_rows = rows(db, _IS_BELOW, path)

    rows_by_path = {row.path: row for row in note_rows}
    file_paths = {file for (file,) in files}
    return rows_by_path, file_paths


def rows_of(db: Connection, ids: Iterable[int]) -> dict[int, NoteRow]:
    """Return rows of notes by id. Notes that no longer exist are absent."""
    is_one_of_the_ids = db.dialect.in_integers("id", "$1")
    note_rows = rows(db, is_one_of_the_ids, IntegerList(ids))
    return {row.id: row for row in note_rows}


def paths_of(db: Connection, ids: Iterable[int]) -> dict[int, str]:
    """Return paths of notes by id. Notes that no longer exist are absent."""
    sql = f"SELECT id, path FROM notes WHERE {db.dialect.in_integers('id', '$1')}"
    return dict(db.execute(sql, (IntegerList(ids),)))


def find_by_name(db: Connection, key: str) -> tuple[list[str], ...]:
    """Return the notes called `key` as four lists of paths: by path, file name, title, alias.

    `key` is a result of `compare_key`. A note may be in several lists; each is in path order.
    Hidden notes are among them.
    """
    statements = (
        "SELECT path FROM notes WHERE path_key = $1 ORDER BY path",
        "SELECT path FROM notes WHERE name_key = $1 ORDER BY path",
        "SELECT path FROM notes WHERE title_key = $1 ORDER BY path",
        """SELECT DISTINCT n.path FROM aliases a JOIN notes n ON n.id = a.note_id
           WHERE a.key = $1 ORDER BY n.path""",
    )
    results = []
    for sql in statements:
        paths = [path for (path,) in db.execute(sql, (key,))]
        results.append(paths)
    return tuple(results)


def query_names(db: Connection, title: str, keys: Iterable[str]) -> Iterable[tuple[Any, ...]]:
    """Query the visible notes with a given name: rows of (note id, is_alias, key).

    `is_alias` is 1 for an alias, and 0 for a title or file name. `keys` are results of `words_key`;
    `key` is the one of them that the name has. It is "" for a name that equals `title` letter for
    letter, except for case and for marks such as "?" at the end of `title`. A note may come several
    times. The rows are read when they are iterated.
    """
    is_one_of_the_keys = db.dialect.in_texts("k.key", "$3")
    sql = f"""
        SELECT id, 0, '' FROM notes
        WHERE hidden IS NULL AND (title_key IN ($1, $2) OR name_key IN ($1, $2))
        UNION ALL
        SELECT n.id, 1, '' FROM aliases a JOIN notes n ON n.id = a.note_id
        WHERE n.hidden IS NULL AND a.key IN ($1, $2)
        UNION ALL
        SELECT n.id, k.is_alias, k.key FROM names k JOIN notes n ON n.id = k.note_id
        WHERE n.hidden IS NULL AND {is_one_of_the_keys}"""
    title_key = compare_key(title)
    key_without_marks = compare_key(title.rstrip("?？!. "))
    values = (title_key, key_without_marks, TextList(keys))
    names: Iterable[tuple[Any, ...]] = db.execute(sql, values)
    return names


def paths_by_property(db: Connection, key: str) -> dict[str, str]:
    """Return the paths of the notes that have the property `key`, by `str` of its value.

    If several notes have the same value, the first path counts. Hidden notes are among them.
    """
    sql = """
        SELECT value, path FROM properties JOIN notes ON id = note_id
        WHERE key = $1 ORDER BY path DESC"""
    paths = {}
    for json_value, path in db.execute(sql, (key,)):
        value = json.loads(json_value)
        paths[str(value)] = str(path)  # the first path comes last
    return paths


def paths_with_property(db: Connection, key: str, value: str) -> list[str]:
    """Return the paths of the notes whose property `key` has a value, in their order.

    `value` is in small ASCII letters. In the frontmatter, it may be a text, or a number or boolean
    that is written so; case does not matter. Hidden notes are among them.
    """
    sql = """
        SELECT path FROM properties JOIN notes ON id = note_id
        WHERE key = $1 AND lower(value) IN ($2, $3) ORDER BY path"""
    values = (key, json.dumps(value), value)
    return [str(path) for (path,) in db.execute(sql, values)]


def complete_name(
    db: Connection,
    prefix: str,
    limit: int,
    last: Iterable[str],
) -> list[tuple[str, bool]]:
    """Return up to `limit` visible notes whose file name or path starts with `prefix`.

    Case does not matter. Each note is a pair: its path, and whether no other note has its file
    name. Notes in the folders `last` come last.
    """
    sql = f"""
        SELECT path, NOT EXISTS (
            SELECT 1 FROM notes o WHERE o.name_key = notes.name_key AND o.id <> notes.id
        )
        FROM notes
        WHERE hidden IS NULL
          AND (substr(path_key, 1, length($1)) = $1 OR substr(name_key, 1, length($1)) = $1)
        ORDER BY EXISTS (
            SELECT 1 FROM {db.dialect.texts("$2", "f")}
            WHERE substr(path_key, 1, length(f.value)) = f.value
        ), path
        LIMIT $3"""
    last_keys = [compare_key(folder) for folder in last]
    rows = db.execute(sql, (compare_key(prefix), TextList(last_keys), limit))
    return [(path, bool(is_unique)) for path, is_unique in rows]


def all_names(db: Connection) -> list[NameRow]:
    """Return the names of all visible notes: a row per note with the alias "", one per alias.

    The rows have no order.
    """
    sql = """
        SELECT path, title, '' FROM notes WHERE hidden IS NULL
        UNION ALL
        SELECT n.path, n.title, a.alias FROM aliases a JOIN notes n ON n.id = a.note_id
        WHERE n.hidden IS NULL"""
    rows: Any = db.execute(sql)
    return [NameRow(*row) for row in rows]


def folders_with_notes(db: Connection, folders: Iterable[str]) -> tuple[str, ...]:
    """Return those of `folders` in or below which there is a note, even if all are hidden.

    Each folder ends in "/".
    """
    sql = f"SELECT EXISTS (SELECT 1 FROM notes WHERE path_key >= $1 AND path_key < $1 || '{LAST}')"
    used_folders = []
    for folder in folders:
        key = compare_key(folder)
        has_notes = db.execute(sql, (key,)).get
        if has_notes:
            used_folders.append(folder)
    return tuple(used_folders)


def vector_space(db: Connection) -> VectorSpace:
    """Return the embedder whose vectors the index has; its name is "" before the first embedder."""
    row = db.execute("SELECT embedder, dimension, remote FROM vector_space").fetchone()
    if row is None:
        return VectorSpace()
    embedder, dimension, remote = row
    return VectorSpace(
        embedder=embedder,
        dimension=dimension,
        remote=bool(remote),
    )


def waiting(db: Connection) -> int:
    """Return how many notes wait for their vectors."""
    return read_integer(db.execute("SELECT count(*) FROM notes WHERE embedded = 0"))


# -- files and links


def files_named(db: Connection, key: str) -> list[str]:
    """Return the paths of the files with a name, in order. `key` is a result of `name_key`."""
    # With ORDER BY, SQLite would prepare the statement again for each name.
    answer = db.execute("SELECT path FROM files WHERE name_key = $1", (key,))
    return sorted(path for (path,) in answer)


def named_in_memory(paths: Iterable[str]) -> FilesNamed:
    """Return a function that does for these paths what `files_named` does for the index.

    It looks in a dictionary, which is cheaper than SQL for many links.
    """
    names: dict[str, list[str]] = {}
    for path in sorted(paths):
        names.setdefault(name_key(path), []).append(path)
    return lambda key: names.get(key, ())


def all_files(db: Connection) -> set[str]:
    """Return the path of every file that a link can mean: notes and attachments."""
    return {path for (path,) in db.execute("SELECT path FROM files")}


def record_files(db: Connection, added: Collection[str], removed: Collection[str]) -> None:
    """Record which files were added and removed, and resolve again the links that could mean them.

    `added` may have files that are recorded already. The notes of removed files stay.
    """
    added = _without_stored_files(db, added)
    if not added and not removed:
        return

    sql = "INSERT INTO files (path, name_key, copy_of) VALUES ($1, $2, $3)"
    db.executemany(sql, [_file_row(path) for path in added])
    db.executemany("DELETE FROM files WHERE path = $1", [(path,) for path in removed])

    _resolve_links_again(db, _lookup_keys({*added, *removed}))


def _without_stored_files(db: Connection, paths: Collection[str]) -> list[str]:
    """Return those of some paths that the table of files does not have yet, in any order."""
    if not paths:
        return []
    sql = f"""
        SELECT c.value FROM {db.dialect.texts("$1", "c")}
        WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.path = c.value)"""
    return [str(path) for (path,) in db.execute(sql, (TextList(paths),))]


def _resolve_links_again(db: Connection, keys: Iterable[str]) -> None:
    """Resolve the links with one of these lookup keys, and write those that changed."""
    sql = f"""
        SELECT l.note_id, l.seq, n.path, l.target, l.path, l.ambiguous
        FROM links l JOIN notes n ON n.id = l.note_id
        WHERE {db.dialect.in_texts("l.key", "$1")}"""
    stored_links = db.execute(sql, (TextList(keys),)).fetchall()

    files_of_name = cache(partial(files_named, db))
    update = "UPDATE links SET path = $1, ambiguous = $2 WHERE note_id = $3 AND seq = $4"
    for note_id, seq, source, target, old_path, old_candidates in stored_links:
        resolution = resolve_link(target, source, files_of_name)
        path, candidates = _resolution_values(resolution)
        if path != old_path or candidates != old_candidates:
            db.execute(update, (path, candidates, note_id, seq)).fetchall()


def _file_row(path: str) -> tuple[str, str, str | None]:
    """Return the row of a file: its path, the key of its name, and `copy_of`.

    If the name is that of a conflict copy, `copy_of` is the key of the note's path, else None.
    """
    copy = parse_conflict_name(path)
    copy_of = None if copy is None else compare_key(copy.original)
    return path, name_key(path), copy_of


def _resolution_values(resolution: Resolution) -> tuple[str | None, str]:
    """Return what is stored of a resolved link: its path, and a JSON list of candidates.

    The path is None for an unresolved link. The list is empty unless there are several candidates.
    """
    if not resolution.ambiguous:
        return resolution.path, "[]"
    return resolution.path, json.dumps(resolution.ambiguous, ensure_ascii=False)


def sources_that_could_mean(db: Connection, files: Iterable[str]) -> list[str]:
    """Return the paths of the notes with a link that could mean one of these files, in order.

    Such a link is looked up by the name of the file, and may mean another file of that name.
    """
    sql = f"""
        SELECT DISTINCT n.path FROM links l JOIN notes n ON n.id = l.note_id
        WHERE {db.dialect.in_texts("l.key", "$1")} ORDER BY n.path"""
    keys = _lookup_keys(files)
    return [path for (path,) in db.execute(sql, (TextList(keys),))]


def _lookup_keys(files: Iterable[str]) -> list[str]:
    """Return the keys of all links that could mean one of these files, sorted."""
    keys: set[str] = set()
    for path in files:
        keys.update(lookup_keys(path))
    return sorted(keys)


def links(db: Connection, to: str | None = None, source: str | None = None) -> Iterator[StoredLink]:
    """Query the links of other notes to the file `to`, or else those of the note `source`.

    Without either, all links are queried. For `to`, links of conflict copies are left out, because
    they repeat those of their notes. The rows are read when they are iterated.
    """
    where = ""
    values: list[Value] = []
    if to is not None:
        # The reason why a conflict copy is hidden begins with COPY_REASON.
        where = """WHERE l.path = $1 AND s.path != l.path
                     AND instr(coalesce(s.hidden, ''), $2) != 1"""
        values = [to, COPY_REASON]
    elif source is not None:
        where = "WHERE s.path = $1"
        values = [source]
    sql = f"""
        SELECT s.id, s.path, l.form, l.target, l.subpath, l.display, l.line, l.path, l.ambiguous
        FROM links l JOIN notes s ON s.id = l.note_id {where} ORDER BY s.path, l.seq"""
    return map(_stored_link, db.execute(sql, values))


def _stored_link(row: tuple[Any, ...]) -> StoredLink:
    """Return a row of `links` as a link. Its last column is a JSON list of candidates."""
    *columns, ambiguous = row
    candidates = tuple(json.loads(ambiguous))
    return StoredLink._make((*columns, candidates))


def outline(db: Connection, path: str) -> Outline | None:
    """Return the row, tags (each with its source), aliases and links of the note at a path.

    Returns None if the index has no note there.
    """
    row = row_at(db, path)
    if row is None:
        return None
    sql = "SELECT tag, source FROM tags WHERE note_id = $1 ORDER BY seq"
    tags: Any = db.execute(sql, (row.id,))
    sql = "SELECT alias FROM aliases WHERE note_id = $1 ORDER BY seq"
    aliases = db.execute(sql, (row.id,))
    return Outline(
        row=row,
        tags=list(tags),
        aliases=tuple(alias for (alias,) in aliases),
        links=list(links(db, source=path)),
    )


# -- conflict copies

# Some names of copies are `certain`: no person would choose them. A copy with such a name is hidden
# from search while its note exists. A copy with a name that people choose too ("Chapter 2") is
# hidden only while its text is similar to the note's. A note that simplemem itself named is no
# copy. Nothing else decides, so a rebuilt index hides the same copies.


def copy_at(db: Connection, path: str) -> tuple[ConflictName, str] | None:
    """Return the parsed name of a conflict copy, and the path of the note that it is a copy of.

    Returns None if the name is not that of a copy, if that note does not exist, or if the table of
    changes says that simplemem gave this file its name. The caller has brought that table up to
    date. The contents are not compared.
    """
    name = parse_conflict_name(path)
    if name is None:
        return None
    key = compare_key(name.original)
    base_key = key.rsplit("/", 1)[-1]
    files = files_named(db, base_key)
    originals = [file for file in files if file != path and compare_key(file) == key]
    if not originals or is_named_by_us(db, path):
        return None
    return name, originals[0]


def copies_of(db: Connection, originals: Iterable[str]) -> list[str]:
    """Return the files that are copies of one of these notes, by their names alone, in order."""
    keys = sorted({compare_key(path) for path in originals})
    sql = f"SELECT path FROM files WHERE {db.dialect.in_texts('copy_of', '$1')} ORDER BY path"
    return [path for (path,) in db.execute(sql, (TextList(keys),))]


def conflict_copies(db: Connection) -> list[tuple[str, str, str]]:
    """Return each conflict copy whose note still exists: (copy, note, program that made it).

    A note with a name that people choose too is left out unless it is hidden from search. Any file
    that simplemem named itself is left out.
    """
    sql = """
        SELECT f.path, n.hidden IS NULL FROM files f LEFT JOIN notes n ON n.path = f.path
        WHERE f.copy_of IS NOT NULL ORDER BY f.path"""
    copies = []
    for path, is_visible in db.execute(sql).fetchall():
        copy = copy_at(db, path)
        if copy is None:
            continue
        name, original = copy
        if name.certain or not is_visible or not is_note(path):
            copies.append((path, original, name.maker))
    return copies
