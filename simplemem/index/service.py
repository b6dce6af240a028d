"""The index of one vault, as `store` and `search` use it. Each query reads one state of it.

A search makes three calls: `vocabulary`, `ask` and `details`. If the index is missing or damaged,
it is rebuilt, and the query is repeated.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simplemem.errors import Unavailable
from simplemem.index import api, audit, embeddings, notes, vectors
from simplemem.index.api import IndexFilter, IndexProgress, IndexQuery, Matches, NoteId, NotePage
from simplemem.index.details import DetailsReader, group_by_note, select_tags
from simplemem.index.engine import (
    COMMIT,
    Connection,
    Damaged,
    Engine,
    Replaced,
    StatementFailed,
    read_integer,
)
from simplemem.index.filters import condition
from simplemem.index.link_graph import read_link_graph

if TYPE_CHECKING:
    from simplemem.index.terms.query_terms import SegmentCache
    from simplemem.index.terms.reader import TermIndex

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_CHECK_SECONDS = 24 * 3600.0  # between two checks of the whole index
_MAX_ATTEMPTS = 5
# What a query may raise for a row with values that were never written, such as a number as a path.
# The engine does not notice all damage. An error of these kinds may as well be a bug of ours.
_MAY_BE_OF_DAMAGE = (StatementFailed, ValueError, TypeError, LookupError, AttributeError)
_MAX_SIMILAR = 1_000  # remembered answers to queries with `like`; 6 MB
_MAX_COMPARED_PATHS = 500  # of the notes with one similar term
_MAX_EXAMPLES = 10  # notes with a similar term
_MAX_PATHS = 50_000  # remembered paths of notes; 6 MB
_ORDER = {
    "modified": "n.modified DESC",
    "created": "n.created DESC",
    "name": "n.path_key",
    "title": "n.title_key",
}


class IndexService:
    """The index of one vault, for any thread. Guards what each thread has read of its last state.

    `on_replaced` is called when another index, perhaps an empty one, has taken the place of this
    one. If this index is replaced or damaged during a query, the query is repeated on the new
    index, which is empty after damage. Methods raise Unavailable if the engine cannot be used.
    """

    def __init__(self, database: Engine, on_replaced: Callable[[], None] = lambda: None) -> None:
        self.database = database
        self.seen_generation = database.generation  # of the index at the last query
        self._on_replaced = on_replaced
        self._nearest = vectors.NearestNotes()
        self._segments: SegmentCache | None = None
        self._local = threading.local()

    @property
    def path(self) -> Path:
        """The file of the index; for an index in a server, the place where a file would be."""
        return self.database.path

    def close(self) -> None:
        """Close every connection. No other thread may use them now. A later call opens new ones."""
        self.database.close()

    # -- a whole index

    @property
    def generation(self) -> int:
        """A number that grows each time another index takes the place of this one.

        Reading it asks the engine, and discards a damaged index.
        """
        try:
            self.database.refresh()
        except Damaged:
            self.database.discard()
        return self.database.generation

    def with_retry(self, question: Callable[[], T]) -> T:
        """Call `question`, all of whose queries then see the same index, and return its result.

        If the index is replaced meanwhile, or is damaged and so replaced by an empty one,
        `question` is called again, at most five times in all: repeating it must be harmless. Within
        another `with_retry` of the same thread, it is called once. Raises Unavailable if all
        attempts fail.
        """
        if getattr(self._local, "is_asking", False):
            return question()
        self._local.is_asking = True
        try:
            if self.generation != self.seen_generation:
                self._follow_replacement()
            return self._ask_repeatedly(question)
        except Damaged as error:
            raise Unavailable(
                f"the index is damaged again after each rebuild ({error})",
                hint="Check the disk, and whether another program changes or deletes the index. "
                "Then try again.",
            ) from error
        finally:
            self._local.is_asking = False

    def _ask_repeatedly(self, question: Callable[[], T]) -> T:
        """Call `question` until no replacement or damage interrupts it, and return its result.

        After an error that damage may have caused, the whole index is checked, and discarded only
        if it is damaged; otherwise the error is raised. The error of the last attempt is raised
        as it is, but Unavailable if the index was replaced each time.
        """
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            try:
                return question()
            except Replaced:
                self._follow_replacement()
            except (Damaged, json.JSONDecodeError, UnicodeDecodeError) as error:
                if attempt == _MAX_ATTEMPTS:
                    raise
                self._rebuild_because(error)
            except _MAY_BE_OF_DAMAGE as error:
                if attempt == _MAX_ATTEMPTS or not self.database.check():
                    raise
                self._rebuild_because(error)
        raise Unavailable(
            "the index was replaced several times in a row",
            hint="Check whether another program deletes it, then try again.",
        )

    def check(self) -> None:
        """Check the whole index if the last check is a day ago, and replace it if it is damaged.

        Damage that no query has met may hide rows from answers. A damaged index is replaced by an
        empty one, and `on_replaced` is called. Records the time of the check. Called by the
        background work of a server.
        """
        last_check = float(self.with_retry(lambda: self.database.meta("checked")) or 0)
        # A clock that was wrong may have left a time in the future: then check now.
        if abs(time.time() - last_check) < _CHECK_SECONDS:
            return
        problems = self.database.check()
        if problems:
            self._rebuild_because(problems[0])
        self.with_retry(lambda: self.database.set_meta("checked", f"{time.time():.0f}"))

    def _rebuild_because(self, problem: object) -> None:
        """Log a warning, replace the index by an empty one, and call `on_replaced`."""
        _LOG.warning("the index is damaged and will be rebuilt: %s", problem)
        self.database.discard()
        self._follow_replacement()

    def _follow_replacement(self) -> None:
        """Remember the generation of the index as it is now, and call `on_replaced`."""
        self.seen_generation = self.generation
        self._on_replaced()

    def _read(self, ask: Callable[[Connection], T]) -> T:
        """Return what `ask` finds in one snapshot, with the repetitions of `with_retry`."""
        return self.with_retry(lambda: self.database.answer(ask))

    def _snapshot(self, db: Connection) -> Snapshot:
        """Return what this thread knows of the state of the index.

        It is kept until somebody writes; then a new `Snapshot` is made.
        """
        last: Snapshot | None = getattr(self._local, "snapshot", None)
        if last is not None and last.db is db and last.state == db.state():
            return last
        snapshot = Snapshot(db, self._segment_cache)
        self._local.snapshot = snapshot
        return snapshot

    def _segment_cache(self) -> SegmentCache:
        """Return the cache of what this process has read of the term index, made at the first call.

        Two threads may make one at once; then one of the two is dropped.
        """
        if self._segments is None:
            from simplemem.index.terms.query_terms import SegmentCache  # numpy: not at the start

            self._segments = SegmentCache()
        return self._segments

    # -- searching

    def vocabulary(self, groups: Sequence[api.AnyOf]) -> tuple[Sequence[int], IndexProgress]:
        """Return how many notes have one of the terms of each group, and the state of the index.

        The numbers are in the order of `groups`.
        """

        def read(db: Connection) -> tuple[Sequence[int], IndexProgress]:
            snapshot = self._snapshot(db)
            return snapshot.terms().count_notes(db, groups), snapshot.progress

        return self._read(read)

    def similar_terms(
        self, word: str, max_edits: int, narrow: IndexFilter
    ) -> Sequence[api.SimilarTerm]:
        """Return the terms that a misspelt word may mean, the most similar first.

        Only notes that pass the filter count; a term that none of them contains is left out.
        """

        def read(db: Connection) -> Sequence[api.SimilarTerm]:
            snapshot = self._snapshot(db)
            searched = snapshot.without_empty_archives(narrow)
            ids: api.Ids = None
            if not lets_all_pass(searched):
                ids = snapshot.ids(searched)

            terms = snapshot.terms().notes_with_similar_terms(db, word, max_edits, ids)
            similar = []
            for term, note_ids in terms:
                # By path, because engines number notes differently.
                compared = note_ids[:_MAX_COMPARED_PATHS]
                path_of_note = snapshot.paths(compared)
                paths = sorted(path_of_note[note] for note in compared if note in path_of_note)
                examples = paths[:_MAX_EXAMPLES]
                similar.append(api.SimilarTerm(term, len(note_ids), examples))
            return similar

        return self._read(read)

    def compounds(self, ending: str, min_length: int) -> Sequence[str]:
        """Return terms with at least `min_length` letters that end with a word, frequent first."""
        return self._read(lambda db: self._snapshot(db).terms().compounds(db, ending, min_length))

    def ask(self, question: IndexQuery) -> Matches:
        """Return the notes and blocks that the words, names or vector of a query lead to.

        Only notes that pass the query's filter are among them. The answer to a query with `like` is
        remembered until somebody writes, by the path and `max_nearest`: all such queries must have
        the same filter and no other condition.
        """

        def read(db: Connection) -> Matches:
            snapshot = self._snapshot(db)
            if question.like:
                answer = self._answer_like(snapshot, question)
            else:
                answer = self._answer(snapshot, question)
            if question.counts_excluded:
                excluded = _count_excluded(snapshot, question.narrow)
                answer = answer._replace(excluded=excluded)
            return answer

        return self._read(read)

    def _answer_like(self, snapshot: Snapshot, question: IndexQuery) -> Matches:
        """Return the answer to a query with `like`, from the snapshot if it remembers one."""
        key = question.like, question.max_nearest
        answer = snapshot.similar.get(key)
        if answer is None:
            answer = self._answer(snapshot, question)
            if len(snapshot.similar) < _MAX_SIMILAR:
                snapshot.similar[key] = answer
        return answer

    def _answer(self, snapshot: Snapshot, question: IndexQuery) -> Matches:
        """Compute the answer to a query in one snapshot."""
        db = snapshot.db
        # This statement is sent first: PostgreSQL computes its answer during the other steps.
        name_rows = _select_names(db, question)

        narrow = snapshot.without_empty_archives(question.narrow)
        ids: api.Ids = None
        if not lets_all_pass(narrow):
            ids = snapshot.ids(narrow)

        by_words, blocks, pairs = snapshot.terms().rank(db, question, ids)
        similarities = self._find_similar(snapshot, question, ids, by_words)
        title_matches, named = _match_names(name_rows, question, ids)

        found = {*by_words, *title_matches}
        if similarities is not None:
            found.update(similarities.scores)
        paths = snapshot.paths(found)
        # A part of a query that is a name ranks a note higher, but does not find it.
        named = {note_id: share for note_id, share in named.items() if note_id in found}
        return Matches(
            notes=by_words,
            blocks=blocks,
            pairs=pairs,
            similarities=similarities,
            paths=paths,
            passed=None if ids is None else len(ids),
            title_matches=title_matches,
            named=named,
            note_count=snapshot.progress.notes,
        )

    def _find_similar(
        self,
        snapshot: Snapshot,
        question: IndexQuery,
        ids: api.Ids,
        also: Collection[NoteId],
    ) -> api.Similarities | None:
        """Return the similarities of the notes nearest to the query's vector, and those in `also`.

        The nearest are chosen among `ids` (None: all notes). Returns None if there is no vector
        that can be compared.
        """
        vector = _comparable_vector(snapshot, question)
        if vector is None:
            return None
        # If one of these differs, all vectors in memory are read again.
        index_key = self.database.generation, snapshot.progress.space, len(vector)
        return self._nearest.find(
            snapshot.db,
            state=(index_key, snapshot.rev),
            query=vector,
            ids=ids,
            limit=question.max_nearest,
            also=also,
            paths=snapshot.paths,
        )

    def details(
        self,
        best_places: Mapping[NoteId, api.PlaceId],
        question: IndexQuery,
        *,
        blocks: bool = False,
        repeated: bool = False,
        matched: Sequence[api.PlaceId] = (),
        neighbours_of: Sequence[NoteId] = (),
        among: Collection[NoteId] = (),
    ) -> Mapping[NoteId, api.NoteDetails]:
        """Return details of the notes that still exist, by note id.

        `best_places` has the ids of the notes, each with the place that matched best, 0 for none.
        `matched` are further blocks that matched; with `blocks`, all blocks of these notes that
        have a term of the query are used instead. `repeated` adds the spans of text that many notes
        have. A note in `among` is added if it is a neighbour of a note in `neighbours_of`.
        """

        def read(db: Connection) -> Mapping[NoteId, api.NoteDetails]:
            snapshot = self._snapshot(db)
            reader = DetailsReader(
                db,
                question.terms,
                snapshot.terms,
                partial(_comparable_vector, snapshot, question),
            )
            return reader.read(
                best_places,
                with_blocks=blocks,
                with_repeated=repeated,
                matched=matched,
                neighbours_of=neighbours_of,
                among=among,
            )

        return self._read(read)

    def find_matching(
        self, groups: Sequence[api.AnyOf], note_ids: Sequence[NoteId]
    ) -> list[tuple[int, set[NoteId]]]:
        """Return for each group how many notes have one of its terms, and which of `note_ids` do.

        The pairs are in the order of `groups`.
        """

        def read(db: Connection) -> list[tuple[int, set[NoteId]]]:
            terms = self._snapshot(db).terms()
            return terms.find_holders(db, groups, note_ids)

        return self._read(read)

    def page(self, narrow: IndexFilter, sort: str, limit: int, after: int = 0) -> NotePage:
        """Return a page of the notes that pass a filter, and how many pass in all.

        The page begins after the first `after` notes, and has at most `limit`. `sort` is one of
        `api.SORTS`; dates are newest first, names and titles ascend, and equal ones are in the
        order of their paths. With `limit` 0, only the total is counted.
        """

        def read(db: Connection) -> NotePage:
            source, values = self._snapshot(db).condition(narrow)
            count = db.execute(f"SELECT count(*) FROM {source}", values)
            total = read_integer(count)

            ids: list[NoteId] = []
            if limit:
                first = len(values) + 1
                sql = f"""
                    SELECT n.id FROM {source} ORDER BY {_ORDER[sort]}, n.path
                    LIMIT ${first} OFFSET ${first + 1}"""
                page_rows = db.execute(sql, [*values, limit, after])
                ids = [note_id for (note_id,) in page_rows]

            rows = notes.rows_of(db, ids)
            tags = group_by_note(select_tags(db, ids))
            return NotePage(
                rows=[rows[note_id] for note_id in ids],
                tags=tags,
                total=total,
            )

        return self._read(read)

    # -- notes, files and links

    def rows(self, paths: Iterable[str] | None = None) -> dict[str, api.NoteRow]:
        """Return rows of notes by path: of all notes, or of those at `paths` that are indexed."""
        path_list = None if paths is None else list(paths)
        return self._read(lambda db: notes.rows_at(db, path_list))

    def outline(self, path: str) -> api.Outline | None:
        """Return the row, tags, aliases and links of the note at a path; None if there is none."""
        return self._read(lambda db: notes.outline(db, path))

    def find_by_name(self, key: str) -> tuple[list[str], ...]:
        """Return the notes called `key` as four lists of paths: by path, file name, title, alias.

        `key` is a result of `compare_key`. A note may be in several lists; each is in path order.
        Hidden notes are among them.
        """
        return self._read(lambda db: notes.find_by_name(db, key))

    def complete_name(self, prefix: str, limit: int, last: Iterable[str]) -> list[tuple[str, bool]]:
        """Return up to `limit` visible notes whose file name or path starts with `prefix`.

        Case does not matter. Each is a path, and whether no other note has its file name. Notes in
        the folders `last` come last.
        """
        folders = list(last)
        return self._read(lambda db: notes.complete_name(db, prefix, limit, folders))

    def names_since(self, mark: api.Mark | None) -> tuple[api.Mark, list[api.NameRow] | None]:
        """Return the names of all visible notes, and the mark of the state that has them.

        The names are None if the index has not changed since `mark`.
        """

        def read(db: Connection) -> tuple[api.Mark, list[api.NameRow] | None]:
            now = api.Mark(self.database.generation, notes.newest_rev(db))
            if now == mark:
                return now, None
            return now, notes.all_names(db)

        return self._read(read)

    def link_graph_since(
        self, mark: api.Mark | None, *, kind_property: str
    ) -> api.LinkGraph | None:
        """Return all visible notes and the links between them.

        `kind_property` is the property that becomes the `kind` of a note. Returns None if the index
        has not changed since `mark`.
        """

        def read(db: Connection) -> api.LinkGraph | None:
            now = api.Mark(self.database.generation, notes.newest_rev(db))
            if now == mark:
                return None
            return read_link_graph(db, now, kind_property)

        return self._read(read)

    def paths_by_property(self, key: str) -> dict[str, str]:
        """Return the paths of the notes that have the property `key`, by `str` of its value.

        If several notes have the same value, the first path counts. Hidden notes are among them.
        """
        return self._read(lambda db: notes.paths_by_property(db, key))

    def notes_with_property(
        self, key: str, value: str, narrow: IndexFilter, other_path: str
    ) -> list[api.NoteRow]:
        """Return the notes whose property `key` has a value, and the one at `other_path`.

        Only those that pass a filter, whose `only` must be empty; in the order of their paths.
        `value` is in small ASCII letters. In the frontmatter, it may be a text, or a number or
        boolean that is written so; case does not matter.
        """

        def read(db: Connection) -> list[api.NoteRow]:
            paths = notes.paths_with_property(db, key, value)
            one_of_them = replace(narrow, only=tuple(sorted({*paths, other_path})))
            source, values = self._snapshot(db).condition(one_of_them)
            sql = f"SELECT n.id FROM {source} ORDER BY n.path"
            ids = [note_id for (note_id,) in db.execute(sql, values)]
            rows = notes.rows_of(db, ids)
            return [rows[note_id] for note_id in ids]

        return self._read(read)

    def folders_with_notes(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Return those of `folders` in or below which there is a note, even if all are hidden.

        Each folder ends in "/".
        """
        folder_list = list(folders)
        return self._read(lambda db: notes.folders_with_notes(db, folder_list))

    def files(self) -> set[str]:
        """Return the path of every file that a link can mean: notes and attachments."""
        return self._read(notes.all_files)

    def files_named(self, key: str) -> list[str]:
        """Return the paths of the files with a name, in order. `key` is a result of `name_key`."""
        return self._read(lambda db: notes.files_named(db, key))

    def links(self, to: str | None = None) -> Sequence[api.StoredLink]:
        """Return the links of other notes to the file `to`; with None, every link.

        For `to`, links of conflict copies are left out: they only repeat those of their notes.
        """
        return self._read(lambda db: list(notes.links(db, to)))

    def sources_that_could_mean(self, files: Iterable[str]) -> list[str]:
        """Return the paths of the notes with a link that could mean one of these files, in order.

        Such a link is looked up by the name of the file, and may mean another file of that name.
        """
        file_list = list(files)
        return self._read(lambda db: notes.sources_that_could_mean(db, file_list))

    def conflict_copies(self) -> list[tuple[str, str, str]]:
        """Return each conflict copy whose note still exists: (copy, note, program that made it).

        A note with a name that people choose too is left out unless it is hidden from search. So is
        any file that simplemem named itself.
        """
        return self._read(notes.conflict_copies)

    # -- vectors, counts and states

    def embedded(self, embedder: str, remote: bool) -> api.Embedded:
        """Return how many notes have, lack or get no vectors of an embedder.

        `embedder` is its name; it may be one that was not used yet. `remote` says whether it is a
        service, which gets no private notes.
        """
        return self._read(lambda db: embeddings.embedded(db, embedder, remote))

    def vectors_of(self, note_id: NoteId) -> list[bytes]:
        """Return the vectors of a note's passages, in order; empty if it has none."""
        return self._read(lambda db: vectors.vectors_of(db, note_id))

    def counts(self) -> dict[str, Any]:
        """Return the numbers for `stats`, the number of hidden notes per reason, and problems."""
        return self._read(audit.counts)

    def tag_counts(self) -> dict[str, int]:
        """Return the number of visible notes per tag, the most used tag first.

        Tags that differ only in case are one.
        """
        return self._read(audit.tags)

    def inspection(self) -> dict[str, dict[str, Any]]:
        """Return what was read from every note, by path, as JSON values; see `audit.inspection`."""
        return self._read(audit.inspection)

    def progress(self) -> IndexProgress:
        """Return the state of the index: its notes, its embedder, and how many notes wait."""
        return self._read(lambda db: self._snapshot(db).progress)

    def since(self, mark: api.Mark | None) -> api.Changes:
        """Return the notes that any process wrote since a mark, and the new mark.

        All notes are returned if `mark` is None, or of an index that was replaced. Removed notes
        are not listed; the caller notices them because `count` is smaller than expected.
        """

        def read(db: Connection) -> api.Changes:
            now = api.Mark(self.database.generation, notes.newest_rev(db))
            if now == mark:
                return api.Changes(
                    mark=now,
                    notes=(),
                    count=-1,
                    whole=False,
                )

            rev = -1
            if mark is not None and mark.generation == now.generation:
                rev = mark.rev
            changed = notes.rows(db, "rev > $1 ORDER BY rev", rev)
            return api.Changes(
                mark=now,
                notes=changed,
                count=notes.count(db),
                whole=rev < 0,
            )

        return self._read(read)


