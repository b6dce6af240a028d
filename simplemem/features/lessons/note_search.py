"""A search among the notes of one type.

It is repeated with more hits and wider filters until there are enough.
"""

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
    """The items that answer a query, each with the hit of the search, and how they were found."""

    hits: list[tuple[T, Hit]]  # best first
    method: str  # "words", or "words and meaning" with the name of the embedder
    degraded: str  # why they are worse than they could be, or that none answers; or ""


def search_notes(
    store: EnhancedStore,
    note_type: NoteType[Any],
    items: Mapping[str, T],
    query: str,
    limit: int,
    properties: Mapping[str, str] | None = None,
) -> NoteHits[T]:
    """Return up to `limit` items for a query, each with the score that it has by itself.

    `items` are the notes to search, by path. Notes with these `properties` come first, then those
    in the folder of the type, then those with its `type`; in each group the best are first. There
    are no hits without items. `with_falling_scores` prepares the hits for a client.
    """
    if not items:
        return NoteHits([], "words", "")

    search = _Search(store, items, query, limit)
    for filter_ in _filters(note_type, properties):
        search.add_hits(filter_)
        if search.has_enough():
            break

    embedder = store.extension.embedder
    method = "words"
    if search.mode != "text" and embedder:
        method = f"words and meaning ({embedder})"
    hits = list(search.hits.values())
    return NoteHits(hits[:limit], method, search.degraded())


class _Search(Generic[T]):
    """A search among some items. Guards the hits that the filters found so far, by path."""

    def __init__(
        self, store: EnhancedStore, items: Mapping[str, T], query: str, limit: int
    ) -> None:
        """Prepare a search. `items` are by path; `add_hits` searches."""
        self._store = store
        self._items = items
        self._query = query
        self._limit = limit
        self._degraded = ""
        # One per search with hits; "" if a hit answers the query.
        self._notices: list[str] = []
        self.hits: dict[str, tuple[T, Hit]] = {}
        self.mode = "text"

    def has_enough(self) -> bool:
        """Return whether there are as many hits as the limit, or as there are items."""
        return len(self.hits) >= min(self._limit, len(self._items))

    def add_hits(self, filter_: Filter) -> None:
        """Search the notes that pass a filter, and add those that are items to the hits.

        The search is repeated for four times as many hits until there are enough, or no more.
        """
        size = self._limit
        is_exhausted = False
        while not is_exhausted:
            result = self._store.search(
                self._query,
                filter=filter_,
                limit=size,
                own_scores=True,
            )
            self.mode = result.mode
            self._degraded = result.degraded
            if result.hits:
                self._notices.append(result.notice)

            for hit in result.hits:
                path = path_of(hit.name)
                if path in self._items and path not in self.hits:
                    self.hits[path] = (self._items[path], hit)
            is_exhausted = self.has_enough() or len(result.hits) < size
            size *= 4

    def degraded(self) -> str:
        """Return why the hits are worse than they could be; "" if they are not."""
        if self.hits and all(self._notices):
            return f"{self._notices[0]} {self._degraded}".strip()
        return self._degraded


def with_falling_scores(hits: Sequence[tuple[T, Hit]]) -> list[tuple[T, Hit]]:
    """Return the hits in the same order, with scores that never rise from one to the next."""
    scores = iter(falling_scores(hit.score for _, hit in hits))
    return [(item, replace(hit, score=next(scores))) for item, hit in hits]


def _filters(note_type: NoteType[Any], properties: Mapping[str, str] | None) -> Iterator[Filter]:
    """Yield the filters of a search, the narrowest first.

    They are for the folder of the type with these properties (if there are any), for the folder,
    and for the `type` in any folder.
    """
    folder = Filter(prefix=f"{note_type.folder}/")
    if properties:
        yield replace(folder, properties=properties)
    yield folder
    yield Filter(type=note_type.type)
