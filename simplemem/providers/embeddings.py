"""Create an embedder by its name, and compute vectors with one that is behind a service.

The services have the protocol of OpenAI, Ollama or Voyage. Creating an embedder sends nothing.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.note.words import format_count, well_formed
from simplemem.providers.addresses import VOYAGE_URL, Address, parse_address
from simplemem.providers.api import (
    Embedder,
    EmbedderConfig,
    IsCancelled,
    RequestRefused,
    never_cancelled,
    to_signed_bytes,
)
from simplemem.providers.keys import Key
from simplemem.providers.services import create_client

Purpose: TypeAlias = Literal["document", "query"]

_MAX_CACHED_QUERIES = 100
_MAX_CHARACTERS = 6_000  # of one text; passages are far shorter, and models read little more
_ANY_WORD = "memory"  # sent in place of an empty text


def create_embedder(name: str, config: EmbedderConfig | None = None) -> Embedder | None:
    """Return the embedder of a provider, built in or a plug-in; None for "none". Sends nothing.

    "wordllama" ignores `config`. Raises Invalid if there is no such provider or the settings cannot
    be used, and Unavailable if a file or package is missing or a plug-in fails.
    """
    if name == "none":
        return None
    if name == "wordllama":
        from simplemem.providers.word_vectors import shared_multilingual

        return shared_multilingual()

    config = config or EmbedderConfig()
    if name == "local":
        from simplemem.providers.local_model import LocalEmbedder

        return LocalEmbedder(config)
    if name in _PROTOCOLS:
        return ServiceEmbedder(name, config)

    from simplemem.providers.plugin import create_plugin_embedder

    return create_plugin_embedder(name, config)


# What models expect before a text


class _Prefixes(NamedTuple):
    """The texts that are put before a query and before a document."""

    query: str
    document: str


_REPRESENT = "Represent this sentence for searching relevant passages: "
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)
# From the models' own pages. Without them, a model finds markedly less, and the services that run
# such models do not add them.
_KNOWN_PREFIXES = (
    (re.compile(r"nomic-embed-text"), _Prefixes("search_query: ", "search_document: ")),
    (
        re.compile(r"embedding-?gemma"),
        _Prefixes("task: search result | query: ", "title: none | text: "),
    ),
    (re.compile(r"qwen3-embedding"), _Prefixes(_INSTRUCT, "")),
    (re.compile(r"e5.*instruct"), _Prefixes(_INSTRUCT, "")),
    (re.compile(r"(^|[-_/])(multilingual-)?e5-"), _Prefixes("query: ", "passage: ")),
    (re.compile(r"mxbai-embed-large|arctic-embed(?!2|.*v2)"), _Prefixes(_REPRESENT, "")),
    (re.compile(r"arctic-embed"), _Prefixes("query: ", "")),
    (re.compile(r"bge-(small|base|large)-en"), _Prefixes(_REPRESENT, "")),
)


def prefixes_of(
    model: str, query: str | None = None, document: str | None = None
) -> dict[Purpose, str]:
    """Return the text that is put before a query, and before a document, for a model.

    `query` and `document` are the settings. One that is not None overrides the known prefix of the
    model, even if it is "". A model that is not known has no prefixes.
    """
    prefixes = _Prefixes("", "")
    for pattern, model_prefixes in _KNOWN_PREFIXES:
        if pattern.search(model.lower()):
            prefixes = model_prefixes
            break

    if query is not None:
        prefixes = prefixes._replace(query=query)
    if document is not None:
        prefixes = prefixes._replace(document=document)
    return {"query": prefixes.query, "document": prefixes.document}


# Services


class _Protocol(NamedTuple):
    """The protocol of a kind of service, and the defaults of its own service."""

    home: str  # the address of its own service
    model: str  # the default model there
    batch: int  # the default number of texts per request
    path: str  # below the address; for Voyage, the name of a resource
    request: Mapping[str, Any]  # the fields that every request has
    key_variable: str = ""  # an environment variable with a key, which is sent to `home` alone
    dimensions_field: str = "dimensions"


_PROTOCOLS = {
    # LM Studio, vLLM, llama.cpp and the /v1 of Ollama have this protocol too.
    "openai": _Protocol(
        home="https://api.openai.com/v1",
        model="text-embedding-3-small",
        batch=64,
        path="/embeddings",
        request={"encoding_format": "float"},
        key_variable="OPENAI_API_KEY",
    ),
    "ollama": _Protocol(
        home="http://localhost:11434",
        model="nomic-embed-text",
        batch=32,
        path="/api/embed",
        request={"truncate": True},
    ),
    "voyage": _Protocol(
        home=VOYAGE_URL,
        model="voyage-3.5",
        batch=128,
        path="Embedding",
        request={"truncation": True},
        key_variable="VOYAGE_API_KEY",
        dimensions_field="output_dimension",
    ),
}


class ServiceEmbedder:
    """An embedder behind a service, with the methods of `Embedder`.

    Sends texts in batches and with prefixes, and checks the answers. Remembers the vectors of the
    last queries, because all pages of a search need the same one.
    """

    reads_sentences = True

    def __init__(self, provider: str, config: EmbedderConfig) -> None:
        """Create an embedder, without connecting.

        Raises Invalid for a bad address or if a model must be named, and Unavailable if Voyage's
        package is not installed.
        """
        protocol = _PROTOCOLS[provider]
        address = parse_address(config.url or protocol.home)
        is_home = address.url == protocol.home
        if not config.model and not is_home and provider == "openai":
            raise Invalid(
                f"the setting embed.model is needed for {address.url}",
                hint=(
                    "Set it to the name under which the service lists the model, "
                    "for example at /v1/models."
                ),
            )

        model = config.model or protocol.model
        self._provider = provider
        self._path = protocol.path
        self._prefixes = prefixes_of(model, config.query_prefix, config.document_prefix)
        self._request: dict[str, Any] = {**protocol.request, "model": model}
        if config.keep_alive and provider == "ollama":
            self._request["keep_alive"] = config.keep_alive
        if config.dimensions is not None:
            self._request[protocol.dimensions_field] = config.dimensions

        self.name = self._vector_space(model, address, is_home, config.dimensions)
        self.remote = provider == "voyage" or not address.is_local
        self.batch = max(1, config.batch or protocol.batch)
        self.dimension = config.dimensions

        may_use_variable = is_home or provider == "voyage"
        key_variable = protocol.key_variable if may_use_variable else ""
        key = Key(config.api_key, default_variable=key_variable)
        self._client = create_client(
            provider, self.name, address, key, timeout=config.timeout_seconds
        )
        self.close = self._client.close
        self._query_vectors: dict[str, bytes] = {}

    def _vector_space(
        self,
        model: str,
        address: Address,
        is_home: bool,
        dimensions: int | None,
    ) -> str:
        """Return the name of the vector space: all that a stored vector depends on.

        That is the provider, the model, the host unless `is_home`, the dimensions unless they are
        the model's own (None), and the prefix of documents if there is one.
        """
        if self._provider == "ollama":
            model = model.removesuffix(":latest")
        name = f"{self._provider}/{model}"
        if not is_home:
            name += f" at {address.host}"
        if dimensions is not None:
            name += f" in {dimensions} dimensions"
        prefix = self._prefixes["document"]
        if prefix:
            name += f" after {json.dumps(prefix)}"
        return name

    def documents(
        self, texts: Sequence[str], *, stopped: IsCancelled = never_cancelled
    ) -> list[bytes]:
        """Return one vector per text, in their order. A blank text gets zeros.

        Distinct texts are requested in batches. Sets `dimension` if it was not known. Raises
        RequestRefused if the service refuses just these texts, and Unavailable if it fails or if
        `stopped` returns True.
        """
        distinct_texts = [text for text in dict.fromkeys(texts) if text.strip()]
        vectors: dict[str, bytes] = {}
        for start in range(0, len(distinct_texts), self.batch):
            batch = distinct_texts[start : start + self.batch]
            batch_vectors = self._request_vectors(batch, "document", stopped=stopped)
            vectors.update(zip(batch, batch_vectors, strict=True))

        if self.dimension is None and texts:
            # All texts are empty. A request finds out how many zeros a vector has.
            self._request_vectors([_ANY_WORD], "document", stopped=stopped)
        zeros = bytes(self.dimension or 0)
        return [vectors.get(text) or zeros for text in texts]

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        """Return the vector of a query; that of any word for a blank one.

        The last 100 vectors are remembered. Raises RequestRefused if the service refuses the query,
        and Unavailable if it fails or the vector is not there by the deadline, which is a
        `time.monotonic()`.
        """
        vector = self._query_vectors.get(text)
        if vector is not None:
            return vector

        sent_text = text if text.strip() else _ANY_WORD
        (vector,) = self._request_vectors([sent_text], "query", deadline)
        self._query_vectors[text] = vector
        if len(self._query_vectors) > _MAX_CACHED_QUERIES:
            oldest = next(iter(self._query_vectors))
            self._query_vectors.pop(oldest, None)
        return vector

    def _request_vectors(
        self,
        texts: list[str],
        purpose: Purpose,
        deadline: float | None = None,
        stopped: IsCancelled = never_cancelled,
    ) -> list[bytes]:
        """Send one request for the vectors of texts, with retries, and return them in order.

        `deadline` and `stopped` are as in `query` and `documents`. Texts are cut at 6,000
        characters. Sets `dimension` if it was not known. Raises RequestRefused or Unavailable. If
        Ollama does not have the model, the hint of the error says how to download it.
        """
        prefix = self._prefixes[purpose]
        inputs = [well_formed(prefix + text[:_MAX_CHARACTERS]) for text in texts]
        request = {**self._request, "input": inputs}
        if self._provider == "voyage":
            request["input_type"] = purpose

        def attempt(seconds: float) -> list[bytes]:
            answer = self._client.attempt(self._path, request, seconds)
            return _vectors_in(answer, len(inputs), self.dimension, self.name)

        try:
            vectors = self._client.retry_policy.call(attempt, deadline, stopped)
        except SimplememError as error:
            if self._provider == "ollama" and error.details.get("status") == 404:
                pull = f"`ollama pull {request['model']}` downloads the model"
                error.hint = f"{pull}; `ollama list` lists the installed models."
            raise
        self.dimension = self.dimension or len(vectors[0])
        return vectors


# Answers


def _vectors_in(answer: object, count: int, dimension: int | None, name: str) -> list[bytes]:
    """Return the vectors of an answer to `count` texts, as signed bytes.

    `dimension` is the number of elements that each must have; None only requires that all have the
    same. `name` is that of the embedder. Raises Unavailable if the answer does not fit, and either
    error of `_check_sizes` if a vector has no direction.
    """
    rows = _rows_in_order(answer, name)
    if len(rows) != count:
        raise Unavailable(
            f"{name} returned {format_count(len(rows), 'vector')} for {format_count(count, 'text')}"
        )

    lists = _check_dimensions(rows, dimension, name)
    vectors = [_as_numbers(row, name) for row in lists]
    sizes = [_largest_component(vector) for vector in vectors]
    _check_sizes(sizes, name)
    return [to_signed_bytes(vector) for vector in vectors]


def _rows_in_order(answer: object, name: str) -> list[object]:
    """Return the vectors of an answer, in the order of the texts. Their numbers are not checked.

    In OpenAI's protocol, each vector has the index of its text. Without any index, the order is
    taken as it is. Raises Unavailable if the answer has no list of vectors, or if the indexes do
    not count its vectors from 0.
    """
    fields: Mapping[str, Any] = {}
    if isinstance(answer, dict):
        fields = answer
    embeddings = fields.get("embeddings")
    if isinstance(embeddings, list):
        return embeddings

    rows = fields.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unavailable(
            f"{name} returned an answer without vectors",
            hint=(
                "Leave /embeddings out of embed.url. For Ollama, leave out /v1 too, "
                "as in http://localhost:11434."
            ),
        )
    indexes = [row.get("index") for row in rows]
    if any(index is not None for index in indexes):
        numbers = sorted(index for index in indexes if isinstance(index, int))
        if numbers != list(range(len(rows))):
            raise Unavailable(f"{name} does not say which vector belongs to which text")
        rows = sorted(rows, key=lambda row: int(row["index"]))
    return [row.get("embedding") for row in rows]


def _check_dimensions(rows: Sequence[object], dimension: int | None, name: str) -> list[list[Any]]:
    """Return the rows as lists, after checking that each has `dimension` elements.

    With None, all must have the same length, which is not 0. Raises Unavailable otherwise, with the
    `name` of the embedder. Elements are not checked. There must be at least one row.
    """
    lists = [row if isinstance(row, list) else [] for row in rows]
    lengths = {len(row) for row in lists}
    expected = dimension or max(lengths, default=0)
    if lengths == {expected} and expected:
        return lists

    wrong_lengths = lengths - {expected} or lengths  # all, if all vectors are empty
    raise Unavailable(
        f"{name} returned a vector of {min(wrong_lengths)} dimensions "
        f"where {expected or 'some'} were expected",
        hint="If the model has changed, set embed.model to its name.",
    )


def _as_numbers(row: Sequence[Any], name: str) -> array[float]:
    """Return a row as numbers, with NaN for null. Raises Unavailable for other values."""
    try:
        return array("d", (math.nan if number is None else number for number in row))
    except (ValueError, TypeError, OverflowError) as error:
        raise Unavailable(
            f"{name} returned vectors that contain values other than numbers"
        ) from error


def _largest_component(vector: array[float]) -> float:
    """Return the largest absolute value in a non-empty vector; NaN if one is not finite."""
    if not all(map(math.isfinite, vector)):
        return math.nan
    return max(map(abs, vector))


def _check_sizes(sizes: Sequence[float], name: str) -> None:
    """Raise an error if a vector has no direction: it is all zeros, or has NaN or infinity in it.

    `sizes` are the results of `_largest_component`. If there are several vectors and all have no
    direction, the service is at fault, and Unavailable is raised. Otherwise the texts are at fault,
    and RequestRefused is raised.
    """
    bad_sizes = [size for size in sizes if not size > 0]
    if not bad_sizes:
        return
    problem = "of zeros only"
    if any(map(math.isnan, bad_sizes)):
        problem = "with NaN or infinity in it"
    bad_texts = format_count(len(bad_sizes), "text")
    message = f"{name} returned a vector {problem} for {bad_texts} of {len(sizes)}"

    are_all_bad = len(bad_sizes) == len(sizes)
    if are_all_bad and len(sizes) > 1:
        raise Unavailable(message)
    raise RequestRefused(message)
