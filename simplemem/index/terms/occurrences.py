"""Where terms and phrases stand in a segment, computed from their postings.

Pure functions of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simplemem.index.door import BODY_WEIGHT, TITLE_WEIGHT
from simplemem.index.engine import Damaged
from simplemem.index.terms.format import FIRST_BLOCK, TITLE
from simplemem.index.terms.segment import (
    Documents,
    Integers,
    decode_positions,
    decode_postings,
    expand,
    find_sorted,
)

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class NotePostings:
    """The notes of a segment that hold a phrase."""

    note_indexes: Integers  # ascending
    frequencies: Integers  # an occurrence in the title counts as several (docs/search.md)
    first_postings: Integers  # of each note, and the number of all postings at the end


@dataclass(frozen=True)
class Occurrences:
    """Where a phrase stands in a segment.

    `ordinals` are distinct and ascending. `crossing` are the ordinals at whose end a phrase begins
    that ends in the next block of the note, one for each time: it stands in the note, but in no
    block.
    """

    documents: Documents
    ordinals: Integers
    counts: Integers
    crossing: Integers
    positions: Integers | None = None  # of a single term, if they were read

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes, with what is computed from it."""
        positions = 0 if self.positions is None else self.positions.nbytes
        return 500 + 4 * self.ordinals.nbytes + self.counts.nbytes + positions

    @cached_property
    def by_note(self) -> NotePostings:
        """The notes that hold the phrase."""
        ordinals, counts = self.ordinals, self.counts
        if len(self.crossing):
            ordinals = np.concatenate([ordinals, self.crossing])
            counts = np.concatenate([counts, np.ones(len(self.crossing), counts.dtype)])
            order = np.argsort(ordinals, kind="stable")
            ordinals, counts = ordinals[order], counts[order]
        if not len(ordinals):
            return NotePostings(_NONE, np.zeros(0), np.zeros(1, np.int64))

        notes = self.documents.note_indexes[ordinals]
        is_first = np.ones(len(notes), bool)
        np.not_equal(notes[1:], notes[:-1], out=is_first[1:])
        firsts = np.flatnonzero(is_first)
        note_indexes = notes[firsts]
        titles = self.documents.first_ordinals[note_indexes] + TITLE
        in_title = np.where(ordinals[firsts] == titles, counts[firsts], 0)
        totals = np.add.reduceat(counts, firsts, dtype=np.float64)
        frequencies = BODY_WEIGHT * totals + (TITLE_WEIGHT - BODY_WEIGHT) * in_title
        if len(self.crossing):
            firsts = np.searchsorted(self.ordinals, titles)
        return NotePostings(note_indexes, frequencies, np.append(firsts, len(self.ordinals)))

    @cached_property
    def block_count(self) -> int:
        """The number of blocks with the phrase in their own text or in the title of their note."""
        return _count_blocks(self.documents, self.ordinals)

    def count_blocks_of(self, notes: Integers) -> int:
        """Return how many blocks of some notes hold the phrase. `notes` are indexes, ascending."""
        return _count_blocks(self.documents, self.ordinals[self.postings_of(notes)])

    def postings_of(self, notes: Integers) -> Integers:
        """Return the indexes of the postings in some notes, whose indexes are ascending."""
        by_note = self.by_note
        if not len(by_note.note_indexes):
            return _NONE
        rows, is_there = find_sorted(by_note.note_indexes, notes)
        rows = rows[is_there]
        starts = by_note.first_postings[rows]
        return expand(starts, by_note.first_postings[rows + 1] - starts)

    @cached_property
    def first_positions(self) -> Integers:
        """Where the positions of each ordinal begin."""
        ends = np.cumsum(self.counts, dtype=np.int64)
        return ends - self.counts


def occurrences_of_term(
    documents: Documents, packed_postings: bytes, packed_positions: bytes | None
) -> Occurrences:
    """Return the occurrences of a term's row. Raises Damaged."""
    ordinals, counts = decode_postings(packed_postings)
    positions = None
    if packed_positions is not None:
        positions = decode_positions(packed_positions, int(counts.sum(dtype=np.int64)))
    return make_occurrences(documents, ordinals, counts, positions)


def make_occurrences(
    documents: Documents, ordinals: Integers, counts: Integers, positions: Integers | None
) -> Occurrences:
    """Return the occurrences of postings. Raises Damaged if they do not fit the segment."""
    ordinals = ordinals.astype(np.int64)
    steps = np.diff(ordinals)
    is_in_order = not len(steps) or int(steps.min()) >= 0
    if not is_in_order or int(ordinals[-1]) >= documents.ordinal_count:
        raise Damaged("the postings of a term do not fit their segment")

    if len(steps) and int(steps.min()) == 0:  # a term with very many occurrences in one ordinal
        is_first = np.concatenate([[True], steps > 0])
        counts = np.add.reduceat(counts, np.flatnonzero(is_first), dtype=np.int64)
        ordinals = ordinals[is_first]
    return Occurrences(documents, ordinals, counts, _NONE, positions)


