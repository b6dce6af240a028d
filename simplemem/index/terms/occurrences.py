"""Where terms and phrases stand in a segment, computed from their postings. Pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simplemem.index.engine import Damaged
from simplemem.index.terms.format import TITLE
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
class NoteFrequencies:
    """How often a phrase stands in the notes of a segment, by their indexes."""

    note_indexes: Integers  # ascending
    in_title: Integers
    in_body: Integers


@dataclass(frozen=True)
class Occurrences:
    """Where a phrase stands in a segment.

    `ordinals` are distinct and ascending. `crossing` are the ordinals at whose end a phrase begins that
    ends in the next block of the note, one for each time: it stands in the note, but in no block.
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
    def by_note(self) -> NoteFrequencies:
        """How often the phrase stands in each note that holds it."""
        documents = self.documents
        ordinals, counts = self.ordinals, self.counts
        if len(self.crossing):
            ordinals = np.concatenate([ordinals, self.crossing])
            counts = np.concatenate([counts, np.ones(len(self.crossing), counts.dtype)])
            order = np.argsort(ordinals, kind="stable")
            ordinals, counts = ordinals[order], counts[order]
        if not len(ordinals):
            empty = np.zeros(0, np.int64)
            return NoteFrequencies(empty, empty, empty)

        notes = documents.note_indexes[ordinals]
        is_first = np.ones(len(notes), bool)
        is_first[1:] = notes[1:] != notes[:-1]
        firsts = np.flatnonzero(is_first)
        note_indexes = notes[firsts]
        totals = np.add.reduceat(counts, firsts, dtype=np.int64)
        is_in_title = ordinals[firsts] == documents.first_ordinals[note_indexes] + TITLE
        in_title = np.where(is_in_title, counts[firsts], 0)
        return NoteFrequencies(note_indexes, in_title, totals - in_title)

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
    is_candidate = _notes_with_all(documents, words)
    if not is_candidate.any():
        return nothing

    # Where the phrase would begin, by each of its words.
    starts = sorted(
        (_keys(documents, word, is_candidate) - offset for offset, word in enumerate(words)),
        key=len,
    )
    keys = np.unique(starts[0])
    for others in starts[1:]:
        keys = keys[_is_in(keys, np.sort(others, kind="stable"))]
    if not len(keys):
        return nothing

    first_ordinals = _ordinals_at(documents, keys)
    last_ordinals = _ordinals_at(documents, keys + len(words) - 1)
    is_in_one_block = first_ordinals == last_ordinals
    ordinals, counts = np.unique(first_ordinals[is_in_one_block], return_counts=True)
    crossing = np.sort(first_ordinals[~is_in_one_block])
    return Occurrences(documents, ordinals, counts, crossing)


def _notes_with_all(documents: Documents, words: Sequence[Occurrences]) -> Any:
    """Return for each note whether it holds all of the words."""
    is_candidate = np.ones(len(documents.note_ids), bool)
    for word in words:
        holds_word = np.zeros(len(documents.note_ids), bool)
        holds_word[documents.note_indexes[word.ordinals]] = True
        is_candidate &= holds_word
    return is_candidate


def _keys(documents: Documents, word: Occurrences, is_candidate: Any) -> Integers:
    """Return where a word stands in the row of all tokens of the segment, in candidate notes."""
    assert word.positions is not None
    chosen = np.flatnonzero(is_candidate[documents.note_indexes[word.ordinals]])
    counts = word.counts[chosen]
    positions = word.positions[expand(word.first_positions[chosen], counts)].astype(np.int64)
    ordinals = np.repeat(word.ordinals[chosen], counts)

    word_counts = documents.word_counts[ordinals].astype(np.int64)
    is_extra = positions >= word_counts
    in_words: Integers = documents.starts[ordinals] + positions
    if not is_extra.any():
        return in_words
    in_extras = documents.starts[ordinals + documents.ordinal_count] + positions - word_counts
    return np.where(is_extra, in_extras, in_words)


def _ordinals_at(documents: Documents, keys: Integers) -> Integers:
    """Return the ordinals of places in the row of all tokens."""
    indexes = np.searchsorted(documents.starts, keys, side="right") - 1
    return indexes % documents.ordinal_count


def _is_in(keys: Integers, sorted_keys: Integers) -> Any:
    if not len(sorted_keys):
        return np.zeros(len(keys), bool)
    _, is_there = find_sorted(sorted_keys, keys)
    return is_there
