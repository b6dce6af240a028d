"""Voyage's rerankers through their own client, against a service that speaks as theirs does."""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Iterator

import pytest
from embedding_service import CUT, HANGS_UP, PAGE, Answer, failing, limited
from pydantic import SecretStr
from rerank_service import RerankService

from simplemem.errors import Unavailable
from simplemem.services.rerank import Reranker, reranker_named


@pytest.fixture
def service() -> Iterator[RerankService]:
    with RerankService() as running:
        yield running


TEXTS = ["the tide in the harbour", "a valve froze in cold air", "the cold harbour crane"]
QUERY = "cold valve"
KEY = "pa-test-0123456789abcdefghij"

needs_the_client = pytest.mark.skipif(
    importlib.util.find_spec("voyageai") is None, reason="the extra voyage is not here"
)


def voyage(service: RerankService, **more: object) -> Reranker:
    given = {"key": SecretStr(KEY)} | more
    made = reranker_named("voyage", url=service.voyage, model="rerank-2.5-lite", **given)  # type: ignore[arg-type]
    assert made is not None
    return made


def scored(asking: Reranker, seconds: float = 10.0) -> list[float]:
    return asking.scores(QUERY, TEXTS, time.monotonic() + seconds)


@needs_the_client
def test_each_text_gets_its_score(service: RerankService) -> None:
    assert scored(voyage(service)) == [0.0, 1.0, 0.5]
    (asked,) = service.asked
    assert asked.path == "/v1/rerank"
    assert {"model": "rerank-2.5-lite", "query": QUERY, "documents": TEXTS}.items() <= asked.json.items()
    assert asked.headers["Authorization"] == f"Bearer {KEY}"


@needs_the_client
def test_voyage_is_remote_and_so_is_a_stand_in_on_this_machine_as_a_proxy_may_lie_between(
    service: RerankService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with RerankService() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert scored(voyage(service)) == [0.0, 1.0, 0.5]
        assert (len(proxy.asked), service.asked) == (1, [])
    assert voyage(service).remote
    real = reranker_named("voyage", model="rerank-2.5")
    assert real is not None
    assert (real.name, real.remote) == ("voyage/rerank-2.5", True)


def detail(status: int, said: str) -> Answer:
    return Answer(status, b'{"detail": "%s"}' % said.encode())


@needs_the_client
@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (detail(429, "too many"), "429, too many"),
        (limited("30"), "429"),
        (detail(500, "broken"), "500, broken"),
        (failing(503), "503"),
        (PAGE, "a web page"),
        (CUT, "broke off"),
        (HANGS_UP, "broke off"),
        (detail(401, "no such key"), "does not accept the key: 401, no such key"),
        (detail(400, "no such model"), "refused the request: 400, no such model"),
    ],
    ids=["429", "429 with a time", "500", "503", "HTML", "cut", "hung up", "401", "400"],
)
def test_a_service_in_trouble_is_told_of_in_its_own_words(service: RerankService, trouble: Answer, said: str) -> None:
    service.always = trouble
    with pytest.raises(Unavailable) as refused:
        scored(voyage(service), 2.0)
    assert said in refused.value.message


@needs_the_client
def test_neither_key_nor_text_is_in_a_message_or_a_log(
    service: RerankService, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "the combination of the safe is 4711"
    service.always = detail(400, f"cannot use {KEY} for {secret}")
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as refused:
        voyage(service).scores("safe", [secret, "another"], time.monotonic() + 10)
    shown = f"{refused.value.as_dict()} {refused.value.__cause__} {caplog.text}"
    assert KEY not in shown
    assert "combination" not in shown
