"""A segment holds each occurrence of each term, in memory, as bytes, as rows, and after a merge."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simplemem.index.api import Term
from simplemem.index.engine import Damaged
from simplemem.index.terms.format import MAX_COUNT
from simplemem.index.terms.segment import (
    Documents,
    Postings,
    build_segment,
    decode_positions,
    decode_postings,
    join_documents,
    merge_postings,
    pack_arrays,
    pack_segment,
    postings_from_rows,
    rows_of,
    sizes_of,
    unpack_arrays,
)
from simplemem.index.terms.tokens import (
    NoteTokens,
    Phrase,
    SegmentBuilder,
    TextTokens,
    phrases_of,
    tokenize,
)
from simplemem.index.terms.writer import pack_small_segment, sizes_of_notes

Occurrence = tuple[str, int, int, int]  # a term, its note, the number of the text in it, a position

TOKENS = st.lists(st.sampled_from(["a", "b", "c", "dd", "é", "漢"]), max_size=6)
TEXTS = st.builds(TextTokens, TOKENS, TOKENS)
NOTES = st.lists(st.tuples(TEXTS, TEXTS, st.lists(TEXTS, max_size=3)), min_size=1, max_size=5)


def _notes(drawn: list[tuple[TextTokens, TextTokens, list[TextTokens]]]) -> list[NoteTokens]:
    return [NoteTokens(number * 7 + 1, *texts) for number, texts in enumerate(drawn)]


def _build(notes: list[NoteTokens]) -> tuple[Documents, Postings]:
    builder = SegmentBuilder()
    for note in notes:
        builder.add(note)
    return build_segment(builder)


def _expected(notes: list[NoteTokens]) -> Counter[Occurrence]:
    return Counter(
        (token, note.note_id, number, position)
        for note in notes
        for number, text in enumerate((note.title, note.summary, *note.blocks))
        for position, token in enumerate((*text.words, *text.extras))
    )


def _held(documents: Documents, postings: Postings) -> Counter[Occurrence]:
    terms = np.repeat(np.arange(len(postings.terms)), postings.posting_counts)
    held: Counter[Occurrence] = Counter()
    end = 0
    for term, ordinal, count in zip(terms, postings.ordinals, postings.counts, strict=True):
        note = documents.note_indexes[ordinal]
        number = int(ordinal - documents.first_ordinals[note])
        for position in postings.positions[end : end + int(count)]:
            held[postings.terms[term], int(documents.note_ids[note]), number, int(position)] += 1
        end += int(count)
    return held


@given(NOTES)
def test_a_segment_holds_the_tokens_of_its_notes(
    drawn: list[tuple[TextTokens, TextTokens, list[TextTokens]]],
) -> None:
    notes = _notes(drawn)
    documents, postings = _build(notes)
    assert _held(documents, postings) == _expected(notes)
    assert list(postings.terms) == sorted({token for token, *_ in _expected(notes)})


@given(NOTES)
def test_bytes_and_rows_give_the_segment_back(
    drawn: list[tuple[TextTokens, TextTokens, list[TextTokens]]],
) -> None:
    notes = _notes(drawn)
    documents, postings = _build(notes)
    documents_again = Documents.unpack(documents.pack())
    assert _held(documents_again, Postings.unpack(postings.pack())) == _expected(notes)
    rows = [(row.term, row.postings, row.positions) for row in rows_of(postings, documents)]
    assert _held(documents, postings_from_rows(rows)) == _expected(notes)


@given(NOTES, NOTES, st.randoms(use_true_random=False))
def test_a_merge_holds_what_its_parts_held_of_the_notes_that_stay(
    drawn: list[tuple[TextTokens, TextTokens, list[TextTokens]]],
    others: list[tuple[TextTokens, TextTokens, list[TextTokens]]],
    chance: object,
) -> None:
    parts = [_notes(drawn), [note._replace(note_id=note.note_id + 1000) for note in _notes(others)]]
    kept: list[NoteTokens] = []
    selected = []
    merged = []
    first = 0
    for notes in parts:
        documents, postings = _build(notes)
        is_kept = np.array([chance.random() < 0.7 for _ in notes])  # type: ignore[attr-defined]
        is_kept_ordinal = is_kept[documents.note_indexes]
        ordinals = np.where(is_kept_ordinal, first + np.cumsum(is_kept_ordinal) - 1, -1)
        first += int(is_kept_ordinal.sum())
        kept += [note for note, stays in zip(notes, is_kept, strict=True) if stays]
        selected.append(documents.select(is_kept))
        merged.append((postings, ordinals))
    assert _held(join_documents(selected), merge_postings(merged)) == _expected(kept)


@pytest.mark.parametrize("times", [MAX_COUNT, MAX_COUNT + 1, 3 * MAX_COUNT, 70_000])
def test_a_term_may_occur_any_number_of_times_in_a_block(times: int) -> None:
    block = TextTokens(["b", *["a"] * times, "c"])
    notes = [NoteTokens(5, TextTokens(["a"]), TextTokens(()), [block])]
    documents, postings = _build(notes)
    rows = {row.term: row for row in rows_of(postings, documents)}
    ordinals, counts = decode_postings(rows["a"].postings)
    assert counts.sum(dtype=np.int64) == times + 1
    assert sorted(set(ordinals.tolist())) == [0, 2]
    positions = decode_positions(rows["a"].positions, times + 1)
    assert positions.tolist() == [0, *range(1, times + 1)]
    assert (rows["a"].notes, rows["a"].blocks) == (1, 1)
    assert decode_positions(rows["c"].positions, 1).tolist() == [times + 1]


def test_a_block_is_counted_once_though_its_title_has_the_term_too() -> None:
    texts = [TextTokens([word]) for word in ("plum", "pear", "plum")]
    notes = [
        NoteTokens(1, TextTokens(["plum"]), TextTokens(()), texts),
        NoteTokens(2, TextTokens(["fig"]), TextTokens(["plum"]), texts),
    ]
    documents, postings = _build(notes)
    rows = {row.term: row for row in rows_of(postings, documents)}
    assert (rows["plum"].notes, rows["plum"].blocks) == (2, 3 + 2)
    assert (rows["pear"].notes, rows["pear"].blocks) == (2, 2)
    assert (rows["fig"].notes, rows["fig"].blocks) == (1, 3)


@given(st.lists(st.lists(st.integers(0, 2**40)), min_size=1, max_size=4))
def test_packed_arrays_are_read_back(arrays: list[list[int]]) -> None:
    packed = pack_arrays([np.array(numbers, np.int64) for numbers in arrays])
    assert [numbers.tolist() for numbers in unpack_arrays(packed, len(arrays))] == arrays


@given(st.binary(max_size=60))
def test_other_bytes_are_damage_or_some_segment_and_nothing_else(packed: bytes) -> None:
    for read in (Documents.unpack, Postings.unpack):
        with suppress(Damaged):
            read(packed)


@given(NOTES)
@example(
    [
        (
            TextTokens(["a"]),
            TextTokens(()),
            [TextTokens(["b", *["a"] * 70_000], ["c"]), TextTokens(["a"] * MAX_COUNT)],
        )
    ]
)
def test_a_small_segment_is_made_the_same_without_numpy(
    drawn: list[tuple[TextTokens, TextTokens, list[TextTokens]]],
) -> None:
    builder = SegmentBuilder()
    for note in _notes(drawn):
        builder.add(note._replace(text_keys=range(len(note.blocks))))
    assert pack_small_segment(builder) == pack_segment(*build_segment(builder))


@given(NOTES)
def test_the_sizes_of_each_note_are_known_without_numpy(
    drawn: list[tuple[TextTokens, TextTokens, list[TextTokens]]],
) -> None:
    notes = _notes(drawn)
    builder = SegmentBuilder()
    for note in notes:
        builder.add(note)
    alone = [_build([note])[0] for note in notes]
    assert sizes_of_notes(builder) == [sizes_of(documents) for documents in alone]


def test_a_very_long_word_is_found_by_itself() -> None:
    word = "x" * 10_000
    assert [len(token) for token in tokenize(word)] == [200]
    assert phrases_of([Term((word,))]) == [Phrase(tuple(tokenize(word)))]
