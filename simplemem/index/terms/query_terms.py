"""Read the terms of a query from all segments.

Terms that are not in memory are read with one statement, and one more per prefix. Segments never
change, so a process keeps what it has read of them (`SegmentCache`).
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
    Array,
    Documents,
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
    """The notes of a segment that hold a phrase, how often, and which postings are theirs."""

    note_indexes: Array  # ascending
    frequencies: Array  # an occurrence in the title counts as several (docs/search.md)
    first_postings: Array  # the index of each note's first posting; at the end the number of all


_NO_NOTES = NotePostings(_NONE, np.zeros(0), np.zeros(1, np.int64))


@dataclass(frozen=True)
class Occurrences:
    """Where a phrase stands in a segment; false if it stands nowhere in it.

    `ordinals` are distinct and ascending, and `counts` says how often the phrase stands in each. A
    phrase of several words may also begin at the end of one ordinal and end in the next one of the
    note. It is then in the note, but in no block: `crossing` has the ordinal in which it begins,
    once per occurrence. `positions` are those of all other occurrences, ordinal by ordinal.
    """

    documents: Documents
    ordinals: Array
    counts: Array
    crossing: Array
    positions: Array | None = None  # of a single term, if they were read

    def __bool__(self) -> bool:
        """Return whether the phrase stands anywhere in the segment."""
        return len(self.ordinals) > 0 or len(self.crossing) > 0

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes.

        Includes what is computed from the ordinals and kept, such as `by_note`.
        """
        size = 500 + 6 * self.ordinals.nbytes + self.counts.nbytes
        if self.positions is not None:
            size += self.positions.nbytes
        return size

    @cached_property
    def by_note(self) -> NotePostings:
        """The notes that hold the phrase, also across two blocks, with weighted frequencies.

        Computed once.
        """
        if not self:
            return _NO_NOTES
        ordinals = self.ordinals
        counts = self.counts
        if len(self.crossing):
            ordinals, counts = self._with_crossing()

        # The ordinals of a note follow each other; `firsts` are the indexes of the first of each
        # note.
        notes = self.documents.note_indexes[ordinals]
        is_first = np.ones(len(notes), bool)
        np.not_equal(notes[1:], notes[:-1], out=is_first[1:])
        firsts = np.flatnonzero(is_first)
        note_indexes = notes[firsts]

        # Occurrences in the title weigh more. The title is a note's first ordinal.
        titles = self.documents.first_ordinals[note_indexes] + TITLE
        is_in_title = ordinals[firsts] == titles
        title_counts = np.where(is_in_title, counts[firsts], 0)
        totals = np.add.reduceat(counts, firsts, dtype=np.float64)
        title_bonus = TITLE_WEIGHT - BODY_WEIGHT
        frequencies = BODY_WEIGHT * totals + title_bonus * title_counts

        if len(self.crossing):
            # Then `firsts` are not indexes in `self.ordinals`.
            firsts = np.searchsorted(self.ordinals, titles)
        first_postings = np.append(firsts, len(self.ordinals))
        return NotePostings(note_indexes, frequencies, first_postings)

    def _with_crossing(self) -> tuple[Array, Array]:
        """Return all ordinals in which the phrase begins, ascending, and a count for each.

        An ordinal occurs once more, with the count 1, for each phrase that crosses its end.
        """
        ones = np.ones(len(self.crossing), self.counts.dtype)
        ordinals = np.concatenate([self.ordinals, self.crossing])
        counts = np.concatenate([self.counts, ones])
        order = np.argsort(ordinals, kind="stable")
        return ordinals[order], counts[order]

    @cached_property
    def block_count(self) -> int:
        """The number of blocks with the phrase in their own text or in the title of their note.

        Deleted notes are included.
        """
        return _count_blocks(self.documents, self.ordinals)

    def count_blocks_of(self, notes: Array) -> int:
        """Return how many blocks of some notes hold the phrase in themselves or in the title.

        `notes` are indexes in the segment, ascending.
        """
        postings = self.postings_of(notes)
        return _count_blocks(self.documents, self.ordinals[postings])

    def postings_of(self, notes: Array) -> Array:
        """Return the indexes in `ordinals` of the postings in some notes (indexes, ascending)."""
        by_note = self.by_note
        if not len(by_note.note_indexes):
            return _NONE
        indexes_in_by_note, is_there = find_sorted(by_note.note_indexes, notes)
        found = indexes_in_by_note[is_there]
        starts = by_note.first_postings[found]
        ends = by_note.first_postings[found + 1]
        return expand(starts, ends - starts)

    @cached_property
    def first_positions(self) -> Array:
        """For each ordinal the index in `positions` of its first position."""
        ends = np.cumsum(self.counts, dtype=np.int64)
        return ends - self.counts


