"""The face of Remembrances: what its tools answer, in words and as data, and that a user sees nothing of another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_service import ChatService
from embedding_service import failing
from waiting import eventually
from web_of_files import pdf

from simplemem.errors import Conflict
from simplemem.features.documents.service import document_service
from simplemem.note import dates
from simplemem.profiles.remembrances.tools import KNOWLEDGE_BASE
from simplemem.tools.session import Session

Contract = Callable[..., Any]
LONG = (
    "The committee met for an hour, and Gudrun will bring the marmalade that she promised to all of us. "
    * 6
)


@pytest.fixture
def call(contract: Contract) -> Any:
    return contract("remembrances")


def first(answer: Any) -> str:
    return str(answer.data["events"][0]["id"])


def test_adding_says_what_became_of_each_statement(call: Any) -> None:
    one = call("add_memory", content="I live in Berlin.", user_id="ann")
    assert (
        one.text.startswith("Memory added successfully.")
        and one.data["events"][0]["event"] == "ADD"
    )
    assert (one.data["extraction"], one.data["reconciliation"], one.data["document"]) == (
        "verbatim",
        "rules",
        None,
    )
    two = call("add_memory", content="I moved to Lisbon.", user_id="ann")
    [event] = two.data["events"]
    assert (event["event"], event["relation"], event["previous"]["id"]) == (
        "UPDATE",
        "UPDATES",
        first(one),
    )
    again = call("add_memory", content="I live in Lisbon", user_id="ann")
    assert again.text.startswith("Known already.") and first(again) == first(two)
    long = call("add_memory", content=LONG, user_id="ann", metadata={"mood": "calm"})
    assert long.data["document"] and not long.data["events"]
    assert "Gudrun" in call("search_memory", query="who brings marmalade", user_id="ann").text


def test_what_is_asked_to_be_forgotten_and_not_held_is_said(call: Any) -> None:
    call("add_memory", content="I like tea.", user_id="maria")
    nothing = call("add_memory", content="Forget that I like tea.", user_id="ann")
    assert nothing.text == "nothing was forgotten: no fact matches" == nothing.data["warnings"][0]
    call("add_memory", content="I like tea.", user_id="ann")
    forgotten = call("add_memory", content="Forget that I like tea.", user_id="ann")
    assert [event["event"] for event in forgotten.data["events"]] == [
        "DELETE"
    ] and not forgotten.data["warnings"]


def test_a_search_has_three_sections_and_no_answer_of_its_own(call: Any) -> None:
    call("add_memory", content="I moved to Lisbon.\nMy favourite colour is green.", user_id="ann")
    found = call("search_memory", query="where do I live", user_id="ann")
    assert found.data["facts"][0] | {"id": "", "valid_from": ""} == {
        "id": "", "key": "lives in", "value": "Lisbon", "memory": "I moved to Lisbon.", "confidence": 1, "valid_from": "",
    }  # fmt: skip
    assert (
        found.data["memories"][0]["memory"] == "I moved to Lisbon."
        and found.data["memories"][0]["kind"] == "memory"
    )
    edge = {
        "from": "ann",
        "relation": "lives in",
        "to": "Lisbon",
        "id": found.data["facts"][0]["id"],
    }
    assert edge in found.data["graph"]
    assert found.data["answer"] is None and found.data["synthesis"] == "none"
    heads = [line for line in found.text.splitlines() if line.startswith("#")]
    assert (
        heads == ["# Facts", "# Memories", "# Graph"] and "- ann -lives in-> Lisbon" in found.text
    )
    call("add_memory", content="The ferry to Tarbert is called Isla.", user_id="ann")
    assert not call("search_memory", query="which drills does the crane have", user_id="ann").data[
        "facts"
    ]
    nothing = call("search_memory", query="anything", user_id="nobody at all")
    assert not nothing.failed and nothing.text.count("- none") == 3 and not nothing.data["memories"]


def test_an_answer_of_a_model_stands_in_front_and_its_failure_is_told(contract: Contract) -> None:
    with ChatService(
        lambda question: {"answer": f"{len(question.get('memories', ()))}: Lisbon.", "cites": ["1"]}
    ) as service:
        call = contract(
            "remembrances", llm={"provider": "openai", "model": "m", "url": service.url}
        )
        call("add_memory", content="I moved to Lisbon.", user_id="ann")
        found = call("search_memory", query="where do I live", user_id="ann")
        assert (found.data["answer"], found.data["synthesis"], found.data["degraded"]) == (
            "1: Lisbon.",
            "llm:m",
            "",
        )
        assert (
            found.text.startswith("1: Lisbon.\n\nThe text between")
            and ">\n# Facts\n- lives in: Lisbon" in found.text
        )
        service.always = failing(400)
        found = call("search_memory", query="where do I live", user_id="ann")
        assert (found.data["answer"], found.data["synthesis"]) == (None, "none") and found.data[
            "facts"
        ]
        assert ">\n# Facts\n" in found.text and "the model returned no usable answer" in found.text


def test_changing_keeps_the_id_and_deleting_can_be_undone(call: Any, vault: Path) -> None:
    one = first(call("add_memory", content="I live in Berlin.", user_id="ann"))
    for content in ("I live in Bergen,\nby the sea.", "I live in Bergen,\nby the sea."):
        changed = call("update_memory", memory_id=one, content=content, user_id="ann")
        assert changed.text == "Memory updated successfully."
        assert changed.data["id"] == one and len(changed.data["sha256"]) == 64
    [found] = call("search_memory", query="where do I live", user_id="ann").data["memories"]
    assert (found["id"], found["memory"]) == (one, "I live in Bergen, by the sea.")
    for content, code in (
        ("", "invalid"),
        (" \n", "invalid"),
        ("x\0y", "invalid"),
        ("w " * 600_000, "too_long"),
    ):
        assert call("update_memory", memory_id=one, content=content, user_id="ann").code == code
    deleted = call("delete_memory", memory_id=one, user_id="ann")
    assert deleted.text == "Memory deleted successfully." and not [*(vault / "atoms").rglob("*.md")]
    call.store.undo(deleted.data["version"])
    assert call("search_memory", query="where do I live", user_id="ann").data["memories"]


def test_what_is_another_s_is_as_if_it_were_not_there(call: Any) -> None:
    id_of_other_user = first(
        call("add_memory", content="The spare key lies under the zinnia pot.", user_id="maria")
    )
    call("add_memory", content=f"{LONG} The zinnia pot.", user_id="maria")
    for user in ("ann", "Maria", "mari", "maria/", "../maria", "*", "default"):
        assert "zinnia" not in str(
            call("search_memory", query="the pot with the spare key", user_id=user)
        )
        for tool, more in (("update_memory", {"content": "changed"}), ("delete_memory", {})):
            hidden, absent = (
                call(tool, memory_id=i, user_id=user, **more)
                for i in (id_of_other_user, "atom_20200101_nobody")
            )
            assert hidden.code == absent.code == "not_found"
            assert hidden.text.replace(id_of_other_user, "") == absent.text.replace(
                "atom_20200101_nobody", ""
            )
    for user in ("", " maria", "maria\n", "x" * 201):
        assert call("search_memory", query="zinnia", user_id=user).code in ("invalid", "too_long")
    for limit in (0, -1, 1001, "many"):
        assert call("search_memory", query="zinnia", user_id="maria", limit=limit).code == "invalid"


def test_a_knowledge_base_is_asked_and_written(
    asking_with: Callable[..., Any], vault: Path
) -> None:
    (base := vault.parent / "kb").mkdir()
    (base / "intro.md").write_text("# Intro\n\nThe lighthouse keeper is called Osmund.\n")
    settings = {"embed": {"provider": "none"}, "documents": {"knowledge_base": base}}
    call = asking_with("remembrances", "knowledge-base", **settings)
    [found] = call("query_knowledge_base", query="lighthouse keeper").data["results"]
    assert (found["source"], found["heading"]) == ("intro.md", "Intro") and "Osmund" in found[
        "content"
    ]
    written = call("update_knowledge_base", file_path="docs/fog.md", content="# Fog\n")
    assert (
        written.text == "Document updated."
        and written.data["created"]
        and (base / "docs/fog.md").read_text() == "# Fog\n"
    )
    assert not call("update_knowledge_base", file_path="docs/fog.md", content="# Fogs\n").data[
        "created"
    ]
    assert call("update_knowledge_base", file_path="../out.md", content="x").code == "invalid"
    assert "Osmund" not in call("search_memory", query="lighthouse keeper", user_id="ann").text


NOTES = "\n\n".join(
    [
        "My favourite tea is lapsang.",
        *(
            f"Paragraph {number} tells of the quarry, its cranes and its weather. " * 6
            for number in range(5)
        ),
        "At the end Torvald hid the brass sextant.",
    ]
)


def of_scope(vault: Path, scope: str) -> list[str]:
    return sorted(path.as_posix() for path in vault.glob(f"*/{scope}/**/*") if path.is_file())


@pytest.mark.parametrize("by_passage", [False, True])
def test_a_long_memory_is_deleted_by_every_id_that_names_it(
    call: Any, vault: Path, by_passage: bool
) -> None:
    added = call("add_memory", content=NOTES, user_id="ann")
    assert added.data["document"] in added.text
    found = call("search_memory", query="brass sextant", user_id="ann").data["memories"]
    passage = next(memory["id"] for memory in found if "sextant" in memory["memory"])
    assert passage.startswith(f"{added.data['document']}:")
    memory_id = passage if by_passage else added.data["document"]

    deleted = call("delete_memory", memory_id=memory_id, user_id="ann")
    assert (
        deleted.text == "Memory deleted successfully."
        and deleted.data["id"] == added.data["document"]
    )
    assert of_scope(vault, "ann") == []
    for query in ("brass sextant", "favourite tea lapsang", "quarry cranes"):
        assert not call("search_memory", query=query, user_id="ann").data["memories"]

    call.store.undo(deleted.data["version"])
    text = call("search_memory", query="favourite tea", user_id="ann").text
    assert "lapsang" in text
    assert "sextant" in call("search_memory", query="brass sextant", user_id="ann").text


@pytest.mark.parametrize("by_passage", [False, True])
def test_a_long_memory_is_updated_by_every_id_that_names_it(call: Any, by_passage: bool) -> None:
    document = call("add_memory", content=NOTES, user_id="ann").data["document"]
    found = call("search_memory", query="brass sextant", user_id="ann").data["memories"]
    passage = next(memory["id"] for memory in found if "sextant" in memory["memory"])

    changed = call(
        "update_memory",
        memory_id=passage if by_passage else document,
        content="My favourite tea is oolong.\n\nIngrid sold the copper lantern.",
        user_id="ann",
    )
    assert (
        changed.text.startswith("Memory updated successfully.") and changed.data["id"] == document
    )
    assert ("whole text" in changed.text) == by_passage
    lantern = call("search_memory", query="copper lantern", user_id="ann").data["memories"]
    assert lantern[0]["id"].startswith(document) and "copper lantern" in lantern[0]["memory"]
    tea = call("search_memory", query="what is my favourite tea", user_id="ann")
    assert [fact["value"] for fact in tea.data["facts"]] == ["oolong"]
    for query in ("brass sextant", "favourite tea lapsang"):
        memories = call("search_memory", query=query, user_id="ann").data["memories"]
        text = " ".join(memory["memory"] for memory in memories)
        assert "sextant" not in text and "lapsang" not in text


def test_a_passage_of_a_handbook_does_not_stand_for_the_whole_of_it(call: Any, vault: Path) -> None:
    from simplemem.features.documents.service import document_service

    pages = [page.replace(". ", ".\n") for page in NOTES.split("\n\n")]
    handbook = document_service(call.store).ingest_file(pdf(*pages), "Handbook.pdf", "ann")
    found = call("search_memory", query="brass sextant", user_id="ann").data["memories"]
    passage = next(memory["id"] for memory in found if "sextant" in memory["memory"])
    for tool, more in (("update_memory", {"content": "Short."}), ("delete_memory", {})):
        refused = call(tool, memory_id=passage, user_id="ann", **more)
        assert refused.code == "invalid" and handbook["id"] in refused.text
    deleted = call("delete_memory", memory_id=handbook["id"], user_id="ann")
    assert of_scope(vault, "ann") == []
    call.store.undo(deleted.data["version"])
    assert [Path(path).name for path in of_scope(vault, "ann") if path.endswith(".pdf")] == [
        "Handbook.pdf"
    ]


def test_a_long_memory_of_another_user_is_as_if_it_were_not_there(call: Any) -> None:
    id_of_other_user = call("add_memory", content=NOTES, user_id="maria").data["document"]
    for memory_id in (id_of_other_user, f"{id_of_other_user}:13"):
        for tool, more in (("update_memory", {"content": "changed"}), ("delete_memory", {})):
            hidden = call(tool, memory_id=memory_id, user_id="ann", **more)
            absent = call(tool, memory_id="doc_20200101_nobody:13", user_id="ann", **more)
            assert hidden.code == absent.code == "not_found"
            assert hidden.text.replace(memory_id, "") == absent.text.replace(
                "doc_20200101_nobody:13", ""
            )
    assert "sextant" in call("search_memory", query="brass sextant", user_id="maria").text


@pytest.mark.parametrize(
    "content",
    ["Hello!", "Thanks a lot for your help.", "Where did I park the car?", "¿Dónde vivo?", "Muchas gracias.",
     "Hi! How are you? Thank you."],
)  # fmt: skip
def test_without_a_model_questions_greetings_and_thanks_are_not_stored(
    call: Any, content: str
) -> None:
    answer = call("add_memory", content=content, user_id="ann")
    assert not answer.failed and not answer.data["events"]
    assert (
        answer.text == "Nothing was stored: the text states no fact." == answer.data["warnings"][0]
    )
    assert not (call.vault / "atoms").exists()


def test_a_greeting_beside_a_statement_is_left_out(call: Any) -> None:
    answer = call("add_memory", content="Hi there! I live in Berlin. Thanks!", user_id="ann")
    assert [event["memory"] for event in answer.data["events"]] == ["I live in Berlin."]
    assert not answer.data["warnings"]


@pytest.mark.parametrize(
    "content", ["Hello!", "What is my name?", "Oh great, it rains again.", "I live in Berlin."]
)
def test_a_model_that_finds_no_facts_stores_nothing(contract: Contract, content: str) -> None:
    with ChatService(lambda _: {"facts": []}) as service:
        call = contract(
            "remembrances", llm={"provider": "openai", "model": "m", "url": service.url}
        )
        answer = call("add_memory", content=content, user_id="ann")
        assert (
            not answer.failed and not answer.data["events"] and answer.data["extraction"] == "llm:m"
        )
        assert answer.text == "Nothing was stored: the text states no fact."
        assert not (call.vault / "atoms").exists() and len(service.requests) == 1


def test_a_document_in_which_a_model_finds_no_facts_states_none(contract: Contract) -> None:
    with ChatService(lambda _: {"facts": []}) as service:
        call = contract(
            "remembrances", llm={"provider": "openai", "model": "m", "url": service.url}
        )
        call("add_memory", content=f"I live in Berlin. {LONG}", user_id="ann")
        documents = document_service(call.store)
        assert eventually(lambda: documents.documents("ann")[0].status == "done")
        assert len(service.requests) == 1 and not (call.vault / "atoms").exists()


def test_a_model_that_quotes_nothing_leaves_the_text_to_the_rules(contract: Contract) -> None:
    row = {
        "text": "Ann lives in Rome",
        "type": "fact",
        "quote": "Ann lives in Rome",
        "confidence": 0.9,
    }
    with ChatService(
        lambda question: {"facts": [row]} if "today" in question else {"relations": []}
    ) as service:
        call = contract(
            "remembrances", llm={"provider": "openai", "model": "m", "url": service.url}
        )
        answer = call("add_memory", content="I live in Berlin.", user_id="ann")
        assert [event["memory"] for event in answer.data["events"]] == ["I live in Berlin."]
        assert answer.data["extraction"] == "verbatim"
        assert answer.data["warnings"] == [
            "the model returned no usable answer: none of the facts that the model listed is in the text"
        ]


@pytest.fixture
def day(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the clock of this process to nine o'clock of a day."""

    def set_to(day: str) -> None:
        monkeypatch.setenv("SIMPLEMEM_NOW", f"{day}T09:00:00Z")
        dates._fixed.cache_clear()

    yield set_to
    monkeypatch.undo()
    dates._fixed.cache_clear()


