"""What lies around a node: a tree of the edges that lead away from it, either way, each node unfolded once. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from simplemem.graph.picture.drawing import Drawing, Edge


@dataclass(slots=True)
class Branch:
    """A node as it is reached from the one above. `left_out` counts edges that are not shown below it."""

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
    for edge in sorted(drawing.edges, key=lambda edge: edge.is_link):  # relations before links
        edges[edge.source].append(edge)
        if edge.target != edge.source:
            edges[edge.target].append(edge)
    root = Branch(start)
    seen, shown = {start}, set[int]()
    waiting = deque([(root, 0)])
    while waiting:
        branch, level = waiting.popleft()
        rest = [edge for edge in edges[branch.node] if id(edge) not in shown]
        # Outgoing ones first, as a note has them; then what leads here.
        rest.sort(key=lambda edge: edge.source != branch.node)
        if level == depth:
            branch.left_out = _lines(rest)
            continue
        branch.left_out = _lines(rest[limit:])
        hanging: dict[tuple[int, str], Branch] = {}
        for edge in rest[:limit]:
            shown.add(id(edge))
            other = edge.target if edge.source == branch.node else edge.source
            back = hanging.get((other, edge.type))
            if back is not None and back.edge is not None and back.edge.source == edge.target and not edge.attributes:
                back.both_ways = True
                continue
            hanging[other, edge.type] = reached = Branch(other, edge, seen_before=other in seen)
            branch.below.append(reached)
            if other not in seen:
                seen.add(other)
                waiting.append((reached, level + 1))
    return root


def _lines(edges: list[Edge]) -> int:
    """How many lines edges would take: the same in either direction is one."""
    return len({(min(edge.source, edge.target), max(edge.source, edge.target), edge.type) for edge in edges})


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
