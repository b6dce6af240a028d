"""JSON Lines, the file format of graph memory servers: a line per entity, then one per relation.

`.simplemem/imports.jsonl` records which files were imported, so that what was deleted from the
graph does not come back when the server starts again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.errors import Unavailable
from simplemem.features.event_log import Event, EventLog
from simplemem.features.graph.edit import MergeCounts
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation, RelationKey
from simplemem.models import AuthorArgs, Value
from simplemem.note.dates import format_moment, now
from simplemem.store import EnhancedStore

_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # the only characters that are escaped
_LOCK_TIMEOUT: Final = 120.0  # seconds
_MAX_LINE: Final = 64_000_000  # bytes
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class BrokenLine(Value):
    """The number of a line, from 1, that is no entity or relation, and why it is none."""

    line: int
    why: str


class Imported(Value):
    """What an import created, what existed already, and the lines that could not be read.

    Attributes:
        file: The absolute path of the imported file.
        entities: How many entities were created.
        relations: How many relations were created.
        observations: How many observations were added to entities that existed.
        entities_there: How many of the entities existed already.
        relations_there: How many of the relations existed already.
        since: The first version of the import, by which all of it can be undone; "" if nothing was
            written.
        broken: The lines that were left out, in their order.
    """

    file: str
    entities: int
    relations: int
    observations: int
    entities_there: int
    relations_there: int
    since: str
    broken: tuple[BrokenLine, ...]


def format_graph(graph: Graph) -> str:
    """Return a graph as the text of such a file, "" for an empty graph. Attributes are left out."""
    items = [{"type": "entity", **entity.as_dict()} for entity in graph.entities]
    items += [{"type": "relation", **relation.as_dict()} for relation in graph.relations]

    text = ""
    for item in items:
        text += json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n"
    return _SURROGATE.sub(_escape, text)


def _escape(surrogate: re.Match[str]) -> str:
    """Return a character that UTF-8 cannot express as an escape of JSON."""
    return f"\\u{ord(surrogate[0]):04x}"


class ParsedGraph(NamedTuple):
    """The graph in a file, and its lines that cannot be read, in their order."""

    graph: Graph
    broken: tuple[BrokenLine, ...]


def parse_graph(data: bytes, max_line: int = _MAX_LINE) -> ParsedGraph:
    """Return the graph in such a file, and the lines that cannot be read. Nothing is raised.

    Entities of one name become one entity with the observations of all. An entity whose line has
    more than `max_line` bytes (by default 64 million) is not read. Empty lines and null are
    ignored.
    """
    entities: dict[str, Entity] = {}
    relations: dict[RelationKey, Relation] = {}
    broken: list[BrokenLine] = []
    lines = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            broken.append(BrokenLine(number, "it is not JSON"))
            continue

        is_too_long = len(line) > max_line
        parsed = _parse_item(item, allow_entity=not is_too_long)
        if isinstance(parsed, Relation):
            relations.setdefault(parsed.key, parsed)
        elif isinstance(parsed, Entity):
            entities[parsed.name] = _merge_entities(entities.get(parsed.name), parsed)
        elif item is not None:
            broken.append(BrokenLine(number, _reason(is_too_long=is_too_long)))

    graph = Graph(tuple(entities.values()), tuple(relations.values()))
    return ParsedGraph(graph, tuple(broken))


def _reason(*, is_too_long: bool) -> str:
    """Return the message why a line of JSON cannot be read."""
    if is_too_long:
        return "it is longer than the limit for a note"
    return "it is neither an entity nor a relation"


def _parse_item(item: Any, *, allow_entity: bool) -> Entity | Relation | None:
    """Return the decoded JSON of a line as an entity or a relation; None if it is neither.

    Without `allow_entity`, an entity gives None too.
    """
    match item:
        case {
            "type": "relation",
            "from": str(source),
            "to": str(target),
            "relationType": str(relation_type),
        }:
            return Relation(source, relation_type, target)
        case {"type": "entity", "name": str(name), "entityType": str(entity_type)} if allow_entity:
            texts = item.get("observations") or []  # other servers also write null, or nothing
            if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
                return Entity(name, entity_type, tuple(Observation(text) for text in texts))
    return None


def _merge_entities(first: Entity | None, second: Entity) -> Entity:
    """Return an entity with the type of the first and the observations of both, without repeats.

    Without a first one, it is the second.
    """
    if first is None:
        first = Entity(second.name, second.type)
    first_texts = set(first.texts)
    new = [
        observation for observation in second.observations if observation.text not in first_texts
    ]
    return Entity(first.name, first.type, (*first.observations, *new))


def import_file(
    store: EnhancedStore,
    file: Path,
    *,
    who: str = "",
    once: bool = False,
    dry_run: bool = False,
) -> Imported | None:
    """Import the graph of a file as one step; with `dry_run`, only count what is new.

    With `once`, return None and do nothing if the file has been imported before. The import is
    logged with `who` as its author and recorded in `.simplemem/imports.jsonl`. Raises Unavailable
    if the file cannot be read or another import is still working after two minutes; Conflict,
    Unreadable or TooLong if a page cannot be changed; ReadOnly; and OSError if the log cannot be
    written.
    """
    path = os.path.abspath(file)
    log = EventLog[set[str]](store.extension, "imports.jsonl", set, _add_file)
    if dry_run:
        if once and path in log.state():
            return None
        content = _read_content(store, file)
        counts = _counts(graph_of(store).count_new(content.graph), content.graph)
        return Imported(path, **counts, since="", broken=content.broken)

    with log.exclusive(_LOCK_TIMEOUT) as append:
        if once and path in log.state():
            return None

        content = _read_content(store, file)
        last_version = store.extension.last_version()
        by = AuthorArgs(who=who, tool="import", reason=f"import of {file.name}")
        counts = _counts(graph_of(store).merge(content.graph, **by), content.graph)
        append(
            {
                "when": format_moment(now()),
                "file": path,
                "sha256": content.sha256,
                **counts,
            }
        )

        since = ""
        if store.extension.last_version() > last_version:
            since = f"v{last_version + 1}"
        return Imported(path, **counts, since=since, broken=content.broken)


def _add_file(files: set[str], event: Event) -> None:
    """Add to the paths of imported files the one that an event of the log records."""
    files.add(str(event.get("file")))


class _Content(NamedTuple):
    """The graph in a file, its lines that cannot be read, and the hash of the file."""

    graph: Graph
    broken: tuple[BrokenLine, ...]
    sha256: str


def _read_content(store: EnhancedStore, file: Path) -> _Content:
    """Return what is in a file. Raises Unavailable if the file cannot be read.

    Entities that are longer than a note of the store may be are among the broken lines.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}") from error

    graph, broken = parse_graph(data, store.extension.max_note_bytes)
    return _Content(graph, broken, hashlib.sha256(data).hexdigest())


def _counts(new: MergeCounts, graph: Graph) -> dict[str, Any]:
    """Return the counts of an `Imported` by field, from what `merge` returned for `graph`."""
    return {
        "entities": new.entities,
        "relations": new.relations,
        "observations": new.observations,
        "entities_there": len(graph.entities) - new.entities,
        "relations_there": len(graph.relations) - new.relations,
    }
