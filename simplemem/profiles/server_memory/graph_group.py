"""The tool group `graph` of the default server: the tools of a graph with answers in sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import Field

from simplemem.features.graph.values import Direction, Graph, walk
from simplemem.features.services import KnowledgeGraph
from simplemem.note.words import count_tokens
from simplemem.profiles.server_memory.answers import ConnectedEntities
from simplemem.profiles.server_memory.verbs import (
    READING_VERBS,
    VERBS,
    Rules,
    entity_not_found,
    graph_tools,
)
from simplemem.tools import render
from simplemem.tools.arguments import about, aliases, clamp, one_of
from simplemem.tools.tool import Data, Reply, Tool, tool

_MAX_OBSERVATION_LENGTH: Final = 4096  # characters, in a text
_MAX_GRAPH_TOKENS: Final = 8000  # of a graph in an answer
_NAMES_OF_READING_VERBS: Final = frozenset(verb.__name__ for verb in READING_VERBS)


@tool("Traverse graph")
def traverse_graph(
    graph: KnowledgeGraph,
    start: Annotated[str, aliases("start", "name", "entity")],
    relation: Annotated[str | None, about("only relations of this type")] = None,
    depth: Annotated[int, clamp(10), Field(ge=1)] = 2,
    direction: Annotated[
        Direction, one_of("both", "out", "in", outgoing="out", incoming="in")
    ] = "both",
    limit: Annotated[int, clamp(500), Field(ge=1)] = 100,
) -> Reply[ConnectedEntities]:
    """List the entities that relations lead to from an entity, nearest first,
    each with its path."""
    whole_graph = graph.read()
    if not _has_name(whole_graph, start):
        raise entity_not_found(graph, start)

    routes = walk(whole_graph, start, relation_type=relation, direction=direction, depth=depth)
    types = {entity.name: entity.type for entity in whole_graph.entities}
    hits: list[Data] = []
    for name, route in islice(routes.items(), limit):
        hit = {
            "name": name,
            "entityType": types.get(name, ""),
            "depth": len(route),
            "path": [relation.as_dict() for relation in route],
        }
        hits.append(hit)

    has_more = len(routes) > limit
    note = ""
    if has_more:
        note = f"There are more entities within {depth} steps. Pass a higher limit."
    text = _describe_connections(start, hits, note)
    value: Any = {"hits": hits, "more": has_more}
    return Reply(text, value)


def _has_name(graph: Graph, name: str) -> bool:
    """Return whether a name is that of an entity, or an end of a relation."""
    if any(entity.name == name for entity in graph.entities):
        return True
    return any(name in (relation.source, relation.target) for relation in graph.relations)


def _describe_connections(start: str, hits: Sequence[Data], note: str) -> str:
    """Return the text of the answer of `traverse_graph`.

    It has a line per hit, with its depth, name and path, and then `note`, a sentence or "". `hits`
    have the fields of `ConnectedEntity`. Without hits, a sentence says so, and `note` is left out.
    """
    start_name = render.name_of(start)
    if not hits:
        return f"No entity is connected to {start_name} by such relations."

    lines = []
    for hit in hits:
        path = ", ".join(_describe_relation(relation) for relation in hit["path"])
        lines.append(f"{hit['depth']} {render.name_of(hit['name'])}: {path}")
    count = render.format_count(len(hits), "entity", "entities")
    return render.answer(f"{count} connected to {start_name}:", "\n".join(lines), note)


def _reply_in_sentences(verb: str, data: Data) -> Reply[Any]:
    """Return the answer of a tool in sentences: what was done, and what was not possible.

    `verb` is the name of the tool's function, and `data` its answer, of a type in `answers`. If
    the function reads, `data` is a graph: its entities become Markdown, as many as about 8,000
    tokens hold, and the answer has only these.
    """
    if verb in _NAMES_OF_READING_VERBS:
        return _reply_with_graph(data)

    sentences = [
        *_describe_additions(data),
        *_describe_deletions(data),
        *_describe_omissions(data),
    ]
    text = " ".join(sentences) or "There was nothing to do."
    return Reply(text, data)


def _describe_additions(data: Data) -> list[str]:
    """Return sentences about what was created, existed or was added; [] for other tools' data.

    Relations are counted, also if none is new, and so are observations. Long lists of names end
    with a count.
    """
    sentences = []
    if data.get("entities"):
        names = render.listed(entity["name"] for entity in data["entities"])
        sentences.append(f"Created {names}.")
    if data.get("existing"):
        sentences.append(f"Already existed: {render.listed(data['existing'])}.")
    if "relations" in data:
        sentences.append(f"Created {_count_relations(data['relations'])}.")

    results = data.get("results") or data.get("merged")
    if results:
        count = sum(len(result["addedObservations"]) for result in results)
        observations = render.format_count(count, "observation", "observations")
        sentences.append(f"Added {observations}.")
    return sentences


def _describe_deletions(data: Data) -> list[str]:
    """Return sentences about what was deleted; [] for the data of a tool that deletes nothing.

    The field `deleted` of data is a list of names or a number.
    """
    if "deleted" not in data:
        return []

    deleted = data["deleted"]
    description = str(deleted)
    if isinstance(deleted, list):
        description = render.listed(deleted) or "nothing"
    sentences = [f"Deleted {description}."]
    if deleted:
        sentences.append("undo_change restores what was deleted.")
    return sentences


def _describe_omissions(data: Data) -> list[str]:
    """Return sentences about what was not found, and how many relations were left out for that.

    Return [] if nothing is missing.
    """
    sentences = []
    if data.get("notFound"):
        sentences.append(f"Not found: {render.listed(data['notFound'])}.")
    if data.get("skipped"):
        sentences.append(f"Skipped {_count_relations(data['skipped'])}.")
    return sentences


def _count_relations(relations: Sequence[Data]) -> str:
    """Return the number of relations in words: "2 relations"."""
    return render.format_count(len(relations), "relation", "relations")


def _reply_with_graph(graph: Data) -> Reply[Any]:
    """Return the first entities of a graph, as many as 8,000 tokens hold but one at least.

    `graph` has the fields of `GraphOut`, and so has the data of the answer. Each entity has its
    relations below it. A relation of two entities is below the one that comes first in the graph;
    relations of no entity in the graph are all at the top, and do not count as tokens. A note says
    that entities were left out. An empty graph gives a sentence.
    """
    relations_by_entity = _relations_by_entity(graph)
    relations_of_no_entity = relations_by_entity.pop("", [])
    part: Data = {"entities": [], "relations": relations_of_no_entity}
    lines = [_describe_relation(relation) for relation in relations_of_no_entity]
    tokens_left = _MAX_GRAPH_TOKENS
    for entity in graph["entities"]:
        relations = relations_by_entity.pop(entity["name"], [])
        entity_lines = _describe_entity(entity, relations)
        tokens_left -= count_tokens("\n".join(entity_lines))
        if tokens_left < 0 and part["entities"]:
            break
        part["entities"].append(entity)
        part["relations"] += relations
        lines += entity_lines
    if not lines:
        return Reply("No entity found. search_memories searches by meaning.", part)

    count = len(part["entities"])
    total = len(graph["entities"])
    note = ""
    if count < total:
        note = "search_nodes and open_nodes show the others."
    head = f"{render.format_count(count, 'entity', 'entities')} of {total}:"
    return Reply(render.answer(head, "\n".join(lines), note), part)


def _relations_by_entity(graph: Data) -> dict[str, list[Data]]:
    """Return the relations by the name of their source, or of their target if only it is there.

    An end is there if it is an entity of the graph. The key "" has the relations without such an
    end.
    """
    names = {entity["name"] for entity in graph["entities"]}
    relations = defaultdict[str, list[Data]](list)
    for relation in graph["relations"]:
        name = ""
        if relation["from"] in names:
            name = relation["from"]
        elif relation["to"] in names:
            name = relation["to"]
        relations[name].append(relation)
    return relations


def _describe_entity(entity: Data, relations: Sequence[Data]) -> list[str]:
    """Return an entity as Markdown lines: a heading, its observations and its relations.

    An observation is cut after 4,096 characters. `entity` has the fields of `EntityOut`, and
    `relations` have those of `RelationOut`.
    """
    heading = f"## {render.name_of(entity['name'])}"
    if entity["entityType"]:
        heading += f" ({render.line(entity['entityType'])})"

    items = [render.line(text, _MAX_OBSERVATION_LENGTH) for text in entity["observations"]]
    items += [_describe_relation(relation) for relation in relations]
    return [heading, *(f"- {item}" for item in items)]


def _describe_relation(relation: Data) -> str:
    """Return a relation as a sentence with its direction: `Apollo -depends on-> Saturn`."""
    source = render.name_of(relation["from"])
    target = render.name_of(relation["to"])
    return f"{source} -{render.line(relation['relationType'])}-> {target}"


_RULES: Final = Rules(_reply_in_sentences, extends_existing=True)
TOOLS: Final[tuple[Tool, ...]] = (*graph_tools(_RULES, *VERBS), traverse_graph)
