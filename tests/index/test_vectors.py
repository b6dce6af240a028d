"""The nearest notes are the same by sqlite-vec and in memory, and follow every change."""

from __future__ import annotations

import contextlib
import importlib.util
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import apsw
import pytest

from simplemem.config import Settings
from simplemem.errors import NotFound
from simplemem.index import fill, notes, text, vectors
from simplemem.index.database import Database, open_database
from simplemem.index.door import Nearness, Question, Stat
from simplemem.index.nearest import VectorsInMemory, nearest_in_sql
from simplemem.index.notes import Rows
from simplemem.index.text import BLOCK, SHIFT
from simplemem.memory import Filter
from simplemem.note.note import read_note
from simplemem.services.embed import embedder_named
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
DIMENSION = 16


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "index.db", nullcontext)
    yield opened
    opened.close()


def held() -> VectorsInMemory:
    return VectorsInMemory(DIMENSION, with_signs=True)


def vector(seed: int) -> bytes:
    return random.Random(seed).randbytes(DIMENSION)


def put_note(db: apsw.Connection, note_id: int, passages: list[bytes], blocks: list[bytes]) -> None:
    """The rows of a new note with these vectors."""
    note = read_note(b"")
    assert notes.put(db, None, text.understood(f"n{note_id}.md", note, Stat(0, 0, 0)), None, None, Rows()) == note_id
    first = note_id << SHIFT
    columns = "(id, start, stop, line, headings, hash"
    for k in range(len(passages)):
        db.execute(f"INSERT INTO passages {columns}) VALUES (?, 0, 1, 1, '[]', x'00')", (first | k,)).fetchall()
    for k in range(len(blocks)):
        sql = f"INSERT INTO blocks {columns}, kind) VALUES (?, 0, 1, 1, '[]', x'00', 'text')"
        db.execute(sql, (first | BLOCK | k,)).fetchall()
    made = {first | k: row for k, row in enumerate(passages)} | {first | BLOCK | k: row for k, row in enumerate(blocks)}
    assert vectors.put(db, note_id, note.sha256, made)


def fill_with_notes(db: apsw.Connection, count: int) -> None:
    for k in range(1, count + 1):
        put_note(
            db, k, [vector(10 * k + j) for j in range(1 + k % 4)], [vector(10 * k + 5 + j) for j in range(1 + k % 3)]
        )


def rounded(found: dict[int, Nearness]) -> dict[int, tuple[float, float]]:
    return {note: (round(near.passage, 5), round(near.block, 5)) for note, near in found.items()}