def union_of(documents: Documents, parts: Sequence[Occurrences]) -> Occurrences:
    """Return the occurrences of several single terms as those of one."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Occurrences(documents, _NONE, _NONE, _NONE, _NONE)

    ordinals = np.concatenate([part.ordinals for part in parts])
    counts = np.concatenate([part.counts.astype(np.int64) for part in parts])
    order = np.argsort(ordinals, kind="stable")
    positions = None
    if all(part.positions is not None for part in parts):
        every = np.concatenate([part.positions for part in parts])
        firsts = np.cumsum(counts) - counts
        positions = every[expand(firsts[order], counts[order])]

    ordinals, counts = ordinals[order], counts[order]
    is_first = np.concatenate([[True], np.diff(ordinals) > 0])
    summed = np.add.reduceat(counts, np.flatnonzero(is_first))
    return Occurrences(documents, ordinals[is_first], summed, _NONE, positions)


def side_by_side(documents: Documents, words: Sequence[Occurrences]) -> Occurrences:
    """Return where some words, whose positions were read, stand side by side."""
    nothing = Occurrences(documents, _NONE, _NONE, _NONE)
    notes = _notes_with_all(words)
    if not len(notes):
        return nothing

    # Where the phrase would begin, by each of its words.
    starts = sorted(
        (_keys(documents, word, notes) - offset for offset, word in enumerate(words)),
        key=len,
    )
    keys = starts[0]
    for others in starts[1:]:
        keys = keys[_is_in(keys, others)]
    if not len(keys):
        return nothing

    first_ordinals = _ordinals_at(documents, keys)
    last_ordinals = _ordinals_at(documents, keys + len(words) - 1)
    is_in_one_block = first_ordinals == last_ordinals
    ordinals, counts = np.unique(first_ordinals[is_in_one_block], return_counts=True)
    crossing = np.sort(first_ordinals[~is_in_one_block])
    return Occurrences(documents, ordinals, counts, crossing)


def _notes_with_all(words: Sequence[Occurrences]) -> Integers:
    """Return the indexes of the notes that hold all of the words, ascending."""
    by_rarity = sorted((word.by_note.note_indexes for word in words), key=len)
    notes = by_rarity[0]
    for others in by_rarity[1:]:
        notes = notes[_is_in(notes, others)]
    return notes


def _keys(documents: Documents, word: Occurrences, notes: Integers) -> Integers:
    """Return where a word is in the row of all tokens of the segment, in some notes, ascending."""
    assert word.positions is not None
    chosen = word.postings_of(notes)
    counts = word.counts[chosen]
    positions = word.positions[expand(word.first_positions[chosen], counts)].astype(np.int64)
    ordinals = np.repeat(word.ordinals[chosen], counts)

    word_counts = documents.word_counts[ordinals]
    is_extra = positions >= word_counts
    keys: Integers = documents.starts[ordinals] + positions
    if is_extra.any():
        in_extras = documents.starts[ordinals + documents.ordinal_count] + positions - word_counts
        keys = np.where(is_extra, in_extras, keys)

    # Nearly always they are in order already.
    return np.sort(keys, kind="stable")


def _count_blocks(documents: Documents, ordinals: Integers) -> int:
    """Count the blocks that hold a phrase, which stands in some ordinals."""
    if not len(ordinals):
        return 0
    notes = documents.note_indexes[ordinals]
    places = ordinals - documents.first_ordinals[notes]
    is_block = places >= FIRST_BLOCK
    titles = notes[places == TITLE]
    if not len(titles):
        return int(np.count_nonzero(is_block))

    has_title = np.zeros(len(documents.note_ids), bool)
    has_title[titles] = True
    is_block &= ~has_title[notes]
    blocks_of_titles = documents.block_counts[titles].sum(dtype=np.int64)
    return int(np.count_nonzero(is_block) + blocks_of_titles)


def _ordinals_at(documents: Documents, keys: Integers) -> Integers:
    """Return the ordinals of places in the row of all tokens."""
    indexes = np.searchsorted(documents.starts, keys, side="right") - 1
    return indexes % documents.ordinal_count


def _is_in(keys: Integers, sorted_keys: Integers) -> Any:
    if not len(sorted_keys):
        return np.zeros(len(keys), bool)
    _, is_there = find_sorted(sorted_keys, keys)
    return is_there
