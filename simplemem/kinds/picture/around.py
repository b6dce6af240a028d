"""What lies around a node: a tree of the edges that lead away from it, either way, each node unfolded once. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from simplemem.kinds.picture.drawing import Drawing, Edge


@dataclass(slots=True)
class Branch:
    """A node as it is reached from the one above. `left_out` counts lines that are not below it."""

    node: int
    edge: Edge | None = None
    below: list[Branch] = field(default_factory=list)
    seen_before: bool = False  # it is unfolded elsewhere in the tree
    left_out: int = 0
    both_ways: bool = False  # the same is said in either direction

    @property
    def leads_here(self) -> bool:
        """Whether the edge is an arrow to this node, and not from it."""
        return self.edge is None or self.edge.target == self.node


def around(drawing: Drawing, start: int, depth: int, limit: int) -> Branch:
    """The tree around a node: nearest first, so that every node hangs as near to the start as it is."""
    edges: list[list[Edge]] = [[] for _ in drawing.nodes]
    for edge in drawing.edges:
        edges[edge.source].append(edge)
        if edge.target != edge.source:
            edges[edge.target].append(edge)
    root = Branch(start)
    seen, shown = {start}, set[int]()
    waiting = deque([(root, 0)])
    while waiting:
        branch, level = waiting.popleft()
        rest = [edge for edge in edges[branch.node] if id(edge) not in shown]
        # Relations before links, and of both what leads away first, as the note has it.
        rest.sort(key=lambda edge: (edge.is_link, edge.source != branch.node))
        lines = _lines(branch.node, rest)
        kept = lines[: limit if level < depth else 0]
        branch.left_out = len(lines) - len(kept)
        for reached, of in kept:
            shown.update(map(id, of))
            branch.below.append(reached)
            reached.seen_before = reached.node in seen
            if not reached.seen_before:
                seen.add(reached.node)
                waiting.append((reached, level + 1))
    return root


def _lines(node: int, edges: list[Edge]) -> list[tuple[Branch, list[Edge]]]:
    """The lines that a node's edges take, each with its edges: the same in both directions is one."""
    lines: list[tuple[Branch, list[Edge]]] = []
    away: dict[tuple[int, str], tuple[Branch, list[Edge]]] = {}
    for edge in edges:
        other = edge.target if edge.source == node else edge.source
        there = away.get((other, edge.type))
        if there is not None and edge.source == other and not edge.attributes and not there[0].both_ways:
            there[0].both_ways = True
            there[1].append(edge)
            continue
        lines.append((Branch(other, edge), [edge]))
        if edge.source == node and not edge.attributes:
            away[other, edge.type] = lines[-1]
    return lines


def distances(drawing: Drawing, start: int, depth: int) -> dict[int, int]:
    """How many edges away each node is that is not too far."""
    neighbours: list[list[int]] = [[] for _ in drawing.nodes]
    for edge in drawing.edges:
        neighbours[edge.source].append(edge.target)
        neighbours[edge.target].append(edge.source)
    found, border = {start: 0}, [start]
    for away in range(1, depth + 1):
        border = [each for at in border for each in neighbours[at] if found.setdefault(each, away) == away]
        border = list(dict.fromkeys(border))
    return found
