"""What a new statement does to those that are known, by a table of cases (tests/data/remember_cases.txt)."""

from __future__ import annotations

import pytest

from bench.remember import Case, cases
from simplemem.features.facts.reading import read_statement
from simplemem.features.facts.statement_rules import apply_rules

EVERY = list(cases())


@pytest.mark.parametrize(
    "case",
    [case for case in EVERY if not case.is_wrong],
    ids=lambda case: f"{case.current} {case.new}",
)
def test_the_rules_decide_as_a_person_would(case: Case) -> None:
    assert case.is_right(), case.verdict()


@pytest.mark.parametrize(
    "case", [case for case in EVERY if case.is_wrong], ids=lambda case: case.new
)
def test_what_they_miss_is_marked_and_supersedes_nothing(case: Case) -> None:
    assert not case.is_right()
    assert case.verdict().relation != "UPDATES"


@pytest.mark.parametrize("case", EVERY, ids=lambda case: f"{case.current} {case.new}")
def test_the_same_again_does_nothing_whatever_it_is(case: Case) -> None:
    again = apply_rules(read_statement(f"{case.new}."), [read_statement(case.new)])
    assert again.event == "NOOP"


def test_the_order_in_which_statements_are_known_changes_nothing() -> None:
    for case in EVERY:
        readings = [read_statement(statement) for statement in reversed(case.current)]
        verdict = case.verdict()
        reversed_verdict = apply_rules(read_statement(case.new), readings)
        assert (verdict.event, verdict.relation) == (
            reversed_verdict.event,
            reversed_verdict.relation,
        )
