"""The folders, tags and types that the filters of a page offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MAX_OPTIONS: Final = 500  # of a filter


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The values that each filter offers, 500 at most of each. Tags are sorted by frequency."""

    folders: Sequence[str]
    tags: Sequence[str]
    types: Sequence[str]


def read_filter_options(store: EnhancedStore) -> FilterOptions:
    """Return the folders, tags and types of the notes in the graph. No note is read."""
    # Imported here, because it would slow down the start of every server.
    from simplemem.features.graph.note_graph_service import note_graph_of

    graph = note_graph_of(store).graph()
    return FilterOptions(
        folders=graph.folders[:_MAX_OPTIONS],
        tags=graph.tags[:_MAX_OPTIONS],
        types=graph.types[:_MAX_OPTIONS],
    )
