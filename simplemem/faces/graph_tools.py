"""The tools of the knowledge graph, written once for four faces. `Rules` say what differs: what becomes of a name that no
entity has, what arguments are held to, and how an answer is worded.

Here stand the verbs, and the toolset `graph` of the default server: it takes what models send and does what can be done
of it, and what could not be done is told beside what was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict

from pydantic import AfterValidator, Field

from simplemem.errors import Invalid, NotFound
from simplemem.faces import render
from simplemem.faces.arguments import Arguments, Several, about, also, at_most, one_of
from simplemem.faces.face import OURS, Caller, Manner, Reply, Tool, tool
from simplemem.kinds.graph.values import Direction, Entity, Graph, Observation, Reached, Relation, walk
from simplemem.note.words import count_tokens

if TYPE_CHECKING:
    from simplemem.kinds.graph.graph import KnowledgeGraph

_LINE = 4096
_FAR = 12


# --- what stands in lists of arguments


def _not_blank(name: str) -> str:
    if not name.strip():
        raise ValueError("an entity has a name")
    return name


class EntityIn(Arguments):
    name: Annotated[str, AfterValidator(_not_blank), also("name", "entityName", "entity")]
    entityType: Annotated[str, also("entityType", "entity_type", "type")]  # noqa: N815
    observations: Annotated[Several[str], also("observations", "contents")] = Field(default=[])


class RelationIn(Arguments):
    source: Annotated[str, also("from", "source")]
    target: Annotated[str, also("to", "target")]
    relationType: Annotated[str, also("relationType", "relation_type", "type", "relation")]  # noqa: N815

    def relation(self) -> Relation:
        return Relation(self.source, self.relationType, self.target)


class Addition(Arguments):
    entityName: Annotated[str, also("entityName", "entity_name", "entity", "name")]  # noqa: N815
    contents: Annotated[Several[str], also("contents", "observations", "content")]


class Removal(Arguments):
    entityName: Annotated[str, also("entityName", "entity_name", "entity", "name")]  # noqa: N815
    observations: Annotated[Several[str], also("observations", "contents", "content")]


# --- what answers are made of


class EntityOut(TypedDict):
    name: str
    entityType: str
    observations: list[str]


RelationOut = TypedDict("RelationOut", {"from": str, "to": str, "relationType": str})


Added = TypedDict("Added", {"entityName": str, "addedObservations": list[str]})


class GraphOut(TypedDict):
    entities: list[EntityOut]
    relations: list[RelationOut]


def shown(graph: Graph) -> dict[str, Any]:
    """A graph as data."""
    return {
        "entities": [each.as_dict() for each in graph.entities],
        "relations": [each.as_dict() for each in graph.relations],
    }


# --- the rules


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a verb has done, or found: whatever of this it is about."""

    verb: str
    entities: Sequence[Entity] = ()  # that were made
    there: Sequence[str] = ()  # that were to be made and are there already
    learned: Sequence[tuple[str, list[str]]] = ()  # what was new of entities that are there
    relations: Sequence[Relation] = ()  # that were made
    lacking: Sequence[Relation] = ()  # that were not, for want of an entity
    absent: Sequence[str] = ()  # names that no entity has
    deleted: Sequence[str] = ()
    count: int = 0  # of what was deleted
    graph: Graph = field(default_factory=Graph)
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of a graph an answer is to have, and what is said of an empty one."""

    tokens: int
    cursor: str | None
    nothing: str


@dataclass(frozen=True)
class Rules:
    """What one face makes of the graph's tools."""

    voice: Callable[[Outcome], Reply[Any]]
    """How an outcome is worded."""
    manner: Manner = OURS
    relate_missing: Literal["stub", "skip"] = "skip"
    """A relation to a name that no entity has: it waits for one, or is passed over."""
    add_missing: Literal["skip", "refuse"] = "skip"
    """An observation of such a name: passed over, or the whole call is refused."""
    twins_learn: bool = False
    """An entity that is there already learns what is new, or is left as it is."""
    allow_nothing: bool = True
    """An empty list is no mistake."""
    absence_fails: bool = False
    """Opening or deleting what is not there is a failure."""
    is_literal: bool = False
    """What is said twice in one call is kept twice, and adding the same again is another change, as in the reference."""
    title_case: bool = False
    descriptions: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of a verb's arguments and answer, where they are not those of the toolset `graph`."""


def graph_tools(rules: Rules, *verbs: Any) -> tuple[Tool, ...]:
    """These verbs as tools by the rules of a face."""
    return tuple(_tool(rules, verb) for verb in verbs)


