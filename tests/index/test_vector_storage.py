"""Vectors in the engine's own type: a table that anyone can query with SQL, or bytes where sqlite-vec has no build."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
import sqlite_vec

from simplemem.index.sqlite import engine
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
SETTINGS = Settings.model_validate({"write": {"durability": "fast"}})
PAGE = Path(__file__).parents[2] / "docs" / "internals" / "engines.md"
NOTES = {
    "honey.md": "Bees make honey in a hive.",
    "cranes.md": "The harbour crane lifts cargo from ships.",
    "sails.md": "A sail drives the boat across the lake.",
    "wax.md": "Beekeepers melt the wax of the combs.",
}


@pytest.fixture
def filled(vault: Path, write: Write) -> Path:
    for name, text in NOTES.items():
        write(name, f"{text}\n")
    return vault


@pytest.fixture
def no_extension(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Python for which sqlite-vec has no build."""
    monkeypatch.setattr(engine, "_extension", lambda: None)
    return


def ranking(store: EnhancedStore, query: str) -> list[tuple[str, float]]:
    hits = store.search(query, mode="semantic").hits
    return [(hit.name, hit.score) for hit in hits]


def test_the_statement_of_the_documentation_finds_the_nearest_passages(filled: Path) -> None:
    with EnhancedStore(filled, SETTINGS) as store:
        store.sync()
        path = store._parts.index.path
        assert store.stats()["vector_storage"] == "a vec0 table of sqlite-vec"
    (statement,) = re.findall(r"```sql\n(SELECT n\.path.*?)```", PAGE.read_text(), re.DOTALL)
    with closing(apsw.Connection(str(path))) as db:
        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        rows = db.execute(statement, {"path": "honey.md"}).fetchall()
    assert [rows[0][0], rows[0][2]] == ["honey.md", 0.0]
    assert rows[1][0] == "wax.md"
    assert {path for path, *_ in rows} == set(NOTES)


def test_without_sqlite_vec_the_same_notes_are_found_and_stats_says_so(
    filled: Path, no_extension: None
) -> None:
    with EnhancedStore(filled, SETTINGS) as store:
        store.sync()
        assert "bytes, compared in memory" in store.stats()["vector_storage"]
        as_bytes = [ranking(store, "insects in a hive"), ranking(store, "boats")]
        assert store._parts.database.rows("SELECT typeof(vector) FROM vectors LIMIT 1") == [
            ("blob",)
        ]
        store.sync(rebuild=True)
        assert [ranking(store, "insects in a hive"), ranking(store, "boats")] == as_bytes


def test_an_index_whose_table_this_python_cannot_read_is_built_again_without_a_message(
    filled: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with EnhancedStore(filled, SETTINGS) as store:
        store.sync()
        before = ranking(store, "insects in a hive")
    monkeypatch.setattr(engine, "_extension", lambda: None)
    with EnhancedStore(filled, SETTINGS) as store:
        store.sync()
        assert ranking(store, "insects in a hive") == before
    assert not caplog.records


def test_vectors_of_a_note_that_changes_again_and_again_leave_no_rows(
    filled: Path, write: Write
) -> None:
    with EnhancedStore(filled, SETTINGS) as store:
        for number in range(40):
            write("honey.md", f"Bees make honey in hive number {number}.\n")
            store.sync()
        count = store.stats()["vectors"]
        with store._parts.database.reading() as db:
            places, packed = db.vectors.read_all(blocks=False)
            blocks, _ = db.vectors.read_all(blocks=True)
            sizes = db.execute("SELECT count(*) FROM vectors_chunks").get
        assert count == len(places) + len(blocks)
        assert len(packed) == 256 * len(places)
        assert sizes == 1


def test_a_change_of_one_paragraph_writes_no_vector_of_the_others(
    filled: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    paragraphs = "\n\n".join(f"Keeper {number} has hives by the river." for number in range(6))
    path = write("keepers.md", f"{paragraphs}\n")
    written: list[int] = []
    write_vectors = engine.SqliteVectors.write

    def recorded(self: engine.SqliteVectors, vectors: Iterable[tuple[int, bytes]]) -> None:
        rows = list(vectors)
        written.extend(place for place, _ in rows)
        write_vectors(self, rows)

    with EnhancedStore(filled, SETTINGS) as store:
        store.sync()
        before = store.stats()["vectors"]
        monkeypatch.setattr(engine.SqliteVectors, "write", recorded)
        path.write_text(path.read_text().replace("Keeper 5", "Keeper 9"))
        store.sync()
        assert store.stats()["vectors"] == before
        assert len(written) == 2  # the passage, and the block that changed
        assert store.search("keeper by the river", mode="semantic").hits[0].name == "keepers"
