"""Vectors in memory are compared exactly, through a filter or without, and are always those of now."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from simplemem.errors import NotFound
from simplemem.index import embeddings, notes, service, vectors
from simplemem.index.api import IndexQuery, Similarities, Stat, Term
from simplemem.index.notes import PendingRows
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.sqlite.engine import SqliteConnection, SqliteEngine, open_engine
from simplemem.index.text import embedded_chunks, parse_note, remove_text
from simplemem.index.vectors import MAX_NUMBERS_IN_MEMORY, NearestNotes
from simplemem.note.note import read_note
from simplemem.providers.embeddings import create_embedder
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
DIMENSION = 96
BOTH = pytest.mark.parametrize(
    "most_held", [MAX_NUMBERS_IN_MEMORY, 0], ids=["blocks held", "blocks read"]
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteEngine]:
    opened = open_engine(tmp_path / "index.db", nullcontext)
    yield opened
    opened.close()


class Vectors:
    """Random ones that lie in clusters, as those of words do."""

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)
        self._middles = self._numbers.standard_normal((12, DIMENSION))

    def one(self) -> bytes:
        made = self._middles[self._numbers.integers(12)] + self._numbers.standard_normal(DIMENSION)
        return np.clip(made * 30, -127, 127).astype(np.int8).tobytes()


def put(db: SqliteConnection, name: str, made: Vectors, chance: random.Random) -> int:
    """A note of some passages and blocks; put again it has others."""
    note = read_note(name.encode())
    known = notes.row_at(db, f"{name}.md")
    read = parse_note(f"{name}.md", note, Stat(0, 0, 0))
    note_id = notes.put(PendingRows(db), None if known is None else known.id, read, None, None)
    if known is not None:
        remove_text(db, note_id)
    first = note_id << SHIFT
    places = [first | k for k in range(chance.randint(1, 4))]
    blocks = [first | BLOCK | k for k in range(chance.randint(0, 4))]
    sql = "INSERT INTO places (id, start, stop, line, headings, hash) VALUES ($1, 0, 1, 1, '[]', x'00')"
    db.executemany(sql, [(id_,) for id_ in (*places, *blocks)])
    db.vectors.create(DIMENSION)
    assert embeddings.put(db, note_id, note.sha256, {id_: made.one() for id_ in [*places, *blocks]})
    return note_id


def remove(db: SqliteConnection, note_id: int) -> None:
    remove_text(db, note_id)
    notes.remove(db, note_id)


class Near(NamedTuple):
    """How near a note is: by its best passage, its best block, and both."""

    passage: float
    block: float
    score: float


def by_note(found: Similarities | None) -> dict[int, Near]:
    if found is None:
        return {}
    assert found.passages.keys() == found.blocks.keys() == found.scores.keys()
    return {
        note: Near(passage, found.blocks[note], found.scores[note])
        for note, passage in found.passages.items()
    }


def numbers(found: Mapping[int, Near]) -> dict[tuple[int, str], float]:
    return {
        (note, kind): cosine
        for note, near in found.items()
        for kind, cosine in near._asdict().items()
    }


def about(found: Mapping[int, Near]) -> object:
    return pytest.approx(numbers(found), abs=1e-5)


def compared(db: SqliteConnection, query: bytes) -> dict[int, Near]:
    """All of them compared, here. A passage of one block is both."""
    asked = np.frombuffer(query, np.int8).astype(np.float64)
    best: dict[tuple[int, bool], float] = {}
    places = [id_ for (id_,) in db.execute("SELECT id FROM places WHERE hash IS NOT NULL")]
    for id_, vector in db.vectors.read(places).items():
        row = np.frombuffer(vector, np.int8).astype(np.float64)
        key = id_ >> SHIFT, bool(id_ & BLOCK)
        cosine = float(row @ asked / np.linalg.norm(row) / np.linalg.norm(asked))
        best[key] = max(best.get(key, -1.0), cosine)
    passages = {note: cosine for (note, of_block), cosine in best.items() if not of_block}
    return {
        note: Near(near, block, max(0.0, (near + block) / 2))
        for note, near in passages.items()
        for block in [max(near, best.get((note, True), 0.0))]
    }


def first(found: dict[int, Near], ids: list[int] | None, limit: int) -> list[int]:
    passing = [note for note in found if ids is None or note in ids]
    return sorted(passing, key=lambda note: -found[note].passage)[:limit]


@BOTH
@pytest.mark.parametrize("ids", [None, [], [3], [5, 8, 13, 21, 34, 55]])
@pytest.mark.parametrize("also", [(), (4, 34)])
def test_few_notes_are_compared_exactly(
    database: SqliteEngine, most_held: int, ids: list[int] | None, also: tuple[int, ...]
) -> None:
    made, chance = Vectors(1), random.Random(1)
    with database.writing() as db:
        for k in range(60):
            put(db, f"n{k}", made, chance)
        vectors_held = NearestNotes(most_held)
        for _ in range(
            5
        ):  # the second question and those after it are answered with blocks in memory
            query = made.one()
            every = compared(db, query)
            wanted = {
                *first(every, ids, 12),
                *(note for note in also if ids is None or note in ids),
            }
            similarities = vectors_held.find(
                db,
                (0, notes.newest_rev(db)),
                query,
                ids,
                12,
                [note for note in also if ids is None or note in ids],
                partial(notes.paths_of, db),
            )
            found = by_note(similarities)
            assert wanted <= found.keys() and (ids is None or found.keys() <= set(ids))
            assert numbers(found) == about({note: every[note] for note in found})


def _steps_of_queries(database: SqliteEngine, most_held: int, count: int) -> list[int]:
    """Return the steps of SQLite's machine for a query of many notes: as before, after a change, after a removal."""
    made, chance = Vectors(6), random.Random(6)
    vectors_held = NearestNotes(most_held)
    query = made.one()

    def steps(db: SqliteConnection) -> int:
        taken = 0

        def another() -> bool:
            nonlocal taken
            taken += 1
            return False

        db.raw.set_progress_handler(another, 1)
        vectors_held.find(
            db, (0, notes.newest_rev(db)), query, [1, 2, 3], 5, (), partial(notes.paths_of, db)
        )
        db.raw.set_progress_handler(None)
        return taken

    with database.writing() as db:
        for k in range(count):
            put(db, f"n{k}", made, chance)
        for _ in ("by the engine", "into memory", "blocks into memory"):
            steps(db)
        asking = steps(db)
        put(db, "n7", made, chance)
        following = steps(db)
        remove(db, 9)
        passing_over = steps(db)
    return [asking, following, passing_over]