CHANGED = [
    ("The alarm code is 4711.", "I changed the alarm code yesterday.", "what is the alarm code"),
    ("I live in Hamburg.", "Last week we finally moved, Leipzig is home now.", "where do I live"),
    ("I work at Siemens.", "I changed jobs in June.", "where do I work"),
    ("My phone number is 555 0101.", "My phone number has changed.", "what is my phone number"),
    (
        "El código de la alarma es 4711.",
        "Han cambiado el código de la alarma.",
        "código de la alarma",
    ),
]


@pytest.mark.parametrize(("old", "new", "question"), CHANGED)
def test_a_fact_that_a_later_statement_changed_is_disputed_and_both_are_shown_newest_first(
    call: Any, day: Any, old: str, new: str, question: str
) -> None:
    day("2026-01-10")
    first_id = first(call("add_memory", content=old, user_id="ann"))
    day("2026-06-20")
    added = call("add_memory", content=new, user_id="ann")
    [event] = added.data["events"]
    assert (event["event"], event["disputes"]) == ("ADD", [{"id": first_id, "memory": old}])
    assert f"Disputed now: {old}" in added.text

    day("2026-11-22")
    found = call("search_memory", query=question, user_id="ann")
    rows = {row["memory"]: row for row in found.data["memories"]}
    assert [row for row in rows if row in (old, new)] == [new, old]
    assert rows[old]["disputed"] == "2026-06-20T09:00:00Z" and "disputed" not in rows[new]
    assert f"{old} ({first_id}) [disputed since 2026-06-20]" in found.text
    values = [row["memory"] for row in found.data["facts"]]
    assert values in ([], [new, old])
    assert all(row["confidence"] == 0.5 for row in found.data["facts"] if row["memory"] == old)


