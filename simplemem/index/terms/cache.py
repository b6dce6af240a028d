"""What a process keeps in memory of segments. They never change, so it stays good until it is forgotten."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Container, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from simplemem.index.terms.tokens import Phrase

if TYPE_CHECKING:
    from simplemem.index.connection import Connection
    from simplemem.index.terms.occurrences import Occurrences
    from simplemem.index.terms.segment import Documents, Postings

_MAX_BYTES = 48_000_000  # of occurrences


class TermFacts(NamedTuple):
    """What is known of a single term in a segment.

    `occurrences` is None if no note holds the term, or if its postings have not been read.
    """

    notes: int
    blocks: int
    occurrences: Occurrences | None


class Segment(NamedTuple):
    """A segment in memory: its notes, and all of its terms if they are packed in one row."""

    number: int
    documents: Documents
    packed: Postings | None


class SegmentCache:
    """What a process has read of the segments of one index, for any thread.

    Guards its dictionaries with a lock. The values in them never change.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._segments: dict[int, Segment] = {}
        self._terms: OrderedDict[tuple[int, str], TermFacts] = OrderedDict()
        self._phrases: OrderedDict[tuple[int, Phrase], Occurrences] = OrderedDict()
        self._bytes = 0

    def segments(
        self, db: Connection, numbers: Collection[int], *, forgets_others: bool = False
    ) -> list[Segment]:
        """Return segments, after reading those that are not in memory.

        With `forgets_others`, these are all segments, and what is known of others is forgotten. Raises
        Damaged if one cannot be read.
        """
        with self._lock:
            segments = {
                number: self._segments[number] for number in numbers if number in self._segments
            }
        unread = [number for number in numbers if number not in segments]
        if unread:
            segments |= {segment.number: segment for segment in _read_segments(db, unread)}
        with self._lock:
            if forgets_others and not self._segments.keys() <= segments.keys():
                self._forget_all_but(segments)
            self._segments |= segments
        return [segments[number] for number in numbers]

    def _forget_all_but(self, segments: Container[int]) -> None:
        """Forget segments that are gone, and their terms. Called with the lock held."""
        for number in [number for number in self._segments if number not in segments]:
            del self._segments[number]
        for number, term in [key for key in self._terms if key[0] not in segments]:
            self._bytes -= _size_of(self._terms.pop((number, term)).occurrences)
        for number, phrase in [key for key in self._phrases if key[0] not in segments]:
            self._bytes -= _size_of(self._phrases.pop((number, phrase)))

    def term(self, number: int, term: str) -> TermFacts | None:
        """Return what is known of a term in a segment; None if it was not read."""
        return self._terms.get((number, term))

    def keep_term(self, number: int, term: str, facts: TermFacts) -> None:
        """Remember what a segment holds of a term."""
        with self._lock:
            known = self._terms.pop((number, term), None)
            self._bytes += _size_of(facts.occurrences)
            if known is not None:
                self._bytes -= _size_of(known.occurrences)
            self._terms[number, term] = facts
            self._make_room()

    def phrase(self, number: int, phrase: Phrase) -> Occurrences | None:
        """Return where a phrase stands in a segment, if that was computed."""
        return self._phrases.get((number, phrase))

    def keep_phrase(self, number: int, phrase: Phrase, occurrences: Occurrences) -> None:
        """Remember where a phrase stands in a segment."""
        with self._lock:
            known = self._phrases.pop((number, phrase), None)
            self._bytes += _size_of(occurrences)
            if known is not None:
                self._bytes -= _size_of(known)
            self._phrases[number, phrase] = occurrences
            self._make_room()

    def _make_room(self) -> None:
        """Forget what was remembered first. Called with the lock held."""
        while self._bytes > self._max_bytes and (self._terms or self._phrases):
            if self._phrases:
                self._bytes -= _size_of(self._phrases.popitem(last=False)[1])
            if self._terms:
                self._bytes -= _size_of(self._terms.popitem(last=False)[1].occurrences)


def _size_of(occurrences: Occurrences | None) -> int:
    return 200 if occurrences is None else occurrences.size


def _read_segments(db: Connection, numbers: Sequence[int]) -> list[Segment]:
    from simplemem.index.terms.segment import Documents, Postings  # numpy: not at the start

    sql = """
        SELECT segment_id, documents, packed FROM segments
        WHERE segment_id IN (SELECT value FROM carray(:ids))"""
    rows: Any = db.execute(sql, {"ids": db.many(numbers)}).fetchall()
    return [
        Segment(
            number,
            Documents.unpack(documents),
            None if packed is None else Postings.unpack(packed),
        )
        for number, documents, packed in rows
    ]
