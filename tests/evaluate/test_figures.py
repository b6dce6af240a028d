"""Figures and their intervals: around the mean, the same each time, nothing where nothing differs."""

from __future__ import annotations

import random
import statistics

import pytest

from simplemem.evaluate.asking import Measured, Outcome
from simplemem.evaluate.figures import Figure, difference, figures_of, interval, report


def outcomes(seed: int, count: int = 120) -> list[Outcome]:
    chance = random.Random(seed)
    made = []
    for number in range(count):
        rank = chance.choice([1, 1, 2, 3, 7, 0])
        found5, found10 = float(0 < rank <= 5), float(rank > 0)
        made.append(
            Outcome("title" if number % 3 else "alias", found5, found10, 1 / rank if rank else 0.0, rank + 2.0, 600)
        )
    return made


def test_an_interval_holds_the_mean_and_grows_narrower_with_more_questions() -> None:
    values = [outcome.mrr for outcome in outcomes(1, 40)]
    few, many = interval(values), interval(values * 10)
    assert few.value == pytest.approx(statistics.fmean(values)) == pytest.approx(many.value)
    assert few.low < few.value < few.high
    assert many.high - many.low < (few.high - few.low) / 2


def test_an_interval_is_as_wide_as_statistics_say() -> None:
    found = interval([0.0, 1.0] * 200)
    assert found.low == pytest.approx(0.5 - 1.96 * 0.5 / 20, abs=0.01)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.5 / 20, abs=0.01)


def test_the_same_questions_have_the_same_interval() -> None:
    values = [outcome.mrr for outcome in outcomes(2)]
    assert interval(values) == interval(list(values))


def test_values_that_are_all_alike_are_sure() -> None:
    assert interval([0.25] * 50) == Figure(0.25, 0.25, 0.25)
    assert interval([1.0]) == Figure(1.0, 1.0, 1.0)


def test_a_median_and_a_percentile_have_intervals_too() -> None:
    values = [float(value) for value in range(1, 101)]
    median, p95 = interval(values, "median"), interval(values, "p95")
    assert (median.value, p95.value) == (50.5, pytest.approx(95.05))
    assert median.low < 50.5 < median.high < p95.low <= p95.value <= p95.high <= 100


def test_a_row_differs_from_itself_by_nothing() -> None:
    row = outcomes(3)
    assert set(difference(row, list(row)).values()) == {Figure(0.0, 0.0, 0.0)}


def test_a_difference_is_taken_question_by_question() -> None:
    row = outcomes(4)
    better = [Outcome(o.kind, o.recall5, o.recall10, o.mrr + 0.01, o.ms, o.tokens) for o in row]
    found = difference(better, row)["mrr"]
    assert found.value == pytest.approx(0.01)
    assert found.high - found.low < 1e-9  # though the rows themselves are far from sure
    assert figures_of(row)["mrr"].high - figures_of(row)["mrr"].low > 0.05


def test_rows_of_different_questions_are_not_compared() -> None:
    with pytest.raises(ValueError):
        difference(outcomes(5, 10), outcomes(5, 9))


def test_grep_has_no_time() -> None:
    row = [Outcome("title", 1.0, 1.0, 1.0, None, 80.0)]
    assert "ms_median" not in figures_of(row) and figures_of(row)["tokens"].value == 80


def test_a_report_has_rows_kinds_in_order_and_differences_to_the_first() -> None:
    told = report(Measured({"simplemem": outcomes(6), "other": outcomes(7)}, skipped=2), "simplemem")
    base, other = told["rows"]
    assert (base["name"], base["questions"], "difference" in base, told["skipped"]) == ("simplemem", 120, False, 2)
    assert [(kind["kind"], kind["questions"]) for kind in base["kinds"]] == [("title", 80), ("alias", 40)]
    of_all = sum(kind["questions"] * kind["mrr"]["value"] for kind in base["kinds"]) / 120
    assert base["mrr"]["value"] == pytest.approx(of_all, abs=1e-3)
    assert other["difference"]["mrr"]["value"] == pytest.approx(other["mrr"]["value"] - base["mrr"]["value"], abs=1e-3)
