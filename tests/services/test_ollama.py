"""The embedder for Ollama's own protocol, against a server that speaks it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from embedding_service import CUT, PAGE, Answer, EmbeddingService, failing, limited, spoilt

from simplemem.errors import Unavailable
from simplemem.services.embed import Choice, Embedder, embedder_named

TEXTS = ["the harbour crane was repaired", "a puppy at the veterinarian", "income tax for last year"]


def ollama(service: EmbeddingService, **more: Any) -> Embedder:
    found = embedder_named("ollama", Choice(**{"model": "tiny", "url": service.url} | more))
    assert found is not None
    return found


def test_a_vector_is_the_models_to_a_bytes_precision(service: EmbeddingService) -> None:
    for text, made in zip(TEXTS, ollama(service).documents(TEXTS), strict=True):
        wanted = np.array(service.vector(text, 64))
        numbers = np.frombuffer(made, np.int8).astype(float)
        assert numbers @ wanted / np.linalg.norm(numbers) > 0.999


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


@pytest.mark.parametrize("trouble", [limited(), failing(500), CUT])
def test_a_failure_that_passes_is_not_noticed(service: EmbeddingService, trouble: Answer) -> None:
    service.next(trouble)
    assert len(ollama(service).documents(TEXTS)) == 3
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (PAGE, "a web page"),
        (failing(500, "the runner has died"), "500, the runner has died"),
        (Answer(200, b'{"object": "list", "data": []}'), "without vectors"),
        (spoilt(lambda rows: rows[1:]), "2 vectors for 3 texts"),
        (spoilt(lambda rows: [row[1:] for row in rows[:1]] + rows[1:]), "63 dimensions where 64"),
        (spoilt(lambda rows: [[math.nan, *row[1:]] for row in rows]), "NaN or infinity in it for 3 texts"),
        (spoilt(lambda rows: [[0.0 for _ in row] for row in rows]), "zeros alone for 3 texts"),
    ],
)
def test_what_is_no_vector_is_named_and_never_given_out(service: EmbeddingService, trouble: Answer, says: str) -> None:
    service.always = trouble
    with pytest.raises(Unavailable) as caught:
        ollama(service).documents(TEXTS)
    assert says in caught.value.message


def test_a_service_that_is_not_running_is_named_with_its_address() -> None:
    with EmbeddingService() as gone:
        embedder = ollama(gone)
    with pytest.raises(Unavailable) as caught:
        embedder.query("crane")
    assert gone.url in caught.value.message
    assert "embed.url" in caught.value.hint
