"""Read the details of notes: their rows, tags, passages, matched blocks and neighbours.

Several statements are sent before the first answer is read, which saves round trips to PostgreSQL.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from simplemem.index import notes, vectors
from simplemem.index.api import (
    Match,
    Neighbour,
    NoteDetails,
    NoteId,
    NoteRow,
    PlaceId,
    StoredLink,
    Term,
    TextSpan,
)
from simplemem.index.engine import LAST, Connection, DatabaseRow, IntegerList
from simplemem.index.places import BLOCK, SHIFT
from simplemem.note.dates import date_in_name
from simplemem.note.names import base_name

if TYPE_CHECKING:
    from simplemem.index.terms.reader import TermIndex

T = TypeVar("T")
_MAX_BLOCKS = 5_000  # blocks with a term of the query, of all notes together
_PASSAGES_OF_NOTE = f"p.id >= (n.value << {SHIFT}) AND p.id < (n.value << {SHIFT} | {BLOCK})"

# An excerpt leaves out text that this many notes have, if it can show other text.
_MIN_NOTES_OF_REPEATED_TEXT = 5


class DetailsReader:
    """Reads details of notes from one state of the index. For one call of `read`."""

    def __init__(
        self,
        db: Connection,
        terms: Sequence[Term],
        get_words: Callable[[], TermIndex],
        get_vector: Callable[[], bytes | None],
    ) -> None:
        """Prepare to read; no statement is sent yet.

        `terms` are those of the query. `get_words` and `get_vector` are called only if the term
        index or the query's vector is needed.
        """
        self._db = db
        self._terms = terms
        self._get_words = get_words
        self._get_vector = get_vector

    def read(
        self,
        best_places: Mapping[NoteId, PlaceId],
        *,
        with_blocks: bool,
        with_repeated: bool,
        matched: Sequence[PlaceId],
        neighbours_of: Sequence[NoteId],
        among: Collection[NoteId],
    ) -> dict[NoteId, NoteDetails]:
        """Return details of the notes that still exist, by note id.

        `best_places` has the ids of the notes, each with the place that matched best, 0 for none.
        `matched` are further blocks that matched; with `with_blocks`, all blocks of these notes
        that have a term of the query are used instead. A note without any matched place gets as its
        best place the passage nearest to the query's vector, if there is a vector. `with_repeated`
        adds the spans of text that many notes have. A note in `among` is added if it is a neighbour
        of a note in `neighbours_of`.
        """
        db = self._db
        neighbours = self._find_neighbours(neighbours_of)
        note_ids = {*best_places, *_neighbours_among(neighbours, among)}
        best = {note: place for note, place in best_places.items() if place}

        # All statements are sent before an answer is read.
        tag_rows = select_tags(db, note_ids)
        passage_rows = _select_passages(db, note_ids)
        repeated_rows = self._select_repeated(note_ids) if with_repeated else iter(())
        place_rows = select_spans(db, {*best.values(), *matched})
        rows = notes.rows_of(db, note_ids)

        matched_blocks = matched
        if with_blocks:
            matches = self._find_blocks(list(rows))
            matched_blocks = [match.place for match in matches]
        best |= self._find_nearest_places(rows, best, matched_blocks)

        places = dict(passage_rows)
        places |= place_rows
        passages = _group_passages(places)
        self._add_spans(places, matched_blocks)

        tags = group_by_note(tag_rows)
        blocks = _group_blocks(places, matched_blocks)
        repeated = _group_spans(repeated_rows)
        return {
            note: NoteDetails(
                row=row,
                tags=tags[note],
                passages=passages[note],
                best=places.get(best.get(note, 0)),
                blocks=blocks[note],
                neighbours=neighbours[note],
                repeated=repeated[note],
            )
            for note, row in rows.items()
        }

    def _find_neighbours(
        self, note_ids: Sequence[NoteId]
    ) -> defaultdict[NoteId, tuple[Neighbour, ...]]:
        """Return the neighbours of each of these notes; for any other note an empty tuple."""
        if not note_ids:
            return defaultdict(tuple)
        rows = notes.rows_of(self._db, note_ids)
        return find_neighbours(self._db, list(rows.values()))

    def _add_spans(self, places: dict[PlaceId, TextSpan], place_ids: Iterable[PlaceId]) -> None:
        """Read the spans of those places that are not yet in `places`, and add them there."""
        unread = [place for place in place_ids if place not in places]
        if unread:
            places |= select_spans(self._db, unread)

    def _select_repeated(self, note_ids: Collection[NoteId]) -> Iterator[tuple[PlaceId, TextSpan]]:
        """Query the blocks of some notes whose text five or more notes have, with their spans."""
        blocks = self._get_words().repeated_blocks(list(note_ids), _MIN_NOTES_OF_REPEATED_TEXT)
        return select_spans(self._db, blocks)

    def _find_blocks(self, note_ids: Sequence[NoteId]) -> list[Match]:
        """Return up to 5,000 blocks of these notes that have a term of the query, best first."""
        if not self._terms or not note_ids:
            return []
        words = self._get_words()
        matches = words.rank_blocks(self._db, self._terms, _MAX_BLOCKS, note_ids)
        return sorted(matches, key=lambda match: (-round(match.score, 6), match.place))

    def _find_nearest_places(
        self,
        note_ids: Iterable[NoteId],
        best: Collection[NoteId],
        matched: Iterable[PlaceId],
    ) -> dict[NoteId, PlaceId]:
        """Return the passage nearest to the query's vector, for each note without a matched place.

        Empty if the query has no vector that can be compared.
        """
        notes_with_place = {place >> SHIFT for place in matched}
        notes_with_place.update(best)
        notes_without_place = [note for note in note_ids if note not in notes_with_place]
        if not notes_without_place:
            return {}
        vector = self._get_vector()
        if vector is None:
            return {}
        return vectors.nearest_places(self._db, vector, notes_without_place)


def _neighbours_among(
    neighbours: Mapping[NoteId, Sequence[Neighbour]], note_ids: Collection[NoteId]
) -> Iterator[NoteId]:
    """Yield the ids of those neighbours that are among `note_ids`. An id may come several times."""
    for neighbour in chain.from_iterable(neighbours.values()):
        if neighbour.note in note_ids:
            yield neighbour.note


def _group_passages(
    places: Mapping[PlaceId, TextSpan],
) -> defaultdict[NoteId, tuple[TextSpan, ...]]:
    """Return the spans of the passages of each note, in the order of `places`.

    Blocks are left out.
    """
    return group_by_note(
        (place >> SHIFT, span) for place, span in places.items() if not place & BLOCK
    )


def _group_blocks(
    places: Mapping[PlaceId, TextSpan], matched: Iterable[PlaceId]
) -> defaultdict[NoteId, tuple[TextSpan, ...]]:
    """Return the spans of the matched blocks of each note, in the order of `matched`."""
    return group_by_note((place >> SHIFT, places[place]) for place in matched if place in places)


def _group_spans(
    rows: Iterable[tuple[PlaceId, TextSpan]],
) -> defaultdict[NoteId, tuple[tuple[int, int], ...]]:
    """Return the start and end offsets of the places of each note."""
    return group_by_note((place >> SHIFT, (span.start, span.stop)) for place, span in rows)


def find_neighbours(
    db: Connection, rows: Sequence[NoteRow]
) -> defaultdict[NoteId, tuple[Neighbour, ...]]:
    """Return the neighbours of each note, by note id; for a note without any, an empty tuple.

    Neighbours are notes that it links to or that link to it, and for a note with a date in its name
    the dated notes before and after it in its folder. A note may come several times, once per
    reason. Links to files that are no notes are left out.
    """
    # All statements are sent before an answer is read.
    queries = [_query_neighbours(db, row) for row in rows]
    found: list[_FoundNeighbour] = []
    for query in queries:
        found += query.read()
    if not found:
        return group_by_note(())

    rows_by_path = notes.rows_at(db, {neighbour.path for neighbour in found})
    return group_by_note(
        (neighbour.of, Neighbour(rows_by_path[neighbour.path].id, neighbour.via))
        for neighbour in found
        if neighbour.path in rows_by_path
    )


class _FoundNeighbour(NamedTuple):
    """The path of a neighbour of a note, and why it is one."""

    of: NoteId
    path: str
    via: str


class _NeighbourQuery(NamedTuple):
    """Statements that were sent for the neighbours of one note; `read` reads their answers."""

    row: NoteRow
    outgoing: Iterator[StoredLink]
    incoming: Iterator[StoredLink]
    folder: Iterable[tuple[str]]

    def read(self) -> Iterator[_FoundNeighbour]:
        """Yield the notes that the note links to, that link to it, and the dated ones beside it."""
        note = self.row.id
        for link in self.outgoing:
            if link.path and link.path != self.row.path:
                yield _FoundNeighbour(note, link.path, "linked from")
        for link in self.incoming:
            yield _FoundNeighbour(note, link.source, "links to")
        for path, via in _days_around(self.row.path, self.folder):
            yield _FoundNeighbour(note, path, via)


def _query_neighbours(db: Connection, row: NoteRow) -> _NeighbourQuery:
    """Send the statements for the neighbours of one note. Their answers are not read yet."""
    return _NeighbourQuery(
        row=row,
        outgoing=notes.links(db, source=row.path),
        incoming=notes.links(db, to=row.path),
        folder=_select_dated_folder(db, row.path),
    )


def _select_dated_folder(db: Connection, path: str) -> Iterable[tuple[str]]:
    """Query the paths of the visible notes in the folder of a note, not in folders below it.

    If the note has no date in its name, no statement is sent, and there are no paths.
    """
    if not date_in_name(base_name(path)):
        return ()
    folder = path[: path.rfind("/") + 1]
    sql = f"""
        SELECT path FROM notes
        WHERE hidden IS NULL AND path >= $1 AND path < $1 || '{LAST}'
          AND instr(substr(path, length($1) + 1), '/') = 0
        ORDER BY path"""
    rows: Any = db.execute(sql, (folder,))
    return rows  # type: ignore[no-any-return]


def _days_around(path: str, folder: Iterable[tuple[str]]) -> Iterator[tuple[str, str]]:
    """Yield (path, via) of the dated notes before and after the note at `path`, by date.

    `folder` has the paths of its folder. Nothing is yielded if the note is not a dated one of them.
    """
    days = []
    for (folder_path,) in folder:
        date = date_in_name(base_name(folder_path))
        if date:
            days.append((date, folder_path))
    days.sort()

    paths = [day_path for _, day_path in days]
    if path not in paths:
        return
    index = paths.index(path)
    if index > 0:
        yield paths[index - 1], "the one before"
    if index + 1 < len(paths):
        yield paths[index + 1], "the one after"


def select_spans(db: Connection, places: Iterable[PlaceId]) -> Iterator[tuple[PlaceId, TextSpan]]:
    """Query (place id, span) of places, in the order of their ids. Read when it is iterated.

    Places that no longer exist are absent.
    """
    return _select_spans(db, "p.id = n.value", places)


def _select_passages(
    db: Connection, note_ids: Iterable[NoteId]
) -> Iterator[tuple[PlaceId, TextSpan]]:
    """Query (place id, span) of all passages of notes, in the order of their ids."""
    return _select_spans(db, _PASSAGES_OF_NOTE, note_ids)


def _select_spans(
    db: Connection, condition: str, ids: Iterable[int]
) -> Iterator[tuple[PlaceId, TextSpan]]:
    """Query (place id, span) of the places for which a condition holds, in the order of their ids.

    `condition` compares `p.id` with `n.value`, which is one of `ids`.
    """
    source = db.dialect.rows_for_each_integer("$1", "n", "places p", condition)
    sql = f"SELECT p.id, p.start, p.stop, p.line, p.headings FROM {source} ORDER BY p.id"
    return _read_spans(db.execute(sql, (IntegerList(ids),)))


def _read_spans(rows: Iterable[DatabaseRow]) -> Iterator[tuple[PlaceId, TextSpan]]:
    """Yield place ids with spans, from rows of id, start, stop, line and headings as JSON."""
    for place, start, stop, line, headings_as_json in rows:
        headings = _parse_headings(headings_as_json)
        yield place, TextSpan(start, stop, line, headings)


@lru_cache(maxsize=2_000)
def _parse_headings(headings_as_json: str) -> tuple[str, ...]:
    """Return the headings above a place, outermost first, from their JSON.

    Cached, because the places of a section share them.
    """
    return tuple(json.loads(headings_as_json))


def select_tags(db: Connection, note_ids: Iterable[NoteId]) -> Iterable[tuple[NoteId, str]]:
    """Query (note id, tag) of some notes. The tags of a note are as written, and in its order."""
    is_one_of_the_notes = db.dialect.in_integers("note_id", "$1")
    sql = f"SELECT note_id, tag FROM tags WHERE {is_one_of_the_notes} ORDER BY note_id, seq"
    rows: Any = db.execute(sql, (IntegerList(note_ids),))
    return rows  # type: ignore[no-any-return]


def group_by_note(rows: Iterable[tuple[NoteId, T]]) -> defaultdict[NoteId, tuple[T, ...]]:
    """Return the values of each note, in the order of `rows`.

    For any other note, the mapping returns an empty tuple.
    """
    lists: defaultdict[NoteId, list[T]] = defaultdict(list)
    for note, value in rows:
        lists[note].append(value)

    values_of_note: defaultdict[NoteId, tuple[T, ...]] = defaultdict(tuple)
    for note, values in lists.items():
        values_of_note[note] = tuple(values)
    return values_of_note
