"""The PostgreSQL engine: one schema per vault, rebuilt beside itself and renamed into place.

One process writes at a time, for as long as a transaction takes. Readers wait for nobody. While the
server is away, Unavailable is raised, and the next use asks it again (docs/internals/engines.md).
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from simplemem.errors import Invalid, Unavailable
from simplemem.index.engine import (
    SET_META,
    Damaged,
    DatabaseRow,
    Engine,
    Replaced,
    StatementFailed,
    Value,
)
from simplemem.index.postgres.connection import (
    DIALECT,
    ConnectionPool,
    PostgresConnection,
    PostgresCursor,
)
from simplemem.index.postgres.lease import LEADER, Lease, leader_in, renew
from simplemem.index.terms.integrity import find_damage
from simplemem.index.terms.writer import is_merge_due

T = TypeVar("T")
SCHEMA = "10"  # the version of the tables; those of another version are made anew
_OWN_STATEMENTS = Path(__file__).with_name("schema.sql")
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SELECT_STATE = "SELECT key, value FROM meta WHERE key IN ('made', 'state')"
_PAUSE_SECONDS = 30.0  # for which a replica that failed is not asked
# The tables that a bulk load fills, and whose sizes decide how the server plans queries.
_LARGE_TABLES = ("notes", "places", "tags", "tag_pairs", "links", "terms")


class _Behind(Exception):
    """A replica has not reached what this process has seen."""


class PostgresEngine:
    """The index of one vault in one schema of a server; methods as in `Engine`.

    Guards the connections of all threads. `path` is where this machine keeps what only it needs. If
    there is a replica, `answer` reads from it while it has reached everything that this process has
    seen.
    """

    # The vectors of passages get an index once they have more numbers: a million vectors of 256
    # numbers.
    max_compared_numbers = 256_000_000

    def __init__(self, url: str, schema: str, path: Path, replica: str = "") -> None:
        self.url = url
        self.schema = schema
        self.path = path
        self.place = f"{address_of(url)}, schema {schema}"
        self.generation = 0
        self._primary = ConnectionPool(url, schema)
        self._replica: ConnectionPool | None = None
        self._replica_place = ""
        if replica:
            self._replica = ConnectionPool(replica, schema, is_of_replica=True)
            self._replica_place = address_of(replica, "index.replica")
        self._replica_rests_until = 0.0  # by `time.monotonic`
        self._local = threading.local()  # `leader_number` of a thread, see `fence`
        self._is_analyze_due = False
        self._guard = threading.Lock()  # of `generation` and the two below
        self._tables_id = ""  # `made` in `meta`; "" until the server has answered
        self._newest_state = 0  # the highest `state` in `meta` that this process has seen
        with suppress(Unavailable), _translating_errors():
            self._connect()

    @property
    def engine(self) -> str:
        """The name and version of the server, and whether a replica answers reads, for people."""
        name = self._primary.engine
        if self._replica is None:
            return name
        is_resting = time.monotonic() < self._replica_rests_until
        state = "does not answer" if is_resting else "answers reads"
        return f"{name}; its replica {self._replica_place} {state}"

    @property
    def vector_storage(self) -> str:
        """How it keeps vectors, for people. Asks the server."""
        with self.reading() as db:
            storage = db.vectors.storage
        descriptions = {
            "halfvec": "halfvec of pgvector",
            "bytea": "bytes, compared in memory (pgvector is not available)",
        }
        return descriptions.get(storage, "none yet")

    # -- connections

    def _prepare(self, db: PostgresConnection, *, discarded: str | None = None) -> None:
        """Make empty tables if there are none, or in place of those of another version.

        Those with the id `discarded` (`made` in `meta`) are replaced too. If several servers start
        or find damage at the same moment, the first makes the tables, and the others use them.
        Raises psycopg.Error.
        """
        with self._locked(db):
            facts: dict[str, str] = {}
            if db.execute("SELECT to_regclass($1)", (f"{self.schema}.meta",)).get:
                facts = dict(db.execute("SELECT key, value FROM meta").fetchall())
            is_current = facts.get("shape") == SCHEMA and "made" in facts
            if not is_current or facts.get("made") == discarded:
                last_leader_number = 0
                if facts:
                    last_leader_number, _ = leader_in(db)
                self._make_tables(db, last_leader_number)

        tables_id = str(db.execute("SELECT value FROM meta WHERE key = 'made'").get)
        with self._guard:
            if tables_id != self._tables_id:
                self._tables_id = tables_id
                self._newest_state = 0

    def _make_tables(self, db: PostgresConnection, leader_number: int) -> None:
        """Drop the schema, and make it again with empty tables and a new id. For a transaction.

        `leader_number` is that of the last leader, so that no number is used twice.
        """
        name = sql.Identifier(self.schema).as_string()
        db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        db.execute(f"CREATE SCHEMA {name}")
        # Several statements in one text, which `db.execute` does not take.
        PostgresCursor(db.raw).execute(DIALECT.schema())
        PostgresCursor(db.raw).execute(_OWN_STATEMENTS.read_text(encoding="utf-8"))
        facts = {
            "shape": SCHEMA,
            "made": uuid.uuid4().hex,
            "state": "0",
            LEADER: f"{leader_number} 0",
        }
        db.executemany(SET_META, facts.items())

    def _connect(self) -> PostgresConnection:
        """Return this thread's connection to the primary. Makes the tables at the first use.

        Raises psycopg.Error.
        """
        db = self._primary.connection()
        if not self._tables_id:
            self._prepare(db)
        return db

    def connection(self) -> PostgresConnection:
        """Return this thread's connection to the primary.

        Raises Unavailable if it cannot be reached.
        """
        with _translating_errors():
            return self._connect()

    def refresh(self) -> None:
        """Connect to the primary, and make the tables at the first use.

        Only the next query notices whether other tables took the place of ours.
        """
        self.connection()

    def close(self) -> None:
        """Close every connection. No other thread may be using them."""
        self._primary.close()
        if self._replica is not None:
            self._replica.close()

    # -- what others did

    def _notice_state(self, db: PostgresConnection, answer: PostgresCursor | None = None) -> None:
        """Read the id and the state of the tables in this snapshot, and record them.

        `answer` is the cursor of `_SELECT_STATE` if it was sent before; None sends it now. If they
        are missing, raises _Behind for a replica, and Damaged otherwise. Raises what
        `_record_state` raises.
        """
        if answer is None:
            answer = db.execute(_SELECT_STATE)
        facts = dict(answer.fetchall())
        if "made" not in facts or "state" not in facts:
            # Tables that were made after the snapshot was taken can be read, but seem empty.
            db.seen = "", ""
            if db.is_of_replica:
                raise _Behind
            raise Damaged("the facts about the index are missing")
        db.seen = facts["made"], facts["state"]
        self._record_state(db)

    def _record_state(self, db: PostgresConnection) -> None:
        """Record for this process the id and the state of the tables that a connection has seen.

        If they are other tables than before, `generation` grows. Raises _Behind for a replica that
        has not reached what this process has seen.
        """
        tables_id = db.seen[0]
        state = int(db.seen[1])
        with self._guard:
            is_behind = tables_id != self._tables_id or state < self._newest_state
            if db.is_of_replica and is_behind:
                db.seen = "", ""  # so that the next query reads the state first
                raise _Behind

            if tables_id != self._tables_id:
                self._tables_id = tables_id
                self._newest_state = 0
                self.generation += 1
            self._newest_state = max(self._newest_state, state)

    # -- reading

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[DatabaseRow]:
        """Return the rows of one statement, from the primary.

        Within a transaction of this thread, it sees its writes.
        """
        with _translating_errors():
            db = self._connect()
            if not db.in_transaction:
                db.end_pipeline()
            return db.execute(statement, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        """Open a snapshot of the primary for a `with` block; within another one, yield that one."""
        with _translating_errors():
            db = self._connect()
            if db.in_transaction:
                yield db
                return
            db.begin_pipeline()
            with self._transaction(db, _BEGIN_READING):
                self._notice_state(db)
                yield db

    def answer(self, ask: Callable[[PostgresConnection], T]) -> T:
        """Call `ask` in one snapshot, of the replica if it is up to date, and return its result.

        `ask` is called again if somebody wrote meanwhile, so it must have no effects. If the
        replica is behind or fails, the primary answers; after a failure, also for the next 30 s.
        Raises Replaced if other tables took the place of ours.
        """
        with _translating_errors():
            db = self._connect()
            if db.in_transaction:
                return ask(db)
            is_replica_ready = time.monotonic() >= self._replica_rests_until
            if self._replica is not None and is_replica_ready:
                try:
                    return self._answer(self._replica.connection(), ask)
                except (_Behind, errors.UndefinedTable, errors.SerializationFailure):
                    # It lacks these tables, or replayed a change that removed the rows being read.
                    pass
                except psycopg.Error:
                    self._replica_rests_until = time.monotonic() + _PAUSE_SECONDS
            return self._answer(db, ask)

    def _answer(self, db: PostgresConnection, ask: Callable[[PostgresConnection], T]) -> T:
        """Call `ask` in a snapshot, and again in a newer one until it was based on the right state.

        What the process remembers of the index is good for the state that this connection saw last
        (`db.seen`). Whether that is still the state is read in the same round trip as the rows of
        `ask`, and compared afterwards: to read it first would cost one more round trip per query.
        Raises Replaced if other tables took the place of ours, and _Behind for a replica that has
        not reached what this process has seen.
        """
        generation = self.generation
        while True:
            seen_before = db.seen
            db.begin_pipeline()
            with self._transaction(db, _BEGIN_READING):
                if not any(seen_before):
                    self._notice_state(db)
                    seen_before = db.seen
                state_answer = db.execute(_SELECT_STATE)
                try:
                    result = ask(db)
                except (LookupError, ValueError, Damaged):
                    # Not an error if what is remembered was of an older state.
                    self._notice_state(db, state_answer)
                    if db.seen == seen_before:
                        raise
                else:
                    self._notice_state(db, state_answer)
            if self.generation != generation:
                raise Replaced
            if db.seen == seen_before:
                return result

    # -- writing

    @contextmanager
    def writing(self, generation: int | None = None) -> Iterator[PostgresConnection]:
        """Open a transaction for a `with` block, which commits it; an exception rolls it back.

        Within a transaction of this thread, it yields that one, and only the outermost commits.
        Other writers wait. Raises Replaced if the index is no longer the one of `generation` (None:
        any), and Unavailable if this thread led the servers and another leads now.
        """
        with _translating_errors():
            db = self._connect()
            if db.in_transaction:
                yield db
                return
            with self._locked(db):
                self._notice_state(db)
                leader_number = getattr(self._local, "leader_number", 0)
                if leader_number and leader_number != leader_in(db)[0]:
                    raise Unavailable(
                        "another server is the leader now, and nothing was written",
                        hint="This server continues as a follower. Nothing needs to be done.",
                    )
                if generation not in (None, self.generation):
                    raise Replaced

                yield db

                if leader_number:
                    renew(db, leader_number)
                tables_id, state = db.seen
                db.seen = tables_id, str(int(state) + 1)
                db.execute(SET_META, ("state", db.seen[1]))
            self._record_state(db)

    @contextmanager
    def exclusively(self) -> Iterator[PostgresConnection]:
        """Open a transaction that excludes all other writers, but does not advance the state.

        It waits for the same lock as `writing`. Readers keep what they remember of the index. Must
        not be called within another transaction of this thread; that is not checked.
        """
        with _translating_errors():
            db = self._connect()
            with self._locked(db):
                yield db

    @contextmanager
    def _locked(self, db: PostgresConnection) -> Iterator[None]:
        """Open a transaction that holds the lock of this vault's tables, after waiting for it."""
        digest = hashlib.sha256(self.schema.encode()).digest()
        number = int.from_bytes(digest[:8], "big", signed=True)
        db.end_pipeline()
        with self._transaction(db, "BEGIN"):
            db.execute("SELECT pg_advisory_xact_lock($1::bigint)", (number,))
            yield

    @contextmanager
    def _transaction(self, db: PostgresConnection, begin: str) -> Iterator[None]:
        """Run a `with` block between `begin` and COMMIT; roll back if it raises.

        If the rollback fails, the connection is closed.
        """
        db.raw.execute(begin, prepare=False)
        db.in_transaction = True
        try:
            yield
            db.commit()
        except BaseException:
            db.vectors.forget()  # a table of vectors may have been made in the transaction
            with suppress(psycopg.Error):
                db.end_pipeline()
            try:
                db.raw.execute("ROLLBACK")
            except psycopg.Error:
                db.raw.close()
            raise
        finally:
            db.in_transaction = False

    def meta(self, key: str) -> str | None:
        """Return a fact about the index itself, from `meta` on the primary; None if it has none.

        From now on, `answer` reads only from a replica that has reached the snapshot of this call.
        """
        with self.reading() as db:
            value = db.execute("SELECT value FROM meta WHERE key = $1", (key,)).get
        return None if value is None else str(value)

    def set_meta(self, key: str, value: str) -> None:
        """Store a fact about the index itself in the table `meta`, in a transaction."""
        with self.writing() as db:
            db.execute(SET_META, (key, value))

    # -- the lead

    def leadership(self) -> Lease:
        """Return the lead of these tables. Takes no lead yet."""
        return Lease(self)

    def fence(self, leader_number: int) -> None:
        """From now on, refuse what this thread writes if another leader than `leader_number` leads.

        0 ends this: nothing is refused.
        """
        self._local.leader_number = leader_number

    # -- upkeep

    def begin_bulk_load(self) -> None:
        """Make the next checkpoint or merge run ANALYZE. Sends nothing itself.

        What the server knows of the sizes of the tables will soon be wrong.
        """
        self._is_analyze_due = True

    def merge_segments_at_rest(self, generation: int | None = None) -> None:
        """Merge segments of the term index if they make queries slow, in several transactions.

        After `begin_bulk_load`, also runs ANALYZE. Raises Replaced as `writing(generation)` does.
        Not within a transaction.
        """
        self._merge(generation, is_at_rest=True)
        self._analyze_tables()

    def checkpoint(self, *, is_bulk: bool = False) -> None:  # noqa: ARG002  (has no log)
        """Merge segments of the term index, and build the index of vectors once there are many.

        After `begin_bulk_load`, also runs ANALYZE. `is_bulk` changes nothing. Not within a
        transaction.
        """
        self._merge()
        self._analyze_tables()
        with _translating_errors():
            db = self._connect()
            db.end_pipeline()
            if db.vectors.build_index(self.max_compared_numbers):
                self.set_meta("vectors", "indexed")  # a write, so that all servers notice the index

    def _merge(self, generation: int | None = None, *, is_at_rest: bool = False) -> None:
        """Merge segments of the term index, if `is_merge_due(is_at_rest)` says so.

        Raises Replaced if the index is no longer the one of `generation` (None: any).
        """
        if is_merge_due(self, is_at_rest=is_at_rest):
            from simplemem.index.terms.merging import merge_segments  # imports numpy

            merge_segments(self, generation, is_at_rest=is_at_rest)

    def _analyze_tables(self) -> None:
        """Run ANALYZE on the large tables, once after each `begin_bulk_load`.

        Otherwise the server would plan for empty tables until its autovacuum looks at them.
        """
        if self._is_analyze_due:
            self._is_analyze_due = False
            for table in _LARGE_TABLES:
                self.rows(f"ANALYZE {table}")

    def check(self) -> list[str]:
        """Return what is wrong with the term index; empty if all is well. Never raises Unavailable.

        A server that cannot be reached is reported as a problem too.
        """
        try:
            with self.reading() as db:
                return find_damage(db)
        except (Unavailable, Damaged, StatementFailed) as error:
            return [str(error)]

    # -- other tables

    def discard(self) -> None:
        """Replace these tables by empty ones, unless another server just did.

        `generation` grows in both cases. Raises Unavailable if the server is away.
        """
        with _translating_errors():
            db = self._connect()
            self._prepare(db, discarded=self._tables_id)
        with self._guard:
            self.generation += 1

    def build_replacement(self) -> PostgresEngine:
        """Return empty tables in a schema of their own, which no other process uses."""
        schema = f"{self.schema[:40]}_new_{uuid.uuid4().hex[:8]}"
        return PostgresEngine(self.url, schema, self.path)

    def swap_in(self, fresh: Engine) -> None:
        """Replace these tables by those from `build_replacement`, by renaming the schema.

        `fresh` is closed, and cannot be used afterwards. The last leader's number is kept, so that
        no number is used twice.
        """
        assert isinstance(fresh, PostgresEngine)
        fresh.checkpoint()  # builds the index of its vectors, if there are many
        fresh.close()
        schema = sql.Identifier(self.schema).as_string()
        fresh_schema = sql.Identifier(fresh.schema).as_string()
        with _translating_errors():
            db = self._connect()
            with self._locked(db):
                if db.execute("SELECT to_regclass($1)", (f"{self.schema}.meta",)).get:
                    db.execute(f"""
                        INSERT INTO {fresh_schema}.meta
                        SELECT * FROM {schema}.meta WHERE key = '{LEADER}'
                        ON CONFLICT (key) DO UPDATE SET value = excluded.value""")
                db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                db.execute(f"ALTER SCHEMA {fresh_schema} RENAME TO {schema}")
            self._notice_state(db)

    def drop(self) -> None:
        """Delete the tables with their schema, and close every connection."""
        with _translating_errors():
            db = self._connect()
            db.end_pipeline()
            db.execute(f"DROP SCHEMA IF EXISTS {sql.Identifier(self.schema).as_string()} CASCADE")
        self.close()

    def size(self) -> int:
        """Return the bytes that the tables take on the server's disk."""
        statement = """
            SELECT sum(pg_total_relation_size(oid)) FROM pg_class
            WHERE relnamespace = to_regnamespace($1)"""
        return int(self.rows(statement, (self.schema,))[0][0] or 0)


