"""Read the terms of a query from all segments.

What is not in memory is read with one statement, and one more per prefix.

Segments never change, so what a process has in memory stays good until it is forgotten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from simplemem.index.engine import LAST, Connection, Damaged, IntegerList, TextList, Value
from simplemem.index.terms.format import BODY_WEIGHT, FIRST_BLOCK, TITLE, TITLE_WEIGHT
from simplemem.index.terms.segment import (
    Documents,
    Integers,
    Postings,
    decode_positions,
    decode_postings,
    expand,
    find_sorted,
)
from simplemem.index.terms.tokens import Phrase

# -- occurrences

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


# -- terms of a query

_MAX_BYTES = 48_000_000  # of occurrences in memory


# -- what a process keeps in memory


class TermFacts(NamedTuple):
    """What is known of a single term in a segment.

    `occurrences` is None if no note holds the term, or if its postings have not been read. Then
    `blocks` is known.
    """

    notes: int
    blocks: int | None
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

        With `forgets_others`, these are all segments, and what is known of others is forgotten.
        Raises Damaged if one cannot be read.
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
    sql = f"""
        SELECT segment_id, documents, packed FROM segments
        WHERE {db.dialect.in_integers("segment_id", "$1")}"""
    rows: Any = db.execute(sql, (IntegerList(numbers),)).fetchall()
    return [
        Segment(
            number,
            Documents.unpack(documents),
            None if packed is None else Postings.unpack(packed),
        )
        for number, documents, packed in rows
    ]


# -- the terms of a query

_ABSENT = TermFacts(0, 0, None)


@dataclass(frozen=True)
class Part:
    """A segment in one state of the index."""

    segment: Segment
    deleted_notes: Sequence[int] = ()  # ids of notes that are no longer indexed

    @cached_property
    def deleted(self) -> Integers:
        """The indexes of the notes that are no longer indexed, ascending."""
        documents = self.segment.documents
        wanted = np.asarray(self.deleted_notes, np.int64)
        rows, is_there = find_sorted(documents.sorted_note_ids, wanted)
        return np.sort(documents.note_order[rows[is_there]])

    @cached_property
    def is_indexed(self) -> Integers:
        """For each note of the segment whether it is still indexed."""
        is_indexed = np.ones(len(self.segment.documents.note_ids), bool)
        is_indexed[self.deleted] = False
        return is_indexed

    @cached_property
    def deleted_texts(self) -> tuple[Integers, Integers]:
        """The keys of the texts of deleted notes, and how many of these notes have each."""
        return self.segment.documents.count_texts(~self.is_indexed)

    def select(self, note_ids: Integers | None) -> Integers | None:
        """Return the indexes of those of some notes that are still indexed, ascending.

        Of all notes if `note_ids` is None; the result is None if all notes of the segment are
        meant. `note_ids` are ascending.
        """
        if note_ids is None:
            return np.flatnonzero(self.is_indexed) if len(self.deleted_notes) else None

        documents = self.segment.documents
        if len(note_ids) > len(documents.note_ids):
            _, is_there = find_sorted(note_ids, documents.note_ids)
            indexes = np.flatnonzero(is_there)
        else:
            rows, is_there = find_sorted(documents.sorted_note_ids, note_ids)
            indexes = np.sort(documents.note_order[rows[is_there]])
        if len(self.deleted_notes):
            indexes = indexes[self.is_indexed[indexes]]
        return indexes


class _Need(NamedTuple):
    """What a query needs of a term."""

    positions: bool
    max_notes: int | None  # if more notes of a segment hold the term, only their number

    def is_met_by(self, facts: TermFacts, part: Part) -> bool:
        """Return whether enough of a term is known in a segment."""
        if facts.notes == 0:
            return True
        if facts.occurrences is None:
            is_frequent = self.max_notes is not None and facts.notes > self.max_notes
            return is_frequent and not self.positions and not part.deleted_notes
        return not self.positions or facts.occurrences.positions is not None


class QueryTerms:
    """The terms of one query in all segments, even if the cache forgets them meanwhile."""

    def __init__(self, cache: SegmentCache) -> None:
        self._cache = cache
        self._facts: dict[tuple[int, str], TermFacts] = {}
        self._of_prefix: dict[tuple[int, str], list[Occurrences]] = {}

    def occurrences(self, part: Part, phrase: Phrase) -> Occurrences:
        """Return where a phrase stands in a segment."""
        number, documents, _ = part.segment
        if len(phrase.tokens) == 1 and not phrase.is_prefix:
            return self._of_token(part, phrase, 0)

        known = self._cache.phrase(number, phrase)
        if known is None:
            words = [self._of_token(part, phrase, index) for index in range(len(phrase.tokens))]
            known = words[0] if len(words) == 1 else side_by_side(documents, words)
            self._cache.keep_phrase(number, phrase, known)
        return known

    def count_notes(self, part: Part, phrase: Phrase) -> int:
        """Return how many notes of a segment that are still indexed hold a phrase."""
        facts = self._facts_of(part, phrase)
        if facts is not None and not part.deleted_notes:
            return facts.notes

        notes = self.occurrences(part, phrase).by_note.note_indexes
        if not part.deleted_notes or not len(notes):
            return len(notes)
        _, is_holder = find_sorted(notes, part.deleted)
        return len(notes) - int(np.count_nonzero(is_holder))

    def count_blocks(self, part: Part, phrase: Phrase) -> int:
        """Return how many blocks of notes that are still indexed hold a phrase."""
        facts = self._facts_of(part, phrase)
        if facts is not None and facts.blocks is not None and not part.deleted_notes:
            return facts.blocks

        occurrences = self.occurrences(part, phrase)
        blocks = occurrences.block_count
        if part.deleted_notes:
            blocks -= occurrences.count_blocks_of(part.deleted)
        return blocks

    def _facts_of(self, part: Part, phrase: Phrase) -> TermFacts | None:
        """Return what is known of a phrase of a single term; None for others."""
        if len(phrase.tokens) > 1 or phrase.is_prefix:
            return None
        return self._facts[part.segment.number, phrase.tokens[0]]

    def _of_token(self, part: Part, phrase: Phrase, index: int) -> Occurrences:
        number, documents, _ = part.segment
        token = phrase.tokens[index]
        if phrase.is_prefix and index == len(phrase.tokens) - 1:
            return union_of(documents, self._of_prefix[number, token])
        facts = self._facts[number, token]
        if facts.notes == 0:
            return union_of(documents, ())
        assert facts.occurrences is not None, "only the count of this term was read"
        return facts.occurrences

    # -- reading

    def read(
        self,
        db: Connection,
        parts: Sequence[Part],
        phrases: Iterable[Phrase],
        max_notes: int | None = None,
    ) -> None:
        """Read the terms of phrases.

        Of a phrase of one term that more than `max_notes` notes of a segment hold, the postings may
        stay unread: then only `count` can be called.
        """
        needs: dict[str, _Need] = {}
        prefixes: dict[str, _Need] = {}
        for phrase in phrases:
            need = _Need(len(phrase.tokens) > 1, max_notes)
            for index, token in enumerate(phrase.tokens):
                is_prefix = phrase.is_prefix and index == len(phrase.tokens) - 1
                wanted = prefixes if is_prefix else needs
                if token not in wanted or need.positions:
                    wanted[token] = need

        with_rows = [part for part in parts if part.segment.packed is None]
        if with_rows:
            self._read_rows(db, with_rows, needs, prefixes)
        for part in parts:
            if part.segment.packed is not None:
                self._unpack(part, needs, prefixes)

    def _read_rows(
        self,
        db: Connection,
        parts: Sequence[Part],
        needs: dict[str, _Need],
        prefixes: dict[str, _Need],
    ) -> None:
        lacking = {
            term: need
            for term, need in needs.items()
            if not all(self._find(part, term, need) for part in parts)
        }
        # All statements are sent before the first answer is read: one round trip to a server.
        answer = _select_terms(db, parts, lacking) if lacking else ()
        answers_of_prefixes = [
            (prefix, _select_prefix(db, parts, prefix, need)) for prefix, need in prefixes.items()
        ]

        part_of = {part.segment.number: part for part in parts}
        rows = {(number, term): row for number, term, *row in answer}
        for term, need in lacking.items():
            for part in parts:
                if self._find(part, term, need):
                    continue
                row = rows.get((part.segment.number, term))
                self._keep(part, term, _ABSENT if row is None else _facts_of(part, *row))
        for prefix, answer_of_prefix in answers_of_prefixes:
            self._of_prefix |= {(number, prefix): [] for number in part_of}
            for number, _, notes, blocks, postings, positions in answer_of_prefix:
                facts = _facts_of(part_of[number], notes, blocks, postings, positions)
                assert facts.occurrences is not None
                self._of_prefix[number, prefix].append(facts.occurrences)

    def _find(self, part: Part, term: str, need: _Need) -> bool:
        """Return whether enough of a term is in memory."""
        key = part.segment.number, term
        facts = self._facts.get(key) or self._cache.term(*key)
        if facts is None or not need.is_met_by(facts, part):
            return False
        self._facts[key] = facts
        return True

    def _unpack(self, part: Part, needs: dict[str, _Need], prefixes: dict[str, _Need]) -> None:
        """Take terms from a segment whose terms are all in memory."""
        packed = part.segment.packed
        assert packed is not None
        for term, need in needs.items():
            if self._find(part, term, need):
                continue
            index = packed.index_of(term)
            self._keep(part, term, _ABSENT if index is None else _unpacked_facts(part, index))
        for prefix in prefixes:
            self._of_prefix[part.segment.number, prefix] = [
                _unpacked_occurrences(part, index) for index in packed.indexes_of_prefix(prefix)
            ]

    def _keep(self, part: Part, term: str, facts: TermFacts) -> None:
        self._facts[part.segment.number, term] = facts
        self._cache.keep_term(part.segment.number, term, facts)


def _select_terms(db: Connection, parts: Sequence[Part], needs: dict[str, _Need]) -> Iterable[Any]:
    """Query the rows of terms. Postings and positions that are not needed are NULL."""
    has_deleted_notes = db.dialect.in_integers("segment_id", "$2")
    needs_positions = db.dialect.in_texts("term", "$3")
    sql = f"""
        SELECT segment_id, term, notes, blocks,
               CASE WHEN notes <= $1 OR {has_deleted_notes} OR {needs_positions}
                    THEN postings END,
               CASE WHEN {needs_positions} THEN positions END
        FROM terms
        WHERE {db.dialect.in_integers("segment_id", "$4")} AND {db.dialect.in_texts("term", "$5")}"""
    max_notes = next(iter(needs.values())).max_notes
    with_deleted = [part.segment.number for part in parts if part.deleted_notes]
    values: list[Value] = [
        2**62 if max_notes is None else max_notes,
        IntegerList(with_deleted),
        TextList(term for term, need in needs.items() if need.positions),
        IntegerList(part.segment.number for part in parts),
        TextList(needs),
    ]
    return db.execute(sql, values)


def _select_prefix(
    db: Connection, parts: Sequence[Part], prefix: str, need: _Need
) -> Iterable[Any]:
    """Query the rows of all terms that begin with a prefix."""
    positions = "positions" if need.positions else "NULL"
    sql = f"""
        SELECT segment_id, term, notes, blocks, postings, {positions} FROM terms
        WHERE {db.dialect.in_integers("segment_id", "$1")} AND term >= $2 AND term < $3"""
    numbers = IntegerList(part.segment.number for part in parts)
    return db.execute(sql, (numbers, prefix, prefix + LAST))


def _facts_of(
    part: Part, notes: int, blocks: int, postings: bytes | None, positions: bytes | None
) -> TermFacts:
    if postings is None:
        return TermFacts(notes, blocks, None)
    return TermFacts(
        notes, blocks, occurrences_of_term(part.segment.documents, postings, positions)
    )


def _unpacked_facts(part: Part, index: int) -> TermFacts:
    """Return what a packed segment says of one of its terms."""
    occurrences = _unpacked_occurrences(part, index)
    return TermFacts(len(occurrences.by_note.note_indexes), None, occurrences)


def _unpacked_occurrences(part: Part, index: int) -> Occurrences:
    """Return where one of the terms of a packed segment occurs. Raises Damaged."""
    packed = part.segment.packed
    assert packed is not None
    postings = packed.slice(index, index + 1)
    return make_occurrences(
        part.segment.documents, postings.ordinals, postings.counts, postings.positions
    )