def lets_all_pass(narrow: IndexFilter) -> bool:
    """Return whether a filter has no condition. Whether hidden notes pass does not matter."""
    return replace(narrow, hidden=False, require_all=False) == IndexFilter()


class Snapshot:
    """What one thread has read of one state of the index: counts, paths, and the last filter.

    Whatever else is asked for is read through its connection. After each write, the thread makes
    another `Snapshot`.
    """

    def __init__(self, db: Connection, get_segments: Callable[[], SegmentCache]) -> None:
        self.db = db
        self.state = db.state()
        self.similar: dict[tuple[str, int], Matches] = {}  # answers to queries with `like`
        commit = db.execute("SELECT value FROM meta WHERE key = $1", (COMMIT,))
        self.rev = notes.newest_rev(db)
        self.progress = IndexProgress(
            notes=notes.count(db),
            space=notes.vector_space(db),
            waiting=notes.waiting(db),
            commit=commit.get or "",
        )
        self._get_segments = get_segments
        self._terms: TermIndex | None = None
        self._narrow: IndexFilter | None = None  # the last filter
        self._ids: Sequence[NoteId] = ()  # of the notes that passed it
        self._paths: dict[NoteId, str] = {}
        self._folders_with_notes: dict[tuple[str, ...], tuple[str, ...]] = {}

    def terms(self) -> TermIndex:
        """Return the term index. It is read at the first call, because it needs numpy.

        Raises Unavailable if its module cannot be loaded, for example with too many open files.
        """
        if self._terms is None:
            try:
                from simplemem.index.terms.reader import TermIndex
            except OSError as error:
                raise Unavailable(
                    f"could not load the term index: {error.strerror or error}",
                    hint="If too many files are open, close some or raise `ulimit -n`.",
                ) from error

            self._terms = TermIndex(self.db, self._get_segments(), self.progress.notes)
        return self._terms

    def paths(self, note_ids: Collection[NoteId]) -> Mapping[NoteId, str]:
        """Return the paths of those notes that exist, by id, perhaps with paths of other notes."""
        if len(self._paths) > _MAX_PATHS:
            self._paths = {}
        unread_ids = set(note_ids).difference(self._paths)
        if unread_ids:
            self._paths |= notes.paths_of(self.db, unread_ids)
        return self._paths

    def without_empty_archives(self, narrow: IndexFilter) -> IndexFilter:
        """Return a filter that does not mention archive folders without a note.

        Most vaults have no note there, and a filter without conditions is cheaper. A filter for
        notes inside the archive is returned as it is.
        """
        if narrow.archived or not narrow.archive:
            return narrow
        folders = self._folders_with_notes.get(narrow.archive)
        if folders is None:
            folders = notes.folders_with_notes(self.db, narrow.archive)
            self._folders_with_notes[narrow.archive] = folders
        return replace(narrow, archive=folders)

    def condition(self, narrow: IndexFilter) -> tuple[str, list[Any]]:
        """Return the SQL after FROM for the notes that pass a filter, and the values to bind.

        Phrases of the filter are looked up in the term index for this.
        """

        def get_holders(sequences: Sequence[Sequence[str]]) -> Sequence[NoteId]:
            return self.terms().notes_with_all(self.db, sequences)

        return condition(narrow, self.db.dialect, get_holders)

    def ids(self, narrow: IndexFilter) -> Sequence[NoteId]:
        """Return the ids of the notes that pass a filter, ascending.

        The answer for the last filter is remembered.
        """
        if narrow != self._narrow:
            source, values = self.condition(narrow)
            rows = self.db.execute(f"SELECT n.id FROM {source} ORDER BY n.id", values)
            self._narrow = narrow
            self._ids = array("q", [note_id for (note_id,) in rows])
        return self._ids


