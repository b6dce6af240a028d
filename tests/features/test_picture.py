"""The picture of a graph: what is drawn, the page that runs nothing a note says, and data for other programs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from simplemem.features.graph.drawing import LINK, Drawing, build_drawing, build_store_drawing
from simplemem.features.graph.graph_export import PICTURES, cytoscape, shorten_drawing
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.store import EnhancedStore

Write = Callable[[str, str], Path]

ODD = (
    "</script><img src=x onerror=alert(1)>",
    "<!-- <script>",
    "]]> & \"quoted\" 'twice'",
    "back\\slash \\n \\N",
    "line\nbreak\ttab\r",
    "nul \x00 bell \x07 escape \x1b[31m",
    "half \ud800 a character",
    "separators \u2028 \u2029 \x85",
    "{{data}} {{script}} ${x}",
    "emoji 🎈 и 田辺",
    "",
    "__proto__",
    "x" * 5000,
)


def odd_drawing() -> Drawing:
    """Every odd string as a name, a type, an observation, a relation's type and an attribute."""
    entities = tuple(
        Entity(each, each, (Observation(each), Observation(f"[[{each}]]"))) for each in ODD
    )
    ends = zip(ODD, (*ODD[1:], "nobody"), strict=True)
    relations = tuple(Relation(a, a, b, {"said": a, "strength": 0.5}) for a, b in ends)
    return build_drawing(ODD[0], Graph(entities, relations))


def small() -> Drawing:
    entities = (
        Entity("Tracker", "component", path="graph/Tracker.md"),
        Entity("Ida", "person", path="people/Ida.md", is_note=True),
    )
    relations = (
        Relation("Tracker", "made by", "Ida", {"strength": 0.9}),
        Relation("Tracker", "needs", "Battery"),
    )
    return build_drawing(
        "balloons",
        Graph(entities, relations),
        details={"graph/Tracker.md": {"text": "It sends a line."}},
    )


