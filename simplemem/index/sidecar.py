"""The sidecar: what store and search ask of the index (door.Index), and what becomes of it when it is damaged.

It is disposable, so whoever asks never sees that: a file that was replaced or turns out to be damaged is made anew and
the question asked again.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from simplemem.errors import Unavailable
from simplemem.index import audit, door, filters, legs, links, nearest, notes, vectors
from simplemem.index.database import Database, build_beside, open_database, state_of
from simplemem.index.door import Index, Known, Matches, Narrow, NoteId, Question, Standing
from simplemem.index.file import Damaged, Replaced
from simplemem.index.legs import Counts
from simplemem.index.nearest import VectorsInMemory
from simplemem.index.notes import generations, in_use, waiting

P = ParamSpec("P")
T = TypeVar("T")
_CHECK_SECONDS = 24 * 3600.0
_TRIES = 5
_LOG = logging.getLogger(__name__)


class Sidecar(Index):
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
        self._vectors: VectorsInMemory | None = None
        self._vectors_of: tuple[str, int] | None = None  # the embedder and the dimension they are of
        self._counts = Counts((-1, -1))
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
        self._local.asked = True
        try:
            if self.generation != self.taken_up:
                self._take_up()
            try:
                return question()
            except Replaced:
                for _ in range(_TRIES):
                    self._take_up()
                    with suppress(Replaced):
                        return question()
                raise Unavailable(
                    "the index is replaced again and again", hint="Does another program delete it?"
                ) from None
            except (Damaged, apsw.Error, TypeError, ValueError) as error:
                # Not every damage shows as one to SQLite: the index may say what we never wrote.
                is_damage = isinstance(error, (Damaged, json.JSONDecodeError, UnicodeDecodeError))
                if not is_damage and not self.database.check():
                    raise
                self._make_anew(error)
                return question()
        finally:
            self._local.asked = False

    def check(self) -> None:
        """Once a day, look for damage that no question has met yet: what it hides would be missing from answers."""
        last = float(self.consistently(lambda: self.database.meta("checked")) or 0)
        if abs(time.time() - last) < _CHECK_SECONDS:
            return
        if found := self.database.check():
            self._make_anew(found[0])
        self.consistently(lambda: self.database.set_meta("checked", f"{time.time():.0f}"))

    def _make_anew(self, found: object) -> None:
        _LOG.warning("the index is damaged and will be rebuilt: %s", found)
        self.database.discard()
        self._take_up()

    def _take_up(self) -> None:
        self.taken_up = self.generation
        self._begin_anew()

    def _read(self, ask: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask one thing in one snapshot."""

        def question() -> T:
            with self.database.reading() as db:
                return ask(db, *args, **kwargs)

        return self.consistently(question)

    # -- a search

    def vocabulary(self, asked: Sequence[Sequence[door.AnyOf]], most: int = 1) -> tuple[Sequence[int], Standing]:
        return self._read(lambda db: (legs.vocabulary(db, asked, most) if asked else (), self._kept(db).standing))

    def ask(self, question: Question) -> Matches:
        return self._read(self._answer, question)

    def _answer(self, db: apsw.Connection, question: Question) -> Matches:
        ids = None if question.narrow.is_open() else self._kept(db).ids(db, question.narrow)
        found, blocks, pairs = legs.legs(db, question, ids, self._counts_of(db))
        vector = self._vector(db, question)
        near = None
        if vector is not None:
            near = self._nearest(db, vector, ids, question.nearest, {match.note for match in found})
        every = {match.note for match in found}.union(near or ())
        passed = None if ids is None else len(ids)
        return Matches(found, blocks, pairs, near, notes.paths_of(db, every), passed, vector)

    def _vector(self, db: apsw.Connection, question: Question) -> bytes | None:
        """The vector of a question, if it can be compared with those in use: another embedder's never are."""
        if question.like:
            known = notes.known(db, question.like)
            return None if known is None else nearest.mean_vector(db, known.id)
        vector, found = question.vector, in_use(db)
        if vector is None or found is None or found.dimension not in (0, len(vector)):
            return None
        return vector if getattr(vector, "embedder", found.embedder) == found.embedder else None

    def _nearest(
        self, db: apsw.Connection, vector: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
    ) -> dict[NoteId, door.Nearness]:
        found = in_use(db)
        wanted = (found.embedder if found is not None else "", len(vector))
        with self._guard:
            if self._vectors is None or self._vectors_of != wanted:  # those of another embedder are let go
                self._vectors, self._vectors_of = VectorsInMemory(), wanted
            held = self._vectors
        return held.nearest(db, self.database.generation, vector, ids, limit, also)

    def shown(
        self,
        some: Mapping[NoteId, door.PlaceId],
        question: Question,
        *,
        blocks: bool = False,
        beside: Sequence[NoteId] = (),
        among: Collection[NoteId] = (),
    ) -> Mapping[NoteId, door.Shown]:
        def read(db: apsw.Connection) -> Mapping[NoteId, door.Shown]:
            vector, counts = self._vector(db, question), self._counts_of(db)
            return filters.shown(db, some, question, vector, counts, blocks=blocks, beside=beside, among=among)

        return self._read(read)

    def holding(self, groups: Sequence[door.AnyOf], some: Sequence[NoteId]) -> Sequence[tuple[int, set[NoteId]]]:
        return self._read(legs.holding, groups, some)

    def _counts_of(self, db: apsw.Connection) -> Counts:
        counts, state = self._counts, (self.database.generation, notes.newest_rev(db))
        if counts.state != state:
            counts = self._counts = Counts(state)
        return counts

    def _kept(self, db: apsw.Connection) -> Kept:
        """What this thread's connection found out, for as long as nobody writes."""
        kept: tuple[apsw.Connection, Kept] | None = getattr(self._local, "kept", None)
        if kept is None or kept[0] is not db or kept[1].state != state_of(db):
            kept = self._local.kept = (db, Kept(db))
        return kept[1]

    # -- notes and their names

    def page(self, narrow: Narrow, sort: str, limit: int, after: int = 0) -> door.NotePage:
        return self._read(filters.page, narrow, sort, limit, after)

    def known(self, paths: Iterable[str] | None = None) -> dict[str, Known]:
        return self._read(notes.known_at, paths)

    def outline(self, path: str) -> door.Outline | None:
        return self._read(links.outline, path)

    def since(self, mark: door.Mark | None) -> door.Changes:
        def read(db: apsw.Connection) -> door.Changes:
            now = door.Mark(self.database.generation, notes.newest_rev(db))
            if now == mark:
                return door.Changes(now, (), -1, whole=False)
            whole = mark is None or mark.generation != now.generation
            rev = -1 if whole or mark is None else mark.rev
            return door.Changes(now, notes.known_since(db, rev), notes.count(db), whole)

        return self._read(read)

    def called(self, name: str) -> door.Called:
        return self._read(notes.called, name)

    def near_names(self, prefix: str, limit: int) -> list[str]:
        return self._read(notes.near_names, prefix, limit)

    # -- files and links

    def files(self) -> set[str]:
        return self._read(links.all_files)

    def files_named(self, key: str) -> Sequence[str]:
        return self._read(links.files_named, key)

    def links(self, to: str | None = None) -> list[door.StoredLink]:
        return self._read(links.stored, to)

    def sources_that_could_mean(self, paths: Iterable[str]) -> list[str]:
        return self._read(links.sources_that_could_mean, paths)

    def conflict_copies(self) -> list[tuple[str, str]]:
        return self._read(lambda db: list(links.conflict_copies(db)))

    # -- vectors

    def standing(self) -> Standing:
        return self._read(lambda db: self._kept(db).standing)

    def embedded(self, embedder: str, remote: bool) -> door.Embedded:
        return self._read(vectors.embedded, embedder, remote)

    def estimate(
        self, embedder: str, remote: bool, *, anew: bool = False, known: door.MadeBefore | None = None
    ) -> door.Estimate:
        return self._read(vectors.estimate, embedder, remote, anew=anew, known=known)

    def vectors_of(self, note: NoteId) -> list[bytes]:
        return self._read(vectors.vectors_of, note)

    # -- counts

    def counts(self) -> dict[str, Any]:
        return self._read(audit.counts)

    def tag_counts(self) -> dict[str, int]:
        return self._read(audit.tags)

    def inspection(self) -> dict[str, dict[str, Any]]:
        return self._read(audit.inspection)


class Kept:
    """How far the index is in one state, and the notes that passed the last filter: in a very large vault to find them is
    half of a search, and whoever asks through a filter asks again."""

    def __init__(self, db: apsw.Connection) -> None:
        self.state = state_of(db)
        every = generations(db)
        self.standing = Standing(notes.count(db), every, {each.embedder: waiting(db, each) for each in every})
        self._narrow: Narrow | None = None
        self._ids: Sequence[int] = ()

    def ids(self, db: apsw.Connection, narrow: Narrow) -> Sequence[int]:
        if narrow != self._narrow:
            self._narrow, self._ids = narrow, filters.ids(db, narrow)
        return self._ids
