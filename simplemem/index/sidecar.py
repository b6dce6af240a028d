"""The sidecar: all that store and search ask of the index, each question answered from one state of its notes. A search
is three: `vocabulary`, `ask`, `shown`. An index that is gone or damaged is made anew, and the question asked again."""

from __future__ import annotations

import json
import logging
import threading
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import apsw

from simplemem.errors import Unavailable
from simplemem.index import audit, door, notes, vectors
from simplemem.index.connection import COMMIT, Connection, Tables
from simplemem.index.details import DetailsReader, group_by_note, select_tags
from simplemem.index.door import (
    Matches,
    Narrow,
    NoteId,
    NotePage,
    Question,
    Standing,
)
from simplemem.index.engine import Damaged, Replaced
from simplemem.index.filters import condition

if TYPE_CHECKING:
    from simplemem.index.terms.reader import TermIndex

P = ParamSpec("P")
T = TypeVar("T")
_CHECK_SECONDS = 24 * 3600.0
_TRIES = 5
_MOST_LIKE, _MOST_PATHS = 1_000, 50_000  # that are kept; 6 MB each
_LOG = logging.getLogger(__name__)
_ORDER = {
    "modified": "n.modified DESC",
    "created": "n.created DESC",
    "name": "n.path_key",
    "title": "n.title_key",
}


def page(db: Connection, narrow: Narrow, sort: str, limit: int, after: int = 0) -> NotePage:
    """A page of the notes that pass, behind so many others."""
    source, values = condition(db, narrow)
    total = int(db.execute(f"SELECT count(*) FROM {source}", values).get)
    sql = f"SELECT n.id FROM {source} ORDER BY {_ORDER[sort]}, n.path LIMIT :limit OFFSET :after"
    ids = (
        [row[0] for row in db.execute(sql, {**values, "limit": limit, "after": after})]
        if limit
        else []
    )
    rows = notes.rows_of(db, ids)
    return NotePage([rows[note] for note in ids], group_by_note(select_tags(db, ids)), total)


def _by_names(
    called: Iterable[tuple[NoteId, int, str]], question: Question, ids: door.Ids
) -> tuple[dict[NoteId, int], dict[NoteId, float]]:
    """Of the notes among `ids` that have a name of the question: how exactly each is called as all of it (0 by a title
    letter for letter, 1 by an alias so, 2 and 3 by their words), and the largest share of it that a name is."""
    rows = list(called)
    if rows and ids is not None:
        passing = set(ids)
        rows = [row for row in rows if row[0] in passing]
    titled: dict[NoteId, int] = {}
    named: dict[NoteId, float] = {}
    for note, is_alias, key in rows:
        if not key or key in question.names:
            exactness = is_alias + 2 * bool(key)
            titled[note] = min(exactness, titled.get(note, exactness))
        if key in question.inner_names:
            named[note] = max(question.inner_names[key], named.get(note, 0.0))
    return titled, named


