"""Exports a drawing of the graph: as an HTML page, for Graphviz, or as data for other programs.

The page fetches nothing and runs nothing that a note contains. What comes from notes is a block of
JSON without `<`, and the page's policy allows only the page's own style and script, by their
hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simplemem.features.graph.drawing import Drawing

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_BYTES: Final = 4_900_000  # of a picture (counted as characters), unless the user wants all
_TEXT_LENGTHS: Final = (4000, 1000, 250, 0)  # to which texts are cut in turn, until a picture fits
# Control characters except tab and newline, and what UTF-8 cannot express.
_NOT_PRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


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
    """Return the attributes of a node in the language of Graphviz, without the brackets.

    They are its label, its type and path as a tooltip, and a dashed frame if it is missing.
    """
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
    """Return a text as a string in the language of Graphviz."""
    return json.dumps(_make_printable(text.expandtabs(1)), ensure_ascii=False)


def _make_printable(text: str) -> str:
    """Return a text with U+FFFD for each character that cannot be printed."""
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
    """Return the text of a file in the folder of templates. It is read once."""
    folder = files("simplemem.features.graph").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    """Return the environment of the templates, which escapes every value. It is made once."""
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


class Picture(NamedTuple):
    """A drawing in one of the formats, and how many characters of each text it has.

    `max_text` is None if all texts are whole.
    """

    text: str
    max_text: int | None


def shorten_drawing(drawing: Drawing, form: str, max_bytes: int = MAX_BYTES) -> Picture:
    """Return a drawing in a format of `PICTURES`, with texts cut until it has fewer characters.

    Texts are cut to 4,000, 1,000, 250 and 0 characters in turn, in `drawing` itself too. A picture
    of many nodes may have more than `max_bytes` even without texts; it is returned all the same.
    """
    text = PICTURES[form](drawing)
    if len(text) < max_bytes:
        return Picture(text, None)

    for max_text in _TEXT_LENGTHS:
        _cut_texts(drawing, max_text)
        text = PICTURES[form](drawing)
        if len(text) < max_bytes:
            break
    return Picture(text, max_text)


def _cut_texts(drawing: Drawing, length: int) -> None:
    """Cut the text of each node to `length` characters, and its observations to as many items."""
    for node in drawing["nodes"]:
        for key in ("text", "observations"):
            if key in node:
                node[key] = node[key][:length]
