"""Embedders and rerankers of other packages: load them, and check what they return.

docs/plugins.md says how a package offers one. Whatever it raises becomes Unavailable, so that a
search goes on without it. Messages never quote its errors, which may contain the text of a note.
"""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

from simplemem.errors import Invalid, SimplememError, Unavailable
from simplemem.note.words import format_count
from simplemem.plugins import Plugin, load_named, plugins_of
from simplemem.providers.api import (
    Embedder,
    EmbedderConfig,
    EmbedderProvider,
    IsCancelled,
    Reranker,
    RerankerConfig,
    RerankerProvider,
    never_cancelled,
)

_LOG = logging.getLogger(__name__)


def load_embedder(plugin: Plugin) -> EmbedderProvider:
    """Return what a plug-in of the kind "embedders" offers.

    Raises:
        Unavailable: The package cannot be loaded.
        Invalid: What it offers is not an EmbedderProvider of the plug-in's name.
    """
    return load_named(
        plugin, _is_embedder_provider, description="an EmbedderProvider", noun="provider"
    )


def load_reranker(plugin: Plugin) -> RerankerProvider:
    """Return what a plug-in of the kind "rerankers" offers.

    Raises:
        Unavailable: The package cannot be loaded.
        Invalid: What it offers is not a RerankerProvider of the plug-in's name.
    """
    return load_named(
        plugin, _is_reranker_provider, description="a RerankerProvider", noun="provider"
    )


def create_plugin_embedder(name: str, config: EmbedderConfig) -> Embedder:
    """Return the embedder of a plug-in, whose answers are checked.

    Raises:
        Invalid: There is no such plug-in, or it offers no EmbedderProvider.
        Unavailable: The plug-in fails, cannot use the settings, or creates no embedder.
    """
    provider = load_embedder(_find_plugin("embedders", name))
    with _translating_errors(name):
        embedder = provider.create(config)
        if not isinstance(embedder, Embedder):
            raise _lacks_members(name, embedder, "Embedder")
        return PluginEmbedder(name, embedder)


def create_plugin_reranker(name: str, config: RerankerConfig) -> Reranker:
    """Return the reranker of a plug-in, whose answers are checked.

    Raises:
        Invalid: There is no such plug-in, or it offers no RerankerProvider.
        Unavailable: The plug-in fails, cannot use the settings, or creates no reranker.
    """
    provider = load_reranker(_find_plugin("rerankers", name))
    with _translating_errors(name):
        reranker = provider.create(config)
        if not isinstance(reranker, Reranker):
            raise _lacks_members(name, reranker, "Reranker")
        return PluginReranker(name, reranker)


def _find_plugin(kind: str, name: str) -> Plugin:
    """Return the plug-in of this name. Raises Invalid, with the names that there are."""
    plugins = plugins_of(kind)
    if name in plugins:
        return plugins[name]
    names = ", ".join(plugins) or "none"
    raise Invalid(f"no installed package adds {name!r} to {kind}", hint=f"Installed: {names}.")


def _lacks_members(name: str, created: object, protocol: str) -> Unavailable:
    """Return (not raise) the error for an object that lacks a member of a protocol."""
    return Unavailable(
        f"the plug-in {name!r} creates no {protocol}",
        hint=f"A {type(created).__name__} lacks members of simplemem.providers.api.{protocol}.",
    )


