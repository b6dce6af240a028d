"""The file of the graph memory servers: written as they write it, read whatever stands in it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from simplemem.kinds.graph.jsonl import Broken, read, written
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation

ANY_TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(["\ud800", "\x00", "\u2028", "\n", "", "a\udfffb"])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(st.lists(ANY_TEXT, max_size=4, unique=True))
    entities = [
        Entity(name, draw(ANY_TEXT), tuple(Observation(text) for text in draw(st.lists(ANY_TEXT, max_size=3))))
        for name in names
    ]
    keys = draw(st.lists(st.tuples(ANY_TEXT, ANY_TEXT, ANY_TEXT), max_size=4, unique=True))
    return Graph(tuple(entities), tuple(Relation(*key) for key in keys))


@given(graphs())
def test_what_was_written_is_read_as_it_was(graph: Graph) -> None:
    again = read(written(graph).encode("utf-8"))
    assert again == (graph, ())


def test_a_file_is_what_the_reference_writes() -> None:
    graph = Graph(
        (Entity("A", "t", (Observation('x "1" ü\u2028\x01'), Observation("\ud800"))), Entity("B", "", ())),
        (Relation("A", "knows", "B"),),
    )
    assert written(graph) == (
        '{"type":"entity","name":"A","entityType":"t","observations":["x \\"1\\" ü\u2028\\u0001","\\ud800"]}\n'
        '{"type":"entity","name":"B","entityType":"","observations":[]}\n'
        '{"type":"relation","from":"A","to":"B","relationType":"knows"}\n'
    )


def test_lines_of_other_programs_are_read_and_broken_ones_are_told() -> None:
    lines = [
        b"\xef\xbb\xbf"
        + json.dumps({"type": "entity", "name": "A", "entityType": "t", "observations": ["1"]}).encode(),
        b"",
        b"  \r",
        b'{"type":"entity","name":"B","entityType":"t","observations":null,"id":7}\r',
        b'{"type":"entity","name":"C","entityType":"t"}',
        b'{"type":"entity","name":"D","entityType":"t","observations":"x"}',
        b'{"type":"entity","name":"E","entityType":"t","observations":[1]}',
        b'{"type":"entity","name":1,"entityType":"t","observations":[]}',
        b'{"type":"relation","from":"A","to":"B"}',
        b'{"type":"relation","from":"A","to":"B","relationType":"r"}',
        b'{"type":"note"}',
        b"[]",
        b'{"type":"entity","na',
        b"\xff",
    ]
    graph, broken = read(b"\n".join(lines))
    assert [entity.name for entity in graph.entities] == ["A", "B", "C"]
    assert [relation.key for relation in graph.relations] == [("A", "r", "B")]
    assert broken == (
        Broken(6, "its observations are no list of texts"),
        Broken(7, "its observations are no list of texts"),
        Broken(8, "its name is no text"),
        Broken(9, "its relationType is no text"),
        Broken(11, "it is neither an entity nor a relation"),
        Broken(12, "it is neither an entity nor a relation"),
        Broken(13, "it is not JSON"),
        Broken(14, "it is not JSON"),
    )


def test_one_name_twice_is_one_entity_that_says_all_of_it_and_a_relation_twice_is_one() -> None:
    twice = (
        '{"type":"entity","name":"A","entityType":"t","observations":["1","1"]}\n'
        '{"type":"relation","from":"A","to":"A","relationType":"r"}\n'
        '{"type":"entity","name":"A","entityType":"u","observations":["2","1"]}\n'
        '{"type":"relation","from":"A","to":"A","relationType":"r"}'
    )
    graph = read(twice.encode())[0]
    assert [(each.name, each.type, each.texts) for each in graph.entities] == [("A", "t", ["1", "1", "2"])]
    assert len(graph.relations) == 1
