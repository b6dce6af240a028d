"""The face of Supermemento: the graph's tools as Memento has them, and six for statements and documents of a tag."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from simplemem.features.documents.memories import memory_service
from simplemem.note import dates
from simplemem.profiles.registry import built_in_profiles, choose_tools

Contract = Callable[..., Any]
GUIDE = "# Release guide\n\nFreeze the ledger with the amberlock switch.\n\nI prefer releases on Tuesdays.\n"
SECRET = "I keep the spare key under the zinnia pot."


@pytest.fixture
def ask(contract: Contract) -> Any:
    asking = contract("supermemento")
    for content in ("I live in Berlin.", "I moved to Lisbon.", "I prefer window seats."):
        asking.json("ingest_text", content=content, container_tag="ann", title=content)
    asking.json("ingest_text", content=GUIDE, container_tag="ann", title="The release guide")
    asking.json(
        "ingest_text",
        content=f"The locksmith's letter.\n\n{SECRET}",
        container_tag="maria",
        title="Letter",
    )
    asking.json("ingest_text", content=SECRET, container_tag="maria", title="Key")
    return asking


def test_the_tools_of_the_graph_are_those_of_memento() -> None:
    own_tools, tools_of_memento = (
        {tool.name: tool for tool in choose_tools(built_in_profiles()[name])}
        for name in ("supermemento", "memento")
    )
    shared = (
        "create_entities",
        "add_observations",
        "create_relations",
        "search_nodes",
        "read_graph",
    )
    for name in shared:
        listed = deepcopy(own_tools[name].listing())
        assert listed["inputSchema"]["properties"].pop("container_tag")
        assert listed == tools_of_memento[name].listing()
    assert len(own_tools) == 11
    assert all(tool.output for tool in own_tools.values())


def test_without_a_word_of_statements_a_search_by_meaning_is_memento_s(
    ask: Any, contract: Contract, vault: Path
) -> None:
    entities = [{"name": "Ada", "entityType": "person", "observations": ["likes engines"]}]
    ask.json("create_entities", entities=entities)
    memento = contract("memento")
    for more in (
        {},
        {"min_similarity": 0.0},
        {"limit": 0},
        {"entity_types": ["person"]},
        {"query": None},
    ):
        answers = [
            profile("semantic_search", **{"query": "engines", **more}) for profile in (ask, memento)
        ]
        assert answers[0].failed == answers[1].failed
        assert len({answer.text.partition('"timeTaken"')[0] for answer in answers}) == 1
    found = ask("semantic_search", query="window seats", container_tag="ann", min_similarity=0.0)
    assert (
        json.loads(found.text) == found.data
        and {"entities", "relations", "scores", "chunks"} <= found.data.keys()
    )
    assert found.data["memories"][0]["memory"] == "I prefer window seats."
    for search_mode, empty in (("memory", "chunks"), ("rag", "memories")):
        assert not ask(
            "semantic_search", query="window seats ledger", search_mode=search_mode
        ).data[empty]
    more: Any = {"container_tag": "ann", "memory_types": ["fact"], "include_expired": True}
    typed = ask("semantic_search", query="where do I live", **more)
    latest = {row["memory"]: row["is_latest"] for row in typed.data["memories"]}
    assert latest == {"I live in Berlin.": False, "I moved to Lisbon.": True}


def test_which_entities_were_found_is_counted_beside_the_notes(ask: Any, vault: Path) -> None:
    ask.json(
        "create_entities",
        entities=[{"name": "Ada", "entityType": "person", "observations": ["likes engines"]}],
    )
    original_files = {file: file.read_bytes() for file in vault.rglob("*.md")}
    ask.json("search_nodes", query="ENGINES")
    ask.json("semantic_search", query="engines", min_similarity=0.0)
    ask.json("search_nodes", query="nothing of that")
    lines = [
        json.loads(line)
        for line in (vault / ".simplemem/state/found.jsonl").read_text().splitlines()
    ]
    assert [line["entities"] for line in lines] == [["Ada"]] * 2 and all(
        line["at"] for line in lines
    )
    assert original_files == {file: file.read_bytes() for file in vault.rglob("*.md")}


def test_a_text_that_asks_to_forget_is_no_document(ask: Any, vault: Path) -> None:
    for statement in ("I prefer window seats.", ""):
        answer = ask.json(
            "ingest_text", content="Forget that I prefer window seats.", container_tag="ann"
        )
        assert [memory["memory"] for memory in answer["memories"]] == (
            [statement] if statement else []
        )
        assert answer["warnings"] == (
            [] if statement else ["nothing was forgotten: no fact matches"]
        )
        assert not answer["id"] and not [*vault.glob("documents/ann/Forget*")]
    assert ask.json("list_memories", container_tag="ann")["total"] == 2


def test_a_list_has_what_holds_page_by_page(ask: Any) -> None:
    page = ask.json("list_memories", container_tag="ann", limit=2)
    rest = ask.json("list_memories", container_tag="ann", limit=2, cursor=page["next_cursor"])
    texts = [row["memory"] for row in (*page["memories"], *rest["memories"])]
    assert sorted(texts) == [
        "I moved to Lisbon.",
        "I prefer releases on Tuesdays.",
        "I prefer window seats.",
    ]
    assert page["total"] == 3 and rest["next_cursor"] is None
    memories = ask.json("list_memories", container_tag="ann", include_expired=True)["memories"]
    rows = {row["memory"]: row for row in memories}
    old, new = rows["I live in Berlin."], rows["I moved to Lisbon."]
    assert (old["status"], old["is_latest"]) == ("superseded", False)
    assert (old["superseded_by"], new["updates"]) == (new["id"], old["id"])
    drawn = rows["I prefer releases on Tuesdays."]
    assert (
        drawn["source_doc_id"].startswith("doc_")
        and drawn["confidence"] == drawn["base_confidence"] == 1
    )
    assert drawn["forgotten_at"] > drawn["valid_from"] and new["forgotten_at"] is None
    assert drawn["container_tag"] == "ann"
    typed = ask.json("list_memories", container_tag="ann", memory_type="preference")
    assert {row["memory_type"] for row in typed["memories"]} == {"preference"} and typed[
        "total"
    ] == 2
    for wrong in (
        {"memory_type": "nonsense"},
        {"limit": 0},
        {"limit": 1001},
        {"cursor": "x"},
        {"container_tag": None},
    ):
        assert ask("list_memories", **{"container_tag": "ann", **wrong}).code == "invalid"


def test_a_search_of_everything_tells_whose_each_result_is(ask: Any) -> None:
    found = ask("superrag_search", query="how is the ledger frozen", container_tag="ann")
    assert json.loads(found.text) == found.data and found.data["search_mode"] == "hybrid"
    [chunk] = [
        row
        for row in found.data["results"]
        if row["kind"] == "chunk" and "amberlock" in row["text"]
    ]
    assert chunk["source"]["title"] == "The release guide" and chunk["container_tag"] == "ann"
    steps = {step["step"]: step for step in found.data["steps"]}
    assert (
        steps["hyde"] == {"step": "hyde", "used": False, "why": "no model is configured"}
        and steps["rerank"]["used"]
    )
    small = ask(
        "superrag_search", query="ledger seats Lisbon", container_tag="ann", budget_tokens=12
    ).data
    assert small["tokens"] <= 12 and small["left_out"] > 0
    free = ask("superrag_search", query="spare key ledger").data["results"]
    assert {row["container_tag"] for row in free} == {"ann", "maria"}
    for wrong in ({"search_mode": "all"}, {"limit": 0}, {"limit": "many"}, {"budget_tokens": 0}):
        assert ask("superrag_search", query="x", **wrong).code == "invalid"


@pytest.mark.parametrize(
    "tag", ["ann", "Maria", "maria ", "mari", "", "ann/../maria", "*", "default"]
)
def test_no_tool_says_anything_of_another_tag(ask: Any, tag: str) -> None:
    question = {"query": "where is the spare key", "include_expired": True, "min_similarity": 0.0}
    for tool, more in (
        *(("list_memories", {"include_expired": True}), ("get_user_profile", {"regenerate": True})),
        *(("superrag_search", {"query": "spare key scope:maria"}), ("semantic_search", question)),
        ("ingest_text", {"content": "My hat is red.", "title": "Key"}),
    ):
        assert "zinnia" not in str(ask(tool, container_tag=tag, **more))
    assert "zinnia" in ask("superrag_search", query="spare key", container_tag="maria").text


def test_a_profile_says_what_holds_and_is_a_note(ask: Any, vault: Path) -> None:
    profile = ask.json("get_user_profile", container_tag="ann")
    assert (
        "I moved to Lisbon." in profile["static"] and "I live in Berlin." not in profile["static"]
    )
    assert len(profile["sources"]["static"]) == len(profile["static"]) and profile["dynamic"] == []
    assert "I moved to Lisbon" in (vault / "profiles/ann.md").read_text()
    assert ask.json("get_user_profile", container_tag="nobody")["static"] == []


def entity(name: str, *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": "person", "observations": [*observations]}


def test_a_search_in_a_container_finds_no_entity_of_another(ask: Any) -> None:
    ask.json(
        "create_entities",
        container_tag="maria",
        entities=[entity("Dr Quill", "treats the knee of Maria")],
    )
    ask.json(
        "create_entities",
        container_tag="ann",
        entities=[entity("Dr Oakes", "treats the knee of Ann")],
    )
    ask.json("create_entities", entities=[entity("Dr Everyone", "treats every knee")])
    question = {"query": "who treats the knee", "min_similarity": 0.0}

    def found(tool: str, **more: Any) -> set[str]:
        answer = str(ask(tool, **question | more).data)
        return {name for name in ("Quill", "Oakes", "Everyone") if name in answer}

    for tag, names in (
        ("ann", {"Oakes"}),
        ("maria", {"Quill"}),
        ("nobody", set()),
        ("default", {"Everyone"}),
    ):
        assert found("semantic_search", container_tag=tag) == names
        assert found("semantic_search", container_tag=tag, search_mode="hybrid") == names
        superrag = ask("superrag_search", query=question["query"], container_tag=tag)
        entities = [row for row in superrag.data["results"] if row["kind"] == "entity"]
        assert {row["id"].removeprefix("Dr ") for row in entities} == names
        assert {row["container_tag"] for row in entities} <= {tag}
    assert found("semantic_search") == {"Quill", "Oakes", "Everyone"}


def test_two_containers_have_an_entity_of_one_name_each(ask: Any, vault: Path) -> None:
    for tag, fact in (("maria", "lives in the lighthouse"), ("ann", "lives in the mill")):
        created = ask.json("create_entities", container_tag=tag, entities=[entity("Mum", fact)])
        assert [entity_row["name"] for entity_row in created] == ["Mum"]
        ask.json("create_entities", container_tag=tag, entities=[entity(f"Cat of {tag}")])
        ask.json("create_relations", container_tag=tag, relations=[
            {"from": "Mum", "to": f"Cat of {tag}", "relationType": "feeds"},
            {"from": f"Cat of {tag}", "to": "Mum", "relationType": "loves"},
        ])  # fmt: skip
        ask.json("add_observations", container_tag=tag, observations=[
            {"entityName": "Mum", "contents": [f"is the mother of {tag}"]},
        ])  # fmt: skip

    for tag, fact, other in (("maria", "lighthouse", "ann"), ("ann", "mill", "maria")):
        for tool, more in (
            ("read_graph", {}),
            ("search_nodes", {"query": "mum"}),
            ("semantic_search", {"query": "where does Mum live", "min_similarity": 0.0}),
        ):
            answer = ask.json(tool, container_tag=tag, **more)
            mums = [entity_row for entity_row in answer["entities"] if entity_row["name"] == "Mum"]
            assert [entity_row["observations"] for entity_row in mums] == [
                [f"lives in the {fact}", f"is the mother of {tag}"]
            ]
            ties = {
                (relation["from"], relation["relationType"], relation["to"])
                for relation in answer["relations"]
            }
            assert ties == {("Mum", "feeds", f"Cat of {tag}"), (f"Cat of {tag}", "loves", "Mum")}
            assert f"of {other}" not in str(answer)
    stray = ask(
        "add_observations",
        container_tag="ben",
        observations=[{"entityName": "Mum", "contents": ["x"]}],
    )
    assert stray.failed and "not found" in stray.text
    assert ask("create_entities", container_tag=" ann", entities=[entity("Aunt")]).failed


def test_any_number_of_containers_have_an_entity_of_one_name(ask: Any) -> None:
    for number in range(8):
        tag = f"user {number}"
        created = ask.json(
            "create_entities", container_tag=tag, entities=[entity("Vega", f"is cat {number}")]
        )
        assert len(created) == 1
        ties = [{"from": "Vega", "to": f"Toy {number}", "relationType": "hunts"}]
        assert ask.json("create_relations", container_tag=tag, relations=ties) == ties
        ask.json("create_relations", container_tag=tag, relations=[
            {"from": f"Toy {number}", "to": "Vega", "relationType": "belongs to"},
        ])  # fmt: skip
    for number in range(8):
        graph = ask.json("read_graph", container_tag=f"user {number}")
        assert [entity_row["observations"] for entity_row in graph["entities"]] == [
            [f"is cat {number}"]
        ]
        ties = {(relation["from"], relation["to"]) for relation in graph["relations"]}
        assert ties == {("Vega", f"Toy {number}"), (f"Toy {number}", "Vega")}


def test_a_memory_without_relations_is_listed_without_relations(contract: Contract) -> None:
    asking = contract("supermemento")
    for content in ("I live in Berlin.", "My favourite colour is green.", "I moved to Lisbon."):
        asking.json("ingest_text", content=content, container_tag="ann", title=content)
    (asking.vault / "atoms/ann/By hand.md").write_text("Collects stamps.\n", encoding="utf-8")
    listed = asking.json("list_memories", container_tag="ann", include_expired=True)["memories"]
    rows = {row["memory"]: row for row in listed}
    relations = ("updates", "extends", "superseded_by", "derived_from")

    for row in listed:
        assert row["id"] not in (*[row[name] for name in relations], row["source_doc_id"])
    for memory in ("My favourite colour is green.", "Collects stamps."):
        assert not any(rows[memory][name] for name in relations), rows[memory]
    assert rows["Collects stamps."]["source_doc_id"] is None
    assert rows["My favourite colour is green."]["source_doc_id"].startswith("doc_")
    assert rows["I moved to Lisbon."]["updates"] == rows["I live in Berlin."]["id"]
    assert rows["I live in Berlin."]["superseded_by"] == rows["I moved to Lisbon."]["id"]


@pytest.fixture
def day(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the clock of this process to nine o'clock of a day."""

    def set_to(day: str) -> None:
        monkeypatch.setenv("SIMPLEMEM_NOW", f"{day}T09:00:00Z")
        dates._fixed.cache_clear()

    yield set_to
    monkeypatch.undo()
    dates._fixed.cache_clear()


