"""A language model beside the rules of statements: what it is told, what of its answers counts, and that it may fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from chat_service import ChatService
from embedding_service import HANGS_UP, PAGE, Answer, failing, slow

from simplemem.features.documents.answering import write_answer
from simplemem.features.documents.memories import memory_service
from simplemem.features.documents.recall import RecallAnswer, RecallRequest, recall
from simplemem.features.documents.service import document_service
from simplemem.features.facts.adding import AddResult
from simplemem.features.facts.language_model import extract
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.service import fact_service
from simplemem.note import dates
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
ASKED = "where is the money"
Model = Callable[[dict[str, Any]], Any]


@contextmanager
def asking(
    vault: Path, model: Any, timeout_seconds: float = 5
) -> Iterator[tuple[EnhancedStore, ChatService]]:
    """A store with a model, and its service; the model says to each task what it is to, or nothing about anything."""
    with ChatService(model if callable(model) else lambda _: model) as service:
        llm = {
            "provider": "openai",
            "model": "m",
            "url": service.url,
            "timeout_seconds": timeout_seconds,
        }
        embed = {"provider": "none", "private": ["atoms/ann/Secret*"]}
        with EnhancedStore(vault, Settings.model_validate({"llm": llm, "embed": embed})) as store:
            yield store, service


def write(store: EnhancedStore, vault: Path, scope: str = "ann", **notes: str) -> None:
    (vault / "atoms" / scope).mkdir(parents=True, exist_ok=True)
    for name, text in notes.items():
        (vault / f"atoms/{scope}/{name}.md").write_text(
            f"---\nvalid_from: 2026-01-20\n---\n{text}\n"
        )
    store.sync()


def money(store: EnhancedStore, vault: Path) -> None:
    write(
        store,
        vault,
        Bank="My money is at the harbour bank.",
        Secret="The money is in the mattress.",
    )
    write(store, vault, Key=f"The money's key is {KEY}")
    write(store, vault, "bob", Theirs="The money is buried.")


def ask(
    store: EnhancedStore, query: str = ASKED, **more: Any
) -> tuple[RecallAnswer, tuple[str | None, str, str]]:
    found = recall(store, RecallRequest(query, "ann", **more))
    return found, write_answer(document_service(store), query, found.hits)


def add(store: EnhancedStore, text: str, **more: Any) -> AddResult:
    return fact_service(store).add("ann", [NewFact(text)], **more)


def questions_to(service: ChatService) -> list[dict[str, Any]]:
    return [json.loads(request.json["messages"][-1]["content"]) for request in service.requests]


@pytest.mark.parametrize("cites", [["1"], [2, "1"], ["2", "2"]])
def test_an_answer_cites_what_it_was_given_which_is_data_under_small_numbers(
    vault: Path, cites: list[Any]
) -> None:
    with asking(vault, {"answer": " At the bank [1]. ", "cites": cites}) as (store, service):
        money(store, vault)
        found, answer = ask(store)
        assert len(found.hits) == 3 and answer == ("At the bank [1].", "llm:m", "")
        [question] = questions_to(service)
        assert question["question"] == ASKED and [
            memory["id"] for memory in question["memories"]
        ] == ["1", "2"]
        assert {"id", "text", "when"} == question["memories"][0].keys() and question["memories"][0][
            "when"
        ] == "2026-01-20"
        instructions = [request.json["messages"][0]["content"] for request in service.requests]
        assert "money" not in instructions[0] and "[redacted]" in service.sent_texts()[-1]
        for hidden in ("mattress", "buried", KEY, *(hit.result["id"] for hit in found.hits)):
            assert f'"{hidden}"' not in str(question) and hidden not in service.sent_texts()[
                -1
            ].replace(ASKED, ""), hidden


@pytest.mark.parametrize(
    ("text", "cites"),
    [("Yes", []), ("Yes", ["3"]), ("Yes", ["1", "3"]), ("Yes", ["0"]), ("Yes", "1"), ("Yes", None), ("Yes", [None]),
     (" ", ["1"]), (5, ["1"]), (None, ["1"]), ("x" * 4001, ["1"]), (["Yes"], ["1"])],
)  # fmt: skip
def test_an_answer_that_cites_nothing_or_what_is_not_there_is_none(
    vault: Path, text: Any, cites: Any
) -> None:
    with asking(vault, {"answer": text, "cites": cites}) as (store, service):
        money(store, vault)
        found, answer = ask(store)
        assert (
            answer == (None, "none", "the model returned nothing usable") and len(found.hits) == 3
        )
        assert len(service.requests) == 1


def test_a_question_is_asked_in_other_words_for_searching_only(vault: Path) -> None:
    wider: dict[str, Any] = {"passage": "The harbour bank keeps it.", "terms": ["bank", 5, None]}

    def model(question: dict[str, Any]) -> dict[str, Any]:
        return {"answer": "There.", "cites": ["1"]} if "memories" in question else wider

    with asking(vault, model) as (store, service):
        write(store, vault, Bank="My savings are at the harbour bank.", Cows="Cows sleep.")
        assert not ask(store, "where is it")[0].hits and not service.requests
        found, answer = ask(store, "where is it", rewrite=True)
        assert [hit.result["text"] for hit in found.hits] == ["My savings are at the harbour bank."]
        assert {"step": "hyde", "used": True, "why": "llm:m"} in found.steps and answer[
            0
        ] == "There."
        assert [question["question"] for question in questions_to(service)] == ["where is it"] * 2
        wider |= {"passage": "sleep " * 999 + "savings", "terms": 7}
        assert [
            hit.fact and hit.fact.statement for hit in ask(store, "it", rewrite=True)[0].hits
        ] == ["Cows sleep."]
        wider |= {"passage": None, "terms": [["bank"]]}
        found, _ = ask(store, "where is it", rewrite=True)
        assert not found.hits and found.steps[1]["why"] == "the model returned nothing usable"


@pytest.mark.parametrize(
    "bad", [HANGS_UP, PAGE, failing(500), failing(401), slow(30), failing(400)]
)
def test_a_model_that_is_down_leaves_all_to_the_rules_and_that_is_said(
    vault: Path, bad: Answer
) -> None:
    # Nobody waits for the service that answers after half a minute.
    timeout = 1 if bad.seconds else 5
    with asking(vault, {}, timeout) as (store, service):
        service.always = bad
        money(store, vault)
        found, answer = ask(store, rewrite=True)
        assert not found.steps[1]["used"] and found.steps[1]["why"].startswith(
            "the model returned no usable answer: "
        )
        assert (
            len(found.hits) == 3
            and answer[:2] == (None, "none")
            and answer[2].startswith("the model returned no usable answer: ")
        )
        added = add(store, "Money grows on trees.")
        assert added.reconciliation == "rules" and len(added.warnings) == 1
        assert [event["rule"] for event in added.events] == ["rule:new"]
        log = (vault / ".simplemem/state/decisions.jsonl").read_text()
        assert {json.loads(line)["task"] for line in log.splitlines()} == {
            "rewrite",
            "answer",
            "classify",
        }
        assert "money" not in log and "answered" not in log


@pytest.mark.parametrize(
    ("row", "event", "relation"),
    [
        ({}, "UPDATE", "UPDATES"),
        ({"relationType": "EXTEND"}, "UPDATE", "EXTENDS"),
        ({"existingMemoryId": 1, "confidence": "0.6"}, "UPDATE", "UPDATES"),
        *(({"confidence": sure}, "ADD", None) for sure in (0.59, 0, -1, 2, "sure", None, [1])),
        *(
            ({"existingMemoryId": id_}, "ADD", None)
            for id_ in ("2", "0", "", None, "atom_1", "I eat pears at noon.")
        ),
        *(
            ({"relationType": kind}, "ADD", None)
            for kind in ("NONE", "DELETE", "update", None, ["UPDATE"])
        ),
        ({"relationType": "DERIVE", "derivedFact": ""}, "ADD", None),
        ({"relationType": "DERIVE", "derivedFact": "x" * 1001}, "ADD", None),
    ],
)
def test_only_a_sure_verdict_on_what_was_shown_counts(
    vault: Path, row: dict[str, Any], event: str, relation: str | None
) -> None:
    sure = {
        "existingMemoryId": "1",
        "relationType": "UPDATE",
        "confidence": 0.9,
        "derivedFact": None,
    }
    with asking(vault, {"relations": [sure | row, "prose", None]}) as (store, service):
        write(store, vault, Pears="I eat pears at noon.", Secret="I eat figs at noon.")
        added = add(store, "I eat plums at noon.")
        assert [(event["event"], event["relation"]) for event in added.events] == [
            (event, relation)
        ]
        assert (
            added.reconciliation == (by := "llm:m" if relation else "rules") and not added.warnings
        )
        facts = {fact.statement: fact for fact in fact_service(store).facts("ann", expired=True)}
        assert len(facts) == 3 and facts["I eat plums at noon."].decided_by == (
            by if relation else "rule:new"
        )
        assert (facts["I eat pears at noon."].status == "superseded") is (relation == "UPDATES")
        assert [row["text"] for row in questions_to(service)[0]["existing"]] == [
            "I eat pears at noon."
        ]


def test_what_follows_from_two_links_to_both_and_a_page_replaces_nothing(vault: Path) -> None:
    rows = [
        {"existingMemoryId": "1", "relationType": "UPDATE", "confidence": 1, "derivedFact": None}
    ]
    with asking(vault, {"relations": rows}) as (store, _):
        write(store, vault, Pears="I eat pears at noon.")
        assert [
            event["event"] for event in add(store, "I eat plums at noon.", outside=True).events
        ] == ["ADD"]
        rows[0] |= {"relationType": "DERIVE", "derivedFact": "I eat fruit."}
        assert [event["relation"] for event in add(store, "I eat figs at noon.").events] == [
            None,
            "DERIVES",
        ]
        [derived] = [
            fact for fact in fact_service(store).facts("ann") if fact.memory_type == "derived"
        ]
        assert (derived.statement, derived.decided_by, derived.confidence) == (
            "I eat fruit.",
            "llm:m",
            0.8,
        )
        assert len(derived.derived_from) == 2 and "I eat figs at noon" in derived.derived_from
        assert {fact.status for fact in fact_service(store).facts("ann", expired=True)} == {
            "active"
        }


def test_what_a_hand_changed_while_a_model_thought_is_not_replaced(vault: Path) -> None:
    row = {"existingMemoryId": "1", "relationType": "UPDATE", "confidence": 1, "derivedFact": None}

    def model(_: object) -> Any:
        (vault / "atoms/ann/Pears.md").write_text("I eat quinces at noon.\n")
        return {"relations": [row]}

    with asking(vault, model) as (store, _):
        write(store, vault, Pears="I eat pears at noon.")
        assert [event["event"] for event in add(store, "I eat plums at noon.").events] == ["ADD"]
        statements = sorted(fact.statement for fact in fact_service(store).facts("ann"))
        assert statements == ["I eat plums at noon.", "I eat quinces at noon."]


def test_only_what_a_text_says_is_drawn_from_it(vault: Path) -> None:
    fact = {
        "text": "Ann bakes.",
        "quote": "she  Bakes",
        "type": "fact",
        "confidence": 0.9,
        "valid_from": "2026-01-20",
    }
    slot = {"subject": "Ann", "relation": "bakes", "object": "bread", "valid_to": None}
    bad = [
        {"quote": "she sings"},
        {"quote": ""},
        {"type": "rumour"},
        {"text": ""},
        {"text": "x" * 1001},
    ]
    rows: list[Any] = [
        fact | slot,
        *(fact | {"text": "Ann sings."} | fields for fields in bad),
        "prose",
        7,
    ]
    with asking(vault, lambda _: {"facts": rows}) as (store, service):
        memories = fact_service(store)
        assert memories.chat is not None
        [drawn], cut = extract(memories, memories.chat, "Ann was here,\nand she bakes.")
        assert (drawn.text, drawn.slot, drawn.quote) == (
            "Ann bakes.",
            ("Ann", "bakes", "bread"),
            "she Bakes",
        )
        assert (
            drawn.valid_from
            and f"{drawn.valid_from:%Y-%m-%d}" == "2026-01-20"
            and drawn.valid_to is None
        )
        assert (drawn.confidence, drawn.decided_by, cut) == (0.9, "llm:m", "")
        rows[:] = [fact | {"text": f"Ann bakes {k}."} for k in range(60)]
        many, cut = extract(
            memories, memories.chat, "".join(f"In {k} Ann said she bakes. " for k in range(1000))
        )
        parts = [question["text"] for question in questions_to(service)[1:]]
        assert (
            len(many) == 50 and cut == f"the text was read in {len(parts)} parts" and len(parts) > 1
        )
        assert all(new[:300] in old for old, new in pairwise(parts))


def job_model(new: dict[str, Any]) -> Model:
    """Answer as a model that reads each text as one statement, and takes a new job for an update of the old one."""

    def answer(question: dict[str, Any]) -> Any:
        text = question["text"]
        row = {
            "text": text,
            "quote": text,
            "type": "fact",
            "confidence": 0.9,
            "valid_from": None,
            "valid_to": None,
            "replaces": next((fact["id"] for fact in question["facts"]), None),
        }
        return {"facts": [row | {"subject": "", "relation": "job", "object": ""} | new]}

    return answer


@pytest.mark.parametrize(
    "valid_to", [None, "", "2026-11-22", "2026-11-22T09:00:00Z", "2026-11-15", "2026-12-31"]
)
@pytest.mark.parametrize(
    "statement",
    [
        "I started at Northlight Labs today.",
        "I started at Northlight Labs last week.",
        "Hoy empecé en Acme.",
    ],
)
def test_with_a_model_what_began_today_does_not_end_today(
    vault: Path, monkeypatch: pytest.MonkeyPatch, statement: str, valid_to: str | None
) -> None:
    monkeypatch.setenv("SIMPLEMEM_NOW", "2026-11-22T09:00:00Z")
    dates._fixed.cache_clear()
    with asking(vault, job_model({"valid_to": valid_to})) as (store, _):
        write(
            store,
            vault,
            Job="I have a job at the docks today or started at the docks, empecé hoy en el puerto.",
        )
        memory_service(store).add(statement, "ann")
        monkeypatch.setenv("SIMPLEMEM_NOW", "2027-03-01T09:00:00Z")
        dates._fixed.cache_clear()
        [job] = fact_service(store).facts("ann")
        assert (job.statement, job.memory_type, job.valid_to) == (statement, "fact", None)
        [old] = [fact for fact in fact_service(store).facts("ann", expired=True) if fact is not job]
        assert old.status == "superseded"
    monkeypatch.undo()
    dates._fixed.cache_clear()


def test_with_a_model_an_end_that_the_text_states_holds(vault: Path) -> None:
    with asking(vault, job_model({"valid_to": "2031-06-30"})) as (store, _):
        memory_service(store).add("My contract at Acme runs until 30 June 2031.", "ann")
        [job] = fact_service(store).facts("ann")
        assert job.valid_to is not None and f"{job.valid_to:%Y-%m-%d %H:%M}" == "2031-06-30 23:59"


def reads(*rows: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a model that read these facts in a text."""
    empty = {"subject": "", "relation": "", "object": "", "valid_from": None, "valid_to": None}
    empty |= {"replaces": None, "extends": None, "combines_with": None, "derived": None}
    fact = empty | {"type": "fact", "confidence": 0.9}
    return {"facts": [fact | row for row in rows]}


