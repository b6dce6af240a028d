"""The log of changes as a table, which grows from the file before each query.

Changes of hidden notes are hidden. So is the past of a note that was moved to a hidden place, or
that another program removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

from simplemem.errors import SimplememError
from simplemem.index.engine import (
    SET_META,
    Connection,
    DatabaseRow,
    Engine,
    TextList,
    Value,
    marks,
    read_integer,
)
from simplemem.models import is_called
from simplemem.note.names import path_of
from simplemem.note.words import well_formed
from simplemem.vault.folder.history import Log
from simplemem.vault.source import NoteSource
from simplemem.vault.values import (
    Version,
    format_version,
    last_before,
    no_version,
    number_of,
    versions_in,
)

# -- rows

COLUMNS = (
    "version, step, path, new_path, at, op, who, tool, reason, before, after, trash, kind, session,"
    " sources, lineage"
)
_INSERT = f"""
    INSERT INTO changes (seq, {COLUMNS}, author)
    SELECT coalesce(max(seq), 0) + 1, {marks(17)} FROM changes"""
# In `lineages`, `there` is 0 if the log says that the note was deleted at `path`. `holds` is 0 if
# another note has come to `path` since (docs/internals/history.md).
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

_TAIL_BYTES = 1024  # the end of what was read; if it differs now, the log is another one


class _Unread(NamedTuple):
    """The lines of the log that the table lacks, which begin at the byte `offset`.

    If `is_other_log`, the table was read from another log, and these are all lines of this one.
    """

    offset: int
    lines: bytes
    is_other_log: bool

    @property
    def is_nothing(self) -> bool:
        """Whether the table of changes has all that is in the log."""
        return not self.lines and not self.is_other_log


def catch_up(database: Engine, log: Log) -> None:
    """Add the changes of the log that the table lacks. Another log replaces the whole table.

    Does not write if none is missing. Raises what reading the log raises, and the errors of the
    engine.
    """
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
    """Return the lines of the log that the table lacks, by the offset and digest in `meta`.

    If the bytes before the offset are not those that were read last, a log with a remote is fetched
    first. If they still differ, this is another log, and all its lines are returned.
    """
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
    """Return a hash of the last bytes that were read of a log."""
    return hashlib.blake2b(tail, digest_size=16).hexdigest()


def _insert(db: Connection, version: Version) -> None:
    """Write a change as a row of the table, and update its lineage."""
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
        well_formed(version.session),
        _format_sources(version.sources),
        lineage,
        author,
    )
    db.execute(_INSERT, values).fetchall()


def _format_sources(sources: Sequence[str]) -> str:
    """Return sources as their column contains them: as JSON, "" if there are none."""
    return json.dumps(sources) if sources else ""


def _update_lineages(db: Connection, version: Version, path: str, new_path: str | None) -> int:
    """Update the lineage of the note that a change is of, and return its id.

    A lineage is one note as the log knows it, whatever its paths were. That of a change is the one
    that holds `path`; if none does, or the note was created, it is a new one. `new_path` is where
    the change moved the note, None if it did not. A recovered text updates no lineage; the result
    is 0 if no lineage holds its path.
    """
    statement = "SELECT id, there FROM lineages WHERE path = $1 AND holds = 1"
    row: DatabaseRow | None = db.execute(statement, (path,)).fetchone()
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
        current_path = new_path or path
        update = "UPDATE lineages SET path = $1, there = $2 WHERE id = $3"
        db.execute(update, (current_path, int(is_there), lineage)).fetchall()
    return lineage


def is_named_by_us(db: Connection, path: str) -> bool:
    """Return whether the note at a path has its name from simplemem, which created or moved it.

    False if simplemem found the note there, or only copied it from another computer (`sync`). Looks
    only at the table of changes, and does not bring it up to date.
    """
    key = well_formed(path)
    changes = db.execute(_NAMED_HERE, (key,)).fetchall()
    was_moved_here = any(new_path == key for _, _, new_path in changes)
    if was_moved_here:
        return True
    if not changes:
        return False

    tool, before, _ = changes[0]
    was_created = before is None
    return was_created and tool != "sync"


# -- authors

_RESERVED_NAMES = ("human", "unknown")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote something, and when at the latest, in UTC.

    `name` is that of an agent. The name and the time are "" if they are not known. Two origins that
    differ only in the time are equal.
    """

    kind: Literal["human", "agent", "unknown"]
    name: str = ""
    when: str = field(default="", compare=False)


