"""What becomes of a new fact with a key, and of the known facts because of it.

It becomes another version in the note of its key, which has the history; a value that begins later
gets a key of its own. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from simplemem.features.fact import Fact
from simplemem.features.facts.decay import is_current
from simplemem.features.facts.key_notes import stated_at
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.outcome import FactAt, Outcome, superseded_by
from simplemem.features.facts.stated import key_of


def reconcile_key(new: NewFact, known_facts: KnownFacts, at: datetime) -> Outcome:
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

    if target is None:
        outcome = Outcome(new, at, "ADD", new.decided_by, ended=ended)
        return _with_replaced(outcome, known_facts, at, begins=new.valid_from or at)

    outcome = _as_version(new, target, at)._replace(ended=ended)
    if _is_outdated(outcome, target):
        return outcome  # it replaces nothing, whatever it names
    if _is_restated(new, target, known_facts):
        outcome = outcome._replace(event="NOOP", relation=None)
    return _with_replaced(outcome, known_facts, at, begins=_begins_in_note(outcome, target))


def _with_replaced(
    outcome: Outcome, known_facts: KnownFacts, at: datetime, *, begins: datetime
) -> Outcome:
    """Return an outcome with the facts that the new one names as replaced, and the unknown ids.

    `at` is when the new fact is stated, and `begins` since when it holds.
    """
    new = outcome.new
    replaced = known_facts.with_ids(new.replaces)
    return outcome._replace(
        superseded=superseded_by(replaced, new, begins, at),
        unknown_ids=known_facts.unknown_ids(new.replaces),
    )


def _is_restated(new: NewFact, target: Fact, known_facts: KnownFacts) -> bool:
    """Return whether the value of a key holds already, and is not replaced by the new fact."""
    held = known_facts.get(target.path)
    if held is None or held.id in new.replaces:
        return False
    return held.value == new.value


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
    return has_begun and current.value != new.value and is_current(current, at)


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
    if until is not None and new.is_over(at):
        if target.value == new.value:
            new = new._replace(valid_from=new.valid_from or target.valid_from)
        elif not new.replaces:
            at = until.replace(microsecond=0)

    new = new._replace(key=target.key)
    outcome = Outcome(new, at, "UPDATE", new.decided_by, "UPDATES", target)
    is_in_force = _is_latest(outcome, target) or target.value == new.value
    return outcome._replace(is_in_force=is_in_force)


def _is_latest(outcome: Outcome, target: Fact) -> bool:
    """Return whether a version is the latest one of its key, in the order of `FactVersion.rank`."""
    rank = (outcome.at, outcome.new.value)
    return rank >= (stated_at(target), target.value)


def _is_outdated(outcome: Outcome, target: Fact) -> bool:
    """Return whether a later turn has stated another value for the key of a new fact.

    Of two values that one turn states for a key, neither is outdated, although only one of them is
    in force.
    """
    return not outcome.is_in_force and outcome.at < stated_at(target)


def _begins_in_note(outcome: Outcome, target: Fact) -> datetime:
    """Return since when the value of a key holds, as the note of the key will say.

    If a later version has the same value, the note keeps the time of that one.
    """
    begins = outcome.new.valid_from or outcome.at
    if outcome.at >= stated_at(target):
        return begins
    return target.valid_from or begins
