"""The tools of the graph of entities, with the limits of self-improving-memory.

A text that is too long is refused and never cut, and angle brackets stay.
"""

# ruff: noqa: N815  (the names of arguments are the contract's)
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, NotRequired, TypedDict

from pydantic import BeforeValidator, Field

from simplemem.features.graph.page import ENTITY
from simplemem.features.lessons.note_search import NoteHits, search_notes, with_falling_scores
from simplemem.features.services import KnowledgeGraph
from simplemem.profiles.self_improving.adapter import ADAPTER, Limit, Query
from simplemem.profiles.server_memory import verbs
from simplemem.profiles.server_memory.answers import RelationOut
from simplemem.profiles.server_memory.arguments import Addition, EntityIn, RelationIn
from simplemem.profiles.server_memory.verbs import Rules, graph_tools
from simplemem.tools.arguments import Several, about, aliases, one_of
from simplemem.tools.tool import Data, Reply, Tool, as_json, tool

if TYPE_CHECKING:
    from simplemem.features.graph.values import Entity
    from simplemem.store import EnhancedStore

ENTITY_TYPES: Final = (
    "project",
    "component",
    "dependency",
    "error",
    "solution",
    "pattern",
    "insight",
    "decision",
    "user-intent",
    "user-preference",
    "requirement",
    "style-rule",
    "architectural-pattern",
    "tool-preference",
    "session-snapshot",
    "continuation-point",
    "work-in-progress",
)


def _without_blanks(value: object) -> object:
    """Return a text without blanks around it, and any other value as it is."""
    return value.strip() if isinstance(value, str) else value


_Trimmed = BeforeValidator(_without_blanks)
_Name = Annotated[str, _Trimmed, Field(min_length=1, max_length=200)]
_RelationType = Annotated[str, _Trimmed, Field(min_length=1, max_length=100)]
_Observation = Annotated[str, _Trimmed, Field(min_length=1, max_length=10_000)]
_Observations = Annotated[Several[_Observation], Field(min_length=1)]


class TypedEntityIn(EntityIn):
    """An entity whose type is one of `ENTITY_TYPES`."""

    name: _Name
    entityType: Annotated[Literal[ENTITY_TYPES], one_of(*ENTITY_TYPES)]  # type: ignore[valid-type]
    observations: _Observations


class ShortRelationIn(RelationIn):
    """A relation whose names and type have a limited length."""

    source: Annotated[_Name, aliases("from")]
    target: Annotated[_Name, aliases("to")]
    relationType: _RelationType


class ObservationsIn(Addition):
    """New observations of an entity, at least one."""

    entityName: _Name
    contents: _Observations


_Relations = Annotated[
    Several[ShortRelationIn],
    about("uses, depends on, fixes, implements, supersedes, …"),
]


class FoundNodes(TypedDict):
    """Entities with their scores, the relations among them, and how they were found."""

    entities: list[Data]
    relations: list[RelationOut]
    method: str
    degraded: NotRequired[str]


def find_entities(
    store: EnhancedStore, graph: KnowledgeGraph, query: str, limit: int
) -> NoteHits[Entity]:
    """Return up to `limit` entities for a query, best first, each with its own score."""
    entities = {}
    for entity in graph.read().entities:
        if not entity.is_note:
            entities[entity.path] = entity
    return search_notes(store, ENTITY, entities, query, limit)


@tool("Search nodes", adapter=ADAPTER)
def search_nodes(
    store: EnhancedStore, graph: KnowledgeGraph, query: Query, limit: Limit = 10
) -> Reply[FoundNodes]:
    """Find entities by meaning and words, with their relations."""
    found = find_entities(store, graph, query, limit)
    hits = with_falling_scores(found.hits)
    relations = graph.open([entity.name for entity, _ in hits]).relations
    data: Data = {
        "entities": [entity.as_dict() | {"score": hit.score} for entity, hit in hits],
        "relations": [relation.as_dict() for relation in relations],
        "method": found.method,
    }
    if found.degraded:
        data["degraded"] = found.degraded
    return as_json(data)


# Answers are JSON, whatever the verb is. The hints replace the types of arguments.
_RULES: Final = Rules(
    lambda _verb, data: as_json(data),
    ADAPTER,
    hints={
        "create_entities": {"entities": Several[TypedEntityIn]},
        "create_relations": {"relations": _Relations},
        "add_observations": {"observations": Several[ObservationsIn]},
        "open_nodes": {"names": Annotated[Several[str], Field(max_length=50)]},
    },
)
GRAPH: tuple[Tool, ...] = (
    *graph_tools(_RULES, verbs.create_entities, verbs.create_relations, verbs.add_observations),
    search_nodes,
    *graph_tools(
        _RULES, verbs.open_nodes, verbs.read_graph, verbs.delete_entities, verbs.delete_observations
    ),
)
