"""Drawings of the graph: its nodes and edges, with the notes and links of the vault around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from simplemem.features.graph.values import Entity, Graph, Relation
from simplemem.note.header import read_header

if TYPE_CHECKING:
    from simplemem.models import Listed
    from simplemem.store import EnhancedStore

LINK: Final = "links to"
"""The type of an edge that is a link, not a relation."""

Drawing = dict[str, Any]
"""A graph as D3 and NetworkX read it: `nodes` with an `id`, and `links` between those.

The `kind` of a node is entity, note, or missing for a name that no note has yet.
"""

Details = Mapping[str, Mapping[str, Any]]
"""What the nodes of some paths show in addition: `tags`, and `text` or `private`."""


def build_drawing(
    title: str,
    graph: Graph,
    *,
    links: Iterable[tuple[str, str]] = (),
    details: Details | None = None,
) -> Drawing:
    """Return the drawing of a graph, with `links` between the paths of its entities.

    A private node shows neither its observations nor the attributes of its relations.
    """
    builder = _DrawingBuilder(details or {})
    for entity in graph.entities:
        builder.add_entity(entity)
    for relation in graph.relations:
        builder.add_relation(relation)
    builder.add_links(links)

    nodes = list(builder.nodes.values())
    _group_untyped(nodes)
    return {
        "directed": True,
        "multigraph": True,
        "graph": {"name": title},
        "nodes": nodes,
        "links": builder.edges,
    }


class _DrawingBuilder:
    """The nodes and edges of a drawing so far, and the ids of its nodes by name and by path."""

    def __init__(self, details: Details) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: list[dict[str, Any]] = []
        self._details = details
        self._ids_by_name: dict[str, str] = {}
        self._ids_by_path: dict[str, str] = {}

    def add_entity(self, entity: Entity) -> None:
        """Add the node of an entity, or of a note that is drawn like one."""
        kind = "note" if entity.is_note else "entity"
        self._add_node(kind, entity)

    def add_relation(self, relation: Relation) -> None:
        """Add the edge of a relation, and a missing node for an end that no entity has."""
        for name in (relation.source, relation.target):
            if name not in self._ids_by_name:
                self._add_node("missing", Entity(name, ""))

        source = self._ids_by_name[relation.source]
        target = self._ids_by_name[relation.target]
        more: dict[str, Any] = {"link": False}
        is_private = "private" in self.nodes[source]
        if relation.attributes and not is_private:
            more["attributes"] = dict(relation.attributes)
        self._add_edge(source, target, relation.type, more)

    def add_links(self, links: Iterable[tuple[str, str]]) -> None:
        """Add an edge for each link between two nodes, unless a relation joins them already."""
        joined = {(edge["source"], edge["target"]) for edge in self.edges}
        for source_path, target_path in links:
            source = self._ids_by_path.get(source_path, "")
            target = self._ids_by_path.get(target_path, "")
            if not source or not target or source == target:
                continue
            if (source, target) not in joined:
                joined.add((source, target))
                self._add_edge(source, target, LINK, {"link": True})

    def _add_node(self, kind: str, entity: Entity) -> None:
        """Add a node with its details. Fields without a value are left out."""
        node_id = self._find_free_id(entity)
        extra: dict[str, Any] = {"path": entity.path, "observations": entity.texts}
        extra |= self._details.get(entity.path, {})
        if "private" in extra:
            del extra["observations"]

        node = {"id": node_id, "label": entity.name, "type": entity.type, "kind": kind}
        node |= {key: value for key, value in extra.items() if value}
        self.nodes[node_id] = node
        self._ids_by_name.setdefault(entity.name, node_id)
        self._ids_by_path.setdefault(entity.path, node_id)

    def _find_free_id(self, entity: Entity) -> str:
        """Return the name of an entity, or its path if another node has the name."""
        for candidate in (entity.name, entity.path):
            if candidate not in self.nodes:
                return candidate
        return f"{entity.name} ({len(self.nodes)})"

    def _add_edge(
        self,
        source: str,
        target: str,
        edge_type: str,
        more: Mapping[str, Any],
    ) -> None:
        """Add an edge between the ids of two nodes, with `more` fields."""
        edge = {
            "source": source,
            "target": target,
            "key": len(self.edges),
            "type": edge_type,
        }
        self.edges.append(edge | dict(more))


def _group_untyped(nodes: Iterable[dict[str, Any]]) -> None:
    """Give nodes without a type a group, by which they are coloured.

    It is their top folder, or their first tag if they have no folder or all are in one.
    """
    untyped = [node for node in nodes if node["type"] in ("note", "entity") and "path" in node]
    folders = {_top_folder(node["path"]) for node in untyped}
    for node in untyped:
        group = _group_of(node, is_single_folder=len(folders) == 1)
        if group:
            node["group"] = group


def _group_of(node: Mapping[str, Any], *, is_single_folder: bool) -> str:
    """Return the group of a node, "" if it has none."""
    folder = _top_folder(node["path"])
    if folder and not is_single_folder:
        return f"{folder}/"

    tags = node.get("tags", ())
    if tags and tags[0]:
        return f"#{tags[0]}"
    return ""


def _top_folder(path: str) -> str:
    """Return the first folder of a path, "" for a file in the top folder."""
    folder = path.rpartition("/")[0]
    return folder.partition("/")[0]


def build_store_drawing(
    store: EnhancedStore,
    graph: Graph,
    *,
    notes: Literal["all", "linked"] = "linked",
    texts: bool = True,
    private: bool = False,
) -> Drawing:
    """Return the drawing of a vault, with the graph that it has, its notes and their links.

    The notes are those that entities have relations to, or with `notes="all"` all others too. Without `texts`, no node has its text or its observations.
    Private notes are drawn without their text, unless `private` is set.
    """
    items = store.extension.list_all()
    entities = list(graph.entities)
    if not texts:
        entities = [replace(entity, observations=()) for entity in entities]
    if notes == "all":
        entity_paths = {entity.path for entity in entities}
        entities += [_as_entity(item) for item in items if item.path not in entity_paths]

    details: dict[str, dict[str, Any]] = {item.path: {"tags": list(item.tags)} for item in items}
    links = _links_between_notes(store, details)
    if texts:
        paths = {entity.path for entity in entities}
        _add_texts(store, details, paths, private=private)
    drawn = Graph(tuple(entities), graph.relations)
    return build_drawing(store.root.name, drawn, links=links, details=details)


def _as_entity(item: Listed) -> Entity:
    """Return a note as an entity without observations, so that it gets a node."""
    note_type = "note" if item.type == "memory" else item.type
    return Entity(item.title, note_type, path=item.path, is_note=True)


def _links_between_notes(store: EnhancedStore, paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return the links of these notes, as the paths of the two notes."""
    inspected = store.inspect()
    links: list[tuple[str, str]] = []
    for path in paths:
        targets = inspected.get(path, {}).get("links", ())
        links += [(path, target) for target in targets]
    return links


def _add_texts(
    store: EnhancedStore,
    details: dict[str, dict[str, Any]],
    paths: set[str],
    *,
    private: bool,
) -> None:
    """Add the texts of notes to their details. A note that cannot be read counts as private."""
    withheld: set[str] = set()
    if not private:
        withheld = set(store.extension.private_among(paths))

    for note in store.extension.read(sorted(paths - withheld)):
        body = note.text[read_header(note.text).body_start :]
        text = body.strip("\r\n").replace("\r\n", "\n")
        details.setdefault(note.path, {})["text"] = text

    for path in paths:
        note_details = details.setdefault(path, {})
        if "text" not in note_details:
            note_details["private"] = True
