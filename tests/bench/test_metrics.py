"""Hits, recall of the evidence, ranks and refusals are counted as the page on benchmarks says."""

from __future__ import annotations

import pytest

from bench.retrieval.data import Question
from bench.retrieval.metrics import Outcome, figures_by_kind, interval, reciprocal_rank


def outcome(
    *names: str, evidence: str = "", kind: str = "fact", is_refused: bool = False
) -> Outcome:
    question = Question("?", kind, "haystack", frozenset(evidence.split()))
    return Outcome(question, names, is_refused, corpus_size=10)


def test_a_hit_needs_any_evidence_and_recall_counts_all_of_it() -> None:
    half_found = outcome("a", "x", "y", evidence="a b")
    assert half_found.hit(1) == 1
    assert half_found.recall(3) == 0.5
    assert outcome("x", "a", evidence="a").hit(1) == 0


def test_figures_are_means_of_the_questions_of_a_kind_and_of_all() -> None:
    outcomes = [
        outcome("a", evidence="a", kind="one"),
        outcome("x", "b", evidence="b c", kind="two"),
    ]
    one, two, together = figures_by_kind(outcomes, (1, 2))
    assert (one.kind, one.n, one.hits, one.mrr) == ("one", 1, {1: 1, 2: 1}, 1)
    assert (two.hits, two.recalls, two.mrr) == ({1: 0, 2: 1}, {1: 0, 2: 0.5}, 0.5)
    assert (together.kind, together.n) == ("all", 2)
    assert together.recalls == {1: 0.5, 2: 0.75}
    assert together.corpus_size == 10


def test_questions_without_evidence_count_only_as_refused_or_not() -> None:
    outcomes = [
        outcome("a", evidence="a"),
        outcome("b", evidence="b", is_refused=True),
        outcome("x", is_refused=True),
        outcome("x"),
    ]
    (figures,) = figures_by_kind(outcomes, (1,))
    assert (figures.n, figures.refused) == (2, 1)
    assert (figures.unanswerable, figures.unanswerable_refused) == (2, 1)
    assert figures.hits == {1: 1}


def test_only_unanswerable_questions_have_no_hits() -> None:
    (figures,) = figures_by_kind([outcome("x")], (1, 5))
    assert (figures.n, figures.hits[5], figures.recall_interval) == (0, 0, (0, 0))


def test_the_reciprocal_rank_is_that_of_the_first_right_note() -> None:
    assert reciprocal_rank(["x", "a", "b"], frozenset("ab")) == 0.5
    assert reciprocal_rank(["x"], frozenset("a")) == 0


def test_an_interval_contains_the_mean_and_is_the_same_each_time() -> None:
    values = [0.0, 1.0] * 50
    low, high = interval(values)
    assert low < 0.5 < high
    assert interval(values) == (low, high)
    assert interval([1.0] * 9) == (pytest.approx(1), pytest.approx(1))
