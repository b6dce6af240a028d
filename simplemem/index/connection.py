"""How the rooms of the index speak to an engine: in SQL that SQLite and PostgreSQL both take, with SQLite's marks for
values. Words are not among its tables: each engine keeps those in a way of its own (door.Ranking)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from simplemem.index.door import Ids, Nearness, Ranking

if TYPE_CHECKING:
    from simplemem.index.notes import Rows

T = TypeVar("T")
MANY = "carray(?)"
"""Many values as a table whose column is `value`, bound by `Connection.many`."""
IDS = "carray(:ids)"
LAST = "\U0010ffff"  # behind every path
COMMIT = "commit"  # in `meta`: the one of a branch that the rows are of
SET_META = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class Cursor(Protocol):
    """Rows of an answer. `get` is the first column of the first of them."""

    @property
    def get(self) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...


class Connection(Protocol):
    """A thread's way to the tables, and to the words beside them."""

    def execute(self, statements: str, bindings: Any = None, /) -> Cursor: ...
    def executemany(self, statements: str, rows: Any, /) -> object: ...
    def many(self, values: Iterable[Any], /) -> Any: ...
    def state(self) -> object:
        """What changes whenever anybody writes."""

    def words(self, notes: int) -> Ranking:
        """The words of so many notes as they are now."""

    def nearest(self, query: bytes, ids: Ids, limit: int, also: Iterable[int]) -> dict[int, Nearness] | None:
        """What `VectorsInMemory.nearest` answers, by an index of the engine's own; None where it has none."""

    def put_words(self, rows: Rows, note: int, title: str, body: str, blocks: Sequence[tuple[int, str]]) -> None: ...
    def remove_words(self, note: int, places: Sequence[int]) -> None: ...
    def dumped_words(self) -> Iterator[tuple[Any, ...]]:
        """What the index holds of words, in order, so that two can be compared."""

    def holds_same_words(self, other: Any, /) -> bool:
        """Whether that can be told without reading all of it."""

    def holders(self, stretches: Sequence[Sequence[str]], name: str) -> tuple[str, Any]:
        """A subquery for the notes that hold all these, word for word, and the value `name` in it."""


Transaction = Callable[[], AbstractContextManager[Any]]


class Leadership(Protocol):
    """The lead among the servers of one index: one watches, scans and embeds."""

    def held(self) -> bool:
        """Whether we lead, taking the lead if nobody has it."""

    def give_back(self) -> None: ...


class Tables(Protocol):
    """One vault's tables in an engine, for any thread."""

    generation: int
    path: Path  # where this machine keeps it, or what only it needs
    place: str  # where it is, for people; nothing secret

    @property
    def engine(self) -> str:
        """Its name and version."""

    def connection(self) -> Connection: ...
    def reading(self) -> AbstractContextManager[Connection]:
        """One snapshot for several queries."""

    def answer(self, ask: Callable[[Connection], T]) -> T:
        """What is found in one snapshot. An engine may ask twice: of a state that is no more, and of that which is."""

    def writing(self) -> AbstractContextManager[Connection]:
        """One transaction, re-entrant in a thread: the outermost commits."""

    def writing_on(self, generation: int) -> AbstractContextManager[Connection]:
        """A transaction on the very tables that were read before."""

    def leadership(self) -> Leadership: ...
    def meta(self, key: str) -> str | None: ...
    def set_meta(self, key: str, value: str) -> None: ...
    def checkpoint(self, most: int = ..., /) -> None: ...
    def expect_much(self, db: Any) -> None:
        """Before very many notes."""

    def fold(self, transaction: Transaction) -> None:
        """After them: merge what was written, a part a transaction."""

    def beside(self) -> Any:
        """Empty tables, private to this process until `replace_with` puts them in the place of these."""

    def replace_with(self, fresh: Any) -> None: ...
    def drop(self) -> None:
        """Close them, and remove them."""

    def size(self) -> int:
        """Bytes on disk."""

    def check(self) -> list[str]: ...
    def discard(self) -> None: ...
    def close(self) -> None: ...
