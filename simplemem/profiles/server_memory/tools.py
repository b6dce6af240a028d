"""The tools of the knowledge graph, written once for four profiles, which differ in their `Rules`: here the toolset `graph`
of the default server, and the profile of `@modelcontextprotocol/server-memory`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.features.graph.values import (
    Direction,
    Entity,
    NoSuchEntity,
    Observation,
    Relation,
    walk,
)
from simplemem.note.words import count_tokens
from simplemem.tools import render
from simplemem.tools.arguments import (
    EXACT,
    Arguments,
    Several,
    about,
    also,
    at_most,
    names_user,
    one_of,
)
from simplemem.tools.normalize import describe_errors
from simplemem.tools.schema import closed
from simplemem.tools.tool import OURS, Caller, Data, Manner, Reply, Tool, tool

if TYPE_CHECKING:
    from simplemem.features.graph.service import KnowledgeGraph

_LINE = 4096
_TOKENS = 8000  # of a graph in an answer
_DRAFT = "http://json-schema.org/draft-07/schema#"


class GraphArguments(Arguments):
    """Arguments of a graph: a number is no text."""

    model_config = ConfigDict(coerce_numbers_to_str=False)


class EntityIn(GraphArguments):
    name: Annotated[str, also("name", "entityName", "entity")]
    entityType: Annotated[str, also("entityType", "entity_type", "type")]  # noqa: N815
    observations: Annotated[Several[str], also("observations", "contents"), about("one fact each")]


class RelationIn(GraphArguments):
    source: Annotated[str, also("from", "source")]
    target: Annotated[str, also("to", "target")]
    relationType: Annotated[str, also("relationType", "relation_type", "type", "relation")]  # noqa: N815

    def relation(self) -> Relation:
        return Relation(self.source, self.relationType, self.target)


class Addition(GraphArguments):
    entityName: Annotated[str, also("entityName", "entity_name", "entity", "name")]  # noqa: N815
    contents: Annotated[
        Several[str], also("contents", "observations", "content"), about("one fact each")
    ]

    def attributes(self) -> dict[str, Any]:
        return {}


class Removal(GraphArguments):
    entityName: Annotated[str, also("entityName", "entity_name", "entity", "name")]  # noqa: N815
    observations: Annotated[Several[str], also("observations", "contents", "content")]


Owner = Annotated[
    str | None,
    also("container_tag", "user_id", "scope"),
    names_user(),
    about("whose entities: only these are found, and new ones are of this tag"),
]
_Relations = Several[RelationIn]
_Additions = Several[Addition]
_Entities = Annotated[Several[str], also("entityNames", "entity_names", "names", "name")]
_Removals = Annotated[Several[Removal], also("deletions", "observations")]
_Text = Annotated[str, about("a text that name, type or an observation contains")]
_Names = Annotated[Several[str], also("names", "name", "entityNames")]
EntityOut = TypedDict("EntityOut", {"name": str, "entityType": str, "observations": list[str]})
RelationOut = TypedDict("RelationOut", {"from": str, "to": str, "relationType": str})
GraphOut = TypedDict("GraphOut", {"entities": list[EntityOut], "relations": list[RelationOut]})
Added = TypedDict("Added", {"entityName": str, "addedObservations": list[str]})
Made = TypedDict(
    "Made", {"entities": list[EntityOut], "existing": list[str], "merged": NotRequired[list[Added]]}
)
Related = TypedDict(
    "Related", {"relations": list[RelationOut], "skipped": list[RelationOut], "notFound": list[str]}
)
Learnt = TypedDict("Learnt", {"results": list[Added], "notFound": list[str]})
Deleted = TypedDict("Deleted", {"deleted": list[str], "notFound": list[str]})
Removed = TypedDict("Removed", {"deleted": int, "notFound": list[str]})
Unrelated = TypedDict("Unrelated", {"deleted": int})
Entities = TypedDict("Entities", {"entities": list[EntityOut]})
Relations = TypedDict("Relations", {"relations": list[RelationOut]})
Results = TypedDict("Results", {"results": list[Added]})
Done = TypedDict("Done", {"success": bool, "message": str})
_Way = TypedDict("_Way", {"name": str, "entityType": str, "depth": int, "path": list[RelationOut]})
_Ways = TypedDict("_Ways", {"hits": list[_Way], "more": bool})


@dataclass(frozen=True)
class Rules:
    """What one profile makes of the graph's tools. Ours does what can be done of a call, and tells the rest beside it."""

    voice: Callable[..., Reply[Any]]  # words what a verb did
    manner: Manner = OURS
    twins_learn: bool = False  # an entity that is there learns what is new
    # What is said twice in one call is kept, a relation waits for a name that no entity has, an observation is refused.
    is_reference: bool = False
    hints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # a verb's own there
    has_owners: bool = (
        False  # entities may belong to a user, and the verbs in _OWNED take whose are meant
    )

    def once(self, texts: Sequence[str]) -> Sequence[str]:
        return texts if self.is_reference else _once(texts)