class PluginEmbedder:
    """An embedder of another package, with the methods of `Embedder`.

    Sends batches of the size that the embedder wants, and checks the vectors. Its name begins with
    that of the plug-in, so vectors of two packages are never compared.
    """

    def __init__(self, plugin_name: str, embedder: Embedder) -> None:
        """Wrap an embedder. Raises TypeError if its batch is no number."""
        self._embedder = embedder
        self.name = f"{plugin_name}/{embedder.name}"
        self.remote = bool(embedder.remote)
        self.batch = max(1, embedder.batch)
        self.reads_sentences = bool(embedder.reads_sentences)
        self.dimension = embedder.dimension

    def documents(
        self, texts: Sequence[str], *, stopped: IsCancelled = never_cancelled
    ) -> list[bytes]:
        """Return one vector per text, in their order. A blank text gets what the plug-in returns.

        Sets `dimension` if it was not known. Raises RequestRefused if the plug-in does, and
        Unavailable if it fails, or does not return one vector of the same dimension per text.
        """
        vectors: list[bytes] = []
        for start in range(0, len(texts), self.batch):
            batch = texts[start : start + self.batch]
            with _translating_errors(self.name):
                batch_vectors = list(self._embedder.documents(batch, stopped=stopped))
            if len(batch_vectors) != len(batch):
                returned = format_count(len(batch_vectors), "vector")
                sent = format_count(len(batch), "text")
                raise Unavailable(f"{self.name} returned {returned} for {sent}")
            vectors += [self._checked(vector) for vector in batch_vectors]
        return vectors

    def query(self, text: str, *, deadline: float | None = None) -> bytes:
        """Return the vector of a query.

        Sets `dimension` if it was not known. Raises RequestRefused if the plug-in does, and
        Unavailable if it fails or returns no vector. `deadline` is a `time.monotonic()`, which the
        plug-in must observe.
        """
        with _translating_errors(self.name):
            vector = self._embedder.query(text, deadline=deadline)
        return self._checked(vector)

    def _checked(self, vector: object) -> bytes:
        """Return a vector of the plug-in. Raises Unavailable unless it has the right dimension."""
        if not isinstance(vector, bytes):
            raise Unavailable(
                f"{self.name} returned a {type(vector).__name__} instead of bytes",
                hint="simplemem.providers.api.to_signed_bytes makes bytes of numbers.",
            )
        if self.dimension is None and vector:
            self.dimension = len(vector)
        if len(vector) != self.dimension:
            expected = self.dimension or "some"
            raise Unavailable(
                f"{self.name} returned a vector of {len(vector)} dimensions "
                f"where {expected} were expected"
            )
        return vector

    def close(self) -> None:
        """Close the plug-in's connections. If it fails, that is logged and not raised."""
        try:
            with _translating_errors(self.name):
                self._embedder.close()
        except Unavailable as error:
            _LOG.warning("%s", error.message)


class PluginReranker:
    """A reranker of another package, with the methods of `Reranker`. Checks the scores."""

    def __init__(self, plugin_name: str, reranker: Reranker) -> None:
        """Wrap a reranker. Sends nothing."""
        self._reranker = reranker
        self.name = f"{plugin_name}/{reranker.name}"
        self.remote = bool(reranker.remote)

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """Return one score per text, in their order.

        Raises Unavailable if the plug-in fails, or does not return one finite number per text.
        `deadline` is a `time.monotonic()`, which the plug-in must observe.
        """
        with _translating_errors(self.name):
            scores = [float(score) for score in self._reranker.scores(query, texts, deadline)]
        if len(scores) != len(texts):
            raise Unavailable(f"{self.name} returned {len(scores)} scores for {len(texts)} texts")
        if not all(map(math.isfinite, scores)):
            raise Unavailable(f"{self.name} returned a score that is not a number")
        return scores

    def close(self) -> None:
        """Close the plug-in's connections. If it fails, that is logged and not raised."""
        try:
            with _translating_errors(self.name):
                self._reranker.close()
        except Unavailable as error:
            _LOG.warning("%s", error.message)


@contextmanager
def _translating_errors(name: str) -> Iterator[None]:
    """Raise Unavailable in place of any other error of a plug-in.

    An error of simplemem keeps its message and hint. For any other one, the message has its kind
    and where it was raised, but not its text.
    """
    try:
        yield
    except Unavailable:
        raise
    except SimplememError as error:
        raise Unavailable(error.message, hint=error.hint) from error
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise Unavailable(
            f"{name} failed with {type(error).__name__} ({place})",
            hint="Correct or uninstall the package. `simplemem plugins` lists the plug-ins.",
        ) from error


def _is_embedder_provider(offered: object) -> TypeGuard[EmbedderProvider]:
    """Return whether a plug-in offers an embedder."""
    return isinstance(offered, EmbedderProvider)


def _is_reranker_provider(offered: object) -> TypeGuard[RerankerProvider]:
    """Return whether a plug-in offers a reranker."""
    return isinstance(offered, RerankerProvider)