def _tool(rules: Rules, verb: Any) -> Tool:
    name = verb.__name__
    words = name.replace("_", " ")
    adds, deletes = name.startswith(("create_", "add_")), name.startswith("delete_")
    return tool(
        words.title() if rules.title_case else words.capitalize(),
        writes=adds or deletes,
        destructive=deletes,
        idempotent=not (adds and rules.is_literal),
        deletes=deletes,
        manner=rules.manner,
        description=rules.descriptions.get(name, ""),
        given={"rules": rules},
        hints=rules.hints.get(name, {}),
    )(verb)


# --- the verbs


Learned = TypedDict("Learned", {"name": str, "added": list[str]})
Made = TypedDict("Made", {"entities": list[EntityOut], "merged": list[Learned]})


def create_entities(
    graph: KnowledgeGraph, caller: Caller, rules: Rules, entities: Several[EntityIn], reason: str = ""
) -> Reply[Made]:
    """Add entities to the knowledge graph, each with a name, a type and what is known of it."""
    _refuse_nothing(rules, entities)
    wanted = [Entity(each.name, each.entityType, _observations(rules, each.observations)) for each in entities]
    made = graph.create_entities(wanted, **caller, reason=reason)
    new = {each.name for each in made}
    there = [each for each in wanted if each.name not in new]
    more = [(each.name, each.observations) for each in there] if rules.twins_learn else []
    learned = graph.add_observations(more, missing="skip", **caller, reason=reason) if more else ()
    names = list(dict.fromkeys(each.name for each in there))
    return rules.voice(Outcome("create_entities", entities=made, there=names, learned=learned))


Related = TypedDict("Related", {"relations": list[RelationOut], "skipped": list[RelationOut]})


def create_relations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    relations: Several[RelationIn],
    create_missing: Annotated[bool, about("relate names without an entity too")] = False,
    reason: str = "",
) -> Reply[Related]:
    """Relate entities of the knowledge graph, in the active voice: from Apollo, depends on, to Saturn."""
    _refuse_nothing(rules, relations)
    return relate(graph, caller, rules, [each.relation() for each in relations], create_missing, reason)


def relate(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    wanted: Sequence[Relation],
    create_missing: bool = False,
    reason: str = "",
) -> Reply[Any]:
    """Make relations, by the rule for those that lead nowhere."""
    missing = "stub" if create_missing else rules.relate_missing
    made = graph.create_relations(wanted, missing=missing, **caller, reason=reason)
    if missing == "stub":
        return rules.voice(Outcome("create_relations", relations=made))
    ends = list(dict.fromkeys(end for each in wanted for end in (each.source, each.target)))
    names = {each.name for each in graph.open(ends).entities}
    absent = [end for end in ends if end not in names]
    lacking = [each for each in wanted if {each.source, each.target} - names]
    if lacking and len(lacking) == len(wanted):
        raise _nobody(graph, absent)
    return rules.voice(Outcome("create_relations", relations=made, lacking=lacking, absent=absent))


Learnt = TypedDict("Learnt", {"results": list[Added], "not_found": list[str]})


def add_observations(
    graph: KnowledgeGraph, caller: Caller, rules: Rules, observations: Several[Addition], reason: str = ""
) -> Reply[Learnt]:
    """Add what is known of entities, one fact a sentence. What is known already is not added again."""
    _refuse_nothing(rules, observations)
    additions = [(each.entityName, _observations(rules, each.contents)) for each in observations]
    return observe(graph, caller, rules, additions, reason)


def _observations(rules: Rules, texts: Sequence[str]) -> tuple[Observation, ...]:
    return tuple(map(Observation, texts if rules.is_literal else dict.fromkeys(texts)))


def observe(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    additions: Sequence[tuple[str, Sequence[Observation]]],
    reason: str = "",
) -> Reply[Any]:
    """Add observations, by the rule for names that no entity has."""
    learned = graph.add_observations(additions, missing=rules.add_missing, **caller, reason=reason)
    known = {name for name, _ in learned}
    absent = list(dict.fromkeys(name for name, _ in additions if name not in known))
    if absent and not learned:
        raise _nobody(graph, absent)
    return rules.voice(Outcome("add_observations", learned=learned, absent=absent))


Deleted = TypedDict("Deleted", {"deleted": list[str], "not_found": list[str]})


