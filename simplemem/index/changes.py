"""The log of changes as a table, which is how the past is asked: history, blame, undo, and what stood there when.

The file is the truth (`vault/history.py`). The table is grown from it line by line, after each of our writes and before each
question, from the byte up to which it was read: other processes write too. Read at once or bit by bit, it is the same.

Where notes are hidden from whoever asks, so are their changes and the hashes of their texts. A note that was moved to a
hidden place took its past there. If another program took a note away, it may have gone to a hidden place, so its past is
not told while it is gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, takewhile
from typing import Any, Literal, TypeVar

import apsw

from simplemem.errors import SimplememError
from simplemem.index.database import Database
from simplemem.note.words import well_formed
from simplemem.vault.history import Log, Version, last_before, no_version, number_meant, number_of, spell, versions_in
from simplemem.vault.vault import Vault

T = TypeVar("T")
_TAIL = 1024  # bytes of what was read last: a log that has others there is not the one that was read
_COLUMNS = "version, step, path, new_path, at, op, who, tool, reason, before, after, trash, kind, lineage"
_INSERT = f"INSERT INTO changes ({_COLUMNS}, author) VALUES ({', '.join('?' * 15)})"
_OF_PATH = f"""SELECT {_COLUMNS}, seq FROM changes WHERE path = ?1 AND seq < ?2
               UNION ALL
               SELECT {_COLUMNS}, seq FROM changes WHERE new_path = ?1 AND path <> ?1 AND seq < ?2
               ORDER BY seq DESC"""
_ALL = 1 << 62
_WRITTEN = "after IS NOT NULL AND after IS NOT before AND op NOT IN ('undo', 'restore', 'recovered')"

Row = tuple[Any, ...]


# -- who makes a change


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote something, and when at the latest (UTC); "" when that is not known."""

    kind: Literal["human", "agent", "unknown"]
    name: str = ""
    when: str = field(default="", compare=False)

    @property
    def shown(self) -> str:
        return self.name or self.kind


HUMAN, UNKNOWN = Origin("human"), Origin("unknown")


def agent(who: str, tool: str, when: str) -> Origin:
    """An agent by what its client calls itself, which cannot pass for a person."""
    name = who or ("an agent without a name" if "_" in tool else "a program")
    return Origin("agent", f"an agent called {name}" if name.casefold() in ("human", "unknown") else name, when)


def author_of(version: Version) -> Origin:
    """Who made a change."""
    if version.is_by_person:
        return Origin("human", "", version.when)
    return agent(version.who, version.tool, version.when)


def is_called(who: str, wanted: str) -> bool:
    """Whether a name is the one that is asked for, with or without the version a client tells with it; "" asks for any."""
    who, wanted = who.casefold(), " ".join(wanted.split()).casefold()
    name, _, number = who.rpartition(" ")
    return wanted in ("", who) or (wanted == name and any(map(str.isdigit, number)))


def local(when: str) -> str | None:
    """A time of the log as notes say theirs."""
    try:
        return datetime.fromisoformat(when).astimezone().replace(tzinfo=None).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


# -- the table


