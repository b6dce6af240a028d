"""What becomes of known facts that a text asks to forget. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from simplemem.features.fact import Fact
from simplemem.features.facts.doubt import find_about_topic
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.outcome import Outcome

_FORGET_RULE: Final = "rule:forget"


def forget_topic(new: NewFact, topic: str, known_facts: KnownFacts, at: datetime) -> Outcome:
    """Return the outcome of a text that asks to forget all facts that name a topic."""
    facts = find_about_topic(topic, known_facts.facts)
    reason = "" if facts else f"no fact is about {topic!r}"
    return _forget(new, known_facts, at, facts, reason)


def forget_stated(
    new: NewFact, known_facts: KnownFacts, at: datetime, target: Fact | None
) -> Outcome:
    """Return the outcome of a text that asks to forget what `target` states.

    It is None if no known fact states that.
    """
    facts = [] if target is None else [target]
    reason = "" if facts else "no fact matches"
    return _forget(new, known_facts, at, facts, reason)


def _forget(
    new: NewFact, known_facts: KnownFacts, at: datetime, facts: Iterable[Fact], reason: str
) -> Outcome:
    """Return the outcome of a text that asks to forget some facts.

    `reason` says why there are none, else it is "".
    """
    forgotten = []
    reasons = [reason] if reason else []
    for fact in facts:
        if fact.problem:
            reasons.append(fact.problem)
        elif known_facts.is_protected(fact):
            reasons.append("a web page cannot withdraw what the user stated")
        else:
            forgotten.append(fact)
    return Outcome(new, at, "DELETE", _FORGET_RULE, forgotten=forgotten, not_forgotten=reasons)
