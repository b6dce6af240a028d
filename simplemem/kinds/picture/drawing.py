"""What a picture shows: nodes with their texts, and the edges between them. Values, and how they are made. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from simplemem.kinds.graph.values import Entity, Graph
from simplemem.memory import Listed

ENTITY: Final = "entity"
NOTE: Final = "note"
MISSING: Final = "missing"
"""Kinds of nodes. What relations lead to although nobody has written it is drawn as well: no relation is left out."""
LINK: Final = "links to"
UNTYPED: Final = "memory"  # what the store calls a note without a type


@dataclass(frozen=True, slots=True)
class Node:
    """Something that is drawn. `id` is an entity's name or a note's, and no other node has it."""

    id: str
    label: str
    type: str
    kind: str
    path: str = ""
    tags: tuple[str, ...] = ()
    text: str = ""
    observations: tuple[str, ...] = ()
    is_withheld: bool = False  # that it is private, and what it says is left out


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation or a link between two nodes, which are said by their place in the drawing."""

    source: int
    target: int
    type: str
    is_link: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drawing:
    """All that a picture shows, in the order in which it was told: the same graph is the same drawing."""

    title: str
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()

    def withheld(self) -> int:
        """How many notes are drawn without what they say, because they are private."""
        return sum(node.is_withheld for node in self.nodes)

    def types(self) -> list[tuple[str, int]]:
        """The types of nodes and how many have each, the most frequent first."""
        counted = Counter(node.type for node in self.nodes)
        return sorted(counted.items(), key=lambda item: (-item[1], item[0]))

    def degrees(self) -> list[int]:
        """How many edges end at each node."""
        counted = [0] * len(self.nodes)
        for edge in self.edges:
            counted[edge.source] += 1
            counted[edge.target] += edge.target != edge.source
        return counted


def drawing_of(
    title: str,
    graph: Graph,
    *,
    notes: Sequence[Listed] = (),
    links: Iterable[tuple[str, str]] = (),
    texts: Mapping[str, str] | None = None,
    facts: Mapping[str, Listed] | None = None,
    withheld: Collection[str] = (),
) -> Drawing:
    """A drawing of a graph, and of notes and links between paths beside it. `texts` and `facts` are by path. Of the notes
    whose paths are `withheld` nothing is told but their names, types, tags, and what they lead to."""
    texts, facts = texts or {}, facts or {}
    quiet = {entity.name for entity in graph.entities if entity.path in withheld}
    nodes: list[Node] = []
    taken: set[str] = set()
    by_name: dict[str, int] = {}
    by_path: dict[str, int] = {}

    def add(node: Node) -> int:
        taken.add(node.id)
        nodes.append(node)
        if node.path:
            by_path[node.path] = len(nodes) - 1
        return len(nodes) - 1

    for entity in graph.entities:
        by_name.setdefault(entity.name, add(_of_entity(entity, taken, texts, facts)))
    for note in notes:
        if note.path not in by_path:
            at = add(_of_note(note, taken, texts))
            if _is_stub(note):
                by_name.setdefault(note.title, at)

    def end(name: str) -> int:
        if name not in by_name:
            by_name[name] = add(Node(_free(name, taken), name, "", MISSING))
        return by_name[name]

    edges = [
        Edge(end(each.source), end(each.target), each.type, attributes={} if each.source in quiet else each.attributes)
        for each in graph.relations
    ]
    related = {(edge.source, edge.target) for edge in edges}
    for source, target in links:
        pair = (by_path.get(source, -1), by_path.get(target, -1))
        if min(pair) >= 0 and pair[0] != pair[1] and pair not in related:  # a relation is a link that says more
            related.add(pair)
            edges.append(Edge(*pair, LINK, is_link=True))
    nodes = [
        replace(node, text="", observations=(), is_withheld=True) if node.path and node.path in withheld else node
        for node in nodes
    ]
    return Drawing(title, tuple(nodes), tuple(edges))


def _of_entity(entity: Entity, taken: set[str], texts: Mapping[str, str], facts: Mapping[str, Listed]) -> Node:
    known = facts.get(entity.path)
    return Node(
        _free(entity.name, taken, entity.path),
        entity.name,
        entity.type,
        NOTE if entity.is_note else ENTITY,
        entity.path,
        known.tags if known is not None else (),
        texts.get(entity.path, ""),
        tuple(entity.texts),
    )


def _of_note(note: Listed, taken: set[str], texts: Mapping[str, str]) -> Node:
    kind = note.type if note.type != UNTYPED else NOTE
    return Node(
        _free(note.name, taken, note.path), note.title, kind, NOTE, note.path, note.tags, texts.get(note.path, "")
    )


def _is_stub(note: Listed) -> bool:
    """Whether a note holds a name that relations lead to, and nothing else: it is no entity of the graph."""
    return note.type == ENTITY


def _free(wanted: str, taken: set[str], path: str = "") -> str:
    """An id that no other node has: the name, else the path, else the name with a number."""
    number, found = 2, wanted
    while found in taken:
        found = path if path and path not in taken else f"{wanted} ({number})"
        number += 1
    return found
