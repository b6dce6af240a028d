"""The toolset `strict-graph`: the eight graph tools of self-improving-memory (capabilities.md SI-1 to SI-8), over the same
entities as any other graph tools, with its seventeen types, limits and search by meaning.

What is too long is refused and never cut, and angle brackets stay: taking them out destroys code (SI-35).
"""

# ruff: noqa: N815  (the names of arguments are the contract's)
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from simplemem.errors import NotFound, TooLong
from simplemem.faces.arguments import Arguments, at_most, from_json
from simplemem.faces.knowing import FAILURE, knowledge_in, pretty, timed
from simplemem.faces.schema import MAP, NUMBER, TEXT, TEXTS, Schema, record, several
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.kinds.learned.seventeen import (
    ENTITY_TYPES,
    LONGEST_NAME,
    LONGEST_OBSERVATION,
    LONGEST_QUERY,
    LONGEST_RELATION,
    MOST_HITS,
    MOST_NAMES,
)

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.kinds.graph.values import Entity, Graph, Relation

_USUAL_HITS = 10


def _listed(value: Any) -> Any:
    """A list; one thing alone is meant as one, and JSON in a text as what it says."""
    value = from_json(value)
    return [value] if isinstance(value, (str, dict)) else value


def _trimmed(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _a_type(value: Any) -> Any:
    word = value.strip().lower() if isinstance(value, str) else value
    if word not in ENTITY_TYPES:
        raise ValueError("a type is one of " + ", ".join(ENTITY_TYPES))
    return word


_Name = Annotated[str, BeforeValidator(_trimmed), Field(min_length=1, max_length=LONGEST_NAME)]
_Said = Annotated[str, BeforeValidator(_trimmed), Field(min_length=1, max_length=LONGEST_OBSERVATION)]
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}


def _rows(**properties: Schema) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "items": record((), **properties)})


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True, populate_by_name=True)


class NewEntity(_Row):
    name: _Name
    entityType: Annotated[str, BeforeValidator(_a_type)]
    observations: Annotated[list[_Said], BeforeValidator(_listed), Field(min_length=1)]


class NewRelation(_Row):
    source: _Name = Field(alias="from")
    target: _Name = Field(alias="to")
    relationType: Annotated[str, BeforeValidator(_trimmed), Field(min_length=1, max_length=LONGEST_RELATION)]


class Addition(_Row):
    entityName: _Name
    contents: Annotated[list[_Said], BeforeValidator(_listed), Field(min_length=1)]


class Deletion(_Row):
    entityName: _Name
    observations: Annotated[list[str], BeforeValidator(_listed)]


class EntitiesArguments(Arguments):
    entities: Annotated[
        list[NewEntity],
        BeforeValidator(_listed),
        _rows(
            name={**TEXT, "minLength": 1, "maxLength": LONGEST_NAME},
            entityType={"enum": list(ENTITY_TYPES)},
            observations={**_TEXTS, "minItems": 1},
        ),
    ]


class RelationsArguments(Arguments):
    relations: Annotated[
        list[NewRelation],
        BeforeValidator(_listed),
        _rows(**{"from": TEXT, "to": TEXT, "relationType": {**TEXT, "maxLength": LONGEST_RELATION}}),
    ] = Field(description="uses, depends on, fixes, implements, supersedes, …")


class AdditionsArguments(Arguments):
    observations: Annotated[list[Addition], BeforeValidator(_listed), _rows(entityName=TEXT, contents=_TEXTS)]


class DeletionsArguments(Arguments):
    deletions: Annotated[list[Deletion], BeforeValidator(_listed), _rows(entityName=TEXT, observations=_TEXTS)]


class NodesArguments(Arguments):
    query: str = Field(description="up to 500 characters")
    limit: Annotated[int, at_most(MOST_HITS)] = Field(default=_USUAL_HITS, ge=1)