def _count_excluded(snapshot: Snapshot, narrow: IndexFilter) -> int:
    """Return how many notes would pass a filter but are excluded from search.

    Conditions on words are left out: the text of an excluded note is not indexed.
    """
    searched = replace(narrow, phrases=(), without=(), without_forms=())
    with_excluded = replace(searched, hidden=True)
    return _count_notes(snapshot, with_excluded) - _count_notes(snapshot, searched)


def _count_notes(snapshot: Snapshot, narrow: IndexFilter) -> int:
    """Return how many notes pass a filter."""
    source, values = snapshot.condition(narrow)
    return read_integer(snapshot.db.execute(f"SELECT count(*) FROM {source}", values))


def _comparable_vector(snapshot: Snapshot, question: IndexQuery) -> bytes | None:
    """Return the vector of a query; None if there is none that is comparable with the index's.

    For a query with `like`, it is the mean of that note's vectors. Otherwise it is the query's own
    vector, if it has the embedder and the width of the vectors in the index. A vector without the
    name of an embedder is assumed to be of the right one.
    """
    if question.like:
        row = notes.row_at(snapshot.db, question.like)
        if row is None:
            return None
        return vectors.mean_vector(snapshot.db, row.id)

    vector = question.vector
    space = snapshot.progress.space
    if vector is None or not space.embedder:
        return None
    if space.dimension not in (0, len(vector)):
        return None
    embedder = getattr(vector, "embedder", space.embedder)
    if embedder != space.embedder:
        return None
    return vector


