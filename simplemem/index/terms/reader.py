"""Query the term index: how many notes and blocks hold a term, which ones, and the best by BM25.

Scores are exact and the same for every engine: every note that holds one of the terms is scored.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from simplemem.index.api import (
    BLOCKS_COUNTED,
    AnyOf,
    BlockMatches,
    Ids,
    IndexQuery,
    Match,
    NoteId,
    NoteScores,
    PlaceId,
    Term,
)
from simplemem.index.engine import Connection
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.format import (
    BODY_WEIGHT,
    FIRST_BLOCK,
    K1,
    MIN_IDF,
    TITLE,
    TITLE_WEIGHT,
    B,
    Sizes,
)
from simplemem.index.terms.query_terms import Occurrences, Part, QueryTerms, SegmentCache
from simplemem.index.terms.segment import Array, Documents, expand, find_sorted
from simplemem.index.terms.tokens import Phrase, phrases_of

# In an index with more known notes, `rank` may leave out terms that very many notes hold.
MAX_NOTES_OF_SMALL_INDEX = 2_000


# -- scores

MaxScores = Sequence[Sequence[float]]
"""For each word of a query, the most that each of its forms adds to a score.

The first form is the word itself, others are its stems. In a note or block, only the best form of a
word counts.
"""


class Scores(NamedTuple):
    """Notes or blocks of a segment, and their BM25 scores.

    The three arrays have the same order.
    """

    note_ids: Array
    place_ids: Array  # 0 for a note
    scores: Array


class _Entries(NamedTuple):
    """How often the forms of a query's words are in notes or blocks.

    There is one entry per form and note (or block) that holds it, those of the first form first.
    """

    indexes: Array  # of notes or blocks
    frequencies: Array
    sizes: Sequence[int]  # the number of entries of each form


def length_norms(lengths: Array, average_length: float) -> Array:
    """Return what BM25 adds to a frequency for texts of these lengths in tokens.

    It grows with the length, because long texts hold a word more often by chance.
    """
    norm_of_empty = K1 * (1 - B)
    norm_per_token = K1 * B / max(average_length, 1e-9)
    return norm_of_empty + norm_per_token * lengths


def score_notes(
    documents: Documents,
    max_scores: MaxScores,
    occurrences: Sequence[Occurrences],
    norms: Array,
    selected: Array | None,
) -> Scores:
    """Return the BM25 scores of the notes of a segment that hold a word, by note index.

    Notes that are not selected are left out. `occurrences` has those of each form, in the order of
    `max_scores`; there must be a form. `norms` has what `length_norms` returns for each note of the
    segment. `selected` are the indexes of the notes to choose from, ascending; None for all.
    """
    by_note = [of_form.by_note for of_form in occurrences]
    indexes_by_form = [notes.note_indexes for notes in by_note]
    frequencies_by_form = [notes.frequencies for notes in by_note]
    entries = _Entries(
        np.concatenate(indexes_by_form),
        np.concatenate(frequencies_by_form),
        [len(indexes) for indexes in indexes_by_form],
    )
    norms_of_entries = norms[entries.indexes]
    scores = _sum_scores(max_scores, entries, norms_of_entries, len(documents.note_ids))

    if selected is None:
        notes = np.flatnonzero(scores)
    else:
        has_score = scores[selected] > 0
        notes = selected[has_score]
    note_ids = documents.note_ids[notes]
    place_ids = np.zeros(len(notes), np.int64)
    return Scores(note_ids, place_ids, scores[notes])


def score_blocks(
    documents: Documents,
    max_scores: MaxScores,
    occurrences: Sequence[Occurrences],
    average_length: float,
    notes: Array,
) -> Scores:
    """Return the BM25 scores of the blocks of some notes that hold a word.

    A block also holds the words of its note's title. `notes` are indexes in the segment, ascending.
    `occurrences` has those of each form, in the order of `max_scores`. `average_length` is that of
    a block with its title, in tokens.
    """
    block_counts = documents.block_counts[notes].astype(np.int64)
    first_blocks = np.cumsum(block_counts) - block_counts
    titles = documents.first_ordinals[notes]
    entries = _count_in_blocks(occurrences, notes, titles, first_blocks, block_counts)

    # A block is numbered among those of all the notes here, and a note by its index in `notes`.
    note_of_block = np.repeat(np.arange(len(notes)), block_counts)
    note_of_entry = note_of_block[entries.indexes]
    title_ordinals = titles[note_of_entry]
    numbers_in_note = entries.indexes - first_blocks[note_of_entry]
    ordinals = title_ordinals + FIRST_BLOCK + numbers_in_note
    lengths = documents.lengths_of(ordinals) + documents.lengths_of(title_ordinals)
    norms = length_norms(lengths, average_length)
    scores = _sum_scores(max_scores, entries, norms, len(note_of_block))

    blocks = np.flatnonzero(scores)
    notes_of_blocks = note_of_block[blocks]
    numbers_in_note = blocks - first_blocks[notes_of_blocks]
    note_ids = documents.note_ids[notes[notes_of_blocks]]
    place_ids = (note_ids << SHIFT) | BLOCK | numbers_in_note
    return Scores(note_ids, place_ids, scores[blocks])


def _count_in_blocks(
    occurrences: Sequence[Occurrences],
    notes: Array,
    titles: Array,
    first_blocks: Array,
    block_counts: Array,
) -> _Entries:
    """Return how often each form is in each block of some notes.

    An occurrence in the title counts in all blocks of the note, and there as several
    (TITLE_WEIGHT). All arguments but the first have an element per note: `titles` the ordinal of
    its title, `first_blocks` the number of blocks of the notes before it. Blocks are numbered among
    those of all these notes.
    """
    block_count = int(block_counts.sum())
    postings = [_postings_in(of_form, notes) for of_form in occurrences]
    ordinals, counts, note_rows = (np.concatenate(column) for column in zip(*postings, strict=True))
    posting_counts = [len(ordinals_of_form) for ordinals_of_form, _, _ in postings]
    forms = np.repeat(np.arange(len(postings)), posting_counts)

    # A key stands for a form and a block: the number of the form times the number of all blocks,
    # plus the index of the block.
    places = ordinals - titles[note_rows]
    keys_of_first_blocks = forms * block_count + first_blocks[note_rows]
    is_block = places >= FIRST_BLOCK
    keys = (keys_of_first_blocks + places - FIRST_BLOCK)[is_block]
    frequencies = BODY_WEIGHT * counts[is_block]

    is_title = places == TITLE
    if is_title.any():
        # A title is repeated for each block of its note, with the key of that block.
        blocks_of_titles = block_counts[note_rows[is_title]]
        keys_of_titles = expand(keys_of_first_blocks[is_title], blocks_of_titles)
        frequencies_of_titles = np.repeat(TITLE_WEIGHT * counts[is_title], blocks_of_titles)

        # The frequencies of a form in a title and in a block of its note are added up.
        all_keys = np.concatenate([keys, keys_of_titles])
        all_frequencies = np.concatenate([frequencies, frequencies_of_titles])
        keys, entry_of_key = np.unique(all_keys, return_inverse=True)
        frequencies = np.bincount(entry_of_key, all_frequencies)

    forms_of_entries, indexes = np.divmod(keys, max(1, block_count))
    sizes = np.bincount(forms_of_entries, minlength=len(postings))
    return _Entries(indexes, frequencies, sizes.tolist())


def _postings_in(occurrences: Occurrences, notes: Array) -> tuple[Array, Array, Array]:
    """Return the postings in some notes of a segment: ordinals, counts, and rows of notes.

    `notes` are indexes in the segment, ascending. The row of a note is its index in `notes`. Each
    array has an element per posting.
    """
    by_note = occurrences.by_note
    if not len(by_note.note_indexes):
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing
    indexes_in_by_note, is_there = find_sorted(by_note.note_indexes, notes)
    found = indexes_in_by_note[is_there]
    starts = by_note.first_postings[found]
    ends = by_note.first_postings[found + 1]
    posting_counts = ends - starts
    postings = expand(starts, posting_counts)
    ordinals = occurrences.ordinals[postings]
    counts = occurrences.counts[postings]
    note_rows = np.repeat(np.flatnonzero(is_there), posting_counts)
    return ordinals, counts, note_rows


def _sum_scores(max_scores: MaxScores, entries: _Entries, norms: Array, size: int) -> Array:
    """Return an array of the scores of all `size` notes or blocks; 0 for one that holds no form.

    `norms` has what BM25 adds to the frequency of each entry.
    """
    frequencies = entries.frequencies
    scores_of_forms = list(chain.from_iterable(max_scores))
    scores_of_entries = np.repeat(scores_of_forms, entries.sizes)
    scores = scores_of_entries * (frequencies / (frequencies + norms))
    indexes = entries.indexes
    if any(len(forms) > 1 for forms in max_scores):
        indexes, scores = _best_of_forms(max_scores, entries, scores, size)
    return np.bincount(indexes, scores, size)


def _best_of_forms(
    max_scores: MaxScores,
    entries: _Entries,
    scores: Array,
    size: int,
) -> tuple[Array, Array]:
    """Return one entry (index, score) per word and note or block: that of the word's best form.

    `scores` are those of the entries of all forms; `size` is the number of notes or blocks.
    """
    ends = np.cumsum([0, *entries.sizes])
    indexes_of_words = []
    scores_of_words = []
    first_form = 0
    for forms in max_scores:
        best = np.zeros(size)
        for form in range(first_form, first_form + len(forms)):
            chosen = slice(ends[form], ends[form + 1])
            indexes = entries.indexes[chosen]
            best_so_far = best[indexes]
            best[indexes] = np.maximum(best_so_far, scores[chosen])
        indexes = np.flatnonzero(best)
        indexes_of_words.append(indexes)
        scores_of_words.append(best[indexes])
        first_form += len(forms)
    return np.concatenate(indexes_of_words), np.concatenate(scores_of_words)


def best_scores(parts: Sequence[Scores], limit: int) -> Scores | None:
    """Return the `limit` best of several segments, best first.

    Of equal scores, the lower id comes first. None if `parts` is empty.
    """
    if not parts:
        return None
    note_ids, place_ids, scores = (np.concatenate(column) for column in zip(*parts, strict=True))

    # Partition first, so that only the best and their ties are sorted.
    if limit < len(scores):
        least = np.partition(scores, -limit)[-limit]
        is_candidate = scores >= least
        note_ids = note_ids[is_candidate]
        place_ids = place_ids[is_candidate]
        scores = scores[is_candidate]

    order = np.lexsort((place_ids, note_ids, -scores))
    best = order[:limit]
    return Scores(note_ids[best], place_ids[best], scores[best])


# -- reading

_BLOCK_NUMBER_MASK = BLOCK - 1
_NO_IDS = np.zeros(0, np.int64)


class TermIndex:
    """The term index in one state of the vault: of all segments, without deleted notes.

    Remembers the counts of terms, so it must not be used once somebody has written. `kind` is
    "note" or "block" in its methods. Methods raise Damaged for a segment that cannot be read.
    `notes` also counts notes without words in the index; `sizes` does not.
    """

    def __init__(self, db: Connection, cache: SegmentCache, known_notes: int) -> None:
        """`known_notes` also counts the notes that are left out of recall and so have no words."""
        self.notes = known_notes
        self._cache = cache
        self._note_counts: dict[Phrase, int] = {}
        self._block_counts: dict[Phrase, int] = {}
        self._note_norms: dict[int, Array] = {}  # what `length_norms` returns, by segment

        sql = "SELECT segment_id, notes, words, blocks, block_words FROM segments"
        segments: Any = db.execute(sql)
        sizes_of_segments = {number: sizes for number, *sizes in segments}

        # The 1 is the number of notes, so that the last four columns are the fields of `Sizes`.
        sql = "SELECT segment_id, note_id, 1, words, blocks, block_words FROM deleted_notes"
        deleted: Any = db.execute(sql)
        deleted_notes: dict[int, list[NoteId]] = {}
        deleted_sizes = []
        for number, note_id, *sizes in deleted:
            deleted_notes.setdefault(number, []).append(note_id)
            deleted_sizes.append(sizes)

        # Segments and their sizes include deleted notes.
        all_sizes = _sum_sizes(sizes_of_segments.values())
        sizes_of_deleted = _sum_sizes(deleted_sizes)
        self.sizes = Sizes(*map(operator.sub, all_sizes, sizes_of_deleted))

        self._parts = []
        numbers = list(sizes_of_segments)
        for segment in cache.segments(db, numbers, forgets_others=True):
            part = Part(segment, deleted_notes.get(segment.number, ()))
            self._parts.append(part)

    def blocks(self, _db: Connection) -> int:
        """Return how many blocks of indexed notes there are. Runs no statement."""
        return self.sizes.blocks

    def count(self, db: Connection, kind: str, term: Term) -> int:
        """Return how many notes ("note") or blocks ("block") have a term; 0 if it has no tokens."""
        phrases = phrases_of([term])
        if not phrases:
            return 0
        return self._count(db, kind, phrases)[phrases[0]]

    def count_notes(self, db: Connection, groups: Sequence[AnyOf]) -> list[int]:
        """Return for each group of terms how many notes hold at least one of them.

        It is 0 for a group without tokens.
        """
        # Counts of single phrases are remembered, and often need no postings. For several phrases,
        # the notes that hold any of them must be found.
        phrases_of_groups = [phrases_of(group) for group in groups]
        single = [phrases[0] for phrases in phrases_of_groups if len(phrases) == 1]
        counts = self._count(db, "note", single)

        alternatives = [phrases for phrases in phrases_of_groups if len(phrases) > 1]
        terms = self._read(db, chain.from_iterable(alternatives))

        totals = []
        for phrases in phrases_of_groups:
            if len(phrases) == 1:
                total = counts[phrases[0]]
            else:
                total = sum(len(ids) for ids in self._matching_notes(terms, phrases))
            totals.append(total)
        return totals

    def find_holders(
        self,
        db: Connection,
        groups: Sequence[AnyOf],
        note_ids: Sequence[NoteId],
    ) -> list[tuple[int, set[NoteId]]]:
        """Return per group of terms how many notes have one of them, and which of `note_ids` do.

        For a group without tokens, that is 0 and an empty set.
        """
        phrases_of_groups = [phrases_of(group) for group in groups]
        terms = self._read(db, chain.from_iterable(phrases_of_groups))
        candidates = np.asarray(list(note_ids), np.int64)

        results = []
        for phrases in phrases_of_groups:
            total = 0
            matches: set[NoteId] = set()
            for ids in self._matching_notes(terms, phrases):
                total += len(ids)
                is_match = np.isin(candidates, ids)
                matches.update(candidates[is_match].tolist())
            results.append((total, matches))
        return results

    def notes_with_all(self, db: Connection, sequences: Sequence[Sequence[str]]) -> list[NoteId]:
        """Return the ids of the notes that hold all of some sequences of words, ascending.

        The words of a sequence stand side by side. A sequence without tokens is ignored. Empty if
        none has tokens.
        """
        phrases = phrases_of([Term(tuple(words)) for words in sequences])
        terms = self._read(db, phrases)
        matches_by_phrase = []
        for phrase in phrases:
            matches: set[NoteId] = set()
            for ids in self._matching_notes(terms, [phrase]):
                matches.update(ids.tolist())
            matches_by_phrase.append(matches)

        if not matches_by_phrase:
            return []
        return sorted(set.intersection(*matches_by_phrase))

    def notes_with_similar_terms(
        self,
        db: Connection,
        word: str,
        max_edits: int,
        ids: Ids,
    ) -> list[tuple[str, list[NoteId]]]:
        """Return the terms that a misspelt word may mean, each with the notes that hold it.

        The most similar term comes first; the ids ascend. Only the notes `ids` count (None: all). A
        term that none of them holds is left out. See `find_similar_terms`.
        """
        # Few queries have a misspelt word.
        from simplemem.index.terms.similar import find_similar_terms

        similar = find_similar_terms(db, self._parts, word, max_edits)
        phrases = [Phrase((term,)) for term in similar]
        terms = self._read(db, phrases)
        results = []
        for term, phrase in zip(similar, phrases, strict=True):
            note_ids = np.concatenate([_NO_IDS, *self._matching_notes(terms, [phrase])])
            if ids is not None:
                note_ids = note_ids[np.isin(note_ids, ids)]
            if len(note_ids):
                results.append((term, sorted(note_ids.tolist())))
        return results

    def compounds(self, db: Connection, ending: str, min_length: int) -> list[str]:
        """Return terms that end with a word. See `find_compounds`."""
        from simplemem.index.terms.similar import find_compounds

        return find_compounds(db, self._parts, ending, min_length)

    def rank(
        self,
        db: Connection,
        question: IndexQuery,
        ids: Ids,
    ) -> tuple[NoteScores, BlockMatches | None, NoteScores]:
        """Return the scores of the best notes, their best blocks, and scores for pairs of words.

        `ids` are the notes to choose from; None for all. Blocks (None or empty: no match) and pairs
        are looked for only in the `rescore_depth` best notes, and in those that score as the last
        of them. A pair is two words of the query side by side. In a large index, terms that more
        than half of the notes hold are left out, unless fewer than `question.notes` notes hold the
        others.
        """
        all_terms = question.terms
        if not all_terms:
            return {}, None, {}

        terms: Sequence[Term] = self._without_frequent(db, "note", all_terms)
        notes = self.best_notes(db, terms, question.notes, ids)
        if len(notes) < question.notes and len(terms) < len(all_terms):
            # Too few notes hold the rarer words, so notes that hold only frequent ones are wanted
            # too.
            terms = all_terms
            notes = self.best_notes(db, terms, question.notes, ids)

        rescored = _first_with_ties(notes, question.rescore_depth)
        block_terms: Sequence[Term] = all_terms
        is_without_frequent = terms is not all_terms
        if is_without_frequent and rescored:
            block_terms = self._without_frequent(db, "block", all_terms)
        blocks = self.best_blocks(db, block_terms, question.blocks, rescored)

        pairs = _pairs_of_rare_words(question, terms)
        pair_matches: NoteScores = {}
        if pairs:
            pair_matches = self.best_notes(db, pairs, question.notes, rescored)
        return notes, blocks, pair_matches

    def _without_frequent(self, db: Connection, kind: str, terms: Sequence[Term]) -> Sequence[Term]:
        """Return the terms that at most half of the notes, or a quarter of the blocks, hold.

        BM25 gives the others little. The stems of a word that is left out are left out too. Returns
        `terms` itself in a small index, and if all or none of them are frequent.
        """
        if self.notes <= MAX_NOTES_OF_SMALL_INDEX:
            return terms

        if kind == "note":
            max_matches = self.notes // 2
        else:
            max_matches = self.blocks(db) // 4

        def is_frequent(term: Term) -> bool:
            return self.count(db, kind, term) > max_matches

        def is_stem_of_frequent(term: Term) -> bool:
            return bool(term.stem_of) and is_frequent(Term(term.stem_of))

        rarer = [term for term in terms if not is_frequent(term)]
        rarer = [term for term in rarer if not is_stem_of_frequent(term)]
        if not rarer:
            return terms
        return terms if len(rarer) == len(terms) else rarer

    def best_notes(
        self,
        db: Connection,
        terms: Sequence[Term],
        limit: int,
        ids: Ids,
    ) -> NoteScores:
        """Return the BM25 scores of the `limit` best notes by their terms, among `ids`, best first.

        `ids` None means all notes. Of the forms of a word only the best counts in a note, and none
        counts more than the word.
        """
        best = self._rank(db, "note", terms, limit, ids)
        if best is None:
            return {}
        return dict(zip(best.note_ids.tolist(), best.scores.tolist(), strict=True))

    def rank_blocks(
        self,
        db: Connection,
        terms: Sequence[Term],
        limit: int,
        ids: Ids,
    ) -> list[Match]:
        """Return the `limit` best blocks by their terms in the notes `ids` (None: all), best first.

        Forms of a word count as in `best_notes`.
        """
        best = self._rank(db, "block", terms, limit, ids)
        if best is None:
            return []
        note_ids = best.note_ids.tolist()
        place_ids = best.place_ids.tolist()
        scores = best.scores.tolist()
        return list(map(Match, note_ids, place_ids, scores))

    def best_blocks(
        self,
        db: Connection,
        terms: Sequence[Term],
        limit: int,
        ids: Ids,
    ) -> BlockMatches | None:
        """Return the `limit` best blocks in the notes `ids` (None: all) as arrays, best first.

        `BlockMatches` also says how many notes have the text of a block. That is counted only for
        the five best blocks of each note; it is 1 for others, and 0 for a counted block without
        words. Returns None or empty arrays if nothing matches.
        """
        best = self._rank(db, "block", terms, limit, ids)
        if best is None:
            return None
        text_counts = np.ones(len(best.note_ids), np.int64)
        is_counted = _ranks_within_notes(best.note_ids) < BLOCKS_COUNTED
        counted_places = best.place_ids[is_counted]
        text_counts[is_counted] = self.notes_with_same_text(counted_places)
        return BlockMatches(best.note_ids, best.place_ids, best.scores, text_counts)

    def _rank(
        self,
        db: Connection,
        kind: str,
        terms: Sequence[Term],
        limit: int,
        ids: Ids,
    ) -> Scores | None:
        """Return the `limit` best notes or blocks (`kind`) in the notes `ids`, best first.

        `ids` None means all notes. Returns None or empty arrays if nothing matches.
        """
        words, weights = _phrases_by_word(terms)
        has_no_note = ids is not None and not len(ids)
        if not words or has_no_note:
            return None

        phrases = list(chain.from_iterable(words))
        query_terms = self._read(db, phrases)
        max_scores = self._max_scores(db, kind, words, weights)
        note_ids = None
        if ids is not None:
            note_ids = np.sort(np.asarray(ids, np.int64))

        score = self._score_notes if kind == "note" else self._score_blocks
        scores_of_parts = []
        for part in self._parts:
            selected = part.select(note_ids)
            scores = score(part, max_scores, phrases, query_terms, selected)
            if scores is not None:
                scores_of_parts.append(scores)
        return best_scores(scores_of_parts, limit)

    def _max_scores(
        self,
        db: Connection,
        kind: str,
        words: Sequence[Sequence[Phrase]],
        weights: Sequence[float],
    ) -> MaxScores:
        """Return the most that each form of each word can add to the score of a note or block.

        No form adds more than its word, which is the first one. `weights` are those of the words.
        """
        phrases = list(chain.from_iterable(words))
        counts = self._count(db, kind, phrases)
        total = self.sizes.notes if kind == "note" else self.sizes.blocks

        max_scores: list[list[float]] = []
        for forms, weight in zip(words, weights, strict=True):
            count_of_word = counts[forms[0]]
            scores_of_forms = []
            for form in forms:
                match_count = max(counts[form], count_of_word)
                scores_of_forms.append(weight * _max_score(match_count, total))
            max_scores.append(scores_of_forms)
        return max_scores

    def _score_notes(
        self,
        part: Part,
        max_scores: MaxScores,
        phrases: Sequence[Phrase],
        terms: QueryTerms,
        selected: Array | None,
    ) -> Scores | None:
        """Score by BM25 the notes of a segment that hold a word, among those selected.

        `selected` are indexes of notes in the segment; None for all. `phrases` are the forms of all
        words in one flat sequence, in the order of the nested `max_scores`; `terms` has read them.
        Returns None if no note is selected, or none of the segment holds a word.
        """
        if selected is not None and not len(selected):
            return None

        occurrences = [terms.occurrences(part, phrase) for phrase in phrases]
        if not any(occurrences):
            return None

        segment = part.segment
        norms = self._note_norms.get(segment.number)
        if norms is None:
            average_length = self.sizes.words / max(1, self.sizes.notes)
            norms = length_norms(segment.documents.note_lengths, average_length)
            self._note_norms[segment.number] = norms
        return score_notes(segment.documents, max_scores, occurrences, norms, selected)

    def _score_blocks(
        self,
        part: Part,
        max_scores: MaxScores,
        phrases: Sequence[Phrase],
        terms: QueryTerms,
        selected: Array | None,
    ) -> Scores | None:
        """Score by BM25 the blocks that hold a word, in the selected notes of a segment.

        `selected` are indexes of notes in the segment; None for all. `phrases` are the forms of all
        words in one flat sequence, in the order of the nested `max_scores`; `terms` has read them.
        Returns None if no note is selected, or none of the segment holds a word.
        """
        documents = part.segment.documents
        if selected is None:
            selected = np.arange(len(documents.note_ids))
        if not len(selected):
            return None

        occurrences = [terms.occurrences(part, phrase) for phrase in phrases]
        if not any(occurrences):
            return None
        average_length = self.sizes.block_words / max(1, self.sizes.blocks)
        return score_blocks(documents, max_scores, occurrences, average_length, selected)

    def notes_with_same_text(self, place_ids: Array) -> Array:
        """Return for each block in how many notes its text is, its own included; 0 without words.

        It is also 0 for a block that is not in the index.
        """
        return _count_notes_with_same_text(self._parts, place_ids)

    def repeated_blocks(self, note_ids: Sequence[NoteId], min_notes: int) -> list[PlaceId]:
        """Return the ids of the blocks of some notes whose text at least `min_notes` notes have.

        Blocks without words never count. Notes that are not in the index are ignored.
        """
        return _find_repeated_blocks(self._parts, note_ids, min_notes)

    def _count(self, db: Connection, kind: str, phrases: Sequence[Phrase]) -> dict[Phrase, int]:
        """Return how many notes, or blocks (`kind`), hold each phrase. Counts are remembered.

        In a large index, the postings of a term may stay unread in a segment in which it is in more
        notes than half of those of the index.
        """
        counts = self._note_counts if kind == "note" else self._block_counts
        uncounted = [phrase for phrase in phrases if phrase not in counts]
        if uncounted:
            max_notes = None
            if self.notes > MAX_NOTES_OF_SMALL_INDEX:
                max_notes = self.notes // 2
            terms = self._read(db, uncounted, max_notes)
            count = terms.count_notes if kind == "note" else terms.count_blocks
            for phrase in uncounted:
                counts[phrase] = sum(count(part, phrase) for part in self._parts)
        return {phrase: counts[phrase] for phrase in phrases}

    def _read(
        self,
        db: Connection,
        phrases: Iterable[Phrase],
        max_notes: int | None = None,
    ) -> QueryTerms:
        """Return the terms of phrases, read from all segments.

        With `max_notes`, see `QueryTerms.read`.
        """
        terms = QueryTerms(self._cache)
        terms.read(db, self._parts, phrases, max_notes)
        return terms

    def _matching_notes(self, terms: QueryTerms, phrases: Sequence[Phrase]) -> Iterator[Array]:
        """Yield per segment the ids of the notes that hold any of some phrases.

        Deleted notes are left out.
        """
        for part in self._parts:
            documents = part.segment.documents
            is_match = np.zeros(len(documents.note_ids), bool)
            for phrase in phrases:
                by_note = terms.occurrences(part, phrase).by_note
                is_match[by_note.note_indexes] = True
            is_match[part.deleted] = False
            yield documents.note_ids[is_match]


def _sum_sizes(rows: Iterable[Sequence[int]]) -> Sizes:
    """Return the sums of the columns of rows with the fields of `Sizes`; zeros without rows."""
    columns = zip(Sizes(0, 0, 0, 0), *rows, strict=True)
    return Sizes(*map(sum, columns))


def _pairs_of_rare_words(question: IndexQuery, terms: Sequence[Term]) -> list[Term]:
    """Return the query's pairs that contain no word of a term that was left out of `terms`."""
    frequent_words: set[str] = set()
    for term in question.terms:
        if term not in terms:
            frequent_words.update(term.words)
    return [pair for pair in question.pairs if frequent_words.isdisjoint(pair.words)]


