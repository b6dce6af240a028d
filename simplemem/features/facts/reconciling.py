"""What a new fact does to those that are known: the one reconciler of statements and of keys.

`reconcile` returns an `Outcome`, which states all that becomes of the new fact and of known ones.
`reconcile_turn` does so for what a turn says beside its facts. `KnownFacts` says which facts may be
changed. The writers only enter an outcome in their form of notes: `adding` for statements,
`fact_recording` of conversations for facts with a key.

What clients rely on makes the two forms differ in these steps:

- A statement is about a fact of which the rules or a model say so, by its words. A fact with a key
  is about the one with this key, and becomes another version in its note, which has the history.
- A value of a key that begins later gets a key of its own.
- A statement is stored once, and disputes facts by its own words. A fact with a key is stored each
  time, and the whole turn disputes facts.

So each form has a module: `reconciling_statements` and `reconciling_keys`. Which facts may have to
be compared by their names is known at the end of a call: see `reviews`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from simplemem.features.changes import Change
from simplemem.features.facts.comparing import Comparison
from simplemem.features.facts.decay import is_past
from simplemem.features.facts.doubt import find_doubted_by_changes
from simplemem.features.facts.key_notes import stated_subject
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.new_fact import NewFact, Ruling
from simplemem.features.facts.outcome import FactAt, Outcome, TurnOutcome, disputed_since
from simplemem.features.facts.reconciling_keys import reconcile_key
from simplemem.features.facts.reconciling_statements import reconcile_statement
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
        return reconcile_key(new, known_facts, at)
    return reconcile_statement(new, known_facts, at, comparison, rulings)


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
    return TurnOutcome(ended, disputed_since(in_doubt, at))
