"""Query the term index: how many notes and blocks hold a term, which ones, and the best by BM25.

Scores are exact and the same for every engine: every note that holds a term of the query is scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simplemem.index import door
from simplemem.index.door import K1, AnyOf, Ids, Leg, NoteId, PlaceId, Term
from simplemem.index.terms.block_texts import (
    count_notes_with_same_text,
    find_repeated_blocks,
)
from simplemem.index.terms.cache import SegmentCache
from simplemem.index.terms.format import Sizes
from simplemem.index.terms.query_terms import Part, QueryTerms
from simplemem.index.terms.scoring import WeightedForm, best_matches, score_blocks, score_notes
from simplemem.index.terms.segment import Integers
from simplemem.index.terms.tokens import Phrase, phrases_of

if TYPE_CHECKING:
    from simplemem.index.connection import Connection


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
        score = score_notes if is_note else score_blocks
        scores = [score(part, weighted, query_terms, average_length, ids) for part in self._parts]
        return best_matches(scores, limit)

    def notes_with_same_text(self, blocks: Sequence[PlaceId]) -> dict[PlaceId, int]:
        """Return for each block with words in how many notes its text stands."""
        return count_notes_with_same_text(self._parts, blocks)

    def repeated_blocks(self, note_ids: Sequence[NoteId], min_notes: int) -> list[PlaceId]:
        """Return the blocks of some notes whose text `min_notes` or more notes have."""
        return find_repeated_blocks(self._parts, note_ids, min_notes)

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
) -> WeightedForm:
    """Return a form of a word with its weight, which is at most that of the word."""
    column = 0 if is_note else 1
    holders = max(counts[phrase][column], counts[word][column])
    return WeightedForm(phrase, door.idf(total, holders) * (K1 + 1))