def _phrases_by_word(terms: Sequence[Term]) -> tuple[list[list[Phrase]], list[float]]:
    """Return per word of a query the phrases of its forms, the word itself first, and its weight.

    Words without tokens are left out.
    """
    words = []
    weights = []
    for forms in group_by_word(terms):
        phrases = phrases_of(forms)
        if phrases:
            words.append(phrases)
            weights.append(forms[0].weight)
    return words, weights


def _ranks_within_notes(note_ids: Array) -> Array:
    """Return for each block, sorted best first, how many blocks of its note come before it."""
    # Sorted by note, a block's rank is its distance from the first block of its note.
    order = np.argsort(note_ids, kind="stable")
    sorted_ids = note_ids[order]
    first_of_note = np.searchsorted(sorted_ids, sorted_ids)
    sorted_ranks = np.arange(len(note_ids)) - first_of_note
    ranks = np.empty(len(note_ids), np.int64)
    ranks[order] = sorted_ranks
    return ranks


def _max_score(match_count: int, total: int) -> float:
    """Return the most that a term held by `match_count` of `total` notes or blocks can add."""
    return idf(total, match_count) * (K1 + 1)


def _first_with_ties(matches: NoteScores, count: int) -> Sequence[NoteId]:
    """Return the ids of the first `count` notes, and of those that score as the last of them.

    `matches` is sorted, best first. Without the ties, the order in which notes were indexed would
    decide which of them are in. Scores are compared with nine decimals. Empty if `count` is 0.
    """
    note_ids = list(matches)
    if not 0 < count < len(note_ids):
        return note_ids[:count]

    scores = list(matches.values())
    end = count
    last_score = round(scores[count - 1], 9)
    while end < len(scores) and round(scores[end], 9) == last_score:
        end += 1
    return note_ids[:end]