def _asks(
    question: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[Sidecar, P], T]:
    """A question of the door, answered from one state of the index."""

    def asked(self: Sidecar, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._read(lambda db: question(db, *args, **kwargs))

    return asked


class Sidecar:
    """One vault's sidecar, for any thread. `begin_anew` is called when another file, perhaps empty, took its place."""

    def __init__(self, database: Tables, begin_anew: Callable[[], None] = lambda: None) -> None:
        self.database, self.path, self.close, self._begin_anew = (
            database,
            database.path,
            database.close,
            begin_anew,
        )
        self.taken_up = database.generation  # that of the file as it was when it was last asked
        self._vectors = vectors.VectorsInMemory()
        self._local = threading.local()

    @property
    def generation(self) -> int:
        """Grows when another file took the place of the index: what was known of it holds no more."""
        try:
            self.database.connection()
        except Damaged:
            self.database.discard()
        return self.database.generation

    def consistently(self, question: Callable[[], T]) -> T:
        """Answer a question of several calls, all of it again on a fresh index if this one is gone or damaged."""
        if getattr(self._local, "asked", False):
            return question()
        self._local.asked = True
        try:
            if self.generation != self.taken_up:
                self._take_up()
            for attempt in range(1, _TRIES + 1):
                try:
                    return question()
                except Replaced:
                    self._take_up()
                except (Damaged, apsw.Error, TypeError, ValueError) as error:
                    # Not every damage shows as one to SQLite: the index may say what we never wrote.
                    is_damage = isinstance(
                        error, (Damaged, json.JSONDecodeError, UnicodeDecodeError)
                    )
                    if attempt == _TRIES or not (is_damage or self.database.check()):
                        raise
                    self._make_anew(error)
            hint = "Check whether another program deletes it, then try again."
            raise Unavailable("the index was replaced several times in a row", hint=hint)
        except Damaged as error:
            hint = "Check the disk, and whether another program changes or deletes the index. Then try again."
            raise Unavailable(
                f"the index is damaged again after each rebuild ({error})", hint=hint
            ) from error
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

    def _read(self, ask: Callable[[Connection], T]) -> T:
        return self.consistently(lambda: self.database.answer(ask))

    def vocabulary(self, asked: Sequence[door.AnyOf]) -> tuple[Sequence[int], Standing]:
        """How many notes hold one of the words, for each of some groups of them; and how far the index is."""
        return self._read(
            lambda db: (self._kept(db).words(db).vocabulary(db, asked), self._kept(db).standing)
        )

    def ask(self, question: Question) -> Matches:
        """The notes that the words or the vector of a question lead to. What is like a note is found once, and kept."""

        def read(db: Connection) -> Matches:
            kept, key = self._kept(db), (question.like, question.nearest)
            answer = kept.like.get(key) or self._answer(db, kept, question)
            if question.like and len(kept.like) < _MOST_LIKE:
                kept.like[key] = answer
            return answer

        return self._read(read)

    def _answer(self, db: Connection, kept: Kept, question: Question) -> Matches:
        keys = {*question.names, *question.inner_names}
        called = notes.named(db, question.title, sorted(keys)) if question.title or keys else ()
        narrow = kept.telling(question.narrow)
        ids = None if narrow.is_open() else kept.ids(db, narrow)
        found, blocks, pairs = kept.words(db).rank(db, question, ids)
        by_words = {match.note for match in found}
        vector, near = self._vector(db, kept, question), None
        if vector is not None:
            whose = (self.database.generation, kept.standing.space, len(vector)), kept.rev
            near = self._vectors.nearest(
                db, whose, vector, ids, question.nearest, by_words, partial(kept.paths, db)
            )
        titled, named = _by_names(called, question, ids)
        paths = kept.paths(db, by_words.union(near or (), titled))
        passed = None if ids is None else len(ids)
        named = {note: share for note, share in named.items() if note in paths}
        return Matches(
            found, blocks, pairs, near, paths, passed, titled, named, kept.standing.notes
        )

    def _vector(self, db: Connection, kept: Kept, question: Question) -> bytes | None:
        """The vector of a question, if it can be compared with those there are: another embedder's never are."""
        if question.like:
            known = notes.known(db, question.like)
            return None if known is None else vectors.mean_vector(db, known.id)
        vector, space = question.vector, kept.standing.space
        if vector is None or not space.embedder or space.dimension not in (0, len(vector)):
            return None
        return vector if getattr(vector, "embedder", space.embedder) == space.embedder else None

    def shown(
        self,
        some: Mapping[NoteId, door.PlaceId],
        question: Question,
        *,
        blocks: bool = False,
        repeated: bool = False,
        beside: Sequence[NoteId] = (),
        among: Collection[NoteId] = (),
    ) -> Mapping[NoteId, door.Shown]:
        """What is shown of notes that are there, each with the place that was found (0: none), with `blocks` those that
        have a word of the question, with `repeated` those that many notes have; and of those `among` others that stand
        `beside` some of them."""

        def read(db: Connection) -> Mapping[NoteId, door.Shown]:
            kept = self._kept(db)
            reader = DetailsReader(
                db,
                question.terms,
                partial(kept.words, db),
                partial(self._vector, db, kept, question),
            )
            return reader.read(
                some, with_blocks=blocks, with_repeated=repeated, beside=beside, among=among
            )

        return self._read(read)

    def _kept(self, db: Connection) -> Kept:
        """What this thread's connection found out, for as long as nobody writes."""
        kept: tuple[Connection, Kept] | None = getattr(self._local, "kept", None)
        if kept is None or kept[0] is not db or kept[1].state != db.state():
            kept = self._local.kept = (db, Kept(db))
        return kept[1]

    page = _asks(page)
    known = _asks(notes.known_at)
    outline = _asks(notes.outline)
    called = _asks(notes.called)
    near_names = _asks(notes.near_names)
    with_property = _asks(notes.with_property)
    with_notes = _asks(notes.with_notes)
    files = _asks(notes.all_files)
    files_named = _asks(notes.files_named)
    sources_that_could_mean = _asks(notes.sources_that_could_mean)
    conflict_copies = _asks(notes.conflict_copies)
    embedded = _asks(vectors.embedded)
    vectors_of = _asks(vectors.vectors_of)
    counts = _asks(audit.counts)
    tag_counts = _asks(audit.tags)
    inspection = _asks(audit.inspection)

    def holding(
        self, groups: Sequence[door.AnyOf], some: Sequence[NoteId]
    ) -> list[tuple[int, set[NoteId]]]:
        """For each group of words how many notes hold one of them, and which of `some` do."""
        return self._read(lambda db: self._kept(db).words(db).holding(db, groups, some))

    def links(self, to: str | None = None) -> Sequence[door.StoredLink]:
        """The links that mean this file (a conflict copy's only repeat its note's); else every link."""
        return self._read(lambda db: list(notes.links(db, to)))

    def standing(self) -> Standing:
        """How far the index is."""
        return self._read(lambda db: self._kept(db).standing)

    def since(self, mark: door.Mark | None) -> door.Changes:
        """What was put since a mark, by any process; everything without one."""

        def read(db: Connection) -> door.Changes:
            now = door.Mark(self.database.generation, notes.newest_rev(db))
            if now == mark:
                return door.Changes(now, (), -1, whole=False)
            rev = mark.rev if mark is not None and mark.generation == now.generation else -1
            return door.Changes(
                now, notes.rows(db, "rev > ? ORDER BY rev", rev), notes.count(db), whole=rev < 0
            )

        return self._read(read)


class Kept:
    """One state of the index: how far it is, how frequent words are, paths, and what passed the last filter."""

    def __init__(self, db: Connection) -> None:
        self.state = db.state()
        commit = db.execute("SELECT value FROM meta WHERE key = ?", (COMMIT,))
        self.rev = notes.newest_rev(db)
        self.standing = Standing(
            notes.count(db), notes.vector_space(db), notes.waiting(db), commit.get or ""
        )
        self._words: TermIndex | None = None
        self._narrow: Narrow | None = None
        self._ids: Sequence[int] = ()
        self._paths: dict[NoteId, str] = {}
        self._with_notes = cache(partial(notes.with_notes, db))
        self.like: dict[tuple[str, int], Matches] = {}  # what is like a note

    def words(self, db: Connection) -> TermIndex:
        """The term index. It is read when it is used first: it needs numpy, which takes time to import."""
        if self._words is None:
            self._words = db.term_index(self.standing.notes)
        return self._words

    def paths(self, db: Connection, some: Collection[NoteId]) -> Mapping[NoteId, str]:
        """The paths of those of some notes that are there."""
        if len(self._paths) > _MOST_PATHS:
            self._paths = {}
        if unknown := [note for note in some if note not in self._paths]:
            self._paths |= notes.paths_of(db, unknown)
        return {note: self._paths[note] for note in some if note in self._paths}

    def telling(self, narrow: Narrow) -> Narrow:
        """A filter without the archives that hold no note: most vaults have none, and then it is open."""
        if narrow.archived or not narrow.archive:
            return narrow
        return replace(narrow, archive=self._with_notes(narrow.archive))

    def ids(self, db: Connection, narrow: Narrow) -> Sequence[int]:
        if narrow != self._narrow:
            source, values = condition(db, narrow)
            passing = db.execute(f"SELECT n.id FROM {source} ORDER BY n.id", values)
            self._narrow, self._ids = narrow, array("q", [note for (note,) in passing])
        return self._ids