def test_a_disputed_fact_is_shown_behind_what_disputes_it_in_every_tool(
    contract: Contract, day: Any
) -> None:
    asking = contract("supermemento")
    old, new = "My dentist is Ruth Marsh.", "I have a new dentist."
    remembered = memory_service(asking.store)
    day("2026-01-10")
    remembered.add(old, "ann")
    day("2026-06-20")
    remembered.add(new, "ann")
    day("2026-11-22")

    rows = asking.json("list_memories", container_tag="ann")["memories"]
    assert [row["memory"] for row in rows] == [new, old]
    assert (rows[0]["status"], rows[0]["disputed"], rows[0]["disputed_by"]) == (
        "active",
        None,
        None,
    )
    assert (rows[1]["status"], rows[1]["disputed"]) == ("disputed", "2026-06-20T09:00:00Z")
    assert (
        rows[1]["disputed_by"] == rows[0]["id"]
        and not rows[1]["is_latest"]
        and rows[1]["confidence"] == 0.5
    )

    results = asking.json("superrag_search", query="who is my dentist", container_tag="ann")[
        "results"
    ]
    assert [result["text"] for result in results] == [new, old]
    assert (
        results[1]["disputed"] == "2026-06-20T09:00:00Z"
        and results[1]["disputed_by"] == rows[0]["id"]
    )
    assert results[0]["score"] >= results[1]["score"]
    one = asking.json("superrag_search", query="who is my dentist", container_tag="ann", limit=1)[
        "results"
    ]
    assert [memory["text"] for memory in one] == [new]

    found = asking.json("semantic_search", query="my dentist is Ruth Marsh", container_tag="ann")[
        "memories"
    ]
    assert [row["memory"] for row in found] == [new, old]

    profile = asking.json("get_user_profile", container_tag="ann")
    assert profile["static"] == [new, f"{old} (disputed since 2026-06-20)"]
    assert (
        f"- {old} (disputed since 2026-06-20) [[" in (asking.vault / "profiles/ann.md").read_text()
    )


