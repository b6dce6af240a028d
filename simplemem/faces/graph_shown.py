"""How the tools of the graph answer: as much of a graph as fits a number of tokens, as lines and as data. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from simplemem.errors import Invalid
from simplemem.faces import render
from simplemem.faces.schema import COUNT, MAYBE_TEXT, TEXT, TEXTS, record, several
from simplemem.kinds.graph.jsonl import entity_shown, relation_shown
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.note.words import count_tokens, well_formed

ENTITY: Final = record(name=TEXT, entityType=TEXT, observations=TEXTS)
RELATION: Final = record(**{"from": TEXT, "to": TEXT, "relationType": TEXT})
GRAPH: Final = record(entities=several(ENTITY), relations=several(RELATION), total=COUNT, next_cursor=MAYBE_TEXT)
_LINE = 4096


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a graph: `total` entities there are in all; `next_cursor` asks for what comes after."""

    graph: Graph
    total: int
    next_cursor: str | None


def part_of(graph: Graph, tokens: int, cursor: str | None) -> Part:
    """The entities after the cursor that fit so many tokens, one at least, each with the relations it is the first to
    have an end of. A cursor is the path of the last entity that was told."""
    begin = _after(graph.entities, cursor)
    of_page = _by_page(graph)
    entities, relations, left = list[Entity](), list[Relation](), tokens
    for entity in graph.entities[begin:]:
        its = of_page.pop(entity.name, [])
        left -= count_tokens("\n".join(_lines(entity, its)))
        if left < 0 and entities:
            return Part(Graph(tuple(entities), tuple(relations)), len(graph.entities), entities[-1].path)
        entities.append(entity)
        relations += its
    relations += of_page.get("", [])
    return Part(Graph(tuple(entities), tuple(relations)), len(graph.entities), None)


def _after(entities: tuple[Entity, ...], cursor: str | None) -> int:
    if not cursor:
        return 0
    for number, entity in enumerate(entities):
        if entity.path == cursor:
            return number + 1
    raise Invalid("The cursor leads nowhere: the entity before it is gone.", hint="Begin again without a cursor.")


def _by_page(graph: Graph) -> dict[str, list[Relation]]:
    """Relations by the entity they are told with; those of none under ""."""
    names = {entity.name for entity in graph.entities}
    told: dict[str, list[Relation]] = defaultdict(list)
    for relation in graph.relations:
        ends = (relation.source, relation.target)
        told[next((end for end in ends if end in names and end), "")].append(relation)
    return told


def data_of(part: Part) -> dict[str, Any]:
    return {
        "entities": [clean(entity_shown(each)) for each in part.graph.entities],
        "relations": [clean(relation_shown(each)) for each in part.graph.relations],
        "total": part.total,
        "next_cursor": part.next_cursor,
    }


def clean(value: Any) -> Any:
    """A JSON value that every client can read: half a surrogate pair is not shown as it is."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {key: clean(each) for key, each in value.items()}
    return [clean(each) for each in value] if isinstance(value, (list, tuple)) else value


def text_of(part: Part, tool: str, *, nothing: str) -> str:
    """A part of a graph as lines, between marks, as all that notes say."""
    if not part.graph.entities and not part.graph.relations:
        return nothing
    relations = _by_page(part.graph)
    lines = [line for each in part.graph.entities for line in _lines(each, relations.pop(each.name, []))]
    lines += map(relation_line, relations.get("", []))
    count = render.counted(len(part.graph.entities), "entity", "entities")
    head = f"{count} of {part.total}:" if part.total > len(part.graph.entities) else f"{count}:"
    more = f'More: {tool} with cursor="{part.next_cursor}"' if part.next_cursor else ""
    return render.answer(head, well_formed("\n".join(lines)), more)


def _lines(entity: Entity, relations: list[Relation]) -> list[str]:
    kind = f" ({render.line(entity.type)})" if entity.type else ""
    says = [f"- {render.line(text, _LINE)}" for text in entity.texts]
    return [f"## {render.name_of(entity.name)}{kind}", *says, *(f"- {relation_line(each)}" for each in relations)]


def relation_line(relation: Relation) -> str:
    """A relation as a sentence with its direction: `Apollo -depends on-> Saturn`."""
    source, target = render.name_of(relation.source), render.name_of(relation.target)
    return f"{source} -{render.line(relation.type)}-> {target}"
