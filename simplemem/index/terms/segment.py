"""A segment: the occurrences of all terms in some notes, as arrays, and its form as bytes.

Every note of a segment has consecutive *ordinals*: one for its title, one for its summary
(description and aliases), then one for each of its blocks. A segment has at least one note. A
*posting* says how often a term occurs in one ordinal, and the *positions* say where. The format is
described in docs/internals/term-index.md.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simplemem.index.engine import LAST, Damaged
from simplemem.index.terms.format import (
    FIRST_BLOCK,
    MAX_COUNT,
    SUMMARY,
    TITLE,
    PackedSegment,
    Sizes,
)
from simplemem.index.terms.tokens import SegmentBuilder

Array = NDArray[Any]
"""An array of one dimension: of integers, if nothing else is said, and also of scores or a mask."""

_MAX_NARROW = 0xFFFF  # a position that fits into two bytes
_POSTING_BYTES = 5  # an ordinal of four bytes, and a count
_TYPES = tuple(map(np.dtype, ("<u1", "<u2", "<u4", "<u8")))


# -- arrays as bytes


def pack_arrays(arrays: Iterable[Array]) -> bytes:
    """Return arrays of integers, none negative, as bytes, each in the smallest type that fits."""
    parts: list[bytes | memoryview] = []
    for numbers in arrays:
        largest = int(numbers.max(initial=0))
        code = _smallest_type(largest)
        packed = np.ascontiguousarray(numbers, _TYPES[code])
        parts.append(bytes([code]))
        parts.append(len(numbers).to_bytes(4, "little"))
        parts.append(packed.data)
    return b"".join(parts)


def _smallest_type(largest: int) -> int:
    """Return the index in `_TYPES` of the smallest type that holds the number `largest`."""
    code = 0
    while largest >= 1 << 8 * _TYPES[code].itemsize:
        code += 1
    return code


def unpack_arrays(packed: bytes, count: int) -> list[Array]:
    """Return the arrays that `pack_arrays` packed, as views of the bytes.

    Raises Damaged if the bytes cannot be read, or if there are not `count` arrays.
    """
    arrays: list[Array] = []
    offset = 0
    try:
        while offset < len(packed):
            kind = _TYPES[packed[offset]]
            start = offset + 5
            length = int.from_bytes(packed[offset + 1 : start], "little")
            numbers = np.frombuffer(packed, kind, length, start)
            arrays.append(numbers)
            offset = start + numbers.nbytes
    except (IndexError, ValueError) as error:
        raise Damaged("a segment of the term index cannot be read") from error

    if len(arrays) != count:
        raise Damaged("a segment of the term index is incomplete")
    return arrays


# -- the notes of a segment


@dataclass(frozen=True)
class Documents:
    """The notes of a segment, and the ordinals of each.

    An index of a note is its place in `note_ids`.
    """

    note_ids: Array
    block_counts: Array  # of each note
    word_counts: Array  # of each ordinal: the words of its text
    extra_counts: Array  # of each ordinal: parts of names and stems, which follow the words
    text_keys: Array  # of each block, the same for the same text; 0 if it has no words

    @classmethod
    def unpack(cls, packed: bytes) -> Documents:
        """Return the documents that `pack` packed.

        Raises Damaged if the bytes cannot be read or the arrays do not fit together.
        """
        note_ids, block_counts, word_counts, extra_counts, text_keys = unpack_arrays(packed, 5)
        documents = cls(
            note_ids.astype(np.int64),
            block_counts,
            word_counts,
            extra_counts,
            text_keys.astype(np.uint64, copy=False),
        )

        if len(note_ids) != len(block_counts) or len(word_counts) != len(extra_counts):
            raise Damaged("a segment of the term index does not fit its notes")
        if len(word_counts) != documents.first_ordinals[-1]:
            raise Damaged("a segment of the term index does not fit its blocks")
        if len(text_keys) != block_counts.sum(dtype=np.int64):
            raise Damaged("a segment of the term index does not fit its texts")
        return documents

    def pack(self) -> bytes:
        """Return the documents as bytes, for the column `documents` of a segment."""
        return pack_arrays(
            [
                self.note_ids,
                self.block_counts,
                self.word_counts,
                self.extra_counts,
                self.text_keys,
            ]
        )

    @property
    def ordinal_count(self) -> int:
        """The number of ordinals: of titles, summaries and blocks of all notes."""
        return len(self.word_counts)

    @cached_property
    def first_ordinals(self) -> Array:
        """The ordinal of each note's title.

        One more element at the end is the number of all ordinals.
        """
        note_numbers = np.arange(1, len(self.block_counts) + 1)
        block_ends = np.cumsum(self.block_counts, dtype=np.int64)
        ends = block_ends + FIRST_BLOCK * note_numbers
        return np.concatenate([[0], ends])

    @cached_property
    def note_indexes(self) -> Array:
        """For each ordinal the index of its note in this segment."""
        sizes = np.diff(self.first_ordinals)
        notes = np.arange(len(sizes), dtype=np.int32)
        return np.repeat(notes, sizes)

    @property
    def lengths(self) -> Array:
        """The number of tokens of each ordinal, extra ones included. Computed at each use."""
        return self.word_counts.astype(np.int64) + self.extra_counts

    def lengths_of(self, ordinals: Array) -> Array:
        """Return the number of tokens, words and extra ones, of each of some ordinals."""
        return self.word_counts[ordinals].astype(np.int64) + self.extra_counts[ordinals]

    @cached_property
    def note_lengths(self) -> Array:
        """The number of tokens of each note, with title and summary."""
        if not len(self.note_ids):
            return np.zeros(0, np.int64)
        lengths: Array = np.add.reduceat(self.lengths, self.first_ordinals[:-1])
        return lengths

    @property
    def block_lengths(self) -> Array:
        """For each note the number of tokens in its blocks, with the title once per block."""
        first_ordinals = self.first_ordinals[:-1]
        titles = self.lengths_of(first_ordinals)
        summaries = self.lengths_of(first_ordinals + SUMMARY)
        own_lengths = self.note_lengths - titles - summaries
        lengths: Array = own_lengths + titles * self.block_counts
        return lengths

    def keys_of(self, ordinals: Array, positions: Array) -> Array:
        """Return numbers for tokens such that two tokens side by side have consecutive numbers.

        A token is given by its ordinal and its position there. The words of a note's summary and
        blocks follow each other, so phrases across two of them are found. There is a gap before and
        after each title. The extra tokens come after all words, with a gap between two ordinals.
        """
        notes = self.note_indexes[ordinals].astype(np.int64)
        is_title = ordinals == self.first_ordinals[notes]
        gaps = 2 * notes + 2 - is_title  # two per note: one before its title, and one after it
        keys: Array = self._words_before[ordinals] + gaps + positions

        word_counts = self.word_counts[ordinals]
        is_extra = positions >= word_counts
        if is_extra.any():
            numbers = positions[is_extra] - word_counts[is_extra].astype(np.int64)
            keys[is_extra] = self._starts_of_extras(ordinals[is_extra]) + numbers
        return keys

    @cached_property
    def _words_before(self) -> Array:
        """For each ordinal the number of words, without extra tokens, in all ordinals before it."""
        word_count = int(self.word_counts.sum(dtype=np.int64))
        kind = np.int32 if word_count < 2**31 else np.int64  # half the memory, in every real vault
        ends: Any = np.cumsum(self.word_counts, dtype=kind)
        return ends - self.word_counts.astype(kind)  # type: ignore[no-any-return]

    def _starts_of_extras(self, ordinals: Array) -> Array:
        """Return the keys (`keys_of`) of the first extra tokens of some ordinals that have any."""
        with_extras, extras_before = self._extras
        gaps = 2 * len(self.note_ids) + 1
        end_of_words = int(self.word_counts.sum(dtype=np.int64)) + gaps
        rows = np.searchsorted(with_extras, ordinals)
        # Adding the ordinals leaves at least one number free between those of two ordinals.
        return extras_before[rows] + ordinals + end_of_words

    @cached_property
    def _extras(self) -> tuple[Array, Array]:
        """The ordinals that have extra tokens, and how many extra tokens precede each."""
        with_extras = np.flatnonzero(self.extra_counts)
        counts = self.extra_counts[with_extras]
        return with_extras, np.cumsum(counts, dtype=np.int64) - counts

    @cached_property
    def first_blocks(self) -> Array:
        """For each note the index of its first block among the blocks of all notes."""
        ends = np.cumsum(self.block_counts, dtype=np.int64)
        return ends - self.block_counts

    @property
    def notes_of_blocks(self) -> Array:
        """For each block the index of its note. Computed anew, because it is large."""
        return np.repeat(np.arange(len(self.note_ids), dtype=np.int32), self.block_counts)

    @cached_property
    def note_order(self) -> Array:
        """The indexes of the notes, sorted by their ids."""
        return np.argsort(self.note_ids, kind="stable")

    @cached_property
    def sorted_note_ids(self) -> Array:
        """The ids of the notes, ascending; `note_order` has their indexes."""
        return self.note_ids[self.note_order]

    @cached_property
    def text_keys_once(self) -> Array:
        """The keys of the texts of all blocks, ascending, each once.

        Blocks without words are left out.
        """
        keys: Array = np.unique(self.text_keys)
        return keys[keys != 0]  # type: ignore[no-any-return]

    @cached_property
    def repeated_texts(self) -> tuple[Array, Array]:
        """The keys of the texts that several notes have, ascending, and how many notes have each.

        Blocks without words are left out.
        """
        # Most texts are in one block only. Notes are counted for the others.
        sorted_keys = np.sort(self.text_keys)
        is_same = sorted_keys[1:] == sorted_keys[:-1]
        keys_of_several_blocks = np.unique(sorted_keys[1:][is_same])
        del sorted_keys
        if not len(keys_of_several_blocks):
            return keys_of_several_blocks, np.zeros(0, np.int64)

        _, is_counted = find_sorted(keys_of_several_blocks, self.text_keys)
        keys, counts = self._count_notes_by_text(is_counted)
        is_repeated = counts > 1
        return keys[is_repeated], counts[is_repeated]

    def texts_of(self, is_counted: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the keys of the texts of some notes, ascending, and how many of these have each.

        `is_counted` is a mask with an element per note. Blocks without words are left out.
        """
        return self._count_notes_by_text(is_counted[self.notes_of_blocks])

    def _count_notes_by_text(self, is_counted: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the keys of the texts of some blocks, ascending, and the number of notes per key.

        `is_counted` is a mask with an element per block. Blocks without words are left out. A text
        that stands twice in a note counts once.
        """
        chosen = np.flatnonzero(is_counted & (self.text_keys != 0))
        keys = self.text_keys[chosen]
        notes = self.notes_of_blocks[chosen]
        order = np.argsort(keys, kind="stable")  # the notes of a key stay in their order
        keys = keys[order]
        notes = notes[order]
        is_new = _differs_from_previous(keys, notes)
        return np.unique(keys[is_new], return_counts=True)

    def select(self, is_kept: NDArray[np.bool_]) -> Documents:
        """Return the documents of those notes for which the mask `is_kept` is true.

        Their ordinals are numbered anew, from 0.
        """
        is_kept_ordinal = is_kept[self.note_indexes]
        is_kept_block = is_kept[self.notes_of_blocks]
        return Documents(
            self.note_ids[is_kept],
            self.block_counts[is_kept],
            self.word_counts[is_kept_ordinal],
            self.extra_counts[is_kept_ordinal],
            self.text_keys[is_kept_block],
        )


def join_documents(parts: Sequence[Documents]) -> Documents:
    """Return the documents of one segment or more as those of one, in the order of `parts`."""
    columns = [
        (
            part.note_ids,
            part.block_counts,
            part.word_counts,
            part.extra_counts,
            part.text_keys,
        )
        for part in parts
    ]
    return Documents(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def sizes_of(documents: Documents) -> Sizes:
    """Return how many notes, blocks and tokens some documents have."""
    note_count = len(documents.note_ids)
    word_count = documents.note_lengths.sum()
    block_count = documents.block_counts.sum(dtype=np.int64)
    block_word_count = documents.block_lengths.sum()
    return Sizes(note_count, int(word_count), int(block_count), int(block_word_count))


# -- the terms of a segment


@dataclass(frozen=True)
class Postings:
    """The postings of all terms of a segment, or of some of them.

    Terms are sorted. The arrays hold the postings of the first term, then those of the second, and
    so on.
    """

    terms: Sequence[str]
    posting_counts: Array  # of each term
    ordinals: Array  # of each posting, ascending within a term; equal for parts of a split posting
    counts: Array  # of each posting, at most MAX_COUNT
    positions: Array  # of each occurrence

    @classmethod
    def unpack(cls, packed: bytes) -> Postings:
        """Return the postings that `pack` packed.

        Raises Damaged if the bytes cannot be read or the arrays do not fit together.
        """
        text, posting_counts, ordinals, counts, positions = unpack_arrays(packed, 5)
        try:
            joined = text.tobytes().decode()
        except UnicodeDecodeError as error:
            raise Damaged("a segment of the term index has unreadable terms") from error

        terms = joined.split("\n") if joined else []
        postings = cls(terms, posting_counts, ordinals, counts, positions)
        is_consistent = (
            len(terms) == len(posting_counts)
            and len(ordinals) == len(counts) == posting_counts.sum(dtype=np.int64)
            and len(positions) == counts.sum(dtype=np.int64)
        )
        if not is_consistent:
            raise Damaged("a segment of the term index does not fit its terms")
        return postings

    def pack(self) -> bytes:
        """Return the postings as bytes, for the column `packed` of a segment."""
        text = np.frombuffer("\n".join(self.terms).encode(), np.uint8)
        return pack_arrays([text, self.posting_counts, self.ordinals, self.counts, self.positions])

    @cached_property
    def posting_ends(self) -> Array:
        """Where the postings of each term end in `ordinals` and `counts`, with a zero in front."""
        return np.concatenate([[0], np.cumsum(self.posting_counts, dtype=np.int64)])

    @cached_property
    def position_ends(self) -> Array:
        """Where the positions of each posting end in `positions`, with a zero in front."""
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def slice(self, first: int, last: int) -> Postings:
        """Return the postings of the terms with the indexes from `first` to before `last`."""
        start = self.posting_ends[first]
        stop = self.posting_ends[last]
        first_position = self.position_ends[start]
        end_of_positions = self.position_ends[stop]
        return Postings(
            self.terms[first:last],
            self.posting_counts[first:last],
            self.ordinals[start:stop],
            self.counts[start:stop],
            self.positions[first_position:end_of_positions],
        )

    def index_of(self, term: str) -> int | None:
        """Return the index of a term; None if no note of the segment holds it."""
        index = bisect_left(self.terms, term)
        if index < len(self.terms) and self.terms[index] == term:
            return index
        return None

    def indexes_of_prefix(self, prefix: str) -> range:
        """Return the indexes of the terms that begin with a prefix: a range, maybe an empty one."""
        first = bisect_left(self.terms, prefix)
        end = bisect_left(self.terms, prefix + LAST, lo=first)
        return range(first, end)


class TermRow(NamedTuple):
    """A term of a segment as a row of the table `terms`, its postings and positions as bytes."""

    term: str
    notes: int  # that hold the term
    blocks: int  # that hold the term, in the title of their note or in themselves
    postings: bytes
    positions: bytes


def rows_of(postings: Postings, documents: Documents) -> Iterator[TermRow]:
    """Yield the terms of a segment as rows of the table `terms`, in the order of the terms.

    Their positions take two bytes each, or four in all rows if any of them needs that.
    """
    note_counts, block_counts = count_holders(postings, documents)
    terms_with_counts = zip(
        postings.terms, note_counts.tolist(), block_counts.tolist(), strict=True
    )
    ordinals = postings.ordinals.astype("<u4").tobytes()
    counts = postings.counts.astype("<u1").tobytes()
    posting_ends = postings.posting_ends.tolist()
    position_ends = postings.position_ends[postings.posting_ends].tolist()  # of each term

    is_narrow = int(postings.positions.max(initial=0)) <= _MAX_NARROW
    width = 2 if is_narrow else 4
    positions = postings.positions.astype(f"<u{width}").tobytes()

    posting_start = 0
    position_start = 0
    for index, (term, notes, blocks) in enumerate(terms_with_counts, start=1):
        posting_end = posting_ends[index]
        position_end = width * position_ends[index]
        packed_ordinals = ordinals[4 * posting_start : 4 * posting_end]
        packed_counts = counts[posting_start:posting_end]
        packed_positions = positions[position_start:position_end]
        yield TermRow(term, notes, blocks, packed_ordinals + packed_counts, packed_positions)
        posting_start = posting_end
        position_start = position_end


def decode_postings(packed: bytes) -> tuple[Array, Array]:
    """Return the ordinals and counts in the bytes of a term's row, as views.

    Raises Damaged if there are none, or if the size is wrong.
    """
    count, rest = divmod(len(packed), _POSTING_BYTES)
    if rest or not count:
        raise Damaged("the postings of a term cannot be read")
    ordinals = np.frombuffer(packed, "<u4", count)
    counts = np.frombuffer(packed, "<u1", count, 4 * count)
    return ordinals, counts


def decode_positions(packed: bytes, count: int) -> Array:
    """Return the `count` positions in the bytes of a term's row, as a view.

    Raises Damaged if the size is wrong.
    """
    if len(packed) == 2 * count:
        return np.frombuffer(packed, "<u2")
    if len(packed) == 4 * count:
        return np.frombuffer(packed, "<u4")
    raise Damaged("the positions of a term cannot be read")


def postings_from_rows(rows: Sequence[tuple[str, bytes, bytes]]) -> Postings:
    """Return the postings of (term, postings, positions), rows of one segment sorted by term.

    No rows become postings without terms. Raises Damaged if bytes cannot be decoded.
    """
    posting_counts = []
    ordinals = []
    counts = []
    positions = []
    for _, packed_postings, packed_positions in rows:
        term_ordinals, term_counts = decode_postings(packed_postings)
        occurrences = int(term_counts.sum(dtype=np.int64))
        posting_counts.append(len(term_ordinals))
        ordinals.append(term_ordinals)
        counts.append(term_counts)
        positions.append(decode_positions(packed_positions, occurrences))
    return Postings(
        [term for term, _, _ in rows],
        np.array(posting_counts, np.int64),
        _concatenate(ordinals, np.uint32),
        _concatenate(counts, np.uint8),
        _concatenate(positions, np.uint32),
    )


def _concatenate(arrays: Sequence[Array], kind: Any) -> Array:
    """Return several arrays as one of type `kind`; an empty one of no arrays."""
    if not arrays:
        return np.zeros(0, kind)
    return np.concatenate(arrays).astype(kind)


def count_holders(postings: Postings, documents: Documents) -> tuple[Array, Array]:
    """Return for each term how many notes hold it, and how many blocks, as two arrays.

    A block also holds the terms of its note's title.
    """
    if not len(postings.ordinals):
        empty = np.zeros(len(postings.terms), np.int64)
        return empty, empty

    term_indexes = np.repeat(np.arange(len(postings.terms)), postings.posting_counts)
    note_indexes = documents.note_indexes[postings.ordinals]
    places = postings.ordinals - documents.first_ordinals[note_indexes]

    # The postings of one term in one note are a group. `group_starts` are the first of each.
    is_first = _differs_from_previous(term_indexes, note_indexes)
    group_starts = np.flatnonzero(is_first)

    # A term that occurs very often in a block has several postings there, which count once.
    is_other_ordinal = postings.ordinals[1:] != postings.ordinals[:-1]
    is_new_block = places >= FIRST_BLOCK
    is_new_block[1:] &= is_first[1:] | is_other_ordinal
    blocks_with_term = np.add.reduceat(is_new_block.astype(np.int64), group_starts)
    is_in_title = places[group_starts] == TITLE
    all_blocks = documents.block_counts[note_indexes[group_starts]]
    blocks_of_groups = np.where(is_in_title, all_blocks, blocks_with_term)

    terms_of_groups = term_indexes[group_starts]
    term_count = len(postings.terms)
    note_counts = np.bincount(terms_of_groups, minlength=term_count)
    block_counts = np.bincount(terms_of_groups, blocks_of_groups, term_count)
    return note_counts, block_counts.astype(np.int64)


# -- making and merging segments


def pack_segment(documents: Documents, postings: Postings) -> PackedSegment:
    """Return a segment as one row stores it: its sizes, its documents and its terms, as bytes."""
    return PackedSegment(sizes_of(documents), documents.pack(), postings.pack())


def build_segment(builder: SegmentBuilder) -> tuple[Documents, Postings]:
    """Return the notes that a builder has collected, and the postings of their terms."""
    documents = Documents(
        np.array(builder.note_ids, np.int64),
        np.array(builder.block_counts, np.int64),
        np.array(builder.word_counts, np.uint32),
        np.array(builder.extra_counts, np.uint32),
        np.array(builder.text_keys, np.uint64),
    )
    # The rank of a term is its index in sorted order. The builder numbers terms as they came.
    terms = sorted(builder.numbers)
    numbers = [builder.numbers[term] for term in terms]
    rank_of_number = np.empty(len(terms), np.uint32)
    rank_of_number[numbers] = np.arange(len(terms))
    tokens = np.frombuffer(builder.tokens, np.uint32)
    ranks = rank_of_number[tokens]

    # Sort the tokens by term. Arrays with a number per token are made late and freed early, to save
    # memory.
    order = np.argsort(ranks, kind="stable")
    ranks = ranks[order]
    lengths = documents.lengths
    ordinal_numbers = np.arange(len(lengths), dtype=np.uint32)
    ordinals = np.repeat(ordinal_numbers, lengths)[order]

    # `order` has the index of each token in the builder: subtract that of the first of its ordinal.
    tokens_before = np.cumsum(lengths) - lengths
    first_tokens = tokens_before.astype(np.uint32)
    positions = order.astype(np.uint32)
    del order
    positions -= first_tokens[ordinals]
    return documents, _group(terms, ranks, ordinals, positions)


def _group(terms: list[str], ranks: Array, ordinals: Array, positions: Array) -> Postings:
    """Return the postings of occurrences that are sorted by term, ordinal and position.

    The three arrays have an element per occurrence; `ranks` are indexes in `terms`. More than
    MAX_COUNT occurrences in an ordinal become several postings.
    """
    is_first = _differs_from_previous(ranks, ordinals)
    firsts = np.flatnonzero(is_first)
    counts = np.diff(firsts, append=len(ranks))
    ranks = ranks[firsts]
    ordinals = ordinals[firsts]

    if counts.max(initial=0) > MAX_COUNT:
        # All parts of a split posting but the last one are full.
        part_counts = (counts + MAX_COUNT - 1) // MAX_COUNT
        last_parts = np.cumsum(part_counts) - 1
        is_last = np.zeros(int(part_counts.sum()), bool)
        is_last[last_parts] = True
        last_counts = counts - (part_counts - 1) * MAX_COUNT
        ranks = np.repeat(ranks, part_counts)
        ordinals = np.repeat(ordinals, part_counts)
        counts = np.where(is_last, np.repeat(last_counts, part_counts), MAX_COUNT)

    posting_counts = np.bincount(ranks, minlength=len(terms))
    narrow_counts = counts.astype(np.uint8)
    return Postings(terms, posting_counts, ordinals, narrow_counts, positions)


def merge_postings(parts: Sequence[tuple[Postings, Array]]) -> Postings:
    """Return the postings of one segment or more as those of one.

    Each part comes with an array that has the new ordinal for each old one, or -1 for an ordinal of
    a note that was removed. The new ordinals ascend from part to part. Terms that no note holds any
    more are left out. Raises Damaged if postings do not fit their segment.
    """
    distinct_terms: set[str] = set()
    for postings, _ in parts:
        distinct_terms.update(postings.terms)
    terms = sorted(distinct_terms)
    rank_of_term = {term: rank for rank, term in enumerate(terms)}
    columns = [_move_postings(postings, ordinals, rank_of_term) for postings, ordinals in parts]
    ranks, ordinals, counts, positions = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )

    order = np.argsort(ranks, kind="stable")
    first_positions = np.cumsum(counts, dtype=np.int64) - counts
    sorted_counts = counts[order]
    sorted_positions = positions[expand(first_positions[order], sorted_counts)]
    posting_counts = np.bincount(ranks, minlength=len(terms))
    merged = Postings(terms, posting_counts, ordinals[order], sorted_counts, sorted_positions)
    return _without_empty_terms(merged)


def _move_postings(
    postings: Postings,
    new_ordinals: Array,
    rank_of_term: dict[str, int],
) -> tuple[Array, Array, Array, Array]:
    """Return the ranks, new ordinals, counts and positions of the postings of notes that stay.

    `new_ordinals` has the new ordinal of each old one, -1 if its note goes. `rank_of_term` has the
    index of each term in the merged segment. There is a position per occurrence, so `counts[i]` of
    them for posting i. Raises Damaged if postings do not fit their segment.
    """
    ranks_of_terms = [rank_of_term[term] for term in postings.terms]
    ranks = np.repeat(np.array(ranks_of_terms, np.uint32), postings.posting_counts)
    if int(postings.ordinals.max(initial=0)) >= max(1, len(new_ordinals)):
        raise Damaged("the postings of a term do not fit their segment")
    ordinals = new_ordinals[postings.ordinals]
    is_kept = ordinals >= 0
    if is_kept.all():
        return ranks, ordinals, postings.counts, postings.positions

    is_kept_position = np.repeat(is_kept, postings.counts)
    return (
        ranks[is_kept],
        ordinals[is_kept],
        postings.counts[is_kept],
        postings.positions[is_kept_position],
    )


def _without_empty_terms(postings: Postings) -> Postings:
    """Return postings without the terms that have none."""
    is_used = postings.posting_counts > 0
    if is_used.all():
        return postings

    used_terms = list(itertools.compress(postings.terms, is_used.tolist()))
    return Postings(
        used_terms,
        postings.posting_counts[is_used],
        postings.ordinals,
        postings.counts,
        postings.positions,
    )


def _differs_from_previous(first: Array, second: Array) -> NDArray[np.bool_]:
    """Return a mask of the rows of two columns that differ from the row before.

    It is true for the first row. The columns have the same length.
    """
    is_new = np.ones(len(first), bool)
    np.not_equal(first[1:], first[:-1], out=is_new[1:])
    is_new[1:] |= second[1:] != second[:-1]
    return is_new


def find_sorted(values: Array, numbers: Array) -> tuple[Array, Array]:
    """Return the index of each number in ascending `values`, and a mask of those found there.

    For a number that is not in `values`, the index is valid but meaningless. `values` must not be
    empty.
    """
    indexes = np.searchsorted(values, numbers)
    is_behind_last = indexes == len(values)
    indexes[is_behind_last] = 0
    is_there = values[indexes] == numbers
    return indexes, is_there


def expand(starts: Array, counts: Array) -> Array:
    """Return the numbers of several ranges as one array, range by range.

    Each range has `count` numbers: `start`, `start + 1`, ….
    """
    counts = counts.astype(np.int64)
    ends = np.cumsum(counts)
    if not len(ends):
        return np.zeros(0, np.int64)
    first_indexes = ends - counts
    offsets = np.repeat(starts - first_indexes, counts)
    numbers: Array = np.arange(ends[-1]) + offsets
    return numbers
