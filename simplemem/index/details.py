"""Read what is shown of notes: their rows, tags, passages, the blocks that were found, and their neighbours.

Statements are sent before the answers of others are read, so a server gets them in few round trips.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from simplemem.index import notes, vectors
from simplemem.index.api import (
    Match,
    Neighbour,
    NoteDetails,
    NoteId,
    PlaceId,
    Position,
    Row,
    Term,
)
from simplemem.index.engine import LAST, Connection, IntegerList
from simplemem.index.places import BLOCK, SHIFT
from simplemem.note.dates import date_in_name
from simplemem.note.names import base_name

if TYPE_CHECKING:
    from simplemem.index.terms.reader import TermIndex

T = TypeVar("T")
_MAX_BLOCKS = 5_000
_PASSAGES_OF_NOTE = f"p.id >= (n.value << {SHIFT}) AND p.id < (n.value << {SHIFT} | {BLOCK})"

# An excerpt leaves out text of so many notes, if it can show other text.
_MIN_NOTES_OF_REPEATED_TEXT = 5


class DetailsReader:
    """Reads details of notes from one state of the index."""

    def __init__(
        self,
        db: Connection,
        terms: Sequence[Term],
        get_words: Callable[[], TermIndex],
        get_vector: Callable[[], bytes | None],
    ) -> None:
        """`terms` and the vector are those of the query. Words and vector are got only when needed."""
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
        beside: Sequence[NoteId],
        among: Collection[NoteId],
    ) -> dict[NoteId, NoteDetails]:
        """Return details of the notes that are still there, by note.

        `best_places` has the place of each note that was found, 0 for none. `matched` are further
        blocks that were found; `with_blocks` takes all that hold a term of the query instead.
        `with_repeated` adds the spans of text that many notes have. Notes in
        `among` are added if they are neighbours of a note in `beside`.
        """
        db = self._db
        start_rows = list(notes.rows_of(db, beside).values()) if beside else []
        neighbours = find_neighbours(db, start_rows)
        wanted = set(best_places) | {
            neighbour.note
            for neighbours_of_note in neighbours.values()
            for neighbour in neighbours_of_note
            if neighbour.note in among
        }

        tag_rows = select_tags(db, wanted)
        passage_rows = _select_passages(db, wanted)
        repeated_rows = self._select_repeated(wanted) if with_repeated else ()
        found_places = {*filter(None, best_places.values()), *matched}
        place_rows = select_positions(db, found_places)
        rows = notes.rows_of(db, wanted)
        if with_blocks:
            matched = [match.place for match in self._find_blocks(list(rows))]

        best = {note: place for note, place in best_places.items() if place}
        best |= self._find_nearest_places(rows, best, matched)
        places = {**dict(passage_rows), **dict(place_rows)}
        passages = group_by_note(
            (place >> SHIFT, position) for place, position in places.items() if not place & BLOCK
        )
        unread = [place for place in matched if place not in places]
        if unread:
            places |= dict(select_positions(db, unread))

        blocks = group_by_note(
            (place >> SHIFT, places[place]) for place in matched if place in places
        )
        tags = group_by_note(tag_rows)
        spans = group_by_note(
            (place >> SHIFT, (position.start, position.stop)) for place, position in repeated_rows
        )
        return {
            note: NoteDetails(
                row,
                tags[note],
                passages[note],
                places.get(best.get(note, 0)),
                blocks[note],
                neighbours[note],
                spans[note],
            )
            for note, row in rows.items()
        }

    def _select_repeated(self, note_ids: Collection[NoteId]) -> Iterator[tuple[PlaceId, Position]]:
        """Query the blocks whose text many notes have."""
        blocks = self._get_words().repeated_blocks(list(note_ids), _MIN_NOTES_OF_REPEATED_TEXT)
        return select_positions(self._db, blocks)

    def _find_blocks(self, note_ids: Sequence[NoteId]) -> list[Match]:
        """Return the blocks that hold a term of the query, best first."""
        if not self._terms or not note_ids:
            return []
        matches = self._get_words().rank_by_terms(
            self._db, "block", self._terms, _MAX_BLOCKS, note_ids
        )
        return sorted(matches, key=lambda match: (-round(match.score, 6), match.place))

    def _find_nearest_places(
        self, note_ids: Iterable[NoteId], best: Collection[NoteId], matched: Iterable[PlaceId]
    ) -> dict[NoteId, PlaceId]:
        """Return the passage nearest to the query's vector, for notes of which nothing was found."""
        notes_with_block = {place >> SHIFT for place in matched}
        others = [note for note in note_ids if note not in best and note not in notes_with_block]
        vector = self._get_vector() if others else None
        if vector is None:
            return {}
        return vectors.nearest_places(self._db, vector, others)


