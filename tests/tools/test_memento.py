"""Memento's tools: what it adds to the nine, and its eight others as its documentation means them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Contract = Callable[..., Any]

DAY = 86_400_000
USES = {"from": "Aurora", "to": "Postgres", "relationType": "uses"}


def now() -> int:
    return int(time.time() * 1000)


@pytest.fixture
def memento(contract: Contract) -> Any:
    ask = contract("memento")
    said = {
        "Aurora": "Serves the public interface",
        "Postgres": "Stores the rows of billing",
        "Ann": "Plays the violin",
    }
    every = [
        {"name": name, "entityType": "t", "observations": [each]} for name, each in said.items()
    ]
    ask(
        "create_entities",
        entities=[{**each, "version": 9, "id": "x", "createdAt": 1} for each in every],
    )
    return ask


def test_what_it_shares_with_the_reference_means_what_it_means_there(memento: Any) -> None:
    assert memento.json(
        "create_relations", relations=[{**USES, "strength": 0.9, "validTo": None}]
    ) == [USES]
    assert memento.json("create_relations", relations=[USES]) == []
    said = [{"entityName": "Ann", "contents": ["sings"], "confidence": 0.5}]
    added = memento.json("add_observations", observations=said, strength=1)
    assert added == [{"entityName": "Ann", "addedObservations": ["sings"]}]
    [ann] = memento.json("search_nodes", query="SINGS")["entities"]
    assert ann == {"name": "Ann", "entityType": "t", "observations": ["Plays the violin", "sings"]}
    assert len(memento.json("read_graph", random_string="dummy")["entities"]) == 3


def test_what_is_kept_with_a_relation_stands_behind_its_bullet(memento: Any, vault: Path) -> None:
    metadata = {"since": "2026-10-01", "two words": [1, {"a": 2}], "strength": "of the rope"}
    weighed = {
        **USES,
        "strength": 0.9,
        "confidence": 0,
        "metadata": metadata,
        "updatedAt": now() - 9 * DAY,
    }
    memento("create_relations", relations=[weighed])
    [line] = [
        each
        for each in (vault / "graph/Aurora.md").read_text().split("\n")
        if "[[Postgres]]" in each
    ]
    assert line.startswith("- uses [[Postgres]] %% strength=0.9 confidence=0 metadata={")
    assert line.endswith(" %%")
    told = memento.json("get_relation", **USES)
    assert {key: told[key] for key in (*USES, "strength", "confidence")} == {
        **USES,
        "strength": 0.9,
        "confidence": 0,
    }
    times = {key: told["metadata"].pop(key) for key in ("createdAt", "updatedAt")}
    assert told["metadata"] == metadata
    assert all(abs(moment - weighed["updatedAt"]) < 2000 for moment in times.values())


def test_an_update_keeps_what_it_does_not_name_and_replaces_metadata(memento: Any) -> None:
    memento(
        "create_relations",
        relations=[{**USES, "strength": 0.9, "confidence": 0.8, "metadata": {"a": 1}}],
    )
    assert (
        memento("get_relation", **{**USES, "to": "Ann"}).text
        == "Relation not found: Aurora -> uses -> Ann"
    )
    assert (
        memento("update_relation", relation={**USES, "to": "Ann"}).text
        == "Relation not found: Aurora -> Ann (uses)"
    )
    done = memento("update_relation", relation={**USES, "confidence": 0.4, "metadata": {"b": 2}})
    assert done.text == "Relation updated successfully"
    told = memento.json("get_relation", **USES)
    assert (told["strength"], told["confidence"], told["metadata"]["b"]) == (0.9, 0.4, 2)
    assert "a" not in told["metadata"]
    assert [each["confidence"] for each in memento.json("get_relation_history", **USES)] == [
        0.8,
        0.4,
    ]


def test_the_history_of_an_entity_is_its_versions_oldest_first_also_when_it_is_gone(
    memento: Any,
) -> None:
    memento("add_observations", observations=[{"entityName": "Ann", "contents": ["sings"]}])
    memento(
        "create_relations", relations=[{"from": "Ann", "to": "Aurora", "relationType": "built"}]
    )
    memento("delete_entities", entityNames=["Ann"])
    first, second = memento.json("get_entity_history", entityName="Ann")
    assert [first["observations"], second["observations"]] == [
        ["Plays the violin"],
        ["Plays the violin", "sings"],
    ]
    assert (first["version"], second["version"], first["id"]) == (1, 2, second["id"])
    assert first["validTo"] == second["validFrom"] == second["updatedAt"]
    assert second["createdAt"] == first["validFrom"] < second["validTo"] <= now()
    assert second["changedBy"] == "test 1"
    assert memento.json("get_entity_history", entityName="Nobody") == []
    assert (
        memento.json(
            "get_relation_history", **{"from": "Ann", "to": "Aurora", "relationType": "bought"}
        )
        == []
    )


def test_the_graph_of_a_moment_has_what_was_deleted_since(memento: Any) -> None:
    memento("create_relations", relations=[{**USES, "strength": 0.9}])
    moment = now()
    time.sleep(0.01)
    memento("delete_entities", entityNames=["Postgres"])
    then = memento.json("get_graph_at_time", timestamp=moment)
    assert [each["name"] for each in then["entities"]] == ["Aurora", "Postgres", "Ann"]
    assert [(each["to"], each["strength"]) for each in then["relations"]] == [("Postgres", 0.9)]
    assert (then["total"], then["timeTaken"] >= 0) == (3, True)
    assert memento.json("get_graph_at_time", timestamp=0)["entities"] == []


def test_confidence_fades_from_when_it_was_said_to_the_time_that_is_asked_about(
    memento: Any,
) -> None:
    weighed = {"confidence": 0.8, "updatedAt": now() - 30 * DAY}
    memento(
        "create_relations", relations=[{**USES, **weighed}, {**USES, "to": "Ann", "strength": 0.7}]
    )

    def confidence(**asked: Any) -> float:
        graph = memento.json("get_decayed_graph", **asked)
        assert graph["diagnostics"]["decay_info"]["halfLifeDays"] == 30
        [fading, still] = graph["relations"]
        assert "confidence" not in still
        found: float = fading["confidence"]
        return found

    assert confidence() == pytest.approx(0.4, abs=1e-4)
    assert confidence(reference_time=now() + 30 * DAY) == pytest.approx(0.2, abs=1e-4)
    assert confidence(reference_time=now() + 3000 * DAY) == pytest.approx(0.1)
    assert confidence(reference_time=now() - 90 * DAY) == pytest.approx(0.8)
    assert confidence(decay_factor=0.9) == pytest.approx(0.72, abs=1e-4)
    assert memento.json("get_relation", **USES)["confidence"] == 0.8
    assert memento("get_decayed_graph", decay_factor=0).failed


def test_without_vectors_words_are_searched_and_that_is_said(memento: Any) -> None:
    found = memento.json("semantic_search", query="violin")
    assert [each["name"] for each in found["entities"]] == ["Ann"]
    assert found["diagnostics"]["searched"] == "words"
    assert (
        memento("get_entity_embedding", entity_name="Ann").text
        == "No embedding found for entity: Ann"
    )
    assert memento("get_entity_embedding", entity_name="Nobody").text == "Entity not found: Nobody"


@pytest.fixture
def meaning(contract: Contract) -> Any:
    ask = contract("memento", embed={"provider": "wordllama"})
    every = {
        "Ann": ("person", "Plays the violin in an orchestra"),
        "Postgres": ("database", "Stores the rows of the billing system"),
        "Duo": ("music", "Two people who make music together"),
    }
    made = [
        {"name": name, "entityType": kind, "observations": [said]}
        for name, (kind, said) in every.items()
    ]
    ask("create_entities", entities=made)
    ask(
        "create_relations",
        relations=[{"from": "Duo", "to": "Postgres", "relationType": "despises"}],
    )
    ask.store.sync()
    return ask


def test_a_search_by_meaning_answers_best_first_with_its_scores(meaning: Any) -> None:
    found = meaning.json(
        "semantic_search", query="a concert of classical music", min_similarity=0.5
    )
    scores = [each["score"] for each in found["scores"]]
    assert [each["name"] for each in found["entities"]] == [
        each["name"] for each in found["scores"]
    ]
    assert scores == sorted(scores, reverse=True)
    assert {"Ann", "Duo"} <= {each["name"] for each in found["entities"][:2]}
    assert all(0 <= each["similarity"] <= 1 for each in found["scores"])
    assert [each["relationType"] for each in found["relations"]] == ["despises"]
    assert found["total"] == len(found["entities"])
    vector = meaning.json("get_entity_embedding", entity_name="Ann")
    assert vector["dimensions"] == len(vector["embedding"]) and "wordllama" in vector["model"]
    assert sum(value * value for value in vector["embedding"]) == pytest.approx(1, abs=1e-3)


def test_every_argument_of_a_search_counts(meaning: Any) -> None:
    def names(**asked: Any) -> list[str]:
        found = meaning.json(
            "semantic_search", **{"query": "music of an orchestra", "min_similarity": 0, **asked}
        )
        return [each["name"] for each in found["entities"]]

    assert len(names()) == 3
    assert names(limit=1) == names()[:1]
    assert names(entity_types=["Database", "nothing"]) == ["Postgres"]
    assert names(min_similarity=1) == []
    assert names(query="rows", semantic_weight=0)[0] == "Postgres"
    by_meaning = meaning.json(
        "semantic_search", query="rows", hybrid_search=False, min_similarity=0
    )
    assert all(each["score"] == each["similarity"] for each in by_meaning["scores"])


def test_dates_and_versions_of_entities_and_relations_agree_with_their_history(
    memento: Any,
) -> None:
    memento("create_relations", relations=[USES])
    memento("add_observations", observations=[{"entityName": "Aurora", "contents": ["is old"]}])
    moment = now()
    time.sleep(1.1)  # times in notes are to the second
    memento(
        "create_relations", relations=[{"from": "Aurora", "to": "Ann", "relationType": "led by"}]
    )
    memento("add_observations", observations=[{"entityName": "Postgres", "contents": ["is slow"]}])
    past = {
        name: memento.json("get_entity_history", entityName=name) for name in ("Aurora", "Postgres")
    }
    [uses] = memento.json("get_relation_history", **USES)
    assert [len(each) for each in past.values()] == [2, 2]
    for tool, asked, count in (
        ("get_decayed_graph", {}, 2),
        ("semantic_search", {"query": "serves the interface, stores rows"}, 2),
        ("get_graph_at_time", {"timestamp": moment}, 1),
    ):
        graph = memento.json(tool, **asked)
        found = {each["name"]: each for each in graph["entities"]}
        assert (
            found["Aurora"] == past["Aurora"][1]
            and found["Postgres"] == past["Postgres"][count - 1]
        ), tool
        [relation] = [each for each in graph["relations"] if each["to"] == "Postgres"]
        assert relation["metadata"] == uses["metadata"]
    assert memento.json("get_relation", **USES)["metadata"] == uses["metadata"]
    assert uses["metadata"] == {"createdAt": uses["createdAt"], "updatedAt": uses["validFrom"]}
    memento.store.undo("graph/Postgres")
    memento.store.undo(
        memento.store.next_to_undo(undone=True)
    )  # and all is as it was when it was read
    assert len(memento.json("get_entity_history", entityName="Postgres")) == 4


@pytest.mark.parametrize("wrong", [{"strength": 1.2}, {"confidence": -0.1}, {"strength": 90}])
def test_strength_and_confidence_outside_0_to_1_are_refused(
    memento: Any, vault: Path, wrong: dict[str, float]
) -> None:
    before = (vault / "graph/Aurora.md").read_bytes()
    assert memento("create_relations", relations=[{**USES, **wrong}]).failed
    assert memento("update_relation", relation={**USES, **wrong}).failed
    said = [{"entityName": "Aurora", "contents": ["sings"], **wrong}]
    assert memento("add_observations", observations=said).failed
    assert (vault / "graph/Aurora.md").read_bytes() == before


def test_a_repeated_relation_is_updated(memento: Any, vault: Path) -> None:
    weighed = {**USES, "strength": 0.9, "confidence": 0.5, "updatedAt": now() - 9 * DAY}
    memento("create_relations", relations=[weighed, {**USES, "to": "Ann", "strength": 0.1}])
    created = memento.json("get_relation", **USES)["metadata"]["createdAt"]
    both = [{**USES, "strength": 0.2}, {**USES, "to": "Ann", "strength": 0.3}]
    assert len(memento.json("create_relations", relations=both)) == 2
    told = memento.json("get_relation", **USES)
    assert (told["strength"], told["confidence"], told["metadata"]["createdAt"]) == (
        0.2,
        0.5,
        created,
    )
    assert told["metadata"]["updatedAt"] > created
    assert memento.json("get_relation", **{**USES, "to": "Ann"})["strength"] == 0.3
    assert (vault / "graph/Aurora.md").read_text().count("- uses [[") == 2
    assert memento.json("create_relations", relations=[USES]) == []