def group_by_word(terms: Sequence[Term]) -> list[list[Term]]:
    """Return terms grouped by the word that they are forms of: first the word, then its stems.

    A stem whose word is not among the terms is a group of its own.
    """
    groups = {(term.words, term.beginning): [term] for term in terms if not term.stem_of}
    for term in terms:
        if not term.stem_of:
            continue
        word = term.stem_of, False  # stems belong to whole words, not to a prefix
        key = word if word in groups else (term.words, False)
        groups.setdefault(key, []).append(term)
    return list(groups.values())


def idf(total: int, match_count: int) -> float:
    """Return the weight of a term that `match_count` of `total` notes or blocks hold.

    It is computed as in FTS5. The rarer, the larger; never below MIN_IDF.
    """
    odds = (total - match_count + 0.5) / (match_count + 0.5)
    return max(math.log(odds), MIN_IDF)


# -- text that several notes have


def _count_notes_with_same_text(parts: Sequence[Part], place_ids: Array) -> Array:
    """Return for each block in how many notes its text is, its own included; 0 without words.

    It is also 0 for a block that is not in the index.
    """
    note_ids = place_ids >> SHIFT
    numbers = place_ids & _BLOCK_NUMBER_MASK
    keys = np.zeros(len(place_ids), np.uint64)
    owners = np.full(len(place_ids), -1)  # of each block the number in `parts` of its segment
    for number, part in enumerate(parts):
        documents = part.segment.documents
        notes, is_there = _find_notes(part, note_ids)
        is_there &= numbers < documents.block_counts[notes]
        first_blocks = documents.first_blocks[notes[is_there]]
        blocks = first_blocks + numbers[is_there]
        keys[is_there] = documents.text_keys[blocks]
        owners[is_there] = number

    counts = _count_notes(parts, keys, owners)
    return np.where(keys != 0, counts, 0)


