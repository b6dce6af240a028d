"""Routing compares topics by the configured embedder, as far as it answers and may read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedding_service import HANGS_UP, Answer, EmbeddingService, failing, slow

from simplemem.errors import Unavailable
from simplemem.features.answers import RecordedTurn
from simplemem.features.conversations.embedder import (
    ConfiguredEmbedder,
    _calibration_texts,
    _mean_cosines,
)
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.service import ConversationService, conversation_service
from simplemem.providers.api import EmbedderConfig
from simplemem.providers.embeddings import create_embedder
from simplemem.providers.word_vectors import shared_multilingual
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

GAUGE = "I want to build a rain gauge with a tipping bucket for the garden."
BIRTHDAY = "Anyway, help me plan the food for my father's seventieth birthday."


@contextmanager
def opened(root: Path, service: EmbeddingService, **embed: Any) -> Iterator[ConversationService]:
    """Open a vault whose embedder is a service."""
    chosen = {"provider": "openai", "model": "m", "url": service.url} | embed
    with EnhancedStore(root, Settings.model_validate({"embed": chosen})) as store:
        yield conversation_service(store)


def store_message(
    conversations: ConversationService, message: str, minute: int, **more: Any
) -> RecordedTurn:
    """Store a message that was said on 20 January 2026."""
    at = f"2026-01-20T09:{minute:02}:00Z"
    return conversations.record(new_exchange(message, timestamp=at, **more))


def test_the_configured_embedder_compares_the_topics(tmp_path: Path) -> None:
    with EmbeddingService() as service, opened(tmp_path, service) as conversations:
        gauge = store_message(conversations, GAUGE, 0)
        store_message(conversations, BIRTHDAY, 3)
        question = "Does the tipping bucket of the gauge need a brass bearing in heavy rain?"
        back = store_message(conversations, question, 9)
        assert (back["block_id"], back["method"]) == (gauge["block_id"], "rules")
        assert question in service.texts()


@pytest.mark.parametrize("answer", [failing(500), HANGS_UP, slow(30)])
def test_the_bundled_vectors_decide_if_the_service_does_not_answer(
    tmp_path: Path, answer: Answer
) -> None:
    with (
        EmbeddingService() as service,
        opened(tmp_path, service, query_seconds=0.5) as conversations,
    ):
        service.always = answer
        store_message(conversations, GAUGE, 0)
        stored = store_message(conversations, BIRTHDAY, 3)
        assert stored["routing_scenario"] == "topic_shift"
        assert stored["method"].startswith("rules")


def test_a_service_gets_neither_a_credential_nor_a_private_topic(tmp_path: Path) -> None:
    pytest.importorskip("voyageai")
    key = "TT-4471-QX"
    with (
        EmbeddingService() as service,
        opened(tmp_path, service, provider="voyage", api_key="k") as conversations,
    ):
        store_message(conversations, GAUGE, 0)
        store_message(conversations, f"My API key for the tide table service is {key}.", 1)
        store_message(conversations, "The tide table has eleven columns of numbers.", 2)
        store_message(
            conversations, "The gauge has a brass bearing, is that wise?", 3, session="other"
        )
        assert "brass" in service.received.decode()
        assert key not in service.received.decode()
        assert "eleven" not in service.received.decode()


@pytest.mark.parametrize("dimension", [64, 256])
def test_texts_that_belong_together_are_as_similar_as_by_the_bundled_vectors(
    dimension: int,
) -> None:
    with EmbeddingService(dimension) as service:
        provider = create_embedder("openai", EmbedderConfig(model="m", url=service.url))
        embedder = ConfiguredEmbedder(lambda: provider, seconds=10)
        messages, replies = _calibration_texts()
        texts = [*messages, *replies]
        similarities = _mean_cosines(embedder.unit_vectors(texts))
        bundled = _mean_cosines(shared_multilingual().unit_vectors(texts))
        assert np.allclose([embedder.scale(value) for value in similarities], bundled, atol=1e-3)


def test_a_vector_that_was_made_once_is_kept() -> None:
    with EmbeddingService() as service:
        provider = create_embedder("openai", EmbedderConfig(model="m", url=service.url))
        embedder = ConfiguredEmbedder(lambda: provider, seconds=10)
        first = embedder.unit_vectors(["a rain gauge", ""])
        request_count = len(service.requests)
        assert np.array_equal(embedder.unit_vectors(["a rain gauge", ""]), first)
        assert len(service.requests) == request_count and not first[1].any()


def test_an_embedder_that_fails_is_not_asked_again_for_a_while() -> None:
    with EmbeddingService() as service:
        provider = create_embedder("openai", EmbedderConfig(model="m", url=service.url))
        embedder = ConfiguredEmbedder(lambda: provider, seconds=0.5)
        assert embedder.is_usable
        service.always = slow(30)
        with pytest.raises(Unavailable):
            embedder.unit_vectors(["a rain gauge"])
        assert not embedder.is_usable
