"""Exports the graph: as one HTML page to look at, for Graphviz, or as data for other programs.

The page fetches nothing and runs nothing that a note contains. What comes from notes is a block of
JSON without `<`, and the page's policy allows only the page's own style and script, by their
hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

from simplemem.features.graph.values import Entity, Graph, Relation
from simplemem.note.header import read_header

if TYPE_CHECKING:
    from jinja2 import Environment

    from simplemem.store import EnhancedStore

LINK: Final = "links to"
MAX_BYTES: Final = 4_900_000  # of a picture, unless the caller asks for all texts
_TEXT_LENGTHS: Final = (4000, 1000, 250, 0)  # to which texts are cut in turn, until a picture fits
# Control characters except tab and newline, and what UTF-8 cannot express.
_NOT_PRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

Drawing = dict[str, Any]
"""A graph as D3 and NetworkX read it: `nodes` with an `id`, and `links` between those.

The `kind` of a node is entity, note, or missing for a name that no note has yet.
"""

Details = Mapping[str, Mapping[str, Any]]
"""What the nodes of some paths show in addition: `tags`, and `text` or `private`."""


# --- drawings


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
        kind = "entity"
        if entity.is_note:
            kind = "note"
        self._add_node(kind, entity)

    def add_relation(self, relation: Relation) -> None:
        """Add the edge of a relation, and a missing node for an end that no entity has."""
        for name in (relation.source, relation.target):
            if name not in self._ids_by_name:
                self._add_node("missing", Entity(name, ""))

        source = self._ids_by_name[relation.source]
        attributes = dict(relation.attributes)
        more = {}
        if attributes and "private" not in self.nodes[source]:
            more["attributes"] = attributes
        target = self._ids_by_name[relation.target]
        self._add_edge(source, target, relation.type, link=False, **more)

    def add_links(self, links: Iterable[tuple[str, str]]) -> None:
        """Add an edge for each link between two nodes, unless a relation joins them already."""
        related = {(edge["source"], edge["target"]) for edge in self.edges}
        ends = [
            (self._ids_by_path.get(source, ""), self._ids_by_path.get(target, ""))
            for source, target in links
        ]
        for source, target in dict.fromkeys(ends):
            is_between_two = source and target and source != target
            if is_between_two and (source, target) not in related:
                self._add_edge(source, target, LINK, link=True)

    def _add_node(self, kind: str, entity: Entity) -> None:
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

    def _add_edge(self, source: str, target: str, kind: str, **more: Any) -> None:
        key = len(self.edges)
        self.edges.append({"source": source, "target": target, "key": key, "type": kind, **more})


def _group_untyped(nodes: Sequence[dict[str, Any]]) -> None:
    """Give nodes without a type a group, by which they are coloured.

    It is their top folder, or their first tag if they have no folder or all are in one.
    """
    untyped = [node for node in nodes if node["type"] in ("note", "entity") and "path" in node]
    folders = {_top_folder(node["path"]) for node in untyped}
    for node in untyped:
        folder = _top_folder(node["path"])
        tags = node.get("tags", ())
        if folder and len(folders) > 1:
            node["group"] = f"{folder}/"
        elif tags and tags[0]:
            node["group"] = f"#{tags[0]}"


def _top_folder(path: str) -> str:
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
    """Return the drawing of a vault: its entities with the notes they relate to, or with all notes.

    Private notes are drawn without their text, unless `private` is set.
    """
    items = store.extension.list_all()
    details: dict[str, dict[str, Any]] = {item.path: {"tags": list(item.tags)} for item in items}

    inspected = store.inspect()
    links = [
        (path, target) for path in details for target in inspected.get(path, {}).get("links", ())
    ]

    entities = list(graph.entities)
    if not texts:
        entities = [replace(entity, observations=()) for entity in entities]

    if notes == "all":
        paths = {entity.path for entity in entities}
        for item in items:
            if item.path in paths:
                continue
            note_type = item.type
            if note_type == "memory":
                note_type = "note"
            entities.append(Entity(item.title, note_type, path=item.path, is_note=True))

    if texts:
        _add_texts(store, details, {entity.path for entity in entities}, private=private)
    drawn = Graph(tuple(entities), graph.relations)
    return build_drawing(store.root.name, drawn, links=links, details=details)


def _add_texts(
    store: EnhancedStore, details: dict[str, dict[str, Any]], paths: set[str], *, private: bool
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


# --- formats


def node_link(drawing: Drawing) -> str:
    """Return a drawing as JSON.

    It is ASCII, because names may contain what UTF-8 cannot express.
    """
    return json.dumps(drawing, indent=1) + "\n"


def cytoscape(drawing: Drawing) -> str:
    """Return a drawing as the JSON that Cytoscape and Cytoscape.js read."""
    nodes = [{"data": {"name": node["label"], **node}} for node in drawing["nodes"]]
    edges = [
        {"data": {"id": f"e{edge['key']}", "interaction": edge["type"], **edge}}
        for edge in drawing["links"]
    ]
    return node_link({"data": drawing["graph"], "elements": {"nodes": nodes, "edges": edges}})


def dot(drawing: Drawing) -> str:
    """Return a drawing in the language of Graphviz. `sfdp -Tsvg` draws large graphs."""
    lines = [
        f"digraph {_quote_for_dot(drawing['graph']['name'])} {{",
        '  node [shape="box", fontname="sans-serif"];',
    ]

    dot_ids = {}
    for number, node in enumerate(drawing["nodes"]):
        dot_ids[node["id"]] = f"n{number}"
        lines.append(f"  n{number} [{_dot_attributes(node)}];")

    for edge in drawing["links"]:
        attributes = f"label={_quote_for_dot(edge['type'])}"
        if edge["link"]:
            attributes = 'style="dotted"'
        source = dot_ids[edge["source"]]
        target = dot_ids[edge["target"]]
        lines.append(f"  {source} -> {target} [{attributes}];")
    return "\n".join([*lines, "}", ""])


def _dot_attributes(node: Mapping[str, Any]) -> str:
    tooltip = node["type"]
    if "path" in node:
        tooltip = f"{node['type']}: {node['path']}"

    attributes = [
        f"label={_quote_for_dot(node['label'])}",
        f"tooltip={_quote_for_dot(tooltip)}",
    ]
    if node["kind"] == "missing":
        attributes.append('style="dashed"')
    return ", ".join(attributes)


def _quote_for_dot(text: str) -> str:
    return json.dumps(_make_printable(text.expandtabs(1)), ensure_ascii=False)


def _make_printable(text: str) -> str:
    return _NOT_PRINTABLE.sub("\ufffd", text)


def html(drawing: Drawing) -> str:
    """Return a drawing as an HTML page, which works from a file and without a network."""
    style = _read_template_file("graph.css")
    script = _read_template_file("graph.js")
    policy = [
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        f"style-src '{_policy_hash(style)}'",
        f"script-src '{_policy_hash(script)}'",
    ]
    title = " ".join(drawing["graph"]["name"].split())
    private_notes = sum("private" in node for node in drawing["nodes"])

    page = _environment().get_template("graph.html")
    return page.render(
        policy="; ".join(policy),
        title=_make_printable(title),
        style=style,
        script=script,
        private_notes=private_notes,
        drawing=drawing,
    )


def _policy_hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows a style or a script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _read_template_file(name: str) -> str:
    folder = files("simplemem.features.graph").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    # Imported for the first page, because the import would slow down every other command.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        auto_reload=False,
        keep_trailing_newline=True,
        loader=PackageLoader("simplemem.features.graph"),
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


PICTURES: Final[dict[str, Callable[[Drawing], str]]] = {"html": html, "dot": dot, "json": node_link}
"""The formats of a picture, by their names."""


def shorten_drawing(
    drawing: Drawing, form: str, max_bytes: int = MAX_BYTES
) -> tuple[str, int | None]:
    """Return a picture below a size, and to how many characters texts were cut.

    The number is None if nothing had to be cut. A picture of many nodes may be too large even
    without texts.
    """
    text = PICTURES[form](drawing)
    if len(text) < max_bytes:
        return text, None

    for length in _TEXT_LENGTHS:
        _cut_texts(drawing, length)
        text = PICTURES[form](drawing)
        if len(text) < max_bytes:
            break
    return text, length


def _cut_texts(drawing: Drawing, length: int) -> None:
    """Cut the text of each node to some characters, and its observations to as many items."""
    for node in drawing["nodes"]:
        for key in ("text", "observations"):
            if key in node:
                node[key] = node[key][:length]
