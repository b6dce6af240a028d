"""The embedder that the settings ask for."""

from __future__ import annotations

import re
from pathlib import Path

from simplemem.config import Settings
from simplemem.embed import Choice, Embedder, embedder_named


def embedder_of(settings: Settings, index_path: Path) -> Embedder | None:
    """The provider of `embed.provider` with its settings, None for "none". Nothing is asked of the network."""
    found = embedder_named(settings.embed.provider, choice_of(settings))
    if found is None or settings.embed.provider == "wordllama" or not settings.embed.cache_mb:
        return found  # word vectors are made more quickly than they are looked up
    from simplemem.embed.asked import Asked
    from simplemem.embed.cache import Cached
    from simplemem.index.vector_cache import VectorCache

    assert isinstance(found, Asked)
    return Cached(found, VectorCache(cache_path(index_path), settings.embed.cache_mb * 1024 * 1024))


def cache_path(index_path: Path) -> Path:
    """Where vectors are remembered: beside the index, and not thrown away with it. The index of who sees less of the
    vault (`core.py`) has the same, so that nothing is paid for twice."""
    stem = _VIEW.sub("", index_path.stem)
    return index_path.with_name("vectors.db" if stem in ("index", "") else f"{stem}-vectors.db")


_VIEW = re.compile(r"(?:\A|-)index-[0-9a-f]{8}\Z")


def choice_of(settings: Settings) -> Choice:
    """The settings `embed.*` as the providers take them."""
    wanted, original = settings.embed, settings.voyage_ai
    voyage = wanted.provider == "voyage"  # what a file of the original says still holds
    return Choice(
        model=wanted.model or (original.model if voyage else ""),
        url=wanted.url,
        api_key=wanted.api_key or (original.api_key if voyage else None),
        dimensions=wanted.dimensions,
        batch=wanted.batch,
        timeout_seconds=wanted.timeout_seconds,
        query_prefix=wanted.query_prefix,
        document_prefix=wanted.document_prefix,
        keep_alive=wanted.keep_alive,
        download=wanted.download,
    )
