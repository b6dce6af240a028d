"""Scores of any scale are shown as shares of 1, in the same order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.errors import Unavailable
from simplemem.services.rerank import from_0_to_1, scores_of


def test_shares_stay_as_they_are() -> None:
    assert from_0_to_1([0.0, 0.25, 1.0]) == [0.0, 0.25, 1.0]


def test_logits_become_shares() -> None:
    assert from_0_to_1([0.0, 7.74, -2.34, -11.0]) == pytest.approx([0.5, 0.99956, 0.0879, 0.0000167], rel=1e-3)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30))
def test_every_share_is_one_and_the_order_stays(scores: list[float]) -> None:
    shares = from_0_to_1(scores)
    assert all(0 <= share <= 1 for share in shares)
    pairs = sorted(zip(scores, shares, strict=True))
    assert [share for _, share in pairs] == sorted(shares)


def test_a_number_too_large_for_any_scale_is_no_score() -> None:
    with pytest.raises(Unavailable, match="no number"):
        scores_of("m", [{"index": 0, "score": 10**400}], 1)


def test_true_is_neither_a_score_nor_a_place() -> None:
    with pytest.raises(Unavailable, match="no number"):
        scores_of("m", [{"index": 0, "score": True}], 1)
    with pytest.raises(Unavailable, match="not given"):
        scores_of("m", [{"index": False, "score": 0.5}], 1)


def test_a_list_called_data_is_read_as_well() -> None:
    assert scores_of("m", {"data": [{"index": 1, "score": 2}, {"index": 0, "relevance_score": 1}]}, 2) == [1.0, 2.0]
