"""Memento's seventeen tools (memento.md §4). The nine that it shares with the reference mean what they mean there; what
Memento adds to them is taken and kept. Its other eight do what its documentation says: scores are real, entity types
count, confidence fades, and the past is the notes' own, deleted ones as well.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from simplemem.errors import NotFound
from simplemem.faces import memento_shown as told
from simplemem.faces import server_memory as nine
from simplemem.faces.contract import ContractTool, Given, Refused, Schema, flag, number, several, text, thing
from simplemem.faces.memento_search import semantic_search
from simplemem.faces.pretty import pretty
from simplemem.faces.server_memory import by, graph_in, relation_in
from simplemem.faces.tool import Call, Reply
from simplemem.kinds.graph.values import Graph, Observation, Relation
from simplemem.note.names import name_of

# --- the nine, with what Memento adds to them

_MOMENTS = ("createdAt", "updatedAt", "validFrom", "validTo")
_KEPT: dict[str, Schema] = {
    "id": text(),
    "version": number(),
    **{name: number("Milliseconds since 1970") for name in _MOMENTS},
    "changedBy": text(),
}
_WEIGHED: dict[str, Schema] = {
    "strength": number("How strong, from 0 to 1"),
    "confidence": number("How sure, from 0 to 1; get_decayed_graph lets it fade"),
    "metadata": {"type": "object", "description": "Anything else to keep with it"},
}
_ENTITY = thing({**nine.ENTITY, **_KEPT}, tuple(nine.ENTITY))
_RELATION = thing({**nine.RELATION, **_WEIGHED, **_KEPT}, tuple(nine.RELATION))
_ADDITION = thing(
    {"entityName": text("The entity they are about"), "contents": several(text(), "What to add"), **_WEIGHED},
    ("entityName", "contents"),
)


def create_relations(call: Call, asked: Given) -> Reply:
    return nine.relate(call, [_relation(each) for each in asked.given["relations"]])


def _relation(said: dict[str, Any]) -> Relation:
    return replace(relation_in(said), attributes=told.attributes_in(said))


def add_observations(call: Call, asked: Given) -> Reply:
    every = {key: asked.given[key] for key in _WEIGHED if key in asked.given}
    additions = []
    for each in asked.given["observations"]:
        attributes = told.attributes_in({**every, **each})
        additions.append((each["entityName"], tuple(Observation(said, attributes) for said in each["contents"])))
    return nine.observe(call, additions)


_WIDER: dict[str, tuple[Any, Schema]] = {
    "create_entities": (nine.create_entities, thing({"entities": several(_ENTITY)})),
    "create_relations": (create_relations, thing({"relations": several(_RELATION)})),
    "add_observations": (
        add_observations,
        thing({"observations": several(_ADDITION), **_WEIGHED}, ("observations",)),
    ),
    "read_graph": (nine.read_graph, thing({"random_string": text("Of no meaning")}, ())),
}


def _shared(tool: ContractTool) -> ContractTool:
    if tool.name not in _WIDER:
        return tool
    run, schema = _WIDER[tool.name]
    return replace(tool, run=run, schema=schema)


# --- one relation


def get_relation(call: Call, asked: Given) -> Reply:
    wanted = relation_in(asked.given)
    found = graph_in(call).relation(*wanted.key)
    if found is None:
        return Reply(f"Relation not found: {wanted.source} -> {wanted.type} -> {wanted.target}")
    return Reply(pretty(told.relation_told(found, _changed(call, wanted.source))))


def _changed(call: Call, name: str) -> datetime | None:
    page = graph_in(call).entity(name)
    return told.said_at(page.modified) if page is not None else None


def update_relation(call: Call, asked: Given) -> Reply:
    said = asked.given["relation"]
    wanted = relation_in(said)
    there = graph_in(call).relation(*wanted.key)
    attributes = told.attributes_in(said, there.attributes if there is not None else None)
    try:
        graph_in(call).update_relation(replace(wanted, attributes=attributes), **by(call))
    except NotFound as error:
        raise Refused(error.message) from None
    return Reply("Relation updated successfully")


# --- the past


def get_entity_history(call: Call, asked: Given) -> Reply:
    from simplemem.kinds.graph.past import entity_history

    versions = entity_history(call.store, asked.given["entityName"])
    return Reply(pretty([told.version_told(k, versions[0], each) for k, each in enumerate(versions, 1)]))


def get_relation_history(call: Call, asked: Given) -> Reply:
    from simplemem.kinds.graph.past import relation_history

    versions = relation_history(call.store, relation_in(asked.given))
    return Reply(pretty([told.relation_version_told(k, versions[0], each) for k, each in enumerate(versions, 1)]))


def get_graph_at_time(call: Call, asked: Given) -> Reply:
    from simplemem.kinds.graph.past import graph_at

    began, when = datetime.now(UTC), _moment(asked.given["timestamp"])
    return Reply(pretty(told.graph_told(graph_at(call.store, when), {}, began)))


def _moment(milliseconds: Any) -> datetime:
    moment = told.moment_of(milliseconds)
    if moment is None:
        raise Refused(f"{milliseconds} is no time in milliseconds since 1970")
    return moment


# --- what fades


def get_decayed_graph(call: Call, asked: Given) -> Reply:
    from simplemem.kinds.graph.past import FACTOR, FLOOR, HALF_LIFE, decayed

    began = datetime.now(UTC)
    now = _moment(asked.given["reference_time"]) if "reference_time" in asked.given else began
    factor = float(asked.given.get("decay_factor", FACTOR))
    if not 0 < factor <= 1:
        raise Refused(f"decay_factor is over 0 and at most 1: what is left of a confidence after {HALF_LIFE.days} days")
    graph = graph_in(call).read()
    changed = {entity.name: told.said_at(entity.modified) for entity in graph.entities}
    relations = tuple(
        decayed(each, told.last_said(each) or changed.get(each.source) or now, now, factor) for each in graph.relations
    )
    shown = told.graph_told(Graph(graph.entities, relations), told.kept_of(call.store), began)
    decay = {"enabled": True, "halfLifeDays": HALF_LIFE.days, "minConfidence": FLOOR, "decayFactor": factor}
    return Reply(pretty({**shown, "diagnostics": {"decay_info": decay}}))


# --- meaning


def get_entity_embedding(call: Call, asked: Given) -> Reply:
    from simplemem.store.likeness import vector_of

    name = asked.given["entity_name"]
    entity = graph_in(call).entity(name)
    if entity is None:
        return Reply(f"Entity not found: {name}")
    found = vector_of(call.store.core, entity.path)
    if found is None:
        return Reply(f"No embedding found for entity: {name}")
    vector, model = found
    changed = told.said_at(call.store.read(name_of(entity.path)).modified)
    return Reply(
        pretty(
            {
                "entityName": name,
                "embedding": vector,
                "model": model,
                "dimensions": len(vector),
                "lastUpdated": told.milliseconds(changed) if changed is not None else None,
            }
        )
    )


# --- the tools


def _tool(name: str, title: str, description: str, run: Any, schema: Schema, *, writes: bool = False) -> ContractTool:
    return ContractTool(name, title, description, Given, run, writes=writes, destructive=writes, schema=schema)


_ENDS = thing(nine.RELATION)

TOOLS: tuple[ContractTool, ...] = (
    *map(_shared, nine.TOOLS),
    _tool(
        "semantic_search",
        "Semantic Search",
        "Find entities by meaning, or by meaning and words together, best first with their scores",
        semantic_search,
        thing(
            {
                "query": text("What to look for, in words or as a question"),
                "limit": number("The most entities to answer with, 10 unless said", minimum=1, maximum=1000),
                "min_similarity": number(
                    "How like the question an entity must be, from 0 to 1, 0.6 unless said", minimum=0, maximum=1
                ),
                "entity_types": several(text(), "Only entities of these types"),
                "hybrid_search": flag("Whether words count beside meaning, true unless said"),
                "semantic_weight": number("What meaning counts beside words, 0.6 unless said", minimum=0, maximum=1),
            },
            ("query",),
        ),
    ),
    _tool("get_relation", "Get Relation", "One relation with what is kept of it", get_relation, _ENDS),
    _tool(
        "update_relation",
        "Update Relation",
        "Change the strength, the confidence or the metadata of a relation",
        update_relation,
        thing({"relation": _RELATION}),
        writes=True,
    ),
    _tool(
        "get_entity_embedding",
        "Get Entity Embedding",
        "The vector of an entity, as searches by meaning compare it",
        get_entity_embedding,
        thing({"entity_name": text("The entity's name")}),
    ),
    _tool(
        "get_entity_history",
        "Get Entity History",
        "All that an entity was, oldest first",
        get_entity_history,
        thing({"entityName": text("The entity's name")}),
    ),
    _tool(
        "get_relation_history",
        "Get Relation History",
        "All that a relation was, oldest first",
        get_relation_history,
        _ENDS,
    ),
    _tool(
        "get_graph_at_time",
        "Get Graph At Time",
        "The knowledge graph as it was at a moment, with what was deleted since",
        get_graph_at_time,
        thing({"timestamp": number("Milliseconds since 1970")}),
    ),
    _tool(
        "get_decayed_graph",
        "Get Decayed Graph",
        "The knowledge graph with each confidence as it has faded since it was said",
        get_decayed_graph,
        thing(
            {
                "reference_time": number("Milliseconds since 1970; now unless said"),
                "decay_factor": number("What is left of a confidence after 30 days, 0.5 unless said"),
            },
            (),
        ),
    ),
)
