"""What an engine of the index has to offer, and the errors that it raises.

An engine keeps the rows of one vault's index: SQLite, or PostgreSQL. Everything else that the index
does is the same for each engine, and speaks to it through the protocols of this module
(docs/internals/engines.md).

Statements are written in the SQL that both engines take. Values are marked `$1`, `$2`, …, in the
order in which they first occur in the statement. Where the two differ, the statement asks the `Dialect`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
_SCHEMA = Path(__file__).with_name("schema.sql")

LAST = "\U0010ffff"  # sorts after every character of a path or a term

SET_META = """
    INSERT INTO meta (key, value) VALUES ($1, $2)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
COMMIT = "commit"  # in `meta`: the commit of a branch that the rows are of


# -- errors


class Damaged(Exception):
    """The index cannot be used. It is discarded, and built again from the notes."""


class Replaced(Exception):
    """The index was replaced while an operation was based on the old one. Begin again."""


class StatementFailed(Exception):
    """The engine refused a statement, for a reason that is neither damage nor a lack of room."""


# -- values


class IntegerList:
    """Many integers that are bound as one value, for `Dialect.in_integers` and its like."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[int]) -> None:
        self.values: array[int] = values if isinstance(values, array) else array("q", values)


class TextList:
    """Many texts that are bound as one value, for `Dialect.in_texts` and its like."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[str]) -> None:
        self.values: tuple[str, ...] = tuple(values)


Value = int | float | str | bytes | IntegerList | TextList | None
DatabaseRow = tuple[Any, ...]  # what a column holds is known to who wrote the statement


@dataclass(frozen=True, slots=True)
class Dialect:
    """The places where the SQL of the engines differs. All methods return a piece of a statement.

    A list that is bound is a table of one column in SQLite, and an array in PostgreSQL. For
    PostgreSQL the type of its values stands in the statement: integers or texts.
    """

    membership: str  # of a {column} in the list of the {mark}, whose values have a {type}
    list_table: str  # the list of the {mark} as a table {alias} with the column `value`
    rows_of_each: (
        str  # for each row of {outer}, the rows of {table} for which the {condition} holds
    )
    integer_type: str  # of the values of a list
    text_type: str
    column_types: Mapping[str, str]  # and what else the tables of `schema.sql` name in braces

    def schema(self) -> str:
        """Return the statements that make the tables of an index."""
        return _SCHEMA.read_text(encoding="utf-8").format_map(self.column_types)

    def in_integers(self, column: str, mark: str) -> str:
        """Return the condition that a column is one of an IntegerList."""
        return self.membership.format(column=column, mark=mark, type=self.integer_type)

    def in_texts(self, column: str, mark: str) -> str:
        """Return the condition that a column is one of a TextList."""
        return self.membership.format(column=column, mark=mark, type=self.text_type)

    def integers(self, mark: str, alias: str) -> str:
        """Return an IntegerList as a table with the column `value`, for a FROM."""
        return self.list_table.format(mark=mark, alias=alias, type=self.integer_type)

    def texts(self, mark: str, alias: str) -> str:
        """Return a TextList as a table with the column `value`, for a FROM."""
        return self.list_table.format(mark=mark, alias=alias, type=self.text_type)

    def rows_for_each_integer(self, mark: str, alias: str, table: str, condition: str) -> str:
        """Return the FROM and WHERE of the rows of a table, one range of its key per integer.

        `table` has an alias; `condition` compares its key with `alias.value`. Neither engine would
        otherwise look up a few ranges: each would read the whole table.
        """
        name, table_alias = table.split()
        return self.rows_of_each.format(
            outer=self.integers(mark, alias), name=name, alias=table_alias, condition=condition
        )


# -- what an engine offers


class Cursor(Protocol):
    """The answer of a statement. A statement that changes rows is complete once it was fetched."""

    @property
    def get(self) -> Any:
        """The value of an answer of one row with one column; None if there is no row."""

    def __iter__(self) -> Iterator[DatabaseRow]:
        """Iterate over the rows."""

    def __next__(self) -> DatabaseRow:
        """Return the next row."""

    def fetchone(self) -> DatabaseRow | None:
        """Return the next row; None after the last."""

    def fetchall(self) -> list[DatabaseRow]:
        """Return all rows that are left."""


