"""An embedder for simplemem: texts with the same groups of three letters have similar vectors."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from simplemem.providers.api import (
    EmbedderConfig,
    EmbedderProvider,
    IsCancelled,
    never_cancelled,
    to_signed_bytes,
)


class LetterEmbedder:
    """Counts the trigrams of a text in hashed places, so that a misspelt dish is still found."""

    remote = False
    batch = 256
    reads_sentences = False

    def __init__(self, dimension: int) -> None:
        self.name = f"trigrams-v1-{dimension}"
        self.dimension: int | None = dimension
        self._places = dimension

    def documents(
        self, texts: Sequence[str], *, stopped: IsCancelled = never_cancelled
    ) -> list[bytes]:
        """Return one vector per text."""
        return [self._embed(text) for text in texts]

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        """Return the vector of a query."""
        return self._embed(text)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _embed(self, text: str) -> bytes:
        counts = [0.0] * self._places
        for word in text.lower().split():
            padded = f" {word} "
            for start in range(len(word)):
                digest = crc32(padded[start : start + 3].encode())
                sign = 1 if digest & 1 else -1  # so that collisions cancel each other out
                counts[(digest >> 1) % self._places] += sign
        return to_signed_bytes(counts)


def create(config: EmbedderConfig) -> LetterEmbedder:
    """Return the embedder with the number of dimensions that the user set."""
    return LetterEmbedder(config.dimensions or 512)


PROVIDER = EmbedderProvider("recipe-letters", create)
