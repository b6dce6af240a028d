"""The face of Memento (memento.md §4): the nine tools that it shares with the reference, and eight of its own.

The nine mean what they mean there; the strength, confidence and metadata that Memento adds to them are taken and kept.
In a note they stand behind the bullet they are about, where Obsidian does not show them. Its other eight do what its
documentation says: scores are real, entity types count, confidence fades, and the past is the notes' own, deleted ones
as well. Times are milliseconds since 1970.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, WithJsonSchema

from simplemem.errors import Invalid, NotFound
from simplemem.faces import graph_tools as verbs
from simplemem.faces import server_memory as nine
from simplemem.faces.arguments import Share, about, also
from simplemem.faces.face import Caller, Reply, tool
from simplemem.faces.graph_tools import Rules
from simplemem.faces.render import pretty
from simplemem.faces.server_memory import HINTS, RULES, List
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.note.names import name_of

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.kinds.graph.past import PastVersion
    from simplemem.store import EnhancedStore

Number = Annotated[int | float, WithJsonSchema({"type": "number"})]  # as it was said: 0 is not 0.0 in a note
Moment = Annotated[float, about("Milliseconds since 1970")]
_AT: Final = "at"
"""When a relation or an observation was last said to be so."""
_SINCE: Final = "created"
_REST: Final = "metadata"  # what no attribute can be called
_OWN: Final = frozenset({"strength", "confidence", _AT, _SINCE, _REST})
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NAMESPACE: Final = uuid.UUID("6f0f7f4e-5c1b-5a52-9d0e-2d6f2b1a7c11")


# --- the nine, with what Memento adds to them


class _Weighed(nine.Exact):
    """What may stand beside a relation or an observation."""

    strength: Annotated[Number | None, about("How strong, from 0 to 1")] = None
    confidence: Annotated[Number | None, about("How sure, from 0 to 1; get_decayed_graph lets it fade")] = None
    metadata: Annotated[dict[str, Any] | None, about("Anything else to keep with it")] = None

    def given(self) -> dict[str, Any]:
        return {key: value for key, value in self if value is not None}


class WeighedRelation(_Weighed, nine.RelationIn):
    createdAt: Moment | None = None  # noqa: N815
    updatedAt: Moment | None = None  # noqa: N815
    validFrom: Moment | None = None  # noqa: N815

    def relation(self) -> Relation:
        return replace(super().relation(), attributes=_attributes(self.given()))


class WeighedAddition(_Weighed, nine.Addition):
    pass


def add_observations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    observations: List[WeighedAddition],
    strength: Annotated[Number | None, about("How strong, from 0 to 1")] = None,
    confidence: Annotated[Number | None, about("How sure, from 0 to 1")] = None,
    metadata: Annotated[dict[str, Any] | None, about("Anything else to keep with them")] = None,
) -> Reply[nine.Results]:
    """Add what is known of entities, one fact a sentence. What is known already is not added again."""
    of_all = _Weighed(strength=strength, confidence=confidence, metadata=metadata).given()
    additions = []
    for each in observations:
        attributes = _attributes(of_all | each.given())
        additions.append((each.entityName, [Observation(text, attributes) for text in each.contents]))
    return verbs.observe(graph, caller, rules, additions)


_RULES: Final = replace(
    RULES,
    hints=HINTS
    | {"create_relations": HINTS["create_relations"] | {"relations": List[WeighedRelation]}, "add_observations": {}},
)


def _attributes(said: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The attributes of a relation or an observation out of what a call says. `before` has those that are there: a
    strength and a confidence that are not given again are kept, metadata is replaced."""
    kept = before or {}
    found = {key: value for key in ("strength", "confidence") if (value := said.get(key, kept.get(key))) is not None}
    metadata = said.get("metadata")
    metadata = _metadata(kept) if metadata is None else metadata
    plain = {key: value for key, value in metadata.items() if _KEY.fullmatch(key) and key not in _OWN}
    found |= plain
    if rest := {key: value for key, value in metadata.items() if key not in plain}:
        found[_REST] = rest
    if not found:
        return {}
    given = next((said[key] for key in ("updatedAt", "validFrom", "createdAt") if said.get(key) is not None), None)
    moment = _moment(given) if given is not None else None
    found[_AT] = (moment or datetime.now(UTC)).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    if (first := kept.get(_SINCE, kept.get(_AT))) is not None:
        found[_SINCE] = first
    return found


