"""A vault's tables in PostgreSQL: one schema, rebuilt beside itself and renamed into place. One process writes at a
time, for as long as a transaction takes; readers wait for nobody. A server that is away is said, and asked again."""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from simplemem.errors import Invalid, Unavailable
from simplemem.index.connection import SET_META
from simplemem.index.engine import Damaged, Replaced
from simplemem.index.postgres import near
from simplemem.index.postgres.connection import Connection, Connections, Cursor
from simplemem.index.postgres.lease import LEADER, Lease, leader_in, renew
from simplemem.index.terms.integrity import find_damage
from simplemem.index.terms.query_terms import SegmentCache
from simplemem.index.terms.writer import merge_segments

T = TypeVar("T")
SHAPE = "7"  # of the tables; another's are made anew
_SCHEMA = Path(__file__).with_name("schema.sql")
_SPOKEN = {  # what the tables of the sidecar are in PostgreSQL's words; it too compares text byte by byte
    "TEXT": 'TEXT COLLATE "C"', "BLOB": "BYTEA", " WITHOUT ROWID": "",
    "INTEGER PRIMARY KEY AUTOINCREMENT": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "INTEGER": "BIGINT",
    "(key)": "USING hash (key)", "(title_key)": "USING hash (title_key)",  # longer than a B-tree takes
}  # fmt: skip
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOOK = "SELECT key, value FROM meta WHERE key IN ('made', 'state')"
_PAUSE = 30.0  # seconds for which a replica that failed is not asked


class _Behind(Exception):
    """A replica has not reached what this process has seen."""


