"""What an engine of the index has to offer, and the errors that it raises.

An engine keeps the rows of one vault's index, in SQLite or PostgreSQL. The rest of the index is the
same for each engine, and uses it through the protocols of this module (docs/internals/engines.md).

Statements are written in the SQL that both engines take. Values are marked `$1`, `$2`, …, in the
order in which they first occur in the statement. Where the engines differ, a piece of the statement
comes from the `Dialect`.
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
COMMIT = "commit"  # in `meta`: the commit of the branch that the rows were read from


# -- errors


class Damaged(Exception):
    """The index cannot be used. It is to be discarded, and built again from the notes."""


class Replaced(Exception):
    """The index was replaced while an operation was based on the old one. Begin again.

    The transaction wrote nothing. Ids that were read before may name other notes.
    """


class StatementFailed(Exception):
    """The engine refused a statement, for a reason that is neither damage nor a lack of room."""


# -- values


class IntegerList:
    """Many signed integers of 64 bits that are bound as one value, for `Dialect.in_integers`.

    An `array` is used as it is, without a copy, so its type code must be "q".
    """

    __slots__ = ("values",)

    def __init__(self, values: Iterable[int]) -> None:
        self.values: array[int] = values if isinstance(values, array) else array("q", values)


class TextList:
    """Many texts that are bound as one value, for `Dialect.in_texts`."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[str]) -> None:
        self.values: tuple[str, ...] = tuple(values)


Value = int | float | str | bytes | IntegerList | TextList | None
DatabaseRow = tuple[Any, ...]  # the types of the columns follow from the statement


@dataclass(frozen=True, slots=True)
class Dialect:
    """The pieces of SQL in which the engines differ. Each method returns one.

    In SQLite, a list that is bound is a table of one column; in PostgreSQL, it is an array, and the
    statement names the type of its values. The fields are templates for `str.format`.
    """

    # The condition that {column} is in the list bound at {mark}, whose values have {type}.
    membership: str
    # The list bound at {mark}, whose values have {type}, as a table {alias} with the column
    # `value`.
    list_table: str
    # FROM and WHERE: for each row of the table {outer}, the rows of the table {name}, called
    # {alias}, for which {condition} holds.
    rows_of_each: str
    integer_type: str  # the {type} of an IntegerList
    text_type: str  # the {type} of a TextList
    column_types: Mapping[str, str]  # what replaces each name in braces in `schema.sql`

    def schema(self) -> str:
        """Return the SQL that creates all tables of an empty index, read from `schema.sql`."""
        return _SCHEMA.read_text(encoding="utf-8").format_map(self.column_types)

    def in_integers(self, column: str, mark: str) -> str:
        """Return the condition that a column is in the IntegerList bound at `mark` (`$1`, …)."""
        return self.membership.format(column=column, mark=mark, type=self.integer_type)

    def in_texts(self, column: str, mark: str) -> str:
        """Return the condition that a column is one of the TextList bound at `mark` (`$1`, …)."""
        return self.membership.format(column=column, mark=mark, type=self.text_type)

    def integers(self, mark: str, alias: str) -> str:
        """Return the IntegerList at `mark` as a table `alias` with the column `value`, for a FROM.

        In SQLite, the table of an empty list has one row, -1.
        """
        return self.list_table.format(mark=mark, alias=alias, type=self.integer_type)

    def texts(self, mark: str, alias: str) -> str:
        """Return the TextList at `mark` as a table `alias` with the column `value`, for a FROM.

        In SQLite, the table of an empty list has one row, the number -1.
        """
        return self.list_table.format(mark=mark, alias=alias, type=self.text_type)

    def rows_for_each_integer(self, mark: str, alias: str, table: str, condition: str) -> str:
        """Return the FROM and WHERE for the rows of a table that belong to each integer of a list.

        The IntegerList is bound at `mark`, and is a table `alias` with the column `value`. `table`
        is a name and an alias, as in "places p". `condition` compares a key of this table with
        `alias.value`, usually as a range. With a plain join, both engines would read the whole
        table to find a few ranges.
        """
        name, table_alias = table.split()
        return self.rows_of_each.format(
            outer=self.integers(mark, alias), name=name, alias=table_alias, condition=condition
        )


# -- what an engine offers


