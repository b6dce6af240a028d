"""How one thread speaks to PostgreSQL: our SQL in its words, values as it takes them, and statements that are sent without
waiting for the answers of those before."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import sql

from simplemem.index.door import Ids, Nearness
from simplemem.index.postgres import near
from simplemem.index.terms.query_terms import SegmentCache
from simplemem.index.terms.reader import TermIndex
from simplemem.index.terms.small_segment import SegmentBuilder
from simplemem.index.terms.writer import add_notes, remove_note

SECONDS = 10  # to wait for a connection, and for who is in a transaction
# Who is stopped in a transaction stops the others. Not every server knows how to compress by lz4. What a plan thinks dear
# takes milliseconds: to compile it, or to share it out, takes longer.
_SETTINGS = f"""SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES
                    ('search_path', %s), ('default_toast_compression', 'lz4'), ('jit', 'off'),
                    ('max_parallel_workers_per_gather', '0'),
                    ('idle_in_transaction_session_timeout', '{SECONDS}s')
                ) wanted (name, value) USING (name) WHERE enumvals IS NULL OR value = ANY(enumvals)"""
# In SQLite CROSS JOIN says which table is walked. Here a range is thought to hold a ninth of a table, so all of it was
# read for a few notes, unless a subquery that is not pulled up asks for the rows of each.
_EACH = re.compile(r"CROSS JOIN (\w+) (\w+)\s+WHERE (.*?)(?=\s+ORDER BY|\Z)", re.DOTALL)
_MARK = re.compile(r"'(?:[^']|'')*'|\?(\d*)|(?<![:\w]):([a-z]\w*)")
_MANY = re.compile(
    r"(?:(?P<column>(?<![\w.])[\w.]++|\))\s++(?P<no>NOT )?IN \(SELECT value FROM )?"
    r"carray\((?P<mark>[^)]+)\)(?(column)\)|(?P<as> +(?:AS )?[a-z]+\b)?)"
)


class Cursor(psycopg.RawCursor[Any]):
    """Rows of an answer; none of a statement that has none."""

    @property
    def get(self) -> Any:
        row = self.fetchone()
        return None if row is None else row[0]

    def fetchall(self) -> list[Any]:
        return super().fetchall() if self._conn.pgconn.pipeline_status or self.description else []


@lru_cache(maxsize=1000)
def translated(statement: str) -> tuple[str, tuple[str, ...]]:
    """A statement with PostgreSQL's marks for values, and the names of these where they have any."""

    def many(found: re.Match[str]) -> str:
        column, mark = found["column"], found["mark"]
        kind = "bigint" if mark == ":ids" or re.search(r"id$", column or "") else "text"
        if column:  # the index of a column is taken for an array whatever is known of the table, and not for a subquery
            return f"{column} {'<> ALL' if found['no'] else '= ANY'} ({mark}::{kind}[])"
        return f"unnest({mark}::{kind}[]) AS {(found['as'] or ' many').split()[-1]}(value)"

    names: list[str] = []
    count = 0

    def marked(found: re.Match[str]) -> str:
        nonlocal count
        if found[2]:
            names.extend([] if found[2] in names else [found[2]])
            return f"${names.index(found[2]) + 1}"
        if found[0][0] != "?":
            return found[0]
        count += 1
        return f"${found[1] or count}"

    spoken = re.sub(r"CROSS JOIN (\w+ \w+ ON)", r"JOIN \1", _MANY.sub(many, statement))
    spoken = _EACH.sub(r"CROSS JOIN LATERAL (SELECT * FROM \1 \2 WHERE \3 OFFSET 0) \2", spoken)
    return _MARK.sub(marked, spoken), tuple(names)


