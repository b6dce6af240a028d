"""Write the term index: add and remove the words of notes, and choose segments to merge.

A segment is never changed. What a transaction adds becomes a new segment, packed into one row. A
note that is removed is listed in `deleted_notes` until its segment is merged (merging.py). Larger
segments have a row for each term (table `terms`), so that a query reads only its own terms.

A segment of few notes is made without numpy, because its import takes longer than writing one note.
The formats are those of segment.py (docs/internals/term-index.md).
"""

from __future__ import annotations

import math
import secrets
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from simplemem.index.engine import Connection, Damaged, Engine, IntegerList, read_integer
from simplemem.index.terms.format import FIRST_BLOCK, MAX_COUNT, TITLE, PackedSegment, Sizes
from simplemem.index.terms.tokens import SegmentBuilder

# -- segments without numpy

_TYPE_CODES = ("B", "H", "I", "Q")  # numbers of 1, 2, 4 and 8 bytes


def pack_small_segment(builder: SegmentBuilder) -> PackedSegment:
    """Return the segment of all notes that a builder has collected."""
    occurrences = _positions_by_term(builder)
    posting_counts: list[int] = []
    ordinals: list[int] = []
    counts: list[int] = []
    positions: list[int] = []
    terms = sorted(builder.numbers)
    for term in terms:
        posting_count = 0
        positions_by_ordinal = occurrences[builder.numbers[term]]
        for ordinal, positions_of_posting in _postings(positions_by_ordinal):
            posting_count += 1
            ordinals.append(ordinal)
            counts.append(len(positions_of_posting))
            positions += positions_of_posting
        posting_counts.append(posting_count)

    text = "\n".join(terms).encode()
    documents = _pack(
        builder.note_ids,
        builder.block_counts,
        builder.word_counts,
        builder.extra_counts,
        builder.text_keys,
    )
    packed_terms = _pack(text, posting_counts, ordinals, counts, positions)
    return PackedSegment(_sizes_of(builder), documents, packed_terms)


def _positions_by_term(builder: SegmentBuilder) -> list[dict[int, list[int]]]:
    """Return for each number of a term its positions in each ordinal."""
    occurrences: list[dict[int, list[int]]] = [{} for _ in builder.numbers]
    start = 0
    lengths = _lengths(builder.word_counts, builder.extra_counts)
    for ordinal, length in enumerate(lengths):
        end = start + length
        for position, number in enumerate(builder.tokens[start:end]):
            positions_by_ordinal = occurrences[number]
            positions_by_ordinal.setdefault(ordinal, []).append(position)
        start = end
    return occurrences


def _postings(positions_of_ordinals: dict[int, list[int]]) -> Iterable[tuple[int, list[int]]]:
    """Yield ordinals with their positions, at most `MAX_COUNT` at a time."""
    for ordinal, positions in positions_of_ordinals.items():
        for first in range(0, len(positions), MAX_COUNT):
            yield ordinal, positions[first : first + MAX_COUNT]


def _sizes_of(builder: SegmentBuilder) -> Sizes:
    lengths = _lengths(builder.word_counts, builder.extra_counts)
    sizes_of_notes = []
    first = 0
    for block_count in builder.block_counts:
        end = first + FIRST_BLOCK + block_count
        sizes_of_notes.append(_sizes_of_note(lengths[first:end]))
        first = end
    return Sizes(*map(sum, zip(*sizes_of_notes, strict=True)))


def _lengths(word_counts: Iterable[int], extra_counts: Iterable[int]) -> list[int]:
    """Return how many tokens each text has."""
    return list(map(sum, zip(word_counts, extra_counts, strict=True)))


def _sizes_of_note(lengths: Sequence[int]) -> Sizes:
    """Return the sizes of one note, whose title, summary and blocks have so many tokens."""
    lengths_of_blocks = lengths[FIRST_BLOCK:]
    block_words = sum(lengths_of_blocks) + len(lengths_of_blocks) * lengths[TITLE]
    return Sizes(1, sum(lengths), len(lengths_of_blocks), block_words)


