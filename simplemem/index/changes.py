"""Questions about the changes of notes, answered from the table of changes.

The table follows the log before each question (`change_rows`). Changes of hidden notes are hidden.
So is the past of a note that was moved to a hidden place, or that another program deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, TypeVar

from simplemem.errors import SimplememError
from simplemem.index.authors import HUMAN, Origin, author_of, is_called
from simplemem.index.change_rows import COLUMNS, catch_up
from simplemem.index.engine import Connection, Engine, Row, TextList, Value, read_integer
from simplemem.note.words import well_formed
from simplemem.vault.source import NoteSource
from simplemem.vault.versions import Version, format_version, last_before, no_version, number_of

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
# The changes of an operation stand together, and the first of them bears the name of all.
_OF_OPERATION = """
    step = $1 AND seq >= (SELECT max(seq) FROM changes WHERE version = $1 AND step = $1)"""
_WRITES_TEXT = """
    after IS NOT NULL AND after IS DISTINCT FROM before
    AND op NOT IN ('undo', 'restore', 'recovered')"""


class ChangeTable:
    """The changes of one vault, as far as this store may see them. Any thread may ask."""

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
        """Return the changes of one note, newest first, followed back through its moves.

        With `recovered`, texts that were found after a crash are among them.
        """

        def question(db: Connection) -> list[Version]:
            rows = _rows_back_through_moves(db, path, recovered=recovered)
            return list(islice(self._visible(db, rows), limit))

        return self._ask(question)

    def recent(
        self, limit: int | None = None, *, after: int = 0, upto: int = _NO_LIMIT, by: str = ""
    ) -> list[Version]:
        """Return the changes of the latest operations, newest first.

        They have numbers greater than `after`, and `upto` at most. With `by`, only those of clients
        with this name are returned.
        """

        def question(db: Connection) -> list[Version]:
            rows = _rows_by(db, by, after, upto)
            operations = groupby(self._visible(db, rows), attrgetter("group"))
            return [version for _, operation in islice(operations, limit) for version in operation]

        return self._ask(question)

    def gone(self) -> list[str]:
        """Return the paths of notes that were deleted, the last one first."""
        deletions = self._where("after IS NULL")
        return list(dict.fromkeys(version.path for version in deletions))

    def find(self, version: str) -> Version:
        """Return the change with an id. Raises NotFound, also for a change of a hidden note."""
        changes = self._where("version = $1", number_of(version))
        if not changes:
            raise no_version(version)
        return changes[0]

    def step(self, group: str) -> list[Version]:
        """Return the changes of one operation, in the order in which they were made."""
        changes = self._where(_OF_OPERATION, number_of(group))
        changes.reverse()
        return changes

    def lineage(self, path: str) -> list[Version]:
        """Return the changes of the note that last had a path, newest first.

        The note may have another path today.
        """
        return self._where(_OF_LINEAGE, path)

    def newest(self) -> int:
        """Return the number of the last change, 0 before the first."""
        statement = "SELECT coalesce(max(version), 0) FROM changes"
        return self._ask(lambda db: read_integer(db.execute(statement)))

    def last_before(self, when: str) -> int:
        """Return the number of the last change before a moment in UTC."""
        statement = "SELECT version, at FROM changes ORDER BY seq DESC"
        return self._ask(lambda db: last_before(db.execute(statement), when))

    def may_tell(self, sha256: str) -> bool:
        """Return whether a text may be shown: a visible change has replaced or written it."""
        if not self._vault.access.is_partial:
            return True
        return bool(self._where("after = $1", sha256) or self._where("before = $1", sha256))

    def last_author(self, sha256: str) -> Origin:
        """Return who wrote a text. What no change has written was written by a person."""
        condition = f"after = $1 AND {_WRITES_TEXT}"
        first = self._ask(lambda db: next(_rows_where(db, condition, sha256, order="ASC"), None))
        return HUMAN if first is None else author_of(_version(first))

    def _where(self, condition: str, *values: Value) -> list[Version]:
        """Return the visible changes that fulfil a condition, newest first."""

        def question(db: Connection) -> list[Version]:
            rows = _rows_where(db, condition, *values)
            return list(self._visible(db, rows))

        return self._ask(question)

    def _ask(self, question: Callable[[Connection], T]) -> T:
        """Return the answer of a table that has all that is in the log."""

        def catch_up_and_ask() -> T:
            catch_up(self._database, self._vault.history.log)
            with self._database.reading() as db:
                return question(db)

        answer: T = self._with_retry(catch_up_and_ask)
        return answer

    # Visibility

    def _visible(self, db: Connection, rows: Iterable[Row]) -> Iterator[Version]:
        """Yield those of some changes that may be seen."""
        if not self._vault.access.is_partial:
            yield from map(_version, rows)
            return

        has_visible_past = cache(partial(self._has_visible_past, db))
        for row in rows:
            version = _version(row)
            if self._names_visible_note(version) and has_visible_past(row[_LINEAGE]):
                yield version

    def _names_visible_note(self, version: Version) -> bool:
        """Return whether the paths that a change names are visible."""
        file_name = version.path.rpartition("/")[2]
        if version.op == "recovered" and file_name.startswith("."):
            return False  # a file of our own, which may have held the text of any note
        hides = self._vault.access.hides
        return not hides(version.path) and not hides(version.new_path or version.path)

    def _has_visible_past(self, db: Connection, lineage: int) -> bool:
        """Return whether the past of a note may be seen.

        Its file is at a visible place, or we deleted it at such a place.
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


def _rows_back_through_moves(db: Connection, path: str, *, recovered: bool) -> Iterator[Row]:
    """Yield the changes of a note, newest first; from a move on, those of its path before."""
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


def _rows_by(db: Connection, client: str, after: int, upto: int) -> Iterator[Row]:
    """Return the changes of clients with a name, of all if it is "", in a range of numbers."""
    clients = db.execute("SELECT DISTINCT who FROM changes") if client else ()
    names = TextList(who for (who,) in clients if is_called(who, client))
    is_everybody = int(not client)
    is_theirs = db.dialect.in_texts("who", "$4")
    condition = f"+version > $1 AND +version <= $2 AND ($3 = 1 OR {is_theirs})"
    return _rows_where(db, condition, after, upto, is_everybody, names)


def _rows_where(
    db: Connection, condition: str, *values: Value, order: str = "DESC"
) -> Iterator[Row]:
    """Return the changes that fulfil a condition, newest first unless `order` says otherwise."""
    bound = [well_formed(value) if isinstance(value, str) else value for value in values]
    statement = f"SELECT {COLUMNS} FROM changes WHERE {condition} ORDER BY seq {order}"
    return iter(db.execute(statement, bound))


def _version(row: Row) -> Version:
    fields = row[_PATH : _KIND + 1]
    return Version(format_version(row[_VERSION]), format_version(row[_OPERATION]), *fields)


def written_by(author: str, bind: Callable[[str], str]) -> str:
    """Return the condition, for `notes n`, that the last author is `human`, `agent` or begins so.

    `bind` adds a value to those of the statement, and returns its mark.
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
