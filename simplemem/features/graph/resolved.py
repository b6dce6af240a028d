"""Relations of pages with the notes that they lead to, and the graph that pages make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from simplemem.features.graph.bullets import RelationLine
from simplemem.features.graph.page import GraphPage
from simplemem.features.graph.values import Graph, Relation
from simplemem.note.names import base_name

RelationTarget = str | tuple[None, str]
"""The path of the note that a relation leads to, or `(None, name)` if there is no such note."""


class ResolvedRelation(NamedTuple):
    """A relation of a page, and the path of the note that it leads to.

    `path` is None if it leads to no note. `name` is the name that the relation itself gives.
    """

    line: RelationLine
    path: str | None
    name: str

    @property
    def target(self) -> RelationTarget:
        """What the relation leads to: a note, or only a name."""
        return self.path or (None, self.name)


Resolutions = Mapping[str, Sequence[ResolvedRelation]]
"""The relations of pages in the order of their list items, by the path of the page."""


def resolve_line(line: RelationLine, linked_path: str | None) -> ResolvedRelation:
    """Return a relation whose link resolves to a file. A file that is no note does not count."""
    is_note = linked_path is not None and linked_path.lower().endswith(".md")
    path = linked_path if is_note else None
    name = line.name or line.link.rpartition("/")[2]
    return ResolvedRelation(line, path, name)


def build_graph(
    pages: Iterable[GraphPage], resolutions: Resolutions, pages_by_path: Mapping[str, GraphPage]
) -> Graph:
    """Return the graph of some pages, in their order. Stubs are no entities, but have relations.

    A relation to a note has the present name of the entity, or of the note if it is no page.
    """
    entities = []
    relations = []
    for page in pages:
        if not page.is_stub:
            entities.append(page)
        for resolved in resolutions.get(page.path, ()):
            name = _target_name(resolved, pages_by_path)
            line = resolved.line
            relations.append(Relation(page.name, line.type, name, line.attributes))
    return Graph(tuple(entities), tuple(relations))


def _target_name(resolved: ResolvedRelation, pages_by_path: Mapping[str, GraphPage]) -> str:
    """Return the name of what a relation leads to."""
    if resolved.path is None:
        return resolved.name
    page = pages_by_path.get(resolved.path)
    return base_name(resolved.path) if page is None else page.name