class NamesArguments(Arguments):
    names: Annotated[list[str], BeforeValidator(_listed), WithJsonSchema(_TEXTS), Field(max_length=MOST_NAMES)]


class EntityNamesArguments(Arguments):
    entityNames: Annotated[list[str], BeforeValidator(_listed), WithJsonSchema(_TEXTS)]


class WholeArguments(Arguments):
    pass


# -- what they do


def _graph(call: Call) -> KnowledgeGraph:
    from simplemem.kinds.graph.graph import graph_of

    return graph_of(call.store)


def _said(data: dict[str, Any]) -> Reply:
    return Reply(pretty(data), data)


def create_entities(call: Call, asked: EntitiesArguments) -> Reply:
    from simplemem.kinds.graph.values import Entity, Observation

    wanted = [
        Entity(each.name, each.entityType, tuple(Observation(said) for said in dict.fromkeys(each.observations)))
        for each in asked.entities
    ]
    made = _graph(call).create_entities(wanted, who=call.who, tool=call.tool)
    names = {entity.name for entity in made}
    there = list(dict.fromkeys(entity.name for entity in wanted if entity.name not in names))
    return _said({"entities": [_entity(each) for each in made], "existing": there})


def create_relations(call: Call, asked: RelationsArguments) -> Reply:
    from simplemem.kinds.graph.values import Relation

    wanted = [Relation(each.source, each.relationType, each.target) for each in asked.relations]
    graph = _graph(call)
    known = {
        entity.name for entity in graph.open({name for each in wanted for name in (each.source, each.target)}).entities
    }
    missing = list(dict.fromkeys(name for each in wanted for name in (each.source, each.target) if name not in known))
    made = graph.create_relations(wanted, missing="skip", who=call.who, tool=call.tool)
    if missing and not made and all({each.source, each.target} - known for each in wanted):
        raise NotFound(f"Entities not found: {', '.join(missing)}", hint="create_entities makes them.")
    return _said({"relations": [_relation(each) for each in made], "notFound": missing})


def add_observations(call: Call, asked: AdditionsArguments) -> Reply:
    from simplemem.kinds.graph.values import Observation

    additions = [
        (each.entityName, [Observation(said) for said in dict.fromkeys(each.contents)]) for each in asked.observations
    ]
    added = _graph(call).add_observations(additions, missing="skip", who=call.who, tool=call.tool)
    known = {name for name, _ in added}
    missing = list(dict.fromkeys(name for name, _ in additions if name not in known))
    if missing and not known:
        raise NotFound(f"Entities not found: {', '.join(missing)}", hint="create_entities makes them.")
    results = [{"entityName": name, "addedObservations": said} for name, said in added]
    return _said({"results": results, "notFound": missing})


def search_nodes(call: Call, asked: NodesArguments) -> Reply:
    from simplemem.kinds.graph.values import Graph
    from simplemem.memory import Filter
    from simplemem.note.names import path_of

    if len(asked.query) > LONGEST_QUERY:
        raise TooLong(f"The query has {len(asked.query)} characters; {LONGEST_QUERY} are allowed.")
    graph = _graph(call)
    at = {entity.path: entity for entity in graph.read().entities if not entity.is_note}
    if not at:
        return _said({"entities": [], "relations": [], "method": "there are no entities"})
    found = call.store.search(asked.query, filter=Filter(among=tuple(at)), limit=asked.limit)
    scores = {at[path].name: hit.score for hit in found.hits if (path := path_of(hit.name)) in at}
    there = {entity.name: entity for entity in graph.open(scores).entities}
    near = Graph(tuple(there[name] for name in scores if name in there), graph.open(scores).relations)
    data = _shown(near)
    for entity in data["entities"]:
        entity["score"] = scores[entity["name"]]
    embedder = knowledge_in(call).embedder()
    by_words = found.mode == "text" or not embedder
    return _said(data | {"method": "words" if by_words else f"words and meaning ({embedder})"})