def address_of(url: str, setting: str = "index.engine") -> str:
    """Return an address as it may be shown: user, host, port and database, without the password.

    If it is no address, raises Invalid, which names `setting` and does not quote the address.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its message quotes the address
        raise Invalid(
            f"the setting {setting} does not name the address of a PostgreSQL database",
            hint="Write postgresql://USER@HOST/DATABASE, and put the password in ~/.pgpass or "
            "PGPASSWORD.",
        ) from None
    user = str(parts.get("user") or "")
    port = str(parts.get("port") or "")
    host = str(parts.get("host") or "")
    database = str(parts.get("dbname") or "")
    credentials = f"{user}@" if user else ""
    server = f"{host}:{port}" if port else host
    return f"postgresql://{credentials}{server}/{database}"


@contextmanager
def _translating_errors() -> Iterator[None]:
    """Raise ours in place of psycopg's errors that a `with` block raises.

    A server that is away or busy, or refuses this user, becomes Unavailable. A missing schema,
    table or column becomes Damaged, and every other error of psycopg StatementFailed. Exceptions
    that are not psycopg's pass.
    """
    try:
        yield
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn) as error:
        raise Damaged(str(error)) from error
    except errors.InsufficientPrivilege as error:
        raise Unavailable(
            f"the database of the index refuses this user ({error})",
            hint="Each vault needs its own schema and role: docs/engine.md has the SQL. "
            "The notes are safe.",
        ) from error
    except (psycopg.OperationalError, errors.IdleInTransactionSessionTimeout) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise Unavailable(
            f"the database of the index does not answer ({first_line})",
            hint="Check that the database of `index.engine` is running and that this user may "
            "connect. The notes are safe.",
        ) from error
    except psycopg.Error as error:
        raise StatementFailed(str(error)) from error