class Cursor(Protocol):
    """The answer of a statement: its rows, each read once, in order.

    A statement that changes rows is complete only once its answer was fetched.
    """

    @property
    def get(self) -> Any:
        """The first column of the next row; None if no row is left.

        Each use reads a row, so a second use gives the value of another one.
        """

    def __iter__(self) -> Iterator[DatabaseRow]:
        """Iterate over the rows that are left."""

    def __next__(self) -> DatabaseRow:
        """Return the next row. Raises StopIteration after the last."""

    def fetchone(self) -> DatabaseRow | None:
        """Return the next row; None after the last."""

    def fetchall(self) -> list[DatabaseRow]:
        """Return all rows that are left; an empty list after the last. Completes a change."""


class VectorIndex(Protocol):
    """The vectors of places, in the engine's own type: a signed 8-bit number per dimension.

    All vectors of an index have one width, which is both their dimension and their length in bytes.
    A place is the id of a passage or block; it contains the id of the note, and a bit marks blocks
    (`index/places.py`). Before `create`, there are no vectors, and reading
    finds none. Methods that change vectors are called within a transaction.
    """

    def create(self, dimension: int) -> None:
        """Make room for vectors of this width.

        Called before the first vector is written. Does nothing if it was called before, even for
        another width.
        """

    def clear(self) -> None:
        """Remove all vectors, and what was made for their width. `create` must be called again."""

    def write(self, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Store vectors, given as (place, vector), in place of those that the places have.

        If there are any, `create` must have been called.
        """

    def remove(self, places: Sequence[int]) -> None:
        """Remove the vectors of some places. Places without a vector are ignored."""

    def read(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return vectors by place. Places without a vector are absent."""

    def read_notes(self, note_ids: Iterable[int], *, blocks: bool) -> Iterable[tuple[int, bytes]]:
        """Query the (place, vector) of the passages of some notes, or of their blocks, by place.

        The rows are read while the answer is iterated, so iterate it within the same snapshot.
        Notes without vectors are absent.
        """

    def read_all(self, *, blocks: bool) -> tuple[array[int], bytearray]:
        """Return the places of all passages (or blocks) that have a vector, and the packed vectors.

        The places are in any order. Counted from 0, the vector of the n-th place begins at byte
        n times the width. Both are empty if there are no vectors.
        """

    def count(self) -> int:
        """Return how many vectors there are, of passages and blocks together."""

    @property
    def is_indexed(self) -> bool:
        """Whether the engine finds the nearest passages without comparing all vectors."""

    def nearest_notes(
        self,
        query: bytes,
        note_ids: Sequence[int] | None,
        limit: int,
        /,
    ) -> list[int] | None:
        """Return ids of notes that include those of the `limit` nearest passages, in any order.

        There may be more than `limit`. `note_ids` are the notes to choose from; None for all. An
        approximate index may miss a few. Returns None if the caller should compare all vectors in
        memory instead, because the engine cannot find the nearest, or only more slowly.
        """


class Connection(Protocol):
    """The connection of one thread, within a snapshot or a transaction. Not for other threads."""

    @property
    def dialect(self) -> Dialect:
        """The pieces of SQL that differ between the engines."""

    @property
    def vectors(self) -> VectorIndex:
        """The vectors of this index, in the same snapshot or transaction."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement, with the values of `$1`, `$2`, …, and return its rows.

        A statement that changes something is complete only once its rows were fetched, even if it
        has none.
        """

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement that returns no rows once per row of values, which contain no lists.

        The change is complete on return.
        """

    def state(self) -> object:
        """Return a token of the index as this connection sees it. Only to be compared.

        If the tokens of two calls are equal, nobody wrote between them, not even this connection.
        """


class Leadership(Protocol):
    """The lead among several servers of one vault. Used by one thread.

    The leader watches, scans and embeds for all.
    """

    def acquire_or_keep(self) -> bool:
        """Return whether this process leads, after taking the lead if nobody has it.

        Does not wait for another leader. The thread that writes calls it every two seconds, because
        a lead on a server ends 8 s after it was last renewed. Returns False, without an error, if
        the engine is away.
        """

    def release(self) -> None:
        """Give up the lead, so that another process can lead at once.

        Does nothing if this process does not lead.
        """


class Engine(Protocol):
    """The index of one vault in one engine, for any thread.

    Any method raises Unavailable while the engine cannot be used (busy, away, no room), Damaged if
    the index has to be built again, and StatementFailed if a statement is wrong.
    """

    path: Path  # where this machine keeps the index, or what else it needs for one
    place: str  # where the index is, for people
    generation: int  # grows whenever another index has taken the place of this one

    @property
    def engine(self) -> str:
        """The name and version of the engine, for people."""

    @property
    def vector_storage(self) -> str:
        """How the engine keeps vectors, for people."""

    def refresh(self) -> None:
        """Notice whether another index took the place of this one. Then `generation` has grown.

        Called before a query. A replacement on a server may be noticed only with the next query.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """Open a snapshot, in which several statements see the same state, for a `with` block.

        Yields its connection; within a snapshot or transaction of this thread, the connection of
        that one. Nothing may be written in a snapshot.
        """

    def answer(self, ask: Callable[[Connection], T]) -> T:
        """Call `ask` in one snapshot, and return what it returns.

        `ask` is called again if somebody wrote meanwhile, so it must have no effects. Within a
        transaction of this thread it is called once, in it. Raises Replaced if another index takes
        the place of this one meanwhile.
        """

    def writing(self, generation: int | None = None) -> AbstractContextManager[Connection]:
        """Open a transaction for a `with` block, and yield its connection.

        It commits at the end, and is rolled back by an exception. Within a transaction of this
        thread, it yields the connection of that one, and only the outermost commits. Waits while
        another process writes. The outermost raises Replaced if the index is no longer the one of
        `generation`, because ids may name other notes; None accepts any. It raises Unavailable if
        this thread led the servers and another leads now.
        """

    def rows(self, statement: str, values: Sequence[Value] = ()) -> list[DatabaseRow]:
        """Return the rows of one statement, with the values of `$1`, `$2`, ….

        Within a transaction of this thread, it sees its writes.
        """

    def meta(self, key: str) -> str | None:
        """Return a value about the index itself, from the table `meta`; None without such a key."""

    def set_meta(self, key: str, value: str) -> None:
        """Store a fact about the index itself in the table `meta`, in place of an older one.

        Within a transaction of this thread, it is part of that. Otherwise it is committed at once.
        """

    def begin_bulk_load(self) -> None:
        """Prepare for very many new notes. Called in the first transaction of a bulk import.

        An engine may do nothing. After it, `merge_segments_at_rest` or `checkpoint` brings the
        statistics of a server up to date.
        """

    def merge_segments_at_rest(self, generation: int | None = None) -> None:
        """Merge segments of the term index, also a few large ones, if they make queries slow.

        Called at the end of a scan, when no more notes are about to be written. Does nothing if no
        merge is due. Not within a transaction. Raises Replaced as `writing(generation)` does.
        """

    def checkpoint(self, *, is_bulk: bool = False) -> None:
        """Tidy up after writes: merge segments, empty a write-ahead log, index vectors.

        It is cheap if there is nothing to do, so it may be called after each write. `is_bulk` says
        that more writes follow at once; then an engine may do less. Not within a transaction.
        """

    def check(self) -> list[str]:
        """Return what is wrong with the index, a sentence each; empty if all is well.

        Repairs nothing. Reads the whole index.
        """

    def discard(self) -> None:
        """Replace this index by an empty one, unless another did since this object last used it.

        `generation` grows in both cases.
        """

    def build_replacement(self) -> Engine:
        """Return a new, empty index that only this process knows, to be filled for `swap_in`.

        `drop` removes one that is not swapped in.
        """

    def swap_in(self, fresh: Engine) -> None:
        """Replace this index by one from `build_replacement`. Other threads and processes notice.

        `fresh` cannot be used afterwards.
        """

    def drop(self) -> None:
        """Close the index and delete it with all its data."""

    def size(self) -> int:
        """Return the bytes that the index takes on disk."""

    def leadership(self) -> Leadership:
        """Return an object with which this process can lead the servers of this index.

        Takes no lead yet.
        """

    def close(self) -> None:
        """Close every connection. No other thread may be using them."""


def marks(count: int) -> str:
    """Return `count` placeholders for the values of a statement: `$1, $2` for 2."""
    return ", ".join(f"${number}" for number in range(1, count + 1))


def read_integer(cursor: Cursor) -> int:
    """Return the first value of an answer as an integer. Raises Damaged if there is no number."""
    value = cursor.get
    try:
        return int(value)
    except (TypeError, ValueError):
        raise Damaged(f"a number is missing in the index, which has {value!r:.50}") from None
