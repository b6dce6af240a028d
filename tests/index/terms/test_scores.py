"""The term index scores notes and blocks as SQLite's full-text search does, however its segments came about."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass

import pytest
from index.terms.vault_of_words import (
    WORDS,
    FullText,
    draw_note,
    draw_words,
    open_index,
    put_notes,
    remove_notes,
    term_index,
)

from simplemem.index.api import IndexQuery, Term
from simplemem.index.engine import Connection
from simplemem.index.sqlite.engine import SqliteEngine, open_engine
from simplemem.index.terms import reader
from simplemem.index.terms.merging import merge_segments
from simplemem.index.terms.reader import TermIndex
from simplemem.index.terms.writer import list_segments

NOTES = 240


@dataclass
class Filled:
    """An index and full-text tables of the same notes."""

    database: SqliteEngine
    full_text: FullText
    ids: list[int]


def _in_one_segment(filled: Filled, chance: random.Random) -> None:
    _put(filled, {f"n{number}": draw_note(chance) for number in range(NOTES)})


def _note_by_note(filled: Filled, chance: random.Random) -> None:
    for number in range(NOTES):
        _put(filled, {f"n{number}": draw_note(chance)})


def _with_changes(filled: Filled, chance: random.Random) -> None:
    """Every note was written once or more, and others were removed."""
    _put(filled, {f"n{number}": draw_note(chance) for number in range(NOTES)})
    for number in chance.sample(range(NOTES), NOTES // 3):
        _put(filled, {f"n{number}": draw_note(chance)})
    gone = chance.sample(filled.ids, 20)
    with filled.database.writing() as db:
        remove_notes(db, gone)
    for note_id in gone:
        filled.full_text.remove(note_id)
    filled.ids = [note_id for note_id in filled.ids if note_id not in gone]


def _with_a_row_per_term(filled: Filled, chance: random.Random) -> None:
    _with_changes(filled, chance)
    merge_segments(filled.database, max_packed=0)
    with filled.database.reading() as db:
        assert not any(segment.is_packed for segment in list_segments(db))


def _with_rows_changes_and_packed_segments(filled: Filled, chance: random.Random) -> None:
    _with_a_row_per_term(filled, chance)
    for number in chance.sample(range(NOTES), 15):
        _put(filled, {f"n{number}": draw_note(chance)})


def _put(filled: Filled, texts: dict[str, str]) -> None:
    with filled.database.writing() as db:
        ids = put_notes(db, texts)
    for name, content in texts.items():
        filled.full_text.put(ids[name], name, content)
    filled.ids = sorted({*filled.ids, *ids.values()})


@pytest.fixture(
    scope="module",
    params=[
        _in_one_segment,
        _note_by_note,
        _with_changes,
        _with_a_row_per_term,
        _with_rows_changes_and_packed_segments,
    ],
)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    filled = Filled(open_index(tmp_path_factory.mktemp("terms")), FullText(), [])
    request.param(filled, random.Random(3))
    yield filled
    filled.database.close()


def _single_words(chance: random.Random) -> list[Term]:
    words = dict.fromkeys(draw_words(chance, chance.randint(2, 6)))
    return [Term((word,)) for word in words]


def _pairs(chance: random.Random) -> list[Term]:
    pairs = dict.fromkeys((chance.choice(WORDS[:6]), chance.choice(WORDS[:6])) for _ in range(4))
    return [Term(pair) for pair in pairs]


def _beginnings(chance: random.Random) -> list[Term]:
    words = draw_words(chance, 3)
    return [
        Term((words[0][:4],), beginning=True),
        Term((words[1], words[2][:2]), beginning=True),
        Term((words[1],)),
    ]


@pytest.mark.parametrize("draw_terms", [_single_words, _pairs, _beginnings])
def test_notes_and_blocks_have_the_scores_of_full_text_search(
    filled: Filled, draw_terms: Callable[[random.Random], list[Term]]
) -> None:
    chance = random.Random(5)
    compared = 0
    with filled.database.reading() as db:
        index = term_index(db, NOTES)
        for _ in range(16):
            terms = draw_terms(chance)
            few = chance.sample(filled.ids, 25)
            for kind, ids in (("note", None), ("note", few), ("block", few), ("block", [])):
                scores = _scores(index, db, kind, terms, ids)
                expected = filled.full_text.scores(kind, terms, ids)
                assert scores.keys() == expected.keys()
                # The comparison of a thousand scores by `pytest.approx` takes longer than the search.
                differing = [
                    place
                    for place, score in scores.items()
                    if not math.isclose(score, expected[place], rel_tol=1e-6, abs_tol=1e-12)
                ]
                assert differing == []
                assert list(scores.values()) == sorted(scores.values(), reverse=True)
                compared += len(scores)
    assert compared > 500


def _scores(
    index: TermIndex, db: Connection, kind: str, terms: list[Term], ids: list[int] | None
) -> Mapping[int, float]:
    """The score of each note or block, best first."""
    if kind == "note":
        return index.best_notes(db, terms, 10_000, ids)
    matches = index.rank_blocks(db, terms, 10_000, ids)
    return {match.place: match.score for match in matches}


def test_counts_are_those_of_full_text_search(filled: Filled) -> None:
    chance = random.Random(6)
    with filled.database.reading() as db:
        index = term_index(db, NOTES)
        assert index.sizes.notes == len(filled.ids)
        for _ in range(30):
            for term in (*_single_words(chance), *_pairs(chance), *_beginnings(chance)):
                for kind in ("note", "block"):
                    expected = len(filled.full_text.scores(kind, [term]))
                    assert index.count(db, kind, term) == expected, (kind, term)


def test_the_notes_that_hold_one_word_of_a_group_are_counted_once(filled: Filled) -> None:
    chance = random.Random(7)
    with filled.database.reading() as db:
        index = term_index(db, NOTES)
        for _ in range(30):
            groups = [_single_words(chance), _pairs(chance), _beginnings(chance)]
            some = chance.sample(filled.ids, 30)
            expected = [set(filled.full_text.scores("note", group)) for group in groups]
            assert index.count_notes(db, groups) == [len(ids) for ids in expected]
            assert index.find_holders(db, groups, some) == [
                (len(ids), ids & set(some)) for ids in expected
            ]


def test_a_limit_keeps_the_best(filled: Filled) -> None:
    terms = [Term((word,)) for word in WORDS[:5]]
    with filled.database.reading() as db:
        index = term_index(db, NOTES)
        every = list(index.best_notes(db, terms, NOTES, None).items())
        assert list(index.best_notes(db, terms, 30, None).items()) == every[:30]


def test_the_best_form_of_a_word_counts_and_none_for_more_than_the_word(filled: Filled) -> None:
    word, stem = Term((WORDS[0],)), Term((WORDS[40],), stem_of=(WORDS[0],))
    bare_stem = Term((WORDS[40],))
    with filled.database.reading() as db:
        index = term_index(db, NOTES)
        total = index.sizes.notes
        holders = [index.count(db, "note", term) for term in (word, bare_stem)]
        share = reader.idf(total, max(holders)) / reader.idf(total, holders[1])
        by_word = filled.full_text.scores("note", [word])
        by_stem = filled.full_text.scores("note", [bare_stem])
        expected = {
            note: max(by_word.get(note, 0.0), share * by_stem.get(note, 0.0))
            for note in by_word.keys() | by_stem.keys()
        }
        assert holders[0] > holders[1] > 0
        scores = index.best_notes(db, [word, stem], NOTES, None)
        assert scores == pytest.approx(expected, rel=1e-6)


def test_words_that_most_notes_hold_are_not_scored_and_no_note_is_passed_over(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_NOTES_OF_SMALL_INDEX", 30)
    chance = random.Random(8)
    common = Term((WORDS[0],))
    with filled.database.reading() as db:
        index = term_index(db, NOTES)
        assert 2 * index.count(db, "note", common) > NOTES
        for _ in range(20):
            terms = [common, *_single_words(chance)]
            best, *_ = index.rank(db, IndexQuery(tuple(terms), notes=20, rescore_depth=10), None)
            every = filled.full_text.scores("note", terms)
            expected = sorted(every.values(), reverse=True)[:20]
            assert list(best.values()) == pytest.approx(expected, abs=0.05)


def test_a_phrase_is_found_though_one_of_its_words_is_in_most_notes(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_NOTES_OF_SMALL_INDEX", 30)
    found = 0
    for other in WORDS[1:8]:
        pair = Term((WORDS[0], other))
        expected = len(filled.full_text.scores("note", [pair]))
        unread = open_engine(filled.database.path, nullcontext)
        with closing(unread), unread.reading() as db:
            assert term_index(db, NOTES).count(db, "note", pair) == expected
        found += expected
    assert found > 20
