"""Entries that cannot all be right, by three rules, and which of two would win."""

from __future__ import annotations

import pytest
from making import by_words, entry, tie

from simplemem.kinds.learned.contradictions import Contradiction, contradictions, verdicts
from simplemem.kinds.learned.entries import Entry

POSTGRES = entry("p", "Use Postgres for the billing store.", "decision")
MYSQL = entry("m", "Use MySQL for the billing store.", "decision")


def found(*entries: Entry, **asked: object) -> list[Contradiction]:
    return contradictions(entries, by_words(entries), **asked)  # type: ignore[arg-type]


def rules(*entries: Entry, **asked: object) -> list[str]:
    return [each.rule for each in found(*entries, **asked)]


def test_each_pair_is_told_by_its_rule_with_the_words_that_disagree() -> None:
    (each,) = found(POSTGRES, MYSQL, entry("x", "Something else altogether."))
    assert (each.rule, each.one.id, each.other.id) == ("slot", "p", "m")
    assert (each.said, each.instead) == (POSTGRES.content, MYSQL.content)
    assert "billing" in each.about and "store" in each.about


def test_one_differing_number_is_two_values_of_one_thing() -> None:
    low = entry("a", "Raise the pool size to 50 and restart the worker.")
    high = entry("b", "Raise the pool size to 80 and restart the worker.")
    assert rules(low, high) == ["slot"]


def test_a_denial_is_told_as_polarity() -> None:
    assert rules(entry("a", "Never use eval in templates."), entry("b", "Always use eval in templates.")) == [
        "polarity"
    ]


def test_duplicates_of_unlike_confidence_are_only_suspected() -> None:
    sure = entry("a", "Under heavy load the connection pool is exhausted", confidence=0.9)
    unsure = entry("b", "the connection pool is exhausted under heavy load", confidence=0.5)
    assert rules(sure, unsure) == ["duplicate?"]
    assert rules(sure, unsure, least_delta=0.5) == []
    assert rules(sure, entry("b", unsure.content, confidence=0.85)) == []
    assert rules(sure, entry("b", unsure.content, confidence=None)) == []
    linked = entry("b", unsure.content, confidence=0.5, ties=(tie("see also", sure),))
    assert rules(sure, linked) == []


def test_the_threshold_says_how_alike_duplicates_are() -> None:
    one = entry("a", "The worker restarts when the queue is full", confidence=0.9)
    other = entry("b", "The worker restarts when a deploy begins", confidence=0.2)
    assert rules(one, other, threshold=0.95) == []
    assert rules(one, other, threshold=0.1) == ["duplicate?"]


def test_only_one_type_may_be_asked_for() -> None:
    pattern = entry("m", MYSQL.content, "pattern")
    assert rules(POSTGRES, pattern) == ["slot"]
    assert rules(POSTGRES, pattern, same_type_only=True) == []


def test_what_is_superseded_or_settled_takes_no_part() -> None:
    assert rules(POSTGRES, entry("m", MYSQL.content, "decision", status="superseded")) == []
    assert rules(POSTGRES, entry("m", MYSQL.content, "decision", superseded_by="x")) == []
    settled = entry("m", MYSQL.content, "decision", ties=(tie("contradicts", POSTGRES),))
    assert rules(POSTGRES, settled) == []
    only_linked = entry("m", MYSQL.content, "decision", ties=(tie("see also", POSTGRES),))
    assert rules(POSTGRES, only_linked) == ["slot"]


def test_a_value_in_the_names_of_two_notes_tells_them_apart() -> None:
    june = entry("a", "The flight lasted 3 hours over the northern sea.", is_knowledge=False, name="flights/Flight 3")
    july = entry("b", "The flight lasted 4 hours over the northern sea.", is_knowledge=False, name="flights/Flight 4")
    assert rules(june, july) == []


def test_what_a_comment_says_is_no_statement() -> None:
    weak = entry("a", "hears the tracker of the balloon %% strength=0.6 %%", is_knowledge=False, name="graph/Van")
    strong = entry("b", "hears the tracker of the balloon %% strength=0.9 %%", is_knowledge=False, name="graph/Aerial")
    assert rules(weak, strong) == []


def test_a_form_that_is_filled_in_again_and_again_is_no_quarrel() -> None:
    filled = [entry(str(k), f"The build of the nightly release took {k + 10} minutes in total.") for k in range(60)]
    assert rules(*filled) == []


# -- who wins


def by_hand(*ids: str):
    return lambda each: each.id in ids


@pytest.mark.parametrize(
    ("one", "other", "hands", "winner", "why"),
    [
        ({"verified": True, "confidence": 1.0}, {}, ("m",), "m", "a person edited it"),
        ({"confidence": 1.0, "modified": "2026-11-09"}, {"verified": True}, (), "m", "it is verified"),
        ({"confidence": 1.0}, {"modified": "2026-11-09T00:00:00"}, (), "m", "it is newer"),
        ({"confidence": 0.5}, {"confidence": 0.7}, (), "m", "it has the higher confidence"),
        ({"confidence": 0.7}, {"confidence": None}, (), "p", "it has the higher confidence"),
    ],
)
def test_who_wins_is_decided_in_this_order(one: dict, other: dict, hands: tuple, winner: str, why: str) -> None:
    pair = entry("p", POSTGRES.content, "decision", **one), entry("m", MYSQL.content, "decision", **other)
    (verdict,) = verdicts(found(*pair), by_hand(*hands))
    assert (verdict.winner.id, verdict.why) == (winner, why)
    assert verdict.loser.id != winner


def test_what_nothing_decides_is_left_and_what_lost_takes_no_part() -> None:
    assert verdicts(found(POSTGRES, MYSQL), by_hand()) == []
    third = entry("s", "Use SQLite for the billing store.", "decision", verified=True)
    decided = verdicts(found(POSTGRES, MYSQL, third), by_hand())
    assert {(each.winner.id, each.loser.id) for each in decided} == {("s", "p"), ("s", "m")}
