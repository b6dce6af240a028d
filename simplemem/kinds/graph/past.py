"""What the graph was: the versions of an entity and of a relation, the whole of it at a moment, and confidence that fades.

The versions are those of the notes, from our own history and from git; what a person wrote between two changes of ours
counts from when it was found. Nothing is kept for the graph alone, so nothing can be missing for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, TypeVar

from simplemem.errors import SimplememError
from simplemem.kinds.graph.edit import file_for
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.network import entity_of, graph_of_pages
from simplemem.kinds.graph.page import GraphPage, place, read_page
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.memory import HistoryEntry
from simplemem.note.names import base_name, name_of
from simplemem.store import EnhancedStore

_MOST: Final = 10_000
HALF_LIFE: Final = timedelta(days=30)
FLOOR: Final = 0.1
FACTOR: Final = 0.5
"""What is left of a confidence after one half-life."""
V = TypeVar("V", Entity, Relation)


@dataclass(frozen=True, slots=True)
class PastVersion(Generic[V]):
    """An entity or a relation as it was from one moment (UTC) to another, None for what is so now, and who made it so."""

    value: V
    since: datetime
    until: datetime | None
    by: str


def entity_history(store: EnhancedStore, name: str) -> list[PastVersion[Entity]]:
    """All that an entity was, oldest first; nothing for a name that never was one."""
    return _versions(
        (entity_of(page) if page is not None and page.name == name and not page.is_stub else None, when, by)
        for page, when, by in _pages(store, name)
    )


def relation_history(store: EnhancedStore, wanted: Relation) -> list[PastVersion[Relation]]:
    """All that a relation was, oldest first."""
    target = base_name(_path_of(store, wanted.target))

    def relation_on(page: GraphPage | None) -> Relation | None:
        for bond in page.bonds if page is not None and page.name == wanted.source else ():
            leads_there = base_name(bond.link) == target if bond.link else bond.name == wanted.target
            if bond.type == wanted.type and leads_there:
                return replace(wanted, attributes=bond.attributes)
        return None

    return _versions((relation_on(page), when, by) for page, when, by in _pages(store, wanted.source))


def _versions(told: Iterator[tuple[V | None, datetime, str]]) -> list[PastVersion[V]]:
    """What something was after each change, as far as the changes made it another; None where it was not there."""
    versions: list[PastVersion[V]] = []
    for value, when, by in told:
        last = versions[-1] if versions and versions[-1].until is None else None
        if last is not None:
            if value is not None and _facts(last.value) == _facts(value):
                continue
            versions[-1] = replace(last, until=max(when, last.since))
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
    """The page of a name after each change of it, oldest first, None where it was gone; as it is now at the end."""
    path = _path_of(store, name)
    try:
        entries = store.history(name_of(path), limit=_MOST)
    except SimplememError:
        entries = ()
    last: str | None = None
    for entry in reversed(entries):
        if entry.op == "recovered":
            continue
        when = _moment(entry.when)
        if entry.before and last is not None and entry.before != last:
            yield _page_of(store, entry, entry.before), when, ""
        last = entry.sha256 or ""
        yield (_page_of(store, entry, last) if last else None), when, entry.who
    now = graph_of(store).entity(name)
    if now is not None and now.sha256 != last:
        memory = store.read(name_of(now.path))
        yield read_page(now.path, memory.text, memory.sha256), _moment(memory.modified), ""


def _page_of(store: EnhancedStore, entry: HistoryEntry, sha256: str) -> GraphPage | None:
    """A page as a change found or left it; None when that text is no longer kept."""
    is_after = sha256 == entry.sha256
    try:
        text = store.read(entry.name, version=entry.version if is_after or entry.source == "git" else sha256).text
    except SimplememError:
        return None
    name = entry.new_name if entry.new_name is not None and is_after else entry.name
    return read_page(f"{name}.md", text, sha256)


def _moment(said: str) -> datetime:
    """A time of the log, of git or of a note: those without an offset are local."""
    return datetime.fromisoformat(said).astimezone(UTC)


def graph_at(store: EnhancedStore, when: datetime) -> Graph:
    """The graph as it was at a moment, as far as the history tells: also what was deleted since."""
    network = graph_of(store).network
    with network.reading():
        pages, files = dict(network.items), set(store.bench.indexed())
    for path, text, sha256 in store.bench.notes_at(when):
        pages.pop(path, None)
        files.discard(path)
        if text is not None and path.lower().endswith(".md"):
            pages[path] = read_page(path, text, sha256 or "")
            files.add(path)
    shown = {path: page for path, page in pages.items() if page.is_own}
    drawn = {tie.path for ties in network.resolved(shown.values(), files).values() for tie in ties if tie.path}
    linked = (pages.get(path) or network.page_at(path) for path in drawn - shown.keys())
    shown |= {page.path: page for page in linked if page is not None}
    return graph_of_pages(sorted(shown.values(), key=place), network.resolved(shown.values(), files), shown)


def decayed(relation: Relation, said: datetime, now: datetime, factor: float = FACTOR) -> Relation:
    """A relation with the confidence that is left of it, if it has one: it halves every thirty days and never falls below
    a tenth, as the graph memory servers promise (memento.md §4). The floor lifts none that was below it, and what was said
    later than `now` is not older. What stands in the notes does not change."""
    confidence = relation.attributes.get("confidence")
    if not isinstance(confidence, (int, float)) or isinstance(confidence, bool):
        return relation
    left = confidence * factor ** (max(now - said, timedelta(0)) / HALF_LIFE)
    return replace(relation, attributes={**relation.attributes, "confidence": max(min(confidence, FLOOR), left)})