def test_a_passage_that_says_what_has_ended_is_marked_as_outdated(
    contract: Contract, day: Any
) -> None:
    asking = contract("supermemento")
    day("2026-01-10")
    letter = "# Letter\n\nThe weather is kind. I have a parking permit.\n"
    asking.json("ingest_text", content=letter, container_tag="ann", title="Letter")
    note = asking.vault / "atoms/ann/Permit.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("---\nvalid_to: 2026-03-31\n---\nI have a parking permit.\n")
    asking.store.sync()
    query = {"query": "do I have a parking permit", "container_tag": "ann", "search_mode": "rag"}
    [passage] = asking.json("superrag_search", **query)["results"]
    assert "outdated" not in passage

    day("2026-06-20")
    [passage] = asking.json("superrag_search", **query)["results"]
    assert passage["outdated"] == "2026-03-31T23:59:59Z"
    assert passage["outdated_sentences"] == ["I have a parking permit."]


def test_a_passage_that_says_what_was_superseded_is_marked_as_outdated(
    contract: Contract, day: Any
) -> None:
    asking = contract("supermemento")
    letter = (
        "# Letter\n\nThe weather is kind. I live in Hamburg. The alarm code of the hut is 4711.\n"
    )
    day("2026-01-10")
    asking.json("ingest_text", content=letter, container_tag="ann", title="Letter")
    query = {"query": "where do I live in Hamburg", "container_tag": "ann", "search_mode": "rag"}
    [passage] = asking.json("superrag_search", **query)["results"]
    assert "outdated" not in passage and "disputed" not in passage

    day("2026-06-20")
    memory_service(asking.store).add("I moved to Leipzig.", "ann")
    memory_service(asking.store).add("We changed the alarm code of the hut.", "ann")
    memory_service(asking.store).add("I live in Rome.", "bob")
    [passage] = asking.json("superrag_search", **query)["results"]
    assert passage["outdated"] == passage["disputed"] == "2026-06-20T09:00:00Z"
    assert passage["outdated_sentences"] == ["I live in Hamburg."]
    assert passage["disputed_sentences"] == ["The alarm code of the hut is 4711."]
    [chunk] = asking.json("semantic_search", min_similarity=0, **query)["chunks"]
    assert chunk["outdated"] == "2026-06-20T09:00:00Z"


