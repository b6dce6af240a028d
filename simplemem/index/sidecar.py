"""The sidecar: what store and search ask of the index, in values and not in SQL, and what becomes of it when it is damaged.

It is disposable, so whoever asks never sees that: a file that was replaced or turns out to be damaged is made anew and
the question asked again. A second implementation on another engine would offer this class's methods.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import apsw

from simplemem.errors import Unavailable
from simplemem.index import audit, filters, legs, links, notes, text, vectors, vocabulary
from simplemem.index.bm25 import CountsKept
from simplemem.index.database import Database, build_beside, open_database
from simplemem.index.file import Damaged, Replaced
from simplemem.index.filters import Narrow, Narrowed
from simplemem.index.legs import Match
from simplemem.index.links import Copy, StoredLink
from simplemem.index.notes import Known, Row
from simplemem.index.resident import Resident
from simplemem.index.text import Place
from simplemem.index.vectors import (
    Estimate,
    Generation,
    MadeBefore,
    Nearness,
    QueryVector,
    estimate,
    nothing_made_before,
)
from simplemem.services.embed import Embedder
from simplemem.vault.links import Named

P = ParamSpec("P")
T = TypeVar("T")
_CHECK_SECONDS = 24 * 3600.0
_TRIES = 5
_LOG = logging.getLogger(__name__)


class Mark(NamedTuple):
    """A state of the index, to ask what changed since."""

    generation: int
    rev: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The notes put since a mark, which of them have the property that was asked for, and how many notes there are in all.
    `whole` says that these are all there are."""

    mark: Mark
    notes: Sequence[Known]
    having: frozenset[str]
    count: int
    whole: bool