def test_a_disputed_fact_is_current_again_when_it_is_said_again_or_the_dispute_is_deleted(
    call: Any, day: Any
) -> None:
    day("2026-01-10")
    call("add_memory", content="The alarm code is 4711.", user_id="ann")
    day("2026-02-10")
    change = first(call("add_memory", content="I changed the alarm code.", user_id="ann"))
    note = call.vault / "atoms/ann/The alarm code is 4711.md"
    assert (
        "status: disputed\n" in note.read_text()
        and "disputed: 2026-02-10T09:00:00Z\n" in note.read_text()
    )
    call("add_memory", content="The alarm code is 4711.", user_id="ann")
    assert "status: active\n" in note.read_text() and "disputed" not in note.read_text()

    call("add_memory", content="I changed the alarm code.", user_id="ann")
    assert "status: disputed\n" in note.read_text()
    call("delete_memory", memory_id=change, user_id="ann")
    assert "status: active\n" in note.read_text() and "disputed" not in note.read_text()


def test_a_value_that_is_read_later_supersedes_a_disputed_fact(call: Any, day: Any) -> None:
    day("2026-01-10")
    call("add_memory", content="The alarm code is 4711.", user_id="ann")
    call("add_memory", content="I changed the alarm code.", user_id="ann")
    day("2026-02-10")
    call("add_memory", content="The alarm code is 0815.", user_id="ann")
    note = (call.vault / "atoms/ann/The alarm code is 4711.md").read_text()
    assert "status: superseded\n" in note and "disputed" not in note


