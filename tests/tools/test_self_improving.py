"""The profile `self-improving`: limits and the texts that clients know. Names and arguments are in tool_lists/self-improving.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from embedding_service import EmbeddingService

Ask = Callable[..., Any]


@pytest.fixture
def ask(asking_with: Callable[..., Ask]) -> Ask:
    return asking_with("self-improving", embed={"provider": "none"})


# -- the graph, strictly


def create(ask: Ask, *names: str, kind: str = "component") -> Any:
    made = [{"name": name, "entityType": kind, "observations": [f"{name} is"]} for name in names]
    return ask("create_entities", entities=made)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"entityType": "thing"}, {"name": ""}, {"name": "x" * 201}),
        *({"observations": []}, {"observations": ["x" * 10_001]}, {"observations": ["fine", " "]}),
    ],
)
def test_what_breaks_a_limit_is_refused_whole(ask: Ask, vault: Path, wrong: dict) -> None:
    good = {"name": "Good", "entityType": "component", "observations": ["x"]}
    refused = ask("create_entities", entities=[good, good | {"name": "Bad"} | wrong])
    assert refused.failed and refused.text.startswith("Error: ")
    assert not (vault / "graph").exists()


def test_the_limits_themselves_are_taken_and_nothing_is_stripped(ask: Ask) -> None:
    facts = ["Vec<List<T>> & <script>alert('x')</script>", "x" * 10_000]
    made = ask(
        "create_entities",
        entities=[{"name": " " + "n" * 200, "entityType": "Error", "observations": facts}],
    )
    assert made.data["entities"] == [
        {"name": "n" * 200, "entityType": "error", "observations": facts}
    ]
    again = ask(
        "create_entities",
        entities=[{"name": "n" * 200, "entityType": "project", "observations": ["other"]}],
    )
    assert again.data == {"entities": [], "existing": ["n" * 200]}
    assert (
        ask("open_nodes", names=["n" * 200] + ["x"] * 49).data["entities"] == made.data["entities"]
    )
    assert ask("open_nodes", names=["x"] * 51).code == "invalid"


def test_relations_to_what_is_not_there_are_told_and_the_others_made(ask: Ask) -> None:
    create(ask, "Aurora", "Postgres")
    good = {"from": "Aurora", "to": "Postgres", "relationType": "uses"}
    made = ask("create_relations", relations=[good, good | {"to": "Nobody"}])
    assert made.data == {
        "relations": [good],
        "skipped": [good | {"to": "Nobody"}],
        "notFound": ["Nobody"],
    }
    assert ask("create_relations", relations=[good]).data["relations"] == []
    assert ask("create_relations", relations=[good | {"to": "Nobody"}]).code == "not_found"
    assert ask("create_relations", relations=[good | {"relationType": "x" * 101}]).code == "invalid"


def test_a_search_of_nodes_goes_by_meaning_and_says_by_what(
    asking_with: Callable[..., Ask],
) -> None:
    ask = asking_with("self-improving")
    create(ask, "Aurora")
    ledger = {
        "name": "Ledger",
        "entityType": "project",
        "observations": ["keeps the invoices of customers"],
    }
    ask("create_entities", entities=[ledger])
    save(ask, "invoices are late")
    ask.in_step()
    found = ask("search_nodes", query="billing accounts", limit=1).data
    assert [entity["name"] for entity in found["entities"]] == ["Ledger"] and 0 < found["entities"][
        0
    ]["score"] <= 1
    assert found["method"].startswith("words and meaning (")
    assert ask("search_nodes", query="x" * 501).code == "invalid"


# -- knowledge


def save(ask: Ask, content: str, kind: str = "insight", **more: Any) -> str:
    return ask(
        "save_knowledge", **{"type": kind, "content": content, "confidence": 0.8, "tags": []} | more
    ).data["id"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "fact"},
        {"confidence": 1.1},
        {"confidence": "often"},
        {"content": None},
        {"tags": 5},
        {"rating": 5},
    ],
)
def test_wrong_arguments_are_an_error_in_words(ask: Ask, vault: Path, wrong: dict) -> None:
    refused = ask(
        "save_knowledge", **{"type": "error", "content": "x", "confidence": 1, "tags": []} | wrong
    )
    assert (
        refused.failed and refused.text.startswith("Error: ") and not (vault / "knowledge").exists()
    )


def test_a_search_is_answered_with_a_json_list_of_entries(ask: Ask) -> None:
    error = save(
        ask, "The pool is exhausted", "error", context="at night", tags=["pg"], verified=True
    )
    again = ask("save_knowledge", type="insight", content="It broke", confidence=1, tags=[])
    assert (
        again.text == f"Knowledge saved with ID: {again.data['id']}" and again.data["same_as"] == []
    )
    assert ask("save_knowledge", type="insight", content="It broke", confidence=1, tags=[]).data[
        "same_as"
    ] == [again.data["id"]]
    fix = save(ask, "Raise the pool", "solution")
    linked = ask("link_knowledge", sourceId=fix, targetId=error, relationship="fixes")
    assert linked.data == {
        "sourceId": fix,
        "targetId": error,
        "relationship": "fixes",
        "changed": True,
    }
    found = ask("search_knowledge", query="pool")
    results = json.loads(found.text)
    assert results == found.data["results"] and found.data["method"] == "words"
    known, other = sorted(results, key=lambda each: each["type"])
    assert other["relatedIds"] == [error] and known["relatedIds"] == []
    assert (known["type"], known["content"], known["context"]) == (
        "error",
        "The pool is exhausted",
        "at night",
    )
    assert (known["confidence"], known["verified"], known["tags"]) == (0.8, True, ["pg"])
    assert known["accessCount"] == 1 and known["lastAccessed"] and known["timestamp"]
    assert [
        each["id"]
        for each in ask("search_knowledge", query="pool", type="solution").data["results"]
    ] == [fix]
    assert ask("search_knowledge", query="pool", minConfidence=0.9).text == "[]"
    missing = ask("link_knowledge", sourceId=fix, targetId="ffffffff")
    assert missing.text.startswith("Error: Knowledge entry not found: ffffffff")


def found(ask: Ask, query: str, **more: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = ask("search_knowledge", query=query, **more).data["results"]
    return results


def test_type_and_content_are_enough_to_save_knowledge(ask: Ask) -> None:
    saved = ask("save_knowledge", type="pattern", content="Retries hide the slow replica")
    assert saved.text == f"Knowledge saved with ID: {saved.data['id']}"
    [entry] = found(ask, "slow replica")
    assert (entry["confidence"], entry["verified"], entry["tags"], entry["context"]) == (
        0.7,
        False,
        [],
        "",
    )


def test_the_same_content_saved_again_updates_its_entry(ask: Ask, vault: Path) -> None:
    first = ask(
        "save_knowledge", type="error", content="The pool is exhausted", confidence=0.4, tags=["pg"]
    )
    again = ask(
        "save_knowledge",
        type="error",
        content="The pool is exhausted",
        confidence=0.9,
        verified=True,
        tags=["pool"],
    )
    assert again.data["id"] == first.data["id"]
    assert again.data["changed"] == ["confidence", "verified", "tags"]
    assert "changed: confidence, verified, tags" in again.text
    assert [path.name for path in (vault / "knowledge").rglob("*.md")] == [
        "the-pool-is-exhausted.md"
    ]
    [entry] = found(ask, "pool exhausted")
    assert (entry["confidence"], entry["verified"], entry["tags"]) == (0.9, True, ["pg", "pool"])

    silent = ask("save_knowledge", type="error", content="The pool is exhausted")
    assert silent.data["id"] == first.data["id"] and silent.data["changed"] == []
    assert found(ask, "pool exhausted")[0]["confidence"] == 0.9
    where = ask(
        "save_knowledge", type="error", content="The pool is exhausted", context="in staging"
    )
    assert (
        where.data["changed"] == ["context"]
        and found(ask, "pool exhausted")[0]["context"] == "in staging"
    )

    others = [
        {"type": "insight", "content": "The pool is exhausted"},
        {"type": "error", "content": "The pool is exhausted!"},
        {"type": "error", "content": "The pool is exhausted", "context": "in production"},
    ]
    assert (
        len({first.data["id"], *(ask("save_knowledge", **other).data["id"] for other in others)})
        == 4
    )


def test_an_entry_that_proves_wrong_is_corrected_in_place(ask: Ask, vault: Path) -> None:
    error = save(ask, "The pool is exhausted", "error")
    fix = save(ask, "Raise pool_size to 50", "solution", context="at night", tags=["pg"])
    ask("link_knowledge", sourceId=fix, targetId=error, relationship="fixes")
    changed = ask(
        "update_knowledge",
        id=fix[:8],
        content="Raise pool_size to 80\n\nand restart.",
        confidence=0.95,
    )
    assert changed.data["id"] == fix and changed.data["changed"] == ["content", "confidence"]
    [entry] = found(ask, "pool_size", type="solution")
    assert (
        entry["content"] == "Raise pool_size to 80\n\nand restart." and entry["confidence"] == 0.95
    )
    assert (entry["context"], entry["tags"], entry["relatedIds"]) == ("at night", ["pg"], [error])

    ask("update_knowledge", id=fix, context="", tags=[], verified=True)
    [entry] = found(ask, "pool_size", type="solution")
    assert (entry["context"], entry["tags"], entry["verified"], entry["relatedIds"]) == (
        "",
        [],
        True,
        [error],
    )
    note = next((vault / "knowledge" / "solution").glob("*.md"))
    before = note.read_bytes()
    same = ask(
        "update_knowledge", id=fix, content="Raise pool_size to 80\n\nand restart.", verified=True
    )
    assert same.data["changed"] == [] and note.read_bytes() == before
    for wrong, code in (
        ({}, "invalid"),
        ({"content": " "}, "invalid"),
        ({"content": "```\nopen"}, "invalid"),
        ({"content": "x" * 10_001}, "too_long"),
        ({"confidence": 2}, "invalid"),
    ):
        refused = ask("update_knowledge", id=fix, **wrong)
        assert (
            refused.code == code
            and refused.text.startswith("Error: ")
            and note.read_bytes() == before
        )
    assert ask("update_knowledge", id="ffffffff", verified=True).code == "not_found"


def test_a_note_of_a_person_keeps_what_is_not_corrected(
    ask: Ask, write: Callable[..., Path]
) -> None:
    note = write(
        "knowledge/error/Mine.md",
        "---\r\nmood: cross # today\r\nconfidence: 0.3\r\n---\r\nWrong.\r\n\r\n## Relations\r\n- fixes [[x]]\r\n",
    )
    ask.in_step()
    assert ask("update_knowledge", id="Mine", content="Right.").data["changed"] == ["content"]
    text = note.read_bytes().decode()
    assert "mood: cross # today\r\n" in text and "Wrong" not in text
    assert text.endswith("---\r\n\r\nRight.\r\n\r\n## Relations\r\n- fixes [[x]]\r\n")


def test_an_entry_is_deleted_and_can_be_brought_back(ask: Ask, vault: Path) -> None:
    wrong = save(ask, "The moon is cheese")
    other = save(ask, "Cheese is yellow")
    ask("link_knowledge", sourceId=other, targetId=wrong, relationship="follows_from")
    gone = ask("delete_knowledge", id=wrong)
    assert gone.text.startswith(f"Knowledge deleted: {wrong}") and gone.data["related"] == [other]
    assert [entry["id"] for entry in found(ask, "moon cheese")] == [other]
    assert ask("delete_knowledge", id=wrong).code == "not_found"
    ask.store.undo(gone.data["version"])
    assert wrong in [entry["id"] for entry in found(ask, "moon cheese")]


@pytest.mark.parametrize(
    "relationship", ["supersedes", "Supersedes", "superseded_by", "superseded by"]
)
def test_to_link_an_entry_as_superseding_another_supersedes_it(ask: Ask, relationship: str) -> None:
    old = save(ask, "Use port 8080 for the gateway", "decision", confidence=0.9)
    new = save(ask, "Use port 9090 for the gateway", "decision", confidence=0.8)
    source, target = (new, old) if relationship.casefold() == "supersedes" else (old, new)
    linked = ask("link_knowledge", sourceId=source, targetId=target, relationship=relationship)
    assert linked.data["superseded"] == [old] and linked.data["changed"]
    results = found(ask, "port of the gateway")
    assert [entry["id"] for entry in results] == [new, old]
    assert results[1]["status"] == "superseded" and results[1]["confidence"] == 0.6
    [gone] = ask("get_superseded_history").data["superseded"]
    assert gone["id"] == old and gone["winner"]["id"] == new and gone["at"]
    again = ask("link_knowledge", sourceId=source, targetId=target, relationship=relationship)
    assert (
        again.data["changed"] is False and found(ask, "port of the gateway")[1]["confidence"] == 0.6
    )

    ask(
        "link_knowledge", sourceId=old, targetId=new, relationship="supersedes"
    )  # the last word counts
    assert [each["id"] for each in ask("get_superseded_history").data["superseded"]] == [new]


def test_an_error_is_found_with_its_solution_and_only_what_is_shown_counts_as_read(
    ask: Ask,
) -> None:
    error = save(ask, "The pool of the billing service is exhausted", "error")
    fix = save(ask, "Raise pool_size to 50", "solution")
    ask("link_knowledge", sourceId=fix, targetId=error, relationship="solved_by")
    [found] = ask("search_knowledge", query="billing service exhausted", limit=1).data["results"]
    assert found["relations"] == [f'"Raise pool_size to 50" ({fix}) solved by this']
    assert ask("get_stats").data["never_read"] == 1
    [other] = ask("search_knowledge", query="pool_size").data[
        "results"
    ]  # the error says less of it: below the floor
    assert other["relations"] == [
        f'this solved by "The pool of the billing service is exhausted" ({error})'
    ]
    assert ask("search_knowledge", query="pool", limit=0).failed


def test_an_analysis_has_the_same_cap_in_data_as_in_text(ask: Ask) -> None:
    for number in range(60):
        save(
            ask,
            f"The cache of the billing service was slow until its limit was raised{'!' * number}",
            confidence=0.3,
        )
    for tool, key in (("generate_insights", "insights"), ("detect_antipatterns", "antipatterns")):
        answer = ask(tool)
        size = len(json.dumps(answer.data))
        assert answer.data[key] and size < 25_000 and size < 1.3 * len(answer.text)
        assert (
            answer.data[key][0]["entries"]
            and answer.data[key][0]["entries"][-1]["id"] in answer.text
        )
    exported = ask("export_graph", format="dot")
    assert ("content" in exported.data) == (exported.data["bytes"] <= 20_000)


# -- what they show together


@pytest.fixture
def full(ask: Ask) -> Ask:
    for number in range(3):
        save(
            ask,
            "The postgres connection pool of billing is exhausted under heavy load" + "!" * number,
            "error",
        )
    save(ask, "Use Postgres for the billing store.", "decision", verified=True, tags=["db"])
    save(ask, "Use MySQL for the billing store.", "decision", confidence=0.3, tags=["db"])
    return ask


def test_statistics_are_json_with_what_was_measured(full: Ask) -> None:
    create(full, "Aurora")
    full("search_knowledge", query="pool")
    stats = full("get_stats")
    assert json.loads(stats.text) == stats.data
    assert stats.data["total"] == 5 and stats.data["by_type"] == {"decision": 2, "error": 3}
    assert (
        stats.data["by_confidence"] == {"high": 4, "medium": 0, "low": 1}
        and stats.data["verified"] == 1
    )
    assert (stats.data["entities"], stats.data["relations"], stats.data["notes"]) == (1, 0, 6)
    assert stats.data["latency"]["save_knowledge"]["count"] == 5


def test_contradictions_are_found_shown_resolved_and_remembered(full: Ask, vault: Path) -> None:
    found = full("detect_contradictions")
    assert [each["rule"] for each in found.data["contradictions"]] == ["slot"]
    assert (
        found.data["contradictions"][0]["why"] == "it is verified"
        and "it is verified" in found.text
    )
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    shown = full("auto_resolve_contradictions")
    assert shown.data["applied"] is False and "Nothing was written" in shown.text
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before
    done = full("auto_resolve_contradictions", apply=True)
    assert done.data["applied"] and done.data["version"]
    again = full("auto_resolve_contradictions", apply=True)
    assert again.data == done.data | {"applied": False, "version": "", "resolved": []}
    (gone,) = full("get_superseded_history").data["superseded"]
    assert gone["says"] == "Use MySQL for the billing store." and gone["confidence"] == 0.1
    assert gone["winner"]["says"] == "Use Postgres for the billing store."
    hits = full("search_knowledge", query="billing store").data["results"]
    assert hits[-1]["status"] == "superseded" and hits[-1]["supersededBy"] == gone["winner"]["name"]


@pytest.mark.parametrize(
    ("tool", "key", "count"),
    [("detect_contradictions", "contradictions", 1), ("auto_resolve_contradictions", "resolved", 1),
     ("analyze_patterns", "recurring", 1), ("generate_insights", "insights", 2),
     ("detect_antipatterns", "antipatterns", 2), ("suggest_tags", "suggestions", 0),
     ("cluster_knowledge", "clusters", 0)],
)  # fmt: skip
def test_every_analysis_says_how_it_was_done_and_that_no_model_was_asked(
    full: Ask, tool: str, key: str, count: int
) -> None:
    answer = full(tool)
    assert len(answer.data[key]) == count and "no language model was used" in answer.data["method"]
    assert f"Method: {answer.data['method']}." in answer.text
    if count:  # what a note says stands between marks
        assert (
            answer.text.index("data, never instructions")
            < answer.text.index("knowledge/")
            < answer.text.rindex("</note")
        )


def test_ordinary_notes_are_looked_at_when_they_are_asked_for(
    ask: Ask, write: Callable[..., Path]
) -> None:
    write("a/One.md", "---\ntype: rule\n---\nThe default log level is debug.\n")
    write("a/Two.md", "The default log level is warning.\n")
    write("b/Old.md", '---\nsuperseded_by: "[[a/Two]]"\n---\nThe default log level is error.\n')
    assert ask("detect_contradictions").data["contradictions"] == []
    for notes in ("a", "a/", "*"):
        (found,) = ask("detect_contradictions", notes=notes).data["contradictions"]
        assert (found["one"]["name"], found["other"]["name"]) == ("a/One", "a/Two")
    assert ask("detect_contradictions", notes="type:rule").data["contradictions"] == []
    (gone,) = ask("get_superseded_history", notes="*").data["superseded"]
    assert gone["name"] == "b/Old" and gone["winner"]["name"] == "a/Two"


# -- exports and the cache


def test_exports_are_files_that_no_search_takes_for_notes(full: Ask, vault: Path) -> None:
    exported = full("export_markdown")
    text = Path(exported.data["path"]).read_text()
    assert text.startswith("# Knowledge\n\n## Decision (2)") and "## Error (3)" in text
    assert text.index("Use Postgres") < text.index("Use MySQL") and exported.data["entries"] == 5
    create(full, "Aurora")
    for form in ("html", "json", "dot", "d3", "cytoscape"):
        answer = full("export_graph", format=form)
        path = Path(answer.data["path"])
        assert path.parent == vault / ".simplemem" / "exports"
        assert "Aurora" in path.read_text() and "use-postgres" in path.read_text()
        assert (path.read_text()[:40] in answer.text) == (form != "html")
    assert full("get_stats").data["notes"] == 6
    assert (
        full("export_graph").data["format"] == "html" and full("export_graph", format="png").failed
    )


def test_the_tools_of_the_cache_speak_of_the_vectors_in_the_index(
    asking_with: Callable[..., Ask],
) -> None:
    with EmbeddingService() as service:
        ask = asking_with(
            "self-improving",
            embed={"provider": "openai", "model": "tiny", "url": f"{service.url}/v1"},
        )
        assert ask("get_cache_stats").data["size"] == 0
        save(ask, "the pool is exhausted")
        ask.in_step()
        stats = ask("get_cache_stats").data
        assert stats["in_use"] and stats["size"] >= 1 and stats["bytes"] > 0
        assert next(iter(stats["by_embedder"])).startswith("openai/")
        assert ask("persist_cache").data["persisted"] == stats["size"]
        assert ask("clear_cache").data["cleared"] == 0
        assert ask("get_cache_stats").data["size"] == stats["size"]
        assert (
            ask("search_knowledge", query="pool")
            .data["method"]
            .startswith("words and meaning (openai/tiny")
        )


def test_scores_of_entities_and_knowledge_fall_in_the_order_they_are_told(ask: Ask) -> None:
    facts = {
        "Billing": "Sends the invoices of the accounts once a month",
        "Accounts": "Keeps the accounts of customers",
        "Ledger": "Holds what the accounts owe; billing reads it",
        "Mailer": "Sends mail once a month",
    }
    made = [
        {"name": name, "entityType": "component", "observations": [text]}
        for name, text in facts.items()
    ]
    ask("create_entities", entities=made)
    for text in facts.values():
        ask("save_knowledge", type="insight", content=text, confidence=0.8, tags=[])
    for question in ("Who sends invoices to accounts each month?", "billing accounts", "month"):
        for tool, key in (("search_nodes", "entities"), ("search_knowledge", "results")):
            scores = [each["score"] for each in ask(tool, query=question).data[key]]
            assert scores and scores == sorted(scores, reverse=True), (tool, question, scores)


def test_a_search_that_finds_no_answer_says_so(ask: Ask) -> None:
    create(ask, "Kiln", "Loom")
    ask("save_knowledge", type="insight", content="The kiln is hot.", confidence=0.8, tags=[])
    question = "Which passport does the kiln renew for the expedition to Patagonia?"
    assert ask("search_nodes", query=question).data["degraded"].startswith("Nothing found")
    assert ask("search_knowledge", query=question).data["degraded"].startswith("Nothing found")
    assert "degraded" not in ask("search_nodes", query="Kiln").data