def _select_names(db: Connection, question: IndexQuery) -> Iterable[tuple[NoteId, int, str]]:
    """Query the visible notes whose name is the whole query or a part of it.

    Yields rows of (note id, is_alias, key); `key` is "" for a name that is the whole title. See
    `notes.query_names`. If the query looks for no name, no statement is sent, and there are no
    rows.
    """
    keys = {*question.names, *question.inner_names}
    if not question.title and not keys:
        return ()
    names: Any = notes.query_names(db, question.title, sorted(keys))
    return names  # type: ignore[no-any-return]


def _match_names(
    name_rows: Iterable[tuple[NoteId, int, str]], question: IndexQuery, ids: api.Ids
) -> tuple[dict[NoteId, int], dict[NoteId, float]]:
    """Return the notes among `ids` (None: all) that a query names, as a whole and in part.

    The first result has a number for each note with a name that equals the whole query: 0 if a
    title or file name is the same letter for letter, 1 if an alias is, 2 if a title has the same
    words, 3 if an alias has. The second result has, for each note with a name that is a part of the
    query, the largest share of the query that one of its names makes up.
    """
    names = list(name_rows)
    if names and ids is not None:
        passing = set(ids)
        names = [name for name in names if name[0] in passing]

    title_matches: dict[NoteId, int] = {}
    named: dict[NoteId, float] = {}
    for note_id, is_alias, key in names:
        if not key or key in question.names:
            is_equal_by_letters = not key
            inexactness = is_alias if is_equal_by_letters else is_alias + 2
            least_inexactness = title_matches.get(note_id, inexactness)
            title_matches[note_id] = min(inexactness, least_inexactness)

        if key in question.inner_names:
            share = question.inner_names[key]
            largest_share = named.get(note_id, 0.0)
            named[note_id] = max(share, largest_share)

    return title_matches, named
