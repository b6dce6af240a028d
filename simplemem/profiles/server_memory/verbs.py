"""The nine tools of a graph memory server, as functions, and the rules by which profiles differ.

Each function calls the service and returns the answer that the profile's `Rules` make of its data.
`graph_tools` makes tools of the functions; their docstrings are the descriptions of these tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Literal

from simplemem.errors import NotFound
from simplemem.features.graph.values import Entity, Observation, Relation
from simplemem.features.services import KnowledgeGraph
from simplemem.profiles.server_memory.answers import (
    CreatedEntities,
    CreatedRelations,
    DeletedEntities,
    DeletedObservations,
    DeletedRelations,
    GraphOut,
    ObservationResults,
)
from simplemem.profiles.server_memory.arguments import (
    Addition,
    Additions,
    DeletedNames,
    EntityIn,
    OpenedNames,
    Owner,
    Relations,
    Removals,
    SearchText,
)
from simplemem.tools import render
from simplemem.tools.arguments import Several
from simplemem.tools.tool import DEFAULT_ADAPTER, Caller, Data, Reply, Tool, ToolAdapter, tool

Verb = Callable[..., Reply[Any]]
"""One of the functions of this module that `graph_tools` makes a tool of."""


@dataclass(frozen=True)
class Rules:
    """How the tools of one profile differ from those of the others.

    Attributes:
        reply: Makes the answer of a tool, from the name of its function and its data.
        adapter: How the tools are listed, validate their arguments and report errors.
        extends_existing: Whether `create_entities` adds new observations to existing entities.
        is_reference: Whether the tools do what server-memory does. It keeps an observation that one
            call repeats, stores relations of names that no entity has, and refuses observations
            of such names. Otherwise a call does what it can, and its answer says what it left out.
        hints: Type hints of a tool's arguments in place of those of the function, by tool.
        has_owners: Whether entities may belong to a user, whom some tools then take as an argument.
    """

    reply: Callable[[str, Data], Reply[Any]]
    adapter: ToolAdapter = DEFAULT_ADAPTER
    extends_existing: bool = False
    is_reference: bool = False
    hints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    has_owners: bool = False

    def observations_of(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the texts that one call adds to an entity, in the order of `texts`.

        Repeated ones are left out, unless the rules are those of server-memory.
        """
        return texts if self.is_reference else _unique(texts)


def graph_tools(rules: Rules, *verbs: Verb) -> tuple[Tool, ...]:
    """Return functions of this module as tools, in the same order, by the rules of a profile."""
    return tuple(_tool_of(verb, rules) for verb in verbs)


def _tool_of(verb: Verb, rules: Rules) -> Tool:
    """Return one function as a tool.

    The function's name begins with `create_`, `add_` or `delete_` if the tool writes. Where the
    rules have no owners, the tool has no argument for them.
    """
    name = verb.__name__
    words = name.replace("_", " ")
    title = words.title() if rules.is_reference else words.capitalize()
    adds = name.startswith(("create_", "add_"))
    deletes = name.startswith("delete_")

    fixed_values: dict[str, Any] = {"rules": rules}
    if verb in _VERBS_WITH_OWNER and not rules.has_owners:
        # It is no argument then: the entities of all users count.
        fixed_values["container_tag"] = None

    decorate = tool(
        title,
        writes=adds or deletes,
        deletes=deletes,
        destructive=deletes,
        idempotent=not (adds and rules.is_reference),
        adapter=rules.adapter,
        type_hints=rules.hints.get(name, {}),
        fixed_values=fixed_values,
    )
    return decorate(verb)


# Creating


def create_entities(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    entities: Several[EntityIn],
    container_tag: Owner = None,
) -> Reply[CreatedEntities]:
    """Add entities to the knowledge graph, each with a name, a type and what is known of it."""
    owner = _check_owner(container_tag)
    requested = [_to_entity(entity, rules) for entity in entities]
    created = graph.create_entities(requested, owner=owner, **caller)

    created_names = {entity.name for entity in created}
    existing = [entity for entity in requested if entity.name not in created_names]
    data: Data = {
        "entities": [entity.as_dict() for entity in created],
        "existing": _unique(entity.name for entity in existing),
    }
    if rules.extends_existing:
        data["merged"] = _extend(graph, caller, existing, owner)
    return rules.reply("create_entities", data)


def _to_entity(argument: EntityIn, rules: Rules) -> Entity:
    """Return the entity of the graph that an argument describes."""
    texts = rules.observations_of(argument.observations)
    observations = tuple(Observation(text) for text in texts)
    return Entity(argument.name, argument.entityType, observations)


def _extend(
    graph: KnowledgeGraph,
    caller: Caller,
    entities: Sequence[Entity],
    owner: str | None,
) -> list[Data]:
    """Add the observations of these entities to the existing ones of their names.

    Return rows of the fields of `AddedObservations`, with the texts that are new. Entities that
    `owner` does not have are left out; [] without entities.
    """
    if not entities:
        return []
    additions = [(entity.name, entity.observations) for entity in entities]
    added = graph.add_observations(additions, missing="skip", owner=owner, **caller)
    return _added_observations(added)


def create_relations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    relations: Relations,
    container_tag: Owner = None,
) -> Reply[CreatedRelations]:
    """Relate entities of the knowledge graph, in the active voice: from Apollo,
    depends on, to Saturn."""
    owner = _check_owner(container_tag)
    requested = [argument.relation() for argument in relations]
    missing: Literal["stub", "skip"] = "stub" if rules.is_reference else "skip"
    created = graph.create_relations(requested, missing=missing, owner=owner, **caller)

    not_found: list[str] = []
    if not rules.is_reference:
        not_found = _missing_ends(graph, requested, owner)
    skipped = [
        relation
        for relation in requested
        if relation.source in not_found or relation.target in not_found
    ]
    if skipped and len(skipped) == len(requested):
        raise entity_not_found(graph, not_found[0])

    data = {
        "relations": [relation.as_dict() for relation in created],
        "skipped": [relation.as_dict() for relation in skipped],
        "notFound": not_found,
    }
    return rules.reply("create_relations", data)


