"""The door of the sidecar: the small set of operations that store and search use. They speak values, not SQL.

A second implementation on another engine would offer this class's methods and nothing above would notice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw

from simplemem.embed import Embedder
from simplemem.index import copies, counts, filters, generations, legs, links, notes, text, vectors, vocabulary
from simplemem.index.bm25 import CountsKept
from simplemem.index.copies import Copy
from simplemem.index.database import Database, build_beside, open_database
from simplemem.index.estimate import Estimate, MadeBefore, estimate, nothing_made_before
from simplemem.index.filters import Narrow, Narrowed
from simplemem.index.generations import Generation
from simplemem.index.legs import Match
from simplemem.index.links import StoredLink
from simplemem.index.notes import Known, Noted, Row
from simplemem.index.resident import Resident
from simplemem.index.text import Place
from simplemem.index.vectors import Nearness, QueryVector
from simplemem.vault.links import Named


class Sidecar:
    """One vault's sidecar. Thread-safe: every thread has its own connection."""

    def __init__(self, path: Path, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._lock = lock
        self.database: Database = open_database(path, lock)
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
        self.database.connection()
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

    # -- notes

    def known(self, path: str) -> Known | None:
        with self.database.reading() as db:
            return notes.known(db, path)

    def all_known(self) -> dict[str, Known]:
        with self.database.reading() as db:
            return notes.all_known(db)

    def row(self, path: str) -> Row | None:
        with self.database.reading() as db:
            return notes.row_at(db, path)

    def rows(self, ids: Iterable[int]) -> dict[int, Row]:
        with self.database.reading() as db:
            return notes.rows_of(db, ids)

    def tags_of(self, note_id: int) -> tuple[str, ...]:
        with self.database.reading() as db:
            return notes.tags_of(db, note_id)

    def paths_named(self, key: str) -> tuple[list[str], list[str], list[str], list[str]]:
        with self.database.reading() as db:
            return notes.paths_named(db, key)

    def near_names(self, prefix: str, limit: int) -> list[str]:
        with self.database.reading() as db:
            return notes.near_names(db, prefix, limit)

    def all_paths(self) -> list[str]:
        with self.database.reading() as db:
            return notes.all_names(db)

    def paths_in(self, folder: str) -> list[str]:
        with self.database.reading() as db:
            return notes.paths_in(db, folder)

    def changed_since(self, rev: int) -> tuple[int, list[str]]:
        """The newest revision, and the paths of notes put after `rev`."""
        with self.database.reading() as db:
            return notes.changed_since(db, rev)

    def revs_of(self, paths: Collection[str]) -> dict[str, int]:
        """The change that made each of these notes what it is."""
        with self.database.reading() as db:
            return notes.revs_of(db, paths)

    def noted_since(self, rev: int, having: str) -> tuple[int, list[Noted], frozenset[str], int]:
        """The newest revision, the notes put after `rev`, which of them have a property, and how many notes there are."""
        with self.database.reading() as db:
            newest = notes.newest_rev(db)
            if newest == rev:
                return rev, [], frozenset(), -1
            return newest, *notes.noted_since(db, rev, having), notes.count(db)

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
        found = generations.in_use(db)
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

    def holds_vectors_of(self, embedder: str) -> bool:
        """Whether the vectors in use are this embedder's. A question never waits for the index to be written."""
        with self.database.reading() as db:
            found = generations.in_use(db)
        return found is not None and found.embedder == embedder

    def generations(self) -> list[Generation]:
        """The generations of vectors, the one in use first."""
        with self.database.reading() as db:
            return generations.generations(db)

    def generation_of(self, embedder: str) -> Generation | None:
        """This embedder's generation of vectors, in use or being made."""
        with self.database.reading() as db:
            return generations.generation_of(db, embedder)

    def pending(self, generation: Generation) -> int:
        """Notes that wait for their vectors."""
        with self.database.reading() as db:
            return vectors.count_missing(db, generation.shelf)

    def waiting_for(self, embedder: str, remote: bool) -> int:
        """Notes that wait for a vector of this embedder, which may not have a generation yet."""
        with self.database.reading() as db:
            return generations.waiting_for(db, embedder, remote=remote)

    def progress(self, generation: Generation) -> tuple[int, int]:
        """How many notes have their vectors, of how many that are to have them."""
        with self.database.reading() as db:
            return generations.progress(db, generation)

    def private_count(self) -> int:
        """Notes that are kept private, and take part in search."""
        with self.database.reading() as db:
            return generations.private_count(db)

    def privacy(self) -> dict[str, tuple[str, bool]]:
        """Each note's hash, and whether what had that hash is kept private."""
        with self.database.reading() as db:
            return generations.privacy(db)

    def refused(self) -> list[tuple[str, str]]:
        """Notes of which the embedder refused some text, and what it said."""
        with self.database.reading() as db:
            return generations.refused(db)

    def estimate(
        self,
        embedder: Embedder,
        *,
        anew: bool = False,
        known: MadeBefore = nothing_made_before,
    ) -> Estimate:
        """What it takes to give every note its vectors."""
        with self.database.reading() as db:
            return estimate(db, embedder.name, remote=embedder.remote, anew=anew, known=known)

    # -- links

    def named(self) -> Named:
        """Which files have a name, as the index knows it."""

        def named(key: str) -> Sequence[str]:
            with self.database.reading() as db:
                return links.named_by(db)(key)

        return named

    def files(self) -> set[str]:
        with self.database.reading() as db:
            return links.all_files(db)

    def links_from(self, path: str) -> list[StoredLink]:
        with self.database.reading() as db:
            return links.links_from(db, path)

    def links_to(self, path: str) -> list[StoredLink]:
        with self.database.reading() as db:
            return links.links_to(db, path)

    def sources_that_could_mean(self, paths: Iterable[str]) -> list[str]:
        with self.database.reading() as db:
            return links.sources_that_could_mean(db, paths)

    def all_links(self) -> list[StoredLink]:
        with self.database.reading() as db:
            return links.all_links(db)

    def conflict_copies(self) -> list[Copy]:
        """Every file that is a conflict copy by its name of a note that is there."""
        with self.database.reading() as db:
            return copies.all_copies(db)

    # -- counting

    def counts(self) -> dict[str, Any]:
        with self.database.reading() as db:
            return counts.counts(db)

    def hidden_counts(self) -> dict[str, int]:
        with self.database.reading() as db:
            return counts.hidden_notes(db)

    def note_count(self) -> int:
        return int(self.database.value("SELECT count(*) FROM notes"))

    def tag_counts(self) -> dict[str, int]:
        with self.database.reading() as db:
            return counts.tags(db)

    def inspection(self) -> dict[str, dict[str, Any]]:
        with self.database.reading() as db:
            return counts.inspection(db)


def _comparable(db: apsw.Connection, query: bytes) -> bool:
    """Whether the vectors in use are of the embedder that made a question's vector, by its name and its length."""
    found = generations.in_use(db)
    if found is None:
        return not isinstance(query, QueryVector)
    return found.dimension in (0, len(query)) and getattr(query, "embedder", found.embedder) == found.embedder