class ChangeTable:
    """The changes of one vault, as far as they may be seen by whoever opened it. Any thread may ask."""

    def __init__(self, database: Database, vault: Vault, healing: Callable[[Callable[[], Any]], Any]) -> None:
        self._database = database
        self._vault = vault
        self._healing = healing

    def of(self, path: str, limit: int | None = None) -> list[Version]:
        """The changes of one note, newest first, followed back through its moves."""
        return self._ask(lambda db: list(islice(self._seen(db, _back(db, path)), limit)))

    def recent(
        self, limit: int | None = None, *, after: int = 0, upto: int | None = None, by: str = "", tool: str = ""
    ) -> list[Version]:
        """The changes of the whole vault, newest first: after a number and up to another, of somebody, with a tool."""
        rest = "+version > ? AND +version <= ? AND ? IN ('', tool) AND (? OR who IN (SELECT value FROM json_each(?)))"

        def found(db: apsw.Connection) -> list[Version]:
            everybody = db.execute("SELECT DISTINCT who FROM changes") if by else ()
            names = json.dumps([who for (who,) in everybody if is_called(who, by)])
            rows = _where(db, rest, after, _ALL if upto is None else upto, tool, not by, names)
            return list(islice(self._seen(db, rows), limit))

        return self._ask(found)

    def gone(self) -> list[str]:
        """The paths of notes that were deleted, the last one first."""
        return self._ask(lambda db: list(dict.fromkeys(v.path for v in self._seen(db, _where(db, "after IS NULL")))))

    def find(self, version: str) -> Version:
        """The change of this id. A hidden one is refused as one that never was."""
        number = number_meant(version)
        found = self._ask(lambda db: next(self._seen(db, _where(db, "version = ?", number)), None))
        if found is None:
            raise no_version(version)
        return found

    def step(self, group: str) -> list[Version]:
        """The changes of one operation, in the order they were made."""
        return self._ask(lambda db: list(self._seen(db, _step(db, number_of(group)))))

    def touches_hidden(self, groups: Collection[str]) -> bool:
        """Whether one of these operations changed something hidden too."""

        def found(db: apsw.Connection) -> bool:
            steps = [_step(db, number_of(group)) for group in groups]
            return any(len(list(self._seen(db, step))) < len(step) for step in steps)

        return bool(self._vault.access.hidden) and self._ask(found)

    def lineage(self, path: str) -> list[Version]:
        """The changes of the note that was last known by this path, newest first, whatever its path is now."""
        of_last = """lineage = (SELECT lineage FROM changes WHERE (path = ?1 OR new_path = ?1) AND op <> 'recovered'
                     ORDER BY seq DESC LIMIT 1)"""
        return self._ask(lambda db: list(self._seen(db, _where(db, of_last, path))))

    def newest(self) -> int:
        """The number of the last change, 0 before the first."""
        return self._ask(lambda db: int(db.execute("SELECT coalesce(max(version), 0) FROM changes").get))

    def last_before(self, when: str) -> int:
        """The number of the last change before a moment."""
        sql = "SELECT version, at FROM changes ORDER BY seq DESC"
        return self._ask(lambda db: last_before(db.execute(sql), when))

    def may_tell(self, sha256: str) -> bool:
        """Whether a change that may be seen found or left this text."""
        if not self._vault.access.hidden:
            return True
        sides = ("after = ?", "before = ?")
        return self._ask(lambda db: any(True for side in sides for _ in self._seen(db, _where(db, side, sha256))))

    def last_author(self, sha256: str) -> Origin:
        """Who made a text, by its hash; a person made what no change of ours has."""
        first = self._ask(lambda db: next(_where(db, f"after = ? AND {_WRITTEN}", sha256, newest=False), None))
        return HUMAN if first is None else author_of(_version(first))

    def _ask(self, question: Callable[[apsw.Connection], T]) -> T:
        """The answer of a table that has all that is in the log."""

        def asked() -> T:
            follow(self._database, self._vault.history.log)
            with self._database.reading() as db:
                return question(db)

        answer: T = self._healing(asked)
        return answer

    def _seen(self, db: apsw.Connection, rows: Iterable[Row]) -> Iterator[Version]:
        """These changes, but for those of hidden notes."""
        if not self._vault.access.hidden:
            yield from map(_version, rows)
            return
        told: dict[int, bool] = {}
        for row in rows:
            version, lineage = _version(row), row[13]
            if version.op == "recovered" and version.path.rpartition("/")[2].startswith("."):
                continue  # in a file of ours whose name does not tell of which note it is
            if self._vault.access.hides(version.path) or self._vault.access.hides(version.new_path or version.path):
                continue
            if lineage not in told:
                told[lineage] = self._is_told(db, lineage)
            if told[lineage]:
                yield version

    def _is_told(self, db: apsw.Connection, lineage: int) -> bool:
        """Whether a note may have a past: it lies where it may be seen, or we deleted it where it could be."""
        row = db.execute("SELECT path, there, holds FROM lineages WHERE id = ?", (lineage,)).fetchone()
        if row is None:
            return True  # a text that was found, of no note
        path, there, holds = row
        if self._vault.access.hides(path) or (there and not holds):
            return False
        try:
            return not there or self._vault.entry(path) is not None
        except (SimplememError, OSError):
            return False


# -- who wrote the text a note has


def written_by(wanted: str) -> tuple[str, dict[str, str]]:
    """The WHERE, for `notes n`, of the notes whose last author is the one asked for, with its values: `human`, `agent`,
    `unknown`, or how a name begins. An undo and a move write nothing: the text keeps its author."""
    key = wanted.casefold()
    if key == "unknown" or not key:
        return "0", {}
    texts = f"(SELECT after FROM changes WHERE author <> 'human' AND {_WRITTEN}"
    if key in ("human", "agent"):
        return f"n.sha256 {'NOT IN' if key == 'human' else 'IN'} {texts})", {}
    return f"n.sha256 IN {texts} AND substr(author, 1, length(:author)) = :author)", {"author": key}


# -- growing


