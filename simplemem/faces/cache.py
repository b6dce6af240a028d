"""The toolset `cache`: the tools of self-improving-memory for its cache of vectors (capabilities.md SI-23), over what there
really is here: vectors stand in the index, and those that a service or a model made are remembered in a file beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplemem.faces.arguments import Arguments
from simplemem.faces.knowing import FAILURE, pretty, timed
from simplemem.faces.schema import COUNT, FLAG, MAP, TEXT, record
from simplemem.faces.tool import Call, Reply, Tool

if TYPE_CHECKING:
    from simplemem.index.vector_cache import VectorCache


class NoArguments(Arguments):
    pass


def _cache(call: Call) -> VectorCache:
    from simplemem.index.vector_cache import VectorCache
    from simplemem.store.embedding import cache_path

    return VectorCache(cache_path(call.store.core.index.path), call.store.settings.embed.cache_mb * 1024 * 1024)


def get_cache_stats(call: Call, _asked: NoArguments) -> Reply:
    cache = _cache(call)
    embedding = call.store.core.healing(call.store.core.embedding.facts)
    counts = cache.count()
    used = call.store.settings.embed.provider not in ("wordllama", "none") and call.store.settings.embed.cache_mb > 0
    data = {
        "in_use": used,
        "says": "Vectors that this embedder made are remembered."
        if used
        else "This embedder's vectors are made more quickly than they are looked up: none are remembered.",
        "size": sum(counts.values()),
        "by_embedder": counts,
        "bytes": cache.path.stat().st_size if cache.path.exists() else 0,
        "max_bytes": call.store.settings.embed.cache_mb * 1024 * 1024,
        "index": {"embedder": embedding["in_use"], "waiting": embedding["waiting"]},
    }
    return Reply(pretty(data), data)


def clear_cache(call: Call, _asked: NoArguments) -> Reply:
    call.store.core.must_be_writable()
    gone = _cache(call).clear()
    said = f"Cache cleared: {gone} remembered vectors. Those in the index are in use and stay."
    said += " What is embedded anew will be asked of the embedder again." if gone else ""
    return Reply(said, {"cleared": gone, "says": said})


def persist_cache(call: Call, _asked: NoArguments) -> Reply:
    size = sum(_cache(call).count().values())
    said = f"Nothing to do: each vector is on the disk once it is made. {size} are remembered."
    return Reply(said, {"persisted": size, "says": said})


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "get_cache_stats",
        "Cache statistics",
        "What is remembered of vectors that were made, and how large that is.",
        NoArguments,
        timed(get_cache_stats),
        record((), in_use=FLAG, says=TEXT, size=COUNT, by_embedder=MAP, bytes=COUNT, max_bytes=COUNT, index=MAP),
        failure=FAILURE,
    ),
    Tool(
        "clear_cache",
        "Clear the cache",
        "Forget vectors that were made before. Notes and the index stay as they are.",
        NoArguments,
        timed(clear_cache),
        record((), cleared=COUNT, says=TEXT),
        writes=True,
        destructive=True,
        failure=FAILURE,
    ),
    Tool(
        "persist_cache",
        "Persist the cache",
        "Make sure that remembered vectors are on the disk. They always are.",
        NoArguments,
        timed(persist_cache),
        record((), persisted=COUNT, says=TEXT),
        failure=FAILURE,
    ),
)
