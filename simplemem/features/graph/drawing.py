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
"""A graph as D3 and NetworkX read it.

The keys are `directed`, `multigraph`, `graph` (a mapping with its `name`), `nodes` and `links`.
A node has an `id`, a `label` (its name), a `type`, and a `kind`: entity, note, or missing for a
name that no note has yet. It may have `path`, `observations`, `tags`, `text`, `private` (its text
is withheld) and `group` (by which it is coloured). A link has the ids of its nodes as `source` and
`target`, a number as `key`, a `type`, `link` (whether it is a link of a note rather than a
relation), and perhaps the `attributes` of a relation.
"""

Details = Mapping[str, Mapping[str, Any]]
"""Further fields of nodes, by the path of their note: `tags`, and `text` or `private`."""


def build_drawing(
    title: str,
    graph: Graph,
    *,
    links: Iterable[tuple[str, str]] = (),
    details: Details | None = None,
) -> Drawing:
    """Return the drawing of a graph. `title` is its name.

    `links` are pairs of paths of notes; those with a path of no entity are left out, and so are
    those between entities that a relation joins. `details` adds fields to nodes. A node that it
    makes private has neither its observations nor the attributes of its relations.
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
    """Guards the nodes and edges of a drawing so far, and the ids of nodes by name and by path."""

    def __init__(self, details: Details) -> None:
        """Begin a drawing without nodes. `details` has further fields of nodes, by path."""
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
        is_private = "private" in self.nodes[source]

        more: dict[str, Any] = {"link": False}
        if relation.attributes and not is_private:
            more["attributes"] = dict(relation.attributes)
        self._add_edge(source, target, relation.type, more)

    def add_links(self, links: Iterable[tuple[str, str]]) -> None:
        """Add an edge for each link between two nodes, unless an edge joins them already."""
        joined = {(edge["source"], edge["target"]) for edge in self.edges}
        for source_path, target_path in links:
            source = self._ids_by_path.get(source_path, "")
            target = self._ids_by_path.get(target_path, "")
            if not source or not target or source == target:
                continue

            ends = (source, target)
            if ends not in joined:
                joined.add(ends)
                self._add_edge(source, target, LINK, {"link": True})

    def _add_node(self, kind: str, entity: Entity) -> None:
        """Add the node of an entity with its details. Fields without a value are left out."""
        extra: dict[str, Any] = {"path": entity.path, "observations": entity.texts}
        extra |= self._details.get(entity.path, {})
        if "private" in extra:
            del extra["observations"]

        node_id = self._find_free_id(entity)
        node = {
            "id": node_id,
            "label": entity.name,
            "type": entity.type,
            "kind": kind,
        }
        node |= {key: value for key, value in extra.items() if value}
        self.nodes[node_id] = node
        self._ids_by_name.setdefault(entity.name, node_id)
        self._ids_by_path.setdefault(entity.path, node_id)

    def _find_free_id(self, entity: Entity) -> str:
        """Return an id that no node has: the entity's name, else its path.

        If both are taken, it is the name with the count of nodes so far.
        """
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
        """Add an edge from the node with one id to that with another, with the fields in `more`."""
        edge = {
            "source": source,
            "target": target,
            "key": len(self.edges),
            "type": edge_type,
        }
        self.edges.append(edge | dict(more))


def _group_untyped(nodes: Iterable[dict[str, Any]]) -> None:
    """Set the field `group` of nodes whose type says nothing. They are coloured by it.

    Their type is the default one of a note or an entity. The group is their top folder, or their
    first tag if they have no folder or all are in one. A node without both gets no group.
    """
    untyped = [node for node in nodes if node["type"] in ("note", "entity") and "path" in node]
    folders = {_top_folder(node["path"]) for node in untyped}
    is_single_folder = len(folders) == 1
    for node in untyped:
        group = _group_of(node, is_single_folder=is_single_folder)
        if group:
            node["group"] = group


def _group_of(node: Mapping[str, Any], *, is_single_folder: bool) -> str:
    """Return the group of a node: its top folder as `Folder/`, its first tag as `#tag`, or ""."""
    folder = _top_folder(node["path"])
    if folder and not is_single_folder:
        return f"{folder}/"

    tags = node.get("tags", ())
    if tags and tags[0]:
        return f"#{tags[0]}"
    return ""


def _top_folder(path: str) -> str:
    """Return the first folder of a path, `a` of `a/b/c.md`; "" for a file that is in no folder."""
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
    """Return the drawing of a vault: `graph`, which is the graph of the store, and links of notes.

    With `notes="linked"`, the notes of the drawing are those that entities have relations to; with
    `notes="all"`, they are all notes of the vault. Without `texts`, no node has its text or its
    observations. Private notes are drawn without their text, unless `private` is set.
    """
    items = store.extension.list_all()
    entities = list(graph.entities)
    if not texts:
        entities = [replace(entity, observations=()) for entity in entities]
    if notes == "all":
        entity_paths = {entity.path for entity in entities}
        others = [item for item in items if item.path not in entity_paths]
        entities += [_as_entity(item) for item in others]

    details: dict[str, dict[str, Any]] = {}
    for item in items:
        details[item.path] = {"tags": list(item.tags)}
    links = _links_between_notes(store, details)
    if texts:
        paths = {entity.path for entity in entities}
        _add_texts(store, details, paths, private=private)

    drawn = Graph(tuple(entities), graph.relations)
    return build_drawing(
        store.root.name,
        drawn,
        links=links,
        details=details,
    )


def _as_entity(item: Listed) -> Entity:
    """Return a note as an entity without observations, so that it gets a node."""
    note_type = "note" if item.type == "memory" else item.type
    return Entity(item.title, note_type, path=item.path, is_note=True)


def _links_between_notes(store: EnhancedStore, paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return the links of these notes, each as the path of its note and that of its target."""
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
    """Add to the details of each path the `text` of its note, or `private`.

    With `private` set, the texts of private notes are added too. A note that cannot be read counts
    as private.
    """
    withheld: set[str] = set()
    if not private:
        withheld = set(store.extension.private_among(paths))

    for note in store.extension.read(sorted(paths - withheld)):
        body_start = read_header(note.text).body_start
        body = note.text[body_start:].strip("\r\n")
        note_details = details.setdefault(note.path, {})
        note_details["text"] = body.replace("\r\n", "\n")

    for path in paths:
        note_details = details.setdefault(path, {})
        if "text" not in note_details:
            note_details["private"] = True