def _missing_ends(
    graph: KnowledgeGraph, relations: Iterable[Relation], owner: str | None
) -> list[str]:
    """Return the ends of relations that are no entities, each once, in the order of relations.

    With `owner`, only the entities of that user count, otherwise those of all users.
    """
    ends = _unique(end for relation in relations for end in (relation.source, relation.target))
    names = {entity.name for entity in graph.open(ends, owner).entities}
    return [end for end in ends if end not in names]


def add_observations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    observations: Additions,
    container_tag: Owner = None,
) -> Reply[ObservationResults]:
    """Add what is known of entities, one fact a sentence. What is known already is
    not added again."""
    owner = _check_owner(container_tag)
    additions = [
        (addition.entityName, _to_observations(addition, rules)) for addition in observations
    ]
    missing: Literal["refuse", "skip"] = "refuse" if rules.is_reference else "skip"
    added = graph.add_observations(additions, missing=missing, owner=owner, **caller)

    found = {name for name, _ in added}
    not_found = _unique(name for name, _ in additions if name not in found)
    if not_found and not added:
        raise entity_not_found(graph, not_found[0])

    data = {"results": _added_observations(added), "notFound": not_found}
    return rules.reply("add_observations", data)


def _to_observations(addition: Addition, rules: Rules) -> list[Observation]:
    """Return the observations of the graph that an argument describes."""
    texts = rules.observations_of(addition.contents)
    return [Observation(text, addition.attributes()) for text in texts]


def _added_observations(added: Iterable[tuple[str, list[str]]]) -> list[Data]:
    """Return rows of the fields of `AddedObservations`, from pairs of a name and added texts."""
    return [{"entityName": name, "addedObservations": texts} for name, texts in added]


# Deleting


def delete_entities(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    names: DeletedNames,
) -> Reply[DeletedEntities]:
    """Delete entities and the relations from and to them (they can be brought back)."""
    not_found = _unique(graph.delete_entities(names, **caller))
    deleted = [name for name in _unique(names) if name not in not_found]
    return rules.reply("delete_entities", {"deleted": deleted, "notFound": not_found})


def delete_observations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    deletions: Removals,
) -> Reply[DeletedObservations]:
    """Delete facts from entities, each given as it stands there."""
    requested = [(removal.entityName, removal.observations) for removal in deletions]
    count, not_found = graph.delete_observations(requested, **caller)
    return rules.reply("delete_observations", {"deleted": count, "notFound": not_found})


def delete_relations(
    graph: KnowledgeGraph,
    caller: Caller,
    rules: Rules,
    relations: Relations,
) -> Reply[DeletedRelations]:
    """Delete relations of the knowledge graph."""
    requested = [argument.relation() for argument in relations]
    count = graph.delete_relations(requested, **caller)
    return rules.reply("delete_relations", {"deleted": count})


# Reading


def read_graph(graph: KnowledgeGraph, rules: Rules, container_tag: Owner = None) -> Reply[GraphOut]:
    """Read the knowledge graph."""
    found = graph.read(_check_owner(container_tag))
    return rules.reply("read_graph", found.as_dict())


def search_nodes(
    graph: KnowledgeGraph,
    rules: Rules,
    query: SearchText,
    container_tag: Owner = None,
) -> Reply[GraphOut]:
    """Find entities that contain a text, letter for letter whatever its case, and
    their relations."""
    found = graph.search(query, _check_owner(container_tag))
    return rules.reply("search_nodes", found.as_dict())


def open_nodes(graph: KnowledgeGraph, rules: Rules, names: OpenedNames) -> Reply[GraphOut]:
    """Read entities by their exact names, with their relations."""
    return rules.reply("open_nodes", graph.open(names).as_dict())


_VERBS_WITH_OWNER: Final = (
    create_entities,
    create_relations,
    add_observations,
    read_graph,
    search_nodes,
)
CREATING_VERBS: Final[tuple[Verb, ...]] = (create_entities, create_relations, add_observations)
DELETING_VERBS: Final[tuple[Verb, ...]] = (delete_entities, delete_observations, delete_relations)
READING_VERBS: Final[tuple[Verb, ...]] = (read_graph, search_nodes, open_nodes)
VERBS: Final = (*CREATING_VERBS, *DELETING_VERBS, *READING_VERBS)
"""The functions of all nine tools, in the order in which they are listed."""


def entity_not_found(graph: KnowledgeGraph, name: str) -> NotFound:
    """Return the error for a name that no entity has. It is for the caller to raise.

    Its candidates are up to three similar names of entities of all users, the most similar first.
    """
    names = {
        entity.name.casefold(): render.name_of(entity.name) for entity in graph.read().entities
    }
    similar = get_close_matches(name.casefold(), names)
    return NotFound(
        f"no entity called {render.line(name)!r}",
        hint="search_nodes finds entities; create_entities creates one.",
        candidates=[names[key] for key in similar],
    )


def _check_owner(container_tag: str | None) -> str | None:
    """Return the user whose entities are meant, None for all users.

    Raises Invalid or TooLong if a tag cannot be a user.
    """
    # Imported here, because most profiles have no owners.
    from simplemem.note.scopes import check_scope

    return None if container_tag is None else check_scope(container_tag)


def _unique(names: Iterable[str]) -> list[str]:
    """Return names without the repeated ones, in the same order."""
    return list(dict.fromkeys(names))