def graph_tools(rules: Rules, *verbs: Any) -> tuple[Tool, ...]:
    """These verbs as tools by the rules of a profile."""

    def made(verb: Any) -> Tool:
        words = verb.__name__.replace("_", " ")
        title = words.title() if rules.is_reference else words.capitalize()
        adds, deletes = words.startswith(("create ", "add ")), words.startswith("delete ")
        kind = {"writes": adds or deletes, "deletes": deletes, "destructive": deletes}
        own = {
            "hints": rules.hints.get(verb.__name__, {}),
            "idempotent": not (adds and rules.is_reference),
        }
        given: dict[str, Any] = {"rules": rules}
        if verb in _OWNED and not rules.has_owners:
            given["container_tag"] = None  # no argument then: everybody's entities are meant
        return tool(title, manner=rules.manner, given=given, **kind, **own)(verb)

    return tuple(map(made, verbs))


def _checked(owner: str | None) -> str | None:
    """The user whose entities are meant. Invalid and TooLong say why a tag can be none."""
    from simplemem.note.scopes import check_scope  # of no use to the profiles without owners

    return None if owner is None else check_scope(owner)


def create_entities(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    entities: Several[EntityIn],
    container_tag: Owner = None,
) -> Reply[Made]:
    """Add entities to the knowledge graph, each with a name, a type and what is known of it."""
    owner = _checked(container_tag)
    wanted = [
        Entity(e.name, e.entityType, tuple(map(Observation, rules.once(e.observations))))
        for e in entities
    ]
    made = graph.create_entities(wanted, owner=owner, **caller)
    new = {each.name for each in made}
    there = [each for each in wanted if each.name not in new]
    data: Data = {
        "entities": [each.as_dict() for each in made],
        "existing": _once(each.name for each in there),
    }
    if rules.twins_learn:
        more = [(each.name, each.observations) for each in there]
        learned = (
            graph.add_observations(more, missing="skip", owner=owner, **caller) if more else ()
        )
        data["merged"] = _added(learned)
    return rules.voice("create_entities", data)


def create_relations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    relations: _Relations,
    container_tag: Owner = None,
) -> Reply[Related]:
    """Relate entities of the knowledge graph, in the active voice: from Apollo, depends on, to Saturn."""
    owner = _checked(container_tag)
    wanted = [each.relation() for each in relations]
    missing: Literal["stub", "skip"] = "stub" if rules.is_reference else "skip"
    made = graph.create_relations(wanted, missing=missing, owner=owner, **caller)
    ends = _once(end for each in wanted for end in (each.source, each.target))
    names = ends if rules.is_reference else [each.name for each in graph.open(ends, owner).entities]
    absent = [end for end in ends if end not in names]
    lacking = [each for each in wanted if {each.source, each.target} & set(absent)]
    if lacking and len(lacking) == len(wanted):
        raise _nobody(graph, absent)
    data = {
        "relations": [each.as_dict() for each in made],
        "skipped": [each.as_dict() for each in lacking],
    }
    return rules.voice("create_relations", data | {"notFound": absent})


def add_observations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    observations: _Additions,
    container_tag: Owner = None,
) -> Reply[Learnt]:
    """Add what is known of entities, one fact a sentence. What is known already is not added again."""
    owner = _checked(container_tag)
    additions = [
        (e.entityName, [Observation(t, e.attributes()) for t in rules.once(e.contents)])
        for e in observations
    ]
    missing: Literal["refuse", "skip"] = "refuse" if rules.is_reference else "skip"
    learned = graph.add_observations(additions, missing=missing, owner=owner, **caller)
    known = {name for name, _ in learned}
    absent = _once(name for name, _ in additions if name not in known)
    if absent and not learned:
        raise _nobody(graph, absent)
    return rules.voice("add_observations", {"results": _added(learned), "notFound": absent})


def _added(learned: Iterable[tuple[str, list[str]]]) -> list[Data]:
    return [{"entityName": name, "addedObservations": texts} for name, texts in learned]


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def delete_entities(
    graph: KnowledgeGraph, caller: Caller, rules: Rules, names: _Entities
) -> Reply[Deleted]:
    """Delete entities and the relations from and to them (they can be brought back)."""
    absent = _once(graph.delete_entities(names, **caller))
    return rules.voice(
        "delete_entities",
        {"deleted": [n for n in _once(names) if n not in absent], "notFound": absent},
    )


