"""Write the term index: add the words of notes, remove those of others, and merge segments.

A segment is never changed. What a transaction adds becomes a new segment, packed into one row. A note
that is removed is listed in `deleted_notes` until its segment is merged. Larger segments have a row
for each term (table `terms`), so that a query reads only its own terms.
"""

from __future__ import annotations

import math
import secrets
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simplemem.index.terms.builder import SegmentBuilder
from simplemem.index.terms.segment import (
    Documents,
    Integers,
    Postings,
    build_segment,
    join_documents,
    merge_postings,
    postings_from_rows,
    rows_of,
    sizes_of,
)

if TYPE_CHECKING:
    from simplemem.index.connection import Connection, Tables
    from simplemem.index.terms.cache import SegmentCache

_MERGED_AT_ONCE = 12  # segments of a similar size become one
MAX_PACKED_NOTES = 2_000  # in segments of one row; a query reads all of such a segment
MAX_PACKED_NOTES_AMID_MUCH = 20_000  # while very many notes come: so their rows are written once
_MAX_DELETED = 0.25  # of the notes of a segment, before it is written again without them
_MAX_CHUNK_BYTES = 16_000_000  # of postings that are merged in one transaction
_ORPHANED_ROWS_AT_ONCE = 20_000
_SEGMENT_BITS = 31

_INSERT_SEGMENT = """
    INSERT INTO segments (segment_id, notes, words, blocks, block_words, documents, packed)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_INSERT_DELETED = """
    INSERT INTO deleted_notes (segment_id, note_id, words, blocks, block_words)
    VALUES (?, ?, ?, ?, ?)"""
_INSERT_TERM = """
    INSERT INTO terms (segment_id, term, notes, blocks, postings, positions)
    VALUES (?, ?, ?, ?, ?, ?)"""


def add_notes(db: Connection, builder: SegmentBuilder) -> None:
    """Write the notes that a builder has collected as one segment. For a write transaction."""
    documents, postings = build_segment(builder)
    _insert_packed(db, documents, postings)
    _merge_small_segments(db)


def remove_note(db: Connection, cache: SegmentCache, note_id: int) -> None:
    """Remove the words of a note, if the index has them. For a write transaction."""
    numbers = [int(number) for (number,) in db.execute("SELECT segment_id FROM segments")]
    deleted_from = {
        int(number)
        for (number,) in db.execute(
            "SELECT segment_id FROM deleted_notes WHERE note_id = ?", (note_id,)
        )
    }
    for segment in cache.segments(db, numbers):
        documents = segment.documents
        index = documents.index_of(note_id)
        if index is None or segment.number in deleted_from:
            continue
        words = int(documents.note_lengths[index])
        blocks = int(documents.block_counts[index])
        block_words = int(documents.block_lengths[index])
        row = (segment.number, note_id, words, blocks, block_words)
        db.execute(_INSERT_DELETED, row).fetchall()


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What is known of a segment without reading it."""

    number: int
    notes: int
    deleted: int
    is_packed: bool

    @property
    def remaining(self) -> int:
        """How many of its notes are still indexed."""
        return self.notes - self.deleted


def list_segments(db: Connection) -> list[SegmentFacts]:
    """Return all segments, the smallest first."""
    sql = """
        SELECT s.segment_id, s.notes, count(d.note_id), s.packed IS NOT NULL
        FROM segments s LEFT JOIN deleted_notes d ON d.segment_id = s.segment_id
        GROUP BY s.segment_id, s.notes, s.packed IS NOT NULL
        ORDER BY s.notes, s.segment_id"""
    rows: Any = db.execute(sql)
    return [
        SegmentFacts(number, notes, deleted, bool(is_packed))
        for number, notes, deleted, is_packed in rows
    ]


def choose_merge(
    segments: Sequence[SegmentFacts], max_packed: int = MAX_PACKED_NOTES
) -> list[SegmentFacts]:
    """Return the segments that should become one; none if there is no need.

    In this order: one with many deleted notes, many of a similar size, and packed ones with more than
    `max_packed` notes together, because a query reads all of them.
    """
    for segment in segments:
        if segment.deleted and segment.deleted >= _MAX_DELETED * segment.notes:
            return [segment]

    by_size: dict[int, list[SegmentFacts]] = {}
    for segment in segments:
        size = int(math.log(max(1, segment.notes), _MERGED_AT_ONCE))
        by_size.setdefault(size, []).append(segment)
    for similar in by_size.values():
        if len(similar) >= _MERGED_AT_ONCE:
            return similar

    packed = [segment for segment in segments if segment.is_packed]
    if sum(segment.notes for segment in packed) > max_packed:
        return packed
    return []


