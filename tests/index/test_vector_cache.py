"""The cache of vectors: shared, bounded, and nobody's trouble when it is gone."""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from pathlib import Path

import apsw
import pytest

from simplemem.index.vector_cache import VectorCache

MUCH = 100_000_000


def vector(k: int, dimension: int = 16) -> bytes:
    return bytes([k % 256]) * dimension


def hash_of(k: int) -> bytes:
    return k.to_bytes(16, "big")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / ".simplemem"
    folder.mkdir()
    return folder / "vectors.db"


def test_what_was_put_is_there_again_in_another_process_by_name_and_hash(path: Path) -> None:
    VectorCache(path, MUCH).put("one", {hash_of(k): vector(k) for k in range(1200)})
    VectorCache(path, MUCH).put("two", {hash_of(1): vector(9, 8)})
    cache = VectorCache(path, MUCH)
    assert cache.get("one", [hash_of(k) for k in range(1300)]) == {hash_of(k): vector(k) for k in range(1200)}
    assert cache.get("two", [hash_of(1), hash_of(2)]) == {hash_of(1): vector(9, 8)}
    assert cache.get("three", [hash_of(1)]) == {}
    assert (cache.dimension("one"), cache.dimension("two"), cache.dimension("three")) == (16, 8, None)


def test_a_model_that_changed_its_width_takes_its_old_vectors_along(path: Path) -> None:
    cache = VectorCache(path, MUCH)
    cache.put("one", {hash_of(1): vector(1, 16)})
    cache.put("one", {hash_of(2): vector(2, 32)})
    assert cache.get("one", [hash_of(1), hash_of(2)]) == {hash_of(2): vector(2, 32)}
    assert cache.dimension("one") == 32


def test_when_it_is_full_the_oldest_go_and_the_file_stays_small(path: Path) -> None:
    most = 400_000
    cache = VectorCache(path, most)
    for start in range(0, 4000, 100):
        cache.put("one", {hash_of(k): vector(k, 512) for k in range(start, start + 100)})
    kept = sorted(cache.get("one", [hash_of(k) for k in range(4000)]))
    assert 200 < len(kept) < 800
    assert kept == [hash_of(k) for k in range(4000 - len(kept), 4000)]
    assert path.stat().st_size < most * 1.3
    VectorCache(path, 100_000).put("one", {hash_of(5000): vector(1, 512)})
    assert path.stat().st_size < 200_000


@pytest.mark.parametrize("damage", ["text", "tail", "cut", "other", "newer"])
def test_a_damaged_file_is_thrown_away_with_one_warning(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    VectorCache(path, MUCH).put("one", {hash_of(k): vector(k, 256) for k in range(300)})
    data = path.read_bytes()
    if damage == "text":
        path.write_text("this is not a database\n" * 400)
    elif damage == "tail":
        path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 3])
    else:
        with apsw.Connection(str(path)) as db:
            db.execute("CREATE TABLE strange (x)" if damage == "other" else "PRAGMA user_version = 99").fetchall()
        db.close()
    cache = VectorCache(path, MUCH)
    with caplog.at_level(logging.WARNING):
        assert cache.get("one", [hash_of(1)]) == {}
        cache.put("one", {hash_of(1): vector(7)})
        assert cache.get("one", [hash_of(1)]) == {hash_of(1): vector(7)}
    assert ["cannot be used" in record.getMessage() for record in caplog.records] == [True]


def test_a_file_of_somebody_elses_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "mine-vectors.db"
    file.write_text("my own file\n" * 100)
    cache = VectorCache(file, MUCH)
    with caplog.at_level(logging.WARNING):
        cache.put("one", {hash_of(1): vector(1)})
    assert cache.get("one", [hash_of(1)]) == {}
    assert file.read_text() == "my own file\n" * 100
    assert "mine-vectors.db" in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege elsewhere")
def test_a_link_in_its_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious.db"
    target.write_text("precious\n" * 1000)
    path.symlink_to(target)
    cache = VectorCache(path, MUCH)
    cache.put("one", {hash_of(1): vector(1)})
    assert cache.get("one", [hash_of(1)]) == {} and target.read_text() == "precious\n" * 1000 and path.is_symlink()


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    cache = VectorCache(tmp_path / "file" / "vectors.db", MUCH)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            cache.put("one", {hash_of(1): vector(1)})
            assert cache.get("one", [hash_of(1)]) == {}
    assert len(caplog.records) == 1


def _put_many(path: Path, who: int) -> None:
    cache = VectorCache(path, MUCH)
    for start in range(0, 200, 20):
        cache.put(f"model {who % 2}", {hash_of(who * 1000 + k): vector(who) for k in range(start, start + 20)})


def test_processes_and_threads_that_put_at_once_lose_nothing(path: Path) -> None:
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    workers = [context.Process(target=_put_many, args=(path, who)) for who in range(2)]
    workers_here = [threading.Thread(target=_put_many, args=(path, who)) for who in range(2, 5)]
    for worker in (*workers, *workers_here):
        worker.start()
    for worker in (*workers, *workers_here):
        worker.join(60)
    cache = VectorCache(path, MUCH)
    for who in range(5):
        hashes = [hash_of(who * 1000 + k) for k in range(200)]
        assert cache.get(f"model {who % 2}", hashes) == dict.fromkeys(hashes, vector(who))


def test_it_is_counted_by_embedder_and_emptied_for_everybody(path: Path) -> None:
    cache, other = VectorCache(path, MUCH), VectorCache(path, MUCH)
    assert (cache.count(), cache.clear()) == ({}, 0) and not path.exists()
    cache.put("one", {hash_of(k): vector(k) for k in range(3)})
    cache.put("two", {hash_of(1): vector(9, 8)})
    assert other.count() == {"one": 3, "two": 1}
    assert other.clear() == 4
    assert cache.get("one", [hash_of(1)]) == {} and cache.count() == {} and cache.dimension("one") is None
    cache.put("one", {hash_of(1): vector(1, 8)})
    assert cache.get("one", [hash_of(1)]) == {hash_of(1): vector(1, 8)}
