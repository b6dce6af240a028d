"""The file of graph memory servers: one line of JSON per entity, then one per relation.

`.simplemem/imports.jsonl` records which files were imported, so that what was deleted from the
graph does not come back when the server starts again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from simplemem.errors import Unavailable
from simplemem.features.event_log import Event, EventLog
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.models import AuthorArgs, Value
from simplemem.note.dates import format_moment, now
from simplemem.store import EnhancedStore

_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # the only characters that are escaped
_LOCK_TIMEOUT: Final = 120.0  # seconds
_MAX_LINE: Final = 64_000_000  # bytes
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Broken(Value):
    """A line that is no entity or relation, and why."""

    line: int
    why: str


class Imported(Value):
    """What an import created, what existed already, and broken lines.

    `observations` counts those added to entities that existed.
    """

    file: str
    entities: int
    relations: int
    observations: int
    entities_there: int
    relations_there: int
    since: str  # its first version, by which all of it can be undone; "" if nothing was written
    broken: tuple[Broken, ...]


def format_graph(graph: Graph) -> str:
    """Return a graph as the text of such a file."""
    lines = [{"type": "entity", **entity.as_dict()} for entity in graph.entities]
    lines += [{"type": "relation", **relation.as_dict()} for relation in graph.relations]
    text = "".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines
    )
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def parse_graph(data: bytes, max_line: int = _MAX_LINE) -> tuple[Graph, tuple[Broken, ...]]:
    """Return the graph in such a file, and the lines that cannot be read.

    Entities of one name are one entity with the observations of all.
    """
    entities: dict[str, Entity] = {}
    relations: dict[tuple[str, str, str], Relation] = {}
    broken: list[Broken] = []
    lines = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            broken.append(Broken(number, "it is not JSON"))
            continue

        parsed = _parse_item(item, allow_entity=len(line) <= max_line)
        if isinstance(parsed, Relation):
            relations.setdefault(parsed.key, parsed)
        elif isinstance(parsed, Entity):
            entities[parsed.name] = _merge_entities(entities.get(parsed.name), parsed)
        elif item is not None:
            why = "it is neither an entity nor a relation"
            if len(line) > max_line:
                why = "it is longer than the limit for a note"
            broken.append(Broken(number, why))
    return Graph(tuple(entities.values()), tuple(relations.values())), tuple(broken)


def _parse_item(item: Any, *, allow_entity: bool) -> Entity | Relation | None:
    match item:
        case {
            "type": "relation",
            "from": str(source),
            "to": str(target),
            "relationType": str(kind),
        }:
            return Relation(source, kind, target)
        case {"type": "entity", "name": str(name), "entityType": str(kind)} if allow_entity:
            texts = item.get("observations") or []  # other servers also write null, or nothing
            if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
                return Entity(name, kind, tuple(Observation(text) for text in texts))
    return None


def _merge_entities(first: Entity | None, second: Entity) -> Entity:
    """Return an entity with the type of the first and the observations of both."""
    first = first or Entity(second.name, second.type)
    first_texts = set(first.texts)
    new = [
        observation for observation in second.observations if observation.text not in first_texts
    ]
    return Entity(first.name, first.type, (*first.observations, *new))


def import_file(
    store: EnhancedStore, file: Path, *, who: str = "", once: bool = False, dry_run: bool = False
) -> Imported | None:
    """Import the graph of a file as one step; with `dry_run`, only count what is new.

    With `once`, return None if the file has been imported before. Other imports wait. Raise
    Unavailable if the file cannot be read.
    """
    path = os.path.abspath(file)
    log = EventLog[set[str]](store.extension, "imports.jsonl", set, _add_file)
    with nullcontext() if dry_run else log.exclusive(_LOCK_TIMEOUT) as append:
        if once and path in log.state():
            return None

        data = _read_file(file)
        parsed, broken = parse_graph(data, store.extension.max_note_bytes)
        last_version = store.extension.last_version()
        graph = graph_of(store)
        if append is None:
            new = graph.count_new(parsed)
        else:
            by = AuthorArgs(who=who, tool="import", reason=f"import of {file.name}")
            new = graph.merge(parsed, **by)

        counts = _counts(new, parsed)
        if append is not None:
            digest = hashlib.sha256(data).hexdigest()
            append({"when": format_moment(now()), "file": path, "sha256": digest, **counts})
        has_written = store.extension.last_version() > last_version
        since = f"v{last_version + 1}" if has_written else ""
        return Imported(path, **counts, since=since, broken=broken)


def _add_file(files: set[str], event: Event) -> None:
    files.add(str(event.get("file")))


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}") from error


def _counts(new: Iterable[int], parsed: Graph) -> dict[str, Any]:
    entities, relations, observations = new
    return {
        "entities": entities,
        "relations": relations,
        "observations": observations,
        "entities_there": len(parsed.entities) - entities,
        "relations_there": len(parsed.relations) - relations,
    }
