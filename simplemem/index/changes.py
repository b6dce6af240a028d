"""The log of changes as a table that grows from the file (`vault/folder/history.py`) before each question. Changes of hidden
notes are hidden; so is the past of a note that was moved to a hidden place, or that another program took away."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Literal, TypeVar

from simplemem.errors import SimplememError
from simplemem.index.engine import (
    SET_META,
    Connection,
    Engine,
    TextList,
    Value,
    marks,
    read_integer,
)
from simplemem.note.formatting import well_formed
from simplemem.vault.folder.log import Log
from simplemem.vault.source import NoteSource
from simplemem.vault.versions import (
    Version,
    format_version,
    last_before,
    no_version,
    number_of,
    versions_in,
)

T = TypeVar("T")
_ALL = 1 << 62
_TAIL = (
    1024  # bytes of what was read last: a log that has others there is not the one that was read
)
_COLUMNS = (
    "version, step, path, new_path, at, op, who, tool, reason, before, after, trash, kind, lineage"
)
_INSERT = f"""INSERT INTO changes (seq, {_COLUMNS}, author)
              SELECT coalesce(max(seq), 0) + 1, {marks(15)} FROM changes"""
_BEGIN = """INSERT INTO lineages (id, path, there, holds)
            SELECT coalesce(max(id), 0) + 1, $1, 1, 1 FROM lineages RETURNING id"""
_OF_PATH = f"""SELECT {_COLUMNS}, seq FROM changes WHERE path = $1 AND seq < $2
               UNION ALL
               SELECT {_COLUMNS}, seq FROM changes WHERE new_path = $1 AND path <> $1 AND seq < $2
               ORDER BY seq DESC"""
_LINEAGE = """op <> 'recovered' AND lineage =
              (SELECT lineage FROM changes WHERE (path = $1 OR new_path = $1) AND op <> 'recovered'
               ORDER BY seq DESC LIMIT 1)"""
# The first change of a note at a path, or the move that brought it there. `sync` carries over what others wrote.
_NAMED_HERE = """SELECT c.tool, c.before, c.new_path FROM lineages l JOIN changes c ON c.lineage = l.id
                 WHERE l.path = $1 AND l.holds = 1 AND l.there = 1 AND (c.path = $1 OR c.new_path = $1)
                   AND c.op <> 'recovered'
                 ORDER BY c.seq"""
_WRITTEN = "after IS NOT NULL AND after IS DISTINCT FROM before AND op NOT IN ('undo', 'restore', 'recovered')"

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote something, and when at the latest (UTC); "" when that is not known."""

    kind: Literal["human", "agent", "unknown"]
    name: str = ""
    when: str = field(default="", compare=False)


HUMAN, UNKNOWN = Origin("human"), Origin("unknown")


def author_of(version: Version) -> Origin:
    """Who made a change: a person, or an agent by what its client calls itself, which cannot pass for a person."""
    if version.is_by_person:
        return Origin("human", "", version.when)
    name = version.who or ("an agent without a name" if "_" in version.tool else "a program")
    taken = name.casefold() in ("human", "unknown")
    return Origin("agent", f"an agent called {name}" if taken else name, version.when)


def is_called(who: str, wanted: str) -> bool:
    """Whether a name is the one asked for, with or without the version a client tells with it; "" asks for any."""
    who, wanted = who.casefold(), " ".join(wanted.split()).casefold()
    name, _, number = who.rpartition(" ")
    return wanted in ("", who) or (wanted == name and any(map(str.isdigit, number)))


