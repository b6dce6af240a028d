"""A drawing as one HTML page: its script and style inside, nothing fetched, nothing that a note says is ever run.

What comes from notes stands in a block of data that the browser does not read as a page, in ASCII without `<`, and the
script puts it on the screen as text only. The policy in the head lets nothing run but that script, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from typing import Any, Final

from simplemem.kinds.picture.colours import colours_of
from simplemem.kinds.picture.drawing import Drawing, Node
from simplemem.kinds.picture.layout import places_of
from simplemem.kinds.picture.plain import on_one_line
from simplemem.kinds.picture.svg import radius_of

MOST_TEXT: Final = 20_000  # characters of a note that the page holds
_WITHHELD: Final = "(This note is private: what it says is not in this page.)"
_SCRIPTS: Final = ("scene.js", "hand.js", "panel.js")
_PRINTABLE: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def html(drawing: Drawing) -> str:
    """The page. It works from a file, without a network, in any browser of these years."""
    style = _ours("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_ours, _SCRIPTS)) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    title = escape(on_one_line(drawing.title))
    parts = {"policy": policy, "title": title, "style": style, "script": script, "data": _data(drawing)}
    parts["left"] = _left_out(drawing.withheld())
    page = _ours("page.html")
    # The template is taken apart once: nothing that is put in is looked through for places again.
    head, *rest = page.split("{{")
    return head + "".join(parts[name] + after for name, _, after in (each.partition("}}") for each in rest))


def _data(drawing: Drawing) -> str:
    colours, kinds = colours_of(drawing), {kind: at for at, (kind, _) in enumerate(drawing.types())}
    relations: dict[str, int] = {}
    edges = [
        [edge.source, edge.target, relations.setdefault(edge.type, len(relations)), int(edge.is_link)]
        + ([_attributes(edge.attributes)] if edge.attributes else [])
        for edge in drawing.edges
    ]
    nodes = [
        _node(node, kinds[node.type], x, y, degree)
        for node, (x, y), degree in zip(drawing.nodes, places_of(drawing), drawing.degrees(), strict=True)
    ]
    value = {
        "title": drawing.title,
        "types": [{"name": kind, "colour": colours[kind], "count": count} for kind, count in drawing.types()],
        "relations": list(relations),
        "nodes": nodes,
        "edges": edges,
    }
    said = json.dumps(value, separators=(",", ":"))
    for mark, shown in _PRINTABLE.items():
        said = said.replace(mark, shown)
    return said


def _node(node: Node, kind: int, x: float, y: float, degree: int) -> dict[str, Any]:
    value: dict[str, Any] = {"label": node.label, "type": kind, "kind": node.kind, "x": x, "y": y}
    value["r"] = radius_of(degree)
    if node.path:
        value["path"] = node.path
    if node.tags:
        value["tags"] = node.tags
    text = node.text or "\n".join(f"- {each}" for each in node.observations)
    if node.is_withheld:
        text = _WITHHELD
    if text:
        value["text"] = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "\n…"
    return value


def _left_out(count: int) -> str:
    """What the page says of private notes; nothing when all is in it."""
    if not count:
        return ""
    shown = (
        "A private note is shown without its text"
        if count == 1
        else f"{count} private notes are shown without their texts"
    )
    return f'<p id="left">{shown}.</p>'


def _attributes(attributes: Any) -> str:
    shown = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in attributes.values()
    )
    return ", ".join(f"{key} {value}" for key, value in zip(attributes, shown, strict=True))


def _ours(name: str) -> str:
    return files("simplemem.kinds.picture").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
