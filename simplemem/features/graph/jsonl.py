"""The file of the graph memory servers, written, read and taken over: a line of JSON an entity, then a
line a relation. A broken line is told, never in the way of the others. Which files were taken over stands in
`.simplemem/imports.jsonl`: what is deleted from the graph later must not come back with the next start."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from simplemem.errors import Unavailable
from simplemem.features.event_log import EventLog
from simplemem.features.graph.graph import graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.models import AuthorArgs, Value
from simplemem.note.dates import format_moment, now
from simplemem.store import EnhancedStore

_HALF: Final = re.compile("[\ud800-\udfff]")  # of a surrogate pair: escaped, all else is as it is
_PATIENCE: Final = 120.0


class Broken(Value):
    """A line that says nothing to the graph, and why."""

    line: int
    why: str


class Imported(Value):
    """What an import made, what was there already, and broken lines. Observations are of entities that were there."""

    file: str
    entities: int
    relations: int
    observations: int
    entities_there: int
    relations_there: int
    since: str  # its first version, which takes all of it back; "" when nothing was written
    broken: tuple[Broken, ...]


def written(graph: Graph) -> str:
    """A graph as such a file."""
    lines = [{"type": "entity", **each.as_dict()} for each in graph.entities]
    lines += [{"type": "relation", **each.as_dict()} for each in graph.relations]
    text = "".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines
    )
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def read(data: bytes, most: int = 64_000_000) -> tuple[Graph, tuple[Broken, ...]]:
    """The graph in such a file. One name that stands there twice is one entity that says all of it."""
    entities: dict[str, Entity] = {}
    relations: dict[tuple[str, str, str], Relation] = {}
    broken: list[Broken] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            said = json.loads(line.decode("utf-8")) if line.strip() else None
        except (ValueError, RecursionError):
            broken.append(Broken(number, "it is not JSON"))
            continue
        texts = (
            said.get("observations") or [] if isinstance(said, dict) else None
        )  # null is written too, or nothing
        fits = len(line) <= most
        are_texts = (
            fits and isinstance(texts, list) and all(isinstance(each, str) for each in texts)
        )
        match said:
            case None:
                pass
            case {
                "type": "relation",
                "from": str(source),
                "to": str(target),
                "relationType": str(kind),
            }:
                relations.setdefault((source, kind, target), Relation(source, kind, target))
            case {"type": "entity", "name": str(name), "entityType": str(kind)} if are_texts:
                first = entities.get(name, Entity(name, kind))
                known = set(first.texts)
                more = (Observation(text) for text in texts or () if text not in known)
                entities[name] = Entity(name, first.type, (*first.observations, *more))
            case _:
                why = (
                    "it is neither an entity nor a relation"
                    if fits
                    else "it is longer than the limit for a note"
                )
                broken.append(Broken(number, why))
    return Graph(tuple(entities.values()), tuple(relations.values())), tuple(broken)


def import_file(
    store: EnhancedStore, file: Path, *, who: str = "", once: bool = False, dry_run: bool = False
) -> Imported | None:
    """Bring a file's graph into the vault as one step, or only count; or `once`, and None if it was. Others that import
    meanwhile wait."""
    path = os.path.abspath(file)
    record = EventLog[set[str]](
        store.extension, "imports.jsonl", set, lambda files, line: files.add(str(line.get("file")))
    )
    with nullcontext() if dry_run else record.exclusive(_PATIENCE) as add:
        if once and path in record.state():
            return None
        try:
            data = file.read_bytes()
        except OSError as error:
            raise Unavailable(f"{file} cannot be read: {error.strerror}") from error
        graph, broken = read(data, store.extension.max_note_bytes)
        last, kept = store.extension.last_version(), graph_of(store)
        by = AuthorArgs(who=who, tool="import", reason=f"import of {file.name}")
        new = kept.new_of(graph) if add is None else kept.take_in(graph, **by)
        counts = dict(zip(("entities", "relations", "observations"), new, strict=True))
        counts |= {
            "entities_there": len(graph.entities) - new[0],
            "relations_there": len(graph.relations) - new[1],
        }
        since = f"v{last + 1}" if store.extension.last_version() > last else ""
        if add is not None:
            add(
                {
                    "when": format_moment(now()),
                    "file": path,
                    "sha256": hashlib.sha256(data).hexdigest(),
                    **counts,
                }
            )
        return Imported(path, **counts, since=since, broken=broken)