def _find_repeated_blocks(
    parts: Sequence[Part],
    note_ids: Sequence[NoteId],
    min_notes: int,
) -> list[PlaceId]:
    """Return the ids of the blocks of some notes whose text at least `min_notes` notes have."""
    ids_to_find = np.asarray(note_ids, np.int64)
    place_ids = []
    keys = []
    owners = []
    for number, part in enumerate(parts):
        documents = part.segment.documents
        notes, is_there = _find_notes(part, ids_to_find)
        notes = notes[is_there]
        block_counts = documents.block_counts[notes].astype(np.int64)
        first_blocks = documents.first_blocks[notes]
        indexes = expand(first_blocks, block_counts)
        numbers = indexes - np.repeat(first_blocks, block_counts)
        ids = np.repeat(documents.note_ids[notes], block_counts)
        place_ids.append((ids << SHIFT) | BLOCK | numbers)
        keys.append(documents.text_keys[indexes])
        owners.append(np.full(len(indexes), number))
    if not place_ids:
        return []

    joined_keys = np.concatenate(keys)
    joined_place_ids = np.concatenate(place_ids)
    counts = _count_notes(parts, joined_keys, np.concatenate(owners))
    is_repeated = (joined_keys != 0) & (counts >= min_notes)
    repeated: list[PlaceId] = joined_place_ids[is_repeated].tolist()
    return repeated


