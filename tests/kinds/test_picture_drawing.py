"""What a picture shows of a graph: every relation, every note once, and links where no relation says more."""

from __future__ import annotations

from dataclasses import replace

from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.picture.around import around, distances
from simplemem.kinds.picture.colours import OTHER, colours_of
from simplemem.kinds.picture.drawing import LINK, MISSING, Drawing, Edge, Node, drawing_of
from simplemem.memory import Listed

NOTE = Listed("people/Ada", "people/Ada.md", "Ada", "", "person", ("core",), None, "2026-01-01", 10, "00", None)


def note(name: str, title: str = "", kind: str = "memory") -> Listed:
    return replace(NOTE, name=name, path=f"{name}.md", title=title or name.rsplit("/", 1)[-1], type=kind, tags=())


def shown(drawing: Drawing) -> list[tuple[str, str, str]]:
    """The edges in words."""
    ids = [node.id for node in drawing.nodes]
    return [(ids[edge.source], edge.type, ids[edge.target]) for edge in drawing.edges]


def test_a_relation_to_a_name_that_nobody_has_written_is_drawn_as_well() -> None:
    drawing = drawing_of(
        "v", Graph((Entity("A", "service"),), (Relation("A", "uses", "B"), Relation("C", "knows", "A")))
    )
    assert [(node.id, node.kind) for node in drawing.nodes] == [("A", "entity"), ("B", MISSING), ("C", MISSING)]
    assert shown(drawing) == [("A", "uses", "B"), ("C", "knows", "A")]


def test_two_relations_between_the_same_two_are_two_edges_with_what_they_say() -> None:
    relations = (Relation("A", "uses", "B", {"strength": 0.9}), Relation("A", "fears", "B"), Relation("A", "is", "A"))
    drawing = drawing_of("v", Graph((Entity("A", "x"), Entity("B", "x")), relations))
    assert shown(drawing) == [("A", "uses", "B"), ("A", "fears", "B"), ("A", "is", "A")]
    assert [dict(edge.attributes) for edge in drawing.edges] == [{"strength": 0.9}, {}, {}]


def test_an_entity_and_its_note_are_one_node_with_the_notes_tags_and_text() -> None:
    entity = Entity("Ada", "person", (Observation("counts"),), path="people/Ada.md")
    drawing = drawing_of("v", Graph((entity,)), notes=[NOTE], texts={NOTE.path: "The text."}, facts={NOTE.path: NOTE})
    (node,) = drawing.nodes
    assert (node.id, node.tags, node.text, node.observations) == ("Ada", ("core",), "The text.", ("counts",))


def test_a_link_is_not_drawn_beside_a_relation_that_says_more_nor_twice_nor_to_itself() -> None:
    entities = (Entity("A", "x", path="A.md"), Entity("B", "x", path="B.md"))
    links = [("A.md", "B.md"), ("B.md", "A.md"), ("B.md", "A.md"), ("B.md", "B.md"), ("B.md", "not drawn.md")]
    drawing = drawing_of("v", Graph(entities, (Relation("A", "uses", "B"),)), links=links)
    assert shown(drawing) == [("A", "uses", "B"), ("B", LINK, "A")]


def test_no_two_nodes_have_one_id_whatever_things_are_called() -> None:
    entities = (Entity("a/b", "x", path="graph/a-b.md"), Entity("a/b", "y", path="graph/other.md"), Entity("", "z"))
    notes = [note("a/b"), note("c/b")]
    drawing = drawing_of("v", Graph(entities, (Relation("", "is", "c/b"),)), notes=notes)
    ids = [node.id for node in drawing.nodes]
    assert len(set(ids)) == len(ids) == 6
    assert ids[:2] == ["a/b", "graph/other.md"] and ids[3] == "a/b.md"


def test_a_name_that_only_a_stub_holds_is_drawn_once() -> None:
    stub = note("graph/B", kind="entity")
    drawing = drawing_of("v", Graph((Entity("A", "x"),), (Relation("A", "uses", "B"),)), notes=[stub])
    assert [node.label for node in drawing.nodes] == ["A", "B"]
    assert shown(drawing) == [("A", "uses", "graph/B")]


def test_the_most_frequent_types_have_colours_of_their_own_and_the_rest_share_one() -> None:
    nodes = tuple(Node(f"{k}.{n}", "", f"type {k:02}", "entity") for k in range(20) for n in range(20 - k))
    colours = colours_of(Drawing("v", (*nodes, Node("m", "m", "", MISSING))))
    assert len({colours[f"type {k:02}"] for k in range(16)}) == 16
    assert {colours[f"type {k:02}"] for k in range(16, 20)} == {OTHER} == {colours[""]}


# -- what lies around a node

NODES = tuple(Node(name, name, "x", "entity") for name in "abcdef")
EDGES = (
    Edge(0, 1, "likes"),
    Edge(1, 2, "likes"),
    Edge(2, 0, "knows"),
    Edge(2, 3, "likes"),
    Edge(1, 0, LINK, is_link=True),
    Edge(0, 1, LINK, is_link=True),
    Edge(4, 0, "sees"),
)
GRAPH = Drawing("v", NODES, EDGES)


def test_a_tree_unfolds_each_node_once_and_as_near_as_it_is() -> None:
    root = around(GRAPH, 0, depth=2, limit=9)
    said = [(NODES[each.node].id, each.edge.type if each.edge else "", each.leads_here) for each in root.below]
    assert said == [("b", "likes", True), ("c", "knows", False), ("e", "sees", False), ("b", LINK, True)]
    b, c, _, again = root.below
    assert again.seen_before and again.both_ways and not b.seen_before
    assert [(NODES[each.node].id, each.seen_before) for each in b.below] == [("c", True)]
    assert [NODES[each.node].id for each in c.below] == ["d"]


def test_what_a_tree_leaves_out_is_counted() -> None:
    assert around(GRAPH, 0, depth=1, limit=2).left_out == 2  # one relation, and a link in both directions
    first = around(GRAPH, 0, depth=1, limit=9).below[0]
    assert (first.below, first.left_out) == ([], 1)


def test_distances_are_counted_in_edges_of_either_direction() -> None:
    assert distances(GRAPH, 0, 1) == {0: 0, 1: 1, 2: 1, 4: 1}
    assert distances(GRAPH, 3, 2) == {3: 0, 2: 1, 1: 2, 0: 2}
