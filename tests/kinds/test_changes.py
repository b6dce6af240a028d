"""What a later statement puts in doubt, by a table of cases (tests/data/change_cases.txt)."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplemem.kinds.changes import changes_in, in_doubt, read_change, subject_of

TABLE = Path(__file__).parents[1] / "data" / "change_cases.txt"
LINES = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
CASES = [tuple(line.split(" | ")) for line in LINES]
READ = [case for case in CASES if not case[2].endswith(" wrong")]
MISSED = [case for case in CASES if case[2].endswith(" wrong")]


def is_doubted(fact: str, statement: str) -> bool:
    subject = subject_of(fact)
    return any(in_doubt(change, [(subject, 2026)]) for _, change in changes_in(statement))


@pytest.mark.parametrize(("verdict", "fact", "statement"), READ, ids=lambda part: part)
def test_a_change_puts_in_doubt_what_is_about_the_same_thing_alone(verdict: str, fact: str, statement: str) -> None:
    assert is_doubted(fact, statement) is (verdict == "IN DOUBT")


@pytest.mark.parametrize(("verdict", "fact", "statement"), MISSED, ids=lambda part: part)
def test_a_change_that_the_rules_miss_is_marked(verdict: str, fact: str, statement: str) -> None:
    assert verdict == "IN DOUBT" and not is_doubted(fact, statement.removesuffix(" wrong"))


def test_a_fact_of_fewer_words_is_meant_where_no_other_can_be() -> None:
    change = read_change("I've changed the alarm code.")
    assert change is not None
    office, home = subject_of("", "office alarm code", "4711"), subject_of("", "home alarm code", "1234")
    assert in_doubt(change, [(office, 2026)]) == [0]
    assert in_doubt(change, [(office, 2026), (home, 2026)]) == []
    assert in_doubt(change, [(office, 2026), (subject_of("", "alarm code", "1"), 2026)]) == [1]


def test_what_changed_before_a_fact_was_told_does_not_put_it_in_doubt() -> None:
    change = read_change("I moved to Leipzig in 2019.")
    assert change is not None
    assert not in_doubt(change, [(subject_of("I live in Hamburg."), 2026)])
