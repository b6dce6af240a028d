"""Rerankers behind HTTP: asked in the words of each protocol, and believed only when the answer is whole."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from embedding_service import Answer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from rerank_service import WRONG, RerankService

from simplemem.errors import Unavailable
from simplemem.providers.reranking import ServiceReranker, from_0_to_1


@pytest.fixture
def service() -> Iterator[RerankService]:
    with RerankService() as running:
        yield running


TEXTS = ["the tide in the harbour", "a valve froze in cold air", "the cold harbour crane"]
QUERY = "cold valve"
KEY = "sk-test-0123456789abcdefghij"


def reranker(url: str, model: str = "", **more: object) -> ServiceReranker:
    return ServiceReranker("http", url=url, model=model, **more)  # type: ignore[arg-type]


@pytest.fixture(params=["cohere", "tei"])
def asking(request: pytest.FixtureRequest, service: RerankService) -> Iterator[ServiceReranker]:
    made = (
        reranker(service.cohere, "rerank-v3.5")
        if request.param == "cohere"
        else reranker(service.tei)
    )
    yield made
    made.close()


def scored(asking: ServiceReranker, seconds: float = 10.0) -> list[float]:
    return asking.scores(QUERY, TEXTS, time.monotonic() + seconds)


def test_each_text_gets_its_score_whatever_order_they_come_in(asking: ServiceReranker) -> None:
    assert scored(asking) == [0.0, 1.0, 0.5]


def test_with_a_model_it_is_asked_as_cohere_and_jina_are_without_one_as_text_embeddings_inference(
    service: RerankService,
) -> None:
    reranker(service.cohere, "m", key=SecretStr(KEY)).scores(QUERY, TEXTS, time.monotonic() + 10)
    reranker(service.tei).scores(QUERY, TEXTS, time.monotonic() + 10)
    cohere, tei = service.requests
    assert (cohere.path, tei.path) == ("/v2/rerank", "/rerank")
    assert cohere.json == {"model": "m", "query": QUERY, "documents": TEXTS, "top_n": 3}
    assert tei.json == {"query": QUERY, "texts": TEXTS, "truncate": True}
    assert cohere.headers["Authorization"] == f"Bearer {KEY}" and "Authorization" not in tei.headers


@pytest.mark.parametrize("path", ["", "/", "/rerank", "/rerank/"])
def test_the_last_word_of_the_address_may_be_left_out(service: RerankService, path: str) -> None:
    reranker(f"{service.url}/v2{path}", "m").scores(QUERY, TEXTS, time.monotonic() + 10)
    assert service.requests[0].path == "/v2/rerank"


def test_its_name_says_which_model_and_where_and_only_this_machine_is_not_remote(
    service: RerankService,
) -> None:
    here = reranker(service.cohere, "m")
    assert (here.name, here.remote, reranker(service.tei).name) == (
        f"m at {service.host}",
        False,
        service.host,
    )
    assert (
        reranker("https://api.cohere.com/v2/rerank", "m").remote
        and reranker("http://192.168.1.7/rerank").remote
    )


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_an_answer_that_is_not_whole_is_no_answer(
    service: RerankService, asking: ServiceReranker, wrong: Answer
) -> None:
    service.always = wrong
    with pytest.raises(Unavailable) as refused:
        scored(asking)
    assert refused.value.message.startswith(asking.name)


# -- scores of any scale


def test_logits_become_shares() -> None:
    assert from_0_to_1([0.0, 0.25, 1.0]) == [0.0, 0.25, 1.0]
    assert from_0_to_1([0.0, 7.74, -2.34, -11.0]) == pytest.approx(
        [0.5, 0.99956, 0.0879, 0.0000167], rel=1e-3
    )


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30))
def test_every_share_is_one_and_the_order_stays(scores: list[float]) -> None:
    shares = from_0_to_1(scores)
    assert all(0 <= share <= 1 for share in shares)
    pairs = sorted(zip(scores, shares, strict=True))
    assert [share for _, share in pairs] == sorted(shares)
