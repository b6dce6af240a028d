"""What a package above the store needs to keep notes of its own type: `EnhancedStore.extension`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from simplemem.errors import SimplememError
from simplemem.index.door import Changes, Mark, Narrow, Question
from simplemem.index.notes import named_in_memory
from simplemem.models import By, Filter, Listed, Moved
from simplemem.note.formatting import well_formed
from simplemem.note.note import decode_text, read_note
from simplemem.note.privacy import private_reason
from simplemem.obsidian.links import name_key, resolve_link
from simplemem.search.judgement import notice_of
from simplemem.search.listing import MAX_PAGE
from simplemem.search.packing import Piece
from simplemem.search.pipeline import degradation_of
from simplemem.search.query import read_query
from simplemem.search.ranking import Ranking
from simplemem.store.batch import BatchResult, BatchWriter, Draft
from simplemem.store.core import Core, change_by
from simplemem.store.earlier_texts import EarlierNote, Moment
from simplemem.store.former_names import FormerNote
from simplemem.store.text_checks import check_text
from simplemem.vault.folder.lock import FileLock, SideFile
from simplemem.vault.values import Entry
from simplemem.vault.versions import Version

# So many links are resolved with a dictionary of all names; fewer are looked up one by one.
_MAX_LINKS_LOOKED_UP = 300
_FIRST_PAGE = "0-name"  # the cursor of a list by name

_SEARCH_OPERATOR = re.compile(r'["*]|(?<!\S)-|(?<=\w):')


class Read(NamedTuple):
    """A note's text, and why it must not be changed, "" if it may be."""

    path: str
    text: str
    sha256: str
    problem: str


class Likeness(NamedTuple):
    """How similar notes are to a question, by path.

    `meaning` is the cosine of the best block; `words` is the score by words as a share of the best
    one. `missing` says why nothing was compared by meaning, "" if it was.
    """

    meaning: dict[str, float]
    words: dict[str, float]
    missing: str

    def scores(self, weight: float, least: float) -> dict[str, tuple[float, float, float]]:
        """Return a score, the similarity by meaning and that by words of each similar note.

        The similarity by meaning is (1 + cosine) / 2, and has this weight in the score. Notes
        below `least` are left out. Without meaning, the score is that by words.
        """
        scores = {}
        for path in self.words if self.missing else self.meaning:
            similarity = (1 + self.meaning.get(path, -1.0)) / 2
            words = self.words.get(path, 0.0)
            if self.missing:
                scores[path] = (words, similarity, words)
                continue
            score = weight * similarity + (1 - weight) * words
            if max(score, similarity) >= least:
                scores[path] = (score, similarity, words)
        return scores


class Answers(NamedTuple):
    """The notes that answer a question, with their scores, and their passages; both best first.

    The best note has the score 1. `quality` says how good it is in itself, from 0 to 1.
    """

    notes: dict[str, float]
    passages: list[Piece]
    only_nearest: bool = False  # no note answers it; these are the nearest
    notice: str = ""  # the sentence that says so
    quality: float = 0.0
    degraded: str = ""
    reranker: str = ""
    by_meaning: bool = False  # not by words alone