def merge_segments(
    database: Tables, generation: int | None = None, max_packed: int = MAX_PACKED_NOTES
) -> None:
    """Merge segments until there is no need. Other writers get their turn between two transactions.

    A merge that is interrupted leaves rows that belong to no segment. The next one removes them.
    """
    while True:
        with database.reading() as db:
            chosen = choose_merge(list_segments(db), max_packed)
        if not chosen:
            break
        _Merge(database, chosen, generation).run()
    _remove_orphaned_rows(database, generation)


def _merge_small_segments(db: Connection) -> None:
    """Merge packed segments at once, if many of a similar size have come together."""
    chosen = choose_merge(list_segments(db))
    is_small = sum(segment.notes for segment in chosen) <= MAX_PACKED_NOTES
    if not chosen or not is_small or not all(segment.is_packed for segment in chosen):
        return

    sources = [read_source(db, segment.number) for segment in chosen]
    parts = [
        (source.packed, ordinals)
        for source, ordinals in zip(sources, _new_ordinals(sources), strict=True)
        if source.packed is not None
    ]
    documents = join_documents([source.documents.select(source.is_kept) for source in sources])
    _delete_segments(db, [segment.number for segment in chosen])
    if len(documents.note_ids):
        _insert_packed(db, documents, merge_postings(parts))


@dataclass(frozen=True, slots=True)
class Source:
    """A segment that is merged into another."""

    number: int
    documents: Documents
    is_kept: Any  # for each of its notes whether it is still indexed
    packed: Postings | None  # None: its terms have rows


def read_source(db: Connection, number: int) -> Source:
    row: Any = db.execute(
        "SELECT documents, packed FROM segments WHERE segment_id = ?", (number,)
    ).fetchone()
    documents = Documents.unpack(row[0])
    deleted = [
        note_id
        for (note_id,) in db.execute(
            "SELECT note_id FROM deleted_notes WHERE segment_id = ?", (number,)
        )
    ]
    is_kept = ~np.isin(documents.note_ids, deleted)
    packed = None if row[1] is None else Postings.unpack(row[1])
    return Source(number, documents, is_kept, packed)


def _new_ordinals(sources: Sequence[Source]) -> list[Integers]:
    """Return for each segment the ordinals in the merged one: -1 for those of removed notes."""
    maps = []
    first = 0
    for source in sources:
        is_kept = source.is_kept[source.documents.note_indexes]
        ordinals = np.where(is_kept, first + np.cumsum(is_kept) - 1, -1)
        first += int(np.count_nonzero(is_kept))
        maps.append(ordinals)
    return maps


class _Merge:
    """Writes one segment in place of several, a range of terms per transaction."""

    def __init__(
        self, database: Tables, chosen: Sequence[SegmentFacts], generation: int | None
    ) -> None:
        self._database = database
        self._numbers = [segment.number for segment in chosen]
        self._generation = generation

    def run(self) -> None:
        """Merge. If another process changed the segments meanwhile, nothing is replaced."""
        with self._database.reading() as db:
            if not _are_there(db, self._numbers):
                return
            sources = [read_source(db, number) for number in self._numbers]
        documents = join_documents([source.documents.select(source.is_kept) for source in sources])
        maps = _new_ordinals(sources)

        with self._database.reading() as db:
            number = _new_number(db)
        written = 0
        for after, until in self._ranges(sources):
            with self._database.reading() as db:
                parts = [
                    (_read_terms(db, source, after, until), ordinals)
                    for source, ordinals in zip(sources, maps, strict=True)
                ]
            postings = merge_postings(parts)
            with self._database.writing(self._generation) as db:
                rows = ((number, *row) for row in rows_of(postings, documents))
                db.executemany(_INSERT_TERM, rows)
            written += len(postings.terms)

        with self._database.writing(self._generation) as db:
            self._replace(db, sources, documents, number, written)

    def _ranges(self, sources: Sequence[Source]) -> Iterator[tuple[str, str | None]]:
        """Yield ranges of terms, after one and up to another, that are merged at a time."""
        with_rows = [source.number for source in sources if source.packed is None]
        ends: list[str] = []
        if with_rows:
            sql = """
                SELECT term, length(postings) + length(positions)
                FROM terms WHERE segment_id IN (SELECT value FROM carray(:ids)) ORDER BY term"""
            size = 0
            with self._database.reading() as db:
                rows: Any = db.execute(sql, {"ids": db.many(with_rows)})
                for term, row_size in rows:
                    size += row_size
                    if size > _MAX_CHUNK_BYTES and term not in ends[-1:]:
                        ends.append(term)
                        size = 0

        after = ""
        for end in ends:
            yield after, end
            after = end
        yield after, None

    def _replace(
        self,
        db: Connection,
        sources: Sequence[Source],
        documents: Documents,
        number: int,
        written: int,
    ) -> None:
        """Put the merged segment in the place of the others, unless these have changed."""
        rows = int(db.execute("SELECT count(*) FROM terms WHERE segment_id = ?", (number,)).get)
        if rows != written or not _are_there(db, self._numbers):
            return  # its rows are orphans now

        removed_before = {
            (source.number, int(note_id))
            for source in sources
            for note_id in source.documents.note_ids[~source.is_kept]
        }
        sql = """
            SELECT segment_id, note_id, words, blocks, block_words FROM deleted_notes
            WHERE segment_id IN (SELECT value FROM carray(:ids))"""
        deleted: Any = db.execute(sql, {"ids": db.many(self._numbers)}).fetchall()
        removed_since = [
            (number, note_id, *sizes)
            for segment, note_id, *sizes in deleted
            if (segment, note_id) not in removed_before
        ]
        _delete_segments(db, self._numbers)
        if len(documents.note_ids):
            sizes = sizes_of(documents)
            db.execute(_INSERT_SEGMENT, (number, *sizes, documents.pack(), None)).fetchall()
            db.executemany(_INSERT_DELETED, removed_since)


