"""The nine tools of the graph memory server that most clients know, `@modelcontextprotocol/server-memory`.

memento.md §2 and §3 are their contract: the schemas, the shapes of the answers and the texts of the errors. What people
said of that server is done better, in ways no client can see: nothing acknowledged is lost, and every entity is a note.

The dialect says which version is meant where two differ (§1): `published` keeps relations to entities that are not there
and says the same of every deletion; `main` refuses such relations, counts what was deleted, and bounds a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from simplemem.faces.contract import ContractTool, Given, Schema, closed, several, text, thing
from simplemem.faces.pretty import pretty
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.kinds.graph.jsonl import entity_shown, relation_shown
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph

LONGEST_QUERY = 2048
"""Of `main`, in units of UTF-16."""


# --- the schemas

ENTITY: dict[str, Schema] = {
    "name": text("The entity's name"),
    "entityType": text("What kind of thing it is"),
    "observations": several(text(), "What is known of it, one fact each"),
}
RELATION: dict[str, Schema] = {
    "from": text("The entity it begins at"),
    "to": text("The entity it leads to"),
    "relationType": text("What the one is or does to the other"),
}
_ENTITIES = several(thing(ENTITY))
_RELATIONS = several(thing(RELATION))
_ADDITIONS = several(
    thing({"entityName": text("The entity they are about"), "contents": several(text(), "What to add, one fact each")})
)
_DELETIONS = several(
    thing({"entityName": text("The entity that says them"), "observations": several(text(), "What to remove")})
)
GRAPH = closed(thing({"entities": _ENTITIES, "relations": _RELATIONS}))
_DONE = closed(thing({"success": {"type": "boolean"}, "message": text()}))
_ADDED = closed(
    thing({"results": several(thing({"entityName": text(), "addedObservations": several(text())}))}),
)


# --- what they do


def graph_in(call: Call) -> KnowledgeGraph:
    """The graph of the vault that a call is about."""
    from simplemem.kinds.graph.graph import graph_of

    return graph_of(call.store)


class Asker(TypedDict):
    """Who makes a change, for the history."""

    who: str
    tool: str


def by(call: Call) -> Asker:
    return {"who": call.who, "tool": call.tool}


def is_main(call: Call) -> bool:
    return call.store.settings.graph.dialect == "main"


def shown(graph: Graph) -> dict[str, Any]:
    """A graph as these tools answer with it."""
    return {
        "entities": [entity_shown(each) for each in graph.entities],
        "relations": [relation_shown(each) for each in graph.relations],
    }


def answer(graph: Graph) -> Reply:
    data = shown(graph)
    return Reply(pretty(data), data)


def entity_in(said: dict[str, Any]) -> Entity:
    return Entity(said["name"], said["entityType"], tuple(map(Observation, said["observations"])))


def relation_in(said: dict[str, Any]) -> Relation:
    return Relation(said["from"], said["relationType"], said["to"])


def create_entities(call: Call, asked: Given) -> Reply:
    wanted = [entity_in(each) for each in asked.given["entities"]]
    made = [entity_shown(each) for each in graph_in(call).create_entities(wanted, **by(call))]
    return Reply(pretty(made), {"entities": made})


def create_relations(call: Call, asked: Given) -> Reply:
    return relate(call, [relation_in(each) for each in asked.given["relations"]])


def relate(call: Call, wanted: Sequence[Relation]) -> Reply:
    """Make relations, by the rule of the dialect for those that lead nowhere."""
    missing: Literal["stub", "refuse"] = "refuse" if is_main(call) else "stub"
    made = graph_in(call).create_relations(wanted, missing=missing, **by(call))
    data = [relation_shown(each) for each in made]
    return Reply(pretty(data), {"relations": data})


def add_observations(call: Call, asked: Given) -> Reply:
    return observe(
        call, [(each["entityName"], tuple(map(Observation, each["contents"]))) for each in asked.given["observations"]]
    )


def observe(call: Call, additions: Sequence[tuple[str, Sequence[Observation]]]) -> Reply:
    added = graph_in(call).add_observations(additions, missing="refuse", **by(call))
    data = [{"entityName": name, "addedObservations": texts} for name, texts in added]
    return Reply(pretty(data), {"results": data})


def delete_entities(call: Call, asked: Given) -> Reply:
    names = asked.given["entityNames"]
    missing = set(graph_in(call).delete_entities(names, **by(call)))
    gone = [name for name in names if name in missing]
    count = f"Deleted {len(names) - len(gone)} of {len(names)} entities. Not found: {', '.join(gone)}"
    return _deleted(call, "Entities", count if gone else "")


def delete_observations(call: Call, asked: Given) -> Reply:
    deletions = [(each["entityName"], each["observations"]) for each in asked.given["deletions"]]
    count, missing = graph_in(call).delete_observations(deletions, **by(call))
    wanted = sum(len(texts) for _, texts in deletions)
    said = f"Deleted {count} of {wanted} observations."
    said += f" Entities not found: {', '.join(missing)}" if missing else ""
    return _deleted(call, "Observations", said if count != wanted else "")


def delete_relations(call: Call, asked: Given) -> Reply:
    relations = [relation_in(each) for each in asked.given["relations"]]
    count = graph_in(call).delete_relations(relations, **by(call))
    said = f"Deleted {count} of {len(relations)} relations. The rest matched nothing."
    return _deleted(call, "Relations", said if count != len(relations) else "")


def _deleted(call: Call, what: str, counted: str) -> Reply:
    message = counted if counted and is_main(call) else f"{what} deleted successfully"
    return Reply(message, {"success": True, "message": message})


def read_graph(call: Call, _asked: Given) -> Reply:
    return answer(graph_in(call).read())


def search_nodes(call: Call, asked: Given) -> Reply:
    return answer(graph_in(call).search(asked.given["query"]))


def open_nodes(call: Call, asked: Given) -> Reply:
    return answer(graph_in(call).open(asked.given["names"]))


def graph_text(graph: KnowledgeGraph) -> str:
    """The resource: what `read_graph` answers with."""
    return pretty(shown(graph.read()))


# --- the tools


def _makes(name: str, title: str, description: str, run: Any, schema: Schema, output: Schema) -> ContractTool:
    return ContractTool(
        name, title, description, Given, run, output=output, writes=True, idempotent=False, schema=schema
    )


def _removes(name: str, title: str, description: str, run: Any, schema: Schema) -> ContractTool:
    return ContractTool(
        name, title, description, Given, run, output=_DONE, writes=True, destructive=True, deletes=True, schema=schema
    )


def _reads(name: str, title: str, description: str, run: Any, schema: Schema) -> ContractTool:
    return ContractTool(name, title, description, Given, run, output=GRAPH, schema=schema)


TOOLS: tuple[ContractTool, ...] = (
    _makes(
        "create_entities",
        "Create Entities",
        "Add entities to the knowledge graph, each with a name, a type and what is known of it",
        create_entities,
        thing({"entities": _ENTITIES}),
        closed(thing({"entities": _ENTITIES})),
    ),
    _makes(
        "create_relations",
        "Create Relations",
        "Add relations between entities of the knowledge graph; say them in the active voice",
        create_relations,
        thing({"relations": _RELATIONS}),
        closed(thing({"relations": _RELATIONS})),
    ),
    _makes(
        "add_observations",
        "Add Observations",
        "Add what is known of entities that are in the knowledge graph",
        add_observations,
        thing({"observations": _ADDITIONS}),
        _ADDED,
    ),
    _removes(
        "delete_entities",
        "Delete Entities",
        "Remove entities from the knowledge graph, and all relations from and to them",
        delete_entities,
        thing({"entityNames": several(text(), "The names of the entities")}),
    ),
    _removes(
        "delete_observations",
        "Delete Observations",
        "Remove single observations from entities of the knowledge graph",
        delete_observations,
        thing({"deletions": _DELETIONS}),
    ),
    _removes(
        "delete_relations",
        "Delete Relations",
        "Remove relations from the knowledge graph",
        delete_relations,
        thing({"relations": {**_RELATIONS, "description": "The relations to remove"}}),
    ),
    _reads("read_graph", "Read Graph", "Read the whole knowledge graph", read_graph, thing({})),
    _reads(
        "search_nodes",
        "Search Nodes",
        "Find entities whose name, type or observations contain a text",
        search_nodes,
        thing({"query": text("What to look for, letter for letter")}),
    ),
    _reads(
        "open_nodes",
        "Open Nodes",
        "Read entities of the knowledge graph by their names",
        open_nodes,
        thing({"names": several(text(), "The names of the entities")}),
    ),
)


def in_dialect(tools: tuple[Tool[Any], ...], dialect: str) -> tuple[Tool[Any], ...]:
    """These tools as a dialect lists them: `main` bounds the query of a search."""
    if dialect != "main":
        return tools
    return tuple(_bounded(tool) if tool.name == "search_nodes" else tool for tool in tools)


def _bounded(tool: Tool[Any]) -> Tool[Any]:
    if not isinstance(tool, ContractTool):
        return tool
    query = {**tool.schema["properties"]["query"], "maxLength": LONGEST_QUERY}
    return replace(tool, schema={**tool.schema, "properties": {**tool.schema["properties"], "query": query}})
