"""A question and passages to scores: rerankers, off until a person asks for one. An answer that is not whole is none."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from simplemem.errors import Invalid, Unavailable
from simplemem.providers.client import VOYAGE, Key, KeySource, address_of, client_of


class Reranker:
    """Voyage, or any rerank endpoint. With a model it is asked as Cohere is (Jina, vLLM, Infinity, llama.cpp), without
    one as text-embeddings-inference, which serves one. `remote`: texts leave this machine."""

    def __init__(
        self,
        provider: str,
        *,
        url: str = "",
        model: str = "",
        key: KeySource = None,
        key_setting: str = "rerank.api_key",
    ) -> None:
        is_voyage, self._model = provider == "voyage", model.strip()
        bare = url.strip().rstrip("/") or (VOYAGE if is_voyage else "")
        if not bare:
            hint = "Give a URL such as https://api.cohere.com/v2/rerank or http://localhost:8000/v1/rerank."
            raise Invalid("the setting rerank.url is empty", hint=hint)
        if not is_voyage and not bare.rpartition("/")[2].startswith("rerank"):
            bare += "/rerank"  # the last word of the address may be left out
        address = address_of(bare, "rerank.url")
        self.name = (
            f"voyage/{self._model}"
            if is_voyage
            else f"{self._model} at {address.host}".removeprefix(" at ")
        )
        self.remote = is_voyage or not address.local
        self._path = "Reranking" if is_voyage else ""
        key_of_service = Key(
            key, setting=key_setting, otherwise="VOYAGE_API_KEY" if is_voyage else ""
        )
        self._client = client_of(provider, self.name, address, key_of_service, section="rerank")
        self.close = self._client.close

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """A score for each text, on the provider's scale; `Unavailable` after the deadline (a `time.monotonic()`)."""
        request: dict[str, Any] = {"query": query, "texts": list(texts), "truncate": True}
        if self._model:
            more: dict[str, Any] = {"truncation": True} if self._path else {"top_n": len(texts)}
            request = {"model": self._model, "query": query, "documents": list(texts), **more}

        def attempt(seconds: float) -> list[float]:
            # {"results": [{"index", "relevance_score"}, …]} (Cohere, Jina, vLLM) or [{"index", "score"}, …] (TEI)
            answer = self._client.attempt(self._path, request, seconds)
            rows = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise Unavailable(f"{self.name} returned an answer without scores")
            scores: dict[int, float] = {}
            for row in rows:
                index, score = row.get("index"), row.get("relevance_score", row.get("score"))
                if type(index) is not int or not 0 <= index < len(texts) or index in scores:
                    raise Unavailable(f"{self.name} scored a text twice or scored an unknown text")
                if type(score) not in (int, float) or not abs(score) <= sys.float_info.max:
                    raise Unavailable(f"{self.name} returned a score that is not a number")
                scores[index] = float(score)
            if len(scores) < len(texts):
                raise Unavailable(
                    f"{self.name} returned {len(scores)} scores for {len(texts)} texts"
                )
            return [scores[index] for index in range(len(texts))]

        return self._client.patience.call(attempt, deadline)


def from_0_to_1(scores: Sequence[float]) -> list[float]:
    """Scores as they are shown, in the same order. Most services give a share of 1; some give logits (llama.cpp)."""
    if all(0 <= score <= 1 for score in scores):
        return list(scores)
    return [
        0.5 + 0.5 * math.tanh(score / 2) for score in scores
    ]  # the sigmoid, safe for large numbers