def test_a_passage_is_outdated_by_a_later_document(contract: Contract, day: Any) -> None:
    asking = contract("supermemento")
    plans = {"2026-01-10": "3 March", "2026-02-10": "17 March"}
    for date, deadline in plans.items():
        day(date)
        content = f"# Plan of {date}\n\nThe deadline of Apollo is {deadline}.\n"
        asking.json("ingest_text", content=content, container_tag="ann", title=f"Plan {date}")
    results = asking.json("superrag_search", query="deadline of Apollo", container_tag="ann")[
        "results"
    ]
    marks = {result["source"]["title"]: result.get("outdated") for result in results}
    assert marks == {"Plan 2026-01-10": "2026-02-10T09:00:00Z", "Plan 2026-02-10": None}


def test_a_passage_that_answers_holds_no_comment(ask: Any) -> None:
    text = "# Crane\n\nThe zinc crane <!-- secret --> lifts ten tons."
    ask.json("ingest_text", content=text, container_tag="ann", title="Crane")
    results = ask.json(
        "superrag_search", query="zinc crane", container_tag="ann", search_mode="rag"
    )["results"]
    assert "The zinc crane lifts ten tons." in results[0]["text"]


def test_a_score_says_how_good_a_hit_is_on_its_own(ask: Any) -> None:
    """The best hit of a question that it holds half of has no full score."""
    whole, half = (
        ask.json(
            "superrag_search", query=query, container_tag="ann", search_mode="rag", rerank=False
        )["results"]
        for query in (
            "freeze the ledger with the amberlock switch",
            "freeze the ledger and paint the barn door green",
        )
    )
    assert whole[0]["source"]["title"] == half[0]["source"]["title"] == "The release guide"
    assert 1 >= whole[0]["score"] > half[0]["score"] > 0
    assert half[0]["score"] < 0.8
    for results in (whole, half):
        scores = [result["score"] for result in results]
        assert scores == sorted(scores, reverse=True)


def test_a_search_begins_with_what_a_user_pinned(ask: Any, vault: Path) -> None:
    for user, rule in (("ann", "Only window seats."), ("maria", "Nothing with zinnias.")):
        path = vault / "elsewhere" / f"Rule of {user}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\nscope: {user}\npinned: true\n---\n{rule}\n", encoding="utf-8")
    constraints = vault / "profiles" / "ann.md"
    constraints.parent.mkdir(exist_ok=True)
    constraints.write_text(
        "---\nscope: ann\n---\n## Constraints\n\n- no walnuts\n", encoding="utf-8"
    )

    for tool in ("superrag_search", "semantic_search"):
        found = ask.json(tool, query="where is the train", container_tag="ann")
        assert next(iter(found)) == "pinned"
        texts = [(row["kind"], row["text"]) for row in found["pinned"]]
        assert [kind for kind, _ in texts] == ["constraint", "pinned"]
        assert "no walnuts" in texts[0][1] and texts[1][1] == "Only window seats."
