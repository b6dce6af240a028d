"""The face of Remembrances: what its tools answer, in words and as data, and that a user sees nothing of another's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_service import ChatService
from embedding_service import failing

Contract = Callable[..., Any]
LONG = "The committee met for an hour, and Gudrun will bring the marmalade that she promised to all of us. " * 6


@pytest.fixture
def told(contract: Contract) -> Any:
    return contract("remembrances")


def first(answer: Any) -> str:
    return str(answer.data["events"][0]["id"])


def test_adding_says_what_became_of_each_statement(told: Any) -> None:
    one = told("add_memory", content="I live in Berlin.", user_id="ann")
    assert one.text.startswith("Memory added successfully.") and one.data["events"][0]["event"] == "ADD"
    assert (one.data["extraction"], one.data["reconciliation"], one.data["document"]) == ("verbatim", "rules", None)
    two = told("add_memory", content="I moved to Lisbon.", user_id="ann")
    [event] = two.data["events"]
    assert (event["event"], event["relation"], event["previous"]["id"]) == ("UPDATE", "UPDATES", first(one))
    again = told("add_memory", content="I live in Lisbon", user_id="ann")
    assert again.text.startswith("Known already.") and first(again) == first(two)
    long = told("add_memory", content=LONG, user_id="ann", metadata={"mood": "calm"})
    assert long.data["document"] and not long.data["events"]
    assert "Gudrun" in told("search_memory", query="who brings marmalade", user_id="ann").text


def test_what_is_asked_to_be_forgotten_and_not_held_is_said(told: Any) -> None:
    told("add_memory", content="I like tea.", user_id="maria")
    nothing = told("add_memory", content="Forget that I like tea.", user_id="ann")
    assert nothing.text == "Nothing was forgotten: no such memory is held." == nothing.data["warnings"][0]
    told("add_memory", content="I like tea.", user_id="ann")
    gone = told("add_memory", content="Forget that I like tea.", user_id="ann")
    assert [each["event"] for each in gone.data["events"]] == ["DELETE"] and not gone.data["warnings"]


def test_a_search_has_three_sections_and_no_answer_of_its_own(told: Any) -> None:
    told("add_memory", content="I moved to Lisbon.\nMy favourite colour is green.", user_id="ann")
    found = told("search_memory", query="where do I live", user_id="ann")
    assert found.data["facts"][0] | {"id": "", "valid_from": ""} == {
        "id": "", "key": "lives in", "value": "Lisbon", "memory": "I moved to Lisbon.", "confidence": 1, "valid_from": "",
    }  # fmt: skip
    assert found.data["memories"][0]["memory"] == "I moved to Lisbon." and found.data["memories"][0]["kind"] == "memory"
    edge = {"from": "ann", "relation": "lives in", "to": "Lisbon", "id": found.data["facts"][0]["id"]}
    assert edge in found.data["graph"]
    assert found.data["answer"] is None and found.data["synthesis"] == "none"
    heads = [line for line in found.text.splitlines() if line.startswith("#")]
    assert heads == ["# Facts", "# Memories", "# Graph"] and "- ann -lives in-> Lisbon" in found.text
    told("add_memory", content="The ferry to Tarbert is called Isla.", user_id="ann")
    assert not told("search_memory", query="which drills does the crane have", user_id="ann").data["facts"]
    nothing = told("search_memory", query="anything", user_id="nobody at all")
    assert not nothing.failed and nothing.text.count("- none") == 3 and not nothing.data["memories"]


def test_an_answer_of_a_model_stands_in_front_and_its_failure_is_told(contract: Contract) -> None:
    with ChatService(lambda said: {"answer": f"{len(said.get('memories', ()))}: Lisbon.", "cites": ["1"]}) as service:
        told = contract("remembrances", llm={"provider": "openai", "model": "m", "url": service.url})
        told("add_memory", content="I moved to Lisbon.", user_id="ann")
        found = told("search_memory", query="where do I live", user_id="ann")
        assert (found.data["answer"], found.data["synthesis"], found.data["degraded"]) == ("1: Lisbon.", "llm:m", "")
        assert found.text.startswith("1: Lisbon.\n\nBetween") and ">\n# Facts\n- lives in: Lisbon" in found.text
        service.always = failing(400)
        found = told("search_memory", query="where do I live", user_id="ann")
        assert (found.data["answer"], found.data["synthesis"]) == (None, "none") and found.data["facts"]
        assert ">\n# Facts\n" in found.text and "the model was no help" in found.text


def test_changing_keeps_the_id_and_deleting_can_be_undone(told: Any, vault: Path) -> None:
    one = first(told("add_memory", content="I live in Berlin.", user_id="ann"))
    for content in ("I live in Bergen,\nby the sea.", "I live in Bergen,\nby the sea."):
        changed = told("update_memory", memory_id=one, content=content, user_id="ann")
        assert changed.text == "Memory updated successfully."
        assert changed.data["id"] == one and len(changed.data["sha256"]) == 64
    [found] = told("search_memory", query="where do I live", user_id="ann").data["memories"]
    assert (found["id"], found["memory"]) == (one, "I live in Bergen, by the sea.")
    for content, code in (("", "invalid"), (" \n", "invalid"), ("x\0y", "invalid"), ("w " * 600_000, "too_long")):
        assert told("update_memory", memory_id=one, content=content, user_id="ann").code == code
    gone = told("delete_memory", memory_id=one, user_id="ann")
    assert gone.text == "Memory deleted successfully." and not [*(vault / "atoms").rglob("*.md")]
    told.store.undo(gone.data["version"])
    assert told("search_memory", query="where do I live", user_id="ann").data["memories"]


def test_what_is_another_s_is_as_if_it_were_not_there(told: Any) -> None:
    theirs = first(told("add_memory", content="The spare key lies under the zinnia pot.", user_id="maria"))
    told("add_memory", content=f"{LONG} The zinnia pot.", user_id="maria")
    for user in ("ann", "Maria", "mari", "maria/", "../maria", "*", "default"):
        assert "zinnia" not in str(told("search_memory", query="the pot with the spare key", user_id=user))
        for tool, more in (("update_memory", {"content": "changed"}), ("delete_memory", {})):
            there, absent = (told(tool, memory_id=i, user_id=user, **more) for i in (theirs, "atom_20200101_nobody"))
            assert there.code == absent.code == "not_found"
            assert there.text.replace(theirs, "") == absent.text.replace("atom_20200101_nobody", "")
    for user in ("", " maria", "maria\n", "x" * 201):
        assert told("search_memory", query="zinnia", user_id=user).code in ("invalid", "too_long")
    for limit in (0, -1, 1001, "many"):
        assert told("search_memory", query="zinnia", user_id="maria", limit=limit).code == "invalid"


def test_a_knowledge_base_is_asked_and_written(asking_with: Callable[..., Any], vault: Path) -> None:
    (base := vault.parent / "kb").mkdir()
    (base / "intro.md").write_text("# Intro\n\nThe lighthouse keeper is called Osmund.\n")
    settings = {"embed": {"provider": "none"}, "documents": {"knowledge_base": base}}
    told = asking_with("remembrances", "knowledge-base", **settings)
    [found] = told("query_knowledge_base", query="lighthouse keeper").data["results"]
    assert (found["source"], found["heading"]) == ("intro.md", "Intro") and "Osmund" in found["content"]
    made = told("update_knowledge_base", file_path="docs/fog.md", content="# Fog\n")
    assert made.text == "Document updated." and made.data["created"] and (base / "docs/fog.md").read_text() == "# Fog\n"
    assert not told("update_knowledge_base", file_path="docs/fog.md", content="# Fogs\n").data["created"]
    assert told("update_knowledge_base", file_path="../out.md", content="x").code == "invalid"
    assert "Osmund" not in told("search_memory", query="lighthouse keeper", user_id="ann").text


def test_a_page_that_has_nothing_to_do_with_the_question_is_not_a_sure_answer(
    asking_with: Callable[..., Any], vault: Path
) -> None:
    (base := vault.parent / "kb").mkdir()
    (base / "intro.md").write_text("# Intro\n\nThe lighthouse keeper is called Osmund.\n", encoding="utf-8")
    (base / "oil.md").write_text("# Oil\n\nThe lamp takes two litres of oil a night.\n", encoding="utf-8")
    told = asking_with("remembrances", "knowledge-base", documents={"knowledge_base": base})
    told.in_step()
    for question in ("queso", "\u00bfQui\u00e9n gan\u00f3 la liga?", "my blood pressure readings"):
        answer = told("query_knowledge_base", query=question)
        assert all(each["score"] < 0.3 for each in answer.data["results"])
        assert "notice" in answer.data or not answer.data["results"]
        assert answer.text.startswith(("No note contains these words", "Nothing"))
    known = told("query_knowledge_base", query="What is the lighthouse keeper called?")
    assert known.data["results"][0]["score"] > 0.5 and "notice" not in known.data
    scores = [each["score"] for each in known.data["results"]]
    assert scores == sorted(scores, reverse=True)


def test_what_is_not_known_of_a_user_is_told_as_not_found(told: Any) -> None:
    for statement in ("I am allergic to peanuts.", "I work as a nurse in Leeds.", "I have a sister called Anna."):
        told("add_memory", content=statement, user_id="ann")
    known = told("search_memory", query="What am I allergic to?", user_id="ann")
    assert "Nothing found" not in known.text and known.data["degraded"] == ""
    unknown = told(
        "search_memory", query="Which passport did Anna renew for the expedition to Patagonia?", user_id="ann"
    )
    assert "Nothing found" in unknown.data["degraded"] and "Nothing found" in unknown.text
    assert all(each["score"] <= 0.5 for each in unknown.data["memories"])
