"""The profile of Memento: the nine tools it shares with the reference, and eight of its own. Strength,
confidence and metadata are kept behind the bullet they are about. Times are milliseconds since 1970."""

# ruff: noqa: N803, N815  (the names of arguments are the contract's)
from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AwareDatetime, Field, WithJsonSchema

from simplemem.errors import Invalid
from simplemem.features.graph.values import Entity, Graph, Relation
from simplemem.note.dates import now
from simplemem.profiles.server_memory import tools as verbs
from simplemem.profiles.server_memory.tools import HINTS, RULES, GraphArguments
from simplemem.tools.arguments import Several, Share, about, also
from simplemem.tools.render import pretty
from simplemem.tools.tool import Caller, Data, Reply, tool

if TYPE_CHECKING:
    from simplemem.features.graph.history import Period
    from simplemem.features.graph.service import KnowledgeGraph
    from simplemem.store import EnhancedStore

# As it was said: 0 is not 0.0 in a note.
Number = Annotated[int | float, Field(ge=0, le=1), WithJsonSchema({"type": "number"})]
Milliseconds = Annotated[AwareDatetime, WithJsonSchema({"type": "number"})]
Moment = Annotated[Milliseconds, about("Milliseconds since 1970")]
_AT: Final = "at"  # when a relation or an observation was last said to be so
_WEIGHTS: Final = ("strength", "confidence")
_HALF_LIFE, _FLOOR = 30, 0.1  # days; what a confidence never falls below
_NAMESPACE: Final = uuid.UUID("6f0f7f4e-5c1b-5a52-9d0e-2d6f2b1a7c11")
_MANNER: Final = RULES.manner


class _Weighed(GraphArguments):
    """What may stand beside a relation or an observation."""

    strength: Annotated[Number | None, about("Strength, from 0 to 1")] = None
    confidence: Annotated[
        Number | None, about("Confidence, from 0 to 1; get_decayed_graph decays it")
    ] = None
    metadata: Annotated[dict[str, Any] | None, about("Other data to store")] = None
    updatedAt: Moment | None = None

    def attributes(self) -> dict[str, Any]:
        """These as attributes, with when they were said."""
        found = self.model_dump(include={*_WEIGHTS, "metadata"}, exclude_none=True)
        moment = (self.updatedAt or now()).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
        return found | {_AT: moment} if any(value != {} for value in found.values()) else {}


class WeighedRelation(_Weighed, verbs.RelationIn):
    def relation(self) -> Relation:
        return replace(super().relation(), attributes=self.attributes())


class WeighedAddition(_Weighed, verbs.Addition): ...


Source = Annotated[str, also("from"), about("The entity that the relation starts from")]
Target = Annotated[str, also("to"), about("The entity that the relation leads to")]


@tool("Get Relation", manner=_MANNER)
def get_relation(
    store: EnhancedStore, graph: KnowledgeGraph, source: Source, target: Target, relationType: str
) -> Reply[None]:
    """Get one relation with its stored data"""
    if (found := graph.relation(source, relationType, target)) is None:
        return Reply(f"Relation not found: {source} -> {relationType} -> {target}")
    return Reply(pretty(_relation(found, graph.relation_history(store, found))))


@tool("Update Relation", writes=True, destructive=True, manner=_MANNER)
def update_relation(
    graph: KnowledgeGraph, caller: Caller, relation: WeighedRelation
) -> Reply[None]:
    """Change the strength, the confidence or the metadata of a relation"""
    graph.update_relation(relation.relation(), **caller)
    return Reply("Relation updated successfully")


@tool("Get Entity Embedding", manner=_MANNER)
def get_entity_embedding(
    store: EnhancedStore, graph: KnowledgeGraph, entity_name: str
) -> Reply[None]:
    """Get the vector of an entity, which searches by meaning compare"""
    entity = graph.entity(entity_name)
    if entity is None:
        return Reply(f"Entity not found: {entity_name}")
    if (found := store.extension.vector_of(entity.path)) is None:
        return Reply(f"No embedding found for entity: {entity_name}")
    shown = {
        "entityName": entity_name,
        "embedding": found[0],
        "model": found[1],
        "dimensions": len(found[0]),
    }
    return Reply(pretty(shown | _ms(lastUpdated=_time(entity.modified))))