def statements_of(store: EnhancedStore) -> set[str]:
    return {fact.statement for fact in fact_service(store).facts("ann")}


def test_one_call_reads_a_statement_and_says_what_it_replaces(vault: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        ids = {fact["text"]: fact["id"] for fact in question["facts"]}
        quote = "we finally got rid of the flat and are in Leeds now"
        return reads(
            {"text": "I live in Leeds.", "quote": quote, "replaces": ids["I rent a flat in York."]}
        )

    with asking(vault, model) as (store, service):
        write(store, vault, Home="I rent a flat in York.", Pears="I eat pears at noon.")
        write(store, vault, Secret="The money is in the mattress.")
        text = "So we finally got rid of the flat and are in Leeds now."
        answer = memory_service(store).add(text, "ann")
        assert len(service.requests) == 1 and answer["warnings"] == []
        [event] = answer["events"]
        assert (event["event"], event["relation"], event["memory"]) == (
            "UPDATE",
            "UPDATES",
            "I live in Leeds.",
        )
        assert "I rent a flat in York." not in statements_of(store)
        assert {"I live in Leeds.", "I eat pears at noon."} <= statements_of(store)
        assert "mattress" not in service.received.decode()


def test_a_model_that_reads_nothing_in_a_statement_stores_nothing(vault: Path) -> None:
    with asking(vault, reads()) as (store, service):
        write(store, vault, Home="I live in York.")
        answer = memory_service(store).add("I live in a zoo, obviously.", "ann")
        assert answer["events"] == [] and len(service.requests) == 1
        assert statements_of(store) == {"I live in York."}


def test_one_call_says_what_a_statement_extends_and_what_follows(vault: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        text = question["text"]
        if not question["facts"]:
            return reads({"text": text, "quote": text})
        [bank] = [fact["id"] for fact in question["facts"] if "bank" in fact["text"]]
        derived = {"combines_with": bank, "derived": "I bank by the sea."}
        return reads({"text": text, "quote": text, "extends": bank} | derived)

    with asking(vault, model) as (store, service):
        memory_service(store).add("My bank is the Harbour Bank.", "ann")
        answer = memory_service(store).add("The Harbour Bank is on the quay.", "ann")
        assert len(service.requests) == 2 and answer["reconciliation"] == "llm:m"
        relations = [event["relation"] for event in answer["events"]]
        assert relations == ["EXTENDS", "DERIVES"]
        assert "I bank by the sea." in statements_of(store)


def test_a_model_that_does_not_say_what_a_fact_replaces_is_asked(vault: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        if "existing" in question:
            [row] = question["existing"]
            update = {"existingMemoryId": row["id"], "relationType": "UPDATE", "confidence": 1}
            return {"relations": [update | {"derivedFact": None}]}
        row = {"text": "I eat plums at noon.", "quote": "plums at noon", "type": "fact"}
        return {"facts": [row]}

    with asking(vault, model) as (store, service):
        write(store, vault, Pears="I eat pears at noon.")
        memory_service(store).add("It is plums at noon from now on, no pears.", "ann")
        assert len(service.requests) == 2 and statements_of(store) == {"I eat plums at noon."}


@pytest.mark.parametrize("bad", [{"replaces": "7"}, {"extends": "Home"}, {"quote": "in Rome"}])
def test_a_fact_that_replaces_what_was_not_shown_is_left_to_the_rules(
    vault: Path, bad: dict[str, Any]
) -> None:
    text = "I eat plums at noon."
    with asking(vault, reads({"text": text, "quote": text} | bad)) as (store, _):
        write(store, vault, Home="I live in York.")
        answer = memory_service(store).add(text, "ann")
        assert statements_of(store) == {"I live in York.", text}
        assert "none of the facts that the model listed" in answer["warnings"][0]


def test_a_fact_does_not_replace_one_that_says_the_same(vault: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        [home] = question["facts"]
        row = {"text": home["text"], "quote": "still in York", "replaces": home["id"]}
        return reads(row)

    with asking(vault, model) as (store, _):
        write(store, vault, Home="I live in York.")
        memory_service(store).add("We are still in York, you know.", "ann")
        [fact] = fact_service(store).facts("ann", expired=True)
        assert (fact.statement, fact.status) == ("I live in York.", "active")


def test_of_a_large_scope_a_model_is_shown_the_nearest_facts(vault: Path) -> None:
    with asking(vault, reads()) as (store, service):
        jars = {f"Jar{number}": f"Jar {number} holds jam." for number in range(120)}
        write(store, vault, Boat="Our boat is called Plover.", **jars)
        memory_service(store).add("The boat got a new name, Heron.", "ann")
        shown = [fact["text"] for fact in questions_to(service)[0]["facts"]]
        assert len(shown) <= 100 and "Our boat is called Plover." in shown
