"""What the graph was: the versions of an entity and of a relation, and the whole at a moment. They are those of the
notes, from our own history and from git; what a person wrote between two changes counts from the later one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeVar

from simplemem.errors import SimplememError
from simplemem.kinds.graph.edit import file_for
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.page import ENTITY, GraphPage, graph_of_pages, read_page
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.note.names import base_name, name_of
from simplemem.store import EnhancedStore

_MOST: Final = 10_000
V = TypeVar("V", Entity, Relation)
Past = list[tuple[V, datetime, datetime | None, str]]
"""What something was, from when (UTC) to when (None for now), and who made it so."""


def entity_history(store: EnhancedStore, name: str) -> Past[Entity]:
    """All that an entity was, oldest first; nothing for a name that never was one."""
    return _history(store, name, lambda p: None if p.is_stub else Entity(p.name, p.type, p.observations))


def relation_history(store: EnhancedStore, wanted: Relation) -> Past[Relation]:
    """All that a relation was, oldest first."""
    ends = {wanted.target, base_name(_path_of(store, wanted.target))}

    def relation_on(page: GraphPage) -> Relation | None:
        same = (bond for bond in page.bonds if bond.type == wanted.type)
        found = next((bond for bond in same if (bond.name or base_name(bond.link)) in ends), None)
        return None if found is None else replace(wanted, attributes=found.attributes)

    return _history(store, wanted.source, relation_on)


def _history(store: EnhancedStore, name: str, read: Callable[[GraphPage], V | None]) -> Past[V]:
    """What was read of the page of a name after each change of it, as far as the change made it another."""
    path = _path_of(store, name)
    states: list[tuple[str, str | None, str, str]] = []  # a note's name, its version, since when, by whom
    last: str | None = None
    with suppress(SimplememError):  # no history, and perhaps no note
        for entry in reversed(store.history(name_of(path), limit=_MOST)):
            if entry.op != "recovered":
                if entry.source != "git" and last and entry.before and entry.before != last:
                    states.append((entry.name, entry.before, entry.when, ""))
                last = entry.sha256 or ""
                states.append((entry.new_name or entry.name, entry.version if last else "", entry.when, entry.who))
    with suppress(SimplememError):
        memory = store.read(name_of(path))
        if memory.sha256 != last and memory.name == name_of(path):
            states.append((memory.name, None, memory.modified, ""))
    past: Past[V] = []
    for called, version, since, who in states:
        value = None
        if version != "":
            with suppress(SimplememError):
                page = read_page(f"{called}.md", store.read(called, version=version).text)
                value = read(page) if page.name == name else None
        when = datetime.fromisoformat(since).astimezone(UTC)  # git's times, and those without an offset, are local
        if past and past[-1][2] is None:
            former, begun, _, by = past[-1]
            if former == value:
                continue
            past[-1] = (former, begun, max(when, begun), by)
        if value is not None:
            past.append((value, when, None, who))
    return past


def _path_of(store: EnhancedStore, name: str) -> str:
    """The page of a name: the one there is, else the one it would have had."""
    there = graph_of(store).entity(name)
    return there.path if there is not None else file_for(name)


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
    return graph_of_pages(sorted(shown.values(), key=ENTITY.place), graph.resolved(shown.values(), files), shown)
