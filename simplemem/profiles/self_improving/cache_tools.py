"""The tools for the cache of self-improving-memory, which simplemem does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from simplemem.profiles.self_improving.adapter import ADAPTER
from simplemem.tools.tool import Data, Reply, Tool, as_json, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_NO_CACHE: Final = "There is no cache: the index stores one vector per text."


class CacheStats(TypedDict):
    """How many vectors are stored, and the `bytes` of the whole index on disk.

    `index` names the embedder, and how many vectors are `waiting` to be computed.
    """

    in_use: bool
    size: int
    bytes: int
    max_bytes: int
    index: Data


class Cleared(TypedDict):
    """How many vectors were removed: none."""

    cleared: int
    says: str


class Persisted(TypedDict):
    """How many vectors are on disk."""

    persisted: int
    says: str


@tool("Cache statistics", adapter=ADAPTER)
def get_cache_stats(store: EnhancedStore) -> Reply[CacheStats]:
    """Show how many vectors are stored, and their size."""
    stats = store.stats()
    embedding = store.extension.embedding()
    vectors = stats["vectors"]
    embedder = embedding["in_use"]
    by_embedder = {embedder: vectors} if vectors else {}
    return as_json(
        {
            "in_use": vectors > 0,
            "says": _NO_CACHE,
            "size": vectors,
            "by_embedder": by_embedder,
            "bytes": stats["index_bytes"],
            "max_bytes": 0,
            "index": {"embedder": embedder, "waiting": embedding["waiting"]},
        }
    )


@tool("Clear the cache", writes=True, destructive=True, adapter=ADAPTER)
def clear_cache(store: EnhancedStore) -> Reply[Cleared]:
    """Does nothing: there is no cache."""
    store.extension.must_be_writable()
    text = f"Nothing to clear. {_NO_CACHE}"
    return Reply(text, {"cleared": 0, "says": text})


@tool("Persist the cache", adapter=ADAPTER)
def persist_cache(store: EnhancedStore) -> Reply[Persisted]:
    """Does nothing: stored vectors are always on disk already."""
    size = store.stats()["vectors"]
    text = f"Nothing to do: all {size} vectors are on disk."
    return Reply(text, {"persisted": size, "says": text})


CACHE: tuple[Tool, ...] = (get_cache_stats, clear_cache, persist_cache)