class VectorIndex(Protocol):
    """The vectors of places, in the engine's own type: 8-bit numbers, all of one width."""

    def create(self, dimension: int) -> None:
        """Make room for vectors of this width. Called before the first is written."""

    def clear(self) -> None:
        """Remove all vectors, and what was made for their width."""

    def write(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Store the vectors of places, in place of those that they have."""

    def remove(self, places: Sequence[int]) -> None:
        """Remove the vectors of those places that have one."""

    def read(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of those places that have one."""

    def read_notes(self, note_ids: Iterable[int], *, blocks: bool) -> Iterable[tuple[int, bytes]]:
        """Query the places and vectors of the passages of notes, or of their blocks, by place.

        The answer is read when it is iterated.
        """

    def read_all(self, *, blocks: bool) -> tuple[array[int], bytearray]:
        """Return the places of all passages or blocks, and their vectors.

        The vector of the n-th place begins at n times the width. The order is any.
        """

    def count(self) -> int:
        """Return how many vectors there are."""

    @property
    def is_indexed(self) -> bool:
        """Whether an index of the engine's own replaces the comparison of all vectors in memory."""

    def nearest_notes(
        self,
        query: bytes,
        note_ids: Sequence[int] | None,
        limit: int,
        /,
    ) -> list[int] | None:
        """Return candidates: the notes of the `limit` nearest passages, perhaps more, in any order.

        `note_ids` are the notes to choose from, all if None. An approximate index may miss a few.
        Returns None if the engine cannot tell, or not as fast as a comparison of all vectors in
        memory.
        """


class Connection(Protocol):
    """The connection of one thread, within a snapshot or a transaction."""

    @property
    def dialect(self) -> Dialect:
        """Where the engine's SQL differs."""

    @property
    def vectors(self) -> VectorIndex:
        """The vectors."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement. One that changes something must be fetched."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement for each of some rows of values."""

    def state(self) -> object:
        """Return a token of the index as this connection sees it.

        Two equal tokens mean that nobody wrote between the two calls.
        """


class Leadership(Protocol):
    """The lead among several servers of one vault."""

    def acquire_or_keep(self) -> bool:
        """Return whether this process leads, after taking the lead if nobody has it.

        Does not wait. Called every two seconds by the thread that writes: a lead on a server ends 8
        s after it was last renewed. False, without an error, if the engine is away.
        """

    def release(self) -> None:
        """Let another process lead."""


class Engine(Protocol):
    """The index of one vault in one engine, for any thread.

    Any method raises Unavailable while the engine cannot be used (busy, away, no room), and Damaged
    when the index has to be built again.
    """

    path: Path  # where this machine keeps the index, or what else it needs for one
    place: str  # where the index is, for people
    generation: int  # grows when another index took the place of this one

    @property
    def engine(self) -> str:
        """Its name and version."""

    @property
    def vector_storage(self) -> str:
        """How it keeps vectors, for people."""

    def refresh(self) -> None:
        """Notice whether another index took the place of this one. Then `generation` has grown.

        A server may be noticed only with the next query.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """Open one snapshot for several statements."""

    def answer(self, ask: Callable[[Connection], T]) -> T:
        """Return what `ask` finds in one snapshot.

        It is called again if somebody wrote meanwhile, so it must have no effects. Within a
        transaction of this thread it is called once, in it.
        """

    def writing(self, generation: int | None = None) -> AbstractContextManager[Connection]:
        """Open one transaction, re-entrant in a thread: the outermost commits.

        The outermost raises Replaced if the index is no longer the one of `generation`, because ids
        may name other notes, and Unavailable if this thread led the servers and another leads now.
        """

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[DatabaseRow]:
        """Return the rows of one statement. Within a transaction of this thread, it sees its
        writes.
        """

    def meta(self, key: str) -> str | None:
        """Return a fact about the index itself."""

    def set_meta(self, key: str, value: str) -> None:
        """Store a fact about the index itself."""

    def begin_bulk_load(self) -> None:
        """Prepare for very many notes. Called in the first transaction of a bulk import.

        A later `merge_segments_at_rest` may bring the statistics of a server up to date.
        """

    def merge_segments_at_rest(self, generation: int | None = None) -> None:
        """Merge segments of the term index, if many have come together. Called after a scan.

        Not for a transaction. Raises Replaced as `writing` does.
        """

    def checkpoint(self, *, is_bulk: bool = False) -> None:
        """Tidy up after writes: merge segments, fold a log into its file, index vectors.

        It is cheap if there is nothing to do, and may be called after each write. During a bulk
        write less is done. Not for a transaction.
        """

    def check(self) -> list[str]:
        """Return what is wrong with the index; nothing if all is well. Only reads."""

    def discard(self) -> None:
        """Put an empty index in the place of this one, unless somebody else just did."""

    def build_replacement(self) -> Engine:
        """Return an empty index that is private to this process until `swap_in` takes it."""

    def swap_in(self, fresh: Engine) -> None:
        """Put an index from `build_replacement` in the place of this one. Others notice.

        `fresh` cannot be used afterwards.
        """

    def drop(self) -> None:
        """Close the index and remove it."""

    def size(self) -> int:
        """Return its bytes on disk."""

    def leadership(self) -> Leadership:
        """Return the lead of this index."""

    def close(self) -> None:
        """Close every connection. No other thread may be using them."""


def marks(count: int) -> str:
    """Return the marks of so many values: `$1, $2`."""
    return ", ".join(f"${number}" for number in range(1, count + 1))


def read_integer(cursor: Cursor) -> int:
    """Return the only value of an answer. Raises Damaged if it is no number."""
    value = cursor.get
    try:
        return int(value)
    except (TypeError, ValueError):
        raise Damaged(f"a number is missing in the index, which has {value!r:.50}") from None
