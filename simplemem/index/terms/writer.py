"""Write the term index: add and remove the words of notes, and choose segments to merge.

A segment is never changed. What a transaction adds becomes a new segment, packed into one row. A
note that is removed is listed in `deleted_notes` until its segment is merged (merging.py). Larger
segments have a row for each term (table `terms`), so that a query reads only its own terms.

A segment of few notes is made without numpy, because its import takes longer than writing one note.
The formats are those of segment.py (docs/internals/term-index.md).
"""

from __future__ import annotations

import itertools
import math
import secrets
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from simplemem.index.engine import Connection, Damaged, Engine, IntegerList, read_integer
from simplemem.index.terms.format import FIRST_BLOCK, MAX_COUNT, TITLE, Sizes
from simplemem.index.terms.tokens import NoteTokens

# -- segments without numpy

_TYPE_CODES = ("B", "H", "I", "Q")  # numbers of 1, 2, 4 and 8 bytes


class _Numbers(dict[str, int]):
    """A number for each different term, in the order of their first occurrence."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class SegmentBuilder:
    """The tokens of some notes, as numbers. Keeps each different term once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = _Numbers()
        self.tokens = array("I")  # of all texts, one behind the other
        self.note_ids: list[int] = []
        self.block_counts: list[int] = []
        self.word_counts = array("I")  # of each text
        self.extra_counts = array("I")
        self.text_keys = array("Q")  # of each block

    def add(self, note: NoteTokens) -> None:
        """Add a note. A note must not be added twice."""
        self.note_ids.append(note.note_id)
        self.block_counts.append(len(note.blocks))
        self.text_keys.extend(note.text_keys or [0] * len(note.blocks))
        for text in itertools.chain((note.title, note.summary), note.blocks):
            self.word_counts.append(len(text.words))
            self.extra_counts.append(len(text.extras))
            self.tokens.extend(map(self.numbers.__getitem__, text.words))
            if text.extras:
                self.tokens.extend(map(self.numbers.__getitem__, text.extras))


class PackedSegment(NamedTuple):
    """A segment as it is stored in one row."""

    sizes: Sizes
    documents: bytes
    terms: bytes


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
        for ordinal, positions_of_posting in _postings(occurrences[builder.numbers[term]]):
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
        for position, number in enumerate(builder.tokens[start : start + length]):
            occurrences[number].setdefault(ordinal, []).append(position)
        start += length
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
        code = next(
            code for code, kind in enumerate(_TYPE_CODES) if largest < 1 << 8 * array(kind).itemsize
        )
        packed = array(_TYPE_CODES[code], numbers)
        if sys.byteorder == "big":
            packed.byteswap()
        parts += [bytes([code]), len(packed).to_bytes(4, "little"), packed.tobytes()]
    return b"".join(parts)


def _unpack(packed: bytes, count: int) -> list[array[int]]:
    """Return the first `count` sequences of numbers. Raises Damaged."""
    columns: list[array[int]] = []
    offset = 0
    try:
        for _ in range(count):
            numbers = array(_TYPE_CODES[packed[offset]])
            length = int.from_bytes(packed[offset + 1 : offset + 5], "little")
            end = offset + 5 + length * numbers.itemsize
            numbers.frombytes(packed[offset + 5 : end])
            if len(numbers) != length:
                raise Damaged("a segment of the term index is incomplete")
            if sys.byteorder == "big":
                numbers.byteswap()
            columns.append(numbers)
            offset = end
    except (IndexError, ValueError) as error:
        raise Damaged("a segment of the term index cannot be read") from error
    return columns


# -- writing

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
