"""The embedder for Ollama's own protocol, against a server that speaks it."""

from __future__ import annotations

from typing import Any

import pytest
from embedding_service import Answer, EmbeddingService

from simplemem.errors import Unavailable
from simplemem.services.embed import Choice, Embedder, embedder_named

TEXTS = ["the harbour crane was repaired", "a puppy at the veterinarian", "income tax for last year"]


def ollama(service: EmbeddingService, **more: Any) -> Embedder:
    found = embedder_named("ollama", Choice(**{"model": "tiny", "url": service.url} | more))
    assert found is not None
    return found


def test_what_is_sent_is_what_the_protocol_wants(service: EmbeddingService) -> None:
    ollama(service).documents(TEXTS)
    ollama(service, keep_alive="30m", dimensions=16).query("crane")
    plain, asked = service.asked
    assert plain.path == "/api/embed"
    assert plain.json == {"model": "tiny", "input": TEXTS, "truncate": True}
    assert asked.json == {
        "model": "tiny", "input": ["crane"], "truncate": True, "keep_alive": "30m", "dimensions": 16,
    }  # fmt: skip


def test_by_default_it_is_on_this_machine_with_a_model_made_for_it() -> None:
    found = embedder_named("ollama")
    assert found is not None
    assert (found.remote, found.dimension) == (False, None)
    assert found.name.startswith("ollama/nomic-embed-text")


def test_the_latest_of_a_model_is_the_model() -> None:
    one, two = (embedder_named("ollama", Choice(model=model)) for model in ("all-minilm", "all-minilm:latest"))
    assert one is not None
    assert two is not None
    assert one.name == two.name == "ollama/all-minilm"


def test_a_model_that_is_not_there_is_named_with_the_command_that_fetches_it(service: EmbeddingService) -> None:
    service.always = Answer(404, b'{"error": "model \\"tiny\\" not found, try pulling it first"}')
    with pytest.raises(Unavailable, match="not found, try pulling it first") as caught:
        ollama(service).query("crane")
    assert "`ollama pull tiny`" in caught.value.hint
