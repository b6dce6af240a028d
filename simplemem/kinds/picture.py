"""The graph to look at: entities, notes and links as one HTML page, for Graphviz, or as data.

The page has its script and style inside, fetches nothing, and runs nothing that a note says: what comes from notes stands in
a block of data, in ASCII without `<`, and the script puts it on the screen as text only. The policy in the head lets
nothing run but that script, by its hash. The browser lays the graph out.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

from simplemem.kinds.graph.values import Entity, Graph
from simplemem.memory import Filter, Listed
from simplemem.note.header import read_header

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

LINK: Final = "links to"
MISSING: Final = "missing"
MOST_TEXT: Final = 20_000  # characters of a note that the page holds
_PAGE: Final = 1000
_WITHHELD: Final = "(This note is private: what it says is not in this page.)"
# Control characters but tab and newline, halves of characters, and what is none: UTF-8 has no way to say them.
_UNSAYABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

Notes = Literal["all", "linked", "none"]
"""Which notes are drawn beside entities: every one, those that entities link to, or none."""


@dataclass(frozen=True, slots=True)
class PictureNode:
    """Something that is drawn: an entity, a note, or a name that relations lead to although nobody has written it. `id` is
    an entity's name or a note's, and no other node has it."""

    id: str
    label: str
    type: str
    kind: Literal["entity", "note", "missing"]
    path: str = ""
    tags: tuple[str, ...] = ()
    text: str = ""
    observations: tuple[str, ...] = ()
    is_withheld: bool = False  # that it is private, and what it says is left out


@dataclass(frozen=True, slots=True)
class PictureEdge:
    """A relation or a link between two nodes, which are said by their place in the drawing."""

    source: int
    target: int
    type: str
    is_link: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drawing:
    """All that a picture shows, in the order in which it was told: the same graph is the same bytes."""

    title: str
    nodes: tuple[PictureNode, ...] = ()
    edges: tuple[PictureEdge, ...] = ()

    def withheld(self) -> int:
        """How many notes are drawn without what they say, because they are private."""
        return sum(node.is_withheld for node in self.nodes)


# -- what is drawn


def drawing_of(
    title: str,
    graph: Graph,
    *,
    notes: Sequence[Listed] = (),
    links: Iterable[tuple[str, str]] = (),
    texts: Mapping[str, str] | None = None,
    facts: Mapping[str, Listed] | None = None,
    withheld: Collection[str] = (),
) -> Drawing:
    """A drawing of a graph, and of notes and links between paths beside it. `texts` and `facts` are by path. Of the notes
    whose paths are `withheld` nothing is told but their names, types, tags, and what they lead to."""
    texts, facts = texts or {}, facts or {}
    quiet = {entity.name for entity in graph.entities if entity.path in withheld}
    nodes: dict[str, PictureNode] = {}
    by_name: dict[str, int] = {}
    by_path: dict[str, int] = {}

    def add(node: PictureNode) -> int:
        number, id_ = 2, node.id
        while id_ in nodes:  # the name, else the path, else the name with a number
            id_ = node.path if node.path and node.path not in nodes else f"{node.id} ({number})"
            number += 1
        nodes[id_] = replace(node, id=id_)
        if node.path:
            by_path[node.path] = len(nodes) - 1
            if node.path in withheld:
                nodes[id_] = replace(nodes[id_], text="", observations=(), is_withheld=True)
        return len(nodes) - 1

    for entity in graph.entities:
        by_name.setdefault(entity.name, add(_of_entity(entity, texts, facts)))
    for note in notes:
        if note.path not in by_path:
            kind = note.type if note.type != "memory" else "note"
            at = add(PictureNode(note.name, note.title, kind, "note", note.path, note.tags, texts.get(note.path, "")))
            if note.type == "entity":  # a page that only holds relations
                by_name.setdefault(note.title, at)

    def end(name: str) -> int:
        if name not in by_name:
            by_name[name] = add(PictureNode(name, name, "", MISSING))
        return by_name[name]

    edges = [
        PictureEdge(
            end(each.source), end(each.target), each.type, attributes={} if each.source in quiet else each.attributes
        )
        for each in graph.relations
    ]
    related = {(edge.source, edge.target) for edge in edges}
    for source, target in links:
        pair = (by_path.get(source, -1), by_path.get(target, -1))
        if min(pair) >= 0 and pair[0] != pair[1] and pair not in related:  # a relation is a link that says more
            related.add(pair)
            edges.append(PictureEdge(*pair, LINK, is_link=True))
    return Drawing(title, tuple(nodes.values()), tuple(edges))


def _of_entity(entity: Entity, texts: Mapping[str, str], facts: Mapping[str, Listed]) -> PictureNode:
    tags = facts[entity.path].tags if entity.path in facts else ()
    kind: Literal["note", "entity"] = "note" if entity.is_note else "entity"
    text = texts.get(entity.path, "")
    return PictureNode(entity.name, entity.name, entity.type, kind, entity.path, tags, text, tuple(entity.texts))


def drawing_of_store(
    store: EnhancedStore,
    graph: Graph,
    *,
    notes: Notes = "linked",
    narrowed: Filter | None = None,
    texts: bool = True,
    private: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Drawing:
    """A vault's graph to draw. A filter narrows entities as well: they are notes. What private notes say is left out
    unless `private` is asked for, and what any says without `texts`."""
    facts: dict[str, Listed] = {}
    cursor: str | None = ""
    while cursor is not None:
        page = store.list(filter=narrowed or Filter(), sort="name", limit=_PAGE, cursor=cursor or None)
        facts |= {each.path: each for each in page.items}
        cursor = page.next_cursor
    paths = facts if narrowed not in (None, Filter()) else None
    graph = _narrowed(graph, paths, with_notes=notes != "none")
    drawn = sorted(facts.values(), key=lambda note: note.path) if notes == "all" else []
    links: list[tuple[str, str]] = []
    if drawn:
        inspected = store.inspect()
        links = [(path, target) for path in facts for target in inspected.get(path, {}).get("links", ())]
    told: dict[str, str] = {}
    withheld: set[str] = set()
    if texts:
        wanted = dict.fromkeys([*(entity.path for entity in graph.entities if entity.path), *(n.path for n in drawn)])
        withheld = set() if private else store.bench.private(wanted)
        for done, read in enumerate(store.bench.read(path for path in wanted if path not in withheld), 1):
            told[read.path] = read.text[read_header(read.text).body_start :].strip("\r\n").replace("\r\n", "\n")
            if progress is not None and done % 100 == 0:
                progress("texts", done, len(wanted))
        withheld |= wanted.keys() - told.keys()  # in doubt one that cannot be read just now
    else:
        graph = Graph(tuple(replace(entity, observations=()) for entity in graph.entities), graph.relations)
    return drawing_of(store.root.name, graph, notes=drawn, links=links, texts=told, facts=facts, withheld=withheld)


def _narrowed(graph: Graph, paths: Collection[str] | None, *, with_notes: bool) -> Graph:
    """The graph without the entities that are not wanted, and without the relations of those."""
    kept = [e for e in graph.entities if (with_notes or not e.is_note) and (paths is None or e.path in paths)]
    gone = {entity.name for entity in graph.entities} - {entity.name for entity in kept}
    relations = (each for each in graph.relations if each.source not in gone and each.target not in gone)
    return Graph(tuple(kept), tuple(relations)) if gone else graph


# -- data


def node_link(drawing: Drawing) -> str:
    """JSON of nodes and links, as D3 and NetworkX read it."""
    value = {
        "directed": True,
        "multigraph": True,
        "graph": {"name": drawing.title},
        "nodes": [{"id": node.id, **_facts(node)} for node in drawing.nodes],
        "links": [{**_ends(drawing, edge), "key": at, **_said(edge)} for at, edge in enumerate(drawing.edges)],
    }
    return json.dumps(value, indent=1) + "\n"  # all in ASCII: half a character in a name is no UTF-8


def cytoscape(drawing: Drawing) -> str:
    """The same as Cytoscape and Cytoscape.js read it."""
    nodes = [{"data": {"id": node.id, "name": node.label, **_facts(node)}} for node in drawing.nodes]
    edges = [
        {"data": {"id": f"e{at}", **_ends(drawing, edge), "interaction": edge.type, **_said(edge)}}
        for at, edge in enumerate(drawing.edges)
    ]
    value = {"data": {"name": drawing.title}, "elements": {"nodes": nodes, "edges": edges}}
    return json.dumps(value, indent=1) + "\n"


def _facts(node: PictureNode) -> dict[str, Any]:
    facts = {"label": node.label, "type": node.type, "kind": node.kind}
    more = {"path": node.path, "tags": list(node.tags), "observations": list(node.observations), "text": node.text}
    return (
        facts | {key: value for key, value in more.items() if value} | ({"private": True} if node.is_withheld else {})
    )


def _ends(drawing: Drawing, edge: PictureEdge) -> dict[str, str]:
    return {"source": drawing.nodes[edge.source].id, "target": drawing.nodes[edge.target].id}


def _said(edge: PictureEdge) -> dict[str, Any]:
    said: dict[str, Any] = {"type": edge.type, "link": edge.is_link}
    return said | ({"attributes": dict(edge.attributes)} if edge.attributes else {})


def dot(drawing: Drawing) -> str:
    """The language of Graphviz. `sfdp -Tsvg` draws large graphs."""
    lines = [f"digraph {_quoted(drawing.title)} {{", '  node [shape="box", style="rounded", fontname="sans-serif"];']
    for at, node in enumerate(drawing.nodes):
        dashed = ', style="rounded,dashed"' if node.kind == MISSING else ""
        tooltip = f"{node.type}: {node.path}" if node.path else node.type
        lines.append(f"  n{at} [label={_quoted(node.label)}, tooltip={_quoted(tooltip)}{dashed}];")
    for edge in drawing.edges:
        shown = 'style="dotted"' if edge.is_link else f"label={_quoted(edge.type)}"
        lines.append(f"  n{edge.source} -> n{edge.target} [{shown}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """A text as Graphviz quotes it, as a label means it: a backslash is one, a line break is one."""
    shown = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": " "}
    return '"' + "".join(shown.get(c, c) for c in _UNSAYABLE.sub("\ufffd", text)) + '"'


# -- the page


def html(drawing: Drawing) -> str:
    """The page. It works from a file, without a network, in any browser of these years."""
    page = files("simplemem.kinds").joinpath("picture.html").read_text(encoding="utf-8")
    hashes = {tag: _hash(page.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0]) for tag in ("style", "script")}
    rules = f"script-src {hashes['script']}; style-src {hashes['style']}; base-uri 'none'; form-action 'none'"
    count = drawing.withheld()
    left = "A private note is" if count == 1 else f"{count} private notes are"
    parts = {
        "policy": f"default-src 'none'; {rules}",
        "title": escape(_UNSAYABLE.sub("\ufffd", " ".join(drawing.title.split()))),
        "left": f"{left} shown without what is written there." if count else "",
        "data": _data(drawing),
    }
    # The template is taken apart once: nothing that is put in is looked through for places again.
    head, *rest = page.split("{{")
    return head + "".join(parts[name] + after for name, _, after in (each.partition("}}") for each in rest))


def _data(drawing: Drawing) -> str:
    counted = Counter(node.type for node in drawing.nodes)
    types = {kind: at for at, kind in enumerate(sorted(counted, key=lambda kind: (-counted[kind], kind)))}
    relations: dict[str, int] = {}
    edges = [
        [edge.source, edge.target, relations.setdefault(edge.type, len(relations)), int(edge.is_link)]
        + ([_in_words(edge.attributes)] if edge.attributes else [])
        for edge in drawing.edges
    ]
    value = {
        "title": drawing.title,
        "types": [{"name": kind, "count": counted[kind]} for kind in types],
        "relations": list(relations),
        "nodes": [_of_page(node, types[node.type]) for node in drawing.nodes],
        "edges": edges,
    }
    said = json.dumps(value, separators=(",", ":"))
    return said.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _of_page(node: PictureNode, kind: int) -> dict[str, Any]:
    text = _WITHHELD if node.is_withheld else node.text or "\n".join(f"- {each}" for each in node.observations)
    text = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "\n…"
    more = {"path": node.path, "tags": node.tags, "text": text}
    return {"label": node.label, "type": kind, "kind": node.kind} | {key: value for key, value in more.items() if value}


def _in_words(attributes: Mapping[str, Any]) -> str:
    said = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in attributes.values())
    return ", ".join(f"{key} {value}" for key, value in zip(attributes, said, strict=True))


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


PICTURES: Final[dict[str, Callable[[Drawing], str]]] = {
    "html": html,
    "dot": dot,
    "json": node_link,
}
"""The forms of a picture, by their names."""
