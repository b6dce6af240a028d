"""What a room above the store needs to keep a kind of note: changes, texts, what links mean, notes written as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Unpack

from simplemem.errors import Conflict, SimplememError
from simplemem.index.door import Narrow, Question
from simplemem.index.notes import named_in_memory
from simplemem.models import By, Filter, Listed, Moved
from simplemem.note.formatting import well_formed
from simplemem.note.header import read_header
from simplemem.note.names import check_name, name_of
from simplemem.note.note import decode_text, read_note
from simplemem.note.privacy import private_reason
from simplemem.note.scopes import check_scope_is_own
from simplemem.obsidian.links import name_key, resolve_link
from simplemem.search.judgement import notice_of
from simplemem.search.listing import MAX_PAGE
from simplemem.search.packing import Piece
from simplemem.search.pipeline import degradation_of
from simplemem.search.query import read_query
from simplemem.store.core import Core, change_by
from simplemem.store.edits import encoded, now, stamp_modified
from simplemem.store.text_checks import check_text
from simplemem.vault.folder.lock import FileLock, SideFile
from simplemem.vault.values import Author, FileChange, WriteResult, sha256

_MANY = (
    300  # links that are resolved at once: all names are read then rather than asked for one by one
)
_TRIES = 50


class Read(NamedTuple):
    """A note's text, and why it is not to be changed, "" when it may be."""

    path: str
    text: str
    sha256: str
    problem: str


class Likeness(NamedTuple):
    """By path: the best cosine, and the score by words as a share of the best; and why there is no meaning."""

    meaning: dict[str, float]
    words: dict[str, float]
    missing: str

    def scores(self, weight: float, least: float) -> dict[str, tuple[float, float, float]]:
        """What is so like it or more: a score in which meaning weighs so much, (1 + cosine) / 2, and the words. Without
        meaning whatever has a word of it."""
        found = {}
        for path in self.words if self.missing else self.meaning:
            similarity, words = (1 + self.meaning.get(path, -1.0)) / 2, self.words.get(path, 0.0)
            score = words if self.missing else weight * similarity + (1 - weight) * words
            if self.missing or max(score, similarity) >= least:
                found[path] = (score, similarity, words)
        return found


class Answers(NamedTuple):
    """What of some notes answers a question: they with their scores, and their passages, both best first.

    The best note has the score 1, whatever it is worth: `quality` says how good it is in itself, from 0 to 1.
    """

    notes: dict[str, float]
    passages: list[Piece]
    only_nearest: bool = False
    notice: str = ""  # says that these are only the nearest
    quality: float = 0.0
    degraded: str = ""
    reranker: str = ""
    by_meaning: bool = False  # not by words alone


class Draft(NamedTuple):
    """What a note shall be: its text, None for the trash; and the text that is made of, None for a new note. Another
    file has bytes in their place. A text made of bytes is written as it is."""

    path: str
    text: str | bytes | None
    before: str | bytes | None = None
    at: float | None = None  # its last change, in seconds, if that is not now


class Carried(NamedTuple):
    """A step that is on the disk: what became of each note, with its text, and what is to be said of it."""

    written: tuple[WriteResult, ...]
    texts: dict[str, str]
    warnings: tuple[str, ...]


