"""The tools of conversations, as a client meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Contract = Callable[..., Any]


def test_an_active_topic_has_no_older_summary(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    stored = ask(
        "store_conversation", message="The dial of the tide clock is brass.", topic="Tide clock"
    )
    block = stored.data["block_id"]
    ask("store_conversation", message="Our kitten needs a name.", topic="Kitten")

    def summaries() -> set[str]:
        found = ask("retrieve_memory", query="the dial of the tide clock").data["memories"]
        (summary,) = (topic["summary"] for topic in found if topic["block_id"] == block)
        return {summary, ask("get_topic_history", block_id=block).data["summary"]}

    assert summaries() == {"“The dial of the tide clock is brass.”"}
    ask("store_conversation", message="And the case is oak.", topic=block)
    (path,) = (path for path in ask.vault.rglob("*Tide clock.md") if ".simplemem" not in path.parts)
    assert "description: “The dial of" in path.read_text(encoding="utf-8") and summaries() == {""}


def test_one_call_passes_fifty_facts_at_most(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    facts = [{"key": f"locker {number}", "value": f"K-{number}"} for number in range(51)]
    refused = ask("store_conversation", message="The lockers have keys.", facts=facts)
    assert refused.code == "invalid" and "50" in refused.text and not list(ask.vault.rglob("*.md"))
    assert (
        ask("store_conversation", message="The lockers have keys.", facts=facts[:50]).data[
            "facts_extracted"
        ]
        == 50
    )


TOLD, LATER = "2026-01-10T10:00:00Z", "2026-06-20T10:00:00Z"
CHANGED = [
    ("The alarm code is 4711.", [], "Last week I changed the alarm code.", "what is the alarm code"),
    ("My address is Elbchaussee 12, Hamburg.", [], "I moved to Leipzig.", "where do I live"),
    ("My phone number is 0151 2345678.", [], "I have a new phone number.", "what is my phone number"),
    ("I work at Siemens.", [("employer", "Siemens")], "I changed jobs, I'm at Bosch now.", "who is my employer"),
    ("My car is a Volvo.", [("car", "Volvo")], "I sold the Volvo.", "which car do I have"),
    ("Mi código de la alarma es 4711.", [("código alarma", "4711")], "Han cambiado el código de la alarma.",
     "código alarma"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "facts", "new", "question"), CHANGED)
def test_a_fact_that_a_later_turn_changed_is_disputed_and_both_are_shown_newest_first(
    asking_with: Contract, old: str, facts: list[tuple[str, str]], new: str, question: str
) -> None:
    ask = asking_with("hmlr", "talk")
    sent = [{"key": key, "value": value} for key, value in facts]
    ask("store_conversation", message=old, facts=sent, timestamp=TOLD)
    [current] = ask("retrieve_memory", query=question).data["facts"]
    assert "disputed" not in current
    ask("store_conversation", message=new, timestamp=LATER)

    later, earlier = ask("retrieve_memory", query=question).data["facts"]
    assert (later["value"], later["valid_from"], later["key"]) == (new, LATER, current["key"])
    assert (earlier["value"], earlier["valid_from"], earlier["disputed"]) == (
        current["value"],
        TOLD,
        LATER,
    )
    assert earlier["confidence"] == current["confidence"] / 2 < later["confidence"]
    text = ask("talk_context", message=question).data["text"]
    name = current["key"].replace("_", " ")
    assert f"- {name}: {new}\n- {name}: {current['value']} (disputed since 2026-06-20)" in text


def test_a_value_that_is_read_in_a_change_is_current_at_once(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    ask("store_conversation", message="The alarm code is 4711.", timestamp=TOLD)
    ask("store_conversation", message="I've changed the alarm code to 0815.", timestamp=LATER)
    [fact] = ask("retrieve_memory", query="what is the alarm code").data["facts"]
    assert fact["value"] == "0815" and "disputed" not in fact


def test_a_dispute_ends_with_a_new_value_or_with_the_turn_that_raised_it(
    asking_with: Contract,
) -> None:
    ask = asking_with("hmlr")
    ask("store_conversation", message="The alarm code is 4711.", timestamp=TOLD)
    stored = ask("store_conversation", message="I changed the alarm code.", timestamp=LATER).data
    assert len(ask("retrieve_memory", query="what is the alarm code").data["facts"]) == 2

    [path] = [
        note
        for note in ask.vault.glob("topics/**/*.md")
        if stored["turn_id"].replace("_", "-") in note.read_text()
    ]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("^" + stored["turn_id"].replace("_", "-"), ""), encoding="utf-8")
    ask.store.sync()
    [fact] = ask("retrieve_memory", query="what is the alarm code").data["facts"]
    assert fact["value"] == "4711" and "disputed" not in fact
    path.write_text(text, encoding="utf-8")
    ask.store.sync()

    ask("store_conversation", message="The alarm code is 0815.", timestamp="2026-07-01T10:00:00Z")
    [fact] = ask("retrieve_memory", query="what is the alarm code").data["facts"]
    assert fact["value"] == "0815" and "disputed" not in fact
    assert "disputed" not in (ask.vault / "facts/alarm code.md").read_text(encoding="utf-8")


def test_what_is_back_dated_or_about_somebody_else_disputes_nothing(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    ask("store_conversation", message="My address is Elbchaussee 12, Hamburg.", timestamp=LATER)
    ask("store_conversation", message="I moved to Leipzig.", timestamp=TOLD)
    for message in ("My sister moved to Leipzig.", "I moved the car.", "Should I move to Leipzig?"):
        ask("store_conversation", message=message, timestamp="2026-07-01T10:00:00Z")
    [fact] = ask("retrieve_memory", query="where do I live").data["facts"]
    assert fact["value"].startswith("Elbchaussee") and "disputed" not in fact


def test_a_constraint_that_a_later_turn_changed_is_disputed_in_the_profile(
    asking_with: Contract,
) -> None:
    ask = asking_with("hmlr")
    ask("store_conversation", message="I'm vegetarian. I'm allergic to nuts.", timestamp=TOLD)
    ask("store_conversation", message="I eat meat again.", timestamp=LATER)
    constraints = ask("get_user_profile").data["profile"]["constraints"]
    texts = [constraint["text"] for constraint in constraints]
    assert texts == ["allergic to nuts", "I eat meat again.", "vegetarian"]
    assert [constraint.get("disputed") for constraint in constraints] == [None, None, "2026-06-20"]


def test_a_context_says_if_no_turn_answers_the_message(
    asking_with: Contract,
) -> None:
    ask = asking_with("hmlr", "-hmlr", "talk")
    for message, topic in (
        ("The boiler in the cellar was serviced by Ines in March.", "Boiler"),
        ("Ines pruned the old pear tree in the garden.", "Garden"),
        ("The piano was tuned by a man from the village.", "Piano"),
    ):
        ask("store_conversation", message=message, topic=topic)
    ask.in_step()
    unanswered = "Which passport did Ines renew for the expedition to Patagonia?"
    found = ask("retrieve_memory", query=unanswered).data
    assert found["only_nearest"] and found["degraded"].startswith("Nothing found")
    text = ask("talk_context", message=unanswered, budget_tokens=2000).data["text"]
    assert "# Earlier, about" not in text and "# Nothing earlier answers this" in text

    answered = "When was the boiler in the cellar serviced?"
    assert "only_nearest" not in ask("retrieve_memory", query=answered).data
    assert (
        "Nothing earlier"
        not in ask("talk_context", message=answered, budget_tokens=2000).data["text"]
    )


def test_a_fact_of_another_person_has_a_key_of_its_own(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    ask(
        "store_conversation",
        message="My phone is 030 1.",
        facts=[{"key": "phone", "value": "030 1"}],
    )
    sister = {"key": "phone", "value": "030 2", "subject": "Ruth"}
    stored = ask("store_conversation", message="Ruth has 030 2.", facts=[sister])
    assert "ruth_phone" in {fact["key"] for fact in stored.data["facts"]}
    text = (ask.vault / "facts" / "ruth phone.md").read_text(encoding="utf-8")
    assert "subject: Ruth" in text
    assert "replaced" not in stored.data
    [own] = ask("retrieve_memory", query="what is my phone").data["facts"]
    assert own["value"] == "030 1"


def test_what_is_over_ends_its_value_and_leaves_others(asking_with: Contract) -> None:
    ask = asking_with("hmlr")

    def employer() -> list[str]:
        found = ask("retrieve_memory", query="who is my employer").data["facts"]
        return [fact["value"] for fact in found]

    def store(day: str, message: str, **fact: str) -> None:
        facts = [{"key": "employer", **fact}]
        ask("store_conversation", message=message, facts=facts, timestamp=f"{day}T10:00:00Z")

    store("2026-01-10", "At Bosch they are kind.", value="Bosch", since="2025-01")
    store("2026-01-11", "At Siemens they were kind too.", value="Siemens", until="2024")
    assert employer() == ["Bosch"]
    store("2026-06-01", "I had my last day at Bosch.", value="Bosch", until="2026-05-31")
    assert employer() == []
    text = (ask.vault / "facts" / "employer.md").read_text(encoding="utf-8")
    assert "valid_from: 2025-01-01T00:00:00Z" in text and "valid_to: 2026-05-31T23:59:59Z" in text
    store("2026-09-01", "I'm back at Bosch.", value="Bosch")
    assert employer() == ["Bosch"]


def test_a_fact_in_doubt_is_named_for_the_agent(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    ask("store_conversation", message="The alarm code is 4711.", timestamp=TOLD)
    doubt = ask("store_conversation", message="I changed the alarm code.", timestamp=LATER).data
    [review] = doubt["needs_review"]
    assert review["id"] == doubt["turn_id"]
    assert "The alarm code is 4711. (2026-01-10) [alarm code]" in review["hint"]


def test_a_plan_takes_effect_on_its_day_and_the_current_value_holds_until_then(
    asking_with: Contract,
) -> None:
    ask = asking_with("hmlr")

    def store(day: str, value: str, since: str) -> None:
        fact = {"key": "home", "value": value, "since": since, "subject": "user"}
        message = f"We live in {value} from then on."
        ask("store_conversation", message=message, facts=[fact], timestamp=f"{day}T10:00:00Z")

    store("2026-02-01", "Hamburg", "2025-01-01")
    store("2026-03-01", "Leipzig", "2999-01-01")
    found = ask("retrieve_memory", query="where is my home").data["facts"]
    assert {fact["key"]: fact["value"] for fact in found}["home"] == "Hamburg"
    text = (ask.vault / "facts" / "home.md").read_text(encoding="utf-8")
    assert "valid_to: 2999-01-01T00:00:00Z" in text
    [plan] = ask.vault.glob("facts/home*2999*.md")
    assert "value: Leipzig" in plan.read_text(encoding="utf-8")


def test_topics_are_listed_page_by_page(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    for number in range(5):
        message = f"Kite number {number} has a tail."
        ask("store_conversation", message=message, topic=f"Kite {number}")
    everything = ask("list_active_topics").data
    assert set(everything) == {"topics"} and len(everything["topics"]) == 5

    first = ask("list_active_topics", limit=2).data
    assert (len(first["topics"]), first["more"]) == (2, 3)
    second = ask("list_active_topics", limit=2, cursor=first["next_cursor"]).data
    last = ask("list_active_topics", limit=2, cursor=second["next_cursor"]).data
    assert "more" not in last and "next_cursor" not in last
    assert first["topics"] + second["topics"] + last["topics"] == everything["topics"]
    assert ask("list_active_topics", cursor="next").code == "invalid"


def test_retrieval_begins_with_constraints_and_pinned_notes(asking_with: Contract) -> None:
    ask = asking_with("hmlr", "talk")
    assert {"constraints", "pinned"}.isdisjoint(ask("retrieve_memory", query="kites").data)
    ask("store_conversation", message="I'm allergic to walnuts.")
    note = "---\npinned: true\n---\nKites are flown before noon.\n"
    (ask.vault / "Kite rule.md").write_text(note, encoding="utf-8")

    found = ask("retrieve_memory", query="what is the weather").data
    assert list(found)[:2] == ["constraints", "pinned"]
    assert "walnuts" in found["constraints"][0]["text"]
    rule = {"name": "Kite rule", "kind": "pinned", "text": "Kites are flown before noon."}
    assert found["pinned"] == [rule]
