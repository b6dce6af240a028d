"""Text to vectors: a provider a file, chosen by name. What a provider gives is int8, one byte a dimension.

Vectors of two providers are never compared; the index keeps the provider's `name` beside its vectors. Making an
embedder never asks the network: what it has to learn from a service it learns from the service's first answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from simplemem.errors import Invalid
from simplemem.remote.keys import Secret

PROVIDERS = ("wordllama", "voyage", "openai", "ollama", "transformer", "none")


class Embedder(Protocol):
    """A provider that is ready. `documents` and `query` may differ; both give `dimension` bytes a text.

    A service that does not answer, or answers with something that is no vector, raises `Unavailable`; one that will
    not take just these texts raises `Refused`, and may take others.
    """

    @property
    def name(self) -> str:
        """Provider, model, and whatever else makes its vectors what they are: one name, one space of vectors."""
        ...

    @property
    def dimension(self) -> int | None:
        """None until the first answer, unless it is known beforehand. Later answers must agree with it."""
        ...

    @property
    def remote(self) -> bool:
        """Whether texts leave this machine."""
        ...

    @property
    def batch(self) -> int:
        """How many texts to give at once: what one request carries."""
        ...

    @property
    def reads_sentences(self) -> bool:
        """Whether it wants texts as they are; one that averages words is given them without stop words."""
        ...

    def documents(self, texts: Sequence[str], *, stopped: Callable[[], bool] = ...) -> list[bytes]: ...

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        """`deadline` is a `time.monotonic()`: nobody waits longer for an answer than until then."""
        ...

    def close(self) -> None:
        """Let go of connections; what is asked after it opens them anew."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """How an embedder is to be reached: the settings `embed.*` as values. What is empty, the provider knows best."""

    model: str = ""
    url: str = ""
    api_key: Secret | Mapping[str, str] | None = None
    dimensions: int | None = None
    batch: int | None = None
    timeout_seconds: float = 60.0
    query_prefix: str | None = None
    document_prefix: str | None = None
    keep_alive: str = ""
    download: bool = False


def embedder_named(name: str, choice: Choice | None = None) -> Embedder | None:
    """The provider of that name, loaded; None for "none"."""
    chosen = choice or Choice()
    if name == "none":
        return None
    if name == "wordllama":
        from simplemem.embed.wordllama import WordLlama

        return WordLlama()
    if name == "openai":
        from simplemem.embed.openai import openai

        return openai(chosen)
    if name == "voyage":
        from simplemem.embed.voyage import voyage

        return voyage(chosen)
    if name == "ollama":
        from simplemem.embed.ollama import ollama

        return ollama(chosen)
    if name == "transformer":
        from simplemem.embed.transformer import transformer

        return transformer(chosen)
    raise Invalid(f"there is no embedder called {name!r}", hint=f"Known are: {', '.join(PROVIDERS)}.")
