"""Merge segments of the term index into one (docs/internals/term-index.md)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simplemem.index.engine import SET_META, Connection, Engine, IntegerList, Value, read_integer
from simplemem.index.terms.segment import (
    Array,
    Documents,
    Postings,
    join_documents,
    merge_postings,
    pack_segment,
    postings_from_rows,
    rows_of,
    sizes_of,
)
from simplemem.index.terms.writer import (
    INSERT_DELETED,
    MAX_PACKED_NOTES,
    MERGE,
    SegmentFacts,
    choose_merge,
    delete_segments,
    find_orphan,
    insert_segment,
    is_small,
    list_segments,
    move_notes,
    new_number,
    new_packed_number,
)

_ORPHANED_ROWS_AT_ONCE = 20_000
# Of the postings that are merged in one transaction. With 16 MB, the first index of 10,000 notes
# needed 380 MB of memory instead of 260 MB, and as much time.
_MAX_CHUNK_BYTES = 4_000_000

_INSERT_TERM = """
    INSERT INTO terms (segment_id, term, notes, blocks, postings, positions)
    VALUES ($1, $2, $3, $4, $5, $6)"""


def merge_segments(
    database: Engine,
    generation: int | None = None,
    max_packed: int = MAX_PACKED_NOTES,
    *,
    is_at_rest: bool = False,
) -> None:
    """Merge segments of the term index until `choose_merge` finds no more to merge.

    `max_packed` and `is_at_rest` are arguments of `choose_merge`. Large segments are merged in
    several transactions, so that other writers need not wait. A merge that is interrupted leaves
    rows that belong to no segment; the next call removes them. Stops merging if another process
    merges the same segments. Raises Replaced if the index is no longer the one of `generation`
    (None: any). Not within a transaction.
    """
    is_finished = False
    while not is_finished:
        with database.reading() as db:
            chosen = choose_merge(list_segments(db), max_packed, is_at_rest=is_at_rest)
        if not chosen:
            break
        if is_small(chosen, max_packed):
            with database.writing(generation) as db:
                merge_packed(db, [segment.number for segment in chosen])
        else:
            was_replaced = _Merge(database, chosen, generation).run()
            is_finished = not was_replaced

    _remove_orphaned_rows(database, generation)


def _remove_orphaned_rows(database: Engine, generation: int | None) -> None:
    """Delete the rows of terms that belong to no segment, 20,000 per transaction.

    Raises Replaced if the index is no longer the one of `generation`.
    """
    while True:
        with database.reading() as db:
            number = find_orphan(db)
            if number is None:
                return
            sql = "SELECT term FROM terms WHERE segment_id = $1 ORDER BY term LIMIT 1 OFFSET $2"
            first_to_stay: str | None = db.execute(sql, (number, _ORPHANED_ROWS_AT_ONCE)).get

        with database.writing(generation) as db:
            if find_orphan(db) != number:
                continue  # another process removed them, or its merge made the segment meanwhile
            if first_to_stay is None:
                db.execute("DELETE FROM terms WHERE segment_id = $1", (number,)).fetchall()
            else:
                sql = "DELETE FROM terms WHERE segment_id = $1 AND term < $2"
                db.execute(sql, (number, first_to_stay)).fetchall()


def merge_packed(db: Connection, numbers: Sequence[int]) -> None:
    """Merge packed segments into one packed segment, without their deleted notes.

    For a write transaction. Does nothing if one of the segments does not exist any more. If all of
    their notes are deleted, only removes the segments.
    """
    if not _are_there(db, numbers):
        return

    sources = [read_source(db, number) for number in numbers]
    new_ordinals = _new_ordinals(sources)
    parts = []
    for source, ordinals in zip(sources, new_ordinals, strict=True):
        assert source.packed is not None
        parts.append((source.packed, ordinals))

    documents = _documents_of(sources)
    delete_segments(db, numbers)
    if len(documents.note_ids):
        packed = pack_segment(documents, merge_postings(parts))
        number = new_packed_number()
        insert_segment(db, number, packed.sizes, packed.documents, packed.terms)
        move_notes(db, documents.note_ids.tolist(), numbers, number)


@dataclass(frozen=True, slots=True)
class SegmentToMerge:
    """A segment as it is read in order to be merged, checked or compared."""

    number: int
    documents: Documents
    is_indexed: Array  # a mask with an element per note; false for a deleted one
    packed: Postings | None  # None if its terms have rows


def read_source(db: Connection, number: int) -> SegmentToMerge:
    """Read a segment, and which of its notes are not deleted.

    The segment must exist. Raises Damaged if its bytes cannot be unpacked.
    """
    row: Any = db.execute(
        "SELECT documents, packed FROM segments WHERE segment_id = $1", (number,)
    ).fetchone()
    documents = Documents.unpack(row[0])
    sql = "SELECT note_id FROM deleted_notes WHERE segment_id = $1"
    deleted = [note_id for (note_id,) in db.execute(sql, (number,))]
    is_indexed = ~np.isin(documents.note_ids, deleted)
    packed = None if row[1] is None else Postings.unpack(row[1])
    return SegmentToMerge(number, documents, is_indexed, packed)


def _documents_of(sources: Sequence[SegmentToMerge]) -> Documents:
    """Return the notes of the merged segment: those of all sources that are not deleted."""
    return join_documents([source.documents.select(source.is_indexed) for source in sources])


def _new_ordinals(sources: Sequence[SegmentToMerge]) -> list[Array]:
    """Return for each segment an array that has the new ordinal for each of its old ones.

    A new ordinal is one in the merged segment; it is -1 for those of deleted notes.
    """
    maps = []
    first = 0
    for source in sources:
        is_indexed = source.is_indexed[source.documents.note_indexes]
        ends = first + np.cumsum(is_indexed)
        ordinals = np.where(is_indexed, ends - 1, -1)
        first += int(np.count_nonzero(is_indexed))
        maps.append(ordinals)
    return maps


class _Merge:
    """Writes one segment in place of several, a range of terms per transaction.

    The terms of the new segment have rows.
    """

    def __init__(
        self,
        database: Engine,
        chosen: Sequence[SegmentFacts],
        generation: int | None,
    ) -> None:
        self._database = database
        self._numbers = [segment.number for segment in chosen]
        self._generation = generation

    def run(self) -> bool:
        """Write the merged segment, and return whether it has replaced the others.

        Returns False if another process merged one of them or removed the new rows meanwhile. Runs
        several transactions; raises Replaced as `writing` does.
        """
        with self._database.writing(self._generation) as db:
            if not _are_there(db, self._numbers):
                return False
            sources = [read_source(db, number) for number in self._numbers]
            number = new_number(db)
            # Another process must not take the rows that follow for orphans.
            db.execute(SET_META, (MERGE, str(number))).fetchall()

        try:
            documents = _documents_of(sources)
            row_count = self._write_terms(sources, documents, number)
            with self._database.writing(self._generation) as db:
                return self._replace(db, sources, documents, number, row_count)
        finally:
            with self._database.writing(self._generation) as db:
                sql = "DELETE FROM meta WHERE key = $1 AND value = $2"
                db.execute(sql, (MERGE, str(number))).fetchall()

    def _write_terms(
        self, sources: Sequence[SegmentToMerge], documents: Documents, number: int
    ) -> int:
        """Write the rows of all terms, and return how many there are. No reader uses them yet.

        A range of terms is read and written at a time.
        """
        maps = _new_ordinals(sources)
        row_count = 0
        for after, until in self._ranges(sources):
            with self._database.reading() as db:
                parts = []
                for source, ordinals in zip(sources, maps, strict=True):
                    terms = _read_terms(db, source, after, until)
                    parts.append((terms, ordinals))

            postings = merge_postings(parts)
            with self._database.writing(self._generation) as db:
                rows = ((number, *row) for row in rows_of(postings, documents))
                db.executemany(_INSERT_TERM, rows)
            row_count += len(postings.terms)
        return row_count

    def _ranges(self, sources: Sequence[SegmentToMerge]) -> Iterator[tuple[str, str | None]]:
        """Yield ranges (after, until) of terms that are merged at a time, of about 4 MB each.

        A range has the terms that sort after `after`, up to and including `until`. The first range
        begins after "", and the last one has no end (None).
        """
        sizes: dict[str, int] = {}
        for source in sources:
            for term, size in self._sizes_of_terms(source):
                sizes[term] = sizes.get(term, 0) + size

        after = ""
        size_of_range = 0
        for term in sorted(sizes):
            size_of_range += sizes[term]
            if size_of_range > _MAX_CHUNK_BYTES:
                yield after, term
                after = term
                size_of_range = 0
        yield after, None

    def _sizes_of_terms(self, source: SegmentToMerge) -> list[tuple[str, int]]:
        """Return each term of a segment and about the bytes of its postings, in any order."""
        if source.packed is not None:
            packed = source.packed
            ends = packed.position_ends[packed.posting_ends]
            occurrences = np.diff(ends)
            posting_counts = packed.posting_counts.astype(np.int64)
            sizes = 5 * posting_counts + 2 * occurrences  # as `rows_of` would write them
            return list(zip(packed.terms, sizes.tolist(), strict=True))

        sql = "SELECT term, length(postings) + length(positions) FROM terms WHERE segment_id = $1"
        with self._database.reading() as db:
            rows: Any = db.execute(sql, (source.number,)).fetchall()
        return [(term, size) for term, size in rows]

    def _replace(
        self,
        db: Connection,
        sources: Sequence[SegmentToMerge],
        documents: Documents,
        number: int,
        row_count: int,
    ) -> bool:
        """Put the merged segment in the place of its sources, and return whether it did.

        If all of their notes were deleted before the merge, only deletes the sources. Returns False
        if a source is gone, or if some of the `row_count` rows that were written are; the rows that
        are left are then orphans. Notes that were deleted since the merge began are listed as
        deleted notes of the merged segment.
        """
        sql = "SELECT count(*) FROM terms WHERE segment_id = $1"
        rows = read_integer(db.execute(sql, (number,)))
        if rows != row_count or not _are_there(db, self._numbers):
            return False

        deleted_before = {
            (source.number, int(note_id))
            for source in sources
            for note_id in source.documents.note_ids[~source.is_indexed]
        }
        sql = f"""
            SELECT segment_id, note_id, words, blocks, block_words FROM deleted_notes
            WHERE {db.dialect.in_integers("segment_id", "$1")}"""
        deleted: Any = db.execute(sql, (IntegerList(self._numbers),)).fetchall()
        deleted_since = [
            (number, note_id, *sizes)
            for old_number, note_id, *sizes in deleted
            if (old_number, note_id) not in deleted_before
        ]
        delete_segments(db, self._numbers)
        if len(documents.note_ids):
            insert_segment(db, number, sizes_of(documents), documents.pack(), None)
            move_notes(db, documents.note_ids.tolist(), self._numbers, number)
            db.executemany(INSERT_DELETED, deleted_since)
        return True


def _read_terms(db: Connection, source: SegmentToMerge, after: str, until: str | None) -> Postings:
    """Return the postings of the terms of a segment after `after`, up to and including `until`.

    If `until` is None, up to the last term. Raises Damaged if bytes cannot be decoded.
    """
    if source.packed is not None:
        terms = source.packed.terms
        first = bisect_right(terms, after)
        end = len(terms)
        if until is not None:
            end = bisect_right(terms, until)
        return source.packed.slice(first, end)

    is_in_range = "term > $2"
    if until is not None:
        is_in_range = "term > $2 AND term <= $3"
    sql = f"""
        SELECT term, postings, positions FROM terms
        WHERE segment_id = $1 AND {is_in_range} ORDER BY term"""
    values: list[Value] = [source.number, after]
    if until is not None:
        values.append(until)
    rows: Any = db.execute(sql, values).fetchall()
    return postings_from_rows(rows)


def _are_there(db: Connection, numbers: Sequence[int]) -> bool:
    """Return whether all of these segments still exist."""
    is_one_of_them = db.dialect.in_integers("segment_id", "$1")
    sql = f"SELECT count(*) FROM segments WHERE {is_one_of_them}"
    count = read_integer(db.execute(sql, (IntegerList(numbers),)))
    return count == len(numbers)
