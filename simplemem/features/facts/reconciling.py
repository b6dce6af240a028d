"""What a new fact does to those that are known: the one reconciler of statements and of keys.

`reconcile` returns an `Outcome`, which states all that becomes of the new fact and of known ones.
`reconcile_turn` does so for what a turn says beside its facts. `KnownFacts` says which facts may be
changed. The writers only enter an outcome in their form of notes: `adding` for statements,
`fact_recording` of conversations for facts with a key.

What clients rely on makes the two forms differ in these steps:

- A statement is about a fact of which the rules or a model say so, by its words. A fact with a key
  is about the one with this key, and becomes another version in its note, which has the history.
- A value of a key that begins later gets a key of its own (`_under_key_of_plan`).
- A statement is stored once, and disputes facts by its own words. A fact with a key is stored each
  time, and the whole turn disputes facts.

Which facts may have to be compared by their names is known at the end of a call: see `reviews`.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from simplemem.features.agent_statements import AGENT
from simplemem.features.changes import Change
from simplemem.features.fact import Fact
from simplemem.features.facts.comparing import Comparison, SimilarFact
from simplemem.features.facts.decay import is_current, is_lasting, is_past
from simplemem.features.facts.doubt import (
    end_of_corrected_appointment,
    find_disputed,
    find_doubted_by_changes,
)
from simplemem.features.facts.forgetting import forget_stated
from simplemem.features.facts.key_notes import stated_at, stated_subject
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.features.facts.new_fact import NewFact, Ruling
from simplemem.features.facts.outcome import FactAt, Outcome, TurnOutcome
from simplemem.features.facts.reading import read_statement
from simplemem.features.facts.stated import key_of
from simplemem.features.facts.statement_rules import Verdict

_NOT_COMPARED: Final = Comparison(Verdict("ADD"))  # of a fact with a key, found by the key alone


def reconcile(
    new: NewFact,
    known_facts: KnownFacts,
    at: datetime,
    comparison: Comparison = _NOT_COMPARED,
    rulings: Iterable[Ruling] = (),
) -> Outcome:
    """Return what becomes of a fact that is stated at a time, and of the known facts.

    `comparison` is what the rules say about a statement, and `rulings` are what a model said about
    it before. The facts that the caller says are replaced (`new.replaces`) count more than both.
    """
    if new.key:
        outcome = _reconcile_key(new, known_facts, at)
    else:
        outcome = _reconcile_statement(new, known_facts, at, comparison, rulings)
    if not outcome.is_in_force:
        return outcome  # it replaces nothing, whatever it names

    known_ids = {fact.id for fact in known_facts.with_ids(new.replaces)}
    unknown_ids = [id_ for id_ in new.replaces if id_ not in known_ids]
    return outcome._replace(unknown_ids=unknown_ids)


def _superseded(facts: Iterable[Fact], new_begins: datetime, at: datetime) -> list[FactAt]:
    """Return facts with the ends that they get from a new one, which supersedes them at a time.

    A fact ends when the new one begins, at the latest now, but not before it began itself.
    """
    end = min(new_begins, at)
    superseded = []
    for fact in facts:
        begins = fact.valid_from or end
        superseded.append(FactAt(fact, max(end, begins)))
    return superseded


def _disputed(facts: Iterable[Fact], at: datetime) -> list[FactAt]:
    """Return facts with the times since when they are disputed that are put in doubt at a time.

    A fact that is disputed already keeps the time since when it is.
    """
    return [FactAt(fact, fact.disputed or at) for fact in facts]


# Facts with a key


def _reconcile_key(new: NewFact, known_facts: KnownFacts, at: datetime) -> Outcome:
    """Return what becomes of a fact with a key. It is stored whatever known facts state.

    Only the facts that the caller names are superseded: the earlier value of the key goes into the
    history of the same note. What the message says has changed is up to `reconcile_turn`.
    """
    ended = []
    target = _earlier_version(new, known_facts.versions)
    if target is not None and new.valid_from is not None and _is_plan(new, target, at):
        ended.append(FactAt(target, new.valid_from))
        new = _under_key_of_plan(new, new.valid_from)
        target = _earlier_version(new, known_facts.versions)

    replaced = known_facts.with_ids(new.replaces)
    if target is None:
        superseded = _superseded(replaced, new.valid_from or at, at)
        return Outcome(new, at, "ADD", new.decided_by, superseded=superseded, ended=ended)

    outcome = _as_version(new, target, at)._replace(ended=ended)
    held = known_facts.get(target.path)
    if held is not None and held.value == _value_of(new) and held not in replaced:
        outcome = outcome._replace(event="NOOP", relation=None)
    if outcome.is_in_force:
        begins = _begins_in_note(outcome, target)
        outcome = outcome._replace(superseded=_superseded(replaced, begins, at))
    return outcome


def _value_of(new: NewFact) -> str:
    """Return the value of a fact with a key."""
    return "" if new.slot is None else new.slot.object


def _earlier_version(new: NewFact, versions: Sequence[Fact]) -> Fact | None:
    """Return the fact in whose note the history of a new fact's key is, None if there is none.

    It has the same key. A credential may also be named by its noun alone, "the password", if there
    is only one credential with that noun. A fact whose note cannot be changed is none.
    """
    changeable = [fact for fact in versions if not fact.problem]
    same_key = [fact for fact in changeable if fact.key == new.key]
    if same_key:
        return max(same_key, key=stated_at)
    if not new.is_secret:
        return None

    same_noun = [fact for fact in changeable if fact.key.endswith(f"_{new.key}")]
    return same_noun[0] if len(same_noun) == 1 else None


def _is_plan(new: NewFact, current: Fact, at: datetime) -> bool:
    """Return whether a fact begins after a time, at which another value of its key holds.

    A fact that replaces another one is no plan: the agent says that the other one is outdated.
    """
    if new.valid_from is None or new.valid_from <= at or new.replaces:
        return False
    has_begun = current.valid_from is None or current.valid_from <= at
    return has_begun and current.value != _value_of(new) and is_current(current, at)


def _under_key_of_plan(new: NewFact, begins: datetime) -> NewFact:
    """Return a planned fact with a key of its own, so that the current value holds until then.

    The note of a key states one value as the current one, which a plan is not yet.
    """
    return new._replace(key=key_of(f"{new.key} from {begins:%Y %m %d}"))


def _as_version(new: NewFact, target: Fact, at: datetime) -> Outcome:
    """Return a fact as another version of `target`, in whose note the history of its key is.

    A value that was over before goes into the history at its end. If the agent says that it
    replaces another fact, it goes there at the time of the turn.
    """
    until = new.valid_to
    if until is not None and is_past(until, at):
        if target.value == _value_of(new):
            new = new._replace(valid_from=new.valid_from or target.valid_from)
        elif not new.replaces:
            at = until.replace(microsecond=0)

    new = new._replace(key=target.key)
    outcome = Outcome(new, at, "UPDATE", new.decided_by, "UPDATES", target)
    is_in_force = _is_latest(outcome, target) or target.value == _value_of(new)
    return outcome._replace(is_in_force=is_in_force)


def _is_latest(outcome: Outcome, target: Fact) -> bool:
    """Return whether a version is the latest one of its key, in the order of `FactVersion.rank`."""
    rank = (outcome.at, _value_of(outcome.new))
    return rank >= (stated_at(target), target.value)


def _begins_in_note(outcome: Outcome, target: Fact) -> datetime:
    """Return since when the value of a key that is in force holds, as its note will say.

    If a later version has the same value, the note keeps the time of that one.
    """
    begins = outcome.new.valid_from or outcome.at
    if _is_latest(outcome, target):
        return begins
    return target.valid_from or begins


def reconcile_turn(
    changes: Iterable[Change], ends: Mapping[str, datetime], known_facts: KnownFacts, at: datetime
) -> TurnOutcome:
    """Return what a turn says at a time of known facts, beside the facts that it states.

    `changes` are what its sentences say has changed, and `ends` the ends of facts by their ids. The
    facts that the turn states must be marked as such in `known_facts`.
    """
    ended = [
        FactAt(fact, ends[fact.id])
        for fact in known_facts.facts
        if fact.id in ends and known_facts.may_be_ended(fact)
    ]
    over_paths = {fact.path for fact, end in ended if is_past(end, at)}
    disputable = [fact for fact in known_facts.disputable() if fact.path not in over_paths]
    in_doubt = find_doubted_by_changes(changes, disputable, stated_subject)
    return TurnOutcome(ended, _disputed(in_doubt, at))


# Statements


def _reconcile_statement(
    new: NewFact,
    known_facts: KnownFacts,
    at: datetime,
    comparison: Comparison,
    rulings: Iterable[Ruling],
) -> Outcome:
    """Return what becomes of a statement: what its author names counts, then rules, then a model.

    A statement about the past replaces, extends and disputes no fact, unless its author names it.
    """
    if _is_over(new, at):
        comparison = _without_update(comparison)

    named = known_facts.with_ids(new.replaces)
    if named:
        return _replace_named(new, known_facts, at, comparison, named)

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
    if verdict.event == "ADD" and not _is_over(new, at):
        applicable = [ruling for ruling in rulings if known_facts.holds(ruling.target)]
        outcome = _follow_model(outcome, applicable)
    return _with_own_note(outcome, known_facts)


def _is_over(new: NewFact, at: datetime) -> bool:
    """Return whether a new fact held in the past only."""
    return is_past(new.valid_to, at)


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

    A fact that is stated already gets no second note: it replaces the others itself, and puts no
    further ones in doubt. What the rules say is outdated is replaced too.
    """
    rule = new.decided_by or AGENT
    first = named[0]
    replaced = [fact for fact in named if known_facts.may_be_replaced(fact)]

    # What the rules say that the statement is about, beside the facts that its author names.
    other = comparison.target
    if other is not None and (other in named or not known_facts.may_be_replaced(other)):
        other = None

    is_stated = comparison.verdict.event == "NOOP"
    if other is not None and is_stated and first in replaced:
        outcome = _restate(new, known_facts, at, rule, other)
        begins = outcome.new.valid_from or at
        return outcome._replace(
            event="UPDATE",
            relation="UPDATES",
            target=first,
            superseded=_superseded(replaced, begins, at),
        )

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