def follow(database: Database, log: Log) -> None:
    """Bring the table up to what the log has now."""
    with database.reading() as db:
        offset, size, digest = _mark(db)
        lines = log.whole_lines(offset - size)
        if len(lines) == size and _digest(lines) == digest:
            return
    with database.writing() as db:
        grow(db, log)


def grow(db: apsw.Connection, log: Log, *, held: bool = False) -> None:
    """Take in what the log has that was not read yet. A log that is not the one that was read is read from its beginning.
    With `held` the vault is held since our last change, so that nobody has added another."""
    offset, size, digest = _mark(db)
    if held and log.appended[0] == offset:
        size, lines = 0, log.appended[1]
    else:
        lines = log.whole_lines(offset - size)
        if _digest(lines[:size]) != digest:
            for table in ("changes", "lineages"):
                db.execute(f"DELETE FROM {table}").fetchall()
            offset, size, lines = 0, 0, log.whole_lines()
    for version in versions_in(lines[size:]):
        _put(db, version)
    tail = lines[-_TAIL:]
    mark = f"{offset - size + len(lines)} {len(tail)} {_digest(tail)}"
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('log', ?)", (mark,)).fetchall()


def _mark(db: apsw.Connection) -> tuple[int, int, str]:
    """Up to which byte the log was read, and what the last bytes before that were."""
    said = db.execute("SELECT value FROM meta WHERE key = 'log'").get
    offset, size, digest = (said or f"0 0 {_digest(b'')}").split()
    return int(offset), int(size), digest


def _digest(tail: bytes) -> str:
    return hashlib.blake2b(tail, digest_size=16).hexdigest()


def _put(db: apsw.Connection, version: Version) -> None:
    path, new, number = well_formed(version.path), version.new_path and well_formed(version.new_path), version.number
    origin = author_of(version)
    db.execute(
        _INSERT,
        (
            number, number_of(version.group), path, new, version.when, version.op, well_formed(version.who),
            well_formed(version.tool), well_formed(version.reason), version.before, version.after, version.trash,
            version.kind, _lineage(db, version, path, new),
            "human" if origin.kind == "human" else well_formed(origin.name).casefold(),
        ),
    ).fetchall()  # fmt: skip


def _lineage(db: apsw.Connection, version: Version, path: str, new: str | None) -> int:
    """Which note a change is of: the one that has its place, or had it when we deleted it. A creation begins another. Where
    another note takes a place, the one that had it has gone, and not by us unless we deleted it."""
    give_way = "UPDATE lineages SET holds = 0 WHERE path = ? AND holds"
    row = db.execute("SELECT id, there FROM lineages WHERE path = ? AND holds", (path,)).fetchone()
    held, was_there = row or (0, None)
    if version.op == "recovered":
        return int(held)
    if row is None or version.op == "create":
        db.execute(give_way, (path,)).fetchall()
        db.execute("INSERT INTO lineages (path, there, holds) VALUES (?, 1, 1)", (path,)).fetchall()
        held, was_there = db.last_insert_rowid(), True
    if new is not None:
        db.execute(give_way, (new,)).fetchall()
    there = version.after is not None
    if new is not None or there != was_there:
        db.execute("UPDATE lineages SET path = ?, there = ? WHERE id = ?", (new or path, there, held)).fetchall()
    return int(held)


# -- rows


def _where(db: apsw.Connection, condition: str, *values: Any, newest: bool = True) -> Iterator[Row]:
    """The changes of which this is so, newest first or oldest first."""
    order = "DESC" if newest else "ASC"
    bound = [well_formed(value) if isinstance(value, str) else value for value in values]
    return db.execute(f"SELECT {_COLUMNS} FROM changes WHERE {condition} ORDER BY seq {order}", bound)


def _back(db: apsw.Connection, path: str) -> Iterator[Row]:
    """The changes that name a note, newest first, under the names it had before its moves too."""
    name, before = path, _ALL
    while name:
        name_then, name = name, ""
        for row in db.execute(_OF_PATH, (well_formed(name_then), before)):
            yield row
            if row[3] == name_then and row[2] != name_then:
                name, before = row[2], row[14]
                break


def _step(db: apsw.Connection, group: int) -> Sequence[Row]:
    """One operation: its changes stand together, the first of them bears its name."""
    first = db.execute("SELECT max(seq) FROM changes WHERE version = ? AND step = ?", (group, group)).get
    rows = _where(db, "seq >= ?", _ALL if first is None else first, newest=False)
    return list(takewhile(lambda row: row[1] == group, rows))


def _version(row: Row) -> Version:
    number, step, path, new, at, op, who, tool, reason, before, after, trash, kind = row[:13]
    return Version(spell(number), spell(step), path, new, at, op, who, tool, reason, before, after, trash, kind)
