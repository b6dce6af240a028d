"""The forms of a picture can be read by what they are for, whatever a note is called, and are always the same bytes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from odd_graph import ODD, odd_drawing

from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.kinds.picture.drawing import Drawing, drawing_of
from simplemem.kinds.picture.forms import PICTURES
from simplemem.kinds.picture.page import MOST_TEXT

SVG = "{http://www.w3.org/2000/svg}"


def small() -> Drawing:
    entities = (
        Entity("Tracker", "component", path="graph/Tracker.md"),
        Entity("Ida", "person", path="people/Ida.md", is_note=True),
    )
    relations = (Relation("Tracker", "made by", "Ida", {"strength": 0.9}), Relation("Tracker", "needs", "Battery"))
    return drawing_of("balloons", Graph(entities, relations), texts={"graph/Tracker.md": "It sends a line."})


@pytest.mark.parametrize("form", PICTURES)
@pytest.mark.parametrize("drawing", [small(), odd_drawing(), Drawing("nothing")], ids=["small", "odd", "empty"])
def test_the_same_graph_is_the_same_bytes(form: str, drawing: Drawing) -> None:
    assert PICTURES[form](drawing).encode() == PICTURES[form](drawing).encode()


# ------------------------------------------------------------------ data


def test_node_link_json_names_both_ends_of_every_edge() -> None:
    value = json.loads(PICTURES["json"](small()))
    assert (value["directed"], value["multigraph"], value["graph"]) == (True, True, {"name": "balloons"})
    assert [(node["id"], node["type"], node["kind"]) for node in value["nodes"]] == [
        ("Tracker", "component", "entity"),
        ("Ida", "person", "note"),
        ("Battery", "", "missing"),
    ]
    assert value["nodes"][0]["text"] == "It sends a line."
    assert [(link["source"], link["type"], link["target"]) for link in value["links"]] == [
        ("Tracker", "made by", "Ida"),
        ("Tracker", "needs", "Battery"),
    ]
    assert value["links"][0]["attributes"] == {"strength": 0.9}


def test_cytoscape_json_has_its_elements_with_places_and_distinct_ids() -> None:
    value = json.loads(PICTURES["cytoscape"](small()))
    nodes, edges = value["elements"]["nodes"], value["elements"]["edges"]
    assert [node["data"]["id"] for node in nodes] == ["Tracker", "Ida", "Battery"]
    assert all(set(node["position"]) == {"x", "y"} for node in nodes)
    assert [(edge["data"]["source"], edge["data"]["interaction"], edge["data"]["target"]) for edge in edges] == [
        ("Tracker", "made by", "Ida"),
        ("Tracker", "needs", "Battery"),
    ]
    every = [each["data"]["id"] for each in (*nodes, *edges)]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("form", ["json", "cytoscape"])
def test_json_gives_back_every_odd_name_exactly(form: str) -> None:
    value = json.loads(PICTURES[form](odd_drawing()))
    nodes = value["nodes"] if form == "json" else [node["data"] for node in value["elements"]["nodes"]]
    assert [node["label"] for node in nodes] == [*ODD, "nobody"]
    assert [node["observations"][0] for node in nodes[:-1]] == list(ODD)


# ------------------------------------------------------------------ Graphviz

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[A-Za-z_][A-Za-z0-9_]*|[{}\[\];=,])', re.DOTALL)


def dot_tokens(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        assert found is not None, f"Graphviz would not read: {text[at : at + 60]!r}"
        yield found[1]
        at = found.end()


def statements(text: str) -> list[tuple[str, dict[str, str]]]:
    """The statements of a DOT file: what they are about, and their attributes."""
    tokens = list(dot_tokens(text))
    assert tokens[0] == "digraph" and tokens[2] == "{" and tokens[-1] == "}"
    found, at = [], 3
    while at < len(tokens) - 1:
        subject = []
        while tokens[at] not in ("[", ";"):
            subject.append(tokens[at])
            at += 1
        attributes = {}
        if tokens[at] == "[":
            at += 1
            while tokens[at] != "]":
                key, equals, value = tokens[at : at + 3]
                assert equals == "=", tokens[at : at + 3]
                attributes[key] = value
                at += 3 + (tokens[at + 3] == ",")
            at += 1
        assert tokens[at] == ";"
        at += 1
        found.append((" ".join(subject), attributes))
    return found


def test_dot_has_a_statement_for_every_node_and_edge() -> None:
    found = dict(statements(PICTURES["dot"](small())))
    assert found["n0"]["label"] == '"Tracker"'
    assert "dashed" in found["n2"]["style"]
    assert found["n0 -> n1"]["label"] == '"made by"'


@pytest.mark.parametrize("drawing", [odd_drawing(), Drawing("nothing")], ids=["odd", "empty"])
def test_dot_is_one_graph_whatever_the_names(drawing: Drawing) -> None:
    found = [subject for subject, _ in statements(PICTURES["dot"](drawing))]
    nodes = [subject for subject in found if re.fullmatch(r"n\d+", subject)]
    assert len(nodes) == len(drawing.nodes)
    assert sum("->" in subject for subject in found) == len(drawing.edges)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it() -> None:
    done = subprocess.run(
        ["dot", "-Tsvg"], input=PICTURES["dot"](odd_drawing()).encode(), capture_output=True, check=False
    )
    assert (done.returncode, b"syntax error" in done.stderr) == (0, False)
    titles = [each.text for each in ElementTree.fromstring(done.stdout).iter(f"{SVG}title")]
    assert sum(str(title).startswith("n") and "->" not in str(title) for title in titles[1:]) == len(ODD) + 1


# ------------------------------------------------------------------ SVG


def test_svg_shows_every_node_with_its_name_and_a_legend() -> None:
    root = ElementTree.fromstring(PICTURES["svg"](small()))
    assert root.find(f"{SVG}title").text == "balloons"  # type: ignore[union-attr]
    tooltips = [each.find(f"{SVG}title") for each in root.iter(f"{SVG}circle")]
    assert [each.text for each in tooltips if each is not None] == ["Tracker (component)", "Ida (person)", "Battery"]
    said = [each.text for each in root.iter(f"{SVG}text")]
    assert {"made by", "needs", "Tracker", "component · 1", "not written yet · 1"} <= set(said)


def test_svg_is_well_formed_and_runs_nothing_whatever_the_names() -> None:
    text = PICTURES["svg"](odd_drawing())
    root = ElementTree.fromstring(text.encode())
    assert {each.tag.removeprefix(SVG) for each in root.iter()} == {
        "svg", "title", "style", "defs", "marker", "path", "rect", "circle", "text",
    }  # fmt: skip
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on") or "href" in name]
    tooltips = [circle.findtext(f"{SVG}title") for circle in root.iter(f"{SVG}circle")]
    assert tooltips[0] == f"{ODD[0]} ({ODD[0]})"
    joined = next(each for each in ODD if "\u200d" in each)
    assert f"{joined} ({joined})" in tooltips


# ------------------------------------------------------------------ HTML


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

    def policy(self) -> dict[str, list[str]]:
        meta = next(a for tag, a in self.elements if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
        rules = (rule.split() for rule in str(meta["content"]).split(";"))
        return {rule[0]: rule[1:] for rule in rules}


def data_of(page: str) -> Any:
    return json.loads(Outline(page).raw[1])


def test_a_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    page = Outline(PICTURES["html"](odd_drawing()))
    style, _, script = page.raw
    policy = page.policy()
    assert policy["default-src"] == ["'none'"]
    for name, text in (("style-src", style), ("script-src", script)):
        assert policy[name] == [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"]
    assert set(policy) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}


def test_what_notes_are_called_makes_no_element_of_the_page() -> None:
    plain, odd = Outline(PICTURES["html"](small())), Outline(PICTURES["html"](odd_drawing()))
    assert [tag for tag, _ in odd.elements] == [tag for tag, _ in plain.elements]
    assert odd.raw[2] == plain.raw[2]  # nothing of a note in the script
    assert not [
        a for _, a in odd.elements if {"src", "href", "style"} & a.keys() or any(key.startswith("on") for key in a)
    ]


def test_a_page_names_no_address() -> None:
    assert re.findall(r"(?:https?:)?//[a-z0-9]", PICTURES["html"](small())) == []


def test_a_page_holds_every_name_and_text_exactly() -> None:
    page = PICTURES["html"](odd_drawing())
    assert Outline(page).raw[1].isascii()
    data = data_of(page)
    assert [node["label"] for node in data["nodes"]] == [*ODD, "nobody"]
    assert [node["text"].startswith(f"- {name}") for node, name in zip(data["nodes"], ODD, strict=False)] == [
        True
    ] * len(ODD)
    assert [data["relations"][edge[2]] for edge in data["edges"]] == list(ODD)


def test_what_a_relation_says_beside_is_shown_as_a_person_would_have_written_it() -> None:
    relation = Relation(
        "A", "uses", "A", {"at": "2026-01-24", "strength": 0.9, "sure": True, "tags": ["é", 1], "by": None}
    )
    drawing = drawing_of("v", Graph((Entity("A", "x"),), (relation,)))
    said = data_of(PICTURES["html"](drawing))["edges"][0][4]
    assert said == 'at 2026-01-24, strength 0.9, sure true, tags ["é", 1], by null'


def test_a_very_long_text_is_cut_and_says_so() -> None:
    drawing = drawing_of("v", Graph((Entity("A", "x", path="A.md"),)), texts={"A.md": "y" * (MOST_TEXT + 1)})
    text = data_of(PICTURES["html"](drawing))["nodes"][0]["text"]
    assert text == "y" * MOST_TEXT + "\n…"


def test_the_scripts_are_for_one_block_without_a_tag_in_them() -> None:
    folder = Path(__file__).parents[2] / "simplemem" / "graph" / "picture"
    for file in folder.glob("*.js"):
        assert not re.search(r"</|<!--|innerHTML|insertAdjacentHTML|document\.write|eval\(", file.read_text("utf-8")), (
            file
        )
