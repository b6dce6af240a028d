"""One POST and its answer, and what a service may ask of those who ask it."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from embedding_service import TRICKLE, Answer, EmbeddingService, failing
from pydantic import SecretStr
from waiting import eventually

from simplemem.errors import Unavailable
from simplemem.providers import client as module
from simplemem.providers.addresses import parse_address
from simplemem.providers.client import ServiceClient
from simplemem.providers.keys import Key
from simplemem.providers.quoting import quote_error
from simplemem.providers.retry import RetryPolicy

REQUEST = {"model": "m", "input": ["crane"]}


def remote(service: EmbeddingService, timeout: float = 30.0, attempts: int = 4) -> ServiceClient:
    client = ServiceClient("the service", parse_address(f"{service.url}/v1"), Key(None))
    client.retry_policy = RetryPolicy("the service", timeout=timeout, attempts=attempts)
    return client


def asked_of(client: ServiceClient, path: str = "/x") -> Any:
    return client.retry_policy.call(lambda seconds: client.attempt(path, REQUEST, seconds))


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_over_the_limit_is_not_read(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    body = json.dumps(["x" * 100] * 50_000).encode()
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    service.always = Answer(200, gzip.compress(body) if compressed else body, headers)
    monkeypatch.setattr(module, "_MAX_ANSWER_MB", 1)
    with pytest.raises(Unavailable, match="more than 1 MB"):
        asked_of(remote(service), "/embeddings")
    assert len(service.requests) == 1


def test_an_answer_that_comes_a_byte_at_a_time_is_left_and_its_connection_closed(
    service: EmbeddingService,
) -> None:
    service.always = TRICKLE
    asking = remote(service, timeout=0.3, attempts=1)
    with pytest.raises(Unavailable, match=r"no answer within|too slowly"):
        asked_of(asking)
    assert eventually(lambda: service.dripping == 0)


@pytest.mark.parametrize("value", ["soon", "nan", "inf", "-1", "1e99", "Fri, 99 Xyz 2026", ""])
def test_a_time_that_makes_no_sense_is_no_time(service: EmbeddingService, value: str) -> None:
    service.always = failing(429, "slow down", {"Retry-After": value})
    with pytest.raises(Unavailable) as caught:
        asked_of(remote(service, attempts=1))
    assert caught.value.details.get("retry_after", 0) == 0


def test_a_redirect_is_not_followed_with_the_key(service: EmbeddingService) -> None:
    with EmbeddingService() as elsewhere:
        service.always = Answer(307, b"", {"Location": f"{elsewhere.url}/v1/embeddings"})
        keyed = ServiceClient(
            "the service", parse_address(service.url), Key(SecretStr("sk-1234567890"))
        )
        with pytest.raises(Unavailable, match="has moved to another address"):
            asked_of(keyed)
        assert elsewhere.requests == []


# -- what a service said, without what it repeats of what it was sent

KEY = "sk-0123456789abcdef"
NOTE = "My bank's code is 4711 and\nnobody must know that."
SENT = {"model": "tiny-embedder", "input": [NOTE, "short"], "encoding_format": "float"}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (b'{"error": {"message": "Rate limit reached", "code": 429}}', "Rate limit reached"),
        (b'{"error": "model \'tiny-embedder\' not found"}', "model 'tiny-embedder' not found"),
        (b'{"detail": [{"loc": ["input"], "msg": "field required"}]}', "field required"),
        (b'{"message": "two\\nlines\\tand   spaces"}', "two lines and spaces"),
        (b'{"unheard": "of"}', ""),
        (b"[]", ""),
        (b" <html><body>Bad Gateway</body></html>", ""),
        (b"upstream connect error", "upstream connect error"),
        (b"[" * 100_000, "[" * 199 + "\u2026"),
    ],
)
def test_the_sentence_is_found_in_every_shape_in_use(answer: bytes, shown: str) -> None:
    assert quote_error(answer, SENT, KEY) == shown


@pytest.mark.parametrize(
    "sentence",
    [
        f"cannot embed: {NOTE}",
        f"cannot embed: {' '.join(NOTE.split())}",
        "the text 'My bank's code is 4711' has 9 tokens",
        "…code is 4711 and nobody…",
        "input was: short",
    ],
)
def test_a_sentence_that_repeats_what_was_sent_is_not_passed_on(sentence: str) -> None:
    assert quote_error(json.dumps({"error": {"message": sentence}}).encode(), SENT, KEY) == ""


@pytest.mark.parametrize(
    "request_body",
    [
        {"messages": [{"role": "user", "content": NOTE}], "model": "tiny-chat"},
        {"inputs": [NOTE]},
        {"batch": {"texts": [NOTE]}},
    ],
)
def test_a_text_is_recognised_wherever_a_request_has_it(request_body: dict[str, Any]) -> None:
    def quoted(message: str) -> str:
        return quote_error(json.dumps({"error": message}).encode(), request_body, KEY)

    assert quoted(f"cannot read: {NOTE}") == ""
    assert quoted("tiny-chat: no such model, user") == "tiny-chat: no such model, user"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("می\u200cخواهم", "cannot read: می\u200cخواهم"),  # with a character that cannot be printed
        ("zażółć gęślą jaźń", json.dumps("cannot read: zażółć gęślą jaźń")),
        ("größe", 'input ["gr\\u00f6\\u00dfe"] is not valid'),
    ],
)
def test_a_text_is_recognised_however_the_message_writes_it(text: str, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    assert quote_error(body, {"input": [text]}, KEY) == ""
    assert quote_error(body, {"input": ["compost heap"]}, KEY) != ""


@pytest.mark.parametrize(
    "sentence",
    [f"wrong key {KEY}", f"Bearer {KEY}", "no key pa-AbCdEfGhIjKlMnOp", "sk-abc***xyz123"],
)
def test_a_key_is_left_out_even_one_that_is_not_ours(sentence: str) -> None:
    shown = quote_error(json.dumps({"error": sentence}).encode(), SENT, KEY)
    assert not any(part in shown for part in (KEY, KEY[3:], "AbCdEf", "xyz123"))
    assert quote_error(b'{"error": "who is swordfish?"}', SENT, "swordfish") == "who is …?"


def test_a_key_at_the_end_of_what_is_read_is_not_shown_by_half() -> None:
    key = "zx81" + "Q7w9" * 6
    body = ("It was sent: " + "compost heap turning " * 30)[:488] + " " + key
    assert "zx81" not in quote_error(body.encode(), {"input": ["compost heap turning " * 40]}, key)
