"""Write the term index: add and remove the words of notes, and choose segments to merge.

A segment is never changed. What a transaction adds becomes a new segment, packed into one row. A
note that is removed is listed in `deleted_notes` until its segment is merged (merging.py). Larger
segments have a row for each term (table `terms`), so that a query reads only its own terms.

This module does without numpy as long as little is written, because its import takes longer than
that.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simplemem.index.engine import Connection, Engine, IntegerList, read_integer
from simplemem.index.terms.format import Sizes
from simplemem.index.terms.small_segment import SegmentBuilder, find_note, pack_small_segment

_MERGED_AT_ONCE = 12  # segments of a similar size become one; sizes are similar up to this factor
_MERGED_AT_REST = 3  # larger packed segments become one after a scan: each one makes queries slower
_MIN_LARGE_NOTES = 100
MAX_PACKED_NOTES = 2_000  # in segments of one row; a query reads all of such a segment
MAX_PACKED_NOTES_DURING_IMPORT = 20_000  # so that the rows of terms are written once
_MAX_DELETED = 0.25  # of the notes of a segment, before it is written again without them
_WORDS_PER_NOTE = 1_000  # at most, of a note that counts as one
_MAX_SMALL_TOKENS = 5_000  # of which a segment is made without numpy
_SEGMENT_BITS = 31
_ORPHANED_ROWS_AT_ONCE = 20_000
MERGE = "merge"  # in `meta`: the number of the segment that a merge is writing

_INSERT_SEGMENT = """
    INSERT INTO segments (segment_id, notes, words, blocks, block_words, documents, packed)
    VALUES ($1, $2, $3, $4, $5, $6, $7)"""
INSERT_DELETED = """
    INSERT INTO deleted_notes (segment_id, note_id, words, blocks, block_words)
    VALUES ($1, $2, $3, $4, $5)"""


def add_notes(db: Connection, builder: SegmentBuilder) -> None:
    """Write the notes that a builder has collected as one segment. For a write transaction.

    What the index had of the notes before must be removed first.
    """
    if not builder.note_ids:
        return
    if len(builder.tokens) <= _MAX_SMALL_TOKENS:
        packed = pack_small_segment(builder)
    else:
        from simplemem.index.terms.segment import build_segment, pack_segment

        packed = pack_segment(*build_segment(builder))
    insert_segment(db, new_number(db), packed.sizes, packed.documents, packed.terms)

    chosen = choose_merge([segment for segment in list_segments(db) if segment.is_packed])
    if chosen and is_small(chosen):
        from simplemem.index.terms.merging import merge_packed

        merge_packed(db, [segment.number for segment in chosen])


def remove_note(db: Connection, note_id: int) -> None:
    """Remove the words of a note, if the index has them. For a write transaction."""
    sql = "SELECT segment_id FROM deleted_notes WHERE note_id = $1"
    deleted_from = {int(number) for (number,) in db.execute(sql, (note_id,))}
    segments: Any = db.execute("SELECT segment_id, notes, documents FROM segments").fetchall()
    for number, notes, documents in segments:
        sizes = None if number in deleted_from else find_note(documents, note_id)
        if sizes is None:
            continue
        sql = "SELECT count(*) FROM deleted_notes WHERE segment_id = $1"
        if notes == 1 + read_integer(db.execute(sql, (number,))):
            delete_segments(db, [number])
        else:
            row = (number, note_id, sizes.words, sizes.blocks, sizes.block_words)
            db.execute(INSERT_DELETED, row).fetchall()


def delete_segments(db: Connection, numbers: Sequence[int]) -> None:
    """Delete segments. The rows of their terms are left, and belong to no segment."""
    for table in ("deleted_notes", "segments"):
        sql = f"DELETE FROM {table} WHERE {db.dialect.in_integers('segment_id', '$1')}"
        db.execute(sql, (IntegerList(numbers),)).fetchall()


def insert_segment(
    db: Connection, number: int, sizes: Sizes, documents: bytes, packed: bytes | None
) -> None:
    """Add a segment. Without its terms `packed`, they must have rows."""
    db.execute(_INSERT_SEGMENT, (number, *sizes, documents, packed)).fetchall()


def new_number(db: Connection) -> int:
    """Return a random number for a segment.

    A process keeps segments in memory under their numbers. A number that counts up would come twice
    when a transaction is rolled back, and then find the wrong segment in memory.
    """
    while True:
        number = secrets.randbits(_SEGMENT_BITS)
        sql = """
            SELECT 1 FROM segments WHERE segment_id = $1
            UNION ALL SELECT 1 FROM terms WHERE segment_id = $1 LIMIT 1"""
        if db.execute(sql, (number,)).fetchone() is None:
            return number


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What is known of a segment without reading it."""

    number: int
    notes: int
    deleted: int  # of its notes
    is_packed: bool
    words: int = 0

    @property
    def size(self) -> int:
        """The number of its notes, of which a very long one counts as several."""
        return max(self.notes, self.words // _WORDS_PER_NOTE)


def list_segments(db: Connection) -> list[SegmentFacts]:
    """Return all segments, the smallest first."""
    sql = """
        SELECT s.segment_id, s.notes, count(d.note_id), s.packed IS NOT NULL, s.words
        FROM segments s LEFT JOIN deleted_notes d ON d.segment_id = s.segment_id
        GROUP BY s.segment_id, s.notes, s.packed IS NOT NULL, s.words
        ORDER BY s.notes, s.segment_id"""
    rows: Any = db.execute(sql)
    return [
        SegmentFacts(number, notes, deleted, bool(is_packed), words)
        for number, notes, deleted, is_packed, words in rows
    ]


def choose_merge(
    segments: Sequence[SegmentFacts],
    max_packed: int = MAX_PACKED_NOTES,
    *,
    is_at_rest: bool = False,
) -> list[SegmentFacts]:
    """Return the segments that should become one; none if there is no need.

    In this order: one with many deleted notes, many of a similar size, and packed ones with more
    than `max_packed` notes together, because a query reads all of them. If `is_at_rest`, no more
    notes are about to be written, and a few larger packed ones become one too.
    """
    for segment in segments:
        if segment.deleted and segment.deleted >= _MAX_DELETED * segment.notes:
            return [segment]

    by_size: dict[int, list[SegmentFacts]] = {}
    for segment in segments:
        magnitude = int(math.log(max(1, segment.size), _MERGED_AT_ONCE))
        by_size.setdefault(magnitude, []).append(segment)
    for similar in by_size.values():
        if len(similar) >= _MERGED_AT_ONCE:
            return similar

    packed = [segment for segment in segments if segment.is_packed]
    if sum(segment.size for segment in packed) > max_packed:
        return packed

    large = [segment for segment in packed if segment.size >= _MIN_LARGE_NOTES]
    if is_at_rest and len(large) >= _MERGED_AT_REST:
        return large
    return []


def is_small(chosen: Sequence[SegmentFacts], max_packed: int = MAX_PACKED_NOTES) -> bool:
    """Return whether segments can be merged in one transaction into a packed one."""
    size = sum(segment.size for segment in chosen)
    return size <= max_packed and all(segment.is_packed for segment in chosen)


def merge_segments(
    database: Engine,
    generation: int | None = None,
    max_packed: int = MAX_PACKED_NOTES,
    *,
    is_at_rest: bool = False,
) -> None:
    """Merge segments until there is no need. `is_at_rest` is as in `choose_merge`.

    Large ones are merged in several transactions, so other writers do not wait. A merge that is
    interrupted leaves rows that belong to no segment; the next one removes them. Returns early if
    another process merges the same segments. Raises Replaced if the index is no longer the one of
    `generation`. Not for a transaction.
    """
    with database.reading() as db:
        is_needed = bool(choose_merge(list_segments(db), max_packed, is_at_rest=is_at_rest))
    if is_needed:
        from simplemem.index.terms.merging import merge_all

        merge_all(database, generation, max_packed, is_at_rest=is_at_rest)
    _remove_orphaned_rows(database, generation)


def _remove_orphaned_rows(database: Engine, generation: int | None) -> None:
    """Delete the rows of terms that belong to no segment, some per transaction."""
    while True:
        with database.reading() as db:
            number = _find_orphan(db)
            if number is None:
                return
            sql = "SELECT term FROM terms WHERE segment_id = $1 ORDER BY term LIMIT 1 OFFSET $2"
            first_to_stay = db.execute(sql, (number, _ORPHANED_ROWS_AT_ONCE)).get

        with database.writing(generation) as db:
            if _find_orphan(db) is None:
                return
            if first_to_stay is None:
                db.execute("DELETE FROM terms WHERE segment_id = $1", (number,)).fetchall()
            else:
                sql = "DELETE FROM terms WHERE segment_id = $1 AND term < $2"
                db.execute(sql, (number, first_to_stay)).fetchall()


def _find_orphan(db: Connection) -> int | None:
    """Return the number of a segment in `terms` that does not exist and is not being written."""
    known = {int(number) for (number,) in db.execute("SELECT segment_id FROM segments")}
    written: str | None = db.execute("SELECT value FROM meta WHERE key = $1", (MERGE,)).get
    if written is not None:
        known.add(int(written))

    number = -1
    while True:
        sql = "SELECT min(segment_id) FROM terms WHERE segment_id > $1"
        next_number: int | None = db.execute(sql, (number,)).get
        if next_number is None or next_number not in known:
            return next_number
        number = next_number