def _storable(value: Any) -> Any:
    """A value as PostgreSQL takes it: truth as a number, and no text with a NUL."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return list(map(_storable, value))
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


class Connection:
    """A thread's connection. While it reads, statements are sent without waiting for the answers of those before: all
    that were sent since the last answer was looked at are one round trip."""

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        segment_cache: SegmentCache,
        *,
        is_of_replica: bool = False,
    ) -> None:
        self.raw, self.is_of_replica, self._pipeline = raw, is_of_replica, ExitStack()
        self.segment_cache = segment_cache
        self.seen: tuple[str, str] = (
            "",
            "",
        )  # whose tables they are, and the last transaction, when it last looked
        self._indexed: tuple[object, bool] = (
            None,
            False,
        )  # whether vectors have an index of theirs, as of a state
        self.in_transaction = (
            False  # of ours, even if the server has ended it: what is in one is done as a whole
        )

    @property
    def is_cut(self) -> bool:
        """Whether the server has ended it, as far as can be told without asking."""
        with suppress(psycopg.OperationalError):
            for _ in ("its last words", "the end"):
                self.raw.pgconn.consume_input()
        return self.raw.closed

    def send_ahead(self) -> None:
        """From now on nothing waits for an answer before it is looked at."""
        if not self.raw.pgconn.pipeline_status:
            self._pipeline.enter_context(self.raw.pipeline())

    def settle(self) -> None:
        """Wait for all that was sent."""
        self._pipeline.close()

    def close(self) -> None:
        with suppress(psycopg.Error):
            self.settle()
        self.raw.close()

    def end(self) -> None:
        """End a transaction. Of one that only read, nobody waits for the answer."""
        self.raw.execute("COMMIT", prepare=False)
        if (pipeline := self.raw._pipeline) is not None:  # noqa: SLF001  (Pipeline.sync() without the waiting)
            pipeline._enqueue_sync()  # noqa: SLF001
            self.raw.wait(pipeline._communicate_gen())  # noqa: SLF001

    def execute(self, statement: str, values: Any = None) -> Cursor:
        spoken, names = translated(statement)
        given = [values[name] for name in names] if isinstance(values, dict) else list(values or ())
        return Cursor(self.raw).execute(
            spoken, [_storable(value) for value in given] or None, binary=True
        )

    def together(self, *asked: tuple[str, Any]) -> list[list[Any]]:
        """The answers of several statements; of one that reads in one round trip."""
        return [cursor.fetchall() for cursor in [self.execute(*each) for each in asked]]

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        given = [[_storable(value) for value in row] for row in rows]
        if given:
            Cursor(self.raw).executemany(translated(statement)[0], given)

    def state(self) -> object:
        return self.seen

    def nearest(
        self, query: bytes, ids: Ids, limit: int, also: Iterable[int]
    ) -> dict[int, Nearness] | None:
        if self._indexed[0] != (self.seen, len(query)):
            self._indexed = (self.seen, len(query)), near.is_indexed(self, len(query))
        return near.nearest(self, query, ids, limit, also) if self._indexed[1] else None

    many = list

    def add_words(self, words: SegmentBuilder) -> None:
        """Write the words of some notes."""
        add_notes(self, words)

    def remove_words(self, note_id: int) -> None:
        """Remove the words of a note."""
        remove_note(self, note_id)

    def term_index(self, known_notes: int = 0) -> TermIndex:
        """Return the term index as it is now, in a vault of so many notes."""
        return TermIndex(self, self.segment_cache, known_notes)


class Connections:
    """Connections to one server, one a thread, made again where they were cut."""

    def __init__(
        self, url: str, schema: str, segment_cache: SegmentCache, *, is_of_replica: bool = False
    ) -> None:
        self.engine, self._url, self._schema, self._is_of_replica = (
            "PostgreSQL",
            url,
            schema,
            is_of_replica,
        )
        self._open: dict[threading.Thread, Connection] = {}
        self._segment_cache = segment_cache
        self._guard = threading.Lock()

    def ours(self) -> Connection:
        """This thread's."""
        held = self._open.get(threading.current_thread())
        if held is None or (held.is_cut and not held.in_transaction):
            if held is not None:
                held.close()
            held = self._made()
        return held

    def _made(self) -> Connection:
        patience = 2 if self._is_of_replica else SECONDS  # without a replica the primary answers
        raw = psycopg.connect(self._url, autocommit=True, connect_timeout=patience)
        self.engine = "PostgreSQL {}.{}".format(*divmod(raw.info.server_version, 10_000))
        raw.execute(_SETTINGS, (f"{sql.Identifier(self._schema).as_string()}, public",))
        connection = Connection(raw, self._segment_cache, is_of_replica=self._is_of_replica)
        with self._guard:
            for each in list(self._open):
                if not each.is_alive():
                    self._open.pop(each).close()
            self._open[threading.current_thread()] = connection
        return connection

    def close(self) -> None:
        """Close every one. Call when no other thread is using them."""
        with self._guard:
            for connection in self._open.values():
                connection.close()
            self._open.clear()
