"""One thread's connection to PostgreSQL.

While it reads, statements are sent without waiting for the answers of those before: all that were sent
since an answer was last read cost one round trip.
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
    # Known as an array, whatever is known of the table, so that the index of the column is used. With a
    # subquery it is not.
    membership="{column} = ANY ({mark}::{type}[])",
    list_table="unnest({mark}::{type}[]) AS {alias}(value)",
    # The server thinks that a range holds a ninth of the table, and would read all of it. A subquery that
    # is not pulled up makes it look up the rows of each value.
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

SECONDS = 10  # to wait for a connection, and for who is in a transaction
_REPLICA_SECONDS = 2  # without a replica the primary answers

# A process that is stopped in a transaction would stop the others. Not every server can compress by lz4.
# What the planner thinks dear takes milliseconds: compiling it, or sharing it out, takes longer.
_SETTINGS = f"""
    SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES
        ('search_path', %s), ('default_toast_compression', 'lz4'), ('jit', 'off'),
        ('max_parallel_workers_per_gather', '0'),
        ('idle_in_transaction_session_timeout', '{SECONDS}s')
    ) wanted (name, value) USING (name) WHERE enumvals IS NULL OR value = ANY(enumvals)"""


class PostgresCursor(psycopg.RawCursor[Any]):
    """The rows of an answer; none of a statement that has none."""

    @property
    def get(self) -> Any:
        """The first column of the next row, for an answer of one row; None if there is no row."""
        row = self.fetchone()
        return None if row is None else row[0]

    def fetchall(self) -> list[Any]:
        """Return all rows that are left; none of a statement that returns no rows."""
        has_rows = self._conn.pgconn.pipeline_status or self.description
        return super().fetchall() if has_rows else []


def _bound(value: Value) -> object:
    """Return a value as psycopg takes it: lists become Python lists, truths become numbers.

    PostgreSQL has no text with a NUL; it becomes U+FFFD.
    """
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    if isinstance(value, bool):
        return int(value)  # all columns of the index that hold a truth are numbers
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
        # Whose tables they were, and their last transaction, when this connection last looked.
        self.seen: tuple[str, str] = ("", "")
        # Ours, even if the server has ended it: what is in a transaction is done as a whole.
        self.in_transaction = False
        self.vectors = PostgresVectors(self)
        self._pipeline = ExitStack()

    @property
    def is_cut(self) -> bool:
        """Whether the server has ended the connection, as far as can be told without asking it."""
        with suppress(psycopg.OperationalError):
            # The first read takes what the server said last, the second notices the end.
            self.raw.pgconn.consume_input()
            self.raw.pgconn.consume_input()
        return self.raw.closed

    def begin_pipeline(self) -> None:
        """From now on, send statements without waiting for answers, until `end_pipeline`."""
        if not self.raw.pgconn.pipeline_status:
            self._pipeline.enter_context(self.raw.pipeline())

    def end_pipeline(self) -> None:
        """Wait for the answers to all that was sent, and from now on to each statement at once."""
        self._pipeline.close()

    def close(self) -> None:
        """Wait for what was sent, and close the connection. Does not raise psycopg's errors."""
        with suppress(psycopg.Error):
            self.end_pipeline()
        self.raw.close()

    def commit(self) -> None:
        """End a transaction.

        In a pipeline, the answer is not waited for: then it must only have read.
        """
        self.raw.execute("COMMIT", prepare=False)
        pipeline = self.raw._pipeline  # noqa: SLF001  (Pipeline.sync() without the waiting)
        if pipeline is not None:
            pipeline._enqueue_sync()  # noqa: SLF001
            self.raw.wait(pipeline._communicate_gen())  # noqa: SLF001

    def execute(self, statement: str, values: Sequence[Value] = ()) -> PostgresCursor:
        """Run a statement, and return its rows. In a pipeline, it is only sent until they are read.

        Raises psycopg's own errors, in a pipeline perhaps when the rows are read.
        """
        bound = [_bound(value) for value in values]
        return PostgresCursor(self.raw).execute(statement, bound or None, binary=True)

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement that returns no rows once per row of values."""
        bound = [[_bound(value) for value in row] for row in rows]
        if bound:
            PostgresCursor(self.raw).executemany(statement, bound)

    def state(self) -> object:
        """Return a token of the index (which one, and its state) as this connection last saw it.

        It differs once anybody has written.
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
        """Open a connection for this thread. Close those of threads that have ended."""
        seconds = _REPLICA_SECONDS if self._is_of_replica else SECONDS
        raw = psycopg.connect(self._url, autocommit=True, connect_timeout=seconds)
        major, minor = divmod(raw.info.server_version, 10_000)
        self.engine = f"PostgreSQL {major}.{minor}"
        raw.execute(_SETTINGS, (f"{sql.Identifier(self._schema).as_string()}, public",))
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
