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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from simplemem.errors import Unavailable
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.state_log import StateLog
from simplemem.memory import Value
from simplemem.store import EnhancedStore

Progress = Callable[[str, int, int], None]

_HALF: Final = re.compile("[\ud800-\udfff]")  # of a surrogate pair: escaped, all else is as it is
_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Broken(Value):
    """A line that says nothing to the graph, and why."""

    line: int
    why: str


def written(graph: Graph) -> str:
    """A graph as such a file."""
    lines = [{"type": "entity", **each.as_dict()} for each in graph.entities]
    lines += [{"type": "relation", **each.as_dict()} for each in graph.relations]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def read(data: bytes) -> tuple[Graph, tuple[Broken, ...]]:
    """The graph in such a file, whatever else stands there. One name that stands there twice is one entity that says all
    of it."""
    entities: dict[str, Entity] = {}
    relations: dict[tuple[str, str, str], Relation] = {}
    broken: list[Broken] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            said = _understood(line) if line.strip() else None
        except ValueError as error:
            broken.append(Broken(number, str(error)))
            continue
        if isinstance(said, Relation):
            relations.setdefault(said.key, said)
        elif said is not None:
            first = entities.get(said.name, Entity(said.name, said.type))
            known = set(first.texts)
            more = tuple(each for each in said.observations if each.text not in known)
            entities[said.name] = Entity(said.name, first.type, (*first.observations, *more))
    return Graph(tuple(entities.values()), tuple(relations.values())), tuple(broken)


def _understood(line: bytes) -> Entity | Relation:
    """What a line says. Raises ValueError with the reason when it is nothing of the kind."""
    try:
        said = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    kind = said.get("type") if isinstance(said, dict) else None
    keys = {"entity": ("name", "entityType"), "relation": ("from", "to", "relationType")}.get(str(kind))
    if keys is None:
        raise ValueError("it is neither an entity nor a relation")
    for key in keys:
        if not isinstance(said.get(key), str):
            raise ValueError(f"its {key} is no text")
    if kind == "relation":
        return Relation(said["from"], said["relationType"], said["to"])
    observations = said.get("observations") or []  # other programs have written null, and nothing at all
    if not isinstance(observations, list) or not all(isinstance(each, str) for each in observations):
        raise ValueError("its observations are no list of texts")
    return Entity(said["name"], said["entityType"], tuple(map(Observation, observations)))


# -- taking a file over


@dataclass(frozen=True, slots=True)
class Imported(Value):
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


def import_file(
    store: EnhancedStore, file: Path, *, who: str = "", once: bool = False, progress: Progress | None = None
) -> Imported | None:
    """Bring a file's graph into the vault, whether or not that was done before; or `once`, and None then. Others that
    import meanwhile wait for it."""
    record = StateLog[set[str]](store.bench, "imports.jsonl", set, lambda files, line: files.add(str(line.get("file"))))
    with record.held(_PATIENCE):
        if once and os.path.abspath(file) in record.state():
            return None
        try:
            data = file.read_bytes()
        except OSError as error:
            raise Unavailable(f"{file} cannot be read: {error.strerror}") from error
        graph, broken = read(data)
        last = store.bench.last_version()
        new = graph_of(store).take_in(
            graph,
            (lambda done, total: progress("import", done, total)) if progress is not None else None,
            who=who,
            reason=f"import of {file.name}",
        )
        imported = Imported(
            os.path.abspath(file),
            *new,
            entities_there=len(graph.entities) - new.entities,
            relations_there=len(graph.relations) - new.relations,
            since=f"v{last + 1}" if store.bench.last_version() > last else "",
            broken=broken,
        )
        when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        counts = {name: count for name, count in imported.as_dict().items() if isinstance(count, int)}
        record.add({"when": when, "file": imported.file, "sha256": hashlib.sha256(data).hexdigest(), **counts})
        return imported
