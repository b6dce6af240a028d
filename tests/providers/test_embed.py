"""Embedders that ask a service: OpenAI's language and Ollama's, spoken well and badly, and what is not paid for
twice."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
from embedding_service import (
    CUT,
    ENDLESS,
    HANGS_UP,
    PAGE,
    Answer,
    EmbeddingService,
    failing,
    limited,
    slow,
    spoilt,
)
from pydantic import SecretStr

from simplemem.errors import Invalid, Unavailable
from simplemem.providers.api import Embedder, EmbedderConfig, RequestRefused
from simplemem.providers.embeddings import create_embedder, prefixes_of

TEXTS = [
    "the harbour crane was repaired",
    "a puppy at the veterinarian",
    "income tax for last year",
]
KEY = "sk-test-0123456789abcdefghij"


def named(provider: str = "openai", **choice: Any) -> Embedder:
    found = create_embedder(provider, EmbedderConfig(**choice))
    assert found is not None
    return found


def openai(service: EmbeddingService, **more: Any) -> Embedder:
    return named(model="tiny", url=f"{service.url}/v1", **more)


def cosine(one: bytes, two: list[float]) -> float:
    a, b = np.frombuffer(one, np.int8).astype(float), np.array(two)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_a_vector_is_the_models_to_a_bytes_precision(service: EmbeddingService) -> None:
    embedder = openai(service)
    for text, made in zip(TEXTS, embedder.documents(TEXTS), strict=True):
        assert cosine(made, service.vector(text, 64)) > 0.999
        assert np.abs(np.frombuffer(made, np.int8).astype(int)).max() == 127


def test_what_is_sent_is_what_the_protocol_wants_and_a_key_only_where_it_belongs(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # which stays at home
    openai(service, dimensions=16, api_key=SecretStr(KEY)).documents(TEXTS)
    embedder = openai(service)
    assert embedder.dimension is None  # it is learnt from the first answer
    assert embedder.query("crane") == embedder.query("crane") and embedder.dimension == 64
    asked, plain = service.requests
    assert asked.path == "/v1/embeddings"
    assert asked.json == {
        "model": "tiny",
        "input": TEXTS,
        "encoding_format": "float",
        "dimensions": 16,
    }
    assert (
        asked.headers["Authorization"] == f"Bearer {KEY}" and "Authorization" not in plain.headers
    )


def test_an_empty_text_is_near_to_nothing_and_is_never_sent(service: EmbeddingService) -> None:
    embedder = openai(service)
    assert embedder.documents(["", " \n"]) == [bytes(64), bytes(64)]
    made = embedder.documents(["", "crane"])
    assert (made[0], len(made[1])) == (bytes(64), 64) and "" not in service.texts()


def test_no_text_is_too_strange_to_be_sent(service: EmbeddingService) -> None:
    for text in ("\ud800 lone", "x" * 100_000, "\x00\x01", "a\u2028b", "\U0010ffff"):
        assert len(openai(service).query(text)) == 64
    assert max(map(len, service.texts())) < 10_000


def test_a_name_tells_apart_whatever_gives_other_vectors(service: EmbeddingService) -> None:
    here: dict[str, Any] = {"model": "a", "url": service.url}
    choices = [
        {},
        {"model": "text-embedding-3-large"},
        {"dimensions": 256},
        here,
        here | {"model": "b"},
    ]
    choices += [
        here | {"url": "http://127.0.0.1:1/v1"},
        here | {"dimensions": 256},
        here | {"document_prefix": "p: "},
    ]
    names = [named(**choice).name for choice in choices]
    assert len(set(names)) == len(names) and names[0] == "openai/text-embedding-3-small"
    assert (
        named(**here, query_prefix="ask: ", api_key=SecretStr(KEY), batch=3).name
        == named(**here).name
    )


@pytest.mark.parametrize(
    ("host", "leaves"),
    [
        *((host, False) for host in ("localhost:1234", "127.0.0.1:1234", "[::1]:8080")),
        *(
            (host, True)
            for host in ("192.168.1.20:1234", "localhost.example.com", "127.0.0.1.example.com")
        ),
    ],
)
def test_only_this_machine_counts_as_local(host: str, leaves: bool) -> None:
    assert named(model="m", url=f"http://{host}/v1").remote is leaves


@pytest.mark.parametrize(
    "url",
    [
        "localhost:1234",
        "ftp://host/v1",
        "http://",
        "http://me:secret@host",
        "http://host?key=secret",
        "http://h:x",
    ],
)
def test_a_url_that_cannot_be_one_is_refused_without_showing_what_it_holds(url: str) -> None:
    with pytest.raises(Invalid, match=r"embed\.url") as caught:
        named(model="m", url=url)
    assert "secret" not in str(caught.value.as_dict())


# -- a service that is not well


@pytest.mark.parametrize(
    "trouble", [limited(), limited(None), failing(500), failing(503), CUT, HANGS_UP]
)
def test_a_failure_that_passes_is_not_noticed(service: EmbeddingService, trouble: Answer) -> None:
    service.next(trouble)
    assert cosine(openai(service).documents(TEXTS)[1], service.vector(TEXTS[1], 64)) > 0.999
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (limited("7200", "You sent too much"), "429, You sent too much"),
        (failing(500, "out of memory"), "500, out of memory"),
        (failing(401, "no such key"), "does not accept the key: 401, no such key"),
        (failing(404, "no such model"), "404, no such model"),
        (PAGE, "a web page where JSON was expected"),
        (HANGS_UP, "interrupted"),
        (ENDLESS, "more than 64 MB"),
        (slow(9.0), "no answer within"),
        (Answer(200, b"{}"), "without vectors"),
        (Answer(200, b"[1, 2"), "not JSON"),
        (spoilt(lambda rows: rows[:-1]), "2 vectors for 3 texts"),
        (spoilt(lambda rows: [row[:-1] for row in rows[:1]] + rows[1:]), "63 dimensions where 64"),
        (spoilt(lambda rows: [["a"] * 64 for _ in rows]), "values other than numbers"),
        (
            spoilt(lambda rows: [*rows[:2], [math.inf, *rows[2][1:]]]),
            "NaN or infinity in it for 1 text of 3",
        ),
        (spoilt(lambda rows: [[0.0] * 64, *rows[1:]]), "zeros only for 1 text"),
    ],
)
def test_what_is_no_vector_is_named_and_never_given_out(
    service: EmbeddingService, trouble: Answer, says: str
) -> None:
    service.always = trouble
    embedder = openai(service, timeout_seconds=0.4 if trouble.seconds else 20.0)
    with pytest.raises(Unavailable) as caught:
        embedder.documents(TEXTS)
    assert says in caught.value.message and embedder.name in caught.value.message
    assert not any(text in str(caught.value.as_dict()) for text in TEXTS)
    service.always = Answer()


def test_vectors_that_come_in_another_order_find_their_texts(service: EmbeddingService) -> None:
    service.always = Answer(change=lambda answer: answer | {"data": answer["data"][::-1]})
    for text, made in zip(TEXTS, openai(service).documents(TEXTS), strict=True):
        assert cosine(made, service.vector(text, 64)) > 0.999


@pytest.mark.parametrize("indexes", [[0, 0, 1], [0, 1, 3], [0, 1, None], [0, 1, "2"]])
def test_vectors_that_do_not_say_whose_they_are_are_not_guessed(
    service: EmbeddingService, indexes: list[Any]
) -> None:
    service.always = Answer(
        change=lambda answer: {
            "data": [row | {"index": i} for row, i in zip(answer["data"], indexes, strict=True)]
        }
    )
    with pytest.raises(Unavailable, match="which vector belongs"):
        openai(service).documents(TEXTS)


def test_one_text_that_is_refused_says_nothing_about_the_service(service: EmbeddingService) -> None:
    service.refuses = lambda text: "endless" in text
    embedder = openai(service)
    service.next(failing(500, "input (992 tokens) is too large to process"))  # as llama.cpp says it
    with pytest.raises(RequestRefused, match="too large to process"):
        embedder.documents(TEXTS)
    for _ in range(6):
        with pytest.raises(RequestRefused, match="an input is too long"):
            embedder.documents(["crane", "an endless passage"])
    assert embedder.documents(["crane"])
    assert len(service.requests) == 8  # a refusal is not asked again


# -- keys and texts stay where they belong


@pytest.mark.parametrize(
    "trouble",
    [
        failing(
            400,
            f"Incorrect API key provided: {KEY}. The input was 'the harbour crane was repaired'.",
        ),
        Answer(500, f"plain text with {KEY} and the harbour crane was repaired in it".encode()),
        Answer(200, f"<html>{KEY} the harbour crane</html>".encode()),
    ],
)
def test_neither_key_nor_text_is_in_a_message_or_a_log(
    service: EmbeddingService, trouble: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    service.always = trouble
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as caught:
        openai(service, api_key=SecretStr(KEY), timeout_seconds=5.0).documents(TEXTS)
    shown = str(caught.value.as_dict()) + repr(caught.value) + caplog.text
    assert caplog.records  # that something was logged at all
    assert not any(secret in shown for secret in (KEY[3:], *TEXTS))


def test_a_proxy_of_the_environment_does_not_see_what_is_for_this_machine(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddingService() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert len(openai(service).query("crane")) == 64 and proxy.requests == []


# -- Ollama


def test_ollama_is_sent_what_its_protocol_wants(service: EmbeddingService) -> None:
    here = {"provider": "ollama", "model": "tiny", "url": service.url}
    named(**here).documents(TEXTS)
    named(**here, keep_alive="30m", dimensions=16).documents(TEXTS)
    plain, asked = service.requests
    assert (plain.path, plain.json) == (
        "/api/embed",
        {"model": "tiny", "input": TEXTS, "truncate": True},
    )
    assert asked.json == plain.json | {"keep_alive": "30m", "dimensions": 16}


def test_a_model_that_is_not_there_is_named_with_the_command_that_fetches_it(
    service: EmbeddingService,
) -> None:
    service.always = Answer(404, b'{"error": "model \\"tiny\\" not found, try pulling it first"}')
    with pytest.raises(Unavailable, match="not found, try pulling it first") as caught:
        named("ollama", model="tiny", url=service.url).query("crane")
    assert "`ollama pull tiny`" in caught.value.hint


# -- what models want to be told before a text


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_known_models_are_told_what_their_makers_say_and_others_nothing(
    model: str, query: str, document: str
) -> None:
    assert prefixes_of(model) == {"query": query, "document": document}
    assert prefixes_of(model, "", None) == {
        "query": "",
        "document": document,
    }  # the settings win, and may say nothing


# -- batches


def test_texts_go_in_batches_each_once(service: EmbeddingService) -> None:
    many = [f"text number {k} of many" for k in range(25)]
    made = openai(service, batch=10, timeout_seconds=5).documents([*many, *many])
    assert made[:25] == made[25:] and [len(asked.texts) for asked in service.requests] == [
        10,
        10,
        5,
    ]
