"""What the graph was: the versions of an entity and of a relation, and the whole of it at a moment.

The versions are those of the notes, from our own history and from git; what a person wrote between two changes of ours
counts from when it was found (store/then.py). Nothing is kept for the graph alone, so nothing can be missing for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeVar

from simplemem.errors import SimplememError
from simplemem.kinds.graph.files import file_for
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.known import entity_of
from simplemem.kinds.graph.lists import Bond
from simplemem.kinds.graph.page import Page, read_page
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.memory import HistoryEntry
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.store import EnhancedStore
from simplemem.store.then import Moment, vault_then

_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when something was so, in UTC, and who made it so. `until` is None for what is so now."""

    since: datetime
    until: datetime | None
    by: str


@dataclass(frozen=True, slots=True)
class EntityVersion:
    """An entity as it was for some time."""

    entity: Entity
    span: Span


@dataclass(frozen=True, slots=True)
class RelationVersion:
    """A relation as it was for some time."""

    relation: Relation
    span: Span


V = TypeVar("V", EntityVersion, RelationVersion)


def entity_history(store: EnhancedStore, name: str) -> list[EntityVersion]:
    """All that an entity was, oldest first; nothing for a name that never was one."""
    versions: list[EntityVersion] = []
    for page, span in _pages(store, name):
        if page is None or page.is_stub or page.name != name:
            _end(versions, span.since)
            continue
        entity = entity_of(page)
        if versions and versions[-1].span.until is None:
            last = versions[-1].entity
            if (last.type, last.observations) == (entity.type, entity.observations):
                continue
            _end(versions, span.since)
        versions.append(EntityVersion(entity, Span(span.since, None, span.by)))
    return versions


def relation_history(store: EnhancedStore, wanted: Relation) -> list[RelationVersion]:
    """All that a relation was, oldest first."""
    versions: list[RelationVersion] = []
    target = _stem_of(store, wanted.target)
    for page, span in _pages(store, wanted.source):
        bond = _bond_in(page, wanted, target) if page is not None and page.name == wanted.source else None
        if bond is None:
            _end(versions, span.since)
            continue
        relation = Relation(*wanted.key, bond.attributes)
        if versions and versions[-1].span.until is None:
            if dict(versions[-1].relation.attributes) == dict(relation.attributes):
                continue
            _end(versions, span.since)
        versions.append(RelationVersion(relation, Span(span.since, None, span.by)))
    return versions


def _end(versions: list[V], when: datetime) -> None:
    """What was so until now is so no longer."""
    if versions and (span := versions[-1].span).until is None:
        versions[-1] = replace(versions[-1], span=Span(span.since, max(when, span.since), span.by))


def _bond_in(page: Page, wanted: Relation, target: str) -> Bond | None:
    for bond in page.bonds:
        if bond.type == wanted.type and (bond.name == wanted.target if not bond.link else _leads_to(bond, target)):
            return bond
    return None


def _leads_to(bond: Bond, stem: str) -> bool:
    return compare_key(bond.link.removesuffix(".md").rsplit("/", 1)[-1]) == stem


def _path_of(store: EnhancedStore, name: str) -> str:
    """The page of a name: the one there is, else the one it would have had."""
    there = graph_of(store).entity(name)
    return there.path if there is not None else file_for(name, lambda _path: False)


def _stem_of(store: EnhancedStore, name: str) -> str:
    return compare_key(base_name(_path_of(store, name)))


# --- the versions of a page


def _pages(store: EnhancedStore, name: str) -> Iterator[tuple[Page | None, Span]]:
    """The page of a name after each change of it, oldest first, None where it was gone; as it is now at the end."""
    path = _path_of(store, name)
    try:
        entries = store.history(name_of(path), limit=_MOST)
    except SimplememError:
        entries = ()
    found, last = None, ""
    for entry in reversed(entries):
        if entry.op == "recovered":
            continue
        when = _moment(entry.when)
        if entry.before and found is not None and entry.before != last:
            yield _page_of(store, entry, entry.before), Span(when, None, "")
        found, last = when, entry.sha256 or ""
        yield (_page_of(store, entry, entry.sha256) if entry.sha256 else None), Span(when, None, entry.who)
    now = graph_of(store).entity(name)
    if now is not None and now.sha256 != last:
        memory = store.read(name_of(now.path))
        page = read_page(now.path, memory.text, memory.sha256)
        yield page, Span(_moment(memory.modified), None, "")


def _page_of(store: EnhancedStore, entry: HistoryEntry, sha256: str) -> Page | None:
    """A page as a change found or left it; None when that text is no longer kept."""
    wanted = entry.version if sha256 == entry.sha256 or entry.source == "git" else sha256
    try:
        text = store.read(entry.name, version=wanted).text
    except SimplememError:
        return None
    name = entry.new_name if entry.new_name is not None and sha256 == entry.sha256 else entry.name
    return read_page(f"{name}.md", text, sha256)


def _moment(said: str) -> datetime:
    """A time of the log, of git or of a note: those without an offset are local."""
    return datetime.fromisoformat(said).astimezone(UTC)


# --- the whole at a moment


def graph_at(store: EnhancedStore, when: datetime) -> Graph:
    """The graph as it was at a moment, as far as the history tells: also what was deleted since."""
    said = when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    moment = Moment(store.core.changes.last_before(said), said)
    pages = {page.path: page for page in graph_of(store).pages()}
    for then in vault_then(store.core, moment).differing:
        pages.pop(then.path, None)
        if then.data is not None and then.path.lower().endswith(".md"):
            pages[then.path] = read_page(then.path, then.data.decode("utf-8", "replace"), then.sha256 or "")
    return graph_of_pages(pages.values())


def graph_of_pages(pages: Iterable[Page]) -> Graph:
    """The graph that some pages make: their entities, and the notes that those link to."""
    every = {page.path: page for page in pages}
    by_stem: dict[str, Page] = {}
    for page in sorted(every.values(), key=lambda page: (not page.is_entity, page.path)):
        by_stem.setdefault(compare_key(base_name(page.path)), page)
        by_stem.setdefault(compare_key(name_of(page.path)), page)
    roots = [page for page in every.values() if page.is_entity]
    drawn = {page.path: page for page in roots}
    for root in roots:
        for bond in root.bonds:
            if (note := _meant(bond, by_stem)) is not None:
                drawn.setdefault(note.path, note)
    shown = sorted(
        drawn.values(), key=lambda page: (not page.is_entity, page.order is None, page.order or 0, page.path)
    )
    relations = [
        Relation(page.name, bond.type, _named(bond, by_stem), bond.attributes) for page in shown for bond in page.bonds
    ]
    return Graph(tuple(entity_of(page) for page in shown if not page.is_stub), tuple(relations))


def _meant(bond: Bond, by_stem: Mapping[str, Page]) -> Page | None:
    """The page that a link of then leads to: by its path, else by its name."""
    if not bond.link:
        return None
    link = bond.link.removesuffix(".md")
    return by_stem.get(compare_key(link)) or by_stem.get(compare_key(link.rsplit("/", 1)[-1]))


def _named(bond: Bond, by_stem: Mapping[str, Page]) -> str:
    note = _meant(bond, by_stem)
    return bond.name or (note.name if note is not None else bond.link.rsplit("/", 1)[-1])
