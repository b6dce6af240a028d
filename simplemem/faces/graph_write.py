"""Changing the knowledge graph: the writing tools of the toolset `graph`. Each call is undone as one.

They take what models send and do what can be done of it: an entity that is there learns what is new, what could not be
done is told beside what was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from simplemem.errors import Invalid, NotFound
from simplemem.faces import render
from simplemem.faces.arguments import Arguments
from simplemem.faces.graph_shown import ENTITY, RELATION, clean
from simplemem.faces.schema import COUNT, TEXT, TEXTS, record, several
from simplemem.faces.server_memory import Asker
from simplemem.faces.tool import Call, Reply, Tool
from simplemem.kinds.graph.graph import KnowledgeGraph, graph_of
from simplemem.kinds.graph.jsonl import entity_shown, relation_shown
from simplemem.kinds.graph.values import Entity, Observation, Relation

_TEXT = {"type": "string"}
_LIST = {"type": "array", "items": _TEXT}


def texts_listed(value: Any) -> Any:
    """A list; a single thing is meant as one, and JSON as what it says. A text with commas is one text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        from simplemem.faces.fitted import from_json

        value = from_json(value)
    if value is None:
        return []
    return [value] if isinstance(value, (str, Mapping)) else value


def _object(*needed: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(needed)}


def _said(name: str) -> str:
    if not name.strip():
        raise ValueError("an entity has a name")
    return name


