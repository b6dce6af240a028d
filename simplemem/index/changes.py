"""The log of changes as a table, which grows from the file before each query.

Changes of hidden notes are hidden. So is the past of a note that was moved to a hidden place, or
that another program removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
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
        """Whether the table of changes has all that is in the log."""
        return not self.lines and not self.is_other_log


def catch_up(database: Engine, log: Log) -> None:
    """Add to the table the changes that the log has more. Another log replaces the whole table.

    Does not write if there are none. Raises what reading the log raises, and the errors of the
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

    If the lines read last are no longer at their place, it is another log, of which all is unread.
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
        lineage,
        author,
    )
    db.execute(_INSERT, values).fetchall()


def _update_lineages(db: Connection, version: Version, path: str, new_path: str | None) -> int:
    """Return the id of the lineage of a change, after writing where the change leaves its note.

    A lineage is a note as the log knows it, whatever its paths were. It is that of the note at
    `path`, or of the note that simplemem deleted there; a note that was created begins a new one.
    `new_path` is where the change moved the note, None if it did not. A recovered text changes no
    lineage, and may have none: 0.
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
    """Return whether simplemem created or moved the note at a path there, so named it.

    False if it only carried the note over from another computer (`sync`), or found it there. By the
    table of changes, which is not brought up to date here.
    """
    key = well_formed(path)
    changes = db.execute(_NAMED_HERE, (key,)).fetchall()
    if any(new_path == key for _, _, new_path in changes):
        return True
    if not changes:
        return False
    tool, before, _ = changes[0]
    return before is None and tool != "sync"


# -- authors

_RESERVED_NAMES = ("human", "unknown")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote something: a kind, the name of an agent, and when at the latest (in UTC).

    The name and the time are "" if they are not known. The time does not count in comparisons.
    """

    kind: Literal["human", "agent", "unknown"]
    name: str = ""
    when: str = field(default="", compare=False)


HUMAN = Origin("human")
UNKNOWN = Origin("unknown")


def author_of(version: Version) -> Origin:
    """Return who made a change: a person, or an agent by the name that its client states.

    A client called "human" or "unknown" becomes "an agent called human": an agent cannot pass for a
    person by its name.
    """
    if version.is_by_person:
        return Origin("human", "", version.when)

    name = version.who
    if not name:
        is_agent = "_" in version.tool  # as in the names of the tools of agents
        name = "an agent without a name" if is_agent else "a program"
    elif name.casefold() in _RESERVED_NAMES:
        name = f"an agent called {name}"
    return Origin("agent", name, version.when)


# -- queries

T = TypeVar("T")

_NO_LIMIT = 1 << 62  # greater than any number of a change

# The places of columns in a row of COLUMNS and `seq`.
_VERSION = 0
_OPERATION = 1
_PATH = 2
_NEW_PATH = 3
_OP = 5
_KIND = 12
_LINEAGE = 13
_SEQ = 14

_OF_PATH = f"""
    SELECT {COLUMNS}, seq FROM changes WHERE path = $1 AND seq < $2
    UNION ALL
    SELECT {COLUMNS}, seq FROM changes WHERE new_path = $1 AND path <> $1 AND seq < $2
    ORDER BY seq DESC"""
_OF_LINEAGE = """
    op <> 'recovered' AND lineage =
    (SELECT lineage FROM changes WHERE (path = $1 OR new_path = $1) AND op <> 'recovered'
     ORDER BY seq DESC LIMIT 1)"""
# The changes of an operation stand together, and all of them have the number of the first as their `step`.
_OF_OPERATION = """
    step = $1 AND seq >= (SELECT max(seq) FROM changes WHERE version = $1 AND step = $1)"""
_WRITES_TEXT = """
    after IS NOT NULL AND after IS DISTINCT FROM before
    AND op NOT IN ('undo', 'restore', 'recovered')"""


