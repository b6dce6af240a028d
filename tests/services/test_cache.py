"""An embedder that remembers: what was paid for once is not asked for again."""

from __future__ import annotations

from pathlib import Path

import pytest
from embedding_service import EmbeddingService, failing

from simplemem.errors import Unavailable
from simplemem.index.vector_cache import VectorCache
from simplemem.services.embed import Cached, Choice, ServiceEmbedder, embedder_named, hash_of

TEXTS = [f"text number {k} of many" for k in range(25)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "vectors.db"


def remembering(service: EmbeddingService, file: Path, model: str = "tiny", batch: int = 10) -> Cached:
    choice = Choice(model=model, url=service.url, batch=batch, timeout_seconds=5)
    embedder = embedder_named("openai", choice)
    assert isinstance(embedder, ServiceEmbedder)
    return Cached(embedder, VectorCache(file, 10_000_000))


def test_another_process_asks_only_for_what_is_new(service: EmbeddingService, file: Path) -> None:
    first = remembering(service, file).documents(TEXTS)
    service.asked.clear()
    later = remembering(service, file)
    assert later.dimension == 64  # known before anything is asked
    wanted = [hash_of(text) for text in (*TEXTS, "something new")]
    assert later.known(wanted) == set(wanted[:-1])
    assert later.documents([*TEXTS, "something new"])[:-1] == first
    assert service.texts() == ["something new"]


def test_another_model_shares_nothing(service: EmbeddingService, file: Path) -> None:
    remembering(service, file).documents(TEXTS)
    service.asked.clear()
    remembering(service, file, model="other").documents(TEXTS)
    assert len(service.texts()) == 25


def test_an_answer_that_is_no_vector_is_not_kept(service: EmbeddingService, file: Path) -> None:
    service.always = failing(401)
    with pytest.raises(Unavailable):
        remembering(service, file).documents(TEXTS)
    assert remembering(service, file).known([hash_of(text) for text in TEXTS]) == set()


def test_texts_are_in_their_order_blank_and_repeated_ones_too(service: EmbeddingService, file: Path) -> None:
    cached = remembering(service, file)
    made = cached.documents(["b", "", "a", "b", " \n"])
    assert made[0] == made[3] != made[2]
    assert made[1] == made[4] == bytes(64)
    assert cached.documents(["a", "", "b"]) == [made[2], made[1], made[0]]


def test_another_model_that_answers_under_a_known_name_is_noticed_in_a_later_process(
    service: EmbeddingService, file: Path
) -> None:
    remembering(service, file).documents(TEXTS)
    service.dimension = 32
    with pytest.raises(Unavailable, match="32 dimensions where 64 were expected"):
        remembering(service, file).query("crane")