def find_neighbours(
    db: Connection, rows: Sequence[Row]
) -> defaultdict[NoteId, tuple[Neighbour, ...]]:
    """Return the neighbours of each note.

    Neighbours are notes linked with it, and for a note of a day the dated notes before and after it
    in its folder.
    """
    queries = [
        (
            row,
            notes.links(db, source=row.path),
            notes.links(db, to=row.path),
            _select_dated_folder(db, row.path),
        )
        for row in rows
    ]
    found: list[tuple[NoteId, str, str]] = []  # a note, the path of a neighbour, and why it is one
    for row, outgoing, incoming, folder in queries:
        found += [
            (row.id, link.path, "linked from")
            for link in outgoing
            if link.path and link.path != row.path
        ]
        found += [(row.id, link.source, "links to") for link in incoming]
        found += [(row.id, path, via) for path, via in _days_around(row.path, folder)]

    known = notes.known_at(db, {path for _, path, _ in found}) if found else {}
    return group_by_note(
        (note, Neighbour(known[path].id, via)) for note, path, via in found if path in known
    )


def _select_dated_folder(db: Connection, path: str) -> Iterable[tuple[str]]:
    """Query the paths in the folder of a dated note; nothing for a note without a date."""
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
    """Yield the dated notes before and after a note in its folder, and which of the two each is."""
    dated = [str(other) for (other,) in folder if date_in_name(base_name(str(other)))]
    days = sorted(dated, key=lambda other: (date_in_name(base_name(other)), other))
    if path not in days:
        return
    index = days.index(path)
    if index > 0:
        yield days[index - 1], "the one before"
    if index + 1 < len(days):
        yield days[index + 1], "the one after"


def select_positions(
    db: Connection, places: Iterable[PlaceId]
) -> Iterator[tuple[PlaceId, Position]]:
    """Query where places stand, in order. The answer is read when it is iterated."""
    return _select_positions(db, "p.id = n.value", places)


def _select_passages(
    db: Connection, note_ids: Iterable[NoteId]
) -> Iterator[tuple[PlaceId, Position]]:
    """Query where the passages of notes stand, in order. The answer is read when it is iterated."""
    return _select_positions(db, _PASSAGES_OF_NOTE, note_ids)


def _select_positions(
    db: Connection, condition: str, ids: Iterable[int]
) -> Iterator[tuple[PlaceId, Position]]:
    source = db.dialect.rows_for_each_integer("$1", "n", "places p", condition)
    sql = f"SELECT p.id, p.start, p.stop, p.line, p.headings FROM {source} ORDER BY p.id"
    parse_headings = cache(lambda text: tuple(json.loads(text)))  # passages of a section share it
    rows = db.execute(sql, (IntegerList(ids),))
    return (
        (place, Position(start, stop, line, parse_headings(headings)))
        for place, start, stop, line, headings in rows
    )


def select_tags(db: Connection, note_ids: Iterable[NoteId]) -> Iterable[tuple[NoteId, str]]:
    """Query the tags of notes as they are shown."""
    is_wanted = db.dialect.in_integers("note_id", "$1")
    sql = f"SELECT note_id, tag FROM tags WHERE {is_wanted} ORDER BY note_id, seq"
    rows: Any = db.execute(sql, (IntegerList(note_ids),))
    return rows  # type: ignore[no-any-return]


def group_by_note(rows: Iterable[tuple[NoteId, T]]) -> defaultdict[NoteId, tuple[T, ...]]:
    """Return the values of each note; of a note without values an empty tuple."""
    values_of_note: defaultdict[NoteId, list[T]] = defaultdict(list)
    for note, value in rows:
        values_of_note[note].append(value)
    return defaultdict(tuple, {note: tuple(values) for note, values in values_of_note.items()})