HUMAN = Origin("human")
UNKNOWN = Origin("unknown")


def author_of(version: Version) -> Origin:
    """Return who made a change: a person, or an agent by the name that its client states.

    An agent called "human" or "unknown" becomes "an agent called human": it cannot pass for a
    person by its name. Without a name, it is "an agent without a name" or "a program".
    """
    if version.is_by_person:
        return Origin("human", "", version.when)

    name = version.who
    if not name:
        is_agent = "_" in version.tool  # all tools of agents have such names
        name = "an agent without a name" if is_agent else "a program"
    elif name.casefold() in _RESERVED_NAMES:
        name = f"an agent called {name}"
    return Origin("agent", name, version.when)


# -- queries

T = TypeVar("T")

_NO_LIMIT = 1 << 62  # greater than any number of a change

# The indexes of columns in a row that has COLUMNS and then `seq`.
_VERSION = 0
_OPERATION = 1
_PATH = 2
_NEW_PATH = 3
_OP = 5
_SESSION = 13
_SOURCES = 14
_LINEAGE = 15
_SEQ = 16

_OF_PATH = f"""
    SELECT {COLUMNS}, seq FROM changes WHERE path = $1 AND seq < $2
    UNION ALL
    SELECT {COLUMNS}, seq FROM changes WHERE new_path = $1 AND path <> $1 AND seq < $2
    ORDER BY seq DESC"""
_OF_LINEAGE = """
    op <> 'recovered' AND lineage =
    (SELECT lineage FROM changes WHERE (path = $1 OR new_path = $1) AND op <> 'recovered'
     ORDER BY seq DESC LIMIT 1)"""
# The changes of an operation are consecutive, and the `step` of each is the number of the first.
_OF_OPERATION = """
    step = $1 AND seq >= (SELECT max(seq) FROM changes WHERE version = $1 AND step = $1)"""
_WRITES_TEXT = """
    after IS NOT NULL AND after IS DISTINCT FROM before
    AND op NOT IN ('undo', 'restore', 'recovered')"""


