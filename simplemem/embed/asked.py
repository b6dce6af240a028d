"""What all embedders share that ask a model for floating numbers: batches, prefixes, empty texts, checks."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal

from simplemem.embed.checked import int8_vectors
from simplemem.embed.prefixes import Prefixes
from simplemem.errors import Unavailable

Purpose = Literal["document", "query"]
_QUESTIONS_KEPT = 100
_MOST_CHARACTERS = 6_000  # of one text; passages are far shorter, and models read little more


def name_of_space(provider: str, model: str, *, where: str, dimensions: int | None, prefixes: Prefixes) -> str:
    """The name of a space of vectors: everything a stored vector depends on. `where` is empty for the place whose
    models are known by name alone; under the same name another server may run another model."""
    parts = [f"{provider}/{model}"]
    if where:
        parts.append(f"at {where}")
    if dimensions is not None:
        parts.append(f"in {dimensions} dimensions")
    if prefixes.document:
        parts.append(f"after {json.dumps(prefixes.document)}")
    return " ".join(parts)


class Asked(ABC):
    """An embedder whose vectors come from somebody else. A provider says in `_vectors` how it is asked."""

    reads_sentences = True

    def __init__(self, name: str, *, remote: bool, batch: int, dimension: int | None, prefixes: Prefixes) -> None:
        self.name = name
        self.remote = remote
        self.batch = max(1, batch)
        self.dimension = dimension
        self._prefixes = prefixes
        self._questions: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def documents(self, texts: Sequence[str], *, stopped: Callable[[], bool] = lambda: False) -> list[bytes]:
        """One vector a text, asked in batches. A text without a word gives zeros, which are near to nothing."""
        worded = {text: b"" for text in texts if text.strip()}
        for some in _batches(iter(list(worded)), self.batch):
            worded.update(zip(some, self._asked(some, "document", None, stopped), strict=True))
        if len(worded) < len(set(texts)) and self.dimension is None:
            self._asked(["memory"], "document", None, stopped)  # how wide the zeros must be
        return [worded.get(text) or bytes(self.dimension or 0) for text in texts]

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        """A question's vector. The latest questions are remembered: pages of one search ask for the same again."""
        with self._lock:
            known = self._questions.pop(text, None)
        made = known or self._asked([text if text.strip() else "memory"], "query", deadline, lambda: False)[0]
        with self._lock:
            self._questions[text] = made
            if len(self._questions) > _QUESTIONS_KEPT:
                del self._questions[next(iter(self._questions))]
        return made

    def _asked(
        self, texts: list[str], purpose: Purpose, deadline: float | None, stopped: Callable[[], bool]
    ) -> list[bytes]:
        before = self._prefixes.query if purpose == "query" else self._prefixes.document
        given = [before + text[:_MOST_CHARACTERS] for text in texts]
        made = self._vectors(given, purpose, deadline, stopped)
        if self.dimension is None:
            self.dimension = len(made[0])
        return made

    @abstractmethod
    def _vectors(
        self, texts: list[str], purpose: Purpose, deadline: float | None, stopped: Callable[[], bool]
    ) -> list[bytes]: ...

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Nothing is held, unless a provider says otherwise."""

    def _checked(self, rows: Any, count: int) -> list[bytes]:
        return int8_vectors(rows, count, self.dimension, self.name)


def _batches(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    while some := list(islice(texts, size)):
        yield some


def in_order(answer: Any, count: int, name: str) -> list[Any]:
    """The vectors in the order of the texts. Each says in `index` which text it belongs to, and some servers mix them."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise Unavailable(f"{name} gave an answer without vectors", hint="embed.url must end where /embeddings begins.")
    indexes = [row.get("index") for row in data]
    if len(data) == count and any(index is not None for index in indexes):
        if sorted(index for index in indexes if isinstance(index, int)) != list(range(count)):
            raise Unavailable(f"{name} does not say which vector belongs to which text")
        data = sorted(data, key=lambda row: int(row["index"]))
    return [row.get("embedding") for row in data]