def delete_observations(
    graph: KnowledgeGraph, caller: Caller, rules: Rules, deletions: _Removals
) -> Reply[Removed]:
    """Delete facts from entities, each given as it stands there."""
    count, absent = graph.delete_observations(
        [(each.entityName, each.observations) for each in deletions], **caller
    )
    return rules.voice("delete_observations", {"deleted": count, "notFound": absent})


def delete_relations(
    graph: KnowledgeGraph, caller: Caller, rules: Rules, relations: _Relations
) -> Reply[Unrelated]:
    """Delete relations of the knowledge graph."""
    count = graph.delete_relations([each.relation() for each in relations], **caller)
    return rules.voice("delete_relations", {"deleted": count})


def _nobody(graph: KnowledgeGraph, absent: Sequence[str]) -> NotFound:
    """The error for names that no entity has, with those that look like the first."""
    names = {each.name.casefold(): render.name_of(each.name) for each in graph.read().entities}
    near = [names[key] for key in get_close_matches(absent[0].casefold(), names)]
    hint = "search_nodes finds entities; create_entities creates one."
    return NotFound(f"no entity called {render.line(absent[0])!r}", hint=hint, candidates=near)


def read_graph(graph: KnowledgeGraph, rules: Rules, container_tag: Owner = None) -> Reply[GraphOut]:
    """Read the knowledge graph."""
    return rules.voice("read_graph", graph.read(_checked(container_tag)).as_dict())


def search_nodes(
    graph: KnowledgeGraph, rules: Rules, query: _Text, container_tag: Owner = None
) -> Reply[GraphOut]:
    """Find entities that contain a text, letter for letter whatever its case, and their relations."""
    return rules.voice("search_nodes", graph.search(query, _checked(container_tag)).as_dict())


def open_nodes(graph: KnowledgeGraph, rules: Rules, names: _Names) -> Reply[GraphOut]:
    """Read entities by their exact names, with their relations."""
    return rules.voice("open_nodes", graph.open(names).as_dict())


_OWNED: Final = (create_entities, create_relations, add_observations, read_graph, search_nodes)
VERBS: Final = (
    *(
        create_entities,
        create_relations,
        add_observations,
        delete_entities,
        delete_observations,
        delete_relations,
    ),
    *(read_graph, search_nodes, open_nodes),
)


@tool("Traverse graph")
def traverse_graph(
    graph: KnowledgeGraph,
    start: Annotated[str, also("start", "name", "entity")],
    relation: Annotated[str | None, about("only relations of this type")] = None,
    depth: Annotated[int, at_most(10), Field(ge=1)] = 2,
    direction: Annotated[
        Direction, one_of("both", "out", "in", outgoing="out", incoming="in")
    ] = "both",
    limit: Annotated[int, at_most(500), Field(ge=1)] = 100,
) -> Reply[_Ways]:
    """List the entities that relations lead to from an entity, nearest first, each with its path."""
    whole = graph.read()
    if start not in {
        *(name for each in whole.relations for name in each.key[::2]),
        *(e.name for e in whole.entities),
    }:
        raise _nobody(graph, [start])
    types = {each.name: each.type for each in whole.entities}
    near = walk(whole, start, kind=relation, direction=direction, depth=depth)
    hits: list[Any] = [
        {
            "name": name,
            "entityType": types.get(name, ""),
            "depth": len(path),
            "path": [e.as_dict() for e in path],
        }
        for name, path in islice(near.items(), limit)
    ]
    lines = [
        f"{e['depth']} {render.name_of(e['name'])}: {', '.join(map(_arrow, e['path']))}"
        for e in hits
    ]
    more = (
        f"There are more entities within {depth} steps. Pass a higher limit."
        if len(near) > limit
        else ""
    )
    head = f"{render.format_count(len(hits), 'entity', 'entities')} connected to {render.name_of(start)}:"
    nothing = f"No entity is connected to {render.name_of(start)} by such relations."
    text = render.answer(head, "\n".join(lines), more) if hits else nothing
    return Reply(text, {"hits": hits, "more": len(near) > limit})


def _sentences(verb: str, data: Data) -> Reply[Any]:
    """What was done and what could not be, in sentences; a graph as lines between marks, as much as fits."""
    if verb in ("read_graph", "search_nodes", "open_nodes"):
        return _graph_part(data)
    said: list[str] = []
    if made := data.get("entities"):
        said.append(f"Created {render.listed(each['name'] for each in made)}.")
    if existing := data.get("existing"):
        said.append(f"Already existed: {render.listed(existing)}.")
    if (relations := data.get("relations")) is not None:
        said.append(f"Created {render.format_count(len(relations), 'relation', 'relations')}.")
    if learned := data.get("results") or data.get("merged"):
        count = sum(len(each["addedObservations"]) for each in learned)
        said.append(f"Added {render.format_count(count, 'observation', 'observations')}.")
    if (gone := data.get("deleted")) is not None:
        what = render.listed(gone) if isinstance(gone, list) else str(gone)
        back = " undo_change restores what was deleted." if gone else ""
        said.append(f"Deleted {what or 'nothing'}.{back}")
    if absent := data.get("notFound"):
        said.append(f"Not found: {render.listed(absent)}.")
    if skipped := data.get("skipped"):
        said.append(f"Skipped {render.format_count(len(skipped), 'relation', 'relations')}.")
    return Reply(" ".join(said) or "There was nothing to do.", data)


