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
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import NamedTuple

from simplemem.index.engine import Connection, Engine, IntegerList
from simplemem.index.terms.format import FIRST_BLOCK, MAX_COUNT, TITLE, PackedSegment, Sizes
from simplemem.index.terms.tokens import SegmentBuilder

# -- segments without numpy

_TYPE_CODES = ("B", "H", "I", "Q")  # numbers of 1, 2, 4 and 8 bytes
_MAX_NUMBERS = (0xFF, 0xFFFF, 0xFFFF_FFFF)  # of the types but the last
_ORDINAL_BITS = 32
_ORDINAL_MASK = (1 << _ORDINAL_BITS) - 1


def pack_small_segment(builder: SegmentBuilder) -> PackedSegment:
    """Return the segment of all notes that a builder has collected, made without numpy.

    The result is the same as by `build_segment` and `pack_segment`, which are faster for many
    notes.
    """
    terms = sorted(builder.numbers)
    rank_of_number = [0] * len(terms)
    for rank, term in enumerate(terms):
        rank_of_number[builder.numbers[term]] = rank

    ranks = [rank_of_number[number] for number in builder.tokens]
    ordinals: list[int] = []
    positions: list[int] = []
    for ordinal, length in enumerate(_lengths_of(builder)):
        ordinals += [ordinal] * length
        positions += range(length)

    # Tokens by term; those of a term stay in the order of their texts and positions.
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    keys = [ranks[index] << _ORDINAL_BITS | ordinals[index] for index in order]
    postings = _split_into_postings(Counter(keys))
    posting_counts = Counter([key >> _ORDINAL_BITS for key, _ in postings])
    packed_terms = _pack(
        "\n".join(terms).encode(),
        list(posting_counts.values()),
        [key & _ORDINAL_MASK for key, _ in postings],
        [count for _, count in postings],
        [positions[index] for index in order],
    )
    documents = _pack(
        builder.note_ids,
        builder.block_counts,
        builder.word_counts,
        builder.extra_counts,
        builder.text_keys,
    )
    return PackedSegment(_sum_sizes(sizes_of_notes(builder)), documents, packed_terms)