def occurrences_of_term(
    documents: Documents,
    packed_postings: bytes,
    packed_positions: bytes | None,
) -> Occurrences:
    """Return the occurrences of a term from the bytes of its row.

    Without `packed_positions`, they have no positions. Raises Damaged if the bytes cannot be
    decoded or do not fit the segment.
    """
    ordinals, counts = decode_postings(packed_postings)
    positions = None
    if packed_positions is not None:
        occurrence_count = int(counts.sum(dtype=np.int64))
        positions = decode_positions(packed_positions, occurrence_count)
    return make_occurrences(documents, ordinals, counts, positions)


def make_occurrences(
    documents: Documents,
    ordinals: Array,
    counts: Array,
    positions: Array | None,
) -> Occurrences:
    """Return the occurrences of a term from its postings, of which there must be at least one.

    Several postings of one ordinal become one. `positions` None means that they were not read.
    Raises Damaged if the postings do not fit the segment.
    """
    later_ordinals = ordinals[1:]
    earlier_ordinals = ordinals[:-1]
    are_ascending = bool((later_ordinals > earlier_ordinals).all())
    is_descending = not are_ascending and bool((later_ordinals < earlier_ordinals).any())
    if is_descending or int(ordinals[-1]) >= documents.ordinal_count:
        raise Damaged("the postings of a term do not fit their segment")

    if ordinals.dtype == np.uint32:
        ordinals = ordinals.view(np.int32)  # for signed arithmetic; ordinals fit
    if not are_ascending:  # the term occurs more than MAX_COUNT times in an ordinal
        is_first = np.ones(len(ordinals), bool)
        np.not_equal(later_ordinals, earlier_ordinals, out=is_first[1:])
        firsts = np.flatnonzero(is_first)
        counts = np.add.reduceat(counts, firsts, dtype=np.int64)
        ordinals = ordinals[is_first]
    return Occurrences(documents, ordinals, counts, _NONE, positions)


