"""The sidecar: what store and search ask of the index, in values and not in SQL, and what becomes of it when it is damaged.

It is disposable, so whoever asks never sees that: a file that was replaced or turns out to be damaged is made anew and
the question asked again. A second implementation on another engine would offer this class's methods.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import apsw

from simplemem.errors import Unavailable
from simplemem.index import audit, filters, legs, links, nearest, notes, shown, vectors
from simplemem.index.database import Database, build_beside, open_database, state_of
from simplemem.index.door import (
    Answer,
    AnyOf,
    Listing,
    Narrow,
    Nearness,
    NoteId,
    PlaceId,
    Question,
    Row,
    Shown,
    Standing,
)
from simplemem.index.file import Damaged, Replaced
from simplemem.index.legs import Counts, CountsKept
from simplemem.index.links import Copy, StoredLink
from simplemem.index.nearest import VectorsInMemory
from simplemem.index.notes import Known, Outline
from simplemem.index.vectors import (
    Estimate,
    Generation,
    MadeBefore,
    estimate,
    nothing_made_before,
)
from simplemem.services.embed import Embedder
from simplemem.vault.links import Named

P = ParamSpec("P")
T = TypeVar("T")
_CHECK_SECONDS = 24 * 3600.0
_TRIES = 5
_KEPT = 2  # filters whose notes are kept
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
        self._vectors: VectorsInMemory | None = None
        self._vectors_of: tuple[str, int] | None = None  # the embedder and the dimension they are of
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

    def outline(self, path: str) -> Outline | None:
        """What is shown of a note that is read, with the links in it; None when there is no such note."""

        def read(db: apsw.Connection) -> Outline | None:
            found = notes.outline(db, path)
            return None if found is None else found._replace(links=links.links_from(db, path))

        return self._read(read)

    def paths_named(self, key: str) -> tuple[list[str], list[str], list[str], list[str]]:
        """Notes whose path, file name, title or alias compares equal to `key`."""
        return self._read(notes.paths_named, key)

    def near_names(self, prefix: str, limit: int) -> list[str]:
        """Paths of notes whose path or name begins so."""
        return self._read(notes.near_names, prefix, limit)

    # -- asking (door.Legs)

    def vocabulary(self, asked: Sequence[Sequence[AnyOf]], most: int = 1) -> tuple[Sequence[int], Standing]:
        """How many notes hold something of each of some groups of words, counted to `most`; and how far the index is."""
        return self._read(lambda db: (legs.vocabulary(db, asked, most) if asked else (), self._kept(db).standing(db)))

    def holding(self, groups: Sequence[AnyOf], some: Sequence[NoteId]) -> Sequence[tuple[int, set[NoteId]]]:
        """For each group of words how many notes hold one of them, and which of `some` do."""
        return self._read(legs.holding, groups, some)

    def ask(self, question: Question) -> Answer:
        """The notes that the words or the vector of a question lead to."""
        return self._read(self._answer, question)

    def _answer(self, db: apsw.Connection, question: Question) -> Answer:
        ids = None if question.narrow.is_open() else self._kept(db).ids(db, question.narrow)
        found, blocks, pairs = legs.legs(db, question, ids, self._counts_of(db))
        vector = self._vector(db, question)
        near = None
        if vector is not None:
            near = self._nearest(db, vector, ids, question.nearest, {match.note for match in found})
        every = {match.note for match in found}.union(near or ())
        passed = None if ids is None else len(ids)
        return Answer(found, blocks, pairs, near, notes.paths_of(db, every), passed, vector)

    def _vector(self, db: apsw.Connection, question: Question) -> bytes | None:
        """The vector of a question, if it can be compared with those in use: another embedder's never are."""
        if question.like:
            known = notes.known(db, question.like)
            return None if known is None else nearest.mean_vector(db, known.id)
        vector, found = question.vector, vectors.in_use(db)
        if vector is None or found is None or found.dimension not in (0, len(vector)):
            return None
        return vector if getattr(vector, "embedder", found.embedder) == found.embedder else None

    def _nearest(
        self, db: apsw.Connection, vector: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
    ) -> dict[NoteId, Nearness]:
        in_sql = self.database.vectors_in_sql
        if in_sql and not self._in_memory:
            self._in_memory = True  # whoever asks a second time will ask a third time
            return nearest.nearest_in_sql(db, vector, ids, limit, also)
        found = vectors.in_use(db)
        wanted = (found.embedder if found is not None else "", len(vector))
        with self._guard:
            if self._vectors is None or self._vectors_of != wanted:  # those of another embedder are let go
                self._vectors, self._vectors_of = VectorsInMemory(len(vector), with_signs=in_sql), wanted
            held = self._vectors
        return held.nearest(db, self.database.generation, vector, ids, limit, also)

    def shown(
        self,
        some: Mapping[NoteId, PlaceId],
        question: Question,
        *,
        blocks: bool = False,
        beside: Sequence[NoteId] = (),
        among: Collection[NoteId] = (),
    ) -> Mapping[NoteId, Shown]:
        """All that is shown of some notes. Those that are gone are absent."""

        def read(db: apsw.Connection) -> Mapping[NoteId, Shown]:
            vector, counts = self._vector(db, question), self._counts_of(db)
            return shown.shown(db, some, question, vector, counts, blocks=blocks, beside=beside, among=among)

        return self._read(read)

    def page(self, narrow: Narrow, sort: str, limit: int, after: int) -> Listing:
        """Notes that pass a filter, behind so many others."""
        return self._read(filters.page, narrow, sort, limit, after)

    def passing(self, narrows: Sequence[Narrow]) -> Sequence[int]:
        """How many notes each filter leaves."""
        return self._read(lambda db: [filters.count(db, narrow) for narrow in narrows])

    def _counts_of(self, db: apsw.Connection) -> Counts:
        return self._counts.of_state(self.database.generation, notes.newest_rev(db))

    def _kept(self, db: apsw.Connection) -> Kept:
        """What this thread's connection found out, for as long as nobody writes."""
        kept: tuple[apsw.Connection, Kept] | None = getattr(self._local, "kept", None)
        if kept is None or kept[0] is not db:
            kept = self._local.kept = (db, Kept())
        return kept[1]

    # -- generations of vectors

    def standing(self) -> Standing:
        """How far the index is."""
        return self._read(lambda db: self._kept(db).standing(db))

    def vectors_of(self, note: NoteId) -> list[bytes]:
        """The vectors of a note's passages."""
        return self._read(vectors.vectors_of, note)

    def generations(self) -> list[Generation]:
        """The generations of vectors, the one in use first."""
        return self._read(vectors.generations)

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

    def tag_counts(self) -> dict[str, int]:
        return self._read(audit.tags)

    def inspection(self) -> dict[str, dict[str, Any]]:
        """Everything that was read from every note."""
        return self._read(audit.inspection)


class Kept:
    """What one connection was asked last, kept for as long as nobody writes: in a very large vault to find the notes that
    pass a filter is half of a search, and whoever asks through a filter asks again."""

    def __init__(self) -> None:
        self._state = (0, 0)
        self._ids: dict[int, tuple[Narrow, Sequence[int]]] = {}
        self._standing: Standing | None = None

    def _follow(self, db: apsw.Connection) -> None:
        if (state := state_of(db)) != self._state:
            self._state, self._standing = state, None
            self._ids.clear()

    def ids(self, db: apsw.Connection, narrow: Narrow) -> Sequence[int]:
        """The notes that pass a filter."""
        self._follow(db)
        for asked, ids in self._ids.values():
            if asked == narrow:
                return ids
        ids = filters.ids(db, narrow)
        self._ids[len(self._ids) % _KEPT] = narrow, ids
        return ids

    def standing(self, db: apsw.Connection) -> Standing:
        """How far the index is."""
        self._follow(db)
        if self._standing is None:
            every = vectors.generations(db)
            waiting = {each.embedder: vectors.waiting(db, each) for each in every}
            self._standing = Standing(notes.count(db), every, waiting)
        return self._standing
