"""The graph of the notes of a store, and the parts of it that a page draws."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from simplemem.features.graph.note_graph import (
    GraphNote,
    GraphPart,
    NoteFilter,
    NoteGraph,
)
from simplemem.features.graph.page import ENTITY
from simplemem.features.service import FeatureService

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore, LinkedNote, LinkGraph, Mark

_MAX_SIMILAR: Final = 5  # notes of similar meaning, of each note
_MAX_COMPARED: Final = 30  # notes of which similar ones are searched, for one drawing
_ENTITY_TYPE: Final = "entity_type"


class NoteGraphService(FeatureService):
    """Returns the graph of a store's notes. Guards the graph of the last state of the index.

    The graph is read from the index, and again only after a change of the index. Thread-safe.
    """

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self._lock = threading.Lock()
        self._graph = NoteGraph((), ())
        self._mark: Mark | None = None

    def graph(self) -> NoteGraph:
        """Return the graph of all notes except past sessions. No note is read."""
        with self._lock:
            rows = self.extension.link_graph_since(self._mark, kind_property=_ENTITY_TYPE)
            if rows is not None:
                self._graph = _without_archive(rows, self.extension.archive_folders)
                self._mark = rows.mark
            return self._graph

    def around(
        self, path: str, depth: int, conditions: NoteFilter, *, similar: bool
    ) -> GraphPart | None:
        """Return the notes around the note at a path; None if the graph does not have the note.

        With `similar`, notes of similar meaning are neighbours too: of the note itself and, if
        `depth` allows, of its neighbours.
        """
        graph = self.graph()
        centre = graph.position_of(path)
        if centre is None:
            return None
        if not similar:
            return graph.around(centre, depth, conditions)

        finder = _SimilarNotes(self.store, graph)
        return graph.around(centre, depth, conditions, similar_to=finder.find)


def note_graph_of(store: EnhancedStore) -> NoteGraphService:
    """Return the service for the graph of a store's notes."""
    return NoteGraphService.of(store)


class _SimilarNotes:
    """Finds notes of similar meaning in a graph, for one drawing. Guards how often it searched."""

    def __init__(self, store: EnhancedStore, graph: NoteGraph) -> None:
        self._store = store
        self._graph = graph
        self._searches = 0

    def find(self, position: int) -> list[int]:
        """Return the positions of up to 5 notes similar to the one at a position; then [].

        It searches for 30 notes at most, because each search takes some milliseconds.
        """
        if self._searches >= _MAX_COMPARED:
            return []
        self._searches += 1

        path = self._graph.notes[position].path
        names = self._store.related(path, _MAX_SIMILAR)
        positions = [self._graph.position_of(f"{name}.md") for name in names]
        return [other for other in positions if other is not None]


def _without_archive(rows: LinkGraph, archive: Sequence[str]) -> NoteGraph:
    """Return the graph of the notes outside the folders of past sessions."""
    positions = [
        position
        for position, note in enumerate(rows.notes)
        if not note.path.startswith(tuple(archive))
    ]
    places = {position: place for place, position in enumerate(positions)}
    notes = [_graph_note(rows.notes[position]) for position in positions]
    return NoteGraph(notes, _links_between(rows.links, places))


def _links_between(
    links: Sequence[tuple[int, int]], places: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield the links whose notes both have a place, as pairs of places."""
    for source, target in links:
        if source in places and target in places:
            yield places[source], places[target]


def _graph_note(note: LinkedNote) -> GraphNote:
    """Return a note of the index as one of the graph. The type of an entity is its own one."""
    note_type = note.type
    if note_type.casefold() == ENTITY.type and note.kind:
        note_type = note.kind
    return GraphNote(note.path, note.title, note_type, note.modified, note.tags)
