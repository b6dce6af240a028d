"""Connections to PostgreSQL, one per thread.

While a connection reads, it sends statements without waiting for the answers to earlier ones (a
pipeline). All statements that were sent before an answer is read cost one round trip.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import psycopg
from psycopg import sql

from simplemem.index.engine import Dialect, IntegerList, TextList, Value
from simplemem.index.postgres.vectors import PostgresVectors

DIALECT = Dialect(
    # The planner uses the index of the column for an array, even if its statistics of the table are
    # wrong. For a subquery it does not.
    membership="{column} = ANY ({mark}::{type}[])",
    list_table="unnest({mark}::{type}[]) AS {alias}(value)",
    # The planner expects a ninth of the table in each range, and would read all of it. OFFSET 0
    # keeps it from merging the subquery into the query, so that it looks up the rows of each value.
    rows_of_each="""{outer} CROSS JOIN LATERAL (
        SELECT * FROM {name} AS {alias} WHERE {condition} OFFSET 0
    ) AS {alias}""",
    integer_type="bigint",
    text_type="text",
    column_types={
        "text": 'TEXT COLLATE "C"',  # compared byte by byte, as in SQLite
        "integer": "BIGINT",
        "bytes": "BYTEA",
        "numbered_key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "by_key": "",
        "long_text": "USING hash ",  # longer than a B-tree takes
    },
)

# To wait for a connection, and until the server ends a transaction in which nothing is sent.
_TIMEOUT_SECONDS = 10
_REPLICA_TIMEOUT_SECONDS = 2  # less, because the primary can answer instead

# The settings of each connection.
# - The timeout of idle transactions: a process that stops in a transaction would block all others.
# - `jit` and parallel workers are off: our queries take milliseconds, even those to which the
#   planner gives a high cost, and compiling or distributing them would take longer.
# - The last condition leaves out lz4 on a server that was built without it.
_SETTINGS = f"""
    SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES
        ('search_path', %s), ('default_toast_compression', 'lz4'), ('jit', 'off'),
        ('max_parallel_workers_per_gather', '0'),
        ('idle_in_transaction_session_timeout', '{_TIMEOUT_SECONDS}s')
    ) wanted (name, value) USING (name) WHERE enumvals IS NULL OR value = ANY(enumvals)"""


class PostgresCursor(psycopg.RawCursor[Any]):
    """The answer of a statement; methods as in `Cursor`. Empty if it returns no rows."""

    @property
    def get(self) -> Any:
        """The first column of the next row, which is read by this; None if no row is left."""
        row = self.fetchone()
        return None if row is None else row[0]

    def fetchall(self) -> list[Any]:
        """Return all rows that are left; an empty list for a statement that returns no rows."""
        # Within a pipeline, there is no description before the answer is read.
        has_rows = self._conn.pgconn.pipeline_status or self.description
        return super().fetchall() if has_rows else []


def _bound(value: Value) -> object:
    """Return a value as psycopg takes it: our lists become Python lists, booleans become numbers.

    PostgreSQL cannot store a NUL in a text; it becomes U+FFFD.
    """
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    if isinstance(value, bool):
        return int(value)  # the columns of the index have no booleans
    if isinstance(value, IntegerList):
        return list(value.values)
    if isinstance(value, TextList):
        return [_bound(text) for text in value.values]
    return value


class PostgresConnection:
    """A connection to one server; methods as in `Connection`.

    Only for the thread that opened it.
    """

    dialect = DIALECT

    def __init__(self, raw: psycopg.Connection[Any], *, is_of_replica: bool = False) -> None:
        self.raw = raw
        self.is_of_replica = is_of_replica
        # `made` and `state` in `meta` (which tables they are, and the number of writes to them) as
        # this connection last read them. ("", "") if they must be read again.
        self.seen: tuple[str, str] = ("", "")
        # Set by the engine, and not read from the server: if the server ends the connection within
        # a transaction, the rest of the transaction must fail, and not run on a new connection.
        self.in_transaction = False
        self.vectors = PostgresVectors(self)
        self._pipeline = ExitStack()

    @property
    def is_cut(self) -> bool:
        """Whether the server has ended the connection, judged without sending anything."""
        with suppress(psycopg.OperationalError):
            # The first call reads the last message of the server, the second one notices the end.
            self.raw.pgconn.consume_input()
            self.raw.pgconn.consume_input()
        return self.raw.closed

    def begin_pipeline(self) -> None:
        """From now on, send statements without waiting for answers, until `end_pipeline`.

        Does nothing if a pipeline is open already.
        """
        if not self.raw.pgconn.pipeline_status:
            self._pipeline.enter_context(self.raw.pipeline())

    def end_pipeline(self) -> None:
        """Wait for the answers to all statements, and from now on to each one when it is sent.

        Does nothing if there is no pipeline. Raises psycopg.Error.
        """
        self._pipeline.close()

    def close(self) -> None:
        """Wait for all answers, and close the connection. Ignores psycopg's errors."""
        with suppress(psycopg.Error):
            self.end_pipeline()
        self.raw.close()

    def commit(self) -> None:
        """Commit the transaction.

        In a pipeline, it does not wait for the answer, so the transaction must only have read.
        """
        self.raw.execute("COMMIT", prepare=False)
        pipeline = self.raw._pipeline  # noqa: SLF001  (Pipeline.sync() without the waiting)
        if pipeline is not None:
            pipeline._enqueue_sync()  # noqa: SLF001
            self.raw.wait(pipeline._communicate_gen())  # noqa: SLF001

    def execute(self, statement: str, values: Sequence[Value] = ()) -> PostgresCursor:
        """Run a statement, and return its rows. In a pipeline, only send it, and return at once.

        Raises psycopg's own errors; in a pipeline, reading the rows may raise them.
        """
        bound = [_bound(value) for value in values]
        return PostgresCursor(self.raw).execute(statement, bound or None, binary=True)

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement that returns no rows once per row of values."""
        bound = [[_bound(value) for value in row] for row in rows]
        if bound:
            PostgresCursor(self.raw).executemany(statement, bound)

    def state(self) -> object:
        """Return the id and the state of the tables as this connection last read them.

        They differ from an earlier token once this connection has read that somebody wrote. What
        it writes itself counts only at the end of its transaction.
        """
        return self.seen


class ConnectionPool:
    """Connections to one server, one per thread. Guards their dictionary.

    A connection that was cut is replaced at its next use, and those of ended threads are closed.
    """

    def __init__(self, url: str, schema: str, *, is_of_replica: bool = False) -> None:
        self.engine = "PostgreSQL"  # with its version, once it has answered
        self._url = url
        self._schema = schema
        self._is_of_replica = is_of_replica
        self._connections: dict[threading.Thread, PostgresConnection] = {}
        self._guard = threading.Lock()

    def connection(self) -> PostgresConnection:
        """Return this thread's connection, which is opened if there is none or if it was cut.

        Within a transaction, a connection that was cut is returned as it is. Raises psycopg.Error.
        """
        connection = self._connections.get(threading.current_thread())
        if connection is None:
            return self._connect()
        if connection.is_cut and not connection.in_transaction:
            connection.close()
            return self._connect()
        return connection

    def _connect(self) -> PostgresConnection:
        """Open a connection for this thread, and close those of threads that have ended.

        Raises psycopg.Error.
        """
        seconds = _REPLICA_TIMEOUT_SECONDS if self._is_of_replica else _TIMEOUT_SECONDS
        raw = psycopg.connect(self._url, autocommit=True, connect_timeout=seconds)
        major, minor = divmod(raw.info.server_version, 10_000)
        self.engine = f"PostgreSQL {major}.{minor}"
        schema = sql.Identifier(self._schema).as_string()
        raw.execute(_SETTINGS, (f"{schema}, public",))

        connection = PostgresConnection(raw, is_of_replica=self._is_of_replica)
        with self._guard:
            for thread in list(self._connections):
                if not thread.is_alive():
                    self._connections.pop(thread).close()
            self._connections[threading.current_thread()] = connection
        return connection

    def close(self) -> None:
        """Close every connection. No other thread may be using them."""
        with self._guard:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()
