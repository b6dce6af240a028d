"""A ranking put in a reranker's order: who has no score keeps its place, and scores fall down the list."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simplemem.search.rank import Ranked
from simplemem.store.reranking import reordered


def ranked(*scores: float) -> list[Ranked]:
    return [Ranked(note, f"n{note}.md", score) for note, score in enumerate(scores, 1)]


def shown(found: list[Ranked]) -> list[tuple[int, float]]:
    return [(each.note, round(each.score, 3)) for each in found]


def test_the_best_score_stands_first_and_is_the_score_shown() -> None:
    assert shown(reordered(ranked(1.0, 0.9, 0.8), {1: 0.1, 2: 0.3, 3: 0.7})) == [(3, 0.7), (2, 0.3), (1, 0.1)]


def test_equal_scores_stay_in_the_order_they_had() -> None:
    assert [note for note, _ in shown(reordered(ranked(1.0, 0.9, 0.8, 0.7), {4: 0.5, 3: 0.5, 2: 0.9, 1: 0.5}))] == [
        2, 1, 3, 4,
    ]  # fmt: skip


def test_scores_that_differ_by_little_are_still_told_apart() -> None:
    assert [note for note, _ in shown(reordered(ranked(1.0, 0.9), {1: 1e-9, 2: 2e-9}))] == [2, 1]


def test_a_note_without_a_score_keeps_its_place_among_its_neighbours() -> None:
    found = reordered(ranked(1.0, 0.9, 0.8, 0.7), {1: 0.2, 3: 0.6, 4: 0.4})
    assert shown(found) == [(3, 0.6), (2, 0.6), (4, 0.4), (1, 0.2)]


def test_a_note_without_a_score_at_the_top_stays_there_and_shows_no_less_than_the_next() -> None:
    assert shown(reordered(ranked(0.5, 0.4, 0.3), {2: 0.1, 3: 0.9})) == [(1, 0.9), (3, 0.9), (2, 0.1)]


def test_notes_behind_the_candidates_follow_with_no_more_than_the_last_of_them() -> None:
    found = reordered(ranked(1.0, 0.9, 0.8, 0.05), {1: 0.2, 2: 0.6})
    assert shown(found) == [(2, 0.6), (1, 0.2), (3, 0.2), (4, 0.05)]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12).map(lambda scores: sorted(scores, reverse=True)),
    st.dictionaries(st.integers(1, 12), st.floats(-20, 20), max_size=12),
)
def test_nothing_is_lost_scores_fall_and_stay_shares_and_only_scored_notes_move(
    scores: list[float], given_scores: dict[int, float]
) -> None:
    before = ranked(*scores)
    known = {note: score for note, score in given_scores.items() if note <= len(before)}
    after = reordered(before, known)
    assert sorted(found.note for found in after) == [found.note for found in before]
    assert all(0 <= found.score <= 1 for found in after)
    assert all(one.score >= two.score for one, two in pairwise(after))
    assert all(old.note == new.note for old, new in zip(before, after, strict=True) if old.note not in known)
    moved = [known[found.note] for found in after if found.note in known]
    assert moved == sorted(moved, reverse=True)
