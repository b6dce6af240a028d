"""Voyage's embedders and rerankers, by its own package, against a server that speaks its protocol."""

from __future__ import annotations

import logging
import time
from importlib.util import find_spec
from typing import Any

import pytest
from embedding_service import HANGS_UP, PAGE, Answer, EmbeddingService, slow
from pydantic import SecretStr
from rerank_service import RerankService

from simplemem.errors import Unavailable
from simplemem.providers.api import Embedder, EmbedderConfig
from simplemem.providers.embeddings import create_embedder
from simplemem.providers.reranking import ServiceReranker

pytestmark = pytest.mark.skipif(
    find_spec("voyageai") is None, reason="the package voyageai is not installed"
)
KEY = "pa-test-0123456789abcdefghij"
TEXTS = [
    "the harbour crane was repaired",
    "a puppy at the veterinarian",
    "income tax for last year",
]


def voyage(service: EmbeddingService, **more: Any) -> Embedder:
    choice = {"url": f"{service.url}/v1", "api_key": SecretStr(KEY), "timeout_seconds": 20.0} | more
    found = create_embedder("voyage", EmbedderConfig(**choice))
    assert found is not None
    return found


def says(status: int, detail: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, f'{{"detail": "{detail}"}}'.encode(), headers or {})


def test_documents_and_questions_are_sent_as_such(service: EmbeddingService) -> None:
    embedder = voyage(service, dimensions=32)
    made = embedder.documents(TEXTS)
    assert [len(vector) for vector in made] == [32, 32, 32] and len(set(made)) == 3
    embedder.query("crane")
    documents, question = service.requests
    assert (documents.json["input_type"], question.json["input_type"]) == ("document", "query")
    assert documents.json["model"] == "voyage-3.5" and documents.json["output_dimension"] == 32
    assert documents.headers["Authorization"] == f"Bearer {KEY}"
    assert embedder.name == f"voyage/voyage-3.5 at {service.host} in 32 dimensions"
    assert embedder.remote  # wherever its url leads: its package may go through a proxy


def test_without_a_key_nothing_is_sent_and_the_way_out_is_named(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    with pytest.raises(Unavailable) as caught:
        voyage(service, api_key=None).query("crane")
    assert "VOYAGE_API_KEY" in caught.value.hint and service.requests == []


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (says(429, f"slow down, {KEY}", {"Retry-After": "7200"}), "429, slow down"),
        (says(500, "the harbour crane was repaired"), "does not answer: 500"),
        (says(401, "no such key"), "does not accept the key: 401, no such key"),
        (PAGE, "a web page where JSON was expected"),
        (HANGS_UP, "interrupted"),
        (slow(9.0), "no answer"),
        (Answer(200, b"{}"), "does not follow the protocol"),
    ],
)
def test_what_is_no_vector_is_named_and_never_given_out(
    service: EmbeddingService, trouble: Answer, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    service.always = trouble
    embedder = voyage(service, timeout_seconds=0.4 if trouble.seconds else 20.0)
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as caught:
        embedder.documents(TEXTS)
    assert message in caught.value.message and embedder.name in caught.value.message
    shown = str(caught.value.as_dict()) + caplog.text
    assert KEY not in shown and not any(text in shown for text in TEXTS)


def test_an_extra_that_is_not_installed_is_named_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for make in (lambda: create_embedder("voyage"), lambda: ServiceReranker("voyage", model="m")):
        with pytest.raises(Unavailable, match="needs the package voyageai") as caught:
            make()
        assert "pip install '.[voyage]'" in caught.value.hint


# -- its rerankers


def test_a_reranker_scores_each_text_and_counts_as_remote_as_a_proxy_may_lie_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    texts = ["the tide in the harbour", "a valve froze in cold air", "the cold harbour crane"]
    with RerankService() as service, RerankService() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        made = ServiceReranker(
            "voyage", url=service.voyage, model="rerank-2.5-lite", key=SecretStr(KEY)
        )
        assert made.remote and made.scores("cold valve", texts, time.monotonic() + 10) == [
            0.0,
            1.0,
            0.5,
        ]
        (asked,) = proxy.requests
        assert {
            "model": "rerank-2.5-lite",
            "query": "cold valve",
            "documents": texts,
        }.items() <= asked.json.items()
        assert asked.headers["Authorization"] == f"Bearer {KEY}"