class PostgresDatabase:
    """One vault's tables. `path` is where this machine keeps what only it needs. What only reads is asked of a `replica`,
    where there is one that has reached all that this process has seen."""

    most_held = (
        256_000_000  # numbers of passages that are compared one by one: of a million of 256 numbers
    )

    def __init__(self, url: str, schema: str, path: Path, replica: str = "") -> None:
        self.url, self.schema, self.path = url, schema, path
        self.place = f"{address_of(url)}, schema {schema}"
        segment_cache = SegmentCache()
        self._primary = Connections(url, schema, segment_cache)
        self._replica = (
            Connections(replica, schema, segment_cache, is_of_replica=True) if replica else None
        )
        self._replica_place = address_of(replica, "index.replica") if replica else ""
        self._replica_rests_until = 0.0
        self._local = threading.local()
        self._guard = threading.Lock()
        self.generation, self._has_grown = 0, False
        self._made, self._newest = (
            "",
            0,
        )  # which tables they are, once the server has answered, and their last state
        with suppress(Unavailable), _errors_as_ours():
            self._connect()

    @property
    def engine(self) -> str:
        """Its name and version, and what reads are asked of."""
        if self._replica is None:
            return self._primary.engine
        rests = time.monotonic() < self._replica_rests_until
        return f"{self._primary.engine}; its replica {self._replica_place} {'does not answer' if rests else 'answers reads'}"

    def _prepare(self, db: Connection, *, anew: bool = False) -> None:
        """Make the tables if there are none, or others than ours. Cold starts of many servers meet here."""
        with self._locked(db):
            there = db.execute("SELECT to_regclass(?)", (f"{self.schema}.meta",)).get
            shape = there and db.execute("SELECT value FROM meta WHERE key = 'shape'").get
            if anew or shape != SHAPE:
                name = sql.Identifier(self.schema).as_string()
                number = leader_in(db)[0] if there else 0  # none is used twice
                for each in (f"DROP SCHEMA IF EXISTS {name} CASCADE", f"CREATE SCHEMA {name}"):
                    db.execute(each)
                Cursor(db.raw).execute(_tables())
                facts = {
                    "shape": SHAPE,
                    "made": uuid.uuid4().hex,
                    "state": "0",
                    LEADER: f"{number} 0",
                }
                db.executemany(SET_META, facts.items())
        self._made = str(db.execute("SELECT value FROM meta WHERE key = 'made'").get)

    def _connect(self) -> Connection:
        """This thread's connection, to tables that are there."""
        db = self._primary.ours()
        if not self._made:
            self._prepare(db)
        return db

    def connection(self) -> Connection:
        """This thread's connection."""
        with _errors_as_ours():
            return self._connect()

    def _look(self, db: Connection, answer: Cursor | None = None) -> None:
        """Notice what others did: another transaction, or other tables in the place of ours."""
        found = dict((answer or db.execute(_LOOK)).fetchall())
        db.seen = found["made"], found["state"]
        self._see(db)

    def _see(self, db: Connection) -> None:
        made, state = db.seen[0], int(db.seen[1])
        with self._guard:
            if db.is_of_replica and (made != self._made or state < self._newest):
                db.seen = "", ""  # so that the next question looks before it asks
                raise _Behind
            if made != self._made:
                self._made, self._newest = made, 0
                self.generation += 1
            self._newest = max(self._newest, state)

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with _errors_as_ours():
            db = self._connect()
            if not db.in_transaction:
                db.settle()
            return db.execute(statement, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One snapshot for several queries."""
        with _errors_as_ours():
            db = self._connect()
            if db.in_transaction:
                yield db
                return
            db.send_ahead()
            with self._transaction(db, _READ):
                self._look(db)
                yield db

    def answer(self, ask: Callable[[Connection], T]) -> T:
        """Ask in one snapshot: of a replica if it is up to date, else of the primary."""
        with _errors_as_ours():
            db = self._connect()
            if db.in_transaction:
                return ask(db)
            if self._replica is not None and time.monotonic() >= self._replica_rests_until:
                try:
                    return self._answer(self._replica.ours(), ask)
                except (_Behind, errors.UndefinedTable, errors.SerializationFailure):
                    pass  # it has not these tables yet, or took away what was being read
                except psycopg.Error:
                    self._replica_rests_until = time.monotonic() + _PAUSE
            return self._answer(db, ask)

    def _answer(self, db: Connection, ask: Callable[[Connection], T]) -> T:
        """Ask on the strength of what was seen last, and again if that is no longer so: whoever looked first would wait
        for one answer more."""
        whose = self.generation
        while True:
            before = db.seen
            db.send_ahead()
            with self._transaction(db, _READ):
                if not any(before):
                    self._look(db)
                    before = db.seen
                seen = db.execute(_LOOK)
                try:
                    found = ask(db)
                except (LookupError, TypeError, ValueError):  # of two states that do not fit
                    self._look(db, seen)
                    if db.seen == before:
                        raise
                else:
                    self._look(db, seen)
            if self.generation != whose:
                raise Replaced
            if db.seen == before:
                return found

    @contextmanager
    def writing(self, generation: int | None = None) -> Iterator[Connection]:
        """One transaction, re-entrant in a thread: the outermost commits. Others wait for it. With the `generation` that
        was read before, Replaced in any other."""
        with _errors_as_ours():
            db = self._connect()
            if db.in_transaction:
                yield db
                return
            with self._locked(db):
                self._look(db)
                if (ours := getattr(self._local, "fence", 0)) and ours != leader_in(db)[0]:
                    hint = "This server continues as a follower. Nothing needs to be done."
                    raise Unavailable(
                        "another server is the leader now, and nothing was written", hint=hint
                    )
                if generation not in (None, self.generation):
                    raise Replaced
                yield db
                if ours:
                    renew(db, ours)
                db.seen = db.seen[0], str(int(db.seen[1]) + 1)
                db.execute(SET_META, ("state", db.seen[1]))
            self._see(db)

    @contextmanager
    def exclusively(self) -> Iterator[Connection]:
        """A transaction as `writing`, of which no reader need know."""
        with _errors_as_ours():
            db = self._connect()
            with self._locked(db):
                yield db

    @contextmanager
    def _locked(self, db: Connection) -> Iterator[None]:
        db.settle()
        with self._transaction(db, "BEGIN"):
            lock = hashlib.sha256(self.schema.encode()).digest()[:8]
            db.execute(
                "SELECT pg_advisory_xact_lock(?::bigint)",
                (int.from_bytes(lock, "big", signed=True),),
            )
            yield

    @contextmanager
    def _transaction(self, db: Connection, begin: str) -> Iterator[None]:
        db.raw.execute(begin, prepare=False)
        db.in_transaction = True
        try:
            yield
            db.end()
        except BaseException:
            with suppress(psycopg.Error):
                db.settle()
            try:
                db.raw.execute("ROLLBACK")
            except psycopg.Error:
                db.raw.close()
            raise
        finally:
            db.in_transaction = False

    def leadership(self) -> Lease:
        """The lead of these tables."""
        return Lease(self)

    def fence(self, number: int) -> None:
        """What this thread writes is refused from when another leader than the one of this number is there; 0: never."""
        self._local.fence = number

    def meta(self, key: str) -> str | None:
        with (
            self.reading() as db
        ):  # which looks: a replica that has not reached this is not asked from now on
            found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
        return None if found is None else str(found)

    def set_meta(self, key: str, value: str) -> None:
        with self.writing() as db:
            db.execute(SET_META, (key, value))

    def expect_much(self) -> None:
        """What the server knows of its tables will be of no use."""
        self._has_grown = True

    def fold(self, generation: int | None = None) -> None:
        """Merge segments of words, as many a transaction as are of a like size."""
        merge_segments(self, generation)
        if self._has_grown:  # else it would plan for empty tables until it looks by itself
            self._has_grown = False
            for table in (
                "notes",
                "places",
                "tags",
                "tag_pairs",
                "links",
                "terms",
            ):
                self.rows(f"ANALYZE {table}")

    def checkpoint(self, _most: int = 0) -> None:
        """After some were put: the words of single notes are merged once there are many."""
        self.fold()
        with _errors_as_ours():
            db = self._connect()
            db.settle()
            if near.build(db, self.most_held):
                self.set_meta("vectors", "indexed")  # for others to notice

    def check(self) -> list[str]:
        """What is wrong with the tables, as far as the server sees."""
        try:
            with self.reading() as db:
                return find_damage(db)
        except (Unavailable, Damaged) as error:
            return [str(error)]

    def discard(self) -> None:
        """Put empty tables in the place of these."""
        with _errors_as_ours():
            self._prepare(self._connect(), anew=True)
        self.generation += 1

    def beside(self) -> PostgresDatabase:
        """Empty tables, private to this process until `replace_with` puts them in the place of these."""
        return PostgresDatabase(
            self.url, f"{self.schema[:40]}_new_{uuid.uuid4().hex[:8]}", self.path
        )

    def drop(self) -> None:
        """Remove them."""
        with _errors_as_ours():
            db = self._connect()
            db.settle()
            db.execute(f"DROP SCHEMA IF EXISTS {sql.Identifier(self.schema).as_string()} CASCADE")
        self.close()

    def size(self) -> int:
        """Bytes on disk."""
        statement = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = to_regnamespace(?)"
        return int(self.rows(statement, (self.schema,))[0][0] or 0)

    def replace_with(self, fresh: Any) -> None:
        """Put these completely built tables in the place of ours."""
        fresh.checkpoint()  # with an index of its vectors, if ours may have one
        fresh.close()
        ours, theirs = (
            sql.Identifier(self.schema).as_string(),
            sql.Identifier(fresh.schema).as_string(),
        )
        with _errors_as_ours():
            db = self._connect()
            with self._locked(db):
                if db.execute(
                    "SELECT to_regclass(?)", (f"{self.schema}.meta",)
                ).get:  # no number is used twice
                    copied = f"SELECT * FROM {ours}.meta WHERE key = '{LEADER}'"
                    db.execute(f"INSERT INTO {theirs}.meta {copied} ON CONFLICT (key) DO NOTHING")
                db.execute(f"DROP SCHEMA IF EXISTS {ours} CASCADE")
                db.execute(f"ALTER SCHEMA {theirs} RENAME TO {ours}")
            self._look(db)

    def close(self) -> None:
        """Close every connection. Call when no other thread is using them."""
        self._primary.close()
        if self._replica is not None:
            self._replica.close()


def _tables() -> str:
    """The tables of the sidecar but for its words, and then our own."""
    common = _SCHEMA.parents[1].joinpath(_SCHEMA.name).read_text(encoding="utf-8")
    for ours, theirs in _SPOKEN.items():
        common = common.replace(ours, theirs)
    return common + _SCHEMA.read_text(encoding="utf-8")


def address_of(url: str, setting: str = "index.engine") -> str:
    """An address as it may be shown: whom it is asked as, and where. Whatever else it holds may be a secret."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # whose message quotes it
        hint = "Write postgresql://USER@HOST/DATABASE, and put the password in ~/.pgpass or PGPASSWORD."
        raise Invalid(
            f"the setting {setting} does not name the address of a PostgreSQL database", hint=hint
        ) from None
    user, host, port, name = (
        str(parts.get(key) or "") for key in ("user", "host", "port", "dbname")
    )
    return f"postgresql://{user and f'{user}@'}{host}{port and f':{port}'}/{name}"


@contextmanager
def _errors_as_ours() -> Iterator[None]:
    """A server that is away or busy is Unavailable, tables that are not there are Damaged."""
    try:
        yield
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn) as error:
        raise Damaged(str(error)) from error
    except errors.InsufficientPrivilege as error:
        hint = "Each vault needs its own schema and role: docs/engine.md has the SQL. The notes are safe."
        raise Unavailable(
            f"the database of the index refuses this user ({error})", hint=hint
        ) from error
    except (psycopg.OperationalError, errors.IdleInTransactionSessionTimeout) as error:
        hint = "Check that the database of `index.engine` is running and that this user may connect. The notes are safe."
        said = str(error).strip().partition("\n")[0]
        raise Unavailable(
            f"the database of the index does not answer ({said})", hint=hint
        ) from error
