"""The tools of the profile `memento`: the nine of server-memory, and eight of Memento's own.

Strength, confidence and metadata of a relation or an observation are attributes of its list item.
"""

# ruff: noqa: N803, N815  (the names of arguments are the contract's)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AwareDatetime, Field, WithJsonSchema

from simplemem.errors import Invalid
from simplemem.features.graph.values import Graph, Relation
from simplemem.features.services import KnowledgeGraph
from simplemem.note.dates import now
from simplemem.profiles.memento.rows import (
    STATED_AT,
    WEIGHTS,
    entity_row,
    parse_moment,
    relation_row,
    reply_with_graph,
    to_milliseconds,
    version_row,
)
from simplemem.profiles.server_memory.arguments import Addition, GraphArguments, RelationIn
from simplemem.profiles.server_memory.tools import HINTS, RULES
from simplemem.profiles.server_memory.verbs import VERBS, graph_tools
from simplemem.tools.arguments import Several, Share, about, aliases
from simplemem.tools.render import pretty
from simplemem.tools.tool import Caller, Data, Reply, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

# A note keeps a number as it was sent: 0 does not become 0.0.
Number = Annotated[int | float, Field(ge=0, le=1), WithJsonSchema({"type": "number"})]
Milliseconds = Annotated[AwareDatetime, WithJsonSchema({"type": "number"})]
Moment = Annotated[Milliseconds, about("Milliseconds since 1970")]
Source = Annotated[str, aliases("from"), about("The entity that the relation starts from")]
Target = Annotated[str, aliases("to"), about("The entity that the relation leads to")]

_HALF_LIFE_DAYS: Final = 30
_MIN_CONFIDENCE: Final = 0.1  # decay does not go below it
_DEFAULT_DECAY_FACTOR: Final = 0.5  # the share of a confidence that is left after 30 days
_ADAPTER: Final = RULES.adapter


class _Weighed(GraphArguments):
    """The fields that a relation or an observation may have in addition."""

    strength: Annotated[Number | None, about("Strength, from 0 to 1")] = None
    confidence: Annotated[
        Number | None, about("Confidence, from 0 to 1; get_decayed_graph decays it")
    ] = None
    metadata: Annotated[dict[str, Any] | None, about("Other data to store")] = None
    updatedAt: Moment | None = None

    def attributes(self) -> dict[str, Any]:
        """Return these fields as attributes, with the moment at which they were stated.

        There are none if no field was sent.
        """
        attributes = self.model_dump(include={*WEIGHTS, "metadata"}, exclude_none=True)
        has_values = any(value != {} for value in attributes.values())
        if has_values:
            moment = self.updatedAt or now()
            attributes[STATED_AT] = moment.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
        return attributes if has_values else {}


class WeighedRelation(_Weighed, RelationIn):
    """A relation to create or update, with its weights."""

    def relation(self) -> Relation:
        """Return the relation of the graph that this argument describes, with its attributes."""
        return replace(super().relation(), attributes=self.attributes())


class WeighedAddition(_Weighed, Addition):
    """Observations to add to one entity, with their weights."""


# Relations and entities


@tool("Get Relation", adapter=_ADAPTER)
def get_relation(
    graph: KnowledgeGraph,
    source: Source,
    target: Target,
    relationType: str,
) -> Reply[None]:
    """Get one relation with its stored data"""
    relation = graph.relation(source, relationType, target)
    if relation is None:
        return Reply(f"Relation not found: {source} -> {relationType} -> {target}")
    return Reply(pretty(relation_row(relation, graph.relation_history(relation))))


@tool("Update Relation", writes=True, destructive=True, adapter=_ADAPTER)
def update_relation(
    graph: KnowledgeGraph, caller: Caller, relation: WeighedRelation
) -> Reply[None]:
    """Change the strength, the confidence or the metadata of a relation"""
    graph.update_relation(relation.relation(), **caller)
    return Reply("Relation updated successfully")


