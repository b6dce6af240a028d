"""The graph of a vault, as callers and people meet it: real notes, a real index, several stores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from simplemem.errors import Invalid, TooLong, Unreadable
from simplemem.features.graph.service import KnowledgeGraph, graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.store import EnhancedStore, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    with open_store(tmp_path / "vault") as opened:
        yield opened


@pytest.fixture
def graph(store: EnhancedStore) -> KnowledgeGraph:
    return graph_of(store)


def an(name: str, kind: str = "thing", *said: str) -> Entity:
    return Entity(name, kind, tuple(map(Observation, said)))


def texts(graph: Graph) -> dict[str, list[str]]:
    return {each.name: each.texts for each in graph.entities}


def edges(graph: Graph) -> list[tuple[str, str, str]]:
    return [each.key for each in graph.relations]


def note(store: EnhancedStore, path: str) -> str:
    return (store.root / path).read_text("utf-8")


def write(store: EnhancedStore, path: str, text: str) -> None:
    (store.root / path).parent.mkdir(parents=True, exist_ok=True)
    (store.root / path).write_text(text, "utf-8")


def test_an_entity_is_a_note_that_reads_well(store: EnhancedStore, graph: KnowledgeGraph) -> None:
    graph.create_entities(
        [an("Aurora API", "component", "Serves the public REST interface"), an("Identity Service")]
    )
    graph.create_relations([Relation("Aurora API", "depends on", "Identity Service")])
    text = note(store, "graph/Aurora API.md")
    assert "\ntype: entity\nentity_type: component\norder: 1\n" in text
    assert text.endswith(
        "---\n\n## Observations\n- Serves the public REST interface\n\n## Relations\n- depends on [[Identity Service]]\n"
    )
    assert store.search("REST interface").hits[0].name == "graph/Aurora API"
    assert [link.name for link in store.backlinks("graph/Identity Service", kinds=("link",))] == [
        "graph/Aurora API"
    ]


def test_a_hand_written_note_and_bullet_are_in_the_graph_at_once(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    graph.create_entities([an("Ada", "person", "likes tea")])
    text = note(store, "graph/Ada.md")
    write(store, "graph/Ada.md", text.replace("- likes tea\n", "- likes tea\n- plays chess\n"))
    assert texts(graph.open(["Ada"])) == {"Ada": ["likes tea", "plays chess"]}
    write(store, "graph/Bob.md", "- knows [[Ada]]\n- is new\n")
    assert texts(graph.search("is new")) == {"Bob": ["is new"]}
    assert edges(graph.open(["Ada"])) == [("Bob", "knows", "Ada")]
    (store.root / "graph/Bob.md").unlink()
    assert texts(graph.search("is new")) == {}


def test_a_note_in_the_graph_folder_with_a_type_of_the_persons_is_an_entity(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    store.create("graph/Ann", "# Ann\n- likes tea\n", {"type": "person"})
    store.create("people/Bob", "# Bob\n- likes tea\n", {"type": "person"})
    assert [(each.name, each.type, each.texts) for each in graph.read().entities] == [
        ("Ann", "person", ["likes tea"])
    ]
    graph.add_observations([("Ann", [Observation("likes cake")])])
    assert (
        "type: person" in store.read("graph/Ann").text and graph.read().entities[0].type == "person"
    )


def test_writers_at_once_lose_nothing(store: EnhancedStore) -> None:
    graph_of(store).create_entities([an("log")])

    def work(number: int) -> None:
        with open_store(store.root) as own:
            for turn in range(10):
                graph_of(own).add_observations([("log", [Observation(f"{number}-{turn}")])])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = graph_of(store).open(["log"]).entities[0].texts
    assert sorted(said) == sorted(f"{number}-{turn}" for number in range(4) for turn in range(10))


def test_a_change_of_several_notes_is_one_step_that_undo_takes_back(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    graph.create_entities([an("A"), an("B"), an("C")])
    graph.create_relations([Relation("A", "knows", "B"), Relation("C", "knows", "B")])
    before = graph.read()
    graph.delete_entities(["B"], who="client 1", tool="tidy", reason="cleaning")
    assert list(texts(graph.read())) == ["A", "C"] and edges(graph.read()) == []
    last = store.history(limit=1)[0]
    assert (last.who, last.tool, last.reason) == ("client 1", "tidy", "cleaning")
    store.undo(last.version)
    assert [each.key for each in graph.read().relations] == [each.key for each in before.relations]
    assert texts(graph.read()) == texts(before)


def test_a_relation_may_lead_to_a_name_that_is_not_there(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    graph.create_entities([an("A")])
    graph.create_relations([Relation("A", "knows", "ghost"), Relation("phantom", "haunts", "A")])
    assert edges(graph.open(["A"])) == [("A", "knows", "ghost"), ("phantom", "haunts", "A")]
    assert list(texts(graph.read())) == ["A"] and graph.open(["ghost"]) == Graph()
    graph.create_entities([an("ghost", "spirit", "boo")])
    assert texts(graph.search("boo")) == {"ghost": ["boo"]}
    assert graph.open(["ghost"]).entities[0].type == "spirit"
    graph.delete_relations([Relation("phantom", "haunts", "A")])
    graph.delete_entities(["ghost"])
    assert edges(graph.read()) == []


def test_a_relation_to_what_comes_later_is_a_link_that_leads_to_it_then(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    graph.create_entities([an("A")])
    graph.create_relations([Relation("A", "knows", name) for name in ("ghost", "Ghost", "x/y")])
    assert note(store, "graph/A.md").endswith('- knows [[ghost]]\n- knows "Ghost"\n- knows "x/y"\n')
    assert [each.name for each in (store.root / "graph").iterdir()] == ["A.md"]
    graph.create_entities([an("Ghost", "t", "boo"), an("x/y"), an("ghost")])
    assert edges(graph.open(["Ghost"])) == [("A", "knows", "Ghost")]
    assert edges(graph.read()) == [
        ("A", "knows", "ghost"),
        ("A", "knows", "Ghost"),
        ("A", "knows", "x/y"),
    ]


def test_what_no_index_can_hold_is_refused(graph: KnowledgeGraph) -> None:
    with pytest.raises(TooLong):
        graph.create_entities([an("big", "t", *(f"{i} " + "x" * 900_000 for i in range(7)))])
    assert graph.read() == Graph()


def test_notes_that_an_entity_links_to_are_part_of_the_graph(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    write(
        store,
        "projects/Move.md",
        "---\ntype: project\ndescription: Moving house\n---\n- led_by [[Ada]]\n- plain\n",
    )
    write(store, "people/Unrelated.md", "nothing")
    graph.create_entities([an("Ada", "person")])
    assert list(texts(graph.read())) == ["Ada"]
    graph.create_relations([Relation("Ada", "works on", "Move")])
    assert "- works on [[Move]]" in note(store, "graph/Ada.md")
    assert texts(graph.read()) == {"Ada": [], "Move": ["Moving house"]}
    assert edges(graph.open(["Move"])) == [("Ada", "works on", "Move"), ("Move", "led_by", "Ada")]
    with pytest.raises(Invalid, match="is a note"):
        graph.delete_entities(["Move"])
    graph.delete_relations([Relation("Ada", "works on", "Move")])
    assert list(texts(graph.read())) == ["Ada"]


def test_a_note_that_is_renamed_takes_its_relations_along(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    graph.create_entities([an("A"), an("B")])
    graph.create_relations([Relation("A", "knows", "B")])
    store.move("graph/B", "graph/Bea")
    assert edges(graph.read()) == [("A", "knows", "Bea")]


def test_a_new_file_of_the_same_name_elsewhere_changes_no_relation(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    graph.create_entities([an("A"), an("B", "t", "the one")])
    graph.create_relations([Relation("A", "knows", "B")])
    write(store, "elsewhere/B.md", "another")
    store.sync(embed=False)
    assert edges(graph.open(["B"])) == [("A", "knows", "B")]
    graph.create_relations([Relation("B", "knows", "B")])
    assert texts(graph.open(["B"])) == {"B": ["the one"]}
    assert edges(graph.open(["B"])) == [("A", "knows", "B"), ("B", "knows", "B")]


def test_an_entity_whose_name_another_note_has_steals_no_link(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    store.create("people/Ada", "the note")
    store.create("diary", "met [[Ada]]")
    graph.create_entities([an("Ada", "person", "the entity")])
    assert store.backlinks("people/Ada", kinds=("link",))[0].name == "diary"
    assert texts(graph.open(["Ada"])) == {"Ada": ["the entity"]}


def test_a_conflict_copy_is_no_second_entity_but_a_similar_name_is(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    graph.create_entities([an("Plan", "t", "same"), an("Plan 2", "t", "same"), an("Other")])
    assert list(texts(graph.read())) == ["Plan", "Plan 2", "Other"]
    copy = "graph/Other.sync-conflict-20261122-101010-ABCDEFG.md"
    write(store, copy, note(store, "graph/Other.md"))
    store.sync(embed=False)
    assert list(texts(graph.read())) == ["Plan", "Plan 2", "Other"]


def test_a_page_whose_header_is_broken_is_read_and_never_rewritten(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    write(store, "graph/Bad.md", "---\na: [\n---\n## Observations\n- kept\n")
    store.sync(embed=False)
    assert texts(graph.read()) == {"Bad": ["kept"]}
    with pytest.raises(Unreadable):
        graph.add_observations([("Bad", [Observation("new")])])


def test_search_is_literal_in_one_field_and_knows_no_limit(graph: KnowledgeGraph) -> None:
    graph.create_entities(
        [
            an("a.b", "ΟΔΟΣ", "100% sure"),
            an("axb", "t", "two\nlines"),
            *(an(f"n{i}") for i in range(60)),
        ]
    )
    assert list(texts(graph.search("A.B"))) == ["a.b"]
    assert list(texts(graph.search("οδος"))) == ["a.b"]
    assert list(texts(graph.search("0% S"))) == ["a.b"]
    assert list(texts(graph.search("two\nlines"))) == ["axb"]
    assert (texts(graph.search("a.bΟ")), texts(graph.search("b\nt"))) == ({}, {})
    assert len(graph.search("n").entities) == 61
    assert len(graph.search("").entities) == 62


def test_a_relation_from_a_note_stands_on_a_page_of_its_own(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    write(store, "Monday.md", "- talk to [[Bob]] about cake\n")
    graph.create_entities([an("Ada"), an("Bob", "t", "met [[Ada]] by chance")])
    graph.create_relations(
        [Relation("Monday", "follows", "Ada"), Relation("Ada", "plans", "Monday")]
    )
    assert edges(graph.read()) == [("Ada", "plans", "Monday"), ("Monday", "follows", "Ada")]
    assert list(texts(graph.read())) == ["Ada", "Bob", "Monday"]
    assert graph.create_relations([Relation("Monday", "follows", "Ada")]) == []
    graph.delete_entities(["Ada"])
    assert (edges(graph.read()), texts(graph.read())) == ([], {"Bob": ["met [[Ada]] by chance"]})
    assert note(store, "Monday.md") == "- talk to [[Bob]] about cake\n"


def test_a_relation_leads_to_a_note_whose_name_no_link_can_say(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    for name in ("C# notes", "a [b]"):
        write(store, f"graph/{name}.md", "- x\n")
        graph.create_relations([Relation("C# notes", "is like", name)])
    assert edges(graph.read()) == [
        ("C# notes", "is like", "C# notes"),
        ("C# notes", "is like", "a [b]"),
    ]


def test_an_entity_whose_name_ends_with_a_number_is_never_a_conflict_copy(
    store: EnhancedStore, graph: KnowledgeGraph
) -> None:
    facts = [f"Hall {number} has a door to hall {number + 1}" for number in range(10)]
    graph.create_entities(
        [an("Sensor", "device", *facts), an("Sensor 2", "device", *facts, "It smells of zebra")]
    )
    assert [hit.name for hit in store.search("zebra").hits] == ["graph/Sensor 2"]
    assert store.conflict_copies() == ()