class Bench:
    """One store, for the rooms above it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.made: dict[Any, Any] = {}  # what a room above has one of for each store
        self.on_close = core.on_close
        self.max_note_bytes = core.settings.max_note_bytes  # a larger note is not indexed
        self.read_only = core.read_only or core.vault.read_only
        self.must_be_writable = core.must_be_writable
        self.look_at = core.look_at
        self.find_former_note = core.find_former_note
        self.prepare = core.prepare
        self.catch_up = (
            core.catch_up
        )  # index what a person or another program wrote; not while the vault is held
        self.judge = partial(
            check_text, core.settings
        )  # whether a text may be written, and what is to be said of it
        self.since = core.index.since
        self.files = core.index.files  # the paths of all, notes or not
        self.with_property = (
            core.index.with_property
        )  # the paths of the notes that have it, by what it says
        self.embedding = core.embedding.report
        self.changes = core.changes.recent
        self.notes_then = core.parts.texts.notes_then
        self.last_version = (
            core.changes.newest
        )  # the number of the last change, 0 when there is none
        self.recover = core.vault.recover
        self.is_taken: Callable[[str], bool] = lambda path: core.entry(path) is not None
        self.bytes_of = core.bytes_of  # of a file, a note or not; None where there is none
        self.folder = core.vault.own_folder
        self.entries_below = core.vault.entries_below
        self.turn = partial(
            FileLock, str(core.root)
        )  # that one of several servers has: the lock on a file
        self.take_notices = core.notices.take  # what the last calls of this thread have to say
        self.side = partial(
            SideFile, str(core.root)
        )  # a file of `.simplemem/` that is neither a note nor the index's

    def indexed(self) -> frozenset[str]:
        """The paths of all notes in the index."""
        return frozenset(self._core.index.known())

    def every(self, narrowed: Filter | None = None) -> list[Listed]:
        """All notes that pass a filter, by name; a page of a list has a thousand at most."""
        found, cursor = list[Listed](), "0-name"  # of the first page
        while cursor:
            page = self._core.searching.lister.list(narrowed, "name", MAX_PAGE, cursor)
            found, cursor = [*found, *page.items], page.next_cursor or ""
        return found

    def read(self, paths: Iterable[str]) -> Iterator[Read]:
        """Notes as they stand on the disk, one after the other. Those that are not there are left out."""
        with self._core.vault.reading() as reading:
            for path in paths:
                try:
                    file = reading(path)
                except (SimplememError, OSError):
                    continue
                text, problem = decode_text(file.data)
                yield Read(path, text, file.sha256, problem or "")

    def meant(
        self, links: Sequence[tuple[str, str]], among: Iterable[str] | None = None
    ) -> list[str | None]:
        """The paths that links (target, note) lead to; as if only the files `among` were there, if that is said."""
        index = self._core.index
        if among is None and len(links) > _MANY:
            among = index.files()
        named = index.files_named if among is None else named_in_memory(among)
        return [resolve_link(target, source, named).path for target, source in links]

    def files_called(self, name: str) -> Sequence[str]:
        """All files of that name, compared as links compare. Half a character is in no file's name."""
        return () if well_formed(name) != name else self._core.index.files_named(name_key(name))

    def private(self, paths: Iterable[str]) -> set[str]:
        """Those of these notes that are private now, or cannot be read."""
        rules, private = self._core.settings.embed.private, set(paths)
        notes = ((read.path, read_note(read.text.encode())) for read in self.read(list(private)))
        return private - {path for path, note in notes if private_reason(path, note, rules) is None}

    @property
    def embedder(self) -> str:
        """The name of the embedder whose vectors are in use, "" when there are none."""
        space = self._core.index.standing().space
        return space.embedder if space.dimension else ""

    def likeness(self, question: str, paths: Collection[str], most: int = 0) -> Likeness:
        """How like a question each of these notes is, or the `most` like it. Those without vectors, or without a word of
        it, are absent."""
        self._core.prepare()
        self._core.state_of_answer(self._core.state_if_behind())
        if not (query := read_query(as_words(question))).words:
            return Likeness({}, {}, "The query contains no words.")
        vector, missing = self._core.embedding.embed_query(query.text)
        if not paths:
            return Likeness({}, {}, missing)
        narrow, most = Narrow(only=tuple(paths), hidden=True), most or len(paths)
        asked = Question(
            query.terms(), (), vector, narrow=narrow, notes=most, nearest=most, closer=0
        )
        answer = self._core.index.ask(asked)
        best = max((match.score for match in answer.notes), default=0.0) or 1.0
        meaning = {answer.paths[note]: near.block for note, near in (answer.near or {}).items()}
        words = {answer.paths[match.note]: match.score / best for match in answer.notes}
        return Likeness(meaning, words, "" if meaning else missing or "There are no vectors yet.")

    def answers(
        self,
        question: str,
        paths: Collection[str],
        limit: int,
        *,
        passages: int = 0,
        rerank: bool = True,
    ) -> Answers:
        """The best of these notes for a question, which is words only, and so many of their passages."""
        if not paths:
            return Answers({}, [])
        self._core.prepare()
        behind = self._core.state_if_behind()
        searching = self._core.searching
        ranking = searching.ranker.rank_among(
            as_words(question), tuple(paths), limit, rerank=rerank
        )
        best = max((hit.score for hit in ranking.hits), default=0.0) or 1.0
        notes = {hit.path: max(0.0, min(1.0, hit.score / best)) for hit in ranking.hits}
        pieces: list[Piece] = []
        if passages:
            pieces = searching.context.pieces_of(ranking)[:passages]
        pieces = [
            replace(piece, text=piece.quoted, score=min(1.0, piece.score / best))
            for piece in pieces
        ]

        state = self._core.state_of_answer(behind, ranking.standing)
        share = searching.quality.score(ranking, ranking.hits[0]) if ranking.hits else 0.0
        nearest = state.is_ready and searching.quality.is_only_nearest(ranking, share)
        degraded = degradation_of(ranking)
        if not state.is_ready:
            degraded = f"{degraded} {state.reason}".strip()
        return Answers(
            notes=notes,
            passages=pieces,
            only_nearest=nearest,
            notice=notice_of(nearest, ranking.query.words, ranking.query.absent),
            quality=max(0.0, min(1.0, share)),
            degraded=degraded,
            reranker=ranking.reranking.name if ranking.reranking is not None else "",
            by_meaning=ranking.mode != "text",
        )

    def vector_of(self, path: str) -> tuple[list[float], str] | None:
        """A note's vector, the mean of its passages' at length one, and the name of the embedder that made them."""
        embedder, found = self.embedder, self.vectors_of([path])
        return (found[path], embedder) if path in found and embedder else None

    def vectors_of(self, paths: Sequence[str]) -> dict[str, list[float]]:
        """The vectors of notes, each the mean of its passages' at length one, by path. Notes without one are absent."""
        if not self.embedder:
            return {}
        known = self._core.index.known(paths)
        stored = {
            path: self._core.index.vectors_of(known[path].id) for path in paths if path in known
        }
        return {path: _middle(vectors) for path, vectors in stored.items() if vectors}

    def take_vectors(self, other: Bench) -> None:
        """Take the vectors of another store's index that a service was paid for, wherever the text is the same."""
        self._core.embedding.reuse_vectors(other._core.index.database, self._core.index.database)

    def expect_more(self) -> None:
        """More questions will come: what is slow to load is kept."""
        self._core.parts.lifetime.expect_more()

    def change(self, draft: Callable[[], Sequence[Draft]], **by: Unpack[By]) -> Carried:
        """Draft and write as one step, all or nothing, with one undo; again when a note changed meanwhile."""
        change, tries, before = change_by(by, ""), 0, None
        with self._core.vault.lock():
            while True:
                drafts: Sequence[Draft] = ()
                try:
                    drafts = draft()
                    return self._carry_out(drafts, change)
                except Conflict:
                    if (
                        tries := tries + 1
                    ) > _TRIES or drafts is before:  # which would end as it ended before
                        raise
                    before = drafts
                    self.look_at(each.path for each in drafts)

    def move(self, new_paths: Mapping[str, str], **by: Unpack[By]) -> tuple[Moved, ...]:
        """Give files other paths as one step, all or none, with one undo. Every link goes on meaning what it meant."""
        return self._core.parts.mover.move_files(new_paths, **by)

    def _carry_out(self, drafts: Sequence[Draft], change: Author) -> Carried:
        """Carry out drafts. Conflict, and nothing written, when a note is not what its draft was made of."""
        core = self._core
        core.must_be_writable()
        wishes, warnings = list[FileChange](), list[str]()
        for path, text, before, at in drafts:
            name, sha = name_of(path), "" if before is None else sha256(_bytes(before))
            if before is None:
                check_name(name)
                warnings += check_text(core.settings, "", "", name)
            if text is None:
                wishes.append(FileChange.update(path, sha, None))
                continue
            if isinstance(text, str):
                if core.vault.access.is_partial:
                    self._check_scope(path, before, text)
                known = (
                    before.decode("utf-8", "replace") if isinstance(before, bytes) else before or ""
                )
                warnings += check_text(core.settings, name, known, text)
                stale = at is None and isinstance(before, str) and text != before
                text = stamp_modified(text, now()) if stale else text
            data = _bytes(text)
            wishes.append(replace(FileChange.update(path, sha or None, data), at=at))
        written = core.vault.carry_out(wishes, change) if wishes else []
        files = {draft.path for draft in drafts if isinstance(draft.text, bytes)}
        texts = {
            wish.path: wish.data
            for wish in wishes
            if wish.data is not None and wish.path not in files
        }
        if files:  # first: the notes link to them
            warnings += core.indexed(files, lambda: core.look_at(files))
        gone = [wish.path for wish in wishes if wish.gone]
        warnings += core.parts.indexer.index(texts, written, gone=gone)
        return Carried(
            tuple(written), {path: data.decode() for path, data in texts.items()}, tuple(warnings)
        )

    def _check_scope(self, path: str, before: str | bytes | None, text: str) -> None:
        """Raise Invalid if a draft puts its note into a scope that is hidden from this store."""
        known = before.decode("utf-8", "replace") if isinstance(before, bytes) else before or ""
        old = read_header(known).properties
        new = read_header(text).properties
        check_scope_is_own(path, old, new, self._core.vault.access.hides)

    def first_version(self, path: str) -> int:
        """Return the number of the change that made a note, under whatever name; 0 if a person made it by hand."""
        versions = self._core.changes.of(path)
        return versions[-1].number if versions and versions[-1].before is None else 0

    def is_by_hand(self, path: str, sha256: str) -> bool:
        """Whether a person gave a note this text: with a command, or where nobody told us."""
        last = next(iter(self._core.changes.of(path, 1)), None)
        return last is None or last.after != sha256 or last.is_by_person


def _middle(vectors: Sequence[bytes]) -> list[float]:
    """The mean of int8 vectors, at length one."""
    import numpy as np

    rows = np.array([np.frombuffer(each, np.int8) for each in vectors], np.float64)
    middle = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)).sum(axis=0)
    unit: list[float] = np.round(middle / (np.linalg.norm(middle) or 1), 6).tolist()
    return unit


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else encoded(text)


def as_words(question: str) -> str:
    """A question without the marks that a search takes for more than words."""
    return re.sub(r'["*]|(?<!\S)-|(?<=\w):', " ", question)