@tool("Get Entity Embedding", adapter=_ADAPTER)
def get_entity_embedding(
    store: EnhancedStore, graph: KnowledgeGraph, entity_name: str
) -> Reply[None]:
    """Get the vector of an entity, which searches by meaning compare"""
    entity = graph.entity(entity_name)
    if entity is None:
        return Reply(f"Entity not found: {entity_name}")
    embedding = store.extension.vector_of(entity.path)
    if embedding is None:
        return Reply(f"No embedding found for entity: {entity_name}")

    vector, model = embedding
    row = {
        "entityName": entity_name,
        "embedding": vector,
        "model": model,
        "dimensions": len(vector),
        "lastUpdated": to_milliseconds(parse_moment(entity.modified)),
    }
    return Reply(pretty(row))


# History


@tool("Get Entity History", adapter=_ADAPTER)
def get_entity_history(graph: KnowledgeGraph, entityName: str) -> Reply[None]:
    """List all versions of an entity, oldest first"""
    periods = graph.entity_history(entityName)
    rows = []
    for number, period in enumerate(periods, 1):
        rows.append(entity_row(period.value, periods[:number]))
    return Reply(pretty(rows))


@tool("Get Relation History", adapter=_ADAPTER)
def get_relation_history(
    graph: KnowledgeGraph,
    source: Source,
    target: Target,
    relationType: str,
) -> Reply[None]:
    """List all versions of a relation, oldest first"""
    periods = graph.relation_history(Relation(source, relationType, target))
    rows = []
    for number, period in enumerate(periods, 1):
        row = relation_row(period.value, periods[:number])
        rows.append(row | version_row(periods[:number]))
    return Reply(pretty(rows))


@tool("Get Graph At Time", adapter=_ADAPTER)
def get_graph_at_time(graph: KnowledgeGraph, timestamp: Moment) -> Reply[None]:
    """Get the knowledge graph as it was at a given time, including what was deleted since"""
    started = datetime.now(UTC)
    return reply_with_graph(graph, graph.at(timestamp), started, at=timestamp)


# Decay


@tool("Get Decayed Graph", adapter=_ADAPTER)
def get_decayed_graph(
    graph: KnowledgeGraph,
    reference_time: Annotated[
        Milliseconds | None, about("Milliseconds since 1970; default now")
    ] = None,
    decay_factor: Annotated[
        float | None, about("Share of a confidence left after 30 days; default 0.5")
    ] = None,
) -> Reply[None]:
    """Get the knowledge graph with each confidence decayed since it was set"""
    started = datetime.now(UTC)
    factor = _DEFAULT_DECAY_FACTOR if decay_factor is None else decay_factor
    if not 0 < factor <= 1:
        raise Invalid(
            "decay_factor must be greater than 0 and at most 1",
            hint=f"It applies per {_HALF_LIFE_DAYS} days.",
        )

    found = graph.read()
    relations = _decay_relations(found, reference_time or now(), factor)
    decay_info = {
        "enabled": True,
        "halfLifeDays": _HALF_LIFE_DAYS,
        "minConfidence": _MIN_CONFIDENCE,
        "decayFactor": factor,
    }
    more: Data = {"diagnostics": {"decay_info": decay_info}}
    return reply_with_graph(graph, Graph(found.entities, relations), started, more=more)


def _decay_relations(graph: Graph, moment: datetime, factor: float) -> tuple[Relation, ...]:
    """Return the relations of a graph, in order, with each confidence decayed until a moment.

    A confidence without a date is as old as the last change of the relation's source; without that
    too, it does not decay. Relations without a confidence stay as they are. `factor` is the share
    that is left after 30 days.
    """
    modified = {entity.name: parse_moment(entity.modified) for entity in graph.entities}
    relations = []
    for relation in graph.relations:
        confidence = relation.attributes.get("confidence")
        if isinstance(confidence, (int, float)):
            stated = parse_moment(relation.attributes.get(STATED_AT))
            since = stated or modified.get(relation.source) or moment
            decayed = _decay(confidence, moment - since, factor)
            relation = _with_attribute(relation, "confidence", decayed)
        relations.append(relation)
    return tuple(relations)


