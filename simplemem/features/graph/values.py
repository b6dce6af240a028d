"""The values of a graph: entities with observations, relations, and a walk along those.

Names, types and texts are arbitrary strings, compared exactly. This module does no I/O.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from simplemem.errors import NotFound

SHARED: Final = "default"
"""The user that everything without an owner belongs to."""

RelationKey = tuple[str, str, str]
"""What identifies a relation: source, type and target."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A text about an entity, with the attributes in its bullet's comment, such as confidence."""

    text: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed, typed edge between two names. The note of `source` has it."""

    source: str
    type: str
    target: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> RelationKey:
        """What identifies the relation: source, type and target."""
        return (self.source, self.type, self.target)

    def as_dict(self) -> dict[str, Any]:
        """Return the relation as graph memory servers answer it, without its attributes.

        The keys are `from`, `to` and `relationType`.
        """
        return {"from": self.source, "to": self.target, "relationType": self.type}


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity and its note. One that a caller made has neither path nor dates."""

    name: str
    type: str
    observations: tuple[Observation, ...] = ()
    path: str = ""
    sha256: str = ""
    created: str = ""
    modified: str = ""
    is_note: bool = False  # a note of another type that an entity has a relation to
    owner: str = ""  # the user it belongs to, "" for all users

    def is_of(self, owner: str | None) -> bool:
        """Return whether the entity belongs to this user. True for every entity if `owner` is None.

        An entity without an owner belongs to the shared user `default`.
        """
        return owner is None or owner == (self.owner or SHARED)

    @property
    def texts(self) -> list[str]:
        """The texts of the observations."""
        return [observation.text for observation in self.observations]

    def as_dict(self) -> dict[str, Any]:
        """Return the entity as graph memory servers answer it.

        The keys are `name`, `entityType` and `observations`, which are texts.
        """
        return {"name": self.name, "entityType": self.type, "observations": self.texts}


@dataclass(frozen=True, slots=True)
class Graph:
    """Entities, and relations that have an end among them."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the graph as graph memory servers answer it.

        The keys are `entities` and `relations`, each a list of what their `as_dict` returns.
        """
        return {
            "entities": [entity.as_dict() for entity in self.entities],
            "relations": [relation.as_dict() for relation in self.relations],
        }


class NoSuchEntity(NotFound):
    """A change names an entity that does not exist.

    The message is the one of other graph memory servers, because their clients look for it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found", hint="create_entities creates it.")


Direction = Literal["out", "in", "both"]
"""Which way relations are followed: "out" from source to target, "in" from target to source."""


class _Edge(NamedTuple):
    """A relation as seen from one of its ends."""

    end: str
    direction: Direction
    relation: Relation


def walk(
    graph: Graph,
    start: str,
    *,
    relation_type: str | None = None,
    direction: Direction = "both",
    depth: int = 2,
) -> dict[str, tuple[Relation, ...]]:
    """Return the names within `depth` relations of `start`, nearest first, without `start`.

    Each comes with the relations of a shortest route to it, in the order from `start`. Names of no
    entity count too. Only relations of `relation_type` are followed, whatever its case, or of all
    types for None. A `start` without such relations gives {}.
    """
    edges = _edges_of(graph, relation_type)
    routes: dict[str, tuple[Relation, ...]] = {start: ()}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        route = routes[name]
        if len(route) >= depth:
            break
        for edge in edges.get(name, ()):
            is_followed = direction in (edge.direction, "both")
            if is_followed and edge.end not in routes:
                routes[edge.end] = (*route, edge.relation)
                queue.append(edge.end)

    del routes[start]
    return routes


def _edges_of(graph: Graph, relation_type: str | None) -> dict[str, list[_Edge]]:
    """Return the relations of a type, or of all types for None, by the name at each end."""
    edges = defaultdict[str, list[_Edge]](list)
    for relation in graph.relations:
        if relation_type is None or relation.type.casefold() == relation_type.casefold():
            edges[relation.source].append(_Edge(relation.target, "out", relation))
            edges[relation.target].append(_Edge(relation.source, "in", relation))
    return edges
