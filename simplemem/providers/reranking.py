"""Rerankers behind a service: Voyage, or any endpoint like those of Cohere or TEI."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from simplemem.errors import Invalid, Unavailable
from simplemem.providers.addresses import VOYAGE_URL, parse_address
from simplemem.providers.api import Reranker, RerankerConfig
from simplemem.providers.keys import Key, KeySource
from simplemem.providers.services import create_client


def create_reranker(name: str, config: RerankerConfig) -> Reranker:
    """Return the reranker of a provider, built in or a plug-in. Sends nothing.

    Raises Invalid if there is no such provider or the settings cannot be used, and Unavailable if a
    package is missing or a plug-in fails.
    """
    if name in ("voyage", "http"):
        return ServiceReranker(
            name,
            url=config.url,
            model=config.model,
            key=config.api_key,
            key_setting=config.key_setting,
        )

    from simplemem.providers.plugin import create_plugin_reranker

    return create_plugin_reranker(name, config)


class ServiceReranker:
    """A reranker behind a service, with the methods of `Reranker`.

    If a model is named, the request has Cohere's protocol, which Jina, vLLM, Infinity and llama.cpp
    have too. Without one, it has that of text-embeddings-inference, which serves a single model.
    """

    def __init__(
        self,
        provider: str,
        *,
        url: str = "",
        model: str = "",
        key: KeySource = None,
        key_setting: str = "rerank.api_key",
    ) -> None:
        """Create a reranker, without connecting.

        `url` may be empty for Voyage only; an empty `model` means the protocol of
        text-embeddings-inference. `key_setting` is the name of the setting that `key` is from, for
        messages. Raises Invalid for a bad or missing address, and Unavailable if Voyage's package
        is not installed.
        """
        is_voyage = provider == "voyage"
        self._model = model.strip()
        address = parse_address(_endpoint(url, is_voyage), "rerank.url")
        if is_voyage:
            self.name = f"voyage/{self._model}"
        elif self._model:
            self.name = f"{self._model} at {address.host}"
        else:
            self.name = address.host

        self.remote = is_voyage or not address.is_local
        self._is_voyage = is_voyage
        key_variable = "VOYAGE_API_KEY" if is_voyage else ""
        service_key = Key(key, setting=key_setting, default_variable=key_variable)
        self._client = create_client(provider, self.name, address, service_key, section="rerank")
        self.close = self._client.close

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """Return one score per text, in their order, on the provider's own scale.

        Raises RequestRefused if the service refuses the texts. Raises Unavailable if it fails or
        the scores are not there by the deadline, which is a `time.monotonic()`.
        """
        path = "Reranking" if self._is_voyage else ""
        request = self._request(query, list(texts))

        def attempt(seconds: float) -> list[float]:
            answer = self._client.attempt(path, request, seconds)
            return _scores_in(answer, len(texts), self.name)

        return self._client.retry_policy.call(attempt, deadline)

    def _request(self, query: str, texts: list[str]) -> dict[str, Any]:
        """Return the body of a request, in the protocol of the service."""
        if not self._model:
            return {"query": query, "texts": texts, "truncate": True}
        request: dict[str, Any] = {
            "model": self._model,
            "query": query,
            "documents": texts,
        }
        if self._is_voyage:
            request["truncation"] = True
        else:
            request["top_n"] = len(texts)
        return request


def _endpoint(url: str, is_voyage: bool) -> str:
    """Return the URL of a rerank endpoint, with `/rerank` added unless its last part begins so.

    For Voyage, nothing is added, and an empty `url` means its own API. For others, an empty `url`
    raises Invalid.
    """
    url = url.strip().rstrip("/")
    if is_voyage:
        return url or VOYAGE_URL
    if not url:
        raise Invalid(
            "the setting rerank.url is empty",
            hint=(
                "Give a URL such as https://api.cohere.com/v2/rerank "
                "or http://localhost:8000/v1/rerank."
            ),
        )
    last_part = url.rpartition("/")[2]
    if last_part.startswith("rerank"):
        return url
    return f"{url}/rerank"


def _scores_in(answer: object, count: int, name: str) -> list[float]:
    """Return the scores of an answer in the order of the texts.

    Cohere, Jina and vLLM answer {"results": [{"index", "relevance_score"}, …]}, Voyage {"data": …},
    and text-embeddings-inference [{"index", "score"}, …]. Raises Unavailable unless each of the
    `count` texts has just one score that is a finite number.
    """
    scores: dict[int, float] = {}
    for row in _rows_in(answer, name):
        index = row.get("index")
        # Not `isinstance`, for which True is an int.
        if type(index) is not int or not 0 <= index < count or index in scores:
            raise Unavailable(f"{name} scored a text twice or scored an unknown text")

        score: Any = row.get("relevance_score", row.get("score"))
        if type(score) not in (int, float) or not abs(score) <= sys.float_info.max:
            raise Unavailable(f"{name} returned a score that is not a number")
        scores[index] = float(score)

    if len(scores) < count:
        raise Unavailable(f"{name} returned {len(scores)} scores for {count} texts")
    return [scores[index] for index in range(count)]


def _rows_in(answer: object, service: str) -> Sequence[Mapping[str, Any]]:
    """Return the list of objects in a service's answer, each of which should have a score.

    It is the answer itself, or its "results" or "data". The objects are not checked. Raises
    Unavailable, with the name of the `service`, if the answer has no list of objects.
    """
    rows = answer
    if isinstance(answer, dict):
        rows = answer.get("results", answer.get("data"))
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        return rows
    raise Unavailable(f"{service} returned an answer without scores")


def from_0_to_1(scores: Sequence[float]) -> list[float]:
    """Return scores as numbers from 0 to 1, in the same order.

    Most services return such numbers, which stay as they are. Some, such as llama.cpp, return
    logits: if any score is outside of 0 to 1, all are converted.
    """
    if all(0 <= score <= 1 for score in scores):
        return list(scores)
    # The sigmoid, in a form that does not overflow.
    return [0.5 + 0.5 * math.tanh(score / 2) for score in scores]
