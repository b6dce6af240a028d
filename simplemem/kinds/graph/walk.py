"""Walking a graph along its relations, breadth first: what lies around a name, and the shortest way between two. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from simplemem.kinds.graph.values import Graph, Relation

Direction = Literal["out", "in", "both"]
Neighbours = Mapping[str, list[tuple[str, Relation]]]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A name that was reached, how many steps away, and the relations that led there, in order."""

    name: str
    depth: int
    path: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """What was reached, nearest first, and whether there was more than was asked for."""

    reached: tuple[Neighbour, ...]
    more: bool


def neighbours_of(graph: Graph, *, types: Collection[str] = (), direction: Direction = "both") -> Neighbours:
    """Where each name leads, and by which relation; of these types, or of any. `in` goes against the arrows."""
    wanted = {each.casefold() for each in types}
    ways: dict[str, list[tuple[str, Relation]]] = defaultdict(list)
    for relation in graph.relations:
        if wanted and relation.type.casefold() not in wanted:
            continue
        if direction != "in":
            ways[relation.source].append((relation.target, relation))
        if direction != "out" and (relation.source != relation.target or direction == "in"):
            ways[relation.target].append((relation.source, relation))
    return ways


def around(neighbours: Neighbours, start: str, *, depth: int, limit: int) -> Walk:
    """The names within so many steps of `start`, each once, by a shortest way, at most `limit` of them."""
    found: list[Neighbour] = []
    for each in _outwards(neighbours, start):
        if each.depth > depth:
            break
        if len(found) == limit:
            return Walk(tuple(found), more=True)
        found.append(each)
    return Walk(tuple(found), more=False)


def way(neighbours: Neighbours, start: str, end: str, *, depth: int) -> tuple[Relation, ...] | None:
    """The relations of a shortest way, () from a name to itself, None when none is that short."""
    if start == end:
        return ()
    for each in _outwards(neighbours, start):
        if each.depth > depth:
            return None
        if each.name == end:
            return each.path
    return None


def _outwards(neighbours: Neighbours, start: str) -> Iterator[Neighbour]:
    """Every name that can be reached, nearest first, in the order the relations stand in."""
    seen = {start}
    waiting = deque([Neighbour(start, 0, ())])
    while waiting:
        here = waiting.popleft()
        for name, relation in neighbours.get(here.name, ()):
            if name not in seen:
                seen.add(name)
                reached = Neighbour(name, here.depth + 1, (*here.path, relation))
                yield reached
                waiting.append(reached)
