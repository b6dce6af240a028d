"""Walking along relations: nearest first, a shortest way each, no further and no more than was asked."""

from __future__ import annotations

import pytest

from simplemem.kinds.graph.values import Graph, Relation
from simplemem.kinds.graph.walk import Direction, around, neighbours_of, way

CHAIN = Graph(
    relations=(
        Relation("a", "leads to", "b"),
        Relation("b", "leads to", "c"),
        Relation("c", "leads to", "d"),
        Relation("x", "knows", "b"),
        Relation("c", "Knows", "a"),
        Relation("b", "is", "b"),
    )
)


def names(
    start: str, depth: int, direction: Direction = "both", *types: str, limit: int = 100
) -> list[tuple[str, int]]:
    walk = around(neighbours_of(CHAIN, types=types, direction=direction), start, depth=depth, limit=limit)
    return [(each.name, each.depth) for each in walk.reached]


@pytest.mark.parametrize(
    ("direction", "reached"),
    [
        ("out", [("b", 1), ("c", 2)]),
        ("in", [("c", 1), ("b", 2)]),
        ("both", [("b", 1), ("c", 1), ("x", 2), ("d", 2)]),
    ],
)
def test_a_walk_goes_along_the_arrows_against_them_or_both_ways(
    direction: Direction, reached: list[tuple[str, int]]
) -> None:
    assert names("a", 2, direction) == reached


def test_each_name_is_reached_once_and_by_a_shortest_way() -> None:
    walk = around(neighbours_of(CHAIN), "a", depth=9, limit=100)
    assert sorted(each.name for each in walk.reached) == ["b", "c", "d", "x"]
    paths = {each.name: [relation.key for relation in each.path] for each in walk.reached}
    assert paths["d"] == [("c", "Knows", "a"), ("c", "leads to", "d")]
    assert all(len(each.path) == each.depth for each in walk.reached)


def test_a_limit_keeps_the_nearest_and_says_that_there_is_more() -> None:
    ways = neighbours_of(CHAIN)
    cut = around(ways, "a", depth=9, limit=2)
    assert ([each.name for each in cut.reached], cut.more) == (["b", "c"], True)
    whole = around(ways, "a", depth=9, limit=4)
    assert (len(whole.reached), whole.more) == (4, False)


def test_a_way_is_the_shortest_there_is_and_none_when_it_is_too_far() -> None:
    out = neighbours_of(CHAIN, direction="out")
    assert [each.key for each in way(out, "a", "d", depth=9) or ()] == [
        ("a", "leads to", "b"),
        ("b", "leads to", "c"),
        ("c", "leads to", "d"),
    ]
    assert way(out, "a", "d", depth=2) is None
    assert way(out, "a", "x", depth=9) is None
    assert way(out, "a", "a", depth=0) == ()