class ChangeTable:
    """The changes of one vault, as far as they may be seen by whoever opened it. Any thread may ask."""

    def __init__(
        self, database: Engine, vault: NoteSource, healing: Callable[[Callable[[], Any]], Any]
    ) -> None:
        self._database, self._vault, self._healing = database, vault, healing

    def of(self, path: str, limit: int | None = None, *, recovered: bool = False) -> list[Version]:
        """The changes of one note, newest first, followed back through its moves; with texts that were `recovered`."""

        def back(db: Connection) -> Iterator[Row]:
            name, before = path, _ALL
            while name:
                rows, then = db.execute(_OF_PATH, (well_formed(name), before)), name
                name = ""
                for row in rows:
                    if recovered or row[5] != "recovered":
                        yield row
                    if row[3] == then and row[2] != then:
                        name, before = row[2], row[14]
                        break

        return self._ask(lambda db: list(islice(self._seen(db, back(db)), limit)))

    def recent(
        self, limit: int | None = None, *, after: int = 0, upto: int = _ALL, by: str = ""
    ) -> list[Version]:
        """The changes of the last operations, newest first: after a number and up to another, of somebody."""

        def newest(db: Connection) -> list[Version]:
            everybody = db.execute("SELECT DISTINCT who FROM changes") if by else ()
            names = TextList(who for (who,) in everybody if is_called(who, by))
            is_theirs = db.dialect.in_texts("who", "$4")
            narrowed = f"+version > $1 AND +version <= $2 AND ($3 = 1 OR {is_theirs})"
            steps = groupby(
                self._seen(db, _where(db, narrowed, after, upto, int(not by), names)),
                attrgetter("group"),
            )
            return [version for _, step in islice(steps, limit) for version in step]

        return self._ask(newest)

    def gone(self) -> list[str]:
        """The paths of notes that were deleted, the last one first."""
        return list(dict.fromkeys(version.path for version in self._those("after IS NULL")))

    def find(self, version: str) -> Version:
        """The change of this id. A hidden one is refused as one that never was."""
        for found in self._those("version = $1", number_of(version)):
            return found
        raise no_version(version)

    def step(self, group: str) -> list[Version]:
        """The changes of one operation, in the order they were made."""
        # They stand together, and the first of them bears the name of all.
        since = "seq >= (SELECT max(seq) FROM changes WHERE version = $1 AND step = $1)"
        return self._those(f"step = $1 AND {since}", number_of(group))[::-1]

    def lineage(self, path: str) -> list[Version]:
        """The changes of the note that was last known by this path, newest first, whatever its path is now."""
        return self._those(_LINEAGE, path)

    def newest(self) -> int:
        """The number of the last change, 0 before the first."""
        return self._ask(
            lambda db: read_integer(db.execute("SELECT coalesce(max(version), 0) FROM changes"))
        )

    def last_before(self, when: str) -> int:
        """The number of the last change before a moment."""
        return self._ask(
            lambda db: last_before(
                db.execute("SELECT version, at FROM changes ORDER BY seq DESC"), when
            )
        )

    def may_tell(self, sha256: str) -> bool:
        """Whether a change that may be seen found or left this text."""
        sides = ("after = $1", "before = $1")
        return not self._vault.access.is_partial or any(self._those(side, sha256) for side in sides)

    def last_author(self, sha256: str) -> Origin:
        """Who made a text, by its hash; a person made what no change of ours has."""
        first = self._ask(
            lambda db: next(_where(db, f"after = $1 AND {_WRITTEN}", sha256, order="ASC"), None)
        )
        return HUMAN if first is None else author_of(_version(first))

    def _those(self, condition: str, *values: Value) -> list[Version]:
        return self._ask(lambda db: list(self._seen(db, _where(db, condition, *values))))

    def _ask(self, question: Callable[[Connection], T]) -> T:
        """The answer of a table that has all that is in the log."""

        def asked() -> T:
            follow(self._database, self._vault.history.log)
            with self._database.reading() as db:
                return question(db)

        answer: T = self._healing(asked)
        return answer

    def _seen(self, db: Connection, rows: Iterable[Row]) -> Iterator[Version]:
        """These changes, but for those of hidden notes."""
        access, told = self._vault.access, cache(partial(self._is_told, db))
        for row in rows:
            version = _version(row)
            if access.is_partial:
                if version.op == "recovered" and version.path.rpartition("/")[2].startswith("."):
                    continue  # in a file of ours whose name does not tell of which note it is
                if any(
                    map(access.hides, {version.path, version.new_path or version.path})
                ) or not told(row[13]):
                    continue
            yield version

    def _is_told(self, db: Connection, lineage: int) -> bool:
        """Whether a note may have a past: it lies where it may be seen, or we deleted it where it could be."""
        if (
            row := db.execute(
                "SELECT path, there, holds FROM lineages WHERE id = $1", (lineage,)
            ).fetchone()
        ) is None:
            return True  # a text that was found, of no note
        path, there, holds = row
        if self._vault.access.hides(path) or (there and not holds):
            return False
        with suppress(SimplememError, OSError):
            return not there or self._vault.entry(path) is not None
        return False


