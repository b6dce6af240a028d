"""Any rerank endpoint over HTTP: Cohere, Jina, vLLM, Infinity, llama.cpp and all who speak as they do; without a model,
text-embeddings-inference, which serves one and is asked in words of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simplemem.errors import Invalid
from simplemem.remote.address import address_of
from simplemem.remote.client import Remote
from simplemem.remote.keys import Key, Secret
from simplemem.rerank.answer import scores_in

_MOST_BYTES = 4 * 1024 * 1024  # of an answer; some send the texts back


class HttpReranker:
    """One endpoint. With a model it is asked as Cohere is, without one as text-embeddings-inference."""

    def __init__(self, url: str, model: str, key: Secret | Mapping[str, str] | None) -> None:
        if not url.strip():
            raise Invalid(
                "the setting rerank.url is empty",
                hint="For example https://api.cohere.com/v2/rerank or http://localhost:8000/v1/rerank.",
            )
        address = address_of(_endpoint(url), "rerank.url")
        self._model = model.strip()
        self.name = f"{self._model} at {address.host}" if self._model else address.host
        self.remote = not address.local
        self._service = Remote(
            self.name,
            address,
            Key(key, setting="rerank.api_key"),
            section="rerank",
            most_bytes=_MOST_BYTES,
        )

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        return self._service.post(
            "",
            self._request(query, texts),
            deadline=deadline,
            read=lambda answer: scores_in(self.name, answer, len(texts)),
        )

    def close(self) -> None:
        self._service.close()

    def _request(self, query: str, texts: Sequence[str]) -> dict[str, Any]:
        if self._model:
            return {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        return {"query": query, "texts": list(texts), "truncate": True}


def _endpoint(url: str) -> str:
    """Where requests go: the address as given, or `rerank` below it."""
    bare = url.strip().rstrip("/")
    return bare if bare.rpartition("/")[2].startswith("rerank") else f"{bare}/rerank"