def _decay(confidence: float, age: timedelta, factor: float) -> float:
    """Return a confidence at an age. After each 30 days, the share `factor` of it is left.

    It does not go below 0.1, and one that is below it does not decay. An age below 0 counts as 0.
    """
    half_lives = max(age, timedelta(0)) / timedelta(days=_HALF_LIFE_DAYS)
    floor = min(confidence, _MIN_CONFIDENCE)
    remaining = float(confidence * factor**half_lives)
    return max(floor, remaining)


def _with_attribute(relation: Relation, key: str, value: float) -> Relation:
    """Return a copy of a relation with another value of one attribute, which it may lack."""
    attributes: Mapping[str, Any] = {**relation.attributes, key: value}
    return replace(relation, attributes=attributes)


# Search by meaning


@tool("Semantic Search", adapter=_ADAPTER)
def semantic_search(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    query: Annotated[str, about("Words or a question")],
    limit: Annotated[float, Field(ge=1, le=1000), about("Maximum number of entities")] = 10,
    min_similarity: Annotated[Share, about("Minimum similarity to the query")] = 0.6,
    entity_types: Annotated[Several[str] | None, about("Only entities of these types")] = None,
    hybrid_search: Annotated[bool, about("Match words as well as meaning")] = True,
    semantic_weight: Annotated[Share, about("Weight of meaning against words")] = 0.6,
) -> Reply[None]:
    """Find entities by meaning, or by meaning and words together, best first with their scores"""
    request = MeaningQuery(
        query=query,
        limit=int(limit),
        min_similarity=min_similarity,
        entity_types=entity_types,
        semantic_weight=semantic_weight if hybrid_search else 1.0,
    )
    return search_by_meaning(store, graph, request)


@dataclass(frozen=True, kw_only=True)
class MeaningQuery:
    """A search for entities by meaning and words.

    Attributes:
        query: Words or a question.
        limit: How many entities are found at most.
        min_similarity: The least similarity by meaning, or the least score, of an entity.
        entity_types: Only entities of these types are found, whatever their case; None or () for
            all types.
        semantic_weight: The weight of meaning in the score; words have the rest of 1.
        owner: The user whose entities are searched, None for all users.
    """

    query: str
    limit: int
    min_similarity: float
    entity_types: Sequence[str] | None
    semantic_weight: float
    owner: str | None = None


def search_by_meaning(
    store: EnhancedStore, graph: KnowledgeGraph, request: MeaningQuery
) -> Reply[None]:
    """Return the entities that a search finds, best first, with their relations and scores.

    A similarity is (1 + cosine) / 2, as in Memento. Without vectors, words alone are searched, and
    the answer says why.
    """
    started = datetime.now(UTC)
    types = {entity_type.casefold() for entity_type in request.entity_types or ()}
    candidates = {
        entity.path: entity
        for entity in graph.read(request.owner).entities
        if not types or entity.type.casefold() in types
    }
    likeness = store.extension.likeness(request.query, candidates.keys())
    scores = likeness.scores(request.semantic_weight, request.min_similarity)
    best_paths = sorted(scores, key=lambda path: -scores[path][0])[: request.limit]

    entities = []
    score_rows = []
    for path in best_paths:
        entity = candidates[path]
        score, similarity, keyword = scores[path]
        entities.append(entity)
        score_rows.append(
            {
                "name": entity.name,
                "score": round(score, 4),
                "similarity": round(similarity, 4),
                "keyword": round(keyword, 4),
            }
        )

    more: Data = {"scores": score_rows}
    if likeness.missing:
        more["diagnostics"] = {"searched": "words", "why": likeness.missing}
    names = [entity.name for entity in entities]
    relations = graph.open(names, request.owner).relations
    return reply_with_graph(graph, Graph(tuple(entities), relations), started, more=more)


_HINTS: Final = HINTS | {
    "create_relations": HINTS["create_relations"] | {"relations": Several[WeighedRelation]},
    "add_observations": HINTS["add_observations"] | {"observations": Several[WeighedAddition]},
}
MEMENTO_RULES: Final = replace(RULES, hints=_HINTS)
TOOLS: Final = (
    *graph_tools(MEMENTO_RULES, *VERBS),
    semantic_search,
    get_relation,
    update_relation,
    get_entity_embedding,
    get_entity_history,
    get_relation_history,
    get_graph_at_time,
    get_decayed_graph,
)
