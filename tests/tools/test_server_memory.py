"""The nine tools of the graph memory server, case by case as its contract lists them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Contract = Callable[..., Any]


def entity(name: str, kind: str = "thing", *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, target: str, kind: str = "knows") -> dict[str, Any]:
    return {"from": source, "to": target, "relationType": kind}


def names(graph: dict[str, Any]) -> list[str]:
    return [each["name"] for each in graph["entities"]]


def test_what_is_created_is_answered_and_read_as_it_was_said(contract: Contract) -> None:
    ask = contract()
    made = ask(
        "create_entities",
        entities=[entity("Ann", "person", "likes tea", "likes tea"), entity("Bob")],
    )
    assert json.loads(made.text) == [
        entity("Ann", "person", "likes tea", "likes tea"),
        entity("Bob"),
    ]
    assert made.data == {"entities": json.loads(made.text)}
    assert made.text.startswith('[\n  {\n    "name": "Ann",\n    "entityType": "person",\n')
    assert ask.json("create_relations", relations=[relation("Ann", "Bob")]) == [
        relation("Ann", "Bob")
    ]
    graph = ask("read_graph")
    assert graph.data == {"entities": made.data["entities"], "relations": [relation("Ann", "Bob")]}
    assert json.loads(graph.text) == graph.data


def test_observations_are_added_once_and_one_missing_entity_refuses_all(contract: Contract) -> None:
    ask = contract()
    ask("create_entities", entities=[entity("A", "t", "1")])
    added = ask.json(
        "add_observations",
        observations=[
            {"entityName": "A", "contents": ["1", "2", "2"]},
            {"entityName": "A", "contents": ["2", "3"]},
        ],
    )
    assert [each["addedObservations"] for each in added] == [["2", "2"], ["3"]]
    refused = ask(
        "add_observations",
        observations=[
            {"entityName": "A", "contents": ["4"]},
            {"entityName": "new\nline", "contents": []},
        ],
    )
    assert (refused.failed, refused.text, refused.data) == (
        True,
        "Entity with name new\nline not found",
        None,
    )
    assert ask.json("open_nodes", names=["A"])["entities"][0]["observations"] == [
        "1",
        "2",
        "2",
        "3",
    ]


def test_whatever_is_deleted_or_not_there_the_answer_is_the_same(contract: Contract) -> None:
    ask = contract()
    ask("create_entities", entities=[entity("A", "t", "1", "2", "1"), entity("B")])
    ask("create_relations", relations=[relation("A", "B")])
    for tool, what, arguments in (
        (
            "delete_observations",
            "Observations",
            {"deletions": [{"entityName": "A", "observations": ["1", "9"]}]},
        ),
        (
            "delete_observations",
            "Observations",
            {"deletions": [{"entityName": "nobody", "observations": []}]},
        ),
        ("delete_relations", "Relations", {"relations": [relation("A", "B"), relation("x", "y")]}),
        ("delete_entities", "Entities", {"entityNames": ["B", "nobody"]}),
        ("delete_entities", "Entities", {"entityNames": []}),
    ):
        answer = ask(tool, **arguments)
        assert answer.text == f"{what} deleted successfully"
        assert answer.data == {"success": True, "message": answer.text}
    assert ask.json("read_graph") == {"entities": [entity("A", "t", "2")], "relations": []}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("create_entities", {}), ("create_entities", {"entities": [entity("ok"), {"name": "A"}]}),
     ("create_relations", {"relations": "none"}),
     ("add_observations", {"observations": [{"entityName": "K", "contents": "x"}]}),
     ("delete_entities", {"entityNames": "K"}), ("delete_entities", {"names": ["K"]}), ("search_nodes", {"query": 5}),
     ("open_nodes", {"names": [None]})],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_an_error_and_change_nothing(
    contract: Contract, tool: str, arguments: dict[str, Any]
) -> None:
    ask = contract()
    ask("create_entities", entities=[entity("K", "t", "keep")])
    refused = ask(tool, **arguments)
    assert refused.failed
    assert refused.text.startswith(
        f"MCP error -32602: Input validation error: Invalid arguments for tool {tool}: "
    )
    assert ask.json("read_graph")["entities"] == [entity("K", "t", "keep")]


def test_what_else_is_sent_is_dropped_and_a_list_may_come_as_json(contract: Contract) -> None:
    ask = contract()
    sent = json.dumps([{**entity("A", "t", "o"), "id": 7}])
    assert ask.json("create_entities", entities=sent, more=True) == [entity("A", "t", "o")]
    assert ask.json("read_graph", random_string="x")["entities"] == [entity("A", "t", "o")]
