"""Meaning in PostgreSQL beyond the size up to which all vectors are compared: pgvector's index, beside exact answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import PROGRAMS, needs_postgres, running

from simplemem.index.api import IndexFilter, IndexQuery
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
if PROGRAMS is not None:
    from simplemem.index.postgres import vectors
    from simplemem.index.postgres.database import PostgresEngine

WORDS = """harbour crane anchor sail storm captain cargo plum orchard honey bee market bread oven flour violin concert
    choir melody painter canvas museum marble doctor fever clinic bandage tax invoice ledger contract judge court train
    station ticket bridge tunnel tower garden tulip rain cloud winter snow mountain valley river trout kettle tea""".split()
FILTERS = {
    "none": IndexFilter(),
    "a third": IndexFilter(tags={"t1": ""}),
    "two thirds": IndexFilter(tags={"t1": "", "t2": ""}),
    "a folder": IndexFilter(prefix="a/"),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    chance = random.Random(7)
    for k in range(400):
        path = tmp_path / ("a" if k % 50 == 0 else "b") / f"n{k}.md"
        path.parent.mkdir(exist_ok=True)
        paragraphs = (" ".join(chance.choices(WORDS, k=8)).capitalize() + "." for _ in range(3))
        path.write_text(
            f"---\ntags: [t{k % 3}]\n---\n\n" + "\n\n".join(paragraphs) + "\n", encoding="utf-8"
        )
    return tmp_path


def opened(vault: Path, engine: str = "") -> EnhancedStore:
    store = EnhancedStore(vault, Settings.model_validate({"index": {"engine": engine}}))
    store.sync()
    return store


def indexes(store: EnhancedStore) -> list[str]:
    sql = "SELECT indexname FROM pg_indexes WHERE schemaname = $1 AND indexdef LIKE '%hnsw%'"
    database = store._parts.index.database
    return [name for (name,) in database.rows(sql, (database.schema,))]  # type: ignore[attr-defined]


def nearest(store: EnhancedStore, note: str, narrow: IndexFilter) -> dict[str, tuple[float, float]]:
    """The notes nearest to one, and how near they are."""
    found = store._parts.index.ask(IndexQuery(like=note, narrow=narrow, max_nearest=20))
    similarities = found.similarities
    if similarities is None:
        return {}
    return {
        found.paths[id_]: (round(passage, 6), round(similarities.blocks[id_], 6))
        for id_, passage in similarities.passages.items()
    }


def test_nearly_all_of_the_nearest_are_found_each_as_near_as_by_comparing_all(
    vault: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresEngine, "max_compared_numbers", 10_000)
    monkeypatch.setattr(vectors, "_MAX_COMPARED_NOTES", 10)
    with opened(vault) as sidecar, opened(vault, url) as postgres:
        assert indexes(postgres) == ["vectors_near"]
        for name, narrow in FILTERS.items():
            held, wanted = 0, 0
            for k in range(0, 400, 20):
                exact, found = (
                    nearest(store, f"b/n{k + 1}.md", narrow) for store in (sidecar, postgres)
                )
                assert len(found) == len(exact), name
                # Nothing is in memory.
                assert postgres._parts.index._nearest._state == (None, -1)
                assert all(found[path] == exact[path] for path in found.keys() & exact.keys())
                held, wanted = held + len(found.keys() & exact.keys()), wanted + len(exact)
            assert held >= 0.95 * wanted > 0, name


def test_vectors_of_a_size_that_is_compared_have_no_index(vault: Path, url: str) -> None:
    with opened(vault, url) as store:
        assert indexes(store) == [] and len(nearest(store, "b/n1.md", IndexFilter())) == 20


@pytest.mark.slow
def test_the_index_follows_every_change_and_comes_back_with_a_rebuild(
    vault: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresEngine, "max_compared_numbers", 10_000)
    with opened(vault, url) as store, opened(vault, url) as other:
        (vault / "twin.md").write_bytes((vault / "b/n1.md").read_bytes())
        store.sync()
        for each in (store, other):
            assert "twin.md" in nearest(each, "b/n1.md", IndexFilter())
        store.delete("twin")
        assert "twin.md" not in nearest(other, "b/n1.md", IndexFilter())
        store.sync(rebuild=True)
        assert (
            indexes(other) == ["vectors_near"]
            and len(nearest(other, "b/n1.md", IndexFilter())) == 20
        )
