"""Voyage, by its own package `voyageai` (the extra `voyage`): vectors and scores. It is imported at the first use."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from simplemem.errors import Unavailable
from simplemem.services.client import address_of, failure_of, hint, quoted
from simplemem.services.embed import Choice, Purpose, ServiceEmbedder, vectors_in
from simplemem.services.keys import Key, KeySource
from simplemem.services.patience import Passing, Patience, Stopped
from simplemem.services.rerank import scores_of

T = TypeVar("T")


class VoyageEmbedder(ServiceEmbedder):
    """Voyage's vectors. Always remote: its package sends through any proxy that the environment names."""

    def __init__(self, choice: Choice) -> None:
        where = address_of(choice.url).host if choice.url.strip() else ""
        super().__init__("voyage", choice.model or "voyage-3.5", where, True, 128, choice)
        key = Key(choice.api_key, otherwise="VOYAGE_API_KEY")
        self._voyage = _Voyage(self.name, "embed", choice.url, key, choice.timeout_seconds)
        self._request: dict[str, Any] = {"model": choice.model or "voyage-3.5", "truncation": True}
        if choice.dimensions is not None:
            self._request["output_dimension"] = choice.dimensions

    def _ask(self, texts: list[str], purpose: Purpose, deadline: float | None, stopped: Stopped) -> list[bytes]:
        sent = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        # `Client.embed` forgets which vector belongs to which text; this is what it calls.
        request = {**self._request, "input": sent, "input_type": purpose}

        def read(answer: Any) -> list[bytes]:
            return vectors_in(answer, len(sent), self.dimension, self.name)

        return self._voyage.create("Embedding", request, read, deadline, stopped)


class VoyageReranker:
    """One of Voyage's models. `url` stands in for Voyage's own address."""

    remote = True

    def __init__(self, model: str, key: KeySource, *, key_setting: str, url: str) -> None:
        self.name, self._model = f"voyage/{model}", model
        self._voyage = _Voyage(self.name, "rerank", url, Key(key, setting=key_setting, otherwise="VOYAGE_API_KEY"))

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        request = {"model": self._model, "query": query, "documents": list(texts), "truncation": True}
        return self._voyage.create("Reranking", request, lambda said: scores_of(self.name, said, len(texts)), deadline)

    def close(self) -> None:
        """Nothing is held."""


class _Voyage:
    """Calls of the package's resources, with its errors in our words. Its own messages repeat what was sent."""

    def __init__(self, name: str, section: str, url: str, key: Key, timeout: float = 30.0) -> None:
        if importlib.util.find_spec("voyageai") is None:
            way = "Install it: `pip install 'simplemem-vault[voyage]'`."
            raise Unavailable("voyage needs the package voyageai", hint=way)
        self._url = address_of(url, f"{section}.url").url if url.strip() else None
        self._name, self._section, self._key, self._patience = name, section, key, Patience(name, timeout=timeout)

    def create(
        self,
        resource: str,
        request: dict[str, Any],
        read: Callable[[Any], T],
        deadline: float | None,
        *stopped: Stopped,
    ) -> T:
        def attempt(seconds: float) -> T:
            return read(self._attempt(resource, request, seconds))

        return self._patience.call(attempt, deadline, *stopped)

    def _attempt(self, resource: str, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        import requests
        import voyageai

        if (key := self._key.value()) is None:
            way = f"Set {self._key.setting}, or the environment variable VOYAGE_API_KEY."
            raise Unavailable(f"{self._name} needs a key", hint=way)
        logging.getLogger("voyage").setLevel(logging.WARNING)  # it would log every text it sends
        voyageai.requestssession = voyageai.requestssession or requests.Session()  # one connection for all threads
        try:
            asked = {**request, "api_key": key, "base_url": self._url, "request_timeout": seconds}
            return {"data": [dict(row) for row in getattr(voyageai, resource).create(**asked).data]}
        except Exception as error:  # noqa: BLE001 - the package's own, and what it stumbles over in an answer
            status, body = getattr(error, "http_status", None), str(getattr(error, "http_body", None) or "").encode()
            if isinstance(error, voyageai.error.Timeout):
                raise Passing("no answer in time", hint=hint("timeout", self._section)) from None
            if isinstance(error, voyageai.error.APIConnectionError):
                raise Passing("it cannot be reached, or the answer broke off") from None
            if body.lstrip()[:1] == b"<":
                raise Unavailable(f"{self._name} answered with a web page where JSON was expected") from None
            if status is None or 200 <= status < 300:
                raise Passing("its answer is not what the protocol says, or only the beginning of it") from None
            said, headers = quoted(body, request, key), getattr(error, "headers", {})
            where = self._url or "Voyage's own"
            raise failure_of(self._name, self._section, where, status, headers, said) from None