def delete_entities(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    names: Annotated[Several[str], also("names", "entityNames", "entity_names", "name")],
    reason: str = "",
) -> Reply[Deleted]:
    """Delete entities and the relations from and to them (they can be brought back)."""
    _refuse_nothing(rules, names)
    absent = set(graph.delete_entities(names, **caller, reason=reason))
    every = list(dict.fromkeys(names))
    gone = [name for name in every if name not in absent]
    if absent and not gone and rules.absence_fails:
        raise _nobody(graph, every)
    lacking = [name for name in every if name in absent]
    return rules.voice(Outcome("delete_entities", deleted=gone, absent=lacking))


Removed = TypedDict("Removed", {"deleted": int, "not_found": list[str]})


def delete_observations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    deletions: Annotated[Several[Removal], also("deletions", "observations")],
    reason: str = "",
) -> Reply[Removed]:
    """Delete facts from entities, each given as it stands there."""
    _refuse_nothing(rules, deletions)
    wanted = [(each.entityName, each.observations) for each in deletions]
    count, absent = graph.delete_observations(wanted, **caller, reason=reason)
    if absent and len(absent) == len(deletions) and rules.absence_fails:
        raise _nobody(graph, absent)
    return rules.voice(Outcome("delete_observations", count=count, absent=list(dict.fromkeys(absent))))


Unrelated = TypedDict("Unrelated", {"deleted": int})


def delete_relations(
    graph: KnowledgeGraph, caller: Caller, rules: Rules, relations: Several[RelationIn], reason: str = ""
) -> Reply[Unrelated]:
    """Delete relations of the knowledge graph."""
    _refuse_nothing(rules, relations)
    count = graph.delete_relations([each.relation() for each in relations], **caller, reason=reason)
    if relations and not count and rules.absence_fails:
        raise NotFound("None of these relations is there.", hint="open_nodes shows the relations of an entity.")
    return rules.voice(Outcome("delete_relations", count=count))


def _refuse_nothing(rules: Rules, given: Sequence[Any]) -> None:
    if not given and not rules.allow_nothing:
        raise Invalid("There is nothing to do: the list is empty.")


def _nobody(graph: KnowledgeGraph, absent: Sequence[str]) -> NotFound:
    """The error for names that no entity has, with those that look like the first."""
    names = {each.name.casefold(): each.name for each in graph.read().entities}
    near = [names[key] for key in get_close_matches(absent[0].casefold(), names, n=3, cutoff=0.6)]
    return NotFound(
        f"There is no entity {render.line(absent[0])!r}.",
        hint="create_entities makes it; search_nodes finds names.",
        candidates=[render.name_of(each) for each in near],
    )


Budget = Annotated[int, at_most(50_000), Field(ge=100)]
Cursor = Annotated[str | None, about("next_cursor of the part before")]


class GraphPart(GraphOut):
    total: int
    next_cursor: str | None


def read_graph(
    graph: KnowledgeGraph, rules: Rules, budget_tokens: Budget = 4000, cursor: Cursor = None
) -> Reply[GraphPart]:
    """Read the knowledge graph."""
    part = Part(budget_tokens, cursor, "The graph is empty.")
    return rules.voice(Outcome("read_graph", graph=graph.read(), part=part))


def search_nodes(
    graph: KnowledgeGraph,
    rules: Rules,
    query: Annotated[str, about("a text that name, type or an observation contains")],
    budget_tokens: Budget = 4000,
    cursor: Cursor = None,
) -> Reply[GraphPart]:
    """Find entities that contain a text, letter for letter whatever its case, and their relations."""
    part = Part(budget_tokens, cursor, "No entity contains that. search_memories finds by meaning.")
    return rules.voice(Outcome("search_nodes", graph=graph.search(query), part=part))


def open_nodes(
    graph: KnowledgeGraph,
    rules: Rules,
    names: Annotated[Several[str], also("names", "name", "entityNames")],
    budget_tokens: Budget = 4000,
    cursor: Cursor = None,
) -> Reply[GraphPart]:
    """Read entities by their exact names, with their relations."""
    found = graph.open(names)
    if names and not found.entities and rules.absence_fails:
        raise _nobody(graph, names)
    return rules.voice(Outcome("open_nodes", graph=found, part=Part(budget_tokens, cursor, "No name was given.")))


# --- the toolset `graph`: its own verbs


Way = TypedDict("Way", {"name": str, "entityType": str, "depth": int, "path": list[RelationOut]})
Ways = TypedDict("Ways", {"hits": list[Way], "more": bool})


