"""The graph of a vault's notes: what is in it, and the parts of it that a page draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.features.graph.note_graph import (
    MAX_OVERVIEW_NOTES,
    GraphNote,
    GraphPart,
    NoteFilter,
    NoteGraph,
)
from simplemem.features.graph.note_graph_service import note_graph_of
from simplemem.store import EnhancedStore

Write = Callable[[str, str], Path]


def graph_of_chain(length: int) -> NoteGraph:
    """Return a graph in which each note links to the next one."""
    notes = [GraphNote(f"n{number}.md", f"N{number}", "", "2026") for number in range(length)]
    return NoteGraph(notes, [(number, number + 1) for number in range(length - 1)])


def names_of(part: GraphPart) -> list[str]:
    return [note.name for note in part.notes]


def linked_names(part: GraphPart) -> set[tuple[str, str]]:
    names = names_of(part)
    return {(names[source], names[target]) for source, target in part.links}


def test_the_graph_has_the_notes_of_the_vault_and_each_link_once(
    plain_store: EnhancedStore, write: Write
) -> None:
    write(
        "people/Ada.md",
        "---\ntype: person\n---\n[[Engine]] and again [[Engine]], [[nowhere]]\n#math",
    )
    write("Engine.md", "By [[Ada]], see [[Engine]] and [[picture.png]].")
    write("picture.png", "no note")

    graph = note_graph_of(plain_store).graph()
    part = graph.overview("all", NoteFilter())

    assert names_of(part) == ["Engine", "people/Ada"]
    assert part.links == [(0, 1)]
    ada = part.notes[1]
    assert (ada.title, ada.type, ada.tags) == ("Ada", "person", ("math",))
    assert (graph.folders, graph.tags, graph.types) == (["people"], ["math"], ["person"])


def test_an_entity_has_its_own_type(plain_store: EnhancedStore, write: Write) -> None:
    write("graph/Gateway.md", "---\ntype: entity\nentity_type: component\n---\n")
    assert note_graph_of(plain_store).graph().types == ["component"]


def test_the_graph_follows_changes_of_the_vault(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "alone")
    service = note_graph_of(plain_store)
    first = service.graph()
    assert service.graph() is first

    plain_store.create("b", "To [[a]].")
    assert linked_names(service.graph().overview("all", NoteFilter())) == {("a", "b")}

    plain_store.delete("b")
    assert names_of(service.graph().overview("all", NoteFilter())) == ["a"]


def test_past_sessions_and_notes_that_searches_leave_out_are_not_in_the_graph(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("archive/sessions/one.md", "To [[a]].")
    write("left out.md", "---\nsearch: false\n---\nTo [[a]].")
    write("a.md", "text")
    names = names_of(note_graph_of(plain_store).graph().overview("all", NoteFilter()))
    assert "archive/sessions/one" not in names and "a" in names


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_notes_around_a_note_are_those_within_so_many_steps(depth: int) -> None:
    part = graph_of_chain(9).around(4, depth, NoteFilter())
    assert part.notes[0].name == "n4"
    assert set(names_of(part)) == {f"n{number}" for number in range(4 - depth, 5 + depth)}
    assert [abs(int(name[1:]) - 4) for name in names_of(part)] == list(part.distances)
    assert len(part.links) == 2 * depth


def test_a_filter_leaves_out_notes_and_what_only_they_lead_to_but_not_the_centre() -> None:
    notes = [
        GraphNote("a/centre.md", "", "", ""),
        GraphNote("b/between.md", "", "", ""),
        GraphNote("a/behind.md", "", "", ""),
        GraphNote("b/beside.md", "", "", ""),
    ]
    graph = NoteGraph(notes, [(0, 1), (1, 2), (0, 3)])
    assert names_of(graph.around(0, 3, NoteFilter(folder="a"))) == ["a/centre"]
    assert names_of(graph.around(0, 3, NoteFilter(folder="b"))) == [
        "a/centre",
        "b/between",
        "b/beside",
    ]


def test_filters_compare_folders_tags_and_types() -> None:
    note = GraphNote("work/plans/x.md", "X", "plan", "", ("Status/open",))
    for conditions in (
        NoteFilter(folder="work"),
        NoteFilter(folder="work/plans/"),
        NoteFilter(tag="status"),
        NoteFilter(tag="#status/OPEN"),
        NoteFilter(type="plan"),
    ):
        assert conditions.passes(note), conditions
    for conditions in (
        NoteFilter(folder="wor"),
        NoteFilter(tag="stat"),
        NoteFilter(tag="status/op"),
        NoteFilter(type="pla"),
    ):
        assert not conditions.passes(note), conditions


def test_an_overview_has_the_most_linked_or_the_most_recent_notes() -> None:
    count = MAX_OVERVIEW_NOTES + 50
    notes = [GraphNote(f"n{number}.md", "", "", f"{number:06}") for number in range(count)]
    graph = NoteGraph(notes, [(7, number) for number in range(count) if number != 7])

    linked = graph.overview("linked", NoteFilter())
    assert linked.notes[0].name == "n7" and linked.matching == count
    recent = graph.overview("recent", NoteFilter())
    assert recent.notes[0].name == f"n{count - 1}"
    assert len(linked.notes) == len(recent.notes) == MAX_OVERVIEW_NOTES
    assert len(graph.overview("all", NoteFilter()).notes) == count


def test_similar_notes_are_neighbours_if_asked_for(store: EnhancedStore, write: Write) -> None:
    write("heron.md", "The grey heron stands in shallow water and waits for fish.")
    write("egret.md", "An egret stands in shallow water too, and eats fish.")
    write("tax.md", "The tax return is due in July.")
    store.catch_up(embed=True)

    service = note_graph_of(store)
    assert names_of(service.around("heron.md", 1, NoteFilter(), similar=False)) == ["heron"]
    part = service.around("heron.md", 1, NoteFilter(), similar=True)
    assert part is not None and "egret" in names_of(part)
    egret = names_of(part).index("egret")
    assert part.links == [] and {0, egret} in [set(pair) for pair in part.similar]


def test_a_note_that_does_not_exist_has_no_surroundings(plain_store: EnhancedStore) -> None:
    assert note_graph_of(plain_store).around("none.md", 1, NoteFilter(), similar=False) is None
