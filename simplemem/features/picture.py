"""The graph to look at: entities, notes and links as one HTML page, for Graphviz, or as data. The page fetches and
runs nothing that a note says: what comes from notes stands in a block of data, in ASCII without `<`, and its policy lets
nothing run but the page's own script, by its hash."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

from simplemem.features.graph.values import Entity, Graph
from simplemem.note.header import read_header

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

LINK: Final = "links to"
MOST_BYTES: Final = 4_900_000  # of a picture, unless all texts were asked for
# Control characters but tab and newline, halves of characters, and what is none: UTF-8 has no way to say them.
_UNSAYABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

Drawing = dict[str, Any]
"""What a picture shows, as D3 and NetworkX read it: `nodes` with an `id`, and `links` between those. A node is an
entity, a note, or a name that nobody has written yet (`missing`)."""


def drawing_of(
    title: str,
    graph: Graph,
    *,
    links: Iterable[tuple[str, str]] = (),
    told: Mapping[str, Mapping[str, Any]] | None = None,
) -> Drawing:
    """A drawing of a graph, and of links between the paths of its entities. What is `told` of a path stands in its node;
    of one that is `private` the observations and what is said of its relations are left out."""
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, Any]] = []
    by_name: dict[str, str] = {}
    by_path: dict[str, str] = {}

    def add(kind: str, entity: Entity) -> None:
        name, path = entity.name, entity.path
        id_ = next((each for each in (name, path) if each not in nodes), f"{name} ({len(nodes)})")
        more = {"path": path, "observations": entity.texts, **(told or {}).get(path, {})}
        if "private" in more:
            del more["observations"]
        facts = {"id": id_, "label": name, "type": entity.type, "kind": kind}
        nodes[id_] = facts | {key: value for key, value in more.items() if value}
        by_name.setdefault(name, id_)
        by_path.setdefault(path, id_)

    def join(source: str, target: str, kind: str, **more: Any) -> None:
        edges.append({"source": source, "target": target, "key": len(edges), "type": kind, **more})

    for entity in graph.entities:
        add("note" if entity.is_note else "entity", entity)
    for relation in graph.relations:
        for end in (relation.source, relation.target):
            if end not in by_name:
                add("missing", Entity(end, ""))
        source, said = by_name[relation.source], dict(relation.attributes)
        shown = {"attributes": said} if said and "private" not in nodes[source] else {}
        join(source, by_name[relation.target], relation.type, link=False, **shown)
    joined = {(edge["source"], edge["target"]) for edge in edges}
    for source, target in dict.fromkeys(
        (by_path.get(one, ""), by_path.get(other, "")) for one, other in links
    ):
        if (
            source and target and source != target and (source, target) not in joined
        ):  # a relation says more
            join(source, target, LINK, link=True)
    untyped = [
        node for node in nodes.values() if node["type"] in ("note", "entity") and "path" in node
    ]
    folders = [node["path"].rpartition("/")[0].partition("/")[0] for node in untyped]
    for node, folder in zip(
        untyped, folders, strict=True
    ):  # coloured by folder, by tag where there is but one
        by_folder, tag = len(set(folders)) > 1, next(iter(node.get("tags", ())), "")
        node |= (
            {"group": f"{folder}/"} if by_folder and folder else {"group": f"#{tag}"} if tag else {}
        )
    facts = {"directed": True, "multigraph": True, "graph": {"name": title}}
    return facts | {"nodes": list(nodes.values()), "links": edges}


def drawing_of_store(
    store: EnhancedStore,
    graph: Graph,
    *,
    notes: Literal["all", "linked"] = "linked",
    texts: bool = True,
    private: bool = False,
) -> Drawing:
    """A vault's graph to draw, and beside it the notes its entities relate to, or all; private ones without text."""
    every = store.extension.list_all()
    told: dict[str, dict[str, Any]] = {each.path: {"tags": list(each.tags)} for each in every}
    drawn = [each if texts else replace(each, observations=()) for each in graph.entities]
    inspected = store.inspect()
    links = [(path, target) for path in told for target in inspected.get(path, {}).get("links", ())]
    if notes == "all":
        held = {each.path for each in drawn}
        others = (
            (each, each.type if each.type != "memory" else "note")
            for each in every
            if each.path not in held
        )
        drawn += [Entity(each.title, kind, path=each.path, is_note=True) for each, kind in others]
    wanted = {each.path for each in drawn} if texts else set()
    withheld = set() if private else store.extension.private_among(wanted)
    for read in store.extension.read(sorted(wanted - withheld)):
        text = read.text[read_header(read.text).body_start :].strip("\r\n").replace("\r\n", "\n")
        told.setdefault(read.path, {})["text"] = text
    for path in wanted:
        if "text" not in told.setdefault(path, {}):
            told[path]["private"] = True  # in doubt one that cannot be read just now
    return drawing_of(store.root.name, Graph(tuple(drawn), graph.relations), links=links, told=told)


