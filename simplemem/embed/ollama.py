"""Vectors from Ollama's own /api/embed. What is longer than the model reads is cut there, as Ollama does by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simplemem.embed import Choice
from simplemem.embed.asked import Asked, Purpose, name_of_space
from simplemem.embed.prefixes import Prefixes, prefixes_of
from simplemem.errors import SimplememError, Unavailable
from simplemem.remote.address import address_of
from simplemem.remote.client import Remote
from simplemem.remote.keys import Key

_URL = "http://localhost:11434"
_MODEL = "nomic-embed-text"
_BATCH = 32


def ollama(choice: Choice) -> Ollama:
    """The embedder that the settings describe. Nothing is asked yet."""
    address = address_of(choice.url or _URL)
    model = choice.model or _MODEL
    prefixes = prefixes_of(model, choice.query_prefix, choice.document_prefix)
    name = name_of_space(
        "ollama",
        model.removesuffix(":latest"),
        where="" if address.url == _URL else address.host,
        dimensions=choice.dimensions,
        prefixes=prefixes,
    )
    remote = Remote(name, address, Key(choice.api_key), timeout=choice.timeout_seconds)
    return Ollama(remote, model, prefixes, choice)


class Ollama(Asked):
    def __init__(self, remote: Remote, model: str, prefixes: Prefixes, choice: Choice) -> None:
        super().__init__(
            remote.name,
            remote=not remote.address.local,
            batch=choice.batch or _BATCH,
            dimension=choice.dimensions,
            prefixes=prefixes,
        )
        self._remote = remote
        self._model = model
        self._request: dict[str, Any] = {"model": model, "truncate": True}
        if choice.keep_alive:
            self._request["keep_alive"] = choice.keep_alive
        if choice.dimensions is not None:
            self._request["dimensions"] = choice.dimensions

    def _vectors(
        self, texts: list[str], _: Purpose, deadline: float | None, stopped: Callable[[], bool]
    ) -> list[bytes]:
        try:
            return self._remote.post(
                "/api/embed",
                {**self._request, "input": texts},
                deadline=deadline,
                stopped=stopped,
                read=lambda answer: self._checked(_rows(answer, self.name), len(texts)),
            )
        except SimplememError as error:
            if error.details.get("status") == 404:
                error.hint = f"`ollama pull {self._model}` fetches the model; `ollama list` shows those there are."
            raise

    def close(self) -> None:
        self._remote.close()


def _rows(answer: Any, name: str) -> Any:
    rows = answer.get("embeddings") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise Unavailable(
            f"{name} gave an answer without vectors",
            hint="embed.url is Ollama's own address, for example http://localhost:11434, without /v1.",
        )
    return rows