def test_a_statement_of_the_same_text_or_of_another_user_is_not_disputed(call: Any) -> None:
    call("add_memory", content="I live in Hamburg.", user_id="bob")
    call("add_memory", content="I live in Leipzig. We moved last week.", user_id="ann")
    for name in ("bob/I live in Hamburg", "ann/I live in Leipzig"):
        assert "status: active\n" in (call.vault / f"atoms/{name}.md").read_text()


def test_a_change_in_a_long_text_disputes_what_was_said_before(call: Any, day: Any) -> None:
    day("2026-01-10")
    call("add_memory", content="The alarm code is 4711.", user_id="ann")
    day("2026-06-20")
    call("add_memory", content=f"{LONG} We changed the alarm code. {LONG}", user_id="ann")
    found = call("search_memory", query="what is the alarm code", user_id="ann").data["memories"]
    rows = {row["memory"]: row for row in found if row["kind"] == "memory"}
    assert [*rows] == ["We changed the alarm code.", "The alarm code is 4711."]
    assert rows["The alarm code is 4711."]["disputed"] == "2026-06-20T09:00:00Z"


def test_a_page_that_has_nothing_to_do_with_the_question_is_not_a_sure_answer(
    asking_with: Callable[..., Any], vault: Path
) -> None:
    (base := vault.parent / "kb").mkdir()
    (base / "intro.md").write_text(
        "# Intro\n\nThe lighthouse keeper is called Osmund.\n", encoding="utf-8"
    )
    (base / "oil.md").write_text(
        "# Oil\n\nThe lamp takes two litres of oil a night.\n", encoding="utf-8"
    )
    call = asking_with("remembrances", "knowledge-base", documents={"knowledge_base": base})
    call.in_step()
    for question in ("queso", "\u00bfQui\u00e9n gan\u00f3 la liga?", "my blood pressure readings"):
        answer = call("query_knowledge_base", query=question)
        assert all(passage["score"] < 0.3 for passage in answer.data["results"])
        assert "notice" in answer.data or not answer.data["results"]
        assert answer.text.startswith(("No note contains these words", "Nothing"))
    answerable = call("query_knowledge_base", query="What is the lighthouse keeper called?")
    assert answerable.data["results"][0]["score"] > 0.5 and "notice" not in answerable.data
    scores = [passage["score"] for passage in answerable.data["results"]]
    assert scores == sorted(scores, reverse=True)


