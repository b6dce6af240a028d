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