class ExtensionAPI:
    """One store as the packages above it see it: changes, texts, links, and notes written as one.

    `services` holds what such a package has one of for each store, by a key of its own.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._batches = BatchWriter(core)
        self.services: dict[Any, Any] = {}
        self.max_note_bytes = core.settings.max_note_bytes  # a larger note is not indexed
        self.read_only = core.read_only or core.vault.read_only

    # The life of the store

    def on_close(self, end: Callable[[], None]) -> None:
        """Call a function when the store closes."""
        self._core.on_close(end)

    def expect_more(self) -> None:
        """Keep what is slow to load, because more questions will come."""
        self._core.parts.lifetime.expect_more()

    def recover(self) -> None:
        """Finish writes that a crash interrupted."""
        self._core.vault.recover()

    def prepare(self, *, vectors: bool = True) -> None:
        """Bring the index up to date for a question, as far as about a second of work goes."""
        self._core.prepare(vectors=vectors)

    def catch_up(self) -> None:
        """Index what a person or another program wrote. Not while the vault is locked."""
        self._core.catch_up()

    def look_at(self, paths: Iterable[str]) -> None:
        """Index files that may have changed."""
        self._core.look_at(paths)

    def take_notices(self) -> list[str]:
        """Return the notices of this thread's calls since the last time."""
        return self._core.notices.take()

    def embedding(self) -> dict[str, Any]:
        """Return who makes vectors, how many notes have them, and why others lack them."""
        return self._core.embedding.report()

    # Files of simplemem itself

    def folder(self) -> Path:
        """Return `.simplemem` of the vault, which is created if it does not exist."""
        return self._core.vault.own_folder()

    def side_file(self, name: str) -> SideFile:
        """Return a file in `.simplemem` that several processes append lines to."""
        return SideFile(str(self._core.root), name)

    def lock_file(self, path: str) -> FileLock:
        """Return a lock that one process at a time can take."""
        return FileLock(str(self._core.root), path)

    # Notes and files

    def files(self) -> set[str]:
        """Return the paths of all files, notes and attachments."""
        return self._core.index.files()

    def indexed(self) -> frozenset[str]:
        """Return the paths of all notes in the index."""
        return frozenset(self._core.index.known())

    def list_all(self, conditions: Filter | None = None) -> list[Listed]:
        """Return all notes that pass a filter, sorted by name."""
        notes = list[Listed]()
        cursor = _FIRST_PAGE
        while cursor:
            page = self._core.searching.lister.list(conditions, "name", MAX_PAGE, cursor)
            notes += page.items
            cursor = page.next_cursor or ""
        return notes

    def with_property(self, key: str) -> dict[str, str]:
        """Return the paths of the notes that have a property, by its value."""
        return self._core.index.with_property(key)

    def entries_below(self, folder: str) -> list[Entry]:
        """Return the files in a folder and its subfolders; none if it does not exist."""
        return self._core.vault.entries_below(folder)

    def exists(self, path: str) -> bool:
        """Return whether there is a file that this store may see."""
        return self._core.entry(path) is not None

    def bytes_of(self, path: str) -> bytes | None:
        """Return the bytes of a file, a note or not; None if there is none."""
        return self._core.bytes_of(path)

    def read(self, paths: Iterable[str]) -> Iterator[Read]:
        """Yield notes as they are on the disk. Those that cannot be read are left out."""
        with self._core.vault.reading() as read_file:
            for path in paths:
                try:
                    file = read_file(path)
                except (SimplememError, OSError):
                    continue
                text, problem = decode_text(file.data)
                yield Read(path, text, file.sha256, problem or "")

    def private_among(self, paths: Iterable[str]) -> set[str]:
        """Return those of some notes whose text must not be sent to a service, or cannot be read."""
        rules = self._core.settings.embed.private
        private = set(paths)
        for note in self.read(list(private)):
            if private_reason(note.path, read_note(note.text.encode()), rules) is None:
                private.remove(note.path)
        return private

    # Names and links

    def resolve_links(
        self, links: Sequence[tuple[str, str]], among: Iterable[str] | None = None
    ) -> list[str | None]:
        """Return the paths that links lead to, None for an unresolved one.

        A link is its target and the path of its note. With `among`, they are resolved as if only
        these files existed.
        """
        index = self._core.index
        if among is None and len(links) > _MAX_LINKS_LOOKED_UP:
            among = index.files()
        files_named = index.files_named if among is None else named_in_memory(among)
        return [resolve_link(target, source, files_named).path for target, source in links]

    def files_called(self, name: str) -> Sequence[str]:
        """Return all files with a name, compared as links compare names."""
        if well_formed(name) != name:  # half a character is in no file's name
            return ()
        return self._core.index.files_named(name_key(name))

    def find_former_note(self, name: str) -> FormerNote | None:
        """Return the note that last had a name, according to the change log."""
        return self._core.find_former_note(name)

    # Changes

    def since(self, mark: Mark | None) -> Changes:
        """Return the notes that were indexed since a mark, by any process; all without one."""
        return self._core.index.since(mark)

    def changes(self, *, after: int = 0) -> list[Version]:
        """Return the changes after a number, newest first."""
        return self._core.changes.recent(after=after)

    def last_version(self) -> int:
        """Return the number of the last change, 0 if there is none."""
        return self._core.changes.newest()

    def notes_at(self, when: Moment | datetime) -> Iterator[tuple[EarlierNote, bool]]:
        """Yield the notes of the log as they were at a moment, and whether each differs now."""
        return self._core.parts.texts.notes_at(when)

    def first_version(self, path: str) -> int:
        """Return the number of the change that made a note, under any name; 0 if there is none.

        A note that a person made by hand has none.
        """
        versions = self._core.changes.of(path)
        if versions and versions[-1].before is None:
            return versions[-1].number
        return 0

    def is_by_hand(self, path: str, sha256: str) -> bool:
        """Return whether a person gave a note this text, with a command or outside simplemem."""
        versions = self._core.changes.of(path, 1)
        if not versions:
            return True
        last = versions[0]
        return last.after != sha256 or last.is_by_person

    # Writing

    def must_be_writable(self) -> None:
        """Raise ReadOnly if the vault may not be changed."""
        self._core.must_be_writable()

    def check_text(self, name: str, before: str, after: str) -> list[str]:
        """Return warnings about a text that is to be written; see `text_checks.check_text`."""
        return check_text(self._core.settings, name, before, after)

    def change(self, make_drafts: Callable[[], Sequence[Draft]], **by: Unpack[By]) -> BatchResult:
        """Make drafts and write them as one change, all or none, with one undo.

        If one of the files changed meanwhile, the drafts are made again. Raises Conflict if that
        does not help.
        """
        return self._batches.write(make_drafts, change_by(by, ""))

    def move(self, new_paths: Mapping[str, str], **by: Unpack[By]) -> tuple[Moved, ...]:
        """Give files other paths as one change, all or none. Links keep their targets."""
        return self._core.parts.mover.move_files(new_paths, **by)

    # Search

    def likeness(self, question: str, paths: Collection[str], most: int = 0) -> Likeness:
        """Return how similar some notes are to a question: all of them, or the `most` similar ones.

        Notes without a vector, or without a word of the question, are absent.
        """
        core = self._core
        core.prepare()
        core.state_of_answer(core.state_if_behind())
        query = read_query(as_words(question))
        if not query.words:
            return Likeness({}, {}, "The query contains no words.")
        vector, problem = core.embedding.embed_query(query.text)
        if not paths:
            return Likeness({}, {}, problem)

        count = most or len(paths)
        answer = core.index.ask(
            Question(
                terms=query.terms(),
                vector=vector,
                narrow=Narrow(only=tuple(paths), hidden=True),
                notes=count,
                nearest=count,
                closer=0,
            )
        )
        best_score = max((match.score for match in answer.notes), default=0.0) or 1.0
        words = {answer.paths[match.note]: match.score / best_score for match in answer.notes}
        meaning = {answer.paths[note]: near.block for note, near in (answer.near or {}).items()}
        missing = "" if meaning else problem or "There are no vectors yet."
        return Likeness(meaning, words, missing)

    def answers(
        self,
        question: str,
        paths: Collection[str],
        limit: int,
        *,
        passages: int = 0,
        rerank: bool = True,
    ) -> Answers:
        """Return the best of some notes for a question, and so many of their passages.

        The question is read as words only: it has no search operators.
        """
        if not paths:
            return Answers({}, [])

        core = self._core
        core.prepare()
        behind = core.state_if_behind()
        ranker = core.searching.ranker
        ranking = ranker.rank_among(as_words(question), tuple(paths), limit, rerank=rerank)
        best_score = max((hit.score for hit in ranking.hits), default=0.0) or 1.0

        state = core.state_of_answer(behind, ranking.status)
        degraded = degradation_of(ranking)
        if not state.is_ready:
            degraded = f"{degraded} {state.reason}".strip()
        quality = core.searching.quality
        score = quality.score(ranking, ranking.hits[0]) if ranking.hits else 0.0
        only_nearest = state.is_ready and quality.is_only_nearest(ranking, score)
        return Answers(
            notes={hit.path: _share(hit.score / best_score) for hit in ranking.hits},
            passages=self._passages_of(ranking, passages, best_score),
            only_nearest=only_nearest,
            notice=notice_of(only_nearest, ranking.query.words, ranking.query.absent),
            quality=_share(score),
            degraded=degraded,
            reranker=ranking.reranking.name if ranking.reranking is not None else "",
            by_meaning=ranking.mode != "text",
        )

    def _passages_of(self, ranking: Ranking, limit: int, best_score: float) -> list[Piece]:
        """Return the best passages of ranked notes, with their scores as shares of the best."""
        if not limit:
            return []
        pieces = self._core.searching.context.pieces_of(ranking)[:limit]
        return [
            replace(piece, text=piece.quoted, score=min(1.0, piece.score / best_score))
            for piece in pieces
        ]

    # Vectors

    @property
    def embedder(self) -> str:
        """The name of the embedder whose vectors are in use, "" if there are none."""
        space = self._core.index.standing().space
        return space.embedder if space.dimension else ""

    def vector_of(self, path: str) -> tuple[list[float], str] | None:
        """Return the vector of a note and the name of its embedder; None if it has none."""
        embedder = self.embedder
        vectors = self.vectors_of([path])
        if not embedder or path not in vectors:
            return None
        return vectors[path], embedder

    def vectors_of(self, paths: Sequence[str]) -> dict[str, list[float]]:
        """Return the vectors of notes by path: the mean of their passages' vectors, of length one.

        Notes without one are absent.
        """
        if not self.embedder:
            return {}
        rows = self._core.index.known(paths)
        means = {}
        for path in paths:
            if path in rows:
                vectors = self._core.index.vectors_of(rows[path].id)
                if vectors:
                    means[path] = _mean_of(vectors)
        return means

    def take_vectors(self, other: ExtensionAPI) -> None:
        """Copy vectors of a service from another store's index, wherever the text is the same."""
        self._core.embedding.reuse_vectors(other._core.index.database, self._core.index.database)


def _share(score: float) -> float:
    """Return a score as a number from 0 to 1."""
    return max(0.0, min(1.0, score))


def _mean_of(vectors: Sequence[bytes]) -> list[float]:
    """Return the mean of int8 vectors, at length one."""
    import numpy as np

    rows = np.array([np.frombuffer(vector, np.int8) for vector in vectors], np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    total = (rows / np.maximum(lengths, 1)).sum(axis=0)
    mean: list[float] = np.round(total / (np.linalg.norm(total) or 1), 6).tolist()
    return mean


def as_words(question: str) -> str:
    """Return a question without the characters that a search takes for operators."""
    return _SEARCH_OPERATOR.sub(" ", question)