def test_what_is_not_known_of_a_user_is_told_as_not_found(call: Any) -> None:
    for statement in (
        "I am allergic to peanuts.",
        "I work as a nurse in Leeds.",
        "I have a sister called Anna.",
    ):
        call("add_memory", content=statement, user_id="ann")
    answerable = call("search_memory", query="What am I allergic to?", user_id="ann")
    assert "Nothing found" not in answerable.text and answerable.data["degraded"] == ""
    unanswerable = call(
        "search_memory",
        query="Which passport did Anna renew for the expedition to Patagonia?",
        user_id="ann",
    )
    assert "Nothing found" in unanswerable.data["degraded"] and "Nothing found" in unanswerable.text
    assert all(memory["score"] <= 0.5 for memory in unanswerable.data["memories"])


def test_a_document_that_is_replaced_is_named_with_its_undo(
    asking_with: Callable[..., Any], vault: Path
) -> None:
    for place in (vault / "kb", vault.parent / "kb"):
        place.mkdir()
        (place / "fog.md").write_text("# Fog\n\nThick.\n", encoding="utf-8")
        settings = {"embed": {"provider": "none"}, "documents": {"knowledge_base": place}}
        call = asking_with("remembrances", "knowledge-base", **settings)
        replaced = call("update_knowledge_base", file_path="fog.md", content="# Haze\n")
        assert "3 lines, last changed outside simplemem" in replaced.data["notice"]
        assert "Undo it with `simplemem undo v000001`" in replaced.data["notice"]
        assert replaced.data["notice"] in replaced.text
        assert ("in the folder of the knowledge base" in replaced.text) is (place.parent != vault)


