"""What a question finds among statements, documents and the graph of a scope, and what it tells of how it went about it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rerank_service import RerankService

from simplemem.errors import Invalid, TooLong
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.service import conversation_service
from simplemem.features.documents.graph_walk import walk_from_question
from simplemem.features.documents.memory_rows import memory_rows
from simplemem.features.documents.recall import RecallAnswer, RecallRequest, recall
from simplemem.features.documents.service import document_service
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.service import fact_service
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str], Path]
GUIDE = "# Release guide\n\nFreeze the ledger with the amberlock switch.\n\nI prefer releases on Tuesdays.\n"


def tell(store: EnhancedStore, *statements: str, scope: str = "ann") -> None:
    for statement in statements:
        fact_service(store).add(scope, [NewFact(statement)])


def ask(store: EnhancedStore, query: str, scope: str | None = "ann", **more: Any) -> RecallAnswer:
    found = recall(store, RecallRequest(query, scope, **more))
    scores = [hit.result["score"] for hit in found.hits]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    steps = [step["step"] for step in found.steps]
    assert steps == "slots hyde vectors graph rerank dedupe budget".split()
    return found


def texts(found: RecallAnswer, *kinds: str) -> list[str]:
    return [hit.result["text"] for hit in found.hits if not kinds or hit.result["kind"] in kinds]


def step(found: RecallAnswer, name: str) -> tuple[bool, str]:
    return next((step["used"], step["why"]) for step in found.steps if step["step"] == name)


def told_by_hand(write: Write, name: str, subject: str, relation: str, value: str) -> None:
    slot = f"subject: {subject}\nrelation: {relation}\nobject: {value}\n"
    write(
        f"atoms/ann/{name}.md",
        f"---\ntype: atom\nid: {name}\nscope: ann\n{slot}---\n{subject} {relation} {value}.\n",
    )


def test_a_slot_that_a_question_names_comes_first_whatever_words_it_was_told_in(
    plain_store: EnhancedStore,
) -> None:
    tell(plain_store, "I live in Berlin.", "Where do I live well? In books.", "I moved to Lisbon.")
    found = ask(plain_store, "where do I live")
    assert texts(found)[0] == "I moved to Lisbon." and step(found, "slots")[0]
    assert "I live in Berlin." not in texts(found)
    hits = ask(plain_store, "where do I live", include_expired=True).hits
    is_latest = {hit.result["text"]: hit.result["is_latest"] for hit in hits}
    assert is_latest["I live in Berlin."] is False and is_latest["I moved to Lisbon."] is True
    assert not step(ask(plain_store, "what shall we eat"), "slots")[0]


@pytest.mark.parametrize(
    ("mode", "kinds"), [("memory", {"memory"}), ("rag", {"chunk"}), ("hybrid", {"memory", "chunk"})]
)
def test_a_mode_says_what_may_answer(store: EnhancedStore, mode: str, kinds: set[str]) -> None:
    tell(store, "I prefer window seats on flights.", "My sister is called Ingrid.")
    document_service(store).ingest_text(GUIDE, "ann", "The release guide")
    store.sync()
    found = ask(store, "seats on flights and how the ledger is frozen", mode=mode)
    assert {hit.result["kind"] for hit in found.hits} == kinds
    for hit in found.hits:
        if hit.result["kind"] == "chunk":
            source = hit.result["source"]
            assert (
                source["title"] == "The release guide"
                and source["name"] == "documents/ann/The release guide"
            )
    assert step(found, "vectors")[0]
    typed = ask(store, "seats sister", mode="memory", memory_types=["preference"])
    assert {hit.result["memory_type"] for hit in typed.hits} == {"preference"}


def test_names_lead_on_for_two_steps(plain_store: EnhancedStore, write: Write) -> None:
    names = ["Maria", "Acme", "Narvik", "Bergen", "Oslo"]
    for k, (subject, value) in enumerate(pairwise(names)):
        told_by_hand(write, f"way {k}", subject, "leads to", value)
    plain_store.sync()
    found = ask(plain_store, "Tell me of MARIA")
    assert [(e["from"], e["to"]) for e in found.edges] == [
        ("Maria", "Acme"),
        ("Acme", "Narvik"),
        ("Narvik", "Bergen"),
    ]
    assert texts(found) == [
        "Maria leads to Acme.",
        "Acme leads to Narvik.",
        "Narvik leads to Bergen.",
    ]
    assert not ask(plain_store, "the and of").edges


def test_entities_of_the_graph_answer_where_no_scope_is_asked(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("atoms/bob/The cellar is damp.md", "The cellar is damp and full of zinnias.\n")
    graph = graph_of(plain_store)
    graph.create_entities(
        [Entity("Ada", "person", (Observation("writes notes"),)), Entity("Engine", "machine")]
    )
    graph.create_relations(
        [Relation("Ada", "programs", "Engine"), Relation("Ada", "fears", "The cellar is damp")]
    )
    tell(plain_store, "The Engine stands in Turin.", scope="default")
    found = ask(plain_store, "what does ada do", "default")
    assert {"Ada; writes notes", "Engine"} <= set(texts(found, "entity")) and "zinnias" not in str(
        found
    )
    assert ("Ada", "programs", "Engine") in [
        (e["from"], e["relation"], e["to"]) for e in found.edges
    ]
    assert {hit.result["container_tag"] for hit in ask(plain_store, "ada", None).hits} >= {
        "default"
    }
    assert (
        not ask(plain_store, "what does ada do", "ann").hits
        and not ask(plain_store, "ada", mode="rag").hits
    )


def test_what_a_conversation_kept_is_found(plain_store: EnhancedStore) -> None:
    conversation_service(plain_store).record(
        new_exchange("My API key for the tide table service is TT-4471-QX.", topic="Tides")
    )
    assert any(
        "TT-4471-QX" in text
        for text in texts(ask(plain_store, "tide table service key", "default"))
    )
    assert not ask(plain_store, "tide table service key").hits


def test_the_same_is_said_once_in_a_scope(plain_store: EnhancedStore, write: Write) -> None:
    write("documents/ann/Bells.md", "---\ntype: document\n---\nThe bell rings at noon.\n")
    tell(plain_store, "The bell rings at noon")
    tell(plain_store, "The bell rings at noon", scope="bob")
    fact_service(plain_store).add(
        "ann", [NewFact("The gate opens at one")], source="documents/ann/Bells.md"
    )
    everybody = ask(plain_store, "when does the bell ring", None).hits
    assert sorted(hit.result["container_tag"] for hit in everybody[:2]) == ["ann", "bob"]
    found = ask(plain_store, "when does the bell ring")
    assert texts(found) == ["The bell rings at noon"] or step(found, "dedupe")[0]
    gates = ask(plain_store, "when does the gate open").hits
    gate = next(hit for hit in gates if hit.fact and "gate" in hit.fact.statement)
    assert (
        gate.result["source"]["title"] == "Bells"
        and gate.result["source"]["name"] == "documents/ann/Bells"
    )


def test_a_budget_is_kept_and_what_it_left_out_is_counted(plain_store: EnhancedStore) -> None:
    tell(
        plain_store, *(f"The ferry number {k} stops at pier {k} " + "in fog " * k for k in range(6))
    )
    whole, small = (
        ask(plain_store, "ferry pier fog"),
        ask(plain_store, "ferry pier fog", max_tokens=40),
    )
    assert small.tokens <= 40 < whole.tokens and 0 < small.left_out == len(whole.hits) - len(
        small.hits
    )
    assert whole.left_out == 0 and step(small, "budget") == (True, f"{small.left_out} left out")
    assert len(ask(plain_store, "ferry pier fog", limit=2).hits) == 2


def test_likeness_is_asked_for_on_the_scale_of_the_graph(store: EnhancedStore) -> None:
    tell(
        store,
        "I bake rye bread every Sunday.",
        "The tower is forty metres high.",
        "I moved to Lisbon.",
    )
    store.sync()
    assert texts(ask(store, "baking bread", min_similarity=0.7)) == [
        "I bake rye bread every Sunday."
    ]
    assert (
        len(ask(store, "baking bread", min_similarity=0.0).hits) == 3
        and not ask(store, "baking bread", min_similarity=1.0).hits
    )
    assert texts(ask(store, "where do I live", min_similarity=0.99)) == ["I moved to Lisbon."], (
        "what fills a slot is meant"
    )


@pytest.mark.parametrize(
    "query",
    [
        "",
        '"',
        "NEAR(",
        "\0",
        "\ud800",
        "x" * 20_000,
        "' OR 1=1 --",
        "scope:bob",
        "path:atoms/bob",
        "*",
    ],
)
def test_a_query_is_words_and_never_leaves_its_scope(
    plain_store: EnhancedStore, query: str
) -> None:
    tell(plain_store, "The spare key lies under the zinnia pot.", scope="bob")
    tell(plain_store, "I keep bees.")
    for mode in ("hybrid", "memory", "rag"):
        assert "zinnia" not in str(ask(plain_store, query, mode=mode))
    assert not ask(plain_store, "zinnia", "BOB").hits and not ask(plain_store, "zinnia", "bo").hits
    for scope in ("", " bob", "bob\n", "x" * 300):
        with pytest.raises((Invalid, TooLong)):
            ask(plain_store, query, scope)


def test_rows_tell_no_id_of_another_scope(plain_store: EnhancedStore, write: Write) -> None:
    tell(plain_store, "I live in Berlin.", "I moved to Lisbon.")
    tell(plain_store, "I own a loom.", scope="bob")
    write(
        "atoms/ann/Likes tea.md",
        '---\nupdates: "[[I own a loom]]"\nsource: "[[nowhere]]"\n---\nLikes tea.\n',
    )
    plain_store.sync()
    rows = {
        row["memory"]: row
        for row in memory_rows(plain_store, fact_service(plain_store).facts("ann", expired=True))
    }
    assert rows["Likes tea."]["updates"] is rows["Likes tea."]["source_doc_id"] is None
    assert rows["I moved to Lisbon."]["updates"] == rows["I live in Berlin."]["id"]
    assert rows["I live in Berlin."]["superseded_by"] == rows["I moved to Lisbon."]["id"]
    assert not rows["I live in Berlin."]["is_latest"]


def test_the_row_of_a_fact_whose_time_is_over_says_that_it_has_ended(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("atoms/ann/Permit.md", "---\nvalid_to: 2020-01-31\n---\nI have a parking permit.\n")
    plain_store.sync()
    facts = fact_service(plain_store)
    assert facts.facts("ann") == []
    [row] = memory_rows(plain_store, facts.facts("ann", expired=True))
    assert (row["status"], row["is_latest"]) == ("ended", False)


def test_what_followed_from_a_fact_that_has_ended_is_not_current(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("atoms/ann/Permit.md", "---\nvalid_to: 2020-01-31\n---\nI have a parking permit.\n")
    write(
        "atoms/ann/Car.md",
        '---\nmemory_type: derived\nderived_from: ["[[Permit]]"]\n---\nI park in town.\n',
    )
    plain_store.sync()
    assert fact_service(plain_store).facts("ann") == []


def test_a_reranker_that_the_settings_name_orders_and_is_named(vault: Path) -> None:
    with RerankService() as service:
        rerank = {"provider": "http", "url": service.url}
        with EnhancedStore(
            vault, Settings.model_validate({"embed": {"provider": "none"}, "rerank": rerank})
        ) as store:
            tell(store, "The ferry stops in fog.", "The ferry stops at night.")
            assert step(ask(store, "when does the ferry stop", rerank=False), "rerank") == (
                False,
                "not requested",
            )
            used, why = step(ask(store, "when does the ferry stop"), "rerank")
            assert used and why != "words and meaning" and service.requests


def test_names_of_a_question_are_met_in_the_same_order_each_time() -> None:
    names = ["Ada", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida", "Jim", "Kay", "Leo"]
    entities = tuple(Entity(name, "person", path=f"{name}.md") for name in names)
    walk = walk_from_question(" ".join(reversed(names)), [], {}, Graph(entities))
    assert list(walk.scores) == [f"{name}.md" for name in names]
