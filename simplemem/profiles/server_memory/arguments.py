"""Arguments of the tools of a graph: entities, relations, and observations to add or delete."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict

from simplemem.features.graph.values import Relation
from simplemem.tools.arguments import Arguments, Several, about, aliases, names_user


class GraphArguments(Arguments):
    """The base of the arguments of a graph. A number in place of a text is refused."""

    model_config = ConfigDict(coerce_numbers_to_str=False)


class EntityIn(GraphArguments):
    """An entity to create, with its observations."""

    name: Annotated[str, aliases("name", "entityName", "entity")]
    entityType: Annotated[str, aliases("entityType", "entity_type", "type")]  # noqa: N815
    observations: Annotated[
        Several[str], aliases("observations", "contents"), about("one fact each")
    ]


class RelationIn(GraphArguments):
    """A relation to create or delete."""

    source: Annotated[str, aliases("from", "source")]
    target: Annotated[str, aliases("to", "target")]
    relationType: Annotated[  # noqa: N815
        str, aliases("relationType", "relation_type", "type", "relation")
    ]

    def relation(self) -> Relation:
        """Return the relation of the graph that this argument describes."""
        return Relation(self.source, self.relationType, self.target)


class Addition(GraphArguments):
    """Observations to add to one entity."""

    entityName: Annotated[str, aliases("entityName", "entity_name", "entity", "name")]  # noqa: N815
    contents: Annotated[
        Several[str], aliases("contents", "observations", "content"), about("one fact each")
    ]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that each added observation gets: none."""
        return {}


class Removal(GraphArguments):
    """Observations to delete from one entity."""

    entityName: Annotated[str, aliases("entityName", "entity_name", "entity", "name")]  # noqa: N815
    observations: Annotated[Several[str], aliases("observations", "contents", "content")]


Owner = Annotated[
    str | None,
    aliases("container_tag", "user_id", "scope"),
    names_user(),
    about("whose entities: only these are found, and new ones are of this tag"),
]
Relations = Several[RelationIn]
Additions = Several[Addition]
Removals = Annotated[Several[Removal], aliases("deletions", "observations")]
DeletedNames = Annotated[Several[str], aliases("entityNames", "entity_names", "names", "name")]
OpenedNames = Annotated[Several[str], aliases("names", "name", "entityNames")]
SearchText = Annotated[str, about("a text that name, type or an observation contains")]