@tool("Walk the graph")
def traverse_graph(
    graph: KnowledgeGraph,
    start: Annotated[str, also("start", "name", "entity")],
    relation: Annotated[str | None, about("only by relations of this type")] = None,
    depth: Annotated[int, at_most(10), Field(ge=1)] = 2,
    direction: Annotated[Direction, one_of("both", "out", "in", outgoing="out", incoming="in")] = "both",
    limit: Annotated[int, at_most(500), Field(ge=1)] = 100,
) -> Reply[Ways]:
    """What lies around an entity: each thing its relations lead to, nearest first, with the way there."""
    whole = graph.read()
    types = {each.name: each.type for each in whole.entities}
    if start not in types and not any(start in (each.source, each.target) for each in whole.relations):
        raise _nobody(graph, [start])
    steps = walk(whole, start, kind=relation, direction=direction)
    near = list(islice(takewhile(lambda each: len(each.path) <= depth, steps), limit + 1))
    has_more, near = len(near) > limit, near[:limit]
    hits: list[Any] = [
        {
            "name": each.name,
            "entityType": types.get(each.name, ""),
            "depth": len(each.path),
            "path": [relation.as_dict() for relation in each.path],
        }
        for each in near
    ]
    more = f"There is more within {depth} steps; a higher limit shows it." if has_more else ""
    head = f"{render.counted(len(hits), 'entity', 'entities')} around {render.name_of(start)}:"
    text = render.answer(head, "\n".join(map(_reached_line, near)), more)
    return Reply(text if hits else "No relation leads on from there.", {"hits": hits, "more": has_more})


Path = TypedDict("Path", {"path": list[RelationOut], "length": int, "found": bool})


@tool("Find a path")
def find_path(
    graph: KnowledgeGraph,
    start: Annotated[str, also("from", "start", "source")],
    end: Annotated[str, also("to", "end", "target")],
) -> Reply[Path]:
    """How two entities are related: the shortest way along relations, in either direction."""
    whole = graph.read()
    ends_of_relations = {end for each in whole.relations for end in (each.source, each.target)}
    names = {each.name for each in whole.entities} | ends_of_relations
    for name in (start, end):
        if name not in names:
            raise _nobody(graph, [name])
    near = takewhile(lambda each: len(each.path) <= _FAR, walk(whole, start))
    path = () if start == end else next((each.path for each in near if each.name == end), None)
    ends = f"{render.name_of(start)} to {render.name_of(end)}"
    if path is None:
        return Reply(f"No relations lead from {ends} within {_FAR} steps.", {"path": [], "length": 0, "found": False})
    lines = "\n".join(map(_relation_line, path))
    text = render.answer(f"From {ends} in {render.counted(len(path), 'step', 'steps')}:", lines)
    shown: Any = [each.as_dict() for each in path]
    return Reply(text, {"path": shown, "length": len(path), "found": True})


# --- ... and how it words its answers


def _sentences(done: Outcome) -> Reply[Any]:
    """What was done and what could not be, in sentences; a graph as lines between marks, as much as fits."""
    nobody = f"There is no entity {render.listed(done.absent)}." if done.absent else ""
    match done.verb:
        case "create_entities":
            new = [name for name, texts in done.learned if texts]
            text = _joined(
                f"Made {render.listed(each.name for each in done.entities)}." if done.entities else "",
                f"There already, and told what is new: {render.listed(new)}." if new else "",
                f"There already: {render.listed(done.there)}." if done.there and not new else "",
            )
            merged = [{"name": name, "added": texts} for name, texts in done.learned]
            data: Any = {"entities": [each.as_dict() for each in done.entities], "merged": merged}
        case "create_relations":
            text = _joined(
                f"Made {render.counted(len(done.relations), 'relation', 'relations')}." if done.relations else "",
                f"{nobody[:-1]}: {len(done.lacking)} passed over." if done.lacking else "",
                "They were there already." if not done.relations and not done.lacking else "",
            )
            data = {"relations": [each.as_dict() for each in done.relations]}
            data |= {"skipped": [each.as_dict() for each in done.lacking]}
        case "add_observations":
            count = sum(len(texts) for _, texts in done.learned)
            text = _joined(
                f"Added {render.counted(count, 'observation', 'observations')}." if count else "",
                "All of it was known already." if done.learned and not count else "",
                nobody,
            )
            data = {"results": added(done), "not_found": done.absent}
        case "delete_entities":
            gone = f"Deleted {render.listed(done.deleted)}, with the relations to them. undo_change brings them back."
            text = _joined(gone if done.deleted else "", nobody)
            data = {"deleted": done.deleted, "not_found": done.absent}
        case "delete_observations":
            gone = f"Deleted {render.counted(done.count, 'observation', 'observations')}."
            text = _joined(gone if done.count else "None of them was there.", nobody)
            data = {"deleted": done.count, "not_found": done.absent}
        case "delete_relations":
            text = f"Deleted {render.counted(done.count, 'relation', 'relations')}."
            data = {"deleted": done.count}
        case _:
            return _graph_part(done)
    return Reply(text, data)


