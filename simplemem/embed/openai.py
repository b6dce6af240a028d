"""Vectors from any service that speaks OpenAI's /v1/embeddings: OpenAI, LM Studio, vLLM, llama.cpp, Ollama's /v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simplemem.embed import Choice
from simplemem.embed.asked import Asked, Purpose, in_order, name_of_space
from simplemem.embed.prefixes import Prefixes, prefixes_of
from simplemem.errors import Invalid
from simplemem.remote.address import address_of
from simplemem.remote.client import Remote
from simplemem.remote.keys import Key

_URL = "https://api.openai.com/v1"
_MODEL = "text-embedding-3-small"
_BATCH = 64


def openai(choice: Choice) -> OpenAI:
    """The embedder that the settings describe. Nothing is asked yet."""
    address = address_of(choice.url or _URL)
    at_home = address.url == _URL
    if not choice.model and not at_home:
        raise Invalid(
            f"the setting embed.model is needed for {address.url}",
            hint="It is the model's name as that service lists it, for example at /v1/models.",
        )
    model = choice.model or _MODEL
    prefixes = prefixes_of(model, choice.query_prefix, choice.document_prefix)
    name = name_of_space(
        "openai", model, where="" if at_home else address.host, dimensions=choice.dimensions, prefixes=prefixes
    )
    # The key that lies in the environment for OpenAI is shown to OpenAI alone.
    key = Key(choice.api_key, otherwise="OPENAI_API_KEY" if at_home else "")
    remote = Remote(name, address, key, timeout=choice.timeout_seconds)
    return OpenAI(remote, model, prefixes, dimensions=choice.dimensions, batch=choice.batch or _BATCH)


class OpenAI(Asked):
    def __init__(self, remote: Remote, model: str, prefixes: Prefixes, *, dimensions: int | None, batch: int) -> None:
        super().__init__(
            remote.name, remote=not remote.address.local, batch=batch, dimension=dimensions, prefixes=prefixes
        )
        self._remote = remote
        self._request: dict[str, Any] = {"model": model, "encoding_format": "float"}
        if dimensions is not None:
            self._request["dimensions"] = dimensions

    def _vectors(  # the prefixes say the purpose
        self, texts: list[str], _: Purpose, deadline: float | None, stopped: Callable[[], bool]
    ) -> list[bytes]:
        return self._remote.post(
            "/embeddings",
            {**self._request, "input": texts},
            deadline=deadline,
            stopped=stopped,
            read=lambda answer: self._checked(in_order(answer, len(texts), self.name), len(texts)),
        )

    def close(self) -> None:
        self._remote.close()
