"""What a graph is made of: entities with their observations, and the relations between them. Values only.

Names, types and texts are any strings at all, compared exactly: how odd ones stand in a note is `spelling.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simplemem.errors import NotFound


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing said of an entity. `attributes` are what its bullet keeps in a hidden comment: confidence, at, source."""

    text: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """A directed, typed edge between two names. It stands in the note of `source`. Attributes: strength, confidence, …"""

    source: str
    type: str
    target: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it this relation and no other."""
        return (self.source, self.type, self.target)


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

    @property
    def texts(self) -> list[str]:
        """The observations as they were said."""
        return [each.text for each in self.observations]


@dataclass(frozen=True, slots=True)
class Graph:
    """Some entities, and some relations between them or leading out of them."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()


class NoSuchEntity(NotFound):
    """An entity that a change is for is not there. The message is the one that clients of graph servers know."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found", hint="create_entities makes it.")
        self.entity = name
