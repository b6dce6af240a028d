"""What a new fact does to earlier ones: it confirms, replaces, extends or disputes them, or none.

A statement has an `Outcome`: rules compare its words with all current facts, and a model may say
more. A fact with a key is a `Version`: only its key and its times count. Both are decided here, and
written by `adding` and by the notes of conversations. `reviews` says what is left to the agent.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from simplemem.features.agent_statements import AGENT
from simplemem.features.changes import read_change
from simplemem.features.fact import Fact, Slot, normalize_name
from simplemem.features.facts.comparing import Decision, SimilarFact, facts_in_doubt
from simplemem.features.facts.decay import is_current, is_past
from simplemem.features.facts.key_notes import stated_at
from simplemem.features.facts.reconciling import Verdict
from simplemem.features.facts.stated import StatedFact, key_of

if TYPE_CHECKING:
    from simplemem.features.facts.fact import AgentReading, NewFact, Ruling


class Outcome(NamedTuple):
    """What a new statement does to the current facts, as rules and a model decided it."""

    event: str  # "ADD" or "UPDATE"
    relation: str | None  # of an update: "UPDATES" if it replaces the target, or "EXTENDS"
    rule: str  # the name of the rule or of the model that decided
    target: Fact | None  # the fact that is replaced or extended
    similar: Sequence[SimilarFact]  # facts that the user may have to compare with the new one


class Version(NamedTuple):
    """How a fact with a key is stored: as another version of an earlier fact, or as a new one."""

    stated: StatedFact  # with the key and since when it holds, as they are stored
    at: datetime  # its place in the history
    earlier: Fact | None  # the fact that gets this version; None for a new note
    ending: Fact | None = None  # the current value of the key, which ends when the new one begins


def without_past_update(decision: Decision) -> Decision:
    """Return the decision about a statement that is over: it replaces and extends no fact."""
    if decision.verdict.event != "UPDATE":
        return decision
    return Decision(Verdict("ADD", rule=decision.verdict.rule), None, decision.similar)


def outcome_of(
    decision: Decision, rulings: Iterable[Ruling], may_replace: Callable[[Fact], bool]
) -> Outcome:
    """Return what a statement does by the first ruling that replaces or extends, else by the rules.

    It is an addition if it would replace a fact of which `may_replace` is false. That fact is then
    the first of the similar ones, so that the user may compare the two.
    """
    outcome = _combine(decision, rulings)
    target = outcome.target
    if target is None or outcome.relation != "UPDATES" or may_replace(target):
        return outcome
    similar = [SimilarFact(target, 1.0), *outcome.similar]
    return Outcome("ADD", None, outcome.rule, None, similar)


def _combine(decision: Decision, rulings: Iterable[Ruling]) -> Outcome:
    """Return the outcome of the first ruling that replaces or extends a fact, else of the rules."""
    for ruling in rulings:
        if ruling.relation != "DERIVES":
            return Outcome(
                event="UPDATE",
                relation=ruling.relation,
                rule=ruling.method,
                target=ruling.target,
                similar=decision.similar,
            )

    verdict = decision.verdict
    return Outcome(
        event=verdict.event,
        relation=verdict.relation,
        rule=verdict.rule,
        target=decision.target,
        similar=decision.similar,
    )


def facts_disputed_by(new: NewFact, facts: Sequence[Fact]) -> list[Fact]:
    """Return those among `facts` that a new statement puts in doubt.

    Its text says that they changed, but not to what; or the agent states another value for the
    same key, and not which fact that replaces.
    """
    doubtful = facts_in_doubt(new.text, facts)
    if read_change(new.text) is None:
        doubtful = [fact for fact in doubtful if _may_be_meant(fact, new.agent_reading)]
    slot = new.slot
    if new.decided_by == AGENT and slot is not None and not new.replaces:
        doubtful += [
            fact for fact in facts if _has_other_value(fact, slot) and fact not in doubtful
        ]
    return doubtful


def _may_be_meant(fact: Fact, reading: AgentReading | None) -> bool:
    """Return whether a text that names no fact may mean this one, after what an agent read in it.

    It does not if the agent names the facts that are outdated, or if all that it read is about
    others. Two names are of one subject if they share a word: "Becky" and "sister Becky".
    """
    if reading is None:
        return True
    if reading.names_replaced:
        return False
    if fact.slot is None:
        return True
    names = normalize_name(fact.slot.subject).split()
    for subject in reading.subjects:
        words = normalize_name(subject).split()
        is_user = not words and not names
        if is_user or not set(words).isdisjoint(names):
            return True
    return False


def _has_other_value(fact: Fact, slot: Slot) -> bool:
    """Return whether a fact has the subject and the relation of a slot, and another value."""
    if fact.slot is None:
        return False
    fact_parts = [part.casefold() for part in fact.slot]
    slot_parts = [part.casefold() for part in slot]
    return fact_parts[:2] == slot_parts[:2] and fact_parts[2] != slot_parts[2]


def version_of(stated: StatedFact, facts: Sequence[Fact], at: datetime) -> Version:
    """Return how a fact is stored that is stated at a time, beside all facts with a key.

    The current value of its key holds until a planned one begins: that gets a key of its own. A
    value that was over before replaces another one only if the agent says so: its place in the
    history is its end.
    """
    earlier = _earlier_version(stated, facts)
    ending = None
    if earlier is not None and stated.since is not None and _is_plan(stated, earlier, at):
        ending = earlier
        stated = stated._replace(key=key_of(f"{stated.key} from {stated.since:%Y %m %d}"))
        earlier = _earlier_version(stated, facts)
    if earlier is None:
        return Version(stated, at, None, ending)

    until = stated.until
    if until is not None and is_past(until, at):
        if earlier.value == stated.value:
            stated = stated._replace(since=stated.since or earlier.valid_from)
        elif not stated.replaces:
            at = until.replace(microsecond=0)
    return Version(stated._replace(key=earlier.key), at, earlier, ending)


def _earlier_version(stated: StatedFact, facts: Sequence[Fact]) -> Fact | None:
    """Return the fact that a stated one is another version of, None if there is none.

    It has the same key. A credential may also be named by its noun alone, "the password", if there
    is only one credential with that noun. A fact whose note cannot be changed is none.
    """
    changeable = [fact for fact in facts if not fact.problem]
    same_key = [fact for fact in changeable if fact.key == stated.key]
    if same_key:
        return max(same_key, key=stated_at)
    if stated.category != "secret":
        return None

    same_noun = [fact for fact in changeable if fact.key.endswith(f"_{stated.key}")]
    return same_noun[0] if len(same_noun) == 1 else None


def _is_plan(stated: StatedFact, current: Fact, at: datetime) -> bool:
    """Return whether a fact begins after a time, at which another value of its key holds.

    A fact that replaces another one is no plan: the agent says that the other one is outdated.
    """
    if stated.since is None or stated.since <= at or stated.replaces:
        return False
    has_begun = current.valid_from is None or current.valid_from <= at
    return has_begun and current.value != stated.value and is_current(current, at)