def test_a_document_is_not_replaced_when_somebody_changed_what_this_client_wrote(
    asking_with: Callable[..., Any], vault: Path
) -> None:
    (vault / "kb").mkdir()
    call = asking_with("remembrances", "knowledge-base", documents={"knowledge_base": vault / "kb"})
    session = Session()
    tool = {listed.name: listed for listed in KNOWLEDGE_BASE}["update_knowledge_base"]

    def write(content: str) -> Any:
        arguments = tool.adapter.read(tool, {"file_path": "fog.md", "content": content})
        return tool(call.store, {"who": "test 1", "tool": tool.name}, arguments, session)

    write("# Fog\n")
    (vault / "kb" / "fog.md").write_text("# By hand\n")
    with pytest.raises(Conflict):
        write("# Haze\n")
    assert (vault / "kb" / "fog.md").read_text() == "# By hand\n"
    write("# Haze\n")
    assert (vault / "kb" / "fog.md").read_text() == "# Haze\n"


def test_the_words_of_the_user_are_the_statement_of_the_agents_fact(call: Any) -> None:
    stored = call(
        "add_memory",
        content="We've got the keys to our place in Leipzig. It rains.",
        user_id="ann",
        facts=[
            {"key": "home", "value": "Leipzig"},
            {"key": "city", "value": "Manchester", "subject": "Ruth"},
        ],
    )
    assert [event["memory"] for event in stored.data["events"]] == [
        "We've got the keys to our place in Leipzig.",
        "It rains.",
        "Ruth, city: Manchester",
    ]
    found = call("search_memory", query="where does Ruth live, in which city", user_id="ann")
    assert "Ruth, city: Manchester" in found.text


def test_a_sentence_with_several_facts_becomes_one_memory_for_each(call: Any) -> None:
    sentence = "I'm Ana, I live in Rome and work at Fiat."
    stored = call(
        "add_memory",
        content=sentence,
        user_id="ann",
        facts=[{"key": "home", "value": "Rome"}, {"key": "employer", "value": "Fiat"}],
        user_name="Ana",
    )
    assert [event["memory"] for event in stored.data["events"]] == [
        "home: Rome",
        "employer: Fiat",
        "My name is Ana.",
    ]
    [note] = call.vault.glob("atoms/ann/home*Rome.md")
    assert f"> {sentence}" in note.read_text(encoding="utf-8")


