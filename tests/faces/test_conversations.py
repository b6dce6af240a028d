"""The tools of conversations, as a client meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Contract = Callable[..., Any]


def test_a_block_that_goes_on_shows_no_older_summary(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    told = ask("store_conversation", message="The dial of the tide clock is brass.", topic="Tide clock")
    block = told.data["block_id"]
    ask("store_conversation", message="Our kitten needs a name.", topic="Kitten")

    def shown() -> set[str]:
        found = ask("retrieve_memory", query="the dial of the tide clock").data["memories"]
        (summary,) = (each["summary"] for each in found if each["block_id"] == block)
        return {summary, ask("get_topic_history", block_id=block).data["summary"]}

    assert shown() == {"“The dial of the tide clock is brass.”"}
    ask("store_conversation", message="And the case is oak.", topic=block)
    (path,) = (path for path in ask.vault.rglob("*Tide clock.md") if ".simplemem" not in path.parts)
    assert "description: “The dial of" in path.read_text(encoding="utf-8") and shown() == {""}


def test_one_call_hands_over_fifty_facts_at_most(asking_with: Contract) -> None:
    ask = asking_with("hmlr")
    facts = [{"key": f"locker {number}", "value": f"K-{number}"} for number in range(51)]
    refused = ask("store_conversation", message="The lockers have keys.", facts=facts)
    assert refused.code == "invalid" and "50" in refused.text and not list(ask.vault.rglob("*.md"))
    assert ask("store_conversation", message="The lockers have keys.", facts=facts[:50]).data["facts_extracted"] == 50


def test_a_context_says_when_nothing_that_was_said_answers_the_message(asking_with: Contract) -> None:
    ask = asking_with("hmlr", "-hmlr", "talk")
    for message, topic in (
        ("The boiler in the cellar was serviced by Ines in March.", "Boiler"),
        ("Ines pruned the old pear tree in the garden.", "Garden"),
        ("The piano was tuned by a man from the village.", "Piano"),
    ):
        ask("store_conversation", message=message, topic=topic)
    ask.in_step()
    unknown = "Which passport did Ines renew for the expedition to Patagonia?"
    found = ask("retrieve_memory", query=unknown).data
    assert found["only_nearest"] and found["degraded"].startswith("Nothing found")
    text = ask("talk_context", message=unknown, budget_tokens=2000).data["text"]
    assert "# Said before, about" not in text and "# Nothing said before answers this" in text

    known = "When was the boiler in the cellar serviced?"
    assert "only_nearest" not in ask("retrieve_memory", query=known).data
    assert "Nothing said before" not in ask("talk_context", message=known, budget_tokens=2000).data["text"]