def _graph_part(whole: Data) -> Reply[Any]:
    """The entities that fit an answer, one at least, each with the relations it is the first to have an end of."""
    known, its = {each["name"] for each in whole["entities"]}, defaultdict[str, list[Data]](list)
    for relation in whole["relations"]:
        its[next((end for end in (relation["from"], relation["to"]) if end in known), "")].append(
            relation
        )
    found: Data = {"entities": [], "relations": its.pop("", [])}
    left = _TOKENS
    lines = [_arrow(each) for each in found["relations"]]
    for entity in whole["entities"]:
        own = its.pop(entity["name"], [])
        kind = f" ({render.line(entity['entityType'])})" if entity["entityType"] else ""
        facts = [render.line(text, _LINE) for text in entity["observations"]]
        rows = [
            f"## {render.name_of(entity['name'])}{kind}",
            *(f"- {each}" for each in (*facts, *map(_arrow, own))),
        ]
        left -= count_tokens("\n".join(rows))
        if left < 0 and found["entities"]:
            break
        found["entities"].append(entity)
        found["relations"] += own
        lines += rows
    if not lines:
        return Reply("No entity found. search_memories searches by meaning.", found)
    count, total = len(found["entities"]), len(whole["entities"])
    more = "search_nodes and open_nodes show the others." if count < total else ""
    head = f"{render.format_count(count, 'entity', 'entities')} of {total}:"
    return Reply(render.answer(head, "\n".join(lines), more), found)


def _arrow(relation: Data) -> str:
    """A relation as a sentence with its direction: `Apollo -depends on-> Saturn`."""
    source, target = render.name_of(relation["from"]), render.name_of(relation["to"])
    return f"{source} -{render.line(relation['relationType'])}-> {target}"


_RULES: Final = Rules(_sentences, twins_learn=True)
TOOLS: tuple[Tool, ...] = (*graph_tools(_RULES, *VERBS), traverse_graph)


class JsonText(Manner):
    """The manner of graph memory servers: failures are words alone, and arguments are held to their types."""

    base = GraphArguments

    def listing(self, tool: Tool) -> Data:
        shown = super().listing(tool)
        shown["inputSchema"] = {"$schema": _DRAFT, **tool.input}
        shown["execution"] = {"taskSupport": "forbidden"}
        return shown | (
            {"outputSchema": {"$schema": _DRAFT, **closed(tool.output)}} if tool.output else {}
        )

    def read(self, tool: Tool, sent: Mapping[str, Any] | None) -> BaseModel:
        listed = tool.input["properties"]  # not the other names that an argument has elsewhere
        given = {
            key: value for key, value in (sent or {}).items() if key in listed and value is not None
        }
        try:
            return tool.model.model_validate(given, context=EXACT)
        except ValidationError as error:
            faults = "\n".join(f"{place} {said}" for place, said in describe_errors(error))
            why = f"Input validation error: Invalid arguments for tool {tool.name}: {faults}"
            raise Invalid(f"MCP error -32602: {why}") from None

    def failed(self, error: SimplememError) -> tuple[str, Data | None]:
        """Of an entity that is not there the words are those that clients know, and no more."""
        hint = "" if isinstance(error, NoSuchEntity) else error.hint
        return f"{error.message} {hint}".rstrip(), None


def _as_json(verb: str, data: Data) -> Reply[Any]:
    """Answers as that server gives them: JSON as text, or a sentence that is always the same."""
    begins, what = verb.split("_", 1)
    if begins == "delete":
        message = f"{what.capitalize()} deleted successfully"
        return Reply(message, {"success": True, "message": message})
    if begins in ("create", "add"):
        key = next(iter(data))
        return Reply(render.pretty(data[key]), {key: data[key]})
    return Reply(render.pretty(data), data)


HINTS: Final[dict[str, dict[str, Any]]] = {
    verb.__name__: {"return": Reply[Done]} for verb in VERBS[3:6]
} | {
    "create_entities": {"return": Reply[Entities]},
    "create_relations": {"return": Reply[Relations]},
    "add_observations": {"return": Reply[Results]},
}
RULES: Final = Rules(_as_json, JsonText(), is_reference=True, hints=HINTS)
SERVER_MEMORY: tuple[Tool, ...] = graph_tools(RULES, *VERBS)