class ChangeTable:
    """The changes of one vault that this store may see. Any thread may call its methods.

    Before each answer, the changes of the log that the table lacks are added to it. Changes of
    hidden notes are never returned.
    """

    def __init__(
        self,
        database: Engine,
        vault: NoteSource,
        with_retry: Callable[[Callable[[], Any]], Any],
    ) -> None:
        self._database = database
        self._vault = vault
        self._with_retry = with_retry  # calls a function again if the index is replaced meanwhile

    def of(self, path: str, limit: int | None = None, *, recovered: bool = False) -> list[Version]:
        """Return the changes at a path, newest first, and those at its former paths.

        If a move brought a note to the path, the changes before it are those at its old path.
        Otherwise they are those of any note that was at the path. At most `limit` are returned;
        None means all. With `recovered`, texts that were found after a crash are among them.
        """

        def question(db: Connection) -> list[Version]:
            rows = _rows_back_through_moves(db, path, recovered=recovered)
            return list(islice(self._visible(db, rows), limit))

        return self._ask(question)

    def recent(
        self,
        limit: int | None = None,
        *,
        after: int = 0,
        upto: int = _NO_LIMIT,
        by: str = "",
    ) -> list[Version]:
        """Return the changes of the latest `limit` operations, newest first; None means all.

        Only changes with numbers greater than `after` and at most `upto` count. With `by`, only
        those by clients with this name count.
        """

        def question(db: Connection) -> list[Version]:
            rows = _rows_by(db, by, after, upto)
            operations = groupby(self._visible(db, rows), attrgetter("group"))
            return [version for _, operation in islice(operations, limit) for version in operation]

        return self._ask(question)

    def deleted_paths(self) -> list[str]:
        """Return each path at which a note was ever deleted, the last deletion first.

        There may be a note at the path again.
        """
        deletions = self._where("after IS NULL")
        return list(dict.fromkeys(version.path for version in deletions))

    def find(self, version: str) -> Version:
        """Return the change with an id such as "v12".

        Raises NotFound if there is none, or if it is of a hidden note.
        """
        changes = self._where("version = $1", number_of(version))
        if not changes:
            raise no_version(version)
        return changes[0]

    def step(self, group: str) -> list[Version]:
        """Return the changes of the operation `group`, oldest first; empty if there is none.

        Raises NotFound if `group` is not written as an id such as "v12".
        """
        changes = self._where(_OF_OPERATION, number_of(group))
        changes.reverse()
        return changes

    def lineage(self, path: str) -> list[Version]:
        """Return the changes of the note that last had a path, newest first, whatever its path was.

        The note may have another path today. Recovered texts are left out. Empty if no change names
        the path.
        """
        return self._where(_OF_LINEAGE, path)

    def newest(self) -> int:
        """Return the number of the last change, hidden ones included; 0 before the first."""
        statement = "SELECT coalesce(max(version), 0) FROM changes"
        return self._ask(lambda db: read_integer(db.execute(statement)))

    def last_before(self, when: str) -> int:
        """Return the number of the last change before a moment in UTC; 0 if there is none.

        `when` is a time as the log writes it. If clocks were wrong, the log is divided where the
        fewest changes are on the wrong side by their times. Hidden changes count too.
        """
        statement = "SELECT version, at FROM changes ORDER BY seq DESC"
        return self._ask(lambda db: last_before(db.execute(statement), when))

    def may_show(self, sha256: str) -> bool:
        """Return whether the text with a hash may be shown: a visible change wrote or replaced it.

        Always true for a store that sees the whole vault.
        """
        if not self._vault.access.is_partial:
            return True
        return bool(self._where("after = $1", sha256) or self._where("before = $1", sha256))

    def first_author(self, sha256: str) -> Origin:
        """Return who was the first to write the text with a hash; a person if no change wrote it.

        Undoing and restoring do not count as writing. Hidden changes count too.
        """
        condition = f"after = $1 AND {_WRITES_TEXT}"
        first = self._ask(lambda db: next(_rows_where(db, condition, sha256, order="ASC"), None))
        return HUMAN if first is None else author_of(_version(first))

    def _where(self, condition: str, *values: Value) -> list[Version]:
        """Return the visible changes for which an SQL condition holds, newest first.

        `values` are those of its `$1`, `$2`, ….
        """

        def question(db: Connection) -> list[Version]:
            rows = _rows_where(db, condition, *values)
            return list(self._visible(db, rows))

        return self._ask(question)

    def _ask(self, question: Callable[[Connection], T]) -> T:
        """Bring the table up to date with the log, and return what `question` finds in it.

        Both are repeated if the index is replaced meanwhile.
        """

        def catch_up_and_ask() -> T:
            catch_up(self._database, self._vault.history.log)
            with self._database.reading() as db:
                return question(db)

        answer: T = self._with_retry(catch_up_and_ask)
        return answer

    # Visibility

    def _visible(self, db: Connection, rows: Iterable[DatabaseRow]) -> Iterator[Version]:
        """Yield the changes of those rows that this store may see, in the same order."""
        if not self._vault.access.is_partial:
            yield from map(_version, rows)
            return

        has_visible_past = cache(partial(self._has_visible_past, db))
        may_name = cache(partial(self._may_name, db))
        for row in rows:
            version = _version(row)
            if self._names_visible_note(version) and has_visible_past(row[_LINEAGE]):
                yield version._replace(sources=tuple(filter(may_name, version.sources)))

    def _names_visible_note(self, version: Version) -> bool:
        """Return whether this store may see the paths that a change names, old and new.

        A recovered file whose name begins with a dot is never visible: it is a temporary file of
        simplemem, which may contain the text of any note.
        """
        file_name = version.path.rpartition("/")[2]
        if version.op == "recovered" and file_name.startswith("."):
            return False
        hides = self._vault.access.hides
        return not hides(version.path) and not hides(version.new_path or version.path)

    def _may_name(self, db: Connection, source: str) -> bool:
        """Return whether this store may see the name of a note that was read before a change.

        True if the note exists at a visible path. Otherwise, it has to have a visible past: it may
        have been moved to a hidden place since.
        """
        path = path_of(source)
        if self._vault.access.hides(path):
            return False
        with suppress(SimplememError, OSError):
            if self._vault.entry(path) is not None:
                return True
        statement = f"SELECT max(lineage) FROM changes WHERE {_OF_LINEAGE}"
        lineage = db.execute(statement, (well_formed(path),)).get
        return lineage is not None and self._has_visible_past(db, lineage)

    def _has_visible_past(self, db: Connection, lineage: int) -> bool:
        """Return whether this store may see the changes of a note, which is given by its lineage.

        True if its file exists at a visible path, or if simplemem deleted it at such a path. False
        if another program removed it, or if another note has its path now.
        """
        statement = "SELECT path, there, holds FROM lineages WHERE id = $1"
        row = db.execute(statement, (lineage,)).fetchone()
        if row is None:
            return True  # a recovered text that belongs to no note

        path, is_there, holds_path = row
        if self._vault.access.hides(path):
            return False
        if not is_there:
            return True
        if not holds_path:
            return False
        with suppress(SimplememError, OSError):
            return self._vault.entry(path) is not None
        return False


