"""The embedder that the settings ask for."""

from __future__ import annotations

from simplemem.config import Settings
from simplemem.embed import Choice, Embedder, embedder_named


def embedder_of(settings: Settings) -> Embedder | None:
    """The provider of `embed.provider` with its settings, None for "none". Nothing is asked of the network."""
    return embedder_named(settings.embed.provider, choice_of(settings))


def choice_of(settings: Settings) -> Choice:
    """The settings `embed.*` as the providers take them."""
    wanted = settings.embed
    return Choice(
        model=wanted.model,
        url=wanted.url,
        api_key=wanted.api_key,
        dimensions=wanted.dimensions,
        batch=wanted.batch,
        timeout_seconds=wanted.timeout_seconds,
        query_prefix=wanted.query_prefix,
        document_prefix=wanted.document_prefix,
        keep_alive=wanted.keep_alive,
        download=wanted.download,
    )