def _read_terms(db: Connection, source: Source, after: str, until: str | None) -> Postings:
    """Return the postings of a range of a segment's terms."""
    if source.packed is not None:
        terms = source.packed.terms
        last = len(terms) if until is None else bisect_right(terms, until)
        return source.packed.slice(bisect_right(terms, after), last)

    is_in_range = "term > :after" if until is None else "term > :after AND term <= :until"
    sql = f"""
        SELECT term, postings, positions FROM terms
        WHERE segment_id = :segment AND {is_in_range} ORDER BY term"""
    values = {"segment": source.number, "after": after}
    if until is not None:
        values["until"] = until
    rows: Any = db.execute(sql, values).fetchall()
    return postings_from_rows(rows)


def _are_there(db: Connection, numbers: Sequence[int]) -> bool:
    sql = "SELECT count(*) FROM segments WHERE segment_id IN (SELECT value FROM carray(:ids))"
    return int(db.execute(sql, {"ids": db.many(numbers)}).get) == len(numbers)


def _insert_packed(db: Connection, documents: Documents, postings: Postings) -> None:
    sizes = sizes_of(documents)
    row = (_new_number(db), *sizes, documents.pack(), postings.pack())
    db.execute(_INSERT_SEGMENT, row).fetchall()


def _new_number(db: Connection) -> int:
    """Return a random number for a segment.

    What a process keeps in memory about a segment belongs to its number. A number that counts up
    would come twice when a transaction is rolled back.
    """
    while True:
        number = secrets.randbits(_SEGMENT_BITS)
        if db.execute("SELECT 1 FROM segments WHERE segment_id = ?", (number,)).fetchone() is None:
            return number


def _delete_segments(db: Connection, numbers: Sequence[int]) -> None:
    """Delete segments. Rows of their terms become orphans."""
    for table in ("deleted_notes", "segments"):
        sql = f"DELETE FROM {table} WHERE segment_id IN (SELECT value FROM carray(:ids))"
        db.execute(sql, {"ids": db.many(numbers)}).fetchall()


def _remove_orphaned_rows(database: Tables, generation: int | None) -> None:
    """Delete the rows of terms whose segment is gone, some at a time."""
    while True:
        with database.reading() as db:
            number = _find_orphan(db)
            if number is None:
                return
            sql = "SELECT term FROM terms WHERE segment_id = ? ORDER BY term LIMIT 1 OFFSET ?"
            last = db.execute(sql, (number, _ORPHANED_ROWS_AT_ONCE)).get
        with database.writing(generation) as db:
            if db.execute("SELECT 1 FROM segments WHERE segment_id = ?", (number,)).fetchone():
                return
            if last is None:
                db.execute("DELETE FROM terms WHERE segment_id = ?", (number,)).fetchall()
            else:
                sql = "DELETE FROM terms WHERE segment_id = ? AND term < ?"
                db.execute(sql, (number, last)).fetchall()


def _find_orphan(db: Connection) -> int | None:
    """Return a segment number in `terms` that is not in `segments`."""
    known = {int(number) for (number,) in db.execute("SELECT segment_id FROM segments")}
    number = -1
    while True:
        sql = "SELECT min(segment_id) FROM terms WHERE segment_id > ?"
        next_number: int | None = db.execute(sql, (number,)).get
        if next_number is None or next_number not in known:
            return next_number
        number = next_number
