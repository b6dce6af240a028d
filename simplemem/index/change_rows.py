"""The rows of the changes in the log, and of the lineages that changes belong to.

The file of the log (`vault/folder/log.py`) is the source; `catch_up` adds what it has more than the
table. A lineage is a note as the log knows it, under all paths that it ever had.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from simplemem.index.authors import author_of
from simplemem.index.engine import SET_META, Connection, Engine, Row, marks
from simplemem.note.words import well_formed
from simplemem.vault.folder.log import Log
from simplemem.vault.versions import Version, number_of, versions_in

COLUMNS = (
    "version, step, path, new_path, at, op, who, tool, reason, before, after, trash, kind, lineage"
)
_INSERT = f"""
    INSERT INTO changes (seq, {COLUMNS}, author)
    SELECT coalesce(max(seq), 0) + 1, {marks(15)} FROM changes"""
_BEGIN_LINEAGE = """
    INSERT INTO lineages (id, path, there, holds)
    SELECT coalesce(max(id), 0) + 1, $1, 1, 1 FROM lineages RETURNING id"""
_GIVE_UP_PATH = "UPDATE lineages SET holds = 0 WHERE path = $1 AND holds = 1"
# The first change of a note at a path, or the move that brought it there.
_NAMED_HERE = """
    SELECT c.tool, c.before, c.new_path FROM lineages l JOIN changes c ON c.lineage = l.id
    WHERE l.path = $1 AND l.holds = 1 AND l.there = 1 AND (c.path = $1 OR c.new_path = $1)
      AND c.op <> 'recovered'
    ORDER BY c.seq"""

_TAIL_BYTES = 1024  # of the lines read last; a log with others in their place is another log


class _Unread(NamedTuple):
    """The lines of the log that the table lacks.

    They begin at the byte `offset`. In another log than the one that was read, these are all.
    """

    offset: int
    lines: bytes
    is_other_log: bool

    @property
    def is_nothing(self) -> bool:
        return not self.lines and not self.is_other_log


def catch_up(database: Engine, log: Log) -> None:
    """Add the changes that the log has more than the table; another log is read from its start."""
    with database.reading() as db:
        unread = _read_unread(db, log)
    if unread.is_nothing:
        return

    with database.writing() as db:
        unread = _read_unread(db, log)  # another process may have added some since
        if unread.is_nothing:
            return
        if unread.is_other_log:
            db.execute("DELETE FROM changes").fetchall()
            db.execute("DELETE FROM lineages").fetchall()
        for version in versions_in(unread.lines.split(b"\n")):
            _insert(db, version)

        offset = unread.offset + len(unread.lines)
        tail = unread.lines[-_TAIL_BYTES:]
        db.execute(SET_META, ("log", f"{offset} {len(tail)} {_digest(tail)}")).fetchall()


def _read_unread(db: Connection, log: Log) -> _Unread:
    position = db.execute("SELECT value FROM meta WHERE key = 'log'").get
    if position is None:
        position = f"0 0 {_digest(b'')}"
    offset_text, tail_size_text, tail_digest = position.split()
    offset = int(offset_text)
    tail_size = int(tail_size_text)

    lines = log.whole_lines(offset - tail_size)
    if _digest(lines[:tail_size]) == tail_digest:
        return _Unread(offset, lines[tail_size:], is_other_log=False)
    if log.refresh():
        return _read_unread(db, log)
    return _Unread(0, log.whole_lines(), is_other_log=True)


def _digest(tail: bytes) -> str:
    return hashlib.blake2b(tail, digest_size=16).hexdigest()


def _insert(db: Connection, version: Version) -> None:
    """Add a change and the lineage that it belongs to."""
    path = well_formed(version.path)
    new_path = None if version.new_path is None else well_formed(version.new_path)
    lineage = _update_lineages(db, version, path, new_path)

    origin = author_of(version)
    author = "human" if origin.kind == "human" else well_formed(origin.name).casefold()
    values = (
        version.number,
        number_of(version.group),
        path,
        new_path,
        version.when,
        version.op,
        well_formed(version.who),
        well_formed(version.tool),
        well_formed(version.reason),
        version.before,
        version.after,
        version.trash,
        version.kind,
        lineage,
        author,
    )
    db.execute(_INSERT, values).fetchall()


def _update_lineages(db: Connection, version: Version, path: str, new_path: str | None) -> int:
    """Return the lineage of a change, after bringing it up to date.

    It is that of the note at the path, or of the note that we deleted there. A recovered text
    changes no lineage, and may have none: 0.
    """
    statement = "SELECT id, there FROM lineages WHERE path = $1 AND holds = 1"
    row: Row | None = db.execute(statement, (path,)).fetchone()
    if version.op == "recovered":
        return 0 if row is None else int(row[0])

    if row is None or version.op == "create":
        db.execute(_GIVE_UP_PATH, (path,)).fetchall()
        lineage = int(db.execute(_BEGIN_LINEAGE, (path,)).get)
        was_there = True
    else:
        lineage = int(row[0])
        was_there = bool(row[1])

    if new_path is not None:
        db.execute(_GIVE_UP_PATH, (new_path,)).fetchall()
    is_there = version.after is not None
    if new_path is not None or is_there != was_there:
        update = "UPDATE lineages SET path = $1, there = $2 WHERE id = $3"
        db.execute(update, (new_path or path, int(is_there), lineage)).fetchall()
    return lineage


def is_named_by_us(db: Connection, path: str) -> bool:
    """Return whether simplemem gave a note its name: it created or moved the note there.

    Not counted is what it only carried over from another computer (`sync`), or found there.
    """
    key = well_formed(path)
    changes = db.execute(_NAMED_HERE, (key,)).fetchall()
    if any(new_path == key for _, _, new_path in changes):
        return True
    if not changes:
        return False
    tool, before, _ = changes[0]
    return before is None and tool != "sync"