def _metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata among attributes."""
    rest = attributes.get(_REST)
    plain = {key: value for key, value in attributes.items() if key not in _OWN}
    return plain | (dict(rest) if isinstance(rest, Mapping) else {})


# --- one relation

Source = Annotated[str, also("from"), about("The entity it begins at")]
Target = Annotated[str, also("to"), about("The entity it leads to")]
RelationType = Annotated[str, about("What the one is or does to the other")]


@tool("Get Relation", manner=nine.RULES.manner)
def get_relation(graph: KnowledgeGraph, source: Source, target: Target, relationType: RelationType) -> Reply[None]:  # noqa: N803
    """One relation with what is kept of it"""
    found = graph.relation(source, relationType, target)
    if found is None:
        return Reply(f"Relation not found: {source} -> {relationType} -> {target}")
    page = graph.entity(source)
    return Reply(pretty(_relation(found, _time(page.modified) if page is not None else None)))


@tool("Update Relation", writes=True, destructive=True, manner=nine.RULES.manner)
def update_relation(graph: KnowledgeGraph, caller: Caller, relation: WeighedRelation) -> Reply[None]:
    """Change the strength, the confidence or the metadata of a relation"""
    wanted = relation.relation()
    there = graph.relation(*wanted.key)
    attributes = _attributes(relation.given(), there.attributes if there is not None else None)
    try:
        graph.update_relation(replace(wanted, attributes=attributes), **caller)
    except NotFound as error:
        raise Invalid(error.message) from None
    return Reply("Relation updated successfully")


# --- the past


@tool("Get Entity History", manner=nine.RULES.manner)
def get_entity_history(store: EnhancedStore, entityName: Annotated[str, about("The entity's name")]) -> Reply[None]:  # noqa: N803
    """All that an entity was, oldest first"""
    from simplemem.kinds.graph.past import entity_history

    versions = entity_history(store, entityName)
    return Reply(pretty([_entity_version(k, versions[0], each) for k, each in enumerate(versions, 1)]))


@tool("Get Relation History", manner=nine.RULES.manner)
def get_relation_history(
    store: EnhancedStore,
    source: Source,
    target: Target,
    relationType: RelationType,  # noqa: N803
) -> Reply[None]:
    """All that a relation was, oldest first"""
    from simplemem.kinds.graph.past import relation_history

    versions = relation_history(store, Relation(source, relationType, target))
    return Reply(pretty([_relation_version(k, versions[0], each) for k, each in enumerate(versions, 1)]))


@tool("Get Graph At Time", manner=nine.RULES.manner)
def get_graph_at_time(store: EnhancedStore, timestamp: Moment) -> Reply[None]:
    """The knowledge graph as it was at a moment, with what was deleted since"""
    from simplemem.kinds.graph.past import graph_at

    began, when = datetime.now(UTC), _needed_moment(timestamp)
    return Reply(pretty(_graph(graph_at(store, when), {}, began)))


@tool("Get Decayed Graph", manner=nine.RULES.manner)
def get_decayed_graph(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    reference_time: Annotated[float | None, about("Milliseconds since 1970; now unless said")] = None,
    decay_factor: Annotated[float | None, about("What is left of a confidence after 30 days, 0.5 unless said")] = None,
) -> Reply[None]:
    """The knowledge graph with each confidence as it has faded since it was said"""
    from simplemem.kinds.graph.past import FACTOR, FLOOR, HALF_LIFE, decayed

    began = datetime.now(UTC)
    now = began if reference_time is None else _needed_moment(reference_time)
    factor = FACTOR if decay_factor is None else decay_factor
    if not 0 < factor <= 1:
        raise Invalid(f"decay_factor is over 0 and at most 1: what is left of a confidence after {HALF_LIFE.days} days")
    found = graph.read()
    changed = {entity.name: _time(entity.modified) for entity in found.entities}
    relations = tuple(
        decayed(each, _last_said(each) or changed.get(each.source) or now, now, factor) for each in found.relations
    )
    shown = _graph(Graph(found.entities, relations), _changes(store), began)
    decay = {"enabled": True, "halfLifeDays": HALF_LIFE.days, "minConfidence": FLOOR, "decayFactor": factor}
    return Reply(pretty({**shown, "diagnostics": {"decay_info": decay}}))


# --- meaning


@tool("Semantic Search", manner=nine.RULES.manner)
def semantic_search(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    query: Annotated[str, about("What to look for, in words or as a question")],
    limit: Annotated[float, Field(ge=1, le=1000), about("The most entities to answer with, 10 unless said")] = 10,
    min_similarity: Annotated[Share, about("How like the question an entity must be, 0.6 unless said")] = 0.6,
    entity_types: Annotated[List[str] | None, about("Only entities of these types")] = None,
    hybrid_search: Annotated[bool, about("Whether words count beside meaning, true unless said")] = True,
    semantic_weight: Annotated[Share, about("What meaning counts beside words, 0.6 unless said")] = 0.6,
) -> Reply[None]:
    """Find entities by meaning, or by meaning and words together, best first with their scores"""
    # A similarity is that of its database, (1 + cosine) / 2, so that a threshold means what it meant there. An entity is
    # found when its similarity or its score reaches it, since it may hold the very words and yet be far in meaning.
    # Where there are no vectors words are searched alone, and the answer says so.
    began, whole = datetime.now(UTC), graph.read()
    types = {each.casefold() for each in entity_types or ()}
    wanted = {each.path: each for each in whole.entities if not types or each.type.casefold() in types}
    alike = store.bench.likeness(query, wanted.keys())
    weight = semantic_weight if hybrid_search else 1.0
    found: list[tuple[float, Entity, dict[str, float]]] = []
    for path, entity in wanted.items():
        words = alike.words.get(path, 0.0)
        if alike.missing:
            if words:
                found.append((words, entity, {"score": words, "keyword": words}))
        elif path in alike.meaning:
            similarity = (1 + alike.meaning[path]) / 2
            score = weight * similarity + (1 - weight) * words
            if max(similarity, score) >= min_similarity:
                parts = {"score": score, "similarity": similarity} | ({"keyword": words} if hybrid_search else {})
                found.append((score, entity, parts))
    best = sorted(found, key=lambda each: -each[0])[: int(limit)]
    names = {entity.name for _, entity, _ in best}
    relations = tuple(each for each in whole.relations if each.source in names or each.target in names)
    changes = _changes(store) if best else {}
    shown = _graph(Graph(tuple(entity for _, entity, _ in best), relations), changes, began)
    shown["scores"] = [
        {"name": entity.name, **{key: round(value, 4) for key, value in parts.items()}} for _, entity, parts in best
    ]
    return Reply(
        pretty(shown | ({"diagnostics": {"searched": "words", "why": alike.missing}} if alike.missing else {}))
    )


@tool("Get Entity Embedding", manner=nine.RULES.manner)
def get_entity_embedding(
    store: EnhancedStore, graph: KnowledgeGraph, entity_name: Annotated[str, about("The entity's name")]
) -> Reply[None]:
    """The vector of an entity, as searches by meaning compare it"""
    entity = graph.entity(entity_name)
    if entity is None:
        return Reply(f"Entity not found: {entity_name}")
    found = store.bench.vector_of(entity.path)
    if found is None:
        return Reply(f"No embedding found for entity: {entity_name}")
    vector, model = found
    shown = {"entityName": entity_name, "embedding": vector, "model": model, "dimensions": len(vector)}
    return Reply(pretty(shown | {"lastUpdated": _milliseconds(_time(store.read(name_of(entity.path)).modified))}))


# --- how it shows entities, relations and times


def _graph(graph: Graph, changes: Mapping[str, tuple[int, str]], began: datetime) -> dict[str, Any]:
    """A graph with how many entities there are and how long it took; `changes` are those of each note, and who made the
    last."""
    changed = {entity.name: _time(entity.modified) for entity in graph.entities}
    return {
        "entities": [_entity(each, *changes.get(each.path, (1, ""))) for each in graph.entities],
        "relations": [_relation(each, changed.get(each.source)) for each in graph.relations],
        "total": len(graph.entities),
        "timeTaken": max(0, int((datetime.now(UTC) - began).total_seconds() * 1000)),
    }


def _changes(store: EnhancedStore) -> dict[str, tuple[int, str]]:
    """How often each note was changed by us, and by whom the last time."""
    changes: dict[str, tuple[int, str]] = {}
    for version in reversed(store.bench.changes_since(0)):
        for path, _, after in version.effects:
            if after is not None:
                changes[path] = (changes.get(path, (0, ""))[0] + 1, version.who)
    return changes


def _entity(entity: Entity, count: int, who: str) -> dict[str, Any]:
    changed = _time(entity.modified) or _time(entity.created)
    made = _time(entity.created) or changed
    return entity.as_dict() | _times(entity.name, count, made, changed, None, who)


def _entity_version(number: int, first: PastVersion[Entity], version: PastVersion[Entity]) -> dict[str, Any]:
    times = _times(version.value.name, number, first.since, version.since, version.until, version.by)
    return version.value.as_dict() | times


def _times(
    name: str, version: int, made: datetime | None, changed: datetime | None, until: datetime | None, who: str
) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid5(_NAMESPACE, name.encode("utf-8", "surrogatepass").hex())),
        "version": version,
        "createdAt": _milliseconds(made),
        "updatedAt": _milliseconds(changed),
        "validFrom": _milliseconds(changed),
        "validTo": _milliseconds(until),
        "changedBy": who or None,
    }


def _relation(relation: Relation, page: datetime | None) -> dict[str, Any]:
    """A relation. `page` is when its note was changed, for one that tells no time."""
    kept = {key: relation.attributes[key] for key in ("strength", "confidence") if key in relation.attributes}
    last = _last_said(relation) or page
    times = {"createdAt": _time(relation.attributes.get(_SINCE)) or last, "updatedAt": last}
    metadata = {key: _milliseconds(at) for key, at in times.items() if at is not None}
    return relation.as_dict() | kept | {"metadata": metadata | _metadata(relation.attributes)}


def _relation_version(number: int, first: PastVersion[Relation], version: PastVersion[Relation]) -> dict[str, Any]:
    return _relation(version.value, version.since) | {
        "version": number,
        "createdAt": _milliseconds(first.since),
        "validFrom": _milliseconds(version.since),
        "validTo": _milliseconds(version.until),
        "changedBy": version.by or None,
    }


def _last_said(relation: Relation) -> datetime | None:
    return _time(relation.attributes[_AT]) if _AT in relation.attributes else None


def _time(value: Any) -> datetime | None:
    """A time that stands in a note: local where it tells no offset."""
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _milliseconds(moment: datetime | None) -> int | None:
    return int(moment.timestamp() * 1000) if moment is not None else None


def _moment(milliseconds: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(milliseconds) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _needed_moment(milliseconds: float) -> datetime:
    moment = _moment(milliseconds)
    if moment is None:
        raise Invalid(f"{milliseconds} is no time in milliseconds since 1970")
    return moment


TOOLS = (
    *verbs.graph_tools(
        _RULES,
        verbs.create_entities,
        verbs.create_relations,
        add_observations,
        verbs.delete_entities,
        verbs.delete_observations,
        verbs.delete_relations,
        *verbs.READING,
    ),
    semantic_search,
    get_relation,
    update_relation,
    get_entity_embedding,
    get_entity_history,
    get_relation_history,
    get_graph_at_time,
    get_decayed_graph,
)
