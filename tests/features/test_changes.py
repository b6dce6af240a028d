"""What a later statement puts in doubt, by a table of cases (tests/data/change_cases.txt)."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplemem.features.changes import (
    Change,
    StatedSubject,
    changes_in,
    find_doubtful,
    read_change,
    subject_of,
)

TABLE = Path(__file__).parents[1] / "data" / "change_cases.txt"
LINES = [
    line
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
CASES = [tuple(line.split(" | ")) for line in LINES]
READ = [case for case in CASES if not case[2].endswith(" wrong")]
MISSED = [case for case in CASES if case[2].endswith(" wrong")]


def is_doubted(fact: str, statement: str) -> bool:
    subjects = [StatedSubject(subject_of(fact), 2026)]
    return any(find_doubtful(subjects, change) for _, change in changes_in(statement))


def change_of(statement: str) -> Change:
    change = read_change(statement)
    assert change is not None
    return change


@pytest.mark.parametrize(("verdict", "fact", "statement"), READ, ids=lambda part: part)
def test_a_change_puts_in_doubt_what_is_about_the_same_thing_alone(
    verdict: str, fact: str, statement: str
) -> None:
    assert is_doubted(fact, statement) is (verdict == "IN DOUBT")


@pytest.mark.parametrize(("verdict", "fact", "statement"), MISSED, ids=lambda part: part)
def test_a_change_that_the_rules_miss_is_marked(verdict: str, fact: str, statement: str) -> None:
    assert verdict == "IN DOUBT" and not is_doubted(fact, statement.removesuffix(" wrong"))


def test_a_fact_of_fewer_words_is_meant_where_no_other_can_be() -> None:
    change = change_of("I've changed the alarm code.")
    office = StatedSubject(subject_of("", "office alarm code", "4711"), 2026)
    home = StatedSubject(subject_of("", "home alarm code", "1234"), 2026)
    alarm = StatedSubject(subject_of("", "alarm code", "1"), 2026)
    assert find_doubtful([office], change) == [0]
    assert find_doubtful([office, home], change) == []
    assert find_doubtful([office, alarm], change) == [1]


def test_what_changed_before_a_fact_was_told_does_not_put_it_in_doubt() -> None:
    change = change_of("I moved to Leipzig in 2019.")
    assert not find_doubtful([StatedSubject(subject_of("I live in Hamburg."), 2026)], change)


def test_a_fact_of_more_words_is_not_put_in_doubt_by_what_changed_before_it_was_stated() -> None:
    change = change_of("I changed the alarm code in 2019.")
    office = subject_of("", "office alarm code", "4711")
    assert find_doubtful([StatedSubject(office, 2018)], change) == [0]
    assert find_doubtful([StatedSubject(office, 2023)], change) == []


@pytest.mark.parametrize(
    "fact", ["He drives a Volvo.", "Someone drives a Volvo.", "They have a Volvo."]
)
def test_what_the_speaker_gave_up_puts_no_fact_of_somebody_else_in_doubt(fact: str) -> None:
    assert is_doubted("I drive a Volvo.", "I sold the Volvo.")
    assert not is_doubted(fact, "I sold the Volvo.")