@tool("Get Entity History", manner=_MANNER)
def get_entity_history(store: EnhancedStore, graph: KnowledgeGraph, entityName: str) -> Reply[None]:
    """List all versions of an entity, oldest first"""
    past = graph.entity_history(store, entityName)
    return Reply(pretty([_entity(each[0], past[:number]) for number, each in enumerate(past, 1)]))


@tool("Get Relation History", manner=_MANNER)
def get_relation_history(
    store: EnhancedStore, graph: KnowledgeGraph, source: Source, target: Target, relationType: str
) -> Reply[None]:
    """List all versions of a relation, oldest first"""
    past = graph.relation_history(store, Relation(source, relationType, target))
    return Reply(
        pretty(
            [_relation(each[0], past[:n]) | _version(past[:n]) for n, each in enumerate(past, 1)]
        )
    )


@tool("Get Graph At Time", manner=_MANNER)
def get_graph_at_time(
    store: EnhancedStore, graph: KnowledgeGraph, timestamp: Moment
) -> Reply[None]:
    """Get the knowledge graph as it was at a given time, including what was deleted since"""
    began = datetime.now(UTC)
    return _graph(store, graph, graph.at(timestamp), began, timestamp)


@tool("Get Decayed Graph", manner=_MANNER)
def get_decayed_graph(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    reference_time: Annotated[
        Milliseconds | None, about("Milliseconds since 1970; default now")
    ] = None,
    decay_factor: Annotated[
        float | None, about("Share of a confidence left after 30 days; default 0.5")
    ] = None,
) -> Reply[None]:
    """Get the knowledge graph with each confidence decayed since it was set"""
    began, found = datetime.now(UTC), graph.read()
    moment = reference_time or now()
    factor = 0.5 if decay_factor is None else decay_factor
    if not 0 < factor <= 1:
        raise Invalid(
            "decay_factor must be greater than 0 and at most 1",
            hint=f"It applies per {_HALF_LIFE} days.",
        )
    changed = {entity.name: _time(entity.modified) or moment for entity in found.entities}
    relations = list(found.relations)
    for at, each in enumerate(relations):
        if isinstance(confidence := each.attributes.get("confidence"), (int, float)):
            said = _time(each.attributes.get(_AT)) or changed.get(each.source, moment)
            left = confidence * factor ** (max(moment - said, timedelta(0)) / timedelta(_HALF_LIFE))
            left = max(min(confidence, _FLOOR), left)  # the floor lifts none that was below it
            relations[at] = replace(each, attributes={**each.attributes, "confidence": left})
    decay = {
        "enabled": True,
        "halfLifeDays": _HALF_LIFE,
        "minConfidence": _FLOOR,
        "decayFactor": factor,
    }
    return _graph(
        store,
        graph,
        Graph(found.entities, tuple(relations)),
        began,
        diagnostics={"decay_info": decay},
    )


@tool("Semantic Search", manner=_MANNER)
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
    weight = semantic_weight if hybrid_search else 1.0
    return found_by_meaning(store, graph, query, int(limit), min_similarity, entity_types, weight)


