"""The file of the graph memory servers (memento.md §3): a line of JSON an entity, then a line a relation. Pure.

What is written is what `JSON.stringify` writes, so that the file goes back to where it came from. What is read may be
older or broken: a line that is neither an entity nor a relation is told, never in the way of the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation

_HALF: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Broken:
    """A line that says nothing to the graph, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A graph out of a file. One name that stood there twice is one entity that says all of it."""

    graph: Graph
    broken: tuple[Broken, ...]


def stringify(value: Any) -> str:
    """A value on one line as `JSON.stringify` writes it: half a surrogate pair is escaped, all else is as it is."""
    return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def escaped(text: str) -> str:
    """JSON that UTF-8 can say: half a surrogate pair as `\\ud800`."""
    return text if text.isascii() else _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def entity_shown(entity: Entity) -> dict[str, Any]:
    """An entity as the graph memory servers show it."""
    return {"name": entity.name, "entityType": entity.type, "observations": entity.texts}


def relation_shown(relation: Relation) -> dict[str, Any]:
    """A relation as the graph memory servers show it."""
    return {"from": relation.source, "to": relation.target, "relationType": relation.type}


def written(graph: Graph) -> str:
    """A graph as such a file."""
    lines = [stringify({"type": "entity", **entity_shown(each)}) for each in graph.entities]
    lines += [stringify({"type": "relation", **relation_shown(each)}) for each in graph.relations]
    return "".join(f"{line}\n" for line in lines)


def read(data: bytes) -> ReadFile:
    """The graph in such a file, whatever else stands there."""
    entities: dict[str, Entity] = {}
    relations: dict[tuple[str, str, str], Relation] = {}
    broken: list[Broken] = []
    for number, line in _lines(data):
        try:
            said = _understood(line)
        except ValueError as error:
            broken.append(Broken(number, str(error)))
            continue
        if isinstance(said, Relation):
            relations.setdefault(said.key, said)
        elif (there := entities.get(said.name)) is not None:
            entities[said.name] = united(there, said)
        else:
            entities[said.name] = said
    return ReadFile(Graph(tuple(entities.values()), tuple(relations.values())), tuple(broken))


def united(first: Entity, second: Entity) -> Entity:
    """One entity that says what both do. Its type is the first's."""
    known = set(first.texts)
    more = tuple(each for each in second.observations if each.text not in known)
    return Entity(first.name, first.type, (*first.observations, *more))


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield number, line


def _understood(line: bytes) -> Entity | Relation:
    """What a line says. Raises ValueError with the reason when it is nothing of the kind."""
    try:
        said = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    kind = said.get("type") if isinstance(said, dict) else None
    if kind == "entity":
        name, entity_type = _texts(said, "name", "entityType")
        observations = said.get("observations")  # other programs have written null, and nothing at all
        if not isinstance(observations, list | None):
            raise ValueError("its observations are no list")
        texts = _all_texts(observations or ())
        return Entity(name, entity_type, tuple(map(Observation, texts)))
    if kind == "relation":
        source, target, relation_type = _texts(said, "from", "to", "relationType")
        return Relation(source, relation_type, target)
    raise ValueError("it is neither an entity nor a relation")


def _texts(said: dict[str, Any], *keys: str) -> list[str]:
    for key in keys:
        if not isinstance(said.get(key), str):
            raise ValueError(f"its {key} is no text")
    return [said[key] for key in keys]


def _all_texts(values: Iterable[Any]) -> list[str]:
    texts = list(values)
    if not all(isinstance(each, str) for each in texts):
        raise ValueError("one of its observations is no text")
    return texts
