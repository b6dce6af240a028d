"""The cache of vectors: shared, bounded, and nobody's trouble when it is gone."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import apsw
import pytest

from simplemem.index.vector_cache import VectorCache

MUCH = 100_000_000


def some(keys: range, vector: bytes = b"v" * 16) -> dict[bytes, bytes]:
    return {k.to_bytes(16, "big"): vector for k in keys}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / ".simplemem"
    folder.mkdir()
    return folder / "vectors.db"


def test_what_was_put_is_there_again_by_name_and_hash_counted_and_emptied_for_everybody(path: Path) -> None:
    cache, other = VectorCache(path, MUCH), VectorCache(path, MUCH)
    assert (cache.count(), cache.clear()) == ({}, 0) and not path.exists()
    cache.put("one", some(range(1200)))
    cache.put("two", some(range(1), b"w" * 8))
    assert other.get("one", some(range(1300))) == some(range(1200))
    assert other.get("two", some(range(2))) == some(range(1), b"w" * 8) and other.get("three", some(range(1))) == {}
    assert (cache.dimension("one"), cache.dimension("two"), cache.dimension("three")) == (16, 8, None)
    assert other.count() == {"one": 1200, "two": 1}
    assert other.clear() == 1201
    assert cache.get("one", some(range(1))) == {} and cache.count() == {} and cache.dimension("one") is None


def test_a_model_that_changed_its_width_takes_its_old_vectors_along(path: Path) -> None:
    cache = VectorCache(path, MUCH)
    cache.put("one", some(range(1)))
    cache.put("one", some(range(1, 2), b"x" * 32))
    assert cache.get("one", some(range(2))) == some(range(1, 2), b"x" * 32) and cache.dimension("one") == 32


def test_when_it_is_full_the_oldest_go_and_the_file_stays_small(path: Path) -> None:
    most = 400_000
    cache = VectorCache(path, most)
    for start in range(0, 4000, 100):
        cache.put("one", some(range(start, start + 100), b"v" * 512))
    kept = cache.get("one", some(range(4000)))
    assert 200 < len(kept) < 800 and kept.keys() == some(range(4000 - len(kept), 4000)).keys()
    assert path.stat().st_size < most * 1.3


@pytest.mark.parametrize("damage", ["text", "tail", "cut", "other", "newer"])
def test_a_damaged_file_is_thrown_away_with_one_warning(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    VectorCache(path, MUCH).put("one", some(range(300), b"v" * 256))
    data = path.read_bytes()
    spoilt = {
        "text": b"this is not a database\n" * 400,
        "tail": data[:4096] + b"\xff" * (len(data) - 4096),
        "cut": data[: len(data) // 3],
    }
    if damage in spoilt:
        path.write_bytes(spoilt[damage])
    else:
        with apsw.Connection(str(path)) as db:
            db.execute("CREATE TABLE strange (x)" if damage == "other" else "PRAGMA user_version = 99").fetchall()
        db.close()
    cache = VectorCache(path, MUCH)
    with caplog.at_level(logging.WARNING):
        assert cache.get("one", some(range(1))) == {}
        cache.put("one", some(range(1)))
        assert cache.get("one", some(range(1))) == some(range(1))
    assert ["cannot be used" in record.getMessage() for record in caplog.records] == [True]


def test_what_is_somebody_elses_a_link_or_cannot_be_made_is_left_as_it_is(path: Path, tmp_path: Path) -> None:
    theirs, target = tmp_path / "mine-vectors.db", tmp_path / "precious.db"
    for file in (theirs, target):
        file.write_text("my own file\n" * 1000)
    if os.name == "posix":
        path.symlink_to(target)
    for place in (theirs, path, theirs / "vectors.db"):
        cache = VectorCache(place, MUCH)
        cache.put("one", some(range(1)))
        assert cache.get("one", some(range(1))) in ({}, some(range(1)) if os.name != "posix" else {})
    assert theirs.read_text() == target.read_text() == "my own file\n" * 1000


def test_those_that_put_at_once_lose_nothing(path: Path) -> None:
    def put(who: int) -> None:
        for start in range(who * 1000, who * 1000 + 200, 20):
            VectorCache(path, MUCH).put(f"model {who % 2}", some(range(start, start + 20)))

    threads = [threading.Thread(target=put, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert VectorCache(path, MUCH).count() == {"model 0": 400, "model 1": 400}