def found_by_meaning(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    query: str,
    limit: int,
    min_similarity: float,
    entity_types: Sequence[str] | None,
    weight_of_meaning: float,
    owner: str | None = None,
) -> Reply[None]:
    """Answer a search by meaning; with `owner` among the entities that belong to that user.

    A similarity is (1 + cosine) / 2, as in Memento. An entity is found when its similarity or its
    score reaches the threshold.
    """
    began, types = datetime.now(UTC), {each.casefold() for each in entity_types or ()}
    entities_there = graph.read(owner).entities
    wanted = {
        each.path: each for each in entities_there if not types or each.type.casefold() in types
    }
    alike = store.extension.likeness(query, wanted.keys())
    scores = alike.scores(weight_of_meaning, min_similarity)
    best = sorted(scores, key=lambda path: -scores[path][0])[:limit]
    entities = tuple(wanted[path] for path in best)
    keys = ("score", "similarity", "keyword")
    parts = [
        dict(zip(keys, (round(part, 4) for part in scores[path]), strict=True)) for path in best
    ]
    more: Data = {
        "scores": [{"name": each.name} | part for each, part in zip(entities, parts, strict=True)]
    }
    if alike.missing:
        more["diagnostics"] = {"searched": "words", "why": alike.missing}
    relations = graph.open((each.name for each in entities), owner).relations
    return _graph(store, graph, Graph(entities, relations), began, **more)


def _graph(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    part: Graph,
    began: datetime,
    at: datetime | None = None,
    **more: Any,
) -> Reply[None]:
    """A part of the graph with its size and the time it took, each entity and relation as its history has it by then."""

    def known(past: list[Period[Any]]) -> list[Period[Any]]:
        return [each for each in past if at is None or each[1] <= at] or past[:1]

    entities = [
        _entity(each, known(graph.entity_history(store, each.name, each.path)))
        for each in part.entities
    ]
    relations = [
        _relation(each, known(graph.relation_history(store, each))) for each in part.relations
    ]
    took = max(0, int((datetime.now(UTC) - began).total_seconds() * 1000))
    shown = {
        "entities": entities,
        "relations": relations,
        "total": len(entities),
        "timeTaken": took,
    }
    return Reply(pretty(shown | more))


def _version(past: list[Period[Any]]) -> Data:
    """The last of some versions: its number, when it was so, and who made it so."""
    if not past:
        return {"version": 1, "changedBy": None}
    _, since, until, who = past[-1]
    times = _ms(createdAt=past[0][1], validFrom=since, validTo=until)
    return {"version": len(past)} | times | {"changedBy": who or None}


def _entity(entity: Entity, past: list[Period[Entity]]) -> Data:
    version = _version(past)
    shown = entity.as_dict() | {
        "id": str(uuid.uuid5(_NAMESPACE, entity.name.encode("utf-8", "surrogatepass").hex()))
    }
    return shown | version | {"updatedAt": version.get("validFrom")}


def _relation(relation: Relation, past: list[Period[Relation]]) -> Data:
    """A relation. What it tells of its own times goes before what the history knows."""
    told = dict(relation.attributes)
    weights = {key: told.pop(key) for key in _WEIGHTS if key in told}
    said, first, rest = (told.pop(key, None) for key in (_AT, "created", "metadata"))
    updated = _time(said) or (past[-1][1] if past else None)
    created = _time(first) or _time(said) or (past[0][1] if past else None)
    metadata = {
        key: ms for key, ms in _ms(createdAt=created, updatedAt=updated).items() if ms is not None
    } | told
    return (
        relation.as_dict()
        | weights
        | {"metadata": metadata | (rest if isinstance(rest, dict) else {})}
    )


def _time(value: Any) -> datetime | None:
    """A time that stands in a note: local where it tells no offset."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    return None


def _ms(**moments: datetime | None) -> dict[str, int | None]:
    return {
        key: int(each.timestamp() * 1000) if each is not None else None
        for key, each in moments.items()
    }


_HINTS = HINTS | {
    "create_relations": HINTS["create_relations"] | {"relations": Several[WeighedRelation]},
    "add_observations": HINTS["add_observations"] | {"observations": Several[WeighedAddition]},
}
MEMENTO_RULES: Final = replace(RULES, hints=_HINTS)
TOOLS = (
    *verbs.graph_tools(MEMENTO_RULES, *verbs.VERBS),
    *(semantic_search, get_relation, update_relation, get_entity_embedding),
    *(get_entity_history, get_relation_history, get_graph_at_time, get_decayed_graph),
)