def _rows_back_through_moves(
    db: Connection, path: str, *, recovered: bool
) -> Iterator[DatabaseRow]:
    """Yield rows of the changes at a path, of whatever note, newest first.

    After the row of a move to this path, those of the old path follow, and so on. Rows have COLUMNS
    and `seq`. Recovered texts are among them if `recovered`.
    """
    seq = _NO_LIMIT
    while path:
        rows = db.execute(_OF_PATH, (well_formed(path), seq))
        old_path = ""
        for row in rows:
            if recovered or row[_OP] != "recovered":
                yield row
            is_arrival = row[_NEW_PATH] == path and row[_PATH] != path
            if is_arrival:
                old_path = row[_PATH]
                seq = row[_SEQ]
                break
        path = old_path


def _rows_by(db: Connection, client: str, after: int, upto: int) -> Iterator[DatabaseRow]:
    """Query the changes by clients with a name, newest first; "" means all clients.

    Their numbers are greater than `after` and at most `upto`.
    """
    names = []
    if client:
        clients = db.execute("SELECT DISTINCT who FROM changes")
        names = [who for (who,) in clients if is_called(who, client)]

    is_any_client = int(not client)
    is_one_of_the_names = db.dialect.in_texts("who", "$4")
    # With "+", the index by version is not used, and rows are read in the order of `seq`.
    condition = f"+version > $1 AND +version <= $2 AND ($3 = 1 OR {is_one_of_the_names})"
    return _rows_where(db, condition, after, upto, is_any_client, TextList(names))


def _rows_where(
    db: Connection, condition: str, *values: Value, order: str = "DESC"
) -> Iterator[DatabaseRow]:
    """Query the changes for which an SQL condition holds, newest first unless `order` is "ASC".

    `values` are those of its `$1`, `$2`, …; the rows have the columns of COLUMNS.
    """
    bound = [well_formed(value) if isinstance(value, str) else value for value in values]
    statement = f"SELECT {COLUMNS} FROM changes WHERE {condition} ORDER BY seq {order}"
    return iter(db.execute(statement, bound))


def _version(row: DatabaseRow) -> Version:
    """Return the change in a row that begins with COLUMNS."""
    version_id = format_version(row[_VERSION])
    operation_id = format_version(row[_OPERATION])
    fields = row[_PATH : _SESSION + 1]
    version = Version(version_id, operation_id, *fields)
    sources_text = row[_SOURCES]
    if not sources_text:
        return version
    return version._replace(sources=tuple(json.loads(sources_text)))


def written_by(author: str, bind: Callable[[str], str]) -> str:
    """Return the SQL condition, for `notes n`, that the text of a note is by an author.

    `author` is "human", "agent", or the beginning of the name of an agent. Case does not matter. No
    note passes for "unknown" or "". `bind` adds a value to those of the statement, and returns its
    mark, such as `$3`.
    """
    key = author.casefold()
    if key == "unknown" or not key:
        return "FALSE"
    texts = f"SELECT after FROM changes WHERE author <> 'human' AND {_WRITES_TEXT}"
    if key == "human":
        return f"n.sha256 NOT IN ({texts})"
    if key == "agent":
        return f"n.sha256 IN ({texts})"
    mark = bind(key)
    return f"n.sha256 IN ({texts} AND substr(author, 1, length({mark})) = {mark})"
