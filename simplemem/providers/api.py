"""The interfaces of embedders, rerankers and chat models.

Another package that offers an embedder or a reranker needs only this module (docs/plugins.md).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypedDict, runtime_checkable

from simplemem.errors import Unavailable
from simplemem.providers.keys import KeySource

IsCancelled: TypeAlias = Callable[[], bool]
"""Is called now and then while a service is awaited; True ends the wait."""


def never_cancelled() -> bool:
    """Return False: the default `stopped`, with which the caller waits for as long as it takes."""
    return False


class RequestRefused(Unavailable):
    """The service works but refuses this request, for example because a text is too long."""


@runtime_checkable
class Embedder(Protocol):
    """Computes vectors of texts. A vector has one signed byte per dimension."""

    name: str
    """Names the vector space: everything that a stored vector depends on. Vectors of different
    names are never compared, and a new name replaces all stored vectors."""
    dimension: int | None
    """The number of bytes per vector; None until the first answer, if only that tells it."""
    remote: bool
    """Whether texts leave this machine. A remote embedder gets no private note."""
    batch: int
    """The number of texts in one request."""
    reads_sentences: bool
    """Whether it should get whole sentences. An embedder that only sums words should get texts
    without stop words."""

    def documents(self, texts: Sequence[str], *, stopped: IsCancelled = ...) -> list[bytes]:
        """Return one vector per text, in their order. A blank text gets zeros.

        Zeros resemble nothing. `stopped` is called now and then while a service is awaited. Raises
        RequestRefused if the service refuses just these texts, and Unavailable if it fails or if
        `stopped` returns True.
        """
        ...

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        """Return the vector of a search query. That of a blank one has no meaning.

        `deadline` is a `time.monotonic()`; with None, each attempt has the timeout of the settings.
        Raises RequestRefused if the service refuses the text, and Unavailable if it fails or the
        vector is not there in time.
        """
        ...

    def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedderConfig:
    """The settings `embed.*` for an embedder. Empty ones mean the provider's default."""

    model: str = ""
    url: str = ""
    api_key: KeySource = None
    dimensions: int | None = None
    batch: int | None = None
    timeout_seconds: float = 60.0
    query_prefix: str | None = None
    document_prefix: str | None = None
    keep_alive: str = ""


@dataclass(frozen=True, slots=True)
class EmbedderProvider:
    """What a package offers as an entry point of the group `simplemem.embedders`.

    `name` is that of the entry point, and the value of the setting `embed.provider` that chooses
    it. `create` returns the embedder for the settings, and sends nothing. It raises Invalid for
    settings that cannot be used, and Unavailable if something that it needs is missing.
    """

    name: str
    create: Callable[[EmbedderConfig], Embedder]


def to_signed_bytes(vector: Sequence[float]) -> bytes:
    """Return a vector with one signed byte per dimension, scaled so that the largest is 127.

    A vector of zeros, or without elements, stays as it is. Raises ValueError for NaN and infinity.
    """
    largest = max(map(abs, vector), default=0)
    if not largest:
        return bytes(len(vector))
    components = [round(number / largest * 127) for number in vector]
    return array("b", components).tobytes()


@runtime_checkable
class Reranker(Protocol):
    """Scores how well passages answer a query."""

    name: str
    """Its name in messages."""
    remote: bool
    """Whether texts leave this machine. A remote reranker gets no private note."""

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """Return one score per text, in their order; a higher one answers the query better.

        The scale is the provider's own. Raises Unavailable if the service fails, or if the scores
        are not there by the deadline, which is a `time.monotonic()`.
        """
        ...

    def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        ...


@dataclass(frozen=True, slots=True)
class RerankerConfig:
    """The settings `rerank.*` for a reranker. `key_setting` is the one that has the key."""

    model: str = ""
    url: str = ""
    api_key: KeySource = None
    key_setting: str = "rerank.api_key"


@dataclass(frozen=True, slots=True)
class RerankerProvider:
    """What a package offers as an entry point of the group `simplemem.rerankers`.

    `name` is that of the entry point, and the value of the setting `rerank.provider` that chooses
    it. `create` returns the reranker for the settings, and sends nothing. It raises Invalid for
    settings that cannot be used, and Unavailable if something that it needs is missing.
    """

    name: str
    create: Callable[[RerankerConfig], Reranker]


class ChatQuestion(TypedDict):
    """A task for a chat model."""

    instructions: str
    """What the model should do with the content. White space in it does not matter."""
    shape: Mapping[str, Any]
    """The type of each value of the answer, by its key.

    A type is "text", "number" or "yes" (a boolean), with "?" at its end if the value may be null. A
    list of several strings means that the value is one of them; a list of one type means a list of
    such values; a mapping means an object."""


class ChatModel(Protocol):
    """Answers questions about texts with an object of a given shape."""

    name: str
    """Its name in messages."""
    method: str
    """Its name in notes that are made from its answers."""

    def ask(
        self,
        question: ChatQuestion,
        content: Mapping[str, object],
        seconds: float = 0,
    ) -> dict[str, Any]:
        """Return the answer to a question about `content`, an object with the keys of its shape.

        The types of its values are not checked. Raises Unavailable if there is no answer with the
        right keys within `seconds`, or within the time limit of the settings if `seconds` is 0, and
        if the calls of this hour are used up.
        """
        ...
