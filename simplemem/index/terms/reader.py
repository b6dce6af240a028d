"""Query the term index: how many notes and blocks hold a term, which ones, and the best by BM25.

Scores are exact and the same for every engine: every note that holds one of the terms is scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simplemem.index import door
from simplemem.index.door import (
    BODY_WEIGHT,
    K1,
    TITLE_WEIGHT,
    AnyOf,
    B,
    Ids,
    Leg,
    Match,
    NoteId,
    PlaceId,
    Term,
    as_values,
)
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.format import FIRST_BLOCK, TITLE, Sizes
from simplemem.index.terms.query_terms import Part, QueryTerms, SegmentCache
from simplemem.index.terms.segment import Integers, expand, find_sorted
from simplemem.index.terms.tokens import Phrase, phrases_of

if TYPE_CHECKING:
    from simplemem.index.connection import Connection

_BLOCK_NUMBER_MASK = BLOCK - 1


class TermIndex:
    """The term index in one state of the vault. Keeps counts, which are good until somebody writes."""

    def __init__(self, db: Connection, cache: SegmentCache, known_notes: int) -> None:
        """`known_notes` also counts the notes that are left out of recall and so have no words."""
        self.notes = known_notes
        self._cache = cache
        self._counts: dict[Phrase, tuple[int, int]] = {}  # of notes, and of blocks

        sql = "SELECT segment_id, notes, words, blocks, block_words FROM segments"
        segments: Any = db.execute(sql)
        sql = "SELECT segment_id, note_id, 1, words, blocks, block_words FROM deleted_notes"
        deleted: Any = db.execute(sql)
        sizes_of_segments = {number: sizes for number, *sizes in segments}
        deleted_notes: dict[int, list[NoteId]] = {}
        deleted_sizes = []
        for number, note_id, *sizes in deleted:
            deleted_notes.setdefault(number, []).append(note_id)
            deleted_sizes.append(sizes)

        totals = np.sum([(0, 0, 0, 0), *sizes_of_segments.values()], axis=0)
        removed = np.sum([(0, 0, 0, 0), *deleted_sizes], axis=0)
        self.sizes = Sizes(*(totals - removed).tolist())
        self._parts = []
        for segment in cache.segments(db, list(sizes_of_segments), forgets_others=True):
            ids = deleted_notes.get(segment.number)
            is_alive = None if ids is None else ~np.isin(segment.documents.note_ids, ids)
            self._parts.append(Part(segment, is_alive))

    def blocks(self, _db: Connection) -> int:
        """Return how many blocks there are."""
        return self.sizes.blocks

    def count(self, db: Connection, kind: str, term: Term) -> int:
        """Return how many notes, or blocks if `kind` is "block", hold a term."""
        phrases = phrases_of([term])
        if not phrases:
            return 0
        notes, blocks = self._count(db, phrases)[phrases[0]]
        return notes if kind == "note" else blocks

    def vocabulary(self, db: Connection, groups: Sequence[AnyOf]) -> list[int]:
        """Return for each group of terms how many notes hold one of them."""
        phrases_of_groups = [phrases_of(group) for group in groups]
        single = [phrases[0] for phrases in phrases_of_groups if len(phrases) == 1]
        counts = self._count(db, single)
        terms = self._read(
            db, [phrase for phrases in phrases_of_groups if len(phrases) > 1 for phrase in phrases]
        )
        return [
            counts[phrases[0]][0]
            if len(phrases) == 1
            else sum(len(ids) for ids in self._holders(terms, phrases))
            for phrases in phrases_of_groups
        ]

    def holding(
        self, db: Connection, groups: Sequence[AnyOf], some: Sequence[NoteId]
    ) -> list[tuple[int, set[NoteId]]]:
        """Return for each group of terms how many notes hold one of them, and which of `some` do."""
        phrases_of_groups = [phrases_of(group) for group in groups]
        terms = self._read(db, [phrase for phrases in phrases_of_groups for phrase in phrases])
        wanted = np.asarray(list(some), np.int64)
        found = []
        for phrases in phrases_of_groups:
            holders = list(self._holders(terms, phrases))
            total = sum(len(ids) for ids in holders)
            among = {id_ for ids in holders for id_ in wanted[np.isin(wanted, ids)].tolist()}
            found.append((total, among))
        return found

    def notes_with_all(self, db: Connection, sequences: Sequence[Sequence[str]]) -> list[NoteId]:
        """Return the notes that hold all of these sequences of words, word for word."""
        phrases = phrases_of([Term(tuple(words)) for words in sequences])
        terms = self._read(db, phrases)
        holders_of_phrases = [
            {id_ for ids in self._holders(terms, [phrase]) for id_ in ids.tolist()}
            for phrase in phrases
        ]
        return sorted(set.intersection(*holders_of_phrases)) if holders_of_phrases else []

    rank = door.rank

    def leg(self, db: Connection, kind: str, terms: Sequence[Term], limit: int, ids: Ids) -> Leg:
        """Return the best notes or blocks (`kind`) by their terms, among `ids`, the best first.

        Of the forms of a word only the best counts in a note, and
        none counts more than the word.
        """
        if ids is not None and not len(ids):
            return []
        words = [phrases for forms in door.by_word(terms) if (phrases := phrases_of(forms))]
        phrases = [phrase for forms in words for phrase in forms]
        counts = self._count(db, phrases)
        query_terms = self._read(db, phrases)

        is_note = kind == "note"
        total = self.sizes.notes if is_note else self.sizes.blocks
        tokens = self.sizes.words if is_note else self.sizes.block_words
        average_length = tokens / max(1, total)
        weighted = [
            [_weighted(phrase, forms[0], counts, total, is_note=is_note) for phrase in forms]
            for forms in words
        ]
        score = _score_notes if is_note else _score_blocks
        scores = [score(part, weighted, query_terms, average_length, ids) for part in self._parts]
        return _best_matches(scores, limit)

    def notes_with_same_text(self, blocks: Sequence[PlaceId]) -> dict[PlaceId, int]:
        """Return for each block with words in how many notes its text stands."""
        return _count_notes_with_same_text(self._parts, blocks)

    def repeated_blocks(self, note_ids: Sequence[NoteId], min_notes: int) -> list[PlaceId]:
        """Return the blocks of some notes whose text `min_notes` or more notes have."""
        return _find_repeated_blocks(self._parts, note_ids, min_notes)

    def _count(self, db: Connection, phrases: Sequence[Phrase]) -> dict[Phrase, tuple[int, int]]:
        """Return how many notes and blocks hold each phrase.

        Of terms that very many notes hold, the postings are not read for this.
        """
        unknown = [phrase for phrase in phrases if phrase not in self._counts]
        if unknown:
            max_notes = self.notes // 2 if self.notes > door.FEW_NOTES else None
            terms = self._read(db, unknown, max_notes)
            for phrase in unknown:
                of_parts = [terms.count(part, phrase) for part in self._parts]
                notes = sum(notes for notes, _ in of_parts)
                blocks = sum(blocks for _, blocks in of_parts)
                self._counts[phrase] = notes, blocks
        return {phrase: self._counts[phrase] for phrase in phrases}

    def _read(
        self, db: Connection, phrases: Iterable[Phrase], max_notes: int | None = None
    ) -> QueryTerms:
        terms = QueryTerms(self._cache)
        terms.read(db, self._parts, phrases, max_notes)
        return terms

    def _holders(self, terms: QueryTerms, phrases: Sequence[Phrase]) -> Iterator[Integers]:
        """Yield the ids of the notes that hold any of some phrases, segment by segment."""
        for part in self._parts:
            documents = part.segment.documents
            is_holder = np.zeros(len(documents.note_ids), bool)
            for phrase in phrases:
                is_holder[terms.occurrences(part, phrase).by_note.note_indexes] = True
            if part.is_alive is not None:
                is_holder &= part.is_alive
            yield documents.note_ids[is_holder]


def _weighted(
    phrase: Phrase,
    word: Phrase,
    counts: dict[Phrase, tuple[int, int]],
    total: int,
    *,
    is_note: bool,
) -> _WeightedForm:
    """Return a form of a word with its weight, which is at most that of the word."""
    column = 0 if is_note else 1
    holders = max(counts[phrase][column], counts[word][column])
    return _WeightedForm(phrase, door.idf(total, holders) * (K1 + 1))


# -- scores


class _WeightedForm(NamedTuple):
    """A form of a word of the query, and the most that it can add to a score."""

    phrase: Phrase
    max_score: float


_Words = Sequence[Sequence[_WeightedForm]]
"""The words of a query, each with its forms. Of these only the best counts in a note or block."""


class _Scores(NamedTuple):
    """Notes or blocks of a segment, and their scores."""

    note_ids: Integers
    place_ids: Integers  # 0 for a note
    scores: Integers


def _score_notes(
    part: Part, words: _Words, terms: QueryTerms, average_length: float, ids: Ids
) -> _Scores:
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
    return _Scores(documents.note_ids[found], np.zeros(len(found), np.int64), scores[found])


def _score_blocks(
    part: Part, words: _Words, terms: QueryTerms, average_length: float, ids: Ids
) -> _Scores:
    """Score all blocks of some notes that hold a word, or whose note has it in its title."""
    documents = part.segment.documents
    notes = np.flatnonzero(_find_wanted(part, ids))
    block_counts = documents.block_counts[notes].astype(np.int64)
    titles = documents.first_ordinals[notes]
    blocks = expand(titles + FIRST_BLOCK, block_counts)
    if not len(blocks):
        return _Scores(*(np.zeros(0, np.int64) for _ in _Scores._fields))

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
    return _Scores(note_ids[found], place_ids[found], scores[found])


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


def _best_matches(parts: Sequence[_Scores], limit: int) -> Leg:
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


# -- text that several notes have


def _count_notes_with_same_text(
    parts: Sequence[Part], blocks: Sequence[PlaceId]
) -> dict[PlaceId, int]:
    """Return for each block in how many notes its text stands. Blocks without words are left out."""
    place_ids = np.asarray(blocks, np.int64)
    note_ids = place_ids >> SHIFT
    numbers = place_ids & _BLOCK_NUMBER_MASK
    keys = np.zeros(len(place_ids), np.uint64)
    for part in parts:
        notes, is_here = _find_notes(part, note_ids)
        is_here &= numbers < part.segment.documents.block_counts[notes]
        indexes = part.segment.documents.first_blocks[notes] + numbers
        keys[is_here] = part.segment.documents.text_keys[indexes[is_here]]

    counts = _count_notes(parts, keys)
    found = keys != 0
    return dict(zip(place_ids[found].tolist(), counts[found].tolist(), strict=True))


def _find_repeated_blocks(
    parts: Sequence[Part], note_ids: Sequence[NoteId], min_notes: int
) -> list[PlaceId]:
    """Return the blocks of some notes whose text `min_notes` or more notes have."""
    wanted = np.asarray(note_ids, np.int64)
    place_ids = []
    keys = []
    for part in parts:
        documents = part.segment.documents
        notes, is_here = _find_notes(part, wanted)
        notes = notes[is_here]
        block_counts = documents.block_counts[notes].astype(np.int64)
        indexes = expand(documents.first_blocks[notes], block_counts)
        numbers = indexes - np.repeat(documents.first_blocks[notes], block_counts)
        ids = np.repeat(documents.note_ids[notes], block_counts)
        place_ids.append((ids << SHIFT) | BLOCK | numbers)
        keys.append(documents.text_keys[indexes])
    if not place_ids:
        return []

    every_key = np.concatenate(keys)
    is_repeated = (every_key != 0) & (_count_notes(parts, every_key) >= min_notes)
    repeated: list[PlaceId] = np.concatenate(place_ids)[is_repeated].tolist()
    return repeated


def _find_notes(part: Part, note_ids: Integers) -> tuple[Integers, Integers]:
    """Return the index of each note in a segment, and whether it is there and still indexed."""
    documents = part.segment.documents
    indexes, is_here = find_sorted(documents.sorted_note_ids, note_ids)
    notes = documents.note_order[indexes]
    if part.is_alive is not None:
        is_here &= part.is_alive[notes]
    return notes, is_here


def _count_notes(parts: Sequence[Part], keys: Integers) -> Integers:
    """Return for each key how many notes have a block with it."""
    counts = np.zeros(len(keys), np.int64)
    for part in parts:
        documents = part.segment.documents
        counts += _look_up(*documents.notes_by_text, keys)
        if part.is_alive is not None:
            counts -= _look_up(*documents.count_texts(~part.is_alive), keys)
    return counts


def _look_up(sorted_keys: Integers, counts: Integers, keys: Integers) -> Integers:
    if not len(sorted_keys):
        return np.zeros(len(keys), np.int64)
    indexes, is_there = find_sorted(sorted_keys, keys)
    return np.where(is_there, counts[indexes], 0)
