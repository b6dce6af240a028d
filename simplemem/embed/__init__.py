"""Text to vectors: a provider a file, chosen by name. What a provider gives is int8, one byte a dimension.

Vectors of two providers are never compared; the index keeps the provider's `name` beside its vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simplemem.errors import Invalid

PROVIDERS = ("wordllama", "none")


class Embedder(Protocol):
    """A provider that is ready. `documents` and `query` may differ; both give `dimension` bytes a text."""

    name: str
    dimension: int

    def documents(self, texts: Sequence[str]) -> list[bytes]: ...

    def query(self, text: str) -> bytes: ...


def embedder_named(name: str) -> Embedder | None:
    """The provider of that name, loaded; None for "none"."""
    if name == "none":
        return None
    if name == "wordllama":
        from simplemem.embed.wordllama import WordLlama

        return WordLlama()
    raise Invalid(f"there is no embedder called {name!r}", hint=f"Known are: {', '.join(PROVIDERS)}.")