def _find_notes(part: Part, note_ids: Array) -> tuple[Array, Array]:
    """Return the index of each note in a segment, and a mask of the notes that are there.

    Deleted notes are not there. The index of a note that is not there is valid but meaningless.
    """
    documents = part.segment.documents
    indexes, is_there = find_sorted(documents.sorted_note_ids, note_ids)
    notes = documents.note_order[indexes]
    if part.deleted_notes:
        is_there &= part.is_indexed[notes]
    return notes, is_there


def _count_notes(parts: Sequence[Part], keys: Array, owners: Array) -> Array:
    """Return for each key of a text how many indexed notes have a block with that text.

    What is returned for the key 0 means nothing. `owners` has the number in `parts` of the segment
    that each key comes from. In this segment at least one note has the text, so only texts that
    several of its notes have are looked up.
    """
    counts = np.zeros(len(keys), np.int64)
    for number, part in enumerate(parts):
        documents = part.segment.documents
        is_own = owners == number
        own_counts = _look_up(*documents.repeated_texts, keys[is_own])
        counts[is_own] += np.maximum(own_counts, 1)
        if not is_own.all():
            counts[~is_own] += _count_notes_of_other(documents, keys[~is_own])
        if part.deleted_notes:
            counts -= _look_up(*part.deleted_texts, keys)
    return counts


def _count_notes_of_other(documents: Documents, keys: Array) -> Array:
    """Return how many notes of a segment, also deleted ones, have each of some text keys."""
    if not len(documents.text_keys_once):
        return np.zeros(len(keys), np.int64)
    _, is_there = find_sorted(documents.text_keys_once, keys)
    repeated_counts = _look_up(*documents.repeated_texts, keys)
    return np.maximum(repeated_counts, is_there)


def _look_up(sorted_keys: Array, counts: Array, keys: Array) -> Array:
    """Return the count of each of `keys`; 0 for one that is not among `sorted_keys`.

    `counts` are those of `sorted_keys`.
    """
    if not len(sorted_keys):
        return np.zeros(len(keys), np.int64)
    indexes, is_there = find_sorted(sorted_keys, keys)
    return np.where(is_there, counts[indexes], 0)