class Sidecar:
    """One vault's sidecar. Thread-safe: every thread has its own connection. `lock` is the vault's; `begin_anew` is called
    when another file lies where the index was, which may be empty."""

    def __init__(
        self,
        path: Path,
        lock: Callable[[], AbstractContextManager[None]],
        begin_anew: Callable[[], None] = lambda: None,
    ) -> None:
        self._lock = lock
        self._begin_anew = begin_anew
        self.database: Database = open_database(path, lock)
        self.taken_up = self.generation  # that of the file as it was when it was last asked
        self._in_memory = False
        self._resident: Resident | None = None
        self._resident_of: tuple[str, int] | None = None  # the embedder and the dimension it was made for
        self._counts = CountsKept()
        self._guard = threading.Lock()
        self._local = threading.local()

    @property
    def path(self) -> Path:
        return self.database.path

    @property
    def generation(self) -> int:
        """Grows when another file took the place of the index: what was known of it holds no more."""
        try:
            self.database.connection()
        except Damaged:
            self.database.discard()
        return self.database.generation

    def keep_vectors_in_memory(self) -> None:
        """For a process that will search more than once."""
        self._in_memory = True

    def snapshot(self) -> AbstractContextManager[Any]:
        """Hold one state of the index over several questions."""
        return self.database.reading()

    def build_beside(self) -> Database:
        return build_beside(self.path, self._lock)

    def close(self) -> None:
        self.database.close()

    # -- an index that was replaced, or is damaged

    def consistently(self, question: Callable[[], T]) -> T:
        """Answer a question that may need several calls. If the index turns out to be gone or damaged, it is made anew and
        all of the question is asked again."""
        if getattr(self._local, "asked", False):
            return question()
        with self._asking():
            if self.generation != self.taken_up:
                self._take_up()
            try:
                return question()
            except Replaced:
                return self._ask_again(question)
            except (Damaged, apsw.Error, TypeError, ValueError) as error:
                if not self._is_damage(error):
                    raise
                self._make_anew(error)
                return question()

    def check(self) -> None:
        """Once a day, look for damage that no question has met yet: what it hides would be missing from answers."""
        last = float(self.consistently(lambda: self.database.meta("checked")) or 0)
        if abs(time.time() - last) < _CHECK_SECONDS:
            return
        if found := self.database.check():
            self._make_anew(found[0])
        self.consistently(lambda: self.database.set_meta("checked", f"{time.time():.0f}"))

    @contextmanager
    def _asking(self) -> Iterator[None]:
        self._local.asked = True
        try:
            yield
        finally:
            self._local.asked = False

    def _read(self, ask: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask one thing in one snapshot."""

        def question() -> T:
            with self.database.reading() as db:
                return ask(db, *args, **kwargs)

        return self.consistently(question)

    def _ask_again(self, question: Callable[[], T]) -> T:
        """The index was replaced in the middle of a question."""
        for _ in range(_TRIES):
            self._take_up()
            with suppress(Replaced):
                return question()
        raise Unavailable("the index is replaced again and again", hint="Does another program delete it?")

    def _make_anew(self, found: object) -> None:
        _LOG.warning("the index is damaged and will be rebuilt: %s", found)
        self.database.discard()
        self._take_up()

    def _take_up(self) -> None:
        self.taken_up = self.generation
        self._begin_anew()

    def _is_damage(self, error: Exception) -> bool:
        """Whether a question failed because the index says what we never wrote: not every damage shows as one to SQLite."""
        return isinstance(error, (Damaged, json.JSONDecodeError, UnicodeDecodeError)) or bool(self.database.check())

    # -- notes

    def known(self, path: str) -> Known | None:
        """What is known of a note without reading it."""
        return self._read(notes.known, path)

    def all_known(self) -> dict[str, Known]:
        return self._read(notes.all_known)

    def known_at(self, paths: Iterable[str]) -> dict[str, Known]:
        """What is known of those of these notes that are there."""
        return self._read(notes.known_at, paths)

    def mark(self) -> Mark:
        """The state of the index now."""
        return self._read(lambda db: Mark(self.database.generation, notes.newest_rev(db)))

    def since(self, mark: Mark | None, having: str = "") -> Changes:
        """What was put since a mark, by any process; everything without one. `having` is a property to look for."""
        return self._read(self._since, mark, having)

    def _since(self, db: apsw.Connection, mark: Mark | None, having: str) -> Changes:
        now = Mark(self.database.generation, notes.newest_rev(db))
        if now == mark:
            return Changes(now, (), frozenset(), -1, whole=False)
        whole = mark is None or mark.generation != now.generation
        rev = -1 if whole or mark is None else mark.rev
        having_it = notes.with_property(db, having, rev) if having else frozenset()
        return Changes(now, notes.known_since(db, rev), having_it, notes.count(db), whole)

    def row(self, path: str) -> Row | None:
        return self._read(notes.row_at, path)

    def rows(self, ids: Iterable[int]) -> dict[int, Row]:
        return self._read(notes.rows_of, ids)

    def tags_of(self, note_id: int) -> tuple[str, ...]:
        return self._read(notes.tags_of, note_id)

    def paths_named(self, key: str) -> tuple[list[str], list[str], list[str], list[str]]:
        """Notes whose path, file name, title or alias compares equal to `key`."""
        return self._read(notes.paths_named, key)

    def near_names(self, prefix: str, limit: int) -> list[str]:
        """Paths of notes whose path or name begins so."""
        return self._read(notes.near_names, prefix, limit)

    def all_paths(self) -> list[str]:
        return self._read(notes.all_names)

    def paths_in(self, folder: str) -> list[str]:
        """The notes that lie in a folder itself."""
        return self._read(notes.paths_in, folder)

    # -- narrowing and listing

    def ids(self, narrow: Narrow) -> Sequence[int]:
        with self.database.reading() as db:
            kept: tuple[apsw.Connection, Narrowed] | None = getattr(self._local, "narrowed", None)
            if kept is None or kept[0] is not db:
                kept = self._local.narrowed = (db, Narrowed())
            return kept[1].ids(db, narrow)

    def page(self, narrow: Narrow, sort: str, limit: int, offset: int) -> tuple[list[Row], int]:
        with self.database.reading() as db:
            return filters.page(db, narrow, sort, limit, offset)

    # -- words and vectors

    def leg(self, name: str, expression: str, limit: int, ids: Sequence[int] | None) -> list[Match]:
        with self.database.reading() as db:
            counts = self._counts.of_state(self.database.generation, notes.newest_rev(db))
            return legs.leg(db, name, expression, limit, ids, counts)

    def notes_with(self, expressions: Sequence[str], most: int = 1) -> list[int]:
        """For each expression made of quoted words, how many notes it finds, counted to `most`."""
        with self.database.reading() as db:
            return vocabulary.notes_with(db, expressions, most)

    def notes_holding(self, expression: str) -> list[int]:
        """The notes that an expression made of quoted words finds."""
        with self.database.reading() as db:
            return vocabulary.notes_holding(db, expression)

    def places(self, ids: Iterable[int]) -> dict[int, Place]:
        with self.database.reading() as db:
            return text.places_of(db, ids)

    def passages(self, note_id: int) -> list[Place]:
        with self.database.reading() as db:
            return text.passages_of(db, note_id)

    def nearest(
        self, query: bytes, ids: Sequence[int] | None, limit: int = 200, also: Collection[int] = ()
    ) -> dict[int, Nearness]:
        """How near the nearest notes are to a query's vector, and those in `also`; notes without vectors are absent."""
        with self.database.reading() as db:
            if not _comparable(db, query):
                return {}
            if not (self._in_memory or not self.database.vectors_in_sql):
                return vectors.nearest_in_sql(db, query, ids, limit, also)
            return self._held(db, len(query)).nearest(db, self.database.generation, query, ids, limit, also)

    def _held(self, db: apsw.Connection, dimension: int) -> Resident:
        """The vectors in use, in memory. Those of another embedder are let go."""
        found = vectors.in_use(db)
        wanted = (found.embedder if found is not None else "", dimension)
        with self._guard:
            if self._resident is None or self._resident_of != wanted:
                self._resident, self._resident_of = Resident(dimension), wanted
            return self._resident

    def nearest_place(self, note_id: int, query: bytes) -> int | None:
        with self.database.reading() as db:
            return vectors.nearest_place(db, note_id, query) if _comparable(db, query) else None

    def vectors_of(self, note_id: int) -> list[bytes]:
        with self.database.reading() as db:
            return vectors.vectors_of(db, note_id)

    # -- generations of vectors

    def generations(self) -> list[Generation]:
        """The generations of vectors, the one in use first."""
        return self._read(vectors.generations)

    def holds_vectors_of(self, embedder: str) -> bool:
        """Whether the vectors in use are this embedder's. A question never waits for the index to be written."""
        found = self._read(vectors.in_use)
        return found is not None and found.embedder == embedder

    def progress(self, embedder: str, remote: bool) -> tuple[int, int]:
        """How many notes wait for a vector of this embedder, which may not have a generation yet, and how many are to have
        one."""
        return self._read(vectors.progress, embedder, remote=remote)

    def private_count(self) -> int:
        """Notes that are kept private, and take part in search."""
        return self._read(vectors.private_count)

    def refused(self) -> list[tuple[str, str]]:
        """Notes of which the embedder refused some text, and what it said."""
        return self._read(vectors.refused)

    def estimate(self, embedder: Embedder, *, anew: bool = False, known: MadeBefore = nothing_made_before) -> Estimate:
        """What it takes to give every note its vectors."""
        return self._read(estimate, embedder.name, remote=embedder.remote, anew=anew, known=known)

    # -- links

    def named(self) -> Named:
        """Which files have a name, as the index knows it."""

        def named(key: str) -> Sequence[str]:
            return self._read(links.files_named, key)

        return named

    def files(self) -> set[str]:
        return self._read(links.all_files)

    def links_from(self, path: str) -> list[StoredLink]:
        return self._read(links.links_from, path)

    def links_to(self, path: str) -> list[StoredLink]:
        return self._read(links.links_to, path)

    def sources_that_could_mean(self, paths: Iterable[str]) -> list[str]:
        """The notes with a link that is looked up by the name of one of these files."""
        return self._read(links.sources_that_could_mean, paths)

    def all_links(self) -> list[StoredLink]:
        return self._read(links.all_links)

    def conflict_copies(self) -> list[Copy]:
        """Every file that is a conflict copy by its name of a note that is there."""
        return self._read(links.all_copies)

    # -- counting

    def counts(self) -> dict[str, Any]:
        return self._read(audit.counts)

    def hidden_counts(self) -> dict[str, int]:
        return self._read(audit.hidden_notes)

    def note_count(self) -> int:
        return self._read(notes.count)

    def tag_counts(self) -> dict[str, int]:
        return self._read(audit.tags)

    def inspection(self) -> dict[str, dict[str, Any]]:
        """Everything that was read from every note."""
        return self._read(audit.inspection)


def _comparable(db: apsw.Connection, query: bytes) -> bool:
    """Whether the vectors in use are of the embedder that made a question's vector, by its name and its length."""
    found = vectors.in_use(db)
    if found is None:
        return not isinstance(query, QueryVector)
    return found.dimension in (0, len(query)) and getattr(query, "embedder", found.embedder) == found.embedder
