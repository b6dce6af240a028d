"""Describe the content of a term index without its segments, to compare two indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simplemem.index.engine import Connection
from simplemem.index.terms.integrity import read_all_terms
from simplemem.index.terms.merging import SegmentToMerge, read_source
from simplemem.index.terms.segment import Array, Documents, Postings
from simplemem.index.terms.writer import list_segments

# Odd numbers that spread the digests of places over all 64 bits.
_MIX_NOTE = np.uint64(0x9E3779B97F4A7C15)
_MIX_PLACE = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_POSITION = np.uint64(0x165667B19E3779F9)
_MIX_SUM = np.uint64(0xD6E8FEB86659FD93)
_ALL_BITS = 0xFFFFFFFFFFFFFFFF


def describe_terms(db: Connection) -> Iterator[tuple[str, int, int]]:
    """Yield each term, in order, with its number of occurrences and a digest of their places.

    Two indexes of the same notes yield the same, however the notes are divided into segments. Notes
    are identified by the order of their paths. The empty term comes first, if there are blocks, and
    stands for the texts of all blocks. Deleted notes and terms without occurrences are left out.
    Raises Damaged if a segment cannot be read.
    """
    sql = "SELECT id, row_number() OVER (ORDER BY path) FROM notes"
    rows: Any = db.execute(sql)
    note_numbers = dict(rows)

    totals: dict[str, int] = {}
    digests: dict[str, int] = {}
    for segment in list_segments(db):
        for term, occurrences, digest in _describe_segment(db, segment.number, note_numbers):
            sum_of_digests = digests.get(term, 0) + digest
            totals[term] = totals.get(term, 0) + occurrences
            digests[term] = sum_of_digests & _ALL_BITS

    for term in sorted(totals):
        occurrences = totals[term]
        if occurrences:
            yield term, occurrences, digests[term]


def _describe_segment(
    db: Connection,
    number: int,
    note_numbers: dict[int, int],
) -> Iterator[tuple[str, int, int]]:
    """Yield (term, number of occurrences, digest) for the empty term, then those of a segment.

    Only indexed notes count, so a number may be 0. `note_numbers` has the number of each note by
    its id, the same in every index.
    """
    source = read_source(db, number)
    note_ids = source.documents.note_ids.tolist()
    numbers_of_notes = [note_numbers.get(note_id, 0) for note_id in note_ids]
    numbers = np.array(numbers_of_notes, np.uint64)

    block_count, digest = _describe_texts(source, numbers)
    yield "", block_count, digest
    for postings in read_all_terms(db, source):
        yield from _describe(postings, source, numbers)


def _describe(
    postings: Postings,
    source: SegmentToMerge,
    numbers: Array,
) -> Iterator[tuple[str, int, int]]:
    """Yield terms of a segment, with the number and the digest of occurrences in indexed notes.

    Terms that only deleted notes hold have 0 of them. Each term must have a posting. `numbers` has
    the number of each note of the segment, by its index.
    """
    documents = source.documents
    note_indexes = documents.note_indexes[postings.ordinals]
    notes = np.repeat(note_indexes, postings.counts)
    ordinals = np.repeat(postings.ordinals.astype(np.int64), postings.counts)
    places = _places(documents, ordinals)
    positions = postings.positions.astype(np.uint64)
    digests = _mix(numbers[notes], places, positions)
    is_indexed = source.is_indexed[notes]
    digests = np.where(is_indexed, digests, 0)

    first_postings = postings.posting_ends[:-1]
    starts = postings.position_ends[first_postings]
    if not len(starts):
        return
    occurrences = np.add.reduceat(is_indexed.astype(np.int64), starts)
    sums = np.add.reduceat(digests, starts)
    yield from zip(postings.terms, occurrences.tolist(), sums.tolist(), strict=True)


def _describe_texts(source: SegmentToMerge, numbers: Array) -> tuple[int, int]:
    """Return the number of blocks in indexed notes, and a digest of their texts and places."""
    documents = source.documents
    notes = documents.notes_of_blocks
    blocks = np.arange(len(notes)) - documents.first_blocks[notes]
    places = blocks.astype(np.uint64)
    digests = _mix(numbers[notes], places, documents.text_keys)
    is_indexed = source.is_indexed[notes]
    block_count = np.count_nonzero(is_indexed)
    digest = digests[is_indexed].sum(dtype=np.uint64)
    return int(block_count), int(digest)


def _places(documents: Documents, ordinals: Array) -> Array:
    """Return each ordinal's number in its note: 0 for the title, 1 the summary, then blocks."""
    notes = documents.note_indexes[ordinals]
    places = ordinals - documents.first_ordinals[notes]
    return places.astype(np.uint64)


def _mix(notes: Array, places: Array, positions: Array) -> Array:
    """Return a digest of 64 bits per row of three columns of uint64, made for adding up."""
    sums: Array = notes * _MIX_NOTE
    sums += places * _MIX_PLACE
    sums += positions * _MIX_POSITION
    high_bits = sums >> np.uint64(29)
    digests: Array = (sums ^ high_bits) * _MIX_SUM
    return digests