def find_note(documents: bytes, note_id: int) -> Sizes | None:
    """Return the sizes of a note in a segment, or None if the segment does not hold it.

    `documents` is the column of that name. Raises Damaged if it cannot be read.
    """
    note_ids, block_counts, word_counts, extra_counts = _unpack(documents, 4)
    try:
        index = note_ids.index(note_id)
    except ValueError:
        return None

    first = FIRST_BLOCK * index + sum(block_counts[:index])
    end = first + FIRST_BLOCK + block_counts[index]
    lengths = _lengths(word_counts[first:end], extra_counts[first:end])
    if len(lengths) != end - first:
        raise Damaged("a segment of the term index does not fit its blocks")
    return _sizes_of_note(lengths)


def _pack(*columns: Sequence[int]) -> bytes:
    """Return sequences of numbers as bytes, each in the smallest type that holds it."""
    parts = []
    for numbers in columns:
        largest = max(numbers, default=0)
        code = _smallest_type(largest)
        packed = array(_TYPE_CODES[code], numbers)
        if sys.byteorder == "big":
            packed.byteswap()

        parts.append(bytes([code]))
        parts.append(len(packed).to_bytes(4, "little"))
        parts.append(packed.tobytes())
    return b"".join(parts)


def _smallest_type(largest: int) -> int:
    """Return the index in `_TYPE_CODES` of the smallest type that holds a number."""
    code = 0
    while largest >= 1 << 8 * array(_TYPE_CODES[code]).itemsize:
        code += 1
    return code


def _unpack(packed: bytes, count: int) -> list[array[int]]:
    """Return the first `count` sequences of numbers. Raises Damaged."""
    columns: list[array[int]] = []
    offset = 0
    try:
        for _ in range(count):
            numbers = array(_TYPE_CODES[packed[offset]])
            start = offset + 5
            length = int.from_bytes(packed[offset + 1 : start], "little")
            end = start + length * numbers.itemsize
            numbers.frombytes(packed[start:end])
            if len(numbers) != length:
                raise Damaged("a segment of the term index is incomplete")
            if sys.byteorder == "big":
                numbers.byteswap()
            columns.append(numbers)
            offset = end
    except (IndexError, ValueError) as error:
        raise Damaged("a segment of the term index cannot be read") from error
    return columns


# -- segments as rows

_MERGED_AT_ONCE = 12  # segments of a similar size become one; sizes are similar up to this factor
_MERGED_AT_REST = 3  # larger packed segments become one after a scan: each one makes queries slower
_MIN_LARGE_NOTES = 100
MAX_PACKED_NOTES = 2_000  # in segments of one row; a query reads all of such a segment
MAX_PACKED_NOTES_DURING_IMPORT = 20_000  # so that the rows of terms are written once
_MAX_DELETED = 0.25  # of the notes of a segment, before it is written again without them
_WORDS_PER_NOTE = 1_000  # at most, of a note that counts as one
_SEGMENT_BITS = 31
MERGE = "merge"  # in `meta`: the number of the segment that a merge is writing
_MAX_SMALL_TOKENS = 5_000  # of which a segment is made without numpy

_INSERT_SEGMENT = """
    INSERT INTO segments (segment_id, notes, words, blocks, block_words, documents, packed)
    VALUES ($1, $2, $3, $4, $5, $6, $7)"""
INSERT_DELETED = """
    INSERT INTO deleted_notes (segment_id, note_id, words, blocks, block_words)
    VALUES ($1, $2, $3, $4, $5)"""


def add_notes(db: Connection, builder: SegmentBuilder) -> list[int]:
    """Write the notes that a builder has collected as one segment. For a write transaction.

    What the index had of the notes before must be removed first. Returns the numbers of small
    segments that the caller should merge in this transaction (`merge_packed` in merging.py).
    """
    if not builder.note_ids:
        return []
    if len(builder.tokens) <= _MAX_SMALL_TOKENS:
        packed = pack_small_segment(builder)
    else:
        from simplemem.index.terms.segment import build_segment, pack_segment

        documents, postings = build_segment(builder)
        packed = pack_segment(documents, postings)
    insert_segment(db, new_number(db), packed.sizes, packed.documents, packed.terms)

    packed_segments = [segment for segment in list_segments(db) if segment.is_packed]
    chosen = choose_merge(packed_segments)
    if not is_small(chosen):
        return []
    return [segment.number for segment in chosen]


