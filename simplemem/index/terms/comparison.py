"""Describe the content of a term index without its segments, to compare two indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simplemem.index.engine import Connection
from simplemem.index.terms.integrity import read_all_terms
from simplemem.index.terms.merging import Source, read_source
from simplemem.index.terms.segment import Documents, Integers, Postings
from simplemem.index.terms.writer import list_segments

# Odd numbers that spread sums of places over all 64 bits.
_MIX_NOTE = np.uint64(0x9E3779B97F4A7C15)
_MIX_PLACE = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_POSITION = np.uint64(0x165667B19E3779F9)
_MIX_SUM = np.uint64(0xD6E8FEB86659FD93)
_ALL_BITS = 0xFFFFFFFFFFFFFFFF


def describe_terms(db: Connection) -> Iterator[tuple[str, int, int]]:
    """Yield each term, in order, with the number of its occurrences and a sum over their places.

    Before them comes the empty term, which stands for the texts of all blocks.
    Notes are told by the order of their paths, because ids differ between two indexes.
    """
    sql = "SELECT id, row_number() OVER (ORDER BY path) FROM notes"
    rows: Any = db.execute(sql)
    note_numbers = dict(rows)
    sums: dict[str, tuple[int, int]] = {}
    for segment in list_segments(db):
        source = read_source(db, segment.number)
        note_ids = source.documents.note_ids.tolist()
        numbers = np.array([note_numbers.get(note_id, 0) for note_id in note_ids], np.uint64)
        blocks, digest = _describe_texts(source, numbers)
        known_blocks, known_digest = sums.get("", (0, 0))
        sums[""] = known_blocks + blocks, (known_digest + digest) & _ALL_BITS
        for postings in read_all_terms(db, source):
            described = _describe(postings, source, numbers)
            for term, occurrences, digest in described:
                known_occurrences, known_digest = sums.get(term, (0, 0))
                digest = (known_digest + digest) & _ALL_BITS
                sums[term] = known_occurrences + occurrences, digest
    for term in sorted(sums):
        occurrences, digest = sums[term]
        if occurrences:
            yield term, occurrences, digest


def _describe(
    postings: Postings, source: Source, numbers: Integers
) -> Iterator[tuple[str, int, int]]:
    """Yield the terms of a segment, with the number of occurrences in indexed notes."""
    documents = source.documents
    notes = np.repeat(documents.note_indexes[postings.ordinals], postings.counts)
    ordinals = np.repeat(postings.ordinals.astype(np.int64), postings.counts)
    digests = _mix(
        numbers[notes],
        _places(documents, ordinals),
        postings.positions.astype(np.uint64),
    )
    is_alive = source.is_indexed[notes]
    digests = np.where(is_alive, digests, 0)

    starts = postings.position_ends[postings.posting_ends[:-1]]
    if not len(starts):
        return
    occurrences = np.add.reduceat(is_alive.astype(np.int64), starts)
    sums = np.add.reduceat(digests, starts)
    yield from zip(postings.terms, occurrences.tolist(), sums.tolist(), strict=True)


def _describe_texts(source: Source, numbers: Integers) -> tuple[int, int]:
    """Return the number of blocks in indexed notes, and a sum over their texts."""
    documents = source.documents
    notes = documents.notes_of_blocks
    blocks = np.arange(len(notes)) - documents.first_blocks[notes]
    digests = _mix(numbers[notes], blocks.astype(np.uint64), documents.text_keys)
    is_alive = source.is_indexed[notes]
    return int(np.count_nonzero(is_alive)), int(digests[is_alive].sum(dtype=np.uint64))


def _places(documents: Documents, ordinals: Integers) -> Integers:
    """Return the number of each ordinal in its note."""
    first = documents.first_ordinals[documents.note_indexes[ordinals]]
    return (ordinals - first).astype(np.uint64)


def _mix(notes: Integers, places: Integers, positions: Integers) -> Integers:
    digests: Integers = notes * _MIX_NOTE + places * _MIX_PLACE + positions * _MIX_POSITION
    mixed: Integers = (digests ^ (digests >> np.uint64(29))) * _MIX_SUM
    return mixed
