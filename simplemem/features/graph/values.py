"""What a graph is made of: entities with their observations, and the relations between them; and a walk along those.
Names, types and texts are any strings at all, compared exactly. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from simplemem.errors import NotFound

SHARED: Final = "default"
"""The user that everything without an owner belongs to."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing said of an entity. `attributes` are what its bullet keeps in a hidden comment: confidence, at."""

    text: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed, typed edge between two names. It stands in the note of `source`. Attributes: strength and more."""

    source: str
    type: str
    target: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it this relation and no other."""
        return (self.source, self.type, self.target)

    def as_dict(self) -> dict[str, Any]:
        """As the graph memory servers show it."""
        return {"from": self.source, "to": self.target, "relationType": self.type}


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity, and the note it is. Those made by a caller have neither path nor dates."""

    name: str
    type: str
    observations: tuple[Observation, ...] = ()
    path: str = ""
    sha256: str = ""
    created: str = ""
    modified: str = ""
    is_note: bool = False  # a note of another kind that an entity links to
    owner: str = ""  # the user it was made for; "" for an entity that is everybody's

    def is_of(self, owner: str | None) -> bool:
        """Whether it belongs to this user; every entity matches None.

        An entity without an owner belongs to the shared user `default`.
        """
        return owner is None or owner == (self.owner or SHARED)

    @property
    def texts(self) -> list[str]:
        """The observations as they were said."""
        return [each.text for each in self.observations]

    def as_dict(self) -> dict[str, Any]:
        """As the graph memory servers show it."""
        return {"name": self.name, "entityType": self.type, "observations": self.texts}


@dataclass(frozen=True, slots=True)
class Graph:
    """Some entities, and some relations between them or leading out of them."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As the graph memory servers show it."""
        entities, relations = (
            [each.as_dict() for each in self.entities],
            [each.as_dict() for each in self.relations],
        )
        return {"entities": entities, "relations": relations}


class NoSuchEntity(NotFound):
    """An entity that a change is for is not there. The message is the one that clients of graph servers know."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found", hint="create_entities creates it.")


Direction = Literal["out", "in", "both"]


def walk(
    graph: Graph,
    start: str,
    *,
    kind: str | None = None,
    direction: Direction = "both",
    depth: int = 2,
) -> dict[str, tuple[Relation, ...]]:
    """The names that relations, or those of a kind, lead to from `start` in so many steps, nearest first, each with the
    relations of a shortest way there. `in` goes against the arrows."""
    ways = defaultdict[str, list[tuple[str, Direction, Relation]]](list)
    for relation in graph.relations:
        if kind is None or relation.type.casefold() == kind.casefold():
            ways[relation.source].append((relation.target, "out", relation))
            ways[relation.target].append((relation.source, "in", relation))
    reached: dict[str, tuple[Relation, ...]] = {start: ()}
    waiting = deque([start])
    while waiting and len(path := reached[here := waiting.popleft()]) < depth:
        for name, way, relation in ways[here]:
            if name not in reached and direction in (way, "both"):
                reached[name] = (*path, relation)
                waiting.append(name)
    del reached[start]
    return reached
