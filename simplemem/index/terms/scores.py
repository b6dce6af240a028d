"""Score the notes and blocks of a segment by BM25. Pure functions of arrays.

The forms of all words are computed at once: most arrays are short, so a call costs more than its
work.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from simplemem.index.door import BODY_WEIGHT, K1, TITLE_WEIGHT, B
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.format import FIRST_BLOCK, TITLE
from simplemem.index.terms.occurrences import Occurrences
from simplemem.index.terms.segment import Documents, Integers, expand, find_sorted

WordForms = Sequence[Sequence[float]]
"""The most that each form of each word of a query adds to a score.

Of the forms of a word, only the best counts in a note or block.
"""


class Scores(NamedTuple):
    """Notes or blocks of a segment, and their scores."""

    note_ids: Integers
    place_ids: Integers  # 0 for a note
    scores: Integers


class _Entries(NamedTuple):
    """How often the forms of a query are in notes or blocks; those of the first form come first."""

    indexes: Integers  # of notes or blocks
    frequencies: Integers
    sizes: Sequence[int]  # the number of entries of each form


def length_norms(lengths: Integers, average_length: float) -> Integers:
    """Return what BM25 adds to a frequency: long texts hold a word more often by chance."""
    return K1 * (1 - B) + K1 * B / max(average_length, 1e-9) * lengths


def score_notes(
    documents: Documents,
    words: WordForms,
    occurrences: Sequence[Occurrences],
    norms: Integers,
    selected: Integers | None,
) -> Scores:
    """Score all notes of a segment that hold a word, or those of them that are selected.

    There are `occurrences` of each form, in the order of `words`.
    """
    by_note = [of_form.by_note for of_form in occurrences]
    entries = _Entries(
        np.concatenate([notes.note_indexes for notes in by_note]),
        np.concatenate([notes.frequencies for notes in by_note]),
        [len(notes.note_indexes) for notes in by_note],
    )
    scores = _sum_scores(words, entries, norms[entries.indexes], len(documents.note_ids))

    if selected is None:
        notes = np.flatnonzero(scores)
    else:
        notes = selected[scores[selected] > 0]
    return Scores(documents.note_ids[notes], np.zeros(len(notes), np.int64), scores[notes])


def score_blocks(
    documents: Documents,
    words: WordForms,
    occurrences: Sequence[Occurrences],
    average_length: float,
    notes: Integers,
) -> Scores:
    """Score all blocks of some notes that hold a word, or whose note has it in its title.

    `notes` are indexes, ascending. There are `occurrences` of each form, in the order of `words`.
    """
    block_counts = documents.block_counts[notes].astype(np.int64)
    first_blocks = np.cumsum(block_counts) - block_counts
    titles = documents.first_ordinals[notes]
    entries = _count_in_blocks(occurrences, notes, titles, first_blocks, block_counts)

    # A block is numbered among those of all the notes.
    note_of_block = np.repeat(np.arange(len(notes)), block_counts)
    holders = note_of_block[entries.indexes]
    numbers = entries.indexes - first_blocks[holders]
    ordinals = titles[holders] + FIRST_BLOCK + numbers
    lengths = documents.lengths[ordinals] + documents.lengths[titles[holders]]
    norms = length_norms(lengths, average_length)
    scores = _sum_scores(words, entries, norms, len(note_of_block))

    blocks = np.flatnonzero(scores)
    holders = note_of_block[blocks]
    note_ids = documents.note_ids[notes[holders]]
    place_ids = (note_ids << SHIFT) | BLOCK | (blocks - first_blocks[holders])
    return Scores(note_ids, place_ids, scores[blocks])


def _count_in_blocks(
    occurrences: Sequence[Occurrences],
    notes: Integers,
    titles: Integers,
    first_blocks: Integers,
    block_counts: Integers,
) -> _Entries:
    """Return how often each form is in each block of some notes, and in the titles of the notes.

    `titles` are the ordinals of the notes' titles.
    """
    block_count = int(block_counts.sum())
    postings = [_postings_in(of_form, notes) for of_form in occurrences]
    ordinals, counts, holders = (np.concatenate(column) for column in zip(*postings, strict=True))
    forms = np.repeat(np.arange(len(postings)), [len(column) for column, _, _ in postings])

    places = ordinals - titles[holders]
    is_block = places >= FIRST_BLOCK
    keys = forms * block_count + first_blocks[holders] + places - FIRST_BLOCK
    keys = keys[is_block]
    frequencies = BODY_WEIGHT * counts[is_block]

    is_title = places == TITLE
    if is_title.any():
        holders = holders[is_title]
        blocks = expand(
            forms[is_title] * block_count + first_blocks[holders], block_counts[holders]
        )
        title_frequencies = np.repeat(TITLE_WEIGHT * counts[is_title], block_counts[holders])
        frequencies = np.concatenate([frequencies, title_frequencies])
        keys, entry_of_key = np.unique(np.concatenate([keys, blocks]), return_inverse=True)
        frequencies = np.bincount(entry_of_key, frequencies)

    forms, indexes = np.divmod(keys, max(1, block_count))
    sizes = np.bincount(forms, minlength=len(postings))
    return _Entries(indexes, frequencies, sizes.tolist())


def _postings_in(occurrences: Occurrences, notes: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the ordinals and counts of the postings in some notes.

    The third array has the index in `notes` of the note of each.
    """
    by_note = occurrences.by_note
    if not len(by_note.note_indexes):
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    rows, is_there = find_sorted(by_note.note_indexes, notes)
    rows = rows[is_there]
    starts = by_note.first_postings[rows]
    sizes = by_note.first_postings[rows + 1] - starts
    postings = expand(starts, sizes)
    holders = np.repeat(np.flatnonzero(is_there), sizes)
    return occurrences.ordinals[postings], occurrences.counts[postings], holders


