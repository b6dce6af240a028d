"""An embedder whose vectors are remembered: what was made once is not asked for again, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from simplemem.embed.asked import Asked
from simplemem.embed.hashes import hash_of


class Memory(Protocol):
    """Where vectors are kept, by the name of their embedder and the hash of their text."""

    def get(self, name: str, hashes: Iterable[bytes]) -> dict[bytes, bytes]: ...

    def put(self, name: str, vectors: Mapping[bytes, bytes]) -> None: ...

    def dimension(self, name: str) -> int | None: ...


class Cached:
    """An `Embedder` that looks into its memory before it asks. What it is told is kept batch by batch, so that work
    which breaks off is paid for only once."""

    def __init__(self, embedder: Asked, memory: Memory) -> None:
        self._embedder = embedder
        self._memory = memory
        self.name = embedder.name
        self.remote = embedder.remote
        self.batch = embedder.batch
        self.reads_sentences = embedder.reads_sentences
        if embedder.dimension is None:
            embedder.dimension = memory.dimension(embedder.name)

    @property
    def dimension(self) -> int | None:
        return self._embedder.dimension

    def known(self, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the texts' hashes (`hash_of`) whose vectors are remembered."""
        return set(self._memory.get(self.name, hashes))

    def documents(self, texts: Sequence[str], *, stopped: Callable[[], bool] = lambda: False) -> list[bytes]:
        hashes = {text: hash_of(text) for text in texts}
        known = self._memory.get(self.name, hashes.values())
        blank = [text for text in hashes if not text.strip()]
        missing = [text for text in hashes if hashes[text] not in known and text.strip()]
        for start in range(0, len(missing), self.batch):
            some = missing[start : start + self.batch]
            made = self._embedder.documents(some, stopped=stopped)
            fresh = {hashes[text]: vector for text, vector in zip(some, made, strict=True)}
            self._memory.put(self.name, fresh)
            known |= fresh
        if blank:
            known |= dict.fromkeys(map(hash_of, blank), self._embedder.documents(blank[:1], stopped=stopped)[0])
        return [known[hashes[text]] for text in texts]

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        return self._embedder.query(text, deadline=deadline)

    def close(self) -> None:
        self._embedder.close()