def union_of(documents: Documents, parts: Sequence[Occurrences]) -> Occurrences:
    """Return the occurrences of several single terms as if they were one term.

    Without parts, there are none. The positions are None unless all parts have theirs.
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Occurrences(documents, _NONE, _NONE, _NONE, _NONE)

    ordinals = np.concatenate([part.ordinals for part in parts])
    counts = np.concatenate([part.counts.astype(np.int64) for part in parts])
    order = np.argsort(ordinals, kind="stable")
    positions = None
    if all(part.positions is not None for part in parts):
        # The positions of each posting move with it.
        joined_positions = np.concatenate([part.positions for part in parts])
        first_positions = np.cumsum(counts) - counts
        indexes = expand(first_positions[order], counts[order])
        positions = joined_positions[indexes]

    # An ordinal in which several of the terms occur becomes one.
    ordinals = ordinals[order]
    counts = counts[order]
    is_first = np.concatenate([[True], np.diff(ordinals) > 0])
    firsts = np.flatnonzero(is_first)
    sums = np.add.reduceat(counts, firsts)
    return Occurrences(documents, ordinals[is_first], sums, _NONE, positions)


def side_by_side(documents: Documents, words: Sequence[Occurrences]) -> Occurrences:
    """Return where some words, at least one, stand side by side, in this order.

    Their positions must have been read. The result has no positions. A phrase may begin in one
    block and end in the next; it may not do so in a title.
    """
    nothing = Occurrences(documents, _NONE, _NONE, _NONE)
    notes = _notes_with_all(words)
    if not len(notes):
        return nothing

    # Keys of words that stand side by side are consecutive (`Documents.keys_of`). The phrase begins
    # at each key at which it would begin by all of its words.
    keys_of_words = [_locate(documents, word, notes) for word in words]
    starts_by_word = [word.keys - offset for offset, word in enumerate(keys_of_words)]
    starts = _intersect(starts_by_word)
    if not len(starts):
        return nothing

    first_ordinals = keys_of_words[0].ordinals_at(starts)
    last_ordinals = keys_of_words[-1].ordinals_at(starts + len(words) - 1)
    is_in_one_block = first_ordinals == last_ordinals
    ordinals, counts = np.unique(first_ordinals[is_in_one_block], return_counts=True)
    crossing = np.sort(first_ordinals[~is_in_one_block])
    return Occurrences(documents, ordinals, counts, crossing)


def _notes_with_all(words: Sequence[Occurrences]) -> Array:
    """Return the indexes of the notes that hold all of the words anywhere, ascending."""
    return _intersect([word.by_note.note_indexes for word in words])


def _intersect(arrays: Sequence[Array]) -> Array:
    """Return the numbers that are in all of some ascending arrays, ascending.

    There must be at least one array.
    """
    shortest, *longer_arrays = sorted(arrays, key=len)
    numbers = shortest
    for longer in longer_arrays:
        is_common = _is_in(numbers, longer)
        numbers = numbers[is_common]
    return numbers


class _WordKeys(NamedTuple):
    """The keys of the occurrences of a word (`Documents.keys_of`), and the ordinal of each."""

    keys: Array  # ascending
    ordinals: Array  # of each key

    def ordinals_at(self, keys: Array) -> Array:
        """Return the ordinals of some of the keys. All must be among `keys`."""
        rows = np.searchsorted(self.keys, keys)
        return self.ordinals[rows]


def _locate(documents: Documents, word: Occurrences, notes: Array) -> _WordKeys:
    """Return the keys of a word's occurrences in some notes (indexes, ascending).

    Its positions must have been read.
    """
    assert word.positions is not None
    chosen = word.postings_of(notes)
    counts = word.counts[chosen]
    indexes = expand(word.first_positions[chosen], counts)
    positions = word.positions[indexes].astype(np.int64)
    ordinals = np.repeat(word.ordinals[chosen], counts)

    keys = documents.keys_of(ordinals, positions)
    is_in_order = bool((keys[1:] > keys[:-1]).all())
    if not is_in_order:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        ordinals = ordinals[order]
    return _WordKeys(keys, ordinals)


def _count_blocks(documents: Documents, ordinals: Array) -> int:
    """Return how many blocks hold a phrase that stands in these ordinals.

    `ordinals` are ascending. All blocks of a note count if the phrase is in its title.
    """
    if not len(ordinals):
        return 0
    notes = documents.note_indexes[ordinals]
    places = ordinals - documents.first_ordinals[notes]
    is_block = places >= FIRST_BLOCK
    is_title = places == TITLE
    titled_notes = notes[is_title]
    if not len(titled_notes):
        return int(np.count_nonzero(is_block))

    # Blocks of a note with the phrase in its title must not count twice.
    is_titled = np.zeros(len(documents.note_ids), bool)
    is_titled[titled_notes] = True
    is_block &= ~is_titled[notes]
    block_count = int(np.count_nonzero(is_block))
    blocks_of_titles = documents.block_counts[titled_notes]
    return block_count + int(blocks_of_titles.sum(dtype=np.int64))


def _is_in(keys: Array, sorted_keys: Array) -> Any:
    """Return for each key whether it is among `sorted_keys`, as a mask."""
    if not len(sorted_keys):
        return np.zeros(len(keys), bool)
    _, is_there = find_sorted(sorted_keys, keys)
    return is_there


# -- what a process keeps in memory

# Of the occurrences in memory. A query reads its terms several times, and in a larger vault they
# are longer. 24 MB for every vault made no search of 20,000 notes faster than 8 MB.
_MIN_CACHE_BYTES = 8_000_000
_CACHE_BYTES_PER_NOTE = 80


class TermFacts(NamedTuple):
    """How many notes and blocks of a segment hold a single term, and where it occurs.

    Deleted notes are included. `occurrences` is None if no note holds the term, or if its postings
    have not been read. `blocks` may be None only if there are occurrences, from which blocks can be
    counted.
    """

    notes: int
    blocks: int | None
    occurrences: Occurrences | None


class Segment(NamedTuple):
    """A segment in memory: its notes, and all of its terms if they are packed in one row."""

    number: int
    documents: Documents
    packed: Postings | None


def _max_cache_bytes(segments: Iterable[Segment]) -> int:
    """Return how many bytes of occurrences in some segments may stay in memory."""
    note_count = sum(len(segment.documents.note_ids) for segment in segments)
    return max(_MIN_CACHE_BYTES, _CACHE_BYTES_PER_NOTE * note_count)


class SegmentCache:
    """What a process has read of the segments of one index, for any thread.

    Guards its dictionaries with a lock. The values in them never change. If the terms and phrases
    take more than 8 MB, and more than 80 bytes per note, those that were remembered first are
    forgotten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._max_bytes = _MIN_CACHE_BYTES
        self._segments: dict[int, Segment] = {}
        self._terms: OrderedDict[tuple[int, str], TermFacts] = OrderedDict()
        self._phrases: OrderedDict[tuple[int, Phrase], Occurrences] = OrderedDict()
        self._bytes = 0  # of the terms and phrases

    def segments(
        self,
        db: Connection,
        numbers: Collection[int],
        *,
        forgets_others: bool = False,
    ) -> list[Segment]:
        """Return segments in the order of `numbers`, after reading those that are not in memory.

        All must exist. If `forgets_others`, `numbers` must be all segments of the index, and others
        are removed from memory. Raises Damaged if one cannot be unpacked.
        """
        with self._lock:
            segments = {
                number: self._segments[number] for number in numbers if number in self._segments
            }

        unread = [number for number in numbers if number not in segments]
        if unread:
            for segment in _read_segments(db, unread):
                segments[segment.number] = segment

        with self._lock:
            if forgets_others and not self._segments.keys() <= segments.keys():
                self._forget_all_but(segments)
            self._segments |= segments
            if unread:
                self._max_bytes = _max_cache_bytes(self._segments.values())
        return [segments[number] for number in numbers]

    def _forget_all_but(self, segments: Container[int]) -> None:
        """Forget the segments whose numbers are not in `segments`, with their terms and phrases.

        Called with the lock held.
        """
        for number in list(self._segments):
            if number not in segments:
                del self._segments[number]

        for term_key in list(self._terms):
            if term_key[0] not in segments:
                facts = self._terms.pop(term_key)
                self._bytes -= _size_of(facts.occurrences)

        for phrase_key in list(self._phrases):
            if phrase_key[0] not in segments:
                occurrences = self._phrases.pop(phrase_key)
                self._bytes -= _size_of(occurrences)

    def term(self, number: int, term: str) -> TermFacts | None:
        """Return the facts of a term in a segment; None if they are not in memory."""
        return self._terms.get((number, term))

    def keep_term(self, number: int, term: str, facts: TermFacts) -> None:
        """Remember what a segment holds of a term, in place of what was known.

        May forget older entries.
        """
        with self._lock:
            previous = self._terms.pop((number, term), None)
            self._bytes += _size_of(facts.occurrences)
            if previous is not None:
                self._bytes -= _size_of(previous.occurrences)
            self._terms[number, term] = facts
            self._make_room()

    def phrase(self, number: int, phrase: Phrase) -> Occurrences | None:
        """Return where a phrase stands in a segment; None if that is not in memory."""
        return self._phrases.get((number, phrase))

    def keep_phrase(self, number: int, phrase: Phrase, occurrences: Occurrences) -> None:
        """Remember where a phrase stands in a segment. May forget older entries."""
        with self._lock:
            previous = self._phrases.pop((number, phrase), None)
            self._bytes += _size_of(occurrences)
            if previous is not None:
                self._bytes -= _size_of(previous)
            self._phrases[number, phrase] = occurrences
            self._make_room()

    def _make_room(self) -> None:
        """Forget what was remembered first until the rest fits. Called with the lock held."""
        while self._bytes > self._max_bytes and (self._terms or self._phrases):
            if self._phrases:
                _, occurrences = self._phrases.popitem(last=False)
                self._bytes -= _size_of(occurrences)
            if self._terms:
                _, facts = self._terms.popitem(last=False)
                self._bytes -= _size_of(facts.occurrences)


