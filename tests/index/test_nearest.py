"""Vectors in memory, whole or as signs: near enough to all of them compared, exact through a filter, and always of now."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import apsw
import numpy as np
import pytest

from simplemem.index import nearest, notes, text, vectors
from simplemem.index.database import Database, open_database
from simplemem.index.door import Nearness, Stat
from simplemem.index.nearest import MOST_COMPARED, VectorsInMemory, nearest_in_sql
from simplemem.index.notes import Rows
from simplemem.index.text import BLOCK, SHIFT
from simplemem.note.note import read_note

DIMENSION = 96
BOTH = pytest.mark.parametrize("most_compared", [MOST_COMPARED, 0], ids=["whole", "signs"])


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "index.db", nullcontext)
    yield opened
    opened.close()


def held(most_compared: int) -> VectorsInMemory:
    return VectorsInMemory(DIMENSION, with_signs=True, most_compared=most_compared)


class Vectors:
    """Random ones that lie in clusters, as those of words do."""

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)
        self._middles = self._numbers.standard_normal((12, DIMENSION))

    def one(self) -> bytes:
        made = self._middles[self._numbers.integers(12)] + self._numbers.standard_normal(DIMENSION)
        return np.clip(made * 30, -127, 127).astype(np.int8).tobytes()


def put(db: apsw.Connection, name: str, made: Vectors, chance: random.Random) -> int:
    """A note of some passages and blocks; put again it has others."""
    note = read_note(name.encode())
    known = notes.known(db, f"{name}.md")
    read = text.understood(f"{name}.md", note, Stat(0, 0, 0))
    rows = Rows()
    note_id = notes.put(db, None if known is None else known.id, read, None, None, rows)
    rows.write(db)
    if known is not None:
        text.remove(db, note_id)
    first = note_id << SHIFT
    columns = "(id, start, stop, line, headings, hash"
    places = [first | k for k in range(chance.randint(1, 4))]
    blocks = [first | BLOCK | k for k in range(chance.randint(0, 4))]
    db.executemany(f"INSERT INTO passages {columns}) VALUES (?, 0, 1, 1, '[]', x'00')", [(id_,) for id_ in places])
    sql = f"INSERT INTO blocks {columns}, kind) VALUES (?, 0, 1, 1, '[]', x'00', 'text')"
    db.executemany(sql, [(id_,) for id_ in blocks])
    assert vectors.put(db, note_id, note.sha256, {id_: made.one() for id_ in [*places, *blocks]})
    return note_id


def remove(db: apsw.Connection, note_id: int) -> None:
    text.remove(db, note_id)
    notes.remove(db, note_id)


def numbers(found: dict[int, Nearness]) -> dict[tuple[int, str], float]:
    of = {(note, "passage"): near.passage for note, near in found.items()}
    return of | {(note, "block"): near.block for note, near in found.items()}


def about(found: dict[int, Nearness]) -> object:
    return pytest.approx(numbers(found), abs=1e-5)


def nearest_passages(db: apsw.Connection, query: bytes, ids: list[int] | None, limit: int) -> list[int]:
    """All of them compared, here."""
    asked = np.frombuffer(query, np.int8).astype(np.float64)
    best: dict[int, float] = {}
    for id_, vector in db.execute(f"SELECT id, vector FROM vectors WHERE id & {BLOCK} = 0"):
        row = np.frombuffer(vector, np.int8).astype(np.float64)
        cosine = float(row @ asked / np.linalg.norm(row) / np.linalg.norm(asked))
        best[id_ >> SHIFT] = max(best.get(id_ >> SHIFT, -1.0), cosine)
    return sorted((note for note in best if ids is None or note in ids), key=lambda note: -best[note])[:limit]


@BOTH
@pytest.mark.parametrize("ids", [None, [], [3], [5, 8, 13, 21, 34, 55]])
@pytest.mark.parametrize("also", [(), (4, 34)])
def test_few_notes_are_compared_exactly(
    database: Database, most_compared: int, ids: list[int] | None, also: tuple[int, ...]
) -> None:
    made, chance = Vectors(1), random.Random(1)
    with database.writing() as db:
        if not database.vectors_in_sql:
            pytest.skip("sqlite-vec is not installed here")
        for k in range(60):
            put(db, f"n{k}", made, chance)
        vectors_held = held(most_compared)
        for _ in range(5):
            query = made.one()
            expected = about(nearest_in_sql(db, query, ids, 12, also))
            assert numbers(vectors_held.nearest(db, 0, query, ids, 12, also)) == expected


def test_signs_choose_nearly_all_that_are_nearest(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One note in four is read."""
    if not database.vectors_in_sql:
        pytest.skip("sqlite-vec is not installed here")
    made, chance = Vectors(2), random.Random(2)
    with database.writing() as db:
        for k in range(1500):
            put(db, f"n{k}", made, chance)
        monkeypatch.setattr(nearest, "_FEW", 0)
        monkeypatch.setattr(nearest, "_READ", 375)
        signs = held(0)
        for ids in (None, list(range(1, 1501, 2)), list(range(1, 1501, 10))):
            kept = 0
            for _ in range(25):
                query = made.one()
                found = signs.nearest(db, 0, query, ids, 20, ())
                assert len(found) == 20
                assert ids is None or set(found) <= set(ids)
                kept += len(found.keys() & set(nearest_passages(db, query, ids, 20)))
            assert kept / (25 * 20) >= 0.95