def remove_note(db: Connection, note_id: int) -> None:
    """Remove the words of a note, if the index has them. For a write transaction.

    Reads the column `documents` of every segment, so its cost grows with the number of notes:
    0.84 ms at 10,000 notes.
    """
    sql = "SELECT segment_id FROM deleted_notes WHERE note_id = $1"
    deleted_from = {int(number) for (number,) in db.execute(sql, (note_id,))}
    segments: Any = db.execute("SELECT segment_id, notes, documents FROM segments").fetchall()
    for number, note_count, documents in segments:
        if number in deleted_from:
            continue
        sizes = find_note(documents, note_id)
        if sizes is None:
            continue

        sql = "SELECT count(*) FROM deleted_notes WHERE segment_id = $1"
        deleted_count = read_integer(db.execute(sql, (number,)))
        is_last_note = note_count == deleted_count + 1
        if is_last_note:
            delete_segments(db, [number])
        else:
            row = (number, note_id, sizes.words, sizes.blocks, sizes.block_words)
            db.execute(INSERT_DELETED, row).fetchall()


def delete_segments(db: Connection, numbers: Sequence[int]) -> None:
    """Delete segments. The rows of their terms are left, and belong to no segment."""
    for table in ("deleted_notes", "segments"):
        is_one_of_them = db.dialect.in_integers("segment_id", "$1")
        sql = f"DELETE FROM {table} WHERE {is_one_of_them}"
        db.execute(sql, (IntegerList(numbers),)).fetchall()


def insert_segment(
    db: Connection,
    number: int,
    sizes: Sizes,
    documents: bytes,
    packed: bytes | None,
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
    """The row of a segment, without its notes and terms."""

    number: int
    notes: int
    deleted: int  # of its notes
    is_packed: bool
    words: int = 0

    @property
    def size(self) -> int:
        """The number of its notes, of which a very long one counts as several."""
        return max(self.notes, self.words // _WORDS_PER_NOTE)

    @property
    def has_many_deleted(self) -> bool:
        """Whether the segment should be written again without its deleted notes."""
        return self.deleted > 0 and self.deleted >= _MAX_DELETED * self.notes


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
        if segment.has_many_deleted:
            return [segment]

    for similar in _group_by_magnitude(segments):
        if len(similar) >= _MERGED_AT_ONCE:
            return similar

    packed = [segment for segment in segments if segment.is_packed]
    if _total_size(packed) > max_packed:
        return packed

    large = [segment for segment in packed if segment.size >= _MIN_LARGE_NOTES]
    if is_at_rest and len(large) >= _MERGED_AT_REST:
        return large
    return []


def _group_by_magnitude(segments: Sequence[SegmentFacts]) -> list[list[SegmentFacts]]:
    """Return segments of a similar size together: none is `_MERGED_AT_ONCE` times another."""
    groups: dict[int, list[SegmentFacts]] = {}
    for segment in segments:
        size = max(1, segment.size)
        magnitude = int(math.log(size, _MERGED_AT_ONCE))
        groups.setdefault(magnitude, []).append(segment)
    return list(groups.values())


def is_small(chosen: Sequence[SegmentFacts], max_packed: int = MAX_PACKED_NOTES) -> bool:
    """Return whether segments can be merged in one transaction into a packed one."""
    is_packed = all(segment.is_packed for segment in chosen)
    return is_packed and _total_size(chosen) <= max_packed


def _total_size(segments: Iterable[SegmentFacts]) -> int:
    return sum(segment.size for segment in segments)


def is_merge_due(
    database: Engine,
    max_packed: int = MAX_PACKED_NOTES,
    *,
    is_at_rest: bool = False,
) -> bool:
    """Return whether `merge_segments` (merging.py) would do anything. Needs no numpy.

    The arguments are those of `choose_merge`.
    """
    with database.reading() as db:
        chosen = choose_merge(list_segments(db), max_packed, is_at_rest=is_at_rest)
        return bool(chosen) or find_orphan(db) is not None


def find_orphan(db: Connection) -> int | None:
    """Return the number of a segment in `terms` that does not exist and is not being written."""
    owners = {int(number) for (number,) in db.execute("SELECT segment_id FROM segments")}
    being_written: str | None = db.execute("SELECT value FROM meta WHERE key = $1", (MERGE,)).get
    if being_written is not None:
        owners.add(int(being_written))

    number = -1
    while True:
        sql = "SELECT min(segment_id) FROM terms WHERE segment_id > $1"
        next_number: int | None = db.execute(sql, (number,)).get
        if next_number is None or next_number not in owners:
            return next_number
        number = next_number