def test_the_agents_one_fact_is_the_clause_of_the_sentence_that_has_its_value(call: Any) -> None:
    stored = call(
        "add_memory",
        content="I'm Ana, I live in Rome and work at Fiat.",
        user_id="ann",
        facts=[{"key": "home", "value": "Rome"}],
    )
    assert [event["memory"] for event in stored.data["events"]] == [
        "I'm Ana",
        "I live in Rome",
        "I work at Fiat",
    ]


def test_another_value_for_a_key_puts_the_older_one_in_doubt_until_the_agent_confirms(
    call: Any,
) -> None:
    old = call(
        "add_memory", content="Ok.", user_id="ann", facts=[{"key": "alarm code", "value": "4711"}]
    )
    fact = {"key": "alarm code", "value": "9912"}
    new = call("add_memory", content="Ok.", user_id="ann", facts=[fact])
    [event] = new.data["events"]
    assert [disputed["id"] for disputed in event["disputes"]] == [first(old)]
    assert f"[{first(old)}]" in new.text and "This may replace: alarm code: 4711" in new.text

    confirmed = call(
        "add_memory", content="Ok.", user_id="ann", facts=[{**fact, "replaces": first(old)}]
    )
    [event] = confirmed.data["events"]
    assert (event["relation"], event["id"], event["previous"]["id"]) == (
        "UPDATES",
        first(new),
        first(old),
    )
    found = call("search_memory", query="what is the alarm code", user_id="ann")
    assert "9912" in found.text and "4711" not in found.text


def test_a_fact_that_the_agent_says_is_over_ends_and_replaces_nothing(call: Any) -> None:
    call("add_memory", content="I live in Leipzig.", user_id="ann")
    call(
        "add_memory",
        content="Ok.",
        user_id="ann",
        facts=[{"key": "home", "value": "Hamburg", "until": "2025"}],
    )
    where = "where do I live"
    assert [
        row["value"] for row in call("search_memory", query=where, user_id="ann").data["facts"]
    ] == ["Leipzig"]

    call(
        "add_memory",
        content="Ok.",
        user_id="ann",
        facts=[{"key": "home", "value": "Leipzig", "since": "2024", "until": "2026-01"}],
    )
    assert not call("search_memory", query=where, user_id="ann").data["facts"]
    [note] = call.vault.glob("atoms/ann/I live in Leipzig.md")
    text = note.read_text(encoding="utf-8")
    assert "valid_from: 2024-01-01T00:00:00Z" in text and "valid_to: 2026-01-31T23:59:59Z" in text


def test_constraints_without_another_statement_are_memories_too(call: Any) -> None:
    stored = call(
        "add_memory", content="Ok.", user_id="ann", constraints=["never deploy on Fridays"]
    )
    assert [event["memory"] for event in stored.data["events"]] == ["never deploy on Fridays"]
    profile = (call.vault / "profiles" / "ann.md").read_text(encoding="utf-8")
    assert "- never deploy on Fridays %%" in profile and "[[never deploy on Fridays]]" in profile


def test_the_profile_of_another_user_is_not_that_of_conversations(
    asking_with: Contract,
) -> None:
    ask = asking_with("hmlr", "hmlr", "remembrances")
    ask("add_memory", content="Ok.", user_id="ann", constraints=["strictly vegan"])
    ask("store_conversation", message="My name is Ben.")
    profile = ask("get_user_profile").data["profile"]
    assert profile["name"] == "Ben" and not profile["constraints"]


def test_a_search_begins_with_what_the_user_pinned(call: Any, vault: Path) -> None:
    call("add_memory", content="I live in Berlin.", user_id="ann")
    assert "pinned" not in call("search_memory", query="where do I live", user_id="ann").data
    path = vault / "Rule.md"
    rule = "---\nscope: ann\npinned: true\n---\nOnly window seats.\n"
    path.write_text(rule, encoding="utf-8")

    found = call("search_memory", query="where do I live", user_id="ann")
    assert [row["text"] for row in found.data["pinned"]] == ["Only window seats."]
    assert found.text.index("Only window seats.") < found.text.index("# Facts")
    assert "pinned" not in call("search_memory", query="seats", user_id="bob").data