def _size_of(occurrences: Occurrences | None) -> int:
    """Return about how many bytes an entry of the cache takes."""
    if occurrences is None:
        return 200
    return occurrences.size


def _read_segments(db: Connection, numbers: Sequence[int]) -> list[Segment]:
    """Read segments by number, in any order. Raises Damaged if one cannot be unpacked."""
    sql = f"""
        SELECT segment_id, documents, packed FROM segments
        WHERE {db.dialect.in_integers("segment_id", "$1")}"""
    rows: Any = db.execute(sql, (IntegerList(numbers),)).fetchall()
    segments = []
    for number, packed_documents, packed_terms in rows:
        documents = Documents.unpack(packed_documents)
        postings = None
        if packed_terms is not None:
            postings = Postings.unpack(packed_terms)
        segments.append(Segment(number, documents, postings))
    return segments


# -- the terms of a query

_ABSENT = TermFacts(0, 0, None)
_MANY_NOTES = 2**62  # more than the notes of any segment


@dataclass(frozen=True)
class Part:
    """A segment in one state of the index, in which some of its notes are deleted.

    The index of a note is its place in the segment.
    """

    segment: Segment
    deleted_notes: Sequence[int] = ()  # ids of notes that are no longer indexed

    @cached_property
    def deleted(self) -> Array:
        """The indexes in the segment of the notes that are no longer indexed, ascending."""
        documents = self.segment.documents
        note_ids = np.asarray(self.deleted_notes, np.int64)
        return _indexes_of(documents, note_ids)

    @cached_property
    def is_indexed(self) -> Array:
        """A mask with an element per note of the segment: whether it is still indexed."""
        is_indexed = np.ones(len(self.segment.documents.note_ids), bool)
        is_indexed[self.deleted] = False
        return is_indexed

    @cached_property
    def deleted_texts(self) -> tuple[Array, Array]:
        """The keys of the texts of deleted notes, sorted, and how many of these notes have each."""
        return self.segment.documents.texts_of(~self.is_indexed)

    def select(self, note_ids: Array | None) -> Array | None:
        """Return the indexes of those of some notes that are here and still indexed, ascending.

        `note_ids` are ascending; None means all notes. Returns None if it is None and no note of
        the segment was deleted, so that all notes of the segment are selected.
        """
        if note_ids is None:
            if not len(self.deleted_notes):
                return None
            return np.flatnonzero(self.is_indexed)

        # Look up the smaller set in the larger one.
        documents = self.segment.documents
        if len(note_ids) > len(documents.note_ids):
            _, is_selected = find_sorted(note_ids, documents.note_ids)
            indexes = np.flatnonzero(is_selected)
        else:
            indexes = _indexes_of(documents, note_ids)

        if len(self.deleted_notes):
            is_indexed = self.is_indexed[indexes]
            indexes = indexes[is_indexed]
        return indexes