@BOTH
def test_every_change_is_followed(database: Database, most_compared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simplemem.index.nearest._LEFT", 12)  # some reloads between
    made, chance = Vectors(4), random.Random(4)
    followed = held(most_compared)
    there: dict[str, int] = {}
    for step in range(150):
        with database.writing() as db:
            for _ in range(chance.choice([0, 1, 1, 1, 3])):
                name = f"n{chance.randrange(40)}"
                if name in there and chance.random() < 0.4:
                    remove(db, there.pop(name))
                else:
                    there[name] = put(db, name, made, chance)
            query = made.one()
            afresh = held(most_compared)
            for ids in (None, sorted(there.values())[::2]):
                found = followed.nearest(db, 0, query, ids, 7, ())
                assert numbers(found) == about(afresh.nearest(db, 0, query, ids, 7, ())), step


@BOTH
def test_another_index_in_the_place_of_ours_is_read_anew(
    database: Database, tmp_path: Path, most_compared: int
) -> None:
    made, chance = Vectors(5), random.Random(5)
    vectors_held = held(most_compared)
    query = made.one()
    other = open_database(tmp_path / "other.db", nullcontext)
    for generation, opened in enumerate((database, other)):
        with opened.writing() as db:
            put(db, "n0", made, chance)
            expected = held(most_compared).nearest(db, 0, query, None, 5, ())
            assert numbers(vectors_held.nearest(db, generation, query, None, 5, ())) == about(expected)
    other.close()


@BOTH
def test_following_a_change_costs_what_has_changed(database: Database, most_compared: int) -> None:
    """Counted in steps of SQLite's machine, which no other load on this one can change."""
    made, chance = Vectors(6), random.Random(6)
    vectors_held = held(most_compared)
    ids = [1, 2, 3]

    def steps(db: apsw.Connection) -> int:
        taken = 0

        def another() -> bool:
            nonlocal taken
            taken += 1
            return False

        db.set_progress_handler(another, 1)
        vectors_held.nearest(db, 0, query, ids, 5, ())
        db.set_progress_handler(None)
        return taken

    query = made.one()
    with database.writing() as db:
        for k in range(900):
            put(db, f"n{k}", made, chance)
        loading, asking = steps(db), steps(db)
        put(db, "n7", made, chance)
        following = steps(db)
        remove(db, 9)
        passing_over = steps(db)
    assert asking < loading / 10
    assert following < asking + loading / 10
    assert passing_over < asking + loading / 10