class _Item(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


_Texts = Annotated[list[str], BeforeValidator(texts_listed)]


class EntityItem(_Item):
    name: Annotated[str, AfterValidator(_said)] = Field(validation_alias=AliasChoices("name", "entityName", "entity"))
    kind: str = Field(default="thing", validation_alias=AliasChoices("entityType", "entity_type", "type"))
    observations: _Texts = Field(default=[], validation_alias=AliasChoices("observations", "contents"))


class RelationItem(_Item):
    source: str = Field(validation_alias=AliasChoices("from", "source"))
    target: str = Field(validation_alias=AliasChoices("to", "target"))
    kind: str = Field(validation_alias=AliasChoices("relationType", "relation_type", "type", "relation"))

    def relation(self) -> Relation:
        return Relation(self.source, self.kind, self.target)


class SaidItem(_Item):
    name: str = Field(validation_alias=AliasChoices("entityName", "entity_name", "entity", "name"))
    texts: _Texts = Field(validation_alias=AliasChoices("contents", "observations", "content"))


_Entities = Annotated[
    list[EntityItem],
    BeforeValidator(texts_listed),
    WithJsonSchema(
        {"type": "array", "items": _object("name", "entityType", name=_TEXT, entityType=_TEXT, observations=_LIST)}
    ),
]
_Relations = Annotated[
    list[RelationItem],
    BeforeValidator(texts_listed),
    WithJsonSchema(
        {
            "type": "array",
            "items": _object("from", "to", "relationType", **{"from": _TEXT, "to": _TEXT, "relationType": _TEXT}),
        }
    ),
]
_Said = Annotated[
    list[SaidItem],
    BeforeValidator(texts_listed),
    WithJsonSchema({"type": "array", "items": _object("entityName", "contents", entityName=_TEXT, contents=_LIST)}),
]
_Unsaid = Annotated[
    list[SaidItem],
    BeforeValidator(texts_listed),
    WithJsonSchema(
        {"type": "array", "items": _object("entityName", "observations", entityName=_TEXT, observations=_LIST)}
    ),
]


class _Reasoned(Arguments):
    reason: str = ""


class _By(Asker):
    reason: str


def _by(call: Call, asked: _Reasoned) -> _By:
    return {"who": call.who, "tool": call.tool, "reason": asked.reason}


def nobody(graph: KnowledgeGraph, name: str) -> NotFound:
    """The error for a name that no entity has, with those that look like it."""
    names = {each.name.casefold(): each.name for each in graph.read().entities}
    near = [names[key] for key in get_close_matches(name.casefold(), names, n=3, cutoff=0.6)]
    return NotFound(
        f"There is no entity {render.line(name)!r}.",
        hint="create_entities makes it; search_nodes finds names.",
        candidates=[render.name_of(each) for each in clean(near)],
    )


def _names(names: Sequence[str]) -> list[str]:
    return [render.name_of(each) for each in clean(list(names))]


def _told(*parts: str) -> str:
    return " ".join(part for part in parts if part) or "There was nothing to do."


# --- making


class EntitiesArguments(_Reasoned):
    entities: _Entities


def create_entities(call: Call, asked: EntitiesArguments) -> Reply:
    graph, by = graph_of(call.store), _by(call, asked)
    wanted = [Entity(each.name, each.kind, tuple(map(Observation, each.observations))) for each in asked.entities]
    made = graph.create_entities(wanted, **by)
    new = {each.name for each in made}
    there = [each for each in wanted if each.name not in new]
    added = graph.add_observations([(each.name, each.observations) for each in there], missing="skip", **by)
    merged = [{"name": name, "added": texts} for name, texts in added]
    learned = [str(each["name"]) for each in merged if each["added"]]
    text = _told(
        f"Made {render.listed(_names([each.name for each in made]))}." if made else "",
        f"There already, and told what is new: {render.listed(_names(learned))}." if learned else "",
        f"There already: {render.listed(_names([each.name for each in there]))}." if there and not learned else "",
    )
    return Reply(text, clean({"entities": [entity_shown(each) for each in made], "merged": merged}))


class RelationsArguments(_Reasoned):
    relations: _Relations
    create_missing: bool = Field(default=False, description="relate names without an entity too")


def create_relations(call: Call, asked: RelationsArguments) -> Reply:
    graph = graph_of(call.store)
    wanted = [each.relation() for each in asked.relations]
    made = graph.create_relations(wanted, missing="stub" if asked.create_missing else "skip", **_by(call, asked))
    names = {each.name for each in graph.open([end for each in wanted for end in (each.source, each.target)]).entities}
    lacking = [] if asked.create_missing else [each for each in wanted if {each.source, each.target} - names]
    absent = list(dict.fromkeys(end for each in lacking for end in (each.source, each.target) if end not in names))
    if lacking and len(lacking) == len(wanted):
        raise nobody(graph, absent[0])
    text = _told(
        f"Made {render.counted(len(made), 'relation', 'relations')}." if made else "",
        f"There is no entity {render.listed(_names(absent))}: {len(lacking)} passed over." if lacking else "",
        "They were there already." if not made and not lacking and wanted else "",
    )
    data = {"relations": [relation_shown(each) for each in made], "skipped": [relation_shown(each) for each in lacking]}
    return Reply(text, clean(data))


class ObservationsArguments(_Reasoned):
    observations: _Said


def add_observations(call: Call, asked: ObservationsArguments) -> Reply:
    graph = graph_of(call.store)
    said = [(each.name, tuple(map(Observation, dict.fromkeys(each.texts)))) for each in asked.observations]
    added = graph.add_observations(said, missing="skip", **_by(call, asked))
    known = {name for name, _ in added}
    absent = [name for name, _ in said if name not in known]
    if absent and not added:
        raise nobody(graph, absent[0])
    count = sum(len(texts) for _, texts in added)
    text = _told(
        f"Added {render.counted(count, 'observation', 'observations')}." if count else "",
        "All of it was known already." if added and not count else "",
        f"There is no entity {render.listed(_names(absent))}." if absent else "",
    )
    results = [{"entityName": name, "addedObservations": texts} for name, texts in added]
    return Reply(text, clean({"results": results, "not_found": absent}))


# --- taking away


class DeleteArguments(_Reasoned):
    names: _Texts = Field(validation_alias=AliasChoices("names", "entityNames", "entity_names", "name"))


def delete_entities(call: Call, asked: DeleteArguments) -> Reply:
    graph = graph_of(call.store)
    absent = graph.delete_entities(asked.names, **_by(call, asked))
    gone = [name for name in dict.fromkeys(asked.names) if name not in set(absent)]
    if absent and not gone:
        raise nobody(graph, absent[0])
    text = _told(
        f"Deleted {render.listed(_names(gone))}, with the relations to them. undo_change brings them back."
        if gone
        else "",
        f"There is no entity {render.listed(_names(absent))}." if absent else "",
    )
    return Reply(text, clean({"deleted": gone, "not_found": absent}))


class ForgetArguments(_Reasoned):
    deletions: _Unsaid = Field(validation_alias=AliasChoices("deletions", "observations"))


def delete_observations(call: Call, asked: ForgetArguments) -> Reply:
    graph = graph_of(call.store)
    count, absent = graph.delete_observations([(each.name, each.texts) for each in asked.deletions], **_by(call, asked))
    if absent and len(absent) == len(asked.deletions):
        raise nobody(graph, absent[0])
    text = _told(
        f"Deleted {render.counted(count, 'observation', 'observations')}." if count else "None of them was there.",
        f"There is no entity {render.listed(_names(absent))}." if absent else "",
    )
    return Reply(text, clean({"deleted": count, "not_found": absent}))


class UnrelateArguments(_Reasoned):
    relations: _Relations


def delete_relations(call: Call, asked: UnrelateArguments) -> Reply:
    wanted = [each.relation() for each in asked.relations]
    count = graph_of(call.store).delete_relations(wanted, **_by(call, asked))
    if wanted and not count:
        raise NotFound("None of these relations is there.", hint="open_nodes shows the relations of an entity.")
    return Reply(f"Deleted {render.counted(count, 'relation', 'relations')}.", {"deleted": count})


def _refuse_nothing(arguments: Arguments) -> None:
    if not any(getattr(arguments, name) for name in type(arguments).model_fields if name != "reason"):
        raise Invalid("There is nothing to do: the list is empty.")


def _writing(run: Any) -> Any:
    """An empty list is a mistake, and said to be one."""

    def checked(call: Call, asked: Any) -> Reply:
        _refuse_nothing(asked)
        reply: Reply = run(call, asked)
        return reply

    return checked


_MERGED = record(name=TEXT, added=TEXTS)
_ADDED = record(entityName=TEXT, addedObservations=TEXTS)

TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "create_entities",
        "Create entities",
        "Write down things and what is known of them: each becomes a note with its observations as a list. One that "
        "is there learns what is new.",
        EntitiesArguments,
        _writing(create_entities),
        record(entities=several(ENTITY), merged=several(_MERGED)),
        writes=True,
        idempotent=True,
    ),
    Tool(
        "create_relations",
        "Create relations",
        "Relate entities, in the active voice: from Apollo, depends on, to Saturn.",
        RelationsArguments,
        _writing(create_relations),
        record(relations=several(RELATION), skipped=several(RELATION)),
        writes=True,
        idempotent=True,
    ),
    Tool(
        "add_observations",
        "Add observations",
        "Add facts to entities, one a sentence. What is known already is not added again.",
        ObservationsArguments,
        _writing(add_observations),
        record(results=several(_ADDED), not_found=TEXTS),
        writes=True,
        idempotent=True,
    ),
    Tool(
        "delete_entities",
        "Delete entities",
        "Delete entities and the relations from and to them (they can be brought back).",
        DeleteArguments,
        _writing(delete_entities),
        record(deleted=TEXTS, not_found=TEXTS),
        writes=True,
        destructive=True,
        idempotent=False,
        deletes=True,
    ),
    Tool(
        "delete_observations",
        "Delete observations",
        "Delete facts from entities, each given as it stands there.",
        ForgetArguments,
        _writing(delete_observations),
        record(deleted=COUNT, not_found=TEXTS),
        writes=True,
        destructive=True,
        idempotent=True,
        deletes=True,
    ),
    Tool(
        "delete_relations",
        "Delete relations",
        "Delete relations.",
        UnrelateArguments,
        _writing(delete_relations),
        record(deleted=COUNT),
        writes=True,
        destructive=True,
        idempotent=False,
        deletes=True,
    ),
)
