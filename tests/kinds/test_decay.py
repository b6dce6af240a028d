"""Confidence that fades with the time since it was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from simplemem.kinds.graph.past import decayed, faded
from simplemem.kinds.graph.values import Relation

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("confidence", "days", "left"),
    [
        (1.0, 0, 1.0),
        (1.0, 30, 0.5),
        (0.8, 60, 0.2),
        (1.0, 15, 2**-0.5),
        (0.8, 3000, 0.1),
        (0.05, 30, 0.05),
        (0.0, 9, 0.0),
    ],
)
def test_it_halves_every_thirty_days_down_to_a_tenth(confidence: float, days: int, left: float) -> None:
    assert faded(confidence, timedelta(days=days)) == pytest.approx(left)


def test_another_factor_is_what_is_left_after_thirty_days() -> None:
    assert faded(1.0, timedelta(days=60), 0.9) == pytest.approx(0.81)
    assert faded(1.0, timedelta(days=60), 1.0) == 1.0


@pytest.mark.parametrize("attributes", [{}, {"strength": 0.9}, {"confidence": "high"}, {"confidence": True}])
def test_a_relation_without_a_confidence_stays_as_it_is(attributes: dict[str, Any]) -> None:
    relation = Relation("a", "r", "b", attributes)
    assert decayed(relation, NOW - timedelta(days=90), NOW) is relation


def test_only_the_confidence_of_a_relation_fades_and_none_grows() -> None:
    relation = Relation("a", "r", "b", {"strength": 1.0, "confidence": 1.0, "since": "2020"})
    assert decayed(relation, NOW - timedelta(days=30), NOW).attributes == {
        "strength": 1.0,
        "confidence": 0.5,
        "since": "2020",
    }
    assert decayed(relation, NOW + timedelta(days=30), NOW).attributes["confidence"] == 1.0