def cosine(one: bytes, two: bytes) -> float:
    a, b = memoryview(one).cast("b"), memoryview(two).cast("b")
    lengths = (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def test_a_note_is_as_near_as_its_best_passage_and_its_best_block(database: Database) -> None:
    query = vector(1)
    with database.writing() as db:
        put_note(db, 1, [vector(2), vector(3)], [vector(4)])
        put_note(db, 2, [vector(7)], [vector(5), vector(6)])
        found = held().nearest(db, 0, query, None, 10, ())
    assert found[1].passage == pytest.approx(max(cosine(query, vector(2)), cosine(query, vector(3))), abs=1e-5)
    assert found[1].block == pytest.approx(max(found[1].passage, cosine(query, vector(4))), abs=1e-5)
    assert found[2].passage == pytest.approx(cosine(query, vector(7)), abs=1e-5)
    blocks = max(cosine(query, vector(5)), cosine(query, vector(6)))
    assert found[2].block == pytest.approx(max(found[2].passage, blocks), abs=1e-5)


@pytest.mark.parametrize("ids", [None, [], [3], [1, 2, 3, 5, 8, 13, 21, 34, 55]])
@pytest.mark.parametrize("also", [(), (4, 34)])
def test_sql_and_memory_find_the_same(database: Database, ids: list[int] | None, also: tuple[int, ...]) -> None:
    with database.writing() as db:
        if not database.vectors_in_sql:
            pytest.skip("sqlite-vec is not installed here")
        fill_with_notes(db, 60)
        put_note(db, 61, [bytes(DIMENSION)], [bytes(DIMENSION)])  # nothing of it was a known word
        for seed in (1, 2, 3):
            by_sql = nearest_in_sql(db, vector(seed), ids, 12, also)
            in_memory = held().nearest(db, 0, vector(seed), ids, 12, also)
            assert rounded(by_sql) == rounded(in_memory)
            assert set(by_sql) <= (set(ids) if ids is not None else set(range(1, 62)))
            assert len(by_sql) >= min(12, len(ids) if ids is not None else 61)


def test_memory_follows_every_change_of_the_table(store: EnhancedStore) -> None:
    index = store._core.index
    embedder = embedder_named("wordllama")
    assert embedder is not None
    index.keep_vectors_in_memory()
    query = embedder.query("the harbour crane at number 7")
    chosen = random.Random(7)
    name = "n0"
    for step in range(80):
        if chosen.random() < 0.4:
            with contextlib.suppress(NotFound):
                store.delete(name)  # most often the newest: its place is taken by what comes next
        else:
            name = f"n{chosen.randrange(8)}"
            store.create(name, f"Number {step} of the harbour, where {name} stands.", overwrite=True)
            store.sync()
        if chosen.random() < 0.6:
            continue  # several changes between two questions
        followed = index.ask(Question(vector=query)).near or {}
        with index.snapshot() as db:
            afresh = VectorsInMemory(embedder.dimension, with_signs=True).nearest(db, 0, query, None, 200, ())
        assert rounded(followed) == rounded(afresh), step


def test_a_note_made_after_another_was_deleted_is_found_by_its_own_meaning(store: EnhancedStore) -> None:
    store.create("keep", "The harbour crane was repaired in spring.")
    store.sync()
    with EnhancedStore(store.root, store.settings) as served:
        served.start()
        assert served.wait_until_settled()
        served.create("bees", "Bees make honey in the hive.")
        served.sync()
        assert served.search("bees honey hive", mode="semantic").hits[0].name == "bees"
        served.delete("bees")
        served.create("train", "The railway train to Vienna leaves at noon.")
        served.sync()
        assert served.search("railway train to Vienna", mode="semantic").hits[0].name == "train"
        for hit in served.search("bees honey hive", mode="semantic", explain=True).hits:
            assert hit.why is not None
            assert hit.why["legs"]["block_meaning"]["raw"] < 0.5, hit.name


def test_vectors_of_a_note_that_changed_meanwhile_are_not_stored(database: Database) -> None:
    with database.writing() as db:
        put_note(db, 1, [vector(1)], [vector(2)])
        assert not vectors.put(db, 1, "the hash it had before", {1 << SHIFT: vector(9)})
        assert not vectors.put(db, 2, read_note(b"").sha256, {2 << SHIFT: vector(9)})
        assert vectors.vectors_of(db, 1) == [vector(1)]


def test_another_embedder_never_meets_the_vectors_of_the_old_one(store: EnhancedStore, write: Write) -> None:
    write("a.md", "The harbour crane.")
    store.sync()
    database = store._core.index.database
    assert database.value("SELECT count(*) FROM vectors") > 0

    class Narrower:
        """An embedder of the same text with other numbers."""

        name, dimension, remote, batch, reads_sentences = "narrower", 8, False, 10, True

        def documents(self, texts: list[str], *, stopped: object = None) -> list[bytes]:
            return [bytes([1] * 8) for _ in texts]

        def query(self, text: str, *, deadline: float | None = None) -> bytes:
            return bytes([1] * 8)

        def close(self) -> None:
            """Nothing is held."""

    fill.fill(store._core.vault, database, Narrower())
    assert {len(row[0]) for row in database.rows("SELECT vector FROM vectors")} == {8}
    embedder = embedder_named("wordllama")
    assert embedder is not None
    fill.fill(store._core.vault, database, embedder)
    assert {len(row[0]) for row in database.rows("SELECT vector FROM vectors")} == {embedder.dimension}


def test_without_vectors_wanted_those_there_are_kept_and_not_used(store: EnhancedStore, write: Write) -> None:
    write("a.md", "The harbour crane.")
    store.sync()
    with EnhancedStore(store.root, Settings.model_validate({"embed": {"provider": "none"}})) as plain:
        plain.sync()
        assert plain.stats()["vectors"] == 1
        assert plain.state().state == "ready"
        found = plain.search("crane", mode="semantic")
        assert [hit.name for hit in found.hits] == ["a"]
        assert "words only" in found.degraded
        write("b.md", "The railway to Vienna.")
        plain.sync()
        assert plain.stats()["vectors"] == 1
        plain.sync(rebuild=True)
        assert plain.stats()["vectors"] == 0


def test_where_sqlite_vec_is_missing_the_answers_are_the_same(
    store: EnhancedStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k, subject in enumerate(["harbour cranes", "honey bees", "night trains", "paper lanterns", "salt marshes"]):
        write(f"n{k}.md", f"# Notes\n\nWhat we know about {subject}.\n\nMore on {subject} later.\n")
    store.sync()
    asked = {"mode": "semantic", "limit": 5, "explain": True}
    expected = store.search("a machine that lifts cargo from ships", **asked)
    narrowed = store.search("insects", filter=Filter.of(prefix="n1"), **asked)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "sqlite_vec" else find(name, *rest)
    )
    with EnhancedStore(store.root, store.settings) as without:
        found = without.search("a machine that lifts cargo from ships", **asked)
        assert without.stats()["sqlite_vec"] is False
        assert [(h.name, h.score) for h in found.hits] == [(h.name, h.score) for h in expected.hits]
        assert [h.why for h in found.hits] == [h.why for h in expected.hits]
        assert [h.name for h in without.search("insects", filter=Filter.of(prefix="n1"), **asked).hits] == ["n1"]
    assert [h.name for h in narrowed.hits] == ["n1"]


def test_the_nearest_passage_is_the_one_that_is_shown(store: EnhancedStore, write: Write) -> None:
    filler = "The committee met again and spoke of budgets, minutes and chairs. " * 30
    write("long.md", f"# Start\n\n{filler}\n\n# Insects\n\nHoney comes from bees in a hive.\n\n# End\n\n{filler}\n")
    store.sync()
    hit = store.search("honeybee beekeeping apiary", mode="semantic").hits[0]
    assert hit.heading == "Insects"
    assert "bees" in hit.snippet
