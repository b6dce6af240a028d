"""What becomes of a new statement, and of the known facts because of it.

The facts that its author names count most, then what the rules say, then what a model says. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from simplemem.features.agent_statements import AGENT
from simplemem.features.fact import Fact
from simplemem.features.facts.comparing import Comparison, SimilarFact
from simplemem.features.facts.doubt import find_disputed
from simplemem.features.facts.forgetting import forget_stated
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.new_fact import NewFact, Ruling
from simplemem.features.facts.outcome import Outcome, disputed_since, superseded_by
from simplemem.features.facts.restating import restate, restate_replacing
from simplemem.features.facts.statement_rules import Verdict
from simplemem.features.facts.stored_statement import as_stored


def reconcile_statement(
    new: NewFact,
    known_facts: KnownFacts,
    at: datetime,
    comparison: Comparison,
    rulings: Iterable[Ruling],
) -> Outcome:
    """Return what becomes of a statement: what its author names counts, then rules, then a model.

    A statement about the past replaces, extends and disputes no fact, unless its author names it.
    """
    if new.is_over(at):
        comparison = _without_update(comparison)

    named = known_facts.with_ids(new.replaces)
    if named:
        outcome = _replace_named(new, known_facts, at, comparison, named)
    else:
        outcome = _follow_rules(new, known_facts, at, comparison, rulings)
    return outcome._replace(unknown_ids=known_facts.unknown_ids(new.replaces))


def _without_update(comparison: Comparison) -> Comparison:
    """Return the comparison of a statement that is over: it replaces and extends no fact."""
    verdict = comparison.verdict
    if verdict.event != "UPDATE":
        return comparison
    return Comparison(Verdict("ADD", rule=verdict.rule), None, comparison.similar)


def _replace_named(
    new: NewFact,
    known_facts: KnownFacts,
    at: datetime,
    comparison: Comparison,
    named: Sequence[Fact],
) -> Outcome:
    """Return the outcome of a statement of which its author names the facts that it replaces.

    A fact that is stated already gets no second note: it replaces the others itself. What the rules
    say is outdated is replaced too.
    """
    rule = new.decided_by or AGENT
    first = named[0]
    replaced = [fact for fact in named if known_facts.may_be_replaced(fact)]

    other = _other_target(comparison, named, known_facts)
    is_stated = comparison.verdict.event == "NOOP"
    if other is not None and is_stated and first in replaced:
        return restate_replacing(new, known_facts, at, rule, other, replaced)

    if other is not None and comparison.verdict.relation == "UPDATES":
        replaced.append(other)
    outcome = Outcome(
        new,
        at,
        "UPDATE",
        rule,
        relation="UPDATES",
        target=first,
        candidates=comparison.similar,
    )
    return _with_own_note(outcome, known_facts, replaced)


def _other_target(
    comparison: Comparison, named: Sequence[Fact], known_facts: KnownFacts
) -> Fact | None:
    """Return the fact that rules say a statement is about, beside the facts that its author names.

    Return None if there is none, or if it must not be changed.
    """
    target = comparison.target
    if target is None or target in named:
        return None
    return target if known_facts.may_be_replaced(target) else None


def _follow_rules(
    new: NewFact,
    known_facts: KnownFacts,
    at: datetime,
    comparison: Comparison,
    rulings: Iterable[Ruling],
) -> Outcome:
    """Return the outcome of a statement that names no fact, by the rules, and then by a model."""
    verdict = comparison.verdict
    if verdict.event == "DELETE":
        return forget_stated(new, known_facts, at, comparison.target)
    if verdict.event == "NOOP" and comparison.target is not None:
        return _confirm(new, known_facts, at, verdict.rule, comparison.target)

    outcome = Outcome(
        new,
        at,
        verdict.event,
        verdict.rule,
        relation=verdict.relation,
        target=comparison.target,
        candidates=comparison.similar,
    )
    if verdict.event == "ADD" and not new.is_over(at):
        applicable = [ruling for ruling in rulings if known_facts.holds(ruling.target)]
        outcome = _follow_model(outcome, applicable)
    return _with_own_note(outcome, known_facts)


def _confirm(
    new: NewFact, known_facts: KnownFacts, at: datetime, rule: str, restated: Fact
) -> Outcome:
    """Return the outcome of a statement that only says again what a known fact states."""
    in_doubt = [fact for fact in _facts_in_doubt(new, known_facts, at) if fact is not restated]
    outcome = restate(new, known_facts, at, rule, restated)
    return outcome._replace(disputed=disputed_since(in_doubt, at))


def _follow_model(outcome: Outcome, rulings: Sequence[Ruling]) -> Outcome:
    """Return the outcome of a statement that rules would add, after what a model says of it.

    The first ruling that replaces or extends a fact decides.
    """
    derived = [ruling for ruling in rulings if ruling.relation == "DERIVES"]
    outcome = outcome._replace(derived=derived)
    for ruling in rulings:
        if ruling.relation != "DERIVES":
            return outcome._replace(
                event="UPDATE",
                rule=ruling.method,
                relation=ruling.relation,
                target=ruling.target,
            )
    return outcome


def _with_own_note(
    outcome: Outcome, known_facts: KnownFacts, replaced: Sequence[Fact] = ()
) -> Outcome:
    """Return the outcome of a statement that gets a note, with all that this does to known facts.

    `replaced` are facts that it replaces, beside the target of an update or with it.
    """
    outcome = _spare_target(outcome, known_facts)
    target = outcome.target
    if outcome.relation == "UPDATES" and target is not None and target not in replaced:
        replaced = [target, *replaced]

    at = outcome.at
    in_doubt = _facts_in_doubt(outcome.new, known_facts, at)
    new = as_stored(outcome.new, at, in_doubt)
    doubtful = [fact for fact in in_doubt if fact is not target and fact not in replaced]
    candidates = []
    if outcome.event == "ADD":
        candidates = [pair for pair in outcome.candidates if pair.fact not in replaced]
    return outcome._replace(
        new=new,
        superseded=superseded_by(replaced, new, new.valid_from or at, at),
        disputed=disputed_since(doubtful, at),
        candidates=candidates,
    )


def _spare_target(outcome: Outcome, known_facts: KnownFacts) -> Outcome:
    """Return an outcome that replaces no fact which must stay: the new one is added beside it.

    That fact is then the first candidate, so that the user may compare the two.
    """
    target = outcome.target
    is_replacing = outcome.relation == "UPDATES"
    if target is None or not is_replacing or known_facts.may_be_replaced(target):
        return outcome
    return outcome._replace(
        event="ADD",
        relation=None,
        target=None,
        candidates=[SimilarFact(target, 1.0), *outcome.candidates],
    )


def _facts_in_doubt(new: NewFact, known_facts: KnownFacts, at: datetime) -> list[Fact]:
    """Return the known facts that a statement puts in doubt; none if it is over."""
    if new.is_over(at):
        return []
    return find_disputed(new, known_facts.disputable(), at)