def _indexes_of(documents: Documents, note_ids: Array) -> Array:
    """Return the indexes in a segment of those of some notes that it has, ascending."""
    rows, is_there = find_sorted(documents.sorted_note_ids, note_ids)
    indexes = documents.note_order[rows[is_there]]
    return np.sort(indexes)


class _Need(NamedTuple):
    """What a query needs to know of a term.

    If more than `max_notes` notes of a segment hold the term, their number is enough.
    """

    positions: bool
    max_notes: int | None  # None: the occurrences are always needed

    def is_met_by(self, facts: TermFacts, part: Part) -> bool:
        """Return whether enough is known of a term in a segment, so that nothing must be read."""
        if facts.notes == 0:
            return True
        if facts.occurrences is None:
            # If notes were deleted, only the occurrences tell how many of these held the term.
            is_frequent = self.max_notes is not None and facts.notes > self.max_notes
            return is_frequent and not self.positions and not part.deleted_notes
        return not self.positions or facts.occurrences.positions is not None


_Needs = dict[str, _Need]
"""Terms or prefixes, each with what a query needs to know of it."""


class QueryTerms:
    """The terms of one query in all segments. They stay even if the cache forgets them.

    A phrase must be given to `read` before it is given to another method.
    """

    def __init__(self, cache: SegmentCache) -> None:
        self._cache = cache
        self._facts: dict[tuple[int, str], TermFacts] = {}
        self._of_prefix: dict[tuple[int, str], list[Occurrences]] = {}

    def occurrences(self, part: Part, phrase: Phrase) -> Occurrences:
        """Return where a phrase stands in a segment, deleted notes included. Runs no statement.

        Phrases of several words and prefixes are kept in the cache, if all of their words occur in
        the segment. Not for a phrase of which only the counts were read (`max_notes`).
        """
        number, documents, _ = part.segment
        is_single_term = len(phrase.tokens) == 1 and not phrase.is_prefix
        if is_single_term:
            return self._of_token(part, phrase, 0)

        cached = self._cache.phrase(number, phrase)
        if cached is not None:
            return cached

        words = [self._of_token(part, phrase, index) for index in range(len(phrase.tokens))]
        if not all(words):
            return Occurrences(documents, _NONE, _NONE, _NONE)
        occurrences = words[0]
        if len(words) > 1:
            occurrences = side_by_side(documents, words)
        self._cache.keep_phrase(number, phrase, occurrences)
        return occurrences

    def count_notes(self, part: Part, phrase: Phrase) -> int:
        """Return how many notes of a segment that are still indexed hold a phrase."""
        # The counts of a term's row include deleted notes.
        facts = self._facts_of_single_term(part, phrase)
        if facts is not None and (facts.notes == 0 or not part.deleted_notes):
            return facts.notes

        notes = self.occurrences(part, phrase).by_note.note_indexes
        if not part.deleted_notes or not len(notes):
            return len(notes)
        _, is_match = find_sorted(notes, part.deleted)
        deleted_matches = int(np.count_nonzero(is_match))
        return len(notes) - deleted_matches

    def count_blocks(self, part: Part, phrase: Phrase) -> int:
        """Return how many blocks of indexed notes have a phrase, in themselves or the title."""
        facts = self._facts_of_single_term(part, phrase)
        if facts is not None and facts.notes == 0:
            return 0
        if facts is not None and facts.blocks is not None and not part.deleted_notes:
            return facts.blocks

        occurrences = self.occurrences(part, phrase)
        blocks = occurrences.block_count
        if part.deleted_notes:
            blocks -= occurrences.count_blocks_of(part.deleted)
        return blocks

    def _facts_of_single_term(self, part: Part, phrase: Phrase) -> TermFacts | None:
        """Return what is known of a phrase's only term; None for several terms or a prefix."""
        if len(phrase.tokens) > 1 or phrase.is_prefix:
            return None
        return self._facts[part.segment.number, phrase.tokens[0]]

    def _of_token(self, part: Part, phrase: Phrase, index: int) -> Occurrences:
        """Return where the token at `index` of a phrase occurs.

        If it is a prefix, return where any token occurs that begins with it.
        """
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
        """Read the terms of phrases from segments, unless they are in memory.

        With `max_notes`, the postings of a single term may stay unread in a segment in which more
        notes hold it. Then only `count_notes` and `count_blocks` may be called. Raises Damaged if
        bytes cannot be decoded.
        """
        terms, prefixes = _needs_of(phrases, max_notes)
        with_rows = [part for part in parts if part.segment.packed is None]
        if with_rows:
            self._read_rows(db, with_rows, terms, prefixes)
        for part in parts:
            if part.segment.packed is not None:
                self._read_packed(part, terms, prefixes)

    def _read_rows(
        self,
        db: Connection,
        parts: Sequence[Part],
        terms: _Needs,
        prefixes: _Needs,
    ) -> None:
        """Read terms from segments whose terms have rows, in one round trip.

        Prefixes are always read.
        """
        unread = {
            term: need
            for term, need in terms.items()
            if not all(self._is_known(part, term, need) for part in parts)
        }

        # All statements are sent before the first answer is read: one round trip to a server.
        rows_of_terms: Iterable[Any] = ()
        if unread:
            rows_of_terms = _select_terms(db, parts, unread)
        rows_of_prefixes = []
        for prefix, need in prefixes.items():
            rows = _select_prefix(db, parts, prefix, need)
            rows_of_prefixes.append((prefix, rows))

        self._keep_rows_of_terms(parts, unread, rows_of_terms)
        for prefix, rows in rows_of_prefixes:
            self._keep_rows_of_prefix(parts, prefix, rows)

    def _keep_rows_of_terms(
        self, parts: Sequence[Part], terms: _Needs, rows: Iterable[Any]
    ) -> None:
        """Remember terms from their rows, for each segment in which too little of them is known.

        A term without a row is in no note of the segment.
        """
        row_of_term = {(number, term): row for number, term, *row in rows}
        for term, need in terms.items():
            for part in parts:
                if self._is_known(part, term, need):
                    continue
                row = row_of_term.get((part.segment.number, term))
                facts = _ABSENT
                if row is not None:
                    facts = _facts_from_row(part, *row)
                self._keep(part, term, facts)

    def _keep_rows_of_prefix(self, parts: Sequence[Part], prefix: str, rows: Iterable[Any]) -> None:
        """Remember, for this query only, the rows of all terms that begin with a prefix."""
        part_of_number = {part.segment.number: part for part in parts}
        for number in part_of_number:
            self._of_prefix[number, prefix] = []
        for number, _, notes, blocks, postings, positions in rows:
            facts = _facts_from_row(part_of_number[number], notes, blocks, postings, positions)
            assert facts.occurrences is not None
            self._of_prefix[number, prefix].append(facts.occurrences)

    def _is_known(self, part: Part, term: str, need: _Need) -> bool:
        """Return whether enough of a term is in memory. If so, keep it for this query."""
        key = part.segment.number, term
        facts = self._facts.get(key) or self._cache.term(*key)
        if facts is None or not need.is_met_by(facts, part):
            return False
        self._facts[key] = facts
        return True

    def _read_packed(self, part: Part, terms: _Needs, prefixes: Iterable[str]) -> None:
        """Remember the terms and prefixes from a segment whose terms are all in memory, packed.

        Runs no statement. Prefixes are remembered for this query only.
        """
        packed = part.segment.packed
        assert packed is not None
        for term, need in terms.items():
            if self._is_known(part, term, need):
                continue
            index = packed.index_of(term)
            facts = _ABSENT
            if index is not None:
                facts = _unpacked_facts(part, index)
            self._keep(part, term, facts)

        for prefix in prefixes:
            self._of_prefix[part.segment.number, prefix] = [
                _unpacked_occurrences(part, index) for index in packed.indexes_of_prefix(prefix)
            ]

    def _keep(self, part: Part, term: str, facts: TermFacts) -> None:
        """Remember what a segment holds of a term, for this query and in the cache."""
        number = part.segment.number
        self._facts[number, term] = facts
        self._cache.keep_term(number, term, facts)


