"""The picture of a real vault: its entities, the notes they link to, or everything, narrowed as every other command is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simplemem.config import load_settings
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.values import Entity, Observation, Relation
from simplemem.kinds.picture.drawing import Drawing
from simplemem.kinds.picture.from_store import drawing_of_store
from simplemem.memory import Filter
from simplemem.store import EnhancedStore

NOTES = {
    "people/Ada.md": "---\ntags: [core]\ntype: person\n---\n# Ada\r\n\r\nSee [[flights/Dipper]] and [[nowhere]].\n",
    "flights/Dipper.md": "---\ntype: flight\ntags: [flight]\n---\nHigh, said [[Ada]].\n",
    "flights/Wren.md": "Low.\u2028Very low.\n",
    "graph/Tracker.md": "---\ntype: entity\nentity_type: component\n---\n\n## Observations\n- sends\n\n"
    "## Relations\n- built by [[Ada]] %% strength=0.9 %%\n- needs [[Battery]]\n",
    "templates/Meeting.md": "A template with a link to [[Ada]].\n",
    ".obsidian/templates.json": '{"folder": "templates"}',
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    for path, text in NOTES.items():
        (tmp_path / "vault" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / path).write_bytes(text.encode())
    with EnhancedStore(tmp_path / "vault", load_settings({"embed.provider": "none"})) as opened:
        opened.sync()
        yield opened


def drawn(store: EnhancedStore, **asked: Any) -> Drawing:
    return drawing_of_store(store, graph_of(store).read(), **asked)


def names(drawing: Drawing) -> set[str]:
    return {node.id for node in drawing.nodes}


def edges(drawing: Drawing) -> set[tuple[str, str, str]]:
    ids = [node.id for node in drawing.nodes]
    return {(ids[edge.source], edge.type, ids[edge.target]) for edge in drawing.edges}


def test_beside_the_entities_stand_the_notes_they_link_to(store: EnhancedStore) -> None:
    drawing = drawn(store)
    assert names(drawing) == {"Tracker", "Ada", "Battery"}
    assert edges(drawing) == {("Tracker", "built by", "Ada"), ("Tracker", "needs", "Battery")}
    assert [node.kind for node in drawing.nodes] == ["entity", "note", "missing"]


def test_without_notes_only_entities_are_drawn_and_what_nobody_has_written(store: EnhancedStore) -> None:
    drawing = drawn(store, notes="none")
    assert edges(drawing) == {("Tracker", "needs", "Battery")}
    assert names(drawing) == {"Tracker", "Battery"}


def test_with_all_notes_every_note_and_link_is_drawn_but_what_recall_leaves_out(store: EnhancedStore) -> None:
    drawing = drawn(store, notes="all")
    assert names(drawing) == {"Tracker", "Ada", "Battery", "flights/Dipper", "flights/Wren"}
    assert edges(drawing) == {
        ("Tracker", "built by", "Ada"),
        ("Tracker", "needs", "Battery"),
        ("Ada", "links to", "flights/Dipper"),
        ("flights/Dipper", "links to", "Ada"),
    }
    kinds = {node.id: node.type for node in drawing.nodes}
    assert kinds == {
        "Tracker": "component",
        "Ada": "person",
        "Battery": "",
        "flights/Dipper": "flight",
        "flights/Wren": "note",
    }


def test_a_node_has_its_notes_text_without_the_header_and_its_tags(store: EnhancedStore) -> None:
    found = {node.id: node for node in drawn(store, notes="all").nodes}
    assert found["Ada"].text == "# Ada\n\nSee [[flights/Dipper]] and [[nowhere]]."
    assert found["Ada"].tags == ("core",)
    assert found["flights/Wren"].text == "Low.\u2028Very low."
    assert not any(node.text for node in drawn(store, notes="all", texts=False).nodes)


def test_of_private_notes_only_names_and_what_they_lead_to_are_told(store: EnhancedStore) -> None:
    root = store.root
    (root / "graph/Tracker.md").write_text(NOTES["graph/Tracker.md"].replace("---\n", "---\ntags: [private/x]\n", 1))
    (root / "people/Ada.md").write_text("---\nprivate: yes\n---\nSecret of [[Tracker]]\n")
    (root / "flights/Wren.md").write_text("Low, #private as it was\n")
    (root / "flights/Dipper.md").write_text("---\n[\n---\nnobody knows what this header says\n")
    graph_of(store).read()
    drawing = drawn(store, notes="all")
    told = {node.id: (node.text, node.observations) for node in drawing.nodes if not node.is_withheld}
    assert told == {"Battery": ("", ())}
    assert drawing.withheld() == 4
    assert not any(node.text or node.observations for node in drawing.nodes)
    assert ("Tracker", "built by", "Ada") in edges(drawing)
    assert not any(edge.attributes for edge in drawing.edges)
    assert all(node.text for node in drawn(store, notes="all", private=True).nodes if node.id != "Battery")


def test_a_note_that_became_private_a_moment_ago_is_private(store: EnhancedStore) -> None:
    graph = graph_of(store).read()
    page = store.root / "graph/Tracker.md"
    page.write_text(page.read_text().replace("---\n", "---\nprivate: true\n", 1))
    drawing = drawing_of_store(store, graph)
    assert [node.id for node in drawing.nodes if node.is_withheld] == ["Tracker"]


def test_rules_of_the_settings_keep_texts_out_as_well(store: EnhancedStore) -> None:
    with EnhancedStore(store.root, load_settings({"embed.provider": "none", "embed.private": ["people/"]})) as ruled:
        assert [node.id for node in drawn(ruled).nodes if node.is_withheld] == ["Ada"]


@pytest.mark.parametrize(
    ("narrowed", "left"),
    [
        (Filter(prefix="flights/"), {"flights/Dipper", "flights/Wren"}),
        (Filter(tags={"core": ""}), {"Ada"}),
        (Filter(type="entity"), {"Tracker", "Battery"}),
        (Filter(type="person"), {"Ada"}),
        (Filter(prefix="nowhere/"), set()),
    ],
    ids=["a folder", "a tag", "entities", "a type", "nothing"],
)
def test_filters_narrow_notes_and_entities_alike(store: EnhancedStore, narrowed: Filter, left: set[str]) -> None:
    assert names(drawn(store, notes="all", narrowed=narrowed)) == left


def test_a_new_relation_and_a_hand_edit_are_in_the_next_picture(store: EnhancedStore) -> None:
    graph_of(store).create_entities([Entity("Kite", "toy", (Observation("flies"),))])
    graph_of(store).create_relations([Relation("Kite", "like", "Tracker")])
    path = store.root / "graph" / "Tracker.md"
    path.write_text(path.read_text("utf-8") + "- seen by [[Wren]]\n", "utf-8")
    store.sync()
    found = edges(drawn(store))
    assert {("Kite", "like", "Tracker"), ("Tracker", "seen by", "Wren")} <= found


def test_a_picture_changes_no_note(store: EnhancedStore) -> None:
    before = {path: (store.root / path).read_bytes() for path in NOTES}
    drawn(store, notes="all")
    assert {path: (store.root / path).read_bytes() for path in NOTES} == before