def _restate(
    new: NewFact, known_facts: KnownFacts, at: datetime, rule: str, restated: Fact
) -> Outcome:
    """Return the outcome of a statement that a known fact states already.

    That fact gets the times that an agent says. It holds no more if it is over by then.
    """
    has_times = new.valid_from is not None or new.valid_to is not None
    takes_times = new.decided_by == AGENT and has_times and known_facts.may_be_replaced(restated)
    ended = []
    if takes_times and new.valid_to is not None and _is_over(new, at):
        ended.append(FactAt(restated, new.valid_to))

    begins = restated.valid_from
    until = restated.valid_to
    if takes_times:
        begins = new.valid_from or begins
        until = new.valid_to or until
    return Outcome(
        new._replace(valid_from=begins, valid_to=until),
        at,
        "NOOP",
        rule,
        target=restated,
        restated=restated,
        takes_times=takes_times,
        ended=ended,
    )


def _confirm(
    new: NewFact, known_facts: KnownFacts, at: datetime, rule: str, restated: Fact
) -> Outcome:
    """Return the outcome of a statement that only says again what a known fact states."""
    in_doubt = [fact for fact in _facts_in_doubt(new, known_facts, at) if fact is not restated]
    outcome = _restate(new, known_facts, at, rule, restated)
    return outcome._replace(disputed=_disputed(in_doubt, at))


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
        superseded=_superseded(replaced, new.valid_from or at, at),
        disputed=_disputed(doubtful, at),
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
    if _is_over(new, at):
        return []
    return find_disputed(new, known_facts.disputable(), at)


def as_stored(new: NewFact, at: datetime, in_doubt: Sequence[Fact] = ()) -> NewFact:
    """Return a statement with the type, the slot and the times of its note.

    Rules read in its text what it leaves empty, and it begins now. `in_doubt` are the facts that
    it puts in doubt.
    """
    by_rules = memory_type_of(new.text, at)
    memory_type = new.memory_type or by_rules.name
    if memory_type == "episode" and any(is_lasting(fact) for fact in in_doubt):
        memory_type = "fact"  # it must last as long as the facts that it disputes

    until = new.valid_to or end_of_corrected_appointment(new.text, in_doubt, at)
    # The day of an episode does not end what lasts.
    is_day_of_lasting = by_rules.name == "episode" and memory_type != "episode"
    if until is None and not is_day_of_lasting:
        until = by_rules.valid_to
    return new._replace(
        memory_type=memory_type,
        slot=new.slot or read_statement(new.text).slot,
        valid_from=new.valid_from or at,
        valid_to=until,
    )