@BOTH
def test_following_a_change_costs_what_has_changed(most_held: int, tmp_path: Path) -> None:
    """Counted in steps of SQLite's machine, which no other load on this one can change."""
    steps = []
    for count in (60, 1200):
        with contextlib.closing(open_engine(tmp_path / f"{count}.db", nullcontext)) as engine:
            steps.append(_steps_of_queries(engine, most_held, count))
    few, many = steps
    assert all(more < 2 * less + 100 for less, more in zip(few, many, strict=True)), steps


def test_memory_follows_every_change_of_the_table(
    store: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_MAX_STALE_ROWS", 12)  # some reloads between
    index, embedder = store._parts.index, create_embedder("wordllama")
    assert embedder is not None
    query = embedder.query("the harbour crane at number 7")
    chosen = random.Random(7)
    name = "n0"
    for step in range(60):
        if chosen.random() < 0.4:
            with contextlib.suppress(NotFound):
                store.delete(name)  # most often the newest: its place is taken by what comes next
        else:
            name = f"n{chosen.randrange(8)}"
            store.create(
                name, f"Number {step} of the harbour, where {name} stands.", overwrite=True
            )
            store.sync()
        if chosen.random() < 0.4:  # else several changes between two questions
            followed = by_note(index.ask(IndexQuery(vector=query)).similarities)
            with index.database.reading() as db:
                assert numbers(followed) == about(compared(db, query)), step


def test_vectors_of_a_note_that_changed_meanwhile_are_not_stored(database: SqliteEngine) -> None:
    made = Vectors(8)
    with database.writing() as db:
        note_id = put(db, "n", made, random.Random(1))
        before = vectors.vectors_of(db, note_id)
        assert not embeddings.put(
            db, note_id, "the hash it had before", {note_id << SHIFT: made.one()}
        )
        assert not embeddings.put(db, 99, read_note(b"n").sha256, {99 << SHIFT: made.one()})
        assert vectors.vectors_of(db, note_id) == before


def test_without_vectors_wanted_those_there_are_kept_and_not_used(
    store: EnhancedStore, write: Write
) -> None:
    write("a.md", "The harbour crane.")
    store.sync()
    with EnhancedStore(
        store.root, Settings.model_validate({"embed": {"provider": "none"}})
    ) as plain:
        plain.sync()
        assert (plain.stats()["vectors"], plain.state().state) == (1, "ready")
        found = plain.search("crane", mode="semantic")
        assert [hit.name for hit in found.hits] == ["a"] and "words only" in found.degraded
        write("b.md", "The railway to Vienna.")
        plain.sync()
        assert plain.stats()["vectors"] == 1
        plain.sync(rebuild=True)
        assert plain.stats()["vectors"] == 0


def test_the_nearest_passage_is_the_one_that_is_shown(store: EnhancedStore, write: Write) -> None:
    filler = "The committee met again and spoke of budgets, minutes and chairs. " * 30
    write(
        "long.md",
        f"# Start\n\n{filler}\n\n# Insects\n\nHoney comes from bees in a hive.\n\n# End\n\n{filler}\n",
    )
    store.sync()
    hit = store.search("honeybee beekeeping apiary", mode="semantic").hits[0]
    assert hit.heading == "Insects" and "bees" in hit.snippet


def test_no_note_is_forgotten_when_more_paths_are_met_than_are_kept(
    store: EnhancedStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("apple", "pear", "plum"):
        write(f"{name}.md", f"The {name} stands beside the old wall.\n")
    store.sync()
    monkeypatch.setattr(service, "_MAX_PATHS", 0)
    index, vector = store._parts.index, store._parts.embedding.embed_query("apple")[0]
    for terms, count in (((), 1), ((Term(("plum",)),), 2), ((), 1)):
        near = index.ask(IndexQuery(terms, vector=vector, max_nearest=1)).similarities
        assert len(by_note(near)) == count


def test_whether_a_name_within_a_query_counts_does_not_depend_on_earlier_queries(
    store: EnhancedStore, write: Write
) -> None:
    write("crane.md", "It lifts loads.\n")
    write("harbour.md", "Ships lie there.\n")
    store.sync()
    index = store._parts.index
    question = IndexQuery((Term(("ships",)),), inner_names={"crane": 0.5})
    assert index.ask(question).named == {}

    # The index keeps the path of the crane in memory from now on.
    assert index.ask(IndexQuery((Term(("loads",)),))).notes
    assert index.ask(question).named == {}
    both = index.ask(IndexQuery((Term(("ships",)), Term(("loads",))), inner_names={"crane": 0.5}))
    assert list(both.named.values()) == [0.5]


def test_the_id_of_a_block_is_in_no_vector_and_has_none() -> None:
    note = read_note(
        b"# Day\n\n> [!quote] You\n> Plum jam.\n\n^turn-1-abc\n\nA last line.^2\n\n> ^in-quote\r\n"
    )
    texts = [said for _, _, said in embedded_chunks(1, parse_note("a.md", note, Stat(0, 0, 0)))]
    assert "abc" not in "".join(texts) and "in-quote" not in "".join(texts)
    assert [said for said in texts if said][1:] == [
        "Day\n> [!quote] You\n> Plum jam.",
        "Day\nA last line.^2",
    ]
