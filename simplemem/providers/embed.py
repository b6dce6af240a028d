"""Text to vectors (int8, one byte a dimension): embedders by name, and a table of how each protocol is spoken. Vectors
of two embedders are never compared. Making an embedder never asks the network."""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.note.formatting import counted, well_formed
from simplemem.providers.client import (
    VOYAGE,
    Key,
    KeySource,
    Refused,
    Stopped,
    address_of,
    client_of,
)

Purpose = Literal["document", "query"]
_QUESTIONS_KEPT = 100
_MOST_CHARACTERS = 6_000  # of one text; passages are far shorter, and models read little more


class Embedder(Protocol):
    """A provider that is ready. It raises `Unavailable`, or `Refused` when it will not take just these texts."""

    name: str  # provider, model, and whatever else makes its vectors what they are: one name, one space of vectors
    dimension: (
        int | None
    )  # None until the first answer, unless it is known beforehand; later answers must agree
    remote: bool  # texts leave this machine
    batch: int  # how many texts one request carries
    reads_sentences: (
        bool  # wants texts as they are; one that averages words is given them without stop words
    )

    def documents(self, texts: Sequence[str], *, stopped: Stopped = ...) -> list[bytes]: ...

    def query(self, text: str, *, deadline: float | None = None) -> bytes: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """How an embedder is to be reached: the settings `embed.*` as values. What is empty, the provider knows best."""

    model: str = ""
    url: str = ""
    api_key: KeySource = None
    dimensions: int | None = None
    batch: int | None = None
    timeout_seconds: float = 60.0
    query_prefix: str | None = None
    document_prefix: str | None = None
    keep_alive: str = ""


def embedder_named(name: str, choice: Choice | None = None) -> Embedder | None:
    """The provider of that name, loaded; None for "none"."""
    if name == "wordllama":
        from simplemem.providers.wordllama import shared_wordllama

        return shared_wordllama()
    return ServiceEmbedder(name, choice or Choice()) if name in _PROTOCOLS else None


_REPRESENT = "Represent this sentence for searching relevant passages: "
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)
# Their makers publish these words on the models' pages; without them a model finds markedly less, and the services that
# run such models do not add them. A question's words, and a passage's.
_PREFIXES = (
    (re.compile(r"nomic-embed-text"), ("search_query: ", "search_document: ")),
    (re.compile(r"embedding-?gemma"), ("task: search result | query: ", "title: none | text: ")),
    (re.compile(r"qwen3-embedding"), (_INSTRUCT, "")),
    (re.compile(r"e5.*instruct"), (_INSTRUCT, "")),
    (re.compile(r"(^|[-_/])(multilingual-)?e5-"), ("query: ", "passage: ")),
    (re.compile(r"mxbai-embed-large|arctic-embed(?!2|.*v2)"), (_REPRESENT, "")),
    (re.compile(r"arctic-embed"), ("query: ", "")),
    (re.compile(r"bge-(small|base|large)-en"), (_REPRESENT, "")),
)


def prefixes_of(
    model: str, query: str | None = None, document: str | None = None
) -> dict[Purpose, str]:
    """What goes before texts for this model; the settings `query` and `document` win when they are given."""
    known = next((words for shape, words in _PREFIXES if shape.search(model.lower())), ("", ""))
    return {
        "query": known[0] if query is None else query,
        "document": known[1] if document is None else document,
    }


class _Protocol(NamedTuple):
    """How one kind of service is asked. `home` is the service it was made for, with the model taken there."""

    home: str
    model: str
    batch: int
    path: str
    request: Mapping[str, Any]
    key_variable: str = ""  # read for `home` alone: its key is shown to nobody else
    width: str = "dimensions"  # what a request calls the dimensions that are wanted


_OPENAI, _FLOATS = "https://api.openai.com/v1", {"encoding_format": "float"}
_CUT = {"truncation": True}
_PROTOCOLS = {  # openai: LM Studio, vLLM, llama.cpp and Ollama's /v1 too
    "openai": _Protocol(
        _OPENAI, "text-embedding-3-small", 64, "/embeddings", _FLOATS, "OPENAI_API_KEY"
    ),
    "ollama": _Protocol(
        "http://localhost:11434", "nomic-embed-text", 32, "/api/embed", {"truncate": True}
    ),
    "voyage": _Protocol(
        VOYAGE, "voyage-3.5", 128, "Embedding", _CUT, "VOYAGE_API_KEY", "output_dimension"
    ),
}