def node_link(drawing: Drawing) -> str:
    """JSON of nodes and links, all in ASCII: half a character in a name is no UTF-8."""
    return json.dumps(drawing, indent=1) + "\n"


def cytoscape(drawing: Drawing) -> str:
    """The same as Cytoscape and Cytoscape.js read it."""
    nodes = [{"data": {"name": node["label"], **node}} for node in drawing["nodes"]]
    edges = [
        {"data": {"id": f"e{edge['key']}", "interaction": edge["type"], **edge}}
        for edge in drawing["links"]
    ]
    return node_link({"data": drawing["graph"], "elements": {"nodes": nodes, "edges": edges}})


def dot(drawing: Drawing) -> str:
    """The language of Graphviz. `sfdp -Tsvg` draws large graphs."""

    def quoted(text: str) -> str:
        return json.dumps(_UNSAYABLE.sub("\ufffd", text.expandtabs(1)), ensure_ascii=False)

    lines = [
        f"digraph {quoted(drawing['graph']['name'])} {{",
        '  node [shape="box", fontname="sans-serif"];',
    ]
    places = {node["id"]: f"n{at}" for at, node in enumerate(drawing["nodes"])}
    for node in drawing["nodes"]:
        dashed = ', style="dashed"' if node["kind"] == "missing" else ""
        tooltip = f"{node['type']}: {node['path']}" if "path" in node else node["type"]
        lines.append(
            f"  {places[node['id']]} [label={quoted(node['label'])}, tooltip={quoted(tooltip)}{dashed}];"
        )
    for edge in drawing["links"]:
        shown = 'style="dotted"' if edge["link"] else f"label={quoted(edge['type'])}"
        lines.append(f"  {places[edge['source']]} -> {places[edge['target']]} [{shown}];")
    return "\n".join([*lines, "}", ""])


def html(drawing: Drawing) -> str:
    """The page. It works from a file, without a network, in any browser of these years."""
    page = files("simplemem.features").joinpath("picture.html").read_text(encoding="utf-8")
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    for tag in ("style", "script"):
        own = page.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0]
        rules.append(
            f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'"
        )
    said = json.dumps(drawing, separators=(",", ":"))
    private = sum("private" in node for node in drawing["nodes"])
    parts = {
        "policy": "; ".join(rules),
        "title": escape(_UNSAYABLE.sub("\ufffd", " ".join(drawing["graph"]["name"].split()))),
        "left": f"Private notes shown without their text: {private}" if private else "",
        "data": said.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    }
    # In one pass: nothing that is put in is looked through for places again.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], page)


PICTURES: Final[dict[str, Callable[[Drawing], str]]] = {"html": html, "dot": dot, "json": node_link}
"""The forms of a picture, by their names."""


def shorten_drawing(drawing: Drawing, form: str, most: int = MOST_BYTES) -> tuple[str, int | None]:
    """A picture below a size, and to how many characters texts had to be cut for that."""
    for length in (None, 4000, 1000, 250, 0):
        if length is not None:
            for node in drawing["nodes"]:
                node |= {key: node[key][:length] for key in ("text", "observations") if key in node}
        if len(text := PICTURES[form](drawing)) < most:
            break
    return text, length