def _needs_of(phrases: Iterable[Phrase], max_notes: int | None) -> tuple[_Needs, _Needs]:
    """Return what phrases need: of single terms, and of the terms that begin with a prefix.

    A term of a phrase of several words needs its positions. `max_notes` is as in `QueryTerms.read`.
    """
    terms: _Needs = {}
    prefixes: _Needs = {}
    for phrase in phrases:
        need = _Need(positions=len(phrase.tokens) > 1, max_notes=max_notes)
        last = len(phrase.tokens) - 1
        for index, token in enumerate(phrase.tokens):
            needs = terms
            if phrase.is_prefix and index == last:
                needs = prefixes
            # A token may stand in several phrases. Positions in one of them are enough for all.
            if token not in needs or need.positions:
                needs[token] = need
    return terms, prefixes


def _select_terms(db: Connection, parts: Sequence[Part], needs: _Needs) -> Iterable[Any]:
    """Query (segment, term, notes, blocks, postings, positions) of terms in segments.

    Postings and positions that are not needed are NULL (`_Need.is_met_by`). All needs have the same
    `max_notes`, and there must be at least one.
    """
    has_deleted_notes = db.dialect.in_integers("segment_id", "$2")
    needs_positions = db.dialect.in_texts("term", "$3")
    sql = f"""
        SELECT segment_id, term, notes, blocks,
               CASE WHEN notes <= $1 OR {has_deleted_notes} OR {needs_positions}
                    THEN postings END,
               CASE WHEN {needs_positions} THEN positions END
        FROM terms
        WHERE {db.dialect.in_integers("segment_id", "$4")}
          AND {db.dialect.in_texts("term", "$5")}"""
    max_notes = next(iter(needs.values())).max_notes
    if max_notes is None:
        max_notes = _MANY_NOTES
    with_deleted = [part.segment.number for part in parts if part.deleted_notes]
    with_positions = [term for term, need in needs.items() if need.positions]
    numbers = [part.segment.number for part in parts]
    values: list[Value] = [
        max_notes,
        IntegerList(with_deleted),
        TextList(with_positions),
        IntegerList(numbers),
        TextList(needs),
    ]
    return db.execute(sql, values)