def _where(db: Connection, condition: str, *values: Value, order: str = "DESC") -> Iterator[Row]:
    """The changes of which this is so, newest first unless told otherwise."""
    bound = [well_formed(value) if isinstance(value, str) else value for value in values]
    return db.execute(
        f"SELECT {_COLUMNS} FROM changes WHERE {condition} ORDER BY seq {order}", bound
    )


def _version(row: Row) -> Version:
    return Version(format_version(row[0]), format_version(row[1]), *row[2:13])


def written_by(author: str, bind: Callable[[str], str]) -> str:
    """Return the condition, for `notes n`, that the last author is `human`, `agent` or begins so.

    `bind` adds a value to those of the statement, and returns its mark.
    """
    key = author.casefold()
    if key == "unknown" or not key:
        return "FALSE"
    texts = f"SELECT after FROM changes WHERE author <> 'human' AND {_WRITTEN}"
    if key == "human":
        return f"n.sha256 NOT IN ({texts})"
    if key == "agent":
        return f"n.sha256 IN ({texts})"
    mark = bind(key)
    return f"n.sha256 IN ({texts} AND substr(author, 1, length({mark})) = {mark})"


def is_named_by_us(db: Connection, path: str) -> bool:
    """Whether the log says that simplemem gave this note its name: it created the note there, or moved it there.

    What it only carried over from another computer (`sync`) does not count, nor a note that it found there.
    """
    key = well_formed(path)
    history: list[Any] = db.execute(_NAMED_HERE, (key,)).fetchall()
    if any(new_path == key for _, _, new_path in history):
        return True
    if not history:
        return False
    tool, before, _ = history[0]
    return before is None and tool != "sync"


def follow(database: Engine, log: Log) -> None:
    """Take in what the log has that was not read yet; another log is read from its beginning."""
    with database.reading() as db:
        _, lines, anew = _unread(db, log)
    if lines or anew:
        with database.writing() as db:
            offset, lines, anew = _unread(db, log)  # another process may have been faster
            if anew:
                db.execute("DELETE FROM changes").fetchall()
                db.execute("DELETE FROM lineages").fetchall()
            for version in versions_in(lines.split(b"\n")):
                _put(db, version)
            if lines or anew:
                mark = f"{offset + len(lines)} {len(lines[-_TAIL:])} {_digest(lines[-_TAIL:])}"
                db.execute(SET_META, ("log", mark)).fetchall()


def _unread(db: Connection, log: Log) -> tuple[int, bytes, bool]:
    """Up to which byte the log was read, the lines since, and whether it is another log, not read at all."""
    said = db.execute("SELECT value FROM meta WHERE key = 'log'").get
    start, length, digest = (said or f"0 0 {_digest(b'')}").split()
    offset, size = int(start), int(length)
    lines = log.whole_lines(offset - size)
    if _digest(lines[:size]) != digest:
        if log.refresh():
            return _unread(db, log)
        return 0, log.whole_lines(), True
    return offset, lines[size:], False


def _digest(tail: bytes) -> str:
    return hashlib.blake2b(tail, digest_size=16).hexdigest()


def _put(db: Connection, version: Version) -> None:
    """Add a change, with the note it is of: the one that has its place, or had it when we deleted it."""
    origin, give_way = (
        author_of(version),
        "UPDATE lineages SET holds = 0 WHERE path = $1 AND holds = 1",
    )
    path, new = well_formed(version.path), version.new_path and well_formed(version.new_path)
    row = db.execute(
        "SELECT id, there FROM lineages WHERE path = $1 AND holds = 1", (path,)
    ).fetchone()
    lineage, was_there = row or (0, None)
    if version.op != "recovered":
        if row is None or version.op == "create":
            db.execute(give_way, (path,)).fetchall()
            lineage, was_there = db.execute(_BEGIN, (path,)).get, True
        if new is not None:
            db.execute(give_way, (new,)).fetchall()
        there = version.after is not None
        if new is not None or there != was_there:
            change = "UPDATE lineages SET path = $1, there = $2 WHERE id = $3"
            db.execute(change, (new or path, int(there), lineage)).fetchall()
    who, tool, reason = map(well_formed, (version.who, version.tool, version.reason))
    author = "human" if origin.kind == "human" else well_formed(origin.name).casefold()
    values = (version.number, number_of(version.group), path, new, version.when, version.op, who, tool, reason,
              version.before, version.after, version.trash, version.kind, lineage, author)  # fmt: skip
    db.execute(_INSERT, values).fetchall()
