"""Relations of pages with the notes that they lead to, and the graph of several pages. Pure."""

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
    """Return a relation with what it leads to.

    `linked_path` is the file that its link resolves to, or None. A file that is no note counts as
    None.
    """
    is_note = linked_path is not None and linked_path.lower().endswith(".md")
    path = linked_path if is_note else None
    name = line.name or line.link.rpartition("/")[2]
    return ResolvedRelation(line, path, name)


def build_graph(
    pages: Iterable[GraphPage], resolutions: Resolutions, pages_by_path: Mapping[str, GraphPage]
) -> Graph:
    """Return the graph of some pages, in their order. Stubs are no entities, but have relations.

    `resolutions` has the relations of the pages; a page that it lacks has none. A relation to a
    note has as its target the present name of the note's page in `pages_by_path`, or the name of
    the file if there is no such page.
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
