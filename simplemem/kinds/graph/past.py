"""What the graph was: the versions of an entity and a relation, the whole at a moment, and confidence that fades.

The versions are those of the notes, from our own history and from git; what a person wrote between two changes of ours
counts from when it was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, NamedTuple, TypeVar

from simplemem.errors import SimplememError
from simplemem.kinds.graph.edit import file_for
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.page import GraphPage, entity_of, graph_of_pages, place, read_page
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.note.names import base_name, name_of
from simplemem.store import EnhancedStore

_MOST: Final = 10_000
HALF_LIFE: Final = timedelta(days=30)
FLOOR: Final = 0.1
V = TypeVar("V", Entity, Relation)


class PastVersion(NamedTuple, Generic[V]):
    """An entity or a relation as it was from one moment (UTC) to another, None for now, and who made it so."""

    value: V
    since: datetime
    until: datetime | None
    by: str


def entity_history(store: EnhancedStore, name: str) -> list[PastVersion[Entity]]:
    """All that an entity was, oldest first; nothing for a name that never was one."""
    return _versions(store, name, lambda page: None if page.is_stub else entity_of(page))


def relation_history(store: EnhancedStore, wanted: Relation) -> list[PastVersion[Relation]]:
    """All that a relation was, oldest first."""
    ends = {wanted.target, base_name(_path_of(store, wanted.target))}

    def relation_on(page: GraphPage) -> Relation | None:
        same = (bond for bond in page.bonds if bond.type == wanted.type)
        found = next((bond for bond in same if (bond.name or base_name(bond.link)) in ends), None)
        return None if found is None else replace(wanted, attributes=found.attributes)

    return _versions(store, wanted.source, relation_on)


def _versions(store: EnhancedStore, name: str, read: Callable[[GraphPage], V | None]) -> list[PastVersion[V]]:
    """What something on the page of a name was after each change, as far as the changes made it another."""
    versions: list[PastVersion[V]] = []
    for page, when, by in _pages(store, name):
        value = read(page) if page is not None and page.name == name else None
        last = versions[-1] if versions and versions[-1].until is None else None
        if last is not None:
            if value is not None and _facts(last.value) == _facts(value):
                continue
            versions[-1] = last._replace(until=max(when, last.since))
        if value is not None:
            versions.append(PastVersion(value, when, None, by))
    return versions


def _facts(value: Entity | Relation) -> object:
    return (value.type, value.observations) if isinstance(value, Entity) else dict(value.attributes)


def _path_of(store: EnhancedStore, name: str) -> str:
    """The page of a name: the one there is, else the one it would have had."""
    there = graph_of(store).entity(name)
    return there.path if there is not None else file_for(name)


def _pages(store: EnhancedStore, name: str) -> Iterator[tuple[GraphPage | None, datetime, str]]:
    """The page of a name after each change of it, oldest first, and now; None where it was gone or is not kept."""
    path = _path_of(store, name)
    try:
        entries = store.history(name_of(path), limit=_MOST)
    except SimplememError:
        entries = ()

    def page(called: str, version: str | None, sha256: str) -> GraphPage | None:
        try:
            return read_page(f"{called}.md", store.read(entry.name, version=version).text, sha256)
        except SimplememError:
            return None

    last: str | None = None
    for entry in reversed(entries):
        if entry.op == "recovered":
            continue
        when = _utc(entry.when)
        if entry.before and last is not None and entry.before != last:  # somebody wrote in between
            yield page(entry.name, entry.version if entry.source == "git" else entry.before, entry.before), when, ""
        last = entry.sha256 or ""
        yield (page(entry.new_name or entry.name, entry.version, last) if last else None), when, entry.who
    now = graph_of(store).entity(name)
    if now is not None and now.sha256 != last:
        memory = store.read(name_of(now.path))
        yield read_page(now.path, memory.text, memory.sha256), _utc(memory.modified), ""


def _utc(said: str) -> datetime:
    return datetime.fromisoformat(said).astimezone(UTC)  # git's times, and those without an offset, are local


def graph_at(store: EnhancedStore, when: datetime) -> Graph:
    """The graph as it was at a moment, as far as the history tells: also what was deleted since."""
    graph = graph_of(store)
    with graph.reading():
        pages, files = dict(graph.items), set(store.bench.indexed())
    for then in (then for then, differs in store.bench.notes_then(when) if differs):
        pages.pop(then.path, None)
        files.discard(then.path)
        if then.data is not None and then.path.lower().endswith(".md"):
            pages[then.path] = read_page(then.path, then.data.decode("utf-8", "replace"), then.sha256 or "")
            files.add(then.path)
    shown = {path: page for path, page in pages.items() if page.is_own}
    drawn = {tie.path for ties in graph.resolved(shown.values(), files).values() for tie in ties if tie.path}
    linked = (pages.get(path) or graph.page_at(path) for path in drawn - shown.keys())
    shown |= {page.path: page for page in linked if page is not None}
    return graph_of_pages(sorted(shown.values(), key=place), graph.resolved(shown.values(), files), shown)


def decayed(relation: Relation, said: datetime, now: datetime, factor: float = 0.5) -> Relation:
    """A relation with the confidence that is left of it, if it has one: `factor` of it after thirty days, and
    never less than a tenth (memento.md §4). The floor lifts none that was below it."""
    confidence = relation.attributes.get("confidence")
    if not isinstance(confidence, (int, float)) or isinstance(confidence, bool):
        return relation
    left = confidence * factor ** (max(now - said, timedelta(0)) / HALF_LIFE)
    return replace(relation, attributes={**relation.attributes, "confidence": max(min(confidence, FLOOR), left)})
