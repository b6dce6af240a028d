"""Score the notes and blocks of a segment by BM25."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simplemem.index.door import BODY_WEIGHT, K1, TITLE_WEIGHT, B, Ids, Leg, Match, as_values
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.format import FIRST_BLOCK, TITLE
from simplemem.index.terms.query_terms import Part, QueryTerms
from simplemem.index.terms.segment import Integers, expand, find_sorted
from simplemem.index.terms.tokens import Phrase


class WeightedForm(NamedTuple):
    """A form of a word of the query, and the most that it can add to a score."""

    phrase: Phrase
    max_score: float


Words = Sequence[Sequence[WeightedForm]]
"""The words of a query, each with its forms. Of these only the best counts in a note or block."""


class Scores(NamedTuple):
    """Notes or blocks of a segment, and their scores."""

    note_ids: Integers
    place_ids: Integers  # 0 for a note
    scores: Integers


def score_notes(
    part: Part, words: Words, terms: QueryTerms, average_length: float, ids: Ids
) -> Scores:
    """Score all notes of a segment that hold a word, among `ids`."""
    documents = part.segment.documents
    size = len(documents.note_ids)
    length_norms = _length_norms(documents.note_lengths, average_length)
    scores = np.zeros(size)
    for forms in words:
        scores_of_word = scores if len(forms) == 1 else np.zeros(size)
        for form in forms:
            by_note = terms.occurrences(part, form.phrase).by_note
            notes = by_note.note_indexes
            frequencies = TITLE_WEIGHT * by_note.in_title + BODY_WEIGHT * by_note.in_body
            added = form.max_score * (frequencies / (frequencies + length_norms[notes]))
            if scores_of_word is scores:
                scores[notes] += added
            else:
                scores_of_word[notes] = np.maximum(scores_of_word[notes], added)
        if scores_of_word is not scores:
            scores += scores_of_word

    found = np.flatnonzero((scores > 0) & _find_wanted(part, ids))
    return Scores(documents.note_ids[found], np.zeros(len(found), np.int64), scores[found])


def score_blocks(
    part: Part, words: Words, terms: QueryTerms, average_length: float, ids: Ids
) -> Scores:
    """Score all blocks of some notes that hold a word, or whose note has it in its title."""
    documents = part.segment.documents
    notes = np.flatnonzero(_find_wanted(part, ids))
    block_counts = documents.block_counts[notes].astype(np.int64)
    titles = documents.first_ordinals[notes]
    blocks = expand(titles + FIRST_BLOCK, block_counts)
    if not len(blocks):
        return Scores(*(np.zeros(0, np.int64) for _ in Scores._fields))

    lengths = documents.lengths[blocks] + np.repeat(documents.lengths[titles], block_counts)
    length_norms = _length_norms(lengths, average_length)
    scores = np.zeros(len(blocks))
    for forms in words:
        scores_of_word = np.zeros(len(blocks))
        for form in forms:
            occurrences = terms.occurrences(part, form.phrase)
            in_titles = _frequencies(occurrences.ordinals, occurrences.counts, titles + TITLE)
            in_blocks = _frequencies(occurrences.ordinals, occurrences.counts, blocks)
            frequencies = (
                TITLE_WEIGHT * np.repeat(in_titles, block_counts) + BODY_WEIGHT * in_blocks
            )
            added = form.max_score * (frequencies / (frequencies + length_norms))
            scores_of_word = np.maximum(scores_of_word, added)
        scores += scores_of_word

    found = np.flatnonzero(scores > 0)
    note_ids = np.repeat(documents.note_ids[notes], block_counts)
    numbers = blocks - np.repeat(titles + FIRST_BLOCK, block_counts)
    place_ids = (note_ids << SHIFT) | BLOCK | numbers
    return Scores(note_ids[found], place_ids[found], scores[found])


def _find_wanted(part: Part, ids: Ids) -> Integers:
    """Return for each note of a segment whether it is still indexed and among `ids`."""
    note_ids = part.segment.documents.note_ids
    is_wanted = np.ones(len(note_ids), bool) if ids is None else np.isin(note_ids, np.asarray(ids))
    if part.is_alive is not None:
        is_wanted &= part.is_alive
    return is_wanted


def _length_norms(lengths: Integers, average_length: float) -> Integers:
    """Return what BM25 adds to a frequency: long texts hold a word more often by chance."""
    return K1 * (1 - B) + K1 * B / max(average_length, 1e-9) * lengths


def _frequencies(ordinals: Integers, counts: Integers, wanted: Integers) -> Integers:
    """Return how often a phrase stands in each wanted ordinal; `ordinals` are ascending."""
    if not len(ordinals):
        return np.zeros(len(wanted), np.int64)
    indexes, is_there = find_sorted(ordinals, wanted)
    return np.where(is_there, counts[indexes], 0).astype(np.int64)


def best_matches(parts: Sequence[Scores], limit: int) -> Leg:
    """Return the best matches of all segments, best first; of equal ones the lower id first."""
    if not parts:
        return []
    note_ids, place_ids, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    if limit < len(scores):
        least = np.partition(scores, -limit)[-limit]
        is_candidate = scores >= least
        note_ids, place_ids, scores = (
            column[is_candidate] for column in (note_ids, place_ids, scores)
        )
    order = np.lexsort((place_ids, note_ids, -scores))[:limit]
    columns = (note_ids[order].tolist(), place_ids[order].tolist(), scores[order].tolist())
    return list(as_values(Match, zip(*columns, strict=True)))