class ServiceEmbedder:
    """An embedder whose vectors come from a service: batches, prefixes, empty texts, checks."""

    reads_sentences = True

    def __init__(self, provider: str, choice: Choice) -> None:
        protocol, is_ollama = _PROTOCOLS[provider], provider == "ollama"
        address = address_of(choice.url or protocol.home)
        at_home = address.url == protocol.home
        if not choice.model and not at_home and provider == "openai":
            hint = "Set it to the name under which the service lists the model, for example at /v1/models."
            raise Invalid(f"the setting embed.model is needed for {address.url}", hint=hint)
        model = choice.model or protocol.model
        self._provider, self._path = provider, protocol.path
        self._request: dict[str, Any] = {**protocol.request, "model": model}
        if choice.keep_alive and is_ollama:
            self._request["keep_alive"] = choice.keep_alive
        if choice.dimensions is not None:
            self._request[protocol.width] = choice.dimensions
        self._prefixes = prefixes_of(model, choice.query_prefix, choice.document_prefix)
        # The name of a space of vectors: everything a stored vector depends on.
        self.name = f"{provider}/{model.removesuffix(':latest') if is_ollama else model}"
        self.name += "" if at_home else f" at {address.host}"
        self.name += f" in {choice.dimensions} dimensions" if choice.dimensions is not None else ""
        self.name += (
            f" after {json.dumps(before)}" if (before := self._prefixes["document"]) else ""
        )
        self.remote = provider == "voyage" or not address.local
        self.batch = max(1, choice.batch or protocol.batch)
        self.dimension = choice.dimensions
        key = Key(
            choice.api_key,
            otherwise=protocol.key_variable if at_home or provider == "voyage" else "",
        )
        self._client = client_of(provider, self.name, address, key, timeout=choice.timeout_seconds)
        self.close = self._client.close
        self._questions: dict[str, bytes] = {}

    def documents(self, texts: Sequence[str], *, stopped: Stopped = lambda: False) -> list[bytes]:
        """One vector a text, asked in batches. A text without a word gives zeros, which are near to nothing."""
        asked = [text for text in dict.fromkeys(texts) if text.strip()]
        made: dict[str, bytes] = {}
        for start in range(0, len(asked), self.batch):
            some = asked[start : start + self.batch]
            made |= zip(some, self._vectors(some, "document", None, stopped), strict=True)
        if self.dimension is None and texts:
            self._vectors(["memory"], "document", None, stopped)  # how wide the zeros must be
        return [made.get(text) or bytes(self.dimension or 0) for text in texts]

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        """A question's vector, no later than `deadline`, a `time.monotonic()`."""
        if (made := self._questions.get(text)) is None:
            made = self._vectors(
                [text if text.strip() else "memory"], "query", deadline, lambda: False
            )[0]
            self._questions[text] = made  # pages of one search ask for the same again
            if len(self._questions) > _QUESTIONS_KEPT:
                self._questions.pop(next(iter(self._questions)), None)
        return made

    def _vectors(
        self, texts: list[str], purpose: Purpose, deadline: float | None, stopped: Stopped
    ) -> list[bytes]:
        sent = [well_formed(self._prefixes[purpose] + text[:_MOST_CHARACTERS]) for text in texts]
        request = {**self._request, "input": sent} | (
            {"input_type": purpose} if self._provider == "voyage" else {}
        )

        def attempt(seconds: float) -> list[bytes]:
            answer = self._client.attempt(self._path, request, seconds)
            return _vectors_in(answer, len(sent), self.dimension, self.name)

        try:
            made = self._client.patience.call(attempt, deadline, stopped)
        except SimplememError as error:
            if self._provider == "ollama" and error.details.get("status") == 404:
                pull = f"`ollama pull {request['model']}` downloads the model"
                error.hint = f"{pull}; `ollama list` lists the installed models."
            raise
        self.dimension = self.dimension or len(made[0])
        return made


def _vectors_in(answer: Any, count: int, dimension: int | None, name: str) -> list[bytes]:
    """One vector for each of `count` texts, scaled to its own largest number. One bad vector is refused alone."""
    rows = _rows_in_order(answer, name)
    if len(rows) != count:
        raise Unavailable(
            f"{name} returned {counted(len(rows), 'vector')} for {counted(count, 'text')}"
        )
    widths = {len(row) if isinstance(row, list) else 0 for row in rows}
    wanted = dimension or max(widths, default=0)
    if widths != {wanted} or not wanted:
        wrong = min(widths - {wanted} or widths)
        said = (
            f"{name} returned a vector of {wrong} dimensions where {wanted or 'some'} were expected"
        )
        raise Unavailable(said, hint="If the model has changed, set embed.model to its name.")
    try:
        numbers = [
            array("d", (math.nan if number is None else number for number in row)) for row in rows
        ]
    except (ValueError, TypeError, OverflowError) as error:
        raise Unavailable(
            f"{name} returned vectors that contain values other than numbers"
        ) from error
    largest = [max(map(abs, row)) if all(map(math.isfinite, row)) else math.nan for row in numbers]
    if bad := [size for size in largest if not size > 0]:
        kind = Unavailable if count > 1 and len(bad) == count else Refused
        what = "with NaN or infinity in it" if any(map(math.isnan, bad)) else "of zeros only"
        raise kind(f"{name} returned a vector {what} for {counted(len(bad), 'text')} of {count}")
    pairs = zip(numbers, largest, strict=True)
    return [
        array("b", [round(number / size * 127) for number in row]).tobytes() for row, size in pairs
    ]


def _rows_in_order(answer: Any, name: str) -> list[Any]:
    """The vectors in the order of the texts, which in OpenAI's answers is said in each row's `index`."""
    known: Mapping[str, Any] = answer if isinstance(answer, dict) else {}
    if isinstance(known.get("embeddings"), list):
        return list(known["embeddings"])
    data = known.get("data")
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        said = "Leave /embeddings out of embed.url. For Ollama, leave out /v1 too, as in http://localhost:11434."
        raise Unavailable(f"{name} returned an answer without vectors", hint=said)
    indexes = [row.get("index") for row in data]
    if any(index is not None for index in indexes):
        if sorted(index for index in indexes if isinstance(index, int)) != list(range(len(data))):
            raise Unavailable(f"{name} does not say which vector belongs to which text")
        data = sorted(data, key=lambda row: int(row["index"]))
    return [row.get("embedding") for row in data]
