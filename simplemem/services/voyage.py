"""Voyage, by its own package `voyageai` (the extra `voyage`): vectors and scores. It is imported at the first use."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Sequence
from typing import Any

from simplemem.errors import Invalid, Unavailable
from simplemem.services.client import address_of, failure_of, hint, quoted
from simplemem.services.embed import Choice, Purpose, ServiceEmbedder, Stopped
from simplemem.services.keys import Key, KeySource
from simplemem.services.patience import Passing, Patience
from simplemem.services.rerank import scores_of

_LOCAL = ("voyage-4-nano",)  # its package would fetch this one and run it here


class VoyageEmbedder(ServiceEmbedder):
    """Voyage's vectors. Always remote: its package sends through any proxy that the environment names."""

    def __init__(self, choice: Choice) -> None:
        self._calls = _Calls("embed", choice.url, Key(choice.api_key, otherwise="VOYAGE_API_KEY"), "embed.api_key")
        model = choice.model or "voyage-3.5"
        if model in _LOCAL:
            raise Invalid(
                f"{model} runs on this machine", hint="embed.provider = ollama or openai reaches such models."
            )
        self._request: dict[str, Any] = {"model": model, "truncation": True}
        if choice.dimensions is not None:
            self._request["output_dimension"] = choice.dimensions
        super().__init__("voyage", model, self._calls.host, True, 128, choice)
        self._patience = Patience(self.name, timeout=choice.timeout_seconds)

    def _ask(self, texts: list[str], purpose: Purpose, deadline: float | None, stopped: Stopped) -> list[bytes]:
        sent = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        # `Client.embed` forgets which vector belongs to which text; this is what it calls.
        request = {**self._request, "input": sent, "input_type": purpose}

        def attempt(seconds: float) -> list[bytes]:
            return self._read(self._calls.call("Embedding", self.name, seconds, request), len(sent))

        return self._patience.call(attempt, deadline=deadline, stopped=stopped)


class VoyageReranker:
    """One of Voyage's models. `url` stands in for Voyage's own address."""

    remote = True

    def __init__(self, model: str, key: KeySource, *, key_setting: str, url: str) -> None:
        self.name, self._model = f"voyage/{model}", model
        self._calls = _Calls("rerank", url, Key(key, setting=key_setting, otherwise="VOYAGE_API_KEY"), key_setting)
        self._patience = Patience(self.name)

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        request = {"model": self._model, "query": query, "documents": list(texts), "truncation": True}

        def attempt(seconds: float) -> list[float]:
            return scores_of(self.name, self._calls.call("Reranking", self.name, seconds, request), len(texts))

        return self._patience.call(attempt, deadline=deadline)

    def close(self) -> None:
        """Nothing is held."""


class _Calls:
    """Calls of the package's resources, with its errors in our words. Its own messages repeat what was sent."""

    def __init__(self, section: str, url: str, key: Key, key_setting: str) -> None:
        if importlib.util.find_spec("voyageai") is None:
            raise Unavailable(
                "voyage needs the package voyageai", hint="Install it: `pip install 'simplemem-vault[voyage]'`."
            )
        address = address_of(url, f"{section}.url") if url.strip() else None
        self.host = address.host if address is not None else ""
        self._url = address.url if address is not None else None
        self._section, self._key, self._key_setting = section, key, key_setting

    def call(self, resource: str, name: str, seconds: float, request: dict[str, Any]) -> dict[str, Any]:
        key = self._key.value()
        if key is None:
            raise Unavailable(
                f"{name} needs a key", hint=f"Set {self._key_setting}, or the environment variable VOYAGE_API_KEY."
            )
        import voyageai

        logging.getLogger("voyage").setLevel(logging.WARNING)  # it would log every text it sends
        if voyageai.requestssession is None:
            import requests

            voyageai.requestssession = requests.Session()  # one connection for all threads
        create = getattr(voyageai, resource).create
        try:
            answer = create(**request, api_key=key, base_url=self._url, request_timeout=seconds)
            return {"data": [dict(row) for row in answer.data]}
        except Exception as error:  # noqa: BLE001 - the package's own, and what it stumbles over in an answer
            raise self._failure(error, name, request, key) from None

    def _failure(self, error: Exception, name: str, sent: Any, key: str) -> Exception:
        from voyageai import error as known

        body = str(getattr(error, "http_body", None) or "").encode()
        status = getattr(error, "http_status", None)
        if isinstance(error, known.Timeout):
            return Passing("no answer in time", hint=hint("timeout", self._section))
        if isinstance(error, known.APIConnectionError):
            return Passing("it cannot be reached, or the answer broke off", hint="Is this machine online?")
        if body.lstrip()[:1] == b"<":
            return Unavailable(f"{name} answered with a web page where JSON was expected")
        if status is None or 200 <= status < 300:
            return Passing("its answer is not what the protocol says, or only the beginning of it")
        url = self._url or "Voyage's own"
        return failure_of(name, self._section, url, status, getattr(error, "headers", {}), quoted(body, sent, key))
