"""Segments are added, merged and deleted; readers and other writers never see half of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from index.terms.vault_of_words import draw_note, open_index, put_notes, remove_notes, term_index

from simplemem.index.api import Term
from simplemem.index.engine import Replaced
from simplemem.index.sqlite.engine import SqliteEngine
from simplemem.index.terms import merging, writer
from simplemem.index.terms.comparison import describe_terms
from simplemem.index.terms.integrity import find_damage
from simplemem.index.terms.merging import merge_segments
from simplemem.index.terms.writer import SegmentFacts, choose_merge, list_segments

PLUM = Term(("plum",))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteEngine]:
    with closing(open_index(tmp_path)) as opened:
        yield opened


def _put(database: SqliteEngine, *names: str, body: str = "plum pear") -> dict[str, int]:
    with database.writing() as db:
        return put_notes(db, {name: f"{body} {name}" for name in names})


def _holders(database: SqliteEngine, term: Term = PLUM) -> set[int]:
    with database.reading() as db:
        return set(term_index(db).best_notes(db, [term], 1000, None))


def _segments(database: SqliteEngine) -> list[SegmentFacts]:
    with database.reading() as db:
        assert find_damage(db) == []
        return list_segments(db)


def test_single_notes_are_merged_before_there_are_many_segments(database: SqliteEngine) -> None:
    ids = set()
    for number in range(200):
        ids |= set(_put(database, f"n{number}").values())
        assert len(_segments(database)) < 24
    assert _holders(database) == ids


def test_a_note_that_changes_again_and_again_leaves_no_segment_behind(
    database: SqliteEngine,
) -> None:
    for number in range(100):
        _put(database, "a", body=f"plum x{number}")
    assert len(_segments(database)) < 24
    assert len(_holders(database)) == 1
    assert _holders(database, Term(("x98",))) == set()


def test_when_all_notes_are_removed_no_segment_is_left(database: SqliteEngine) -> None:
    ids = _put(database, *(f"n{number}" for number in range(30)))
    merge_segments(database, max_packed=0)
    with database.writing() as db:
        remove_notes(db, ids.values())
    merge_segments(database)
    assert _segments(database) == []
    assert database.rows("SELECT count(*) FROM terms") == [(0,)]
    assert database.rows("SELECT count(*) FROM deleted_notes") == [(0,)]


def test_a_list_of_notes_that_does_not_fit_the_segments_is_damage(database: SqliteEngine) -> None:
    _put(database, *(f"n{number}" for number in range(5)))
    merge_segments(database, max_packed=0)
    ids = _put(database, "n3")
    _segments(database)
    changes = (
        ("DELETE FROM indexed_notes WHERE note_id = $1", (ids["n3"],)),
        ("UPDATE indexed_notes SET segment_id = 7 WHERE note_id = $1", (ids["n3"],)),
        ("INSERT INTO indexed_notes VALUES (999, 7, 1, 1, 1)", ()),
    )
    for sql, values in changes:
        with pytest.raises(KeyError), database.writing() as db:
            db.execute(sql, values).fetchall()
            assert find_damage(db)
            raise KeyError


def test_merged_terms_have_rows_and_say_the_same(database: SqliteEngine) -> None:
    chance = random.Random(1)
    for batch in range(3):
        with database.writing() as db:
            put_notes(db, {f"n{batch}-{number}": draw_note(chance) for number in range(40)})
    with database.reading() as db:
        before = list(describe_terms(db))
    merge_segments(database, max_packed=0)
    assert [segment.is_packed for segment in _segments(database)] == [False]
    with database.reading() as db:
        assert list(describe_terms(db)) == before


def test_a_merge_in_small_ranges_of_terms_says_the_same(
    database: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(2)
    for batch in range(3):
        with database.writing() as db:
            put_notes(db, {f"n{batch}-{number}": draw_note(chance) for number in range(40)})
        merge_segments(database, max_packed=0)
    with database.reading() as db:
        before = list(describe_terms(db))
    chosen = _segments(database)
    assert len(chosen) == 3
    monkeypatch.setattr(merging, "_MAX_CHUNK_BYTES", 300)
    monkeypatch.setattr(merging, "_ORPHANED_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(writer, "_MERGED_AT_ONCE", 3)
    merge_segments(database)
    assert len(_segments(database)) == 1
    with database.reading() as db:
        assert list(describe_terms(db)) == before


def test_what_is_written_during_a_merge_is_kept(
    database: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = _put(database, *(f"n{number}" for number in range(30)))
    written: dict[str, int] = {}

    def ranges_with_a_write(merge: merging._Merge, *sources: object) -> Iterator[object]:
        for terms in ranges(merge, *sources):  # type: ignore[arg-type]
            if not written:
                written.update(_put(database, "n3", "new", body="quince"))
                with database.writing() as db:
                    remove_notes(db, [ids["n5"]])
            yield terms

    ranges = merging._Merge._ranges
    monkeypatch.setattr(merging._Merge, "_ranges", ranges_with_a_write)
    merge_segments(database, max_packed=0)
    assert _holders(database) == set(ids.values()) - {ids["n3"], ids["n5"]}
    assert _holders(database, Term(("quince",))) == set(written.values())
    _segments(database)


def test_the_next_merge_removes_what_an_interrupted_one_left(
    database: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = _put(database, *(f"n{number}" for number in range(30)))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(merging._Merge, "_replace", stop)
        with pytest.raises(KeyboardInterrupt):
            merge_segments(database, max_packed=0)
    assert database.rows("SELECT count(*) > 0 FROM terms") == [(1,)]
    assert _holders(database) == set(ids.values())
    merge_segments(database, max_packed=0)
    assert database.rows("SELECT count(DISTINCT segment_id) FROM terms") == [(1,)]
    assert database.rows("SELECT count(*) FROM meta WHERE key = 'merge'") == [(0,)]
    assert _holders(database) == set(ids.values())


def test_a_merge_whose_segments_another_process_merged_replaces_nothing(
    database: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = _put(database, *(f"n{number}" for number in range(30)))
    ranges = merging._Merge._ranges
    is_first = True

    def ranges_after_another_merge(merge: merging._Merge, *sources: object) -> Iterator[object]:
        nonlocal is_first
        if is_first:
            is_first = False
            merge_segments(database, max_packed=0)
        yield from ranges(merge, *sources)  # type: ignore[arg-type]

    monkeypatch.setattr(merging._Merge, "_ranges", ranges_after_another_merge)
    merge_segments(database, max_packed=0)
    assert len(_segments(database)) == 1
    assert _holders(database) == set(ids.values())
    assert database.rows("SELECT count(DISTINCT segment_id) FROM terms") == [(1,)]


def test_rows_are_kept_if_their_merge_ends_just_before_they_would_be_removed(
    database: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(database, *(f"n{number}" for number in range(30)))
    merge_segments(database, max_packed=0)
    database.rows("UPDATE segments SET segment_id = segment_id - 9")  # as before the merge ended
    insert = "INSERT INTO terms SELECT 1 << 32, term, notes, blocks, postings, positions FROM terms"
    database.rows(insert)  # left by another merge, which was interrupted
    writing = SqliteEngine.writing

    def writing_after_the_merge(engine: SqliteEngine, generation: int | None = None) -> object:
        monkeypatch.undo()
        engine.rows("UPDATE segments SET segment_id = segment_id + 9")
        return writing(engine, generation)

    monkeypatch.setattr(SqliteEngine, "writing", writing_after_the_merge)
    merging._remove_orphaned_rows(database, None)
    assert len(_segments(database)) == 1
    assert database.rows("SELECT count(DISTINCT segment_id) FROM terms") == [(1,)]


def test_a_merge_ends_when_another_index_took_the_place(database: SqliteEngine) -> None:
    _put(database, *(f"n{number}" for number in range(30)))
    with pytest.raises(Replaced):
        merge_segments(database, database.generation + 1, max_packed=0)


def test_a_rolled_back_write_leaves_nothing_in_memory(database: SqliteEngine) -> None:
    ids = _put(database, "a")
    with pytest.raises(KeyError), database.writing() as db:
        put_notes(db, {"b": "plum"})
        assert len(term_index(db).best_notes(db, [PLUM], 10, None)) == 2
        raise KeyError
    assert _holders(database) == set(ids.values())


@pytest.mark.parametrize(
    ("segments", "chosen"),
    [
        ([], []),
        ([SegmentFacts(1, 10, 0, True)], []),
        ([SegmentFacts(1, 10, 2, True)], []),
        ([SegmentFacts(1, 10, 3, True)], [1]),
        ([SegmentFacts(1, 1, 1, True)], [1]),
        ([SegmentFacts(number, 5, 0, True) for number in range(11)], []),
        ([SegmentFacts(number, 5, 0, True) for number in range(12)], list(range(12))),
        ([SegmentFacts(1, 90_000, 0, False), SegmentFacts(2, 1_900, 0, True)], []),
        (
            [SegmentFacts(number, 1_900, 0, True) for number in (2, 3)]
            + [SegmentFacts(1, 90_000, 0, False)],
            [2, 3],
        ),
    ],
)
def test_segments_are_merged_when_they_are_many_large_or_full_of_deleted_notes(
    segments: list[SegmentFacts], chosen: list[int]
) -> None:
    assert [segment.number for segment in choose_merge(segments)] == chosen


def test_after_a_scan_few_segments_of_a_similar_size_become_one() -> None:
    rows = [SegmentFacts(number, 21_000, 0, is_packed=False) for number in range(3)]
    smaller = SegmentFacts(8, 2_500, 0, is_packed=False)
    assert choose_merge([smaller, *rows]) == []
    assert choose_merge([smaller, *rows], is_at_rest=True) == rows
    assert choose_merge([smaller, *rows[:2]], is_at_rest=True) == []


def test_after_a_scan_larger_segments_become_one() -> None:
    large = [SegmentFacts(number, 400, 0, is_packed=True) for number in range(4)]
    small = SegmentFacts(9, 3, 0, is_packed=True)
    rows = SegmentFacts(10, 9_000, 0, is_packed=False)
    assert choose_merge([small, *large, rows]) == []
    assert choose_merge([small, *large, rows], is_at_rest=True) == large
    assert choose_merge([small, *large[:2], rows], is_at_rest=True) == []