def open_nodes(call: Call, asked: NamesArguments) -> Reply:
    return _said(_shown(_graph(call).open(asked.names)))


def read_graph(call: Call, _asked: WholeArguments) -> Reply:
    return _said(_shown(_graph(call).read()))


def delete_entities(call: Call, asked: EntityNamesArguments) -> Reply:
    absent = set(_graph(call).delete_entities(asked.entityNames, who=call.who, tool=call.tool))
    names = list(dict.fromkeys(asked.entityNames))
    return _said({"deleted": [n for n in names if n not in absent], "notFound": [n for n in names if n in absent]})


def delete_observations(call: Call, asked: DeletionsArguments) -> Reply:
    deletions = [(each.entityName, each.observations) for each in asked.deletions]
    count, absent = _graph(call).delete_observations(deletions, who=call.who, tool=call.tool)
    return _said({"deleted": count, "notFound": list(dict.fromkeys(absent))})


def _shown(graph: Graph) -> dict[str, Any]:
    return {"entities": list(map(_entity, graph.entities)), "relations": list(map(_relation, graph.relations))}


def _entity(entity: Entity) -> dict[str, Any]:
    return {"name": entity.name, "entityType": entity.type, "observations": entity.texts}


def _relation(relation: Relation) -> dict[str, Any]:
    return {"from": relation.source, "to": relation.target, "relationType": relation.type}


_ENTITY = record(("score",), name=TEXT, entityType=TEXT, observations=TEXTS, score=NUMBER)
_RELATION = record((), **{"from": TEXT, "to": TEXT, "relationType": TEXT})
_GRAPH: dict[str, Schema] = {"entities": several(_ENTITY), "relations": several(_RELATION)}


def _tool(
    name: str,
    title: str,
    description: str,
    arguments: type[Arguments],
    run: Any,
    properties: dict[str, Schema],
    optional: Sequence[str] = (),
    **hints: bool,
) -> Tool[Any]:
    output = record(tuple(optional), **properties)
    return Tool(name, title, description, arguments, timed(run), output, failure=FAILURE, **hints)


TOOLS: tuple[Tool[Any], ...] = (
    _tool(
        "create_entities",
        "Create entities",
        "Make entities of the knowledge graph, each with what is known of it. Existing ones are left as they are.",
        EntitiesArguments,
        create_entities,
        {"entities": several(_ENTITY), "existing": TEXTS},
        writes=True,
    ),
    _tool(
        "create_relations",
        "Create relations",
        "Relate entities to each other, in the active voice.",
        RelationsArguments,
        create_relations,
        {"relations": several(_RELATION), "notFound": TEXTS},
        writes=True,
    ),
    _tool(
        "add_observations",
        "Add observations",
        "Say more of entities that are there.",
        AdditionsArguments,
        add_observations,
        {"results": several(MAP), "notFound": TEXTS},
        writes=True,
    ),
    _tool(
        "search_nodes",
        "Search nodes",
        "Find entities by meaning and words, with their relations.",
        NodesArguments,
        search_nodes,
        {**_GRAPH, "method": TEXT},
    ),
    _tool("open_nodes", "Open nodes", "Entities by their names, up to 50.", NamesArguments, open_nodes, _GRAPH),
    _tool("read_graph", "Read the graph", "All entities and relations.", WholeArguments, read_graph, _GRAPH),
    _tool(
        "delete_entities",
        "Delete entities",
        "Put entities into the trash, with the relations from and to them.",
        EntityNamesArguments,
        delete_entities,
        {"deleted": TEXTS, "notFound": TEXTS},
        writes=True,
        destructive=True,
        deletes=True,
    ),
    _tool(
        "delete_observations",
        "Delete observations",
        "Take back what was said of entities.",
        DeletionsArguments,
        delete_observations,
        {"deleted": {"type": "integer"}, "notFound": TEXTS},
        writes=True,
        destructive=True,
    ),
)