class ChangeTable:
    """The changes of one vault that this store may see, from its log. Any thread may ask.

    Before each answer, the table gets the changes that the log has more. Changes of hidden notes
    are never returned.
    """

    def __init__(
        self,
        database: Engine,
        vault: NoteSource,
        with_retry: Callable[[Callable[[], Any]], Any],
    ) -> None:
        self._database = database
        self._vault = vault
        self._with_retry = with_retry  # repeats a question if the index is replaced meanwhile

    def of(self, path: str, limit: int | None = None, *, recovered: bool = False) -> list[Version]:
        """Return the changes of the note at a path, newest first, followed back through its moves.

        At most `limit` are returned. With `recovered`, texts that were found after a crash are
        among them.
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
        """Return the changes of the latest `limit` operations, newest first; of all if it is None.

        They have numbers greater than `after`, and `upto` at most. With `by`, only changes by
        clients with this name are returned.
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

        Raises NotFound, also for one of a hidden note.
        """
        changes = self._where("version = $1", number_of(version))
        if not changes:
            raise no_version(version)
        return changes[0]

    def step(self, group: str) -> list[Version]:
        """Return the changes of the operation `group`, oldest first; empty if there is none."""
        changes = self._where(_OF_OPERATION, number_of(group))
        changes.reverse()
        return changes

    def lineage(self, path: str) -> list[Version]:
        """Return the changes of the note that last had a path, newest first, whatever its path was.

        The note may have another path today. Empty if no change names the path.
        """
        return self._where(_OF_LINEAGE, path)

    def newest(self) -> int:
        """Return the number of the last change, hidden ones included; 0 before the first."""
        statement = "SELECT coalesce(max(version), 0) FROM changes"
        return self._ask(lambda db: read_integer(db.execute(statement)))

    def last_before(self, when: str) -> int:
        """Return the number of the last change before a moment in UTC; 0 if there is none.

        `when` is as in the log. Hidden changes count too.
        """
        statement = "SELECT version, at FROM changes ORDER BY seq DESC"
        return self._ask(lambda db: last_before(db.execute(statement), when))

    def may_show(self, sha256: str) -> bool:
        """Return whether a text, by its hash, may be shown: a visible change replaced or wrote it.

        Always true for a store that sees the whole vault.
        """
        if not self._vault.access.is_partial:
            return True
        return bool(self._where("after = $1", sha256) or self._where("before = $1", sha256))

    def last_author(self, sha256: str) -> Origin:
        """Return who wrote a text first, by its hash. A person, if no change has written it.

        Undoing and restoring do not count as writing. Hidden changes count too.
        """
        condition = f"after = $1 AND {_WRITES_TEXT}"
        first = self._ask(lambda db: next(_rows_where(db, condition, sha256, order="ASC"), None))
        return HUMAN if first is None else author_of(_version(first))

    def _where(self, condition: str, *values: Value) -> list[Version]:
        """Return the visible changes that fulfil an SQL condition, newest first.

        `values` are those of its `$1`, `$2`, ….
        """

        def question(db: Connection) -> list[Version]:
            rows = _rows_where(db, condition, *values)
            return list(self._visible(db, rows))

        return self._ask(question)

    def _ask(self, question: Callable[[Connection], T]) -> T:
        """Return what `question` finds in the table, after adding what the log has more.

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
        """Yield, of the changes in some rows, those that this store may see, in the same order."""
        if not self._vault.access.is_partial:
            yield from map(_version, rows)
            return

        has_visible_past = cache(partial(self._has_visible_past, db))
        for row in rows:
            version = _version(row)
            if self._names_visible_note(version) and has_visible_past(row[_LINEAGE]):
                yield version

    def _names_visible_note(self, version: Version) -> bool:
        """Return whether this store may see the paths that a change names, old and new.

        A recovered file whose name begins with a dot is never visible: it may have held any note.
        """
        file_name = version.path.rpartition("/")[2]
        if version.op == "recovered" and file_name.startswith("."):
            return False  # a file of our own, which may have held the text of any note
        hides = self._vault.access.hides
        return not hides(version.path) and not hides(version.new_path or version.path)

    def _has_visible_past(self, db: Connection, lineage: int) -> bool:
        """Return whether this store may see the earlier changes of a note, by its lineage.

        True if its file exists at a visible path, or if simplemem deleted it at such a path. False
        if another program removed it, or another note has its path now.
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
    """Yield rows of the changes of a note, newest first; before a move, those of its old path.

    They have the columns of COLUMNS and `seq`. Recovered texts are among them if `recovered`.
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
    """Query the changes of clients with a name, of all if it is "", newest first.

    Their numbers are greater than `after` and `upto` at most.
    """
    names = []
    if client:
        clients = db.execute("SELECT DISTINCT who FROM changes")
        names = [who for (who,) in clients if is_called(who, client)]

    is_any_client = int(not client)
    is_one_of_the_names = db.dialect.in_texts("who", "$4")
    condition = f"+version > $1 AND +version <= $2 AND ($3 = 1 OR {is_one_of_the_names})"
    return _rows_where(db, condition, after, upto, is_any_client, TextList(names))


def _rows_where(
    db: Connection, condition: str, *values: Value, order: str = "DESC"
) -> Iterator[DatabaseRow]:
    """Query the changes that fulfil an SQL condition, newest first unless `order` is "ASC".

    `values` are those of its `$1`, `$2`, …; the rows have the columns of COLUMNS.
    """
    bound = [well_formed(value) if isinstance(value, str) else value for value in values]
    statement = f"SELECT {COLUMNS} FROM changes WHERE {condition} ORDER BY seq {order}"
    return iter(db.execute(statement, bound))


def _version(row: DatabaseRow) -> Version:
    """Return a row of COLUMNS as a change."""
    fields = row[_PATH : _KIND + 1]
    return Version(format_version(row[_VERSION]), format_version(row[_OPERATION]), *fields)


def written_by(author: str, bind: Callable[[str], str]) -> str:
    """Return the SQL condition, for `notes n`, that the text of a note is by an author.

    `author` is "human", "agent", or how the name of an agent begins, without regard to case. Nobody
    matches "unknown" or "". `bind` adds a value to those of the statement, and returns its mark.
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
