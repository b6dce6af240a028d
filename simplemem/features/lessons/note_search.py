"""A search among the notes of one type: how many hits to ask for, and how their scores are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from simplemem.features.note_type import NoteType
from simplemem.models import Filter, Hit
from simplemem.note.names import path_of
from simplemem.store import falling_scores

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

T = TypeVar("T")


class NoteHits(NamedTuple, Generic[T]):
    """Hits, best first; how they were found ("words"); and what was missing, "" for nothing."""

    hits: list[tuple[T, Hit]]
    method: str
    degraded: str


def search_notes(
    store: EnhancedStore,
    note_type: NoteType[Any],
    items: Mapping[str, T],
    query: str,
    limit: int,
    properties: Mapping[str, str] | None = None,
) -> NoteHits[T]:
    """Return the best of the items (by path) for a query, each with the score that it has by itself.

    Notes with these properties come first, then those in the folder of the type, then those
    with its `type`. `with_falling_scores` prepares the hits to be shown.
    """
    if not items:
        return NoteHits([], "words", "")

    hits: dict[str, tuple[T, Hit]] = {}
    notices: list[str] = []  # one per search with hits; "" if a hit answers the query
    mode = "text"
    degraded = ""
    wanted = min(limit, len(items))
    for filter_ in _filters(note_type, properties):
        size = limit
        is_exhausted = False
        while not is_exhausted:
            result = store.search(query, filter=filter_, limit=size, own_scores=True)
            mode = result.mode
            degraded = result.degraded
            if result.hits:
                notices.append(result.notice)
            for hit in result.hits:
                path = path_of(hit.name)
                if path in items and path not in hits:
                    hits[path] = (items[path], hit)
            is_exhausted = len(hits) >= wanted or len(result.hits) < size
            size *= 4
        if len(hits) >= wanted:
            break

    if hits and all(notices):
        degraded = f"{notices[0]} {degraded}".strip()
    embedder = store.extension.embedder
    method = "words"
    if mode != "text" and embedder:
        method = f"words and meaning ({embedder})"
    return NoteHits(list(hits.values())[:limit], method, degraded)


def with_falling_scores(hits: Sequence[tuple[T, Hit]]) -> list[tuple[T, Hit]]:
    """Return the hits in the same order, none with a higher score than the one above it."""
    scores = falling_scores(hit.score for _, hit in hits)
    return [
        (item, replace(hit, score=score)) for (item, hit), score in zip(hits, scores, strict=True)
    ]


def _filters(note_type: NoteType[Any], properties: Mapping[str, str] | None) -> Iterator[Filter]:
    """Yield the filters of a search, the narrowest first."""
    folder = Filter(prefix=f"{note_type.folder}/")
    if properties:
        yield replace(folder, properties=properties)
    yield folder
    yield Filter(type=note_type.type)
