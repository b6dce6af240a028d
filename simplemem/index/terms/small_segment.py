"""Collect the tokens of notes, make a segment of them, and find a note in a segment, without numpy.

A command that writes one note takes less time than the import of numpy. The formats are those of
segment.py.
"""

from __future__ import annotations

import itertools
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from simplemem.index.engine import Damaged
from simplemem.index.terms.format import FIRST_BLOCK, MAX_COUNT, TITLE, Sizes
from simplemem.index.terms.tokens import NoteTokens

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
