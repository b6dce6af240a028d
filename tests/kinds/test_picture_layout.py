"""Where nodes are put: neighbours near each other, nothing upon anything else, the same graph always alike."""

from __future__ import annotations

import math
import random

import pytest

from simplemem.kinds.picture.layout import SPACING, layout

Places = list[tuple[float, float]]


def clusters(count: int, size: int) -> list[tuple[int, int]]:
    """Groups that are tied within, and in a ring to the next group."""
    chance = random.Random(3)
    edges = []
    for group in range(count):
        first = group * size
        edges += [(first + k, first + chance.randrange(k)) for k in range(1, size) for _ in range(2)]
        edges.append((first, (first + size) % (count * size)))
    return edges


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize(("groups", "size"), [(5, 12), (40, 30)], ids=["each with each", "by the grid"])
def test_what_belongs_together_is_nearer_than_what_does_not(groups: int, size: int) -> None:
    edges = clusters(groups, size)
    places = layout(groups * size, edges)
    tied = mean([math.dist(places[a], places[b]) for a, b in edges])
    chance = random.Random(1)
    others = [math.dist(*chance.sample(places, 2)) for _ in range(2000)]
    assert tied < mean(others) / 2


@pytest.mark.parametrize(("groups", "size"), [(5, 12), (40, 30)], ids=["each with each", "by the grid"])
def test_nodes_do_not_lie_upon_each_other(groups: int, size: int) -> None:
    places = layout(groups * size, clusters(groups, size))
    nearest = sorted(min(math.dist(a, b) for b in places if b is not a) for a in places)
    assert nearest[len(nearest) // 10] > SPACING / 4  # nine of ten have room


def test_the_same_graph_is_laid_out_alike() -> None:
    edges = clusters(12, 30)
    assert layout(360, edges) == layout(360, list(edges))


def test_what_is_tied_to_nothing_lies_about_the_rest_and_not_far_away() -> None:
    places = layout(90, clusters(3, 10))
    core = max(math.hypot(x, y) for x, y in places[:30])
    alone = [math.hypot(x, y) for x, y in places[30:]]
    assert min(alone) > core * 0.6
    assert max(alone) < core * 2.5


def test_parts_that_nothing_ties_together_stay_near() -> None:
    places = layout(600, [(k, k + 1) for k in range(0, 600, 2)])
    assert max(math.hypot(x, y) for x, y in places) < SPACING * 40


@pytest.mark.parametrize(
    ("count", "edges"),
    [(0, []), (1, []), (1, [(0, 0)]), (2, [(0, 1)]), (3, []), (2, [(0, 1), (1, 0), (0, 1)]), (300, [(0, 299)])],
)
def test_every_small_or_odd_graph_has_a_place_for_each_node(count: int, edges: list[tuple[int, int]]) -> None:
    places = layout(count, edges)
    assert len(set(places)) == count
    assert all(math.isfinite(x) and math.isfinite(y) for x, y in places)
