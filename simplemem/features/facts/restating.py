"""What becomes of a statement that a known fact states already: it gets no second note. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from simplemem.features.agent_statements import AGENT
from simplemem.features.fact import Fact
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.outcome import FactAt, Outcome, superseded_by


def restate(
    new: NewFact, known_facts: KnownFacts, at: datetime, rule: str, restated: Fact
) -> Outcome:
    """Return the outcome of a statement that a known fact states already.

    That fact gets the times that an agent says. It holds no more if it is over by then.
    """
    has_times = new.valid_from is not None or new.valid_to is not None
    is_of_agent = new.decided_by == AGENT
    takes_times = is_of_agent and has_times and known_facts.may_be_replaced(restated)
    ended = []
    if takes_times and new.valid_to is not None and new.is_over(at):
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


def restate_replacing(
    new: NewFact,
    known_facts: KnownFacts,
    at: datetime,
    rule: str,
    restated: Fact,
    replaced: Sequence[Fact],
) -> Outcome:
    """Return the outcome of a statement that a known fact states already, and that replaces others.

    The known fact replaces them, from when the agent says that it holds. `replaced` are these
    others, at least one; the first one is the target. No further fact is put in doubt.
    """
    outcome = restate(new, known_facts, at, rule, restated)
    begins = outcome.new.valid_from or at
    return outcome._replace(
        event="UPDATE",
        relation="UPDATES",
        target=replaced[0],
        superseded=superseded_by(replaced, outcome.new, begins, at),
    )