def _sum_scores(words: WordForms, entries: _Entries, norms: Integers, size: int) -> Integers:
    """Return the scores of `size` notes or blocks. The `norms` are those of the entries."""
    frequencies = entries.frequencies
    max_scores = np.repeat(list(chain.from_iterable(words)), entries.sizes)
    scores = max_scores * (frequencies / (frequencies + norms))
    indexes = entries.indexes
    if any(len(forms) > 1 for forms in words):
        indexes, scores = _best_of_forms(words, entries, scores, size)
    return np.bincount(indexes, scores, size)


def _best_of_forms(
    words: WordForms, entries: _Entries, scores: Integers, size: int
) -> tuple[Integers, Integers]:
    """Return the indexes and scores of each word, of whose forms only the best counts."""
    ends = np.cumsum([0, *entries.sizes])
    indexes_of_words = []
    scores_of_words = []
    first_form = 0
    for forms in words:
        best = np.zeros(size)
        for form in range(first_form, first_form + len(forms)):
            chosen = slice(ends[form], ends[form + 1])
            indexes = entries.indexes[chosen]
            best[indexes] = np.maximum(best[indexes], scores[chosen])
        indexes = np.flatnonzero(best)
        indexes_of_words.append(indexes)
        scores_of_words.append(best[indexes])
        first_form += len(forms)
    return np.concatenate(indexes_of_words), np.concatenate(scores_of_words)


def best_scores(parts: Sequence[Scores], limit: int) -> Scores | None:
    """Return the best of all segments, best first; of equal ones the lower id first.

    None if empty.
    """
    if not parts:
        return None
    merged = Scores(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    if limit < len(merged.scores):
        least = np.partition(merged.scores, -limit)[-limit]
        is_candidate = merged.scores >= least
        merged = Scores(*(column[is_candidate] for column in merged))
    order = np.lexsort((merged.place_ids, merged.note_ids, -merged.scores))[:limit]
    return Scores(*(column[order] for column in merged))
