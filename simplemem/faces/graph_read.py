"""Reading the knowledge graph: all of it, what contains a text, entities by name, what lies around one, and the way from
one to another. An answer has a bound, and says how to go on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from simplemem.faces import render
from simplemem.faces.arguments import Arguments, at_most
from simplemem.faces.graph_shown import GRAPH, RELATION, clean, data_of, part_of, relation_line, text_of
from simplemem.faces.graph_write import nobody
from simplemem.faces.graph_write import texts_listed as _listed
from simplemem.faces.schema import COUNT, FLAG, TEXT, record, several
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.jsonl import relation_shown
from simplemem.kinds.graph.values import Graph
from simplemem.kinds.graph.walk import Reached, around, neighbours_of, way
from simplemem.note.words import well_formed

_TOKENS = 4000
_MOST_TOKENS = 50_000
_DEPTH = 10
_LIMIT = 500
_FAR = 12


class _PartArguments(Arguments):
    budget_tokens: Annotated[int, at_most(_MOST_TOKENS)] = Field(default=_TOKENS, ge=100)
    cursor: str | None = Field(default=None, description="next_cursor of the part before")


def _answer(call: Call, asked: _PartArguments, graph: Graph, nothing: str) -> Reply:
    part = part_of(graph, asked.budget_tokens, asked.cursor)
    return Reply(text_of(part, call.tool, nothing=nothing), clean(data_of(part)))


class ReadArguments(_PartArguments):
    pass


def read_graph(call: Call, asked: ReadArguments) -> Reply:
    return _answer(call, asked, graph_of(call.store).read(), "The graph is empty.")


class SearchArguments(_PartArguments):
    query: str = Field(description="a text that name, type or an observation contains")


def search_nodes(call: Call, asked: SearchArguments) -> Reply:
    nothing = "No entity contains that. search_memories finds by meaning."
    return _answer(call, asked, graph_of(call.store).search(asked.query), nothing)


class OpenArguments(_PartArguments):
    names: Annotated[list[str], BeforeValidator(_listed)] = Field(
        validation_alias=AliasChoices("names", "name", "entityNames")
    )


def open_nodes(call: Call, asked: OpenArguments) -> Reply:
    graph = graph_of(call.store)
    found = graph.open(asked.names)
    if asked.names and not found.entities:
        raise nobody(graph, asked.names[0])
    return _answer(call, asked, found, "No name was given.")


Direction = Annotated[
    Literal["both", "out", "in"],
    BeforeValidator(lambda value: str(value).strip().lower().replace("outgoing", "out").replace("incoming", "in")),
]


class TraverseArguments(Arguments):
    start: str = Field(validation_alias=AliasChoices("start", "name", "entity"))
    relation: str | None = Field(default=None, description="only by relations of this type")
    depth: Annotated[int, at_most(_DEPTH)] = Field(default=2, ge=1)
    direction: Direction = "both"
    limit: Annotated[int, at_most(_LIMIT)] = Field(default=100, ge=1)


def traverse_graph(call: Call, asked: TraverseArguments) -> Reply:
    graph = graph_of(call.store)
    whole = graph.read()
    types = {each.name: each.type for each in whole.entities}
    ways = neighbours_of(whole, types=[asked.relation] if asked.relation else (), direction=asked.direction)
    if asked.start not in types and asked.start not in ways:
        raise nobody(graph, asked.start)
    walk = around(ways, asked.start, depth=asked.depth, limit=asked.limit)
    hits = [
        {
            "name": each.name,
            "entityType": types.get(each.name, ""),
            "depth": each.depth,
            "path": [relation_shown(relation) for relation in each.path],
        }
        for each in walk.reached
    ]
    more = f"There is more within {asked.depth} steps; a higher limit shows it." if walk.more else ""
    head = f"{render.counted(len(hits), 'entity', 'entities')} around {render.name_of(well_formed(asked.start))}:"
    text = render.answer(head, well_formed("\n".join(map(_reached, walk.reached))), more)
    return Reply(text if hits else "No relation leads on from there.", clean({"hits": hits, "more": walk.more}))


def _reached(each: Reached) -> str:
    return f"{each.depth} {render.name_of(each.name)}: " + ", ".join(map(relation_line, each.path))


class PathArguments(Arguments):
    start: str = Field(validation_alias=AliasChoices("from", "start", "source"))
    end: str = Field(validation_alias=AliasChoices("to", "end", "target"))

    @classmethod
    def short_schema(cls) -> dict[str, Any]:
        """`from` is no name that Python allows."""
        return {"type": "object", "properties": {"from": TEXT, "to": TEXT}, "required": ["from", "to"]}


def find_path(call: Call, asked: PathArguments) -> Reply:
    graph = graph_of(call.store)
    whole = graph.read()
    ways = neighbours_of(whole)
    names = {each.name for each in whole.entities} | ways.keys()
    for name in (asked.start, asked.end):
        if name not in names:
            raise nobody(graph, name)
    path = way(ways, asked.start, asked.end, depth=_FAR)
    ends = f"{render.name_of(well_formed(asked.start))} to {render.name_of(well_formed(asked.end))}"
    if path is None:
        return Reply(f"No relations lead from {ends} within {_FAR} steps.", {"path": [], "length": 0, "found": False})
    shown = [clean(relation_shown(each)) for each in path]
    text = render.answer(
        f"From {ends} in {render.counted(len(path), 'step', 'steps')}:",
        well_formed("\n".join(map(relation_line, path))),
    )
    return Reply(text, {"path": shown, "length": len(path), "found": True})


_HIT = record(name=TEXT, entityType=TEXT, depth=COUNT, path=several(RELATION))

TOOLS: tuple[Tool[Any], ...] = (
    Tool("read_graph", "Read the graph", "Read the knowledge graph, part by part.", ReadArguments, read_graph, GRAPH),
    Tool(
        "search_nodes",
        "Search entities",
        "Find entities that contain a text, letter for letter whatever its case, and their relations.",
        SearchArguments,
        search_nodes,
        GRAPH,
    ),
    Tool(
        "open_nodes",
        "Open entities",
        "Read entities by their exact names, with their relations.",
        OpenArguments,
        open_nodes,
        GRAPH,
    ),
    Tool(
        "traverse_graph",
        "Walk the graph",
        "What lies around an entity: each thing its relations lead to, nearest first, with the way there.",
        TraverseArguments,
        traverse_graph,
        record(hits=several(_HIT), more=FLAG),
    ),
    Tool(
        "find_path",
        "Find a path",
        "How two entities are related: the shortest way along relations, in either direction.",
        PathArguments,
        find_path,
        record(path=several(RELATION), length=COUNT, found=FLAG),
    ),
)