def _split_into_postings(occurrences: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return (key, number of occurrences), split so that no number is above `MAX_COUNT`."""
    postings = list(occurrences.items())
    if not postings or max(occurrences.values()) <= MAX_COUNT:
        return postings

    split_postings = []
    for key, count in postings:
        full_postings, rest = divmod(count, MAX_COUNT)
        split_postings += [(key, MAX_COUNT)] * full_postings
        if rest:
            split_postings.append((key, rest))
    return split_postings


def sizes_of_notes(builder: SegmentBuilder) -> list[Sizes]:
    """Return the sizes of each note that a builder has collected, in their order."""
    lengths = _lengths_of(builder)
    sizes = []
    first = 0
    for block_count in builder.block_counts:
        end = first + FIRST_BLOCK + block_count
        lengths_of_blocks = lengths[first + FIRST_BLOCK : end]
        title_words = block_count * lengths[first + TITLE]
        block_words = sum(lengths_of_blocks) + title_words
        sizes.append(Sizes(1, sum(lengths[first:end]), block_count, block_words))
        first = end
    return sizes


def _sum_sizes(sizes: Iterable[Sizes]) -> Sizes:
    """Return the sums of some sizes, field by field. There must be at least one."""
    return Sizes(*map(sum, zip(*sizes, strict=True)))


def _lengths_of(builder: SegmentBuilder) -> list[int]:
    """Return how many tokens each text of a builder has, words and extra ones."""
    return list(map(add, builder.word_counts, builder.extra_counts))


def _pack(*columns: Sequence[int]) -> bytes:
    """Return sequences of numbers as bytes, as `pack_arrays` in segment.py does."""
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
    """Return the index in `_TYPE_CODES` of the smallest type that holds the number `largest`."""
    return bisect_left(_MAX_NUMBERS, largest)


# -- segments as rows

# So many segments of a similar size become one. Sizes are similar up to this factor.
_MERGED_AT_ONCE = 12
# After a scan, so many large ones of a similar size become one: each segment makes queries slower.
_MERGED_AT_REST = 3
_MIN_LARGE_NOTES = 100  # of a segment that is large in this sense
MAX_PACKED_NOTES = 2_000  # in all packed segments together, because a query reads all of them
MAX_PACKED_NOTES_DURING_IMPORT = 20_000  # more, so that the rows of terms are written only once
_MAX_DELETED = 0.25  # of the notes of a segment, before it is written again without them
_WORDS_PER_NOTE = 1_000  # at most, of a note that counts as one
# Of the number of a segment whose terms have rows. They are few, because each row repeats the
# number.
_SEGMENT_BITS = 31
_PACKED_SEGMENT_BIT = 1 << 46  # in the number of a packed segment
MERGE = "merge"  # in `meta`: the number of the segment that a merge is writing
_MAX_SMALL_TOKENS = 5_000  # of which a segment is made without numpy

_INSERT_SEGMENT = """
    INSERT INTO segments (segment_id, notes, words, blocks, block_words, documents, packed)
    VALUES ($1, $2, $3, $4, $5, $6, $7)"""
_INSERT_INDEXED = """
    INSERT INTO indexed_notes (note_id, segment_id, words, blocks, block_words)
    VALUES ($1, $2, $3, $4, $5)"""
_TAKE_INDEXED = """
    DELETE FROM indexed_notes WHERE note_id = $1
    RETURNING segment_id, words, blocks, block_words"""
_COUNT_LEFT = """
    SELECT notes - (SELECT count(*) FROM deleted_notes WHERE segment_id = $1)
    FROM segments WHERE segment_id = $1"""
INSERT_DELETED = """
    INSERT INTO deleted_notes (segment_id, note_id, words, blocks, block_words)
    VALUES ($1, $2, $3, $4, $5)"""
# SQLite reads the length of a value from its row, but the whole value for IS NOT NULL.
_LIST_SEGMENTS = """
    SELECT s.segment_id, s.notes,
           (SELECT count(*) FROM deleted_notes d WHERE d.segment_id = s.segment_id),
           coalesce(length(s.packed), 0) > 0, s.words
    FROM segments s
    ORDER BY s.notes, s.segment_id"""


def add_notes(db: Connection, builder: SegmentBuilder) -> list[int]:
    """Write the notes that a builder has collected as one packed segment, if there are any.

    For a write transaction. What the index had of the notes before must be removed first. Returns
    the numbers of small segments that the caller should merge in this transaction (`merge_packed`
    in merging.py); empty if there is no need.
    """
    if not builder.note_ids:
        return []
    if len(builder.tokens) <= _MAX_SMALL_TOKENS:
        packed = pack_small_segment(builder)
    else:
        from simplemem.index.terms.segment import build_segment, pack_segment

        documents, postings = build_segment(builder)
        packed = pack_segment(documents, postings)

    number = new_packed_number()
    insert_segment(db, number, packed.sizes, packed.documents, packed.terms)
    rows = [
        (note_id, number, sizes.words, sizes.blocks, sizes.block_words)
        for note_id, sizes in zip(builder.note_ids, sizes_of_notes(builder), strict=True)
    ]
    db.executemany(_INSERT_INDEXED, rows)

    packed_segments = [segment for segment in list_segments(db) if segment.is_packed]
    chosen = choose_merge(packed_segments)
    if not is_small(chosen):
        return []
    return [segment.number for segment in chosen]


def remove_note(db: Connection, note_id: int) -> None:
    """Remove the words of a note, if the index has them. For a write transaction.

    The note is listed as deleted until its segment is merged. If it is the last note of its
    segment, the segment is deleted at once.
    """
    rows = db.execute(_TAKE_INDEXED, (note_id,)).fetchall()
    if not rows:
        return

    number, words, blocks, block_words = rows[0]
    notes_left = db.execute(_COUNT_LEFT, (number,)).get  # with this one
    if notes_left == 1:
        delete_segments(db, [number])
    else:
        db.execute(INSERT_DELETED, (number, note_id, words, blocks, block_words)).fetchall()


def move_notes(
    db: Connection, note_ids: Iterable[int], numbers: Sequence[int], number: int
) -> None:
    """Record that notes are in a merged segment now. For a write transaction.

    `numbers` are those of the old segments, `number` is that of the merged one. Notes that are no
    longer in an old segment, because they were written or removed meanwhile, stay as they are.
    """
    is_one_of_the_notes = db.dialect.in_integers("note_id", "$2")
    is_in_old_segment = db.dialect.in_integers("segment_id", "$3")
    sql = f"""
        UPDATE indexed_notes SET segment_id = $1
        WHERE {is_one_of_the_notes} AND {is_in_old_segment}"""
    values = (number, IntegerList(note_ids), IntegerList(numbers))
    db.execute(sql, values).fetchall()


def delete_segments(db: Connection, numbers: Sequence[int]) -> None:
    """Delete segments and their lists of deleted notes. For a write transaction.

    `indexed_notes` is not changed. The rows of their terms stay, as orphans (`find_orphan`).
    """
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
    """Add the row of a segment. `packed` are its terms; None if they have rows in `terms`.

    For a write transaction. Its notes are not listed in `indexed_notes` by this.
    """
    db.execute(_INSERT_SEGMENT, (number, *sizes, documents, packed)).fetchall()


def new_packed_number() -> int:
    """Return a random number for a packed segment, which no other segment ever has.

    A process keeps segments in memory under their numbers. If numbers counted up, a transaction
    that was rolled back and the next one would use the same number, and the process would find the
    wrong segment in memory. There are so many numbers for packed segments that two are never equal,
    and all are larger than those of segments whose terms have rows.
    """
    return _PACKED_SEGMENT_BIT | secrets.randbelow(_PACKED_SEGMENT_BIT)


def new_number(db: Connection) -> int:
    """Return a random number for a segment whose terms will have rows; no row in `terms` has it."""
    while True:
        number = secrets.randbits(_SEGMENT_BITS)
        sql = "SELECT 1 FROM terms WHERE segment_id = $1 LIMIT 1"
        if db.execute(sql, (number,)).fetchone() is None:
            return number


class SegmentFacts(NamedTuple):
    """The row of a segment, without its notes and terms."""

    number: int
    notes: int
    deleted: int  # of its notes
    is_packed: bool
    words: int = 0

    @property
    def size(self) -> int:
        """The number of its notes, or its words divided by 1,000 if that is more.

        With this, a very long note counts as several. Deleted notes are included.
        """
        return max(self.notes, self.words // _WORDS_PER_NOTE)

    @property
    def has_many_deleted(self) -> bool:
        """Whether a quarter of its notes or more are deleted: then it is written without them."""
        return self.deleted > 0 and self.deleted >= _MAX_DELETED * self.notes


def list_segments(db: Connection) -> list[SegmentFacts]:
    """Return all segments, the smallest first, without their notes and terms."""
    return [SegmentFacts._make(row) for row in db.execute(_LIST_SEGMENTS)]


def choose_merge(
    segments: Sequence[SegmentFacts],
    max_packed: int = MAX_PACKED_NOTES,
    *,
    is_at_rest: bool = False,
) -> list[SegmentFacts]:
    """Return the segments that should become one; none if there is no need. Merges nothing.

    The first that applies: one with many deleted notes, 12 or more of a similar size, or all packed
    ones if they have more than `max_packed` notes together. If `is_at_rest`, no more notes are
    about to be written; then also three or more of a similar size that have 100 notes or more.
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

    if is_at_rest:
        large = [segment for segment in segments if segment.size >= _MIN_LARGE_NOTES]
        for similar in _group_by_magnitude(large):
            if len(similar) >= _MERGED_AT_REST:
                return similar
    return []


def _group_by_magnitude(segments: Sequence[SegmentFacts]) -> list[list[SegmentFacts]]:
    """Return segments in groups of a similar size.

    Within a group, no segment is `_MERGED_AT_ONCE` times as large as another.
    """
    groups: dict[int, list[SegmentFacts]] = {}
    for segment in segments:
        size = max(1, segment.size)
        magnitude = int(math.log(size, _MERGED_AT_ONCE))
        groups.setdefault(magnitude, []).append(segment)
    return list(groups.values())


def is_small(chosen: Sequence[SegmentFacts], max_packed: int = MAX_PACKED_NOTES) -> bool:
    """Return whether segments can be merged in one transaction into a packed one.

    They can if all are packed, and have at most `max_packed` notes together. True for none.
    """
    are_packed = all(segment.is_packed for segment in chosen)
    return are_packed and _total_size(chosen) <= max_packed


def _total_size(segments: Iterable[SegmentFacts]) -> int:
    """Return the number of notes in segments; a very long one counts as several."""
    return sum(segment.size for segment in segments)


def is_merge_due(
    database: Engine,
    max_packed: int = MAX_PACKED_NOTES,
    *,
    is_at_rest: bool = False,
) -> bool:
    """Return whether `merge_segments` (merging.py) is to be called. Needs no numpy.

    The arguments are those of `choose_merge`. Rows that an interrupted merge has left are looked
    for only if `is_at_rest`, because this is asked after each write.
    """
    segments = [SegmentFacts._make(row) for row in database.rows(_LIST_SEGMENTS)]
    if choose_merge(segments, max_packed, is_at_rest=is_at_rest):
        return True
    if not is_at_rest:
        return False
    with database.reading() as db:
        return find_orphan(db) is not None


def find_orphan(db: Connection) -> int | None:
    """Return the lowest number that rows in `terms` have, but no segment; None if there is none.

    The number that a merge is writing rows for does not count.
    """
    owners = {int(number) for (number,) in db.execute("SELECT segment_id FROM segments")}
    being_written: str | None = db.execute("SELECT value FROM meta WHERE key = $1", (MERGE,)).get
    if being_written is not None:
        owners.add(int(being_written))

    # One look-up per number: SELECT DISTINCT would read all rows.
    number = -1
    while True:
        sql = "SELECT min(segment_id) FROM terms WHERE segment_id > $1"
        next_number: int | None = db.execute(sql, (number,)).get
        if next_number is None or next_number not in owners:
            return next_number
        number = next_number
