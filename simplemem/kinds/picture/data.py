"""A drawing for other programs: node-link JSON, Cytoscape, and Graphviz. Pure; the same drawing is the same bytes."""

from __future__ import annotations

import json
from typing import Any

from simplemem.kinds.picture.colours import colours_of
from simplemem.kinds.picture.drawing import MISSING, Drawing, Edge, Node
from simplemem.kinds.picture.layout import places_of
from simplemem.kinds.picture.plain import sayable


def node_link(drawing: Drawing) -> str:
    """JSON of nodes and links, as D3 and NetworkX read it."""
    value = {
        "directed": True,
        "multigraph": True,
        "graph": {"name": drawing.title},
        "nodes": [{"id": node.id, **_facts(node)} for node in drawing.nodes],
        "links": [{**_ends(drawing, edge), "key": at, **_said(edge)} for at, edge in enumerate(drawing.edges)],
    }
    return _json(value)


def cytoscape(drawing: Drawing) -> str:
    """The JSON of Cytoscape and Cytoscape.js, with places and colours."""
    colours = colours_of(drawing)
    nodes = [
        {
            "data": {"id": node.id, "name": node.label, **_facts(node), "colour": colours[node.type]},
            "position": {"x": x, "y": y},
            "classes": node.kind,
        }
        for node, (x, y) in zip(drawing.nodes, places_of(drawing), strict=True)
    ]
    edges = [
        {"data": {"id": f"e{at}", **_ends(drawing, edge), "interaction": edge.type, **_said(edge)}}
        for at, edge in enumerate(drawing.edges)
    ]
    value = {
        "format_version": "1.0",
        "generated_by": "simplemem",
        "data": {"name": drawing.title},
        "elements": {"nodes": nodes, "edges": edges},
    }
    return _json(value)


def dot(drawing: Drawing) -> str:
    """The language of Graphviz. `sfdp -Tsvg` draws large graphs."""
    colours = colours_of(drawing)
    lines = [
        f"digraph {_quoted(drawing.title)} {{",
        '  graph [overlap="prism", outputorder="edgesfirst"];',
        '  node [shape="box", style="rounded,filled", fontname="sans-serif", fontcolor="white", color="white"];',
        '  edge [fontname="sans-serif", fontsize="9", color="#8b95a1", fontcolor="#5b6570"];',
    ]
    for at, node in enumerate(drawing.nodes):
        dashed = ', style="rounded,dashed", fontcolor="black", color="#8b95a1"' if node.kind == MISSING else ""
        tooltip = f"{node.type}: {node.path}" if node.path else node.type
        lines.append(
            f"  n{at} [label={_quoted(node.label)}, tooltip={_quoted(tooltip)}, "
            f"fillcolor={_quoted(colours[node.type])}{dashed}];"
        )
    for edge in drawing.edges:
        shown = 'style="dotted"' if edge.is_link else f"label={_quoted(edge.type)}"
        lines.append(f"  n{edge.source} -> n{edge.target} [{shown}];")
    return "\n".join([*lines, "}", ""])


def _facts(node: Node) -> dict[str, Any]:
    facts: dict[str, Any] = {"label": node.label, "type": node.type, "kind": node.kind}
    if node.path:
        facts["path"] = node.path
    if node.tags:
        facts["tags"] = list(node.tags)
    if node.observations:
        facts["observations"] = list(node.observations)
    if node.text:
        facts["text"] = node.text
    if node.is_withheld:
        facts["private"] = True
    return facts


def _ends(drawing: Drawing, edge: Edge) -> dict[str, str]:
    return {"source": drawing.nodes[edge.source].id, "target": drawing.nodes[edge.target].id}


def _said(edge: Edge) -> dict[str, Any]:
    said: dict[str, Any] = {"type": edge.type, "link": edge.is_link}
    if edge.attributes:
        said["attributes"] = dict(edge.attributes)
    return said


def _json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"  # all in ASCII: half a character in a name is no UTF-8


def _quoted(text: str) -> str:
    """A text as Graphviz quotes it, as a label means it: a backslash is one, a line break is one."""
    shown = "".join(_SHOWN.get(c, c) for c in sayable(text))
    return f'"{shown}"'


_SHOWN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": " "}
