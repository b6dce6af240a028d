"""The file of the graph memory servers (memento.md §3), written, read and taken over: a line of JSON an entity, then a line
a relation.

What is written is what `JSON.stringify` writes, so that the file goes back to where it came from. What is read may be
older or broken: a line that is neither an entity nor a relation is told, never in the way of the others. An import adds
to what is there and is simply done again when it was interrupted. Which files were taken over stands in
`.simplemem/imports.jsonl`: what is deleted from the graph later must not come back with the next start.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from simplemem.errors import Unavailable
from simplemem.kinds.graph.graph import batched, graph_of
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.state_log import StateLog
from simplemem.store import EnhancedStore

Progress = Callable[[str, int, int], None]

_HALF: Final = re.compile("[\ud800-\udfff]")
_RECORD: Final = "imports.jsonl"
_BATCH: Final = 500
_PATIENCE: Final = 120.0


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
        if not all(isinstance(each, str) for each in observations or ()):
            raise ValueError("one of its observations is no text")
        return Entity(name, entity_type, tuple(map(Observation, observations or ())))
    if kind == "relation":
        source, target, relation_type = _texts(said, "from", "to", "relationType")
        return Relation(source, relation_type, target)
    raise ValueError("it is neither an entity nor a relation")


def _texts(said: dict[str, Any], *keys: str) -> list[str]:
    for key in keys:
        if not isinstance(said.get(key), str):
            raise ValueError(f"its {key} is no text")
    return [said[key] for key in keys]


# -- taking a file over


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought, in however many steps it was written: how many entities and relations were made, how many
    observations were added to entities that were there, how many of the file's entities and relations were there already,
    and its broken lines."""

    file: str
    entities: int
    relations: int
    observations: int
    entities_there: int
    relations_there: int
    since: str  # the first version of it, from which on all of it can be taken back; "" when nothing was written
    broken: tuple[Broken, ...]

    def as_dict(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "broken"}
        return {**shown, "broken": [{"line": each.line, "why": each.why} for each in self.broken]}


def import_file(store: EnhancedStore, file: Path, *, who: str = "", progress: Progress | None = None) -> Imported:
    """Bring a file's graph into the vault, whether or not that was done before."""
    record = _record_of(store)
    with record.held(_PATIENCE):
        return _import(store, record, file, who, progress or _silent)


def import_once(store: EnhancedStore, file: Path, *, who: str = "") -> Imported | None:
    """Bring a file's graph into the vault unless that was done already; None then. Other servers that start meanwhile
    wait for it."""
    record = _record_of(store)
    with record.held(_PATIENCE):
        return None if os.path.abspath(file) in record.state() else _import(store, record, file, who, _silent)


def _record_of(store: EnhancedStore) -> StateLog[set[str]]:
    """The files that were taken over."""
    return StateLog(store.bench, _RECORD, set, lambda files, line: files.add(str(line.get("file"))))


def _silent(_stage: str, _done: int, _total: int) -> None:
    """Nobody watches."""


def _import(store: EnhancedStore, record: StateLog[set[str]], file: Path, who: str, progress: Progress) -> Imported:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}") from error
    found = read(data)
    graph, reason = graph_of(store), f"import of {file.name}"
    there = {each.name for each in graph.read().entities}
    last = store.bench.last_version()
    told = partial(progress, "import")
    entities, relations = graph.take_in(found.graph, told, who=who, tool="import", reason=reason)
    said = [(each.name, each.observations) for each in found.graph.entities if each.name in there and each.observations]
    added = 0
    for some in batched(said, _BATCH):
        more = graph.add_observations(some, missing="skip", who=who, tool="import", reason=reason)
        added += sum(len(texts) for _, texts in more)
    imported = Imported(
        file=os.path.abspath(file),
        entities=entities,
        relations=relations,
        observations=added,
        entities_there=len(found.graph.entities) - entities,
        relations_there=len(found.graph.relations) - relations,
        since=f"v{last + 1}" if store.bench.last_version() > last else "",
        broken=found.broken,
    )
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    counts = {name: count for name, count in imported.as_dict().items() if isinstance(count, int)}
    record.add({"when": when, "file": imported.file, "sha256": hashlib.sha256(data).hexdigest(), **counts})
    return imported
