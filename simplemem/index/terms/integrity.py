"""Check that every segment of the term index can be read and holds all tokens of its notes.

The table `indexed_notes` has to name the segment of each note.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from simplemem.index.engine import Connection, Damaged
from simplemem.index.terms.merging import SegmentToMerge, read_source
from simplemem.index.terms.segment import Array, Postings, postings_from_rows
from simplemem.index.terms.writer import list_segments

_TERMS_AT_ONCE = 20_000


def find_damage(db: Connection) -> list[str]:
    """Return what is wrong with the segments, a sentence each; empty if all is well.

    Reads all segments and their terms. Changes nothing.
    """
    problems = []
    listed_notes, listed_segments = _read_indexed_notes(db)
    listed_count = 0
    for segment in list_segments(db):
        try:
            source = read_source(db, segment.number)
            indexed = source.documents.note_ids[source.is_indexed]
            is_complete = _count_tokens(db, source) == int(source.documents.lengths.sum())
        except (Damaged, ValueError) as error:  # ValueError: a column has text in place of bytes
            problems.append(str(error))
            continue
        if not is_complete:
            problems.append("words of some notes are missing in the term index")

        listed = listed_notes[listed_segments == segment.number]
        listed_count += len(listed)
        if not np.array_equal(listed, np.sort(indexed)):
            problems.append("the term index does not list the notes of a segment")

    if listed_count < len(listed_notes):
        problems.append("the term index lists notes of a segment that does not exist")
    return problems


def _read_indexed_notes(db: Connection) -> tuple[Array, Array]:
    """Return the ids of all notes that have a segment, ascending, and their segments' numbers."""
    note_ids = array("q")
    numbers = array("q")
    sql = "SELECT note_id, segment_id FROM indexed_notes ORDER BY note_id"
    for note_id, number in db.execute(sql):
        note_ids.append(note_id)
        numbers.append(number)
    return np.frombuffer(note_ids, np.int64), np.frombuffer(numbers, np.int64)


def _count_tokens(db: Connection, source: SegmentToMerge) -> int:
    """Count the occurrences of all terms of a segment.

    Raises Damaged if terms cannot be read, do not fit the segment, or are not in order.
    """
    total = 0
    last_term = ""
    for postings in read_all_terms(db, source):
        terms = list(postings.terms)
        if not terms:  # no note of a packed segment has a word
            continue
        if terms != sorted(terms) or terms[0] <= last_term:
            raise Damaged("the terms of a segment are not in order")

        last_term = terms[-1]
        total += int(postings.counts.sum(dtype=np.int64))
    return total


def read_all_terms(db: Connection, source: SegmentToMerge) -> Iterator[Postings]:
    """Yield the postings of all terms of a segment, in the order of the terms.

    Those of a packed segment come at once, others in parts of at most 20,000 terms. Raises Damaged
    if they cannot be read or do not fit the segment.
    """
    if source.packed is not None:
        yield _checked(source.packed, source)
        return

    sql = """
        SELECT term, postings, positions FROM terms
        WHERE segment_id = $1 AND term > $2 ORDER BY term LIMIT $3"""
    last = ""
    while True:
        rows: Any = db.execute(sql, (source.number, last, _TERMS_AT_ONCE)).fetchall()
        if not rows:
            return
        yield _checked(postings_from_rows(rows), source)
        last = rows[-1][0]


def _checked(postings: Postings, source: SegmentToMerge) -> Postings:
    """Return the same postings. Raises Damaged if an ordinal is not in the segment."""
    if int(postings.ordinals.max(initial=0)) >= source.documents.ordinal_count:
        raise Damaged("the postings of a term do not fit their segment")
    return postings