def _select_prefix(
    db: Connection,
    parts: Sequence[Part],
    prefix: str,
    need: _Need,
) -> Iterable[Any]:
    """Query the rows of all terms that begin with a prefix, as `_select_terms` does.

    Positions that are not needed are NULL.
    """
    positions = "NULL"
    if need.positions:
        positions = "positions"
    sql = f"""
        SELECT segment_id, term, notes, blocks, postings, {positions} FROM terms
        WHERE {db.dialect.in_integers("segment_id", "$1")} AND term >= $2 AND term < $3"""
    numbers = IntegerList(part.segment.number for part in parts)
    return db.execute(sql, (numbers, prefix, prefix + LAST))


def _facts_from_row(
    part: Part,
    notes: int,
    blocks: int,
    postings: bytes | None,
    positions: bytes | None,
) -> TermFacts:
    """Return the facts of a term from the columns of its row.

    If `postings` is None, the facts have no occurrences; if `positions` is None, the occurrences
    have no positions. Raises Damaged if the bytes cannot be decoded or do not fit the segment.
    """
    if postings is None:
        return TermFacts(notes, blocks, None)
    occurrences = occurrences_of_term(part.segment.documents, postings, positions)
    return TermFacts(notes, blocks, occurrences)


def _unpacked_facts(part: Part, index: int) -> TermFacts:
    """Return the facts of one of the terms of a packed segment, by its index.

    Blocks are not counted. Raises Damaged if the postings do not fit the segment.
    """
    occurrences = _unpacked_occurrences(part, index)
    note_count = len(occurrences.by_note.note_indexes)
    return TermFacts(note_count, None, occurrences)


def _unpacked_occurrences(part: Part, index: int) -> Occurrences:
    """Return where one of the terms of a packed segment occurs, by its index.

    Raises Damaged if the postings do not fit the segment.
    """
    packed = part.segment.packed
    assert packed is not None
    postings = packed.slice(index, index + 1)
    return make_occurrences(
        part.segment.documents, postings.ordinals, postings.counts, postings.positions
    )