def _graph_part(done: Outcome) -> Reply[Any]:
    part, whole = done.part or Part(4000, None, ""), done.graph
    found, next_cursor = _part_of(whole, part.tokens, part.cursor)
    data = shown(found) | {"total": len(whole.entities), "next_cursor": next_cursor}
    if not found.entities and not found.relations:
        return Reply(part.nothing, data)
    relations = _by_entity(found)
    lines = [row for each in found.entities for row in _entity_lines(each, relations.pop(each.name, []))]
    lines += map(_relation_line, relations.get("", []))
    count = render.counted(len(found.entities), "entity", "entities")
    head = f"{count} of {len(whole.entities)}:" if len(whole.entities) > len(found.entities) else f"{count}:"
    more = f'More: {done.verb} with cursor="{next_cursor}"' if next_cursor else ""
    return Reply(render.answer(head, "\n".join(lines), more), data)


def added(done: Outcome) -> list[Added]:
    return [{"entityName": name, "addedObservations": texts} for name, texts in done.learned]


def _part_of(graph: Graph, tokens: int, cursor: str | None) -> tuple[Graph, str | None]:
    """The entities after the cursor that fit so many tokens, one at least, each with the relations it is the first to
    have an end of; and the next cursor, which is the path of the last of them."""
    begin = _after(graph.entities, cursor)
    relations_of = _by_entity(graph)
    entities, relations, left = list[Entity](), list[Relation](), tokens
    for entity in graph.entities[begin:]:
        its = relations_of.pop(entity.name, [])
        left -= count_tokens("\n".join(_entity_lines(entity, its)))
        if left < 0 and entities:
            return Graph(tuple(entities), tuple(relations)), entities[-1].path
        entities.append(entity)
        relations += its
    return Graph(tuple(entities), tuple(relations + relations_of.get("", []))), None


def _after(entities: Sequence[Entity], cursor: str | None) -> int:
    if not cursor:
        return 0
    for number, entity in enumerate(entities):
        if entity.path == cursor:
            return number + 1
    raise Invalid("The cursor leads nowhere: the entity before it is gone.", hint="Begin again without a cursor.")


def _by_entity(graph: Graph) -> dict[str, list[Relation]]:
    """Relations by the entity they are shown with; those of none under ""."""
    names = {entity.name for entity in graph.entities}
    relations: dict[str, list[Relation]] = defaultdict(list)
    for each in graph.relations:
        relations[next((end for end in (each.source, each.target) if end in names and end), "")].append(each)
    return relations


def _entity_lines(entity: Entity, relations: Sequence[Relation]) -> list[str]:
    kind = f" ({render.line(entity.type)})" if entity.type else ""
    texts = [f"- {render.line(text, _LINE)}" for text in entity.texts]
    return [f"## {render.name_of(entity.name)}{kind}", *texts, *(f"- {_relation_line(each)}" for each in relations)]


def _relation_line(relation: Relation) -> str:
    """A relation as a sentence with its direction: `Apollo -depends on-> Saturn`."""
    source, target = render.name_of(relation.source), render.name_of(relation.target)
    return f"{source} -{render.line(relation.type)}-> {target}"


def _reached_line(each: Reached) -> str:
    return f"{len(each.path)} {render.name_of(each.name)}: " + ", ".join(map(_relation_line, each.path))


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part) or "There was nothing to do."


CHANGING: Final = (
    create_entities,
    create_relations,
    add_observations,
    delete_entities,
    delete_observations,
    delete_relations,
)
READING: Final = (read_graph, search_nodes, open_nodes)

_RULES: Final = Rules(
    _sentences,
    twins_learn=True,
    allow_nothing=False,
    absence_fails=True,
    descriptions={
        "create_entities": "Write down things and what is known of them: each becomes a note with its observations as a "
        "list. One that is there learns what is new.",
        "read_graph": "Read the knowledge graph, part by part.",
    },
)
TOOLS: tuple[Tool, ...] = (*graph_tools(_RULES, *CHANGING, *READING), traverse_graph, find_path)