class Outline(HTMLParser):
    """The elements of a page as a browser makes them, and what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in ("script", "style"):
            self.raw.append("")

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.raw[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def test_a_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    text = PICTURES["html"](odd_drawing())
    page = Outline(text)
    style, _, script = page.raw
    told = next(a for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")[
        "content"
    ]
    policy = {rule.split()[0]: rule.split()[1:] for rule in str(told).split(";")}
    assert policy["default-src"] == ["'none'"]
    for name, own in (("style-src", style), ("script-src", script)):
        assert policy[name] == [
            f"'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'"
        ]
    assert set(policy) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    assert re.findall(r"(?:https?:)?//[a-z0-9]", PICTURES["html"](small())) == []
    assert not re.search(r"</|<!--|innerHTML|insertAdjacentHTML|document\.write|eval\(", script)


def test_what_notes_are_called_makes_no_element_of_the_page() -> None:
    plain, odd = Outline(PICTURES["html"](small())), Outline(PICTURES["html"](odd_drawing()))
    assert [tag for tag, _ in odd.elements] == [tag for tag, _ in plain.elements]
    assert odd.raw[2] == plain.raw[2]  # nothing of a note in the script
    assert not [
        a
        for _, a in odd.elements
        if {"src", "href", "style"} & a.keys() or any(k.startswith("on") for k in a)
    ]
    assert odd.raw[1].isascii() and "<" not in odd.raw[1]


def test_a_page_holds_every_name_and_text_exactly() -> None:
    data = json.loads(Outline(PICTURES["html"](odd_drawing())).raw[1])
    assert [node["label"] for node in data["nodes"]] == [*ODD, "nobody"]
    assert [node["observations"][0] for node in data["nodes"][:-1]] == list(ODD)
    assert [edge["type"] for edge in data["links"]] == list(ODD)
    assert data == json.loads(PICTURES["json"](odd_drawing()))


def test_node_link_json_names_both_ends_of_every_edge() -> None:
    value = json.loads(PICTURES["json"](small()))
    assert (value["directed"], value["multigraph"], value["graph"]) == (
        True,
        True,
        {"name": "balloons"},
    )
    assert [(node["id"], node["type"], node["kind"]) for node in value["nodes"]] == [
        ("Tracker", "component", "entity"),
        ("Ida", "person", "note"),
        ("Battery", "", "missing"),
    ]
    links = [
        (link["source"], link["type"], link["target"], link.get("attributes"))
        for link in value["links"]
    ]
    assert links == [
        ("Tracker", "made by", "Ida", {"strength": 0.9}),
        ("Tracker", "needs", "Battery", None),
    ]
    elements = json.loads(cytoscape(small()))["elements"]
    assert [node["data"]["id"] for node in elements["nodes"]] == ["Tracker", "Ida", "Battery"]
    assert [(edge["data"]["source"], edge["data"]["target"]) for edge in elements["edges"]] == [
        (link[0], link[2]) for link in links
    ]


@pytest.mark.parametrize(
    "drawing",
    [small(), odd_drawing(), build_drawing("nothing", Graph())],
    ids=["small", "odd", "empty"],
)
def test_dot_has_a_line_for_every_node_and_edge_whatever_the_names(drawing: Drawing) -> None:
    text = PICTURES["dot"](drawing)
    rest = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    assert re.fullmatch(
        r'digraph "" \{\n( {2}(node|n\d+( -> n\d+)?) \[(\w+=""(, )?)+\];\n)*\}\n', rest
    ), rest[:300]
    assert len(re.findall(r"^  n\d+ \[", rest, re.MULTILINE)) == len(drawing["nodes"])
    assert rest.count("->") == len(drawing["links"])


def ids(drawing: Drawing) -> list[str]:
    return [node["id"] for node in drawing["nodes"]]


def edges(drawing: Drawing) -> list[tuple[str, str, str]]:
    return [(edge["source"], edge["type"], edge["target"]) for edge in drawing["links"]]


def drawn(store: EnhancedStore, **asked: Any) -> Drawing:
    return build_store_drawing(store, graph_of(store).read(), **asked)


@pytest.fixture
def vault_of_notes(store: EnhancedStore, write: Write) -> EnhancedStore:
    write("people/Ida.md", "---\ntags: [crew]\n---\nIda writes to [[Bo]].\n")
    write("people/Bo.md", "---\nprivate: true\n---\nBo's secret.\n")
    store.sync(embed=False)
    graph_of(store).create_entities([Entity("Van", "car", (Observation("is red"),))])
    graph_of(store).create_relations(
        [Relation("Van", "driven by", "Ida"), Relation("Van", "parked at", "nowhere")]
    )
    return store


def test_which_notes_are_drawn_beside_entities(vault_of_notes: EnhancedStore) -> None:
    store = vault_of_notes
    assert ids(drawn(store)) == ["Van", "Ida", "nowhere"]
    every = drawn(store, notes="all")
    assert {node["label"] for node in every["nodes"]} == {"Van", "Ida", "nowhere", "Bo"}
    assert edges(every) == [
        ("Van", "driven by", "Ida"),
        ("Van", "parked at", "nowhere"),
        ("Ida", LINK, "Bo"),
    ]


def test_links_between_the_notes_beside_entities_are_drawn(vault_of_notes: EnhancedStore) -> None:
    graph_of(vault_of_notes).create_relations([Relation("Van", "parked by", "Bo")])
    assert ("Ida", LINK, "Bo") in edges(drawn(vault_of_notes))


def test_notes_without_types_are_coloured_by_folder_or_tag(
    store: EnhancedStore, write: Write
) -> None:
    write("top.md", "[[Ida]] and [[Van]]")
    write("people/Ida.md", "---\ntags: [crew, old]\n---\n")
    write("cars/old/Van.md", "---\ntype: car\n---\n")
    store.sync(embed=False)

    def groups() -> dict[str, tuple[str, str]]:
        nodes = drawn(store, notes="all")["nodes"]
        return {node["label"]: (node["type"], node.get("group", "")) for node in nodes}

    assert groups() == {"top": ("note", ""), "Ida": ("note", "people/"), "Van": ("car", "")}
    store.move("top", "people/top")
    assert groups() == {"top": ("note", ""), "Ida": ("note", "#crew"), "Van": ("car", "")}


@pytest.mark.parametrize("form", PICTURES)
def test_a_picture_stays_below_its_size_by_cutting_texts(form: str) -> None:
    entities = [Entity(f"e{n}", "x", (Observation("said"),), path=f"e{n}.md") for n in range(50)]
    drawing = build_drawing(
        "v", Graph(tuple(entities)), details={each.path: {"text": "<é" * 3000} for each in entities}
    )
    whole = PICTURES[form](drawing)
    assert shorten_drawing(drawing, form) == (whole, None)
    text, length = shorten_drawing(drawing, form, max_bytes=200_000)
    assert len(text) < 200_000 and (length in (250, 1000) or form == "dot")
    assert shorten_drawing(drawing, form, max_bytes=10)[1] == 0


def test_what_private_notes_say_is_left_out_unless_it_is_asked_for(
    vault_of_notes: EnhancedStore,
) -> None:
    every = drawn(vault_of_notes, notes="all")
    page = PICTURES["html"](every)
    assert "secret" not in page and "shown without their text: 1" in page
    assert "secret" in PICTURES["html"](drawn(vault_of_notes, notes="all", private=True))
    bare = PICTURES["json"](drawn(vault_of_notes, notes="all", texts=False))
    assert "is red" not in bare and "writes to" not in bare


def test_two_of_one_name_have_an_id_each_and_a_relation_counts_as_the_link_it_is() -> None:
    entities = (
        Entity("A", "x", path="graph/A.md"),
        Entity("A", "note", path="b/A.md", is_note=True),
    )
    links = [("graph/A.md", "b/A.md"), ("b/A.md", "graph/A.md"), ("b/A.md", "b/A.md")]
    drawing = build_drawing("v", Graph(entities, (Relation("A", "is", "B"),)), links=links)
    assert ids(drawing) == ["A", "b/A.md", "B"]
    assert edges(drawing) == [("A", "is", "B"), ("A", LINK, "b/A.md"), ("b/A.md", LINK, "A")]
