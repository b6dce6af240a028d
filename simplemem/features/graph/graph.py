"""The knowledge graph of one store: read, searched and changed, and what it was. Entities are notes, every change is one
step, the past is that of the notes, from our own history and from git.

A page is known by its path, and what its relations mean by path as well, so a note that is renamed takes them along. A
note that an entity leads to is part of the graph too, with its own relations; what those lead to is not drawn in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from simplemem.errors import SimplememError
from simplemem.features.collection import NoteCollection
from simplemem.features.graph.edit import GraphEdit, file_for
from simplemem.features.graph.page import ENTITY, GraphPage, Tie, graph_of_pages, read_page
from simplemem.features.graph.values import Entity, Graph, Relation
from simplemem.models import AuthorArgs
from simplemem.note.names import base_name, compare_key, name_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V", Entity, Relation)
Past = list[tuple[V, datetime, datetime | None, str]]
"""What something was, from when (UTC) to when (None for now), and who made it so, oldest first."""
States = list[tuple[GraphPage | None, datetime, str]]
_MOST_CHANGES = 10_000


def _step(draft: Callable[Concatenate[GraphEdit, P], R]) -> Callable[..., R]:
    """A change as a method of the graph, which also takes who makes it, with which tool, and why (`AuthorArgs`)."""

    @wraps(draft)
    def change(
        graph: KnowledgeGraph,
        *args: Any,
        who: str = "",
        tool: str = "graph",
        reason: str = "",
        **more: Any,
    ) -> R:
        by = AuthorArgs(who=who, tool=tool, reason=reason)
        return graph.change(lambda edit: draft(edit, *args, **more), by, GraphEdit)[0]

    return change


class KnowledgeGraph(NoteCollection[GraphPage]):
    """The entities of a vault, their observations and relations. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store.extension, ENTITY)
        self._named = defaultdict[str, set[str]](set)  # pages by their names
        self._linking = defaultdict[str, set[str]](set)  # ... by the names that they link to
        self._into = defaultdict[object, set[str]](
            set
        )  # ... by the path or the name that a relation leads to
        self.ties: dict[str, list[Tie]] = {}
        self.last_order = 0
        self._states: dict[str, States] = {}  # by path, of changes up to a number
        self._upto = 0

    def read(self, owner: str | None = None) -> Graph:
        """All of it, in the order in which it came; with `owner` what belongs to that user."""
        with self.reading():
            pages = [page for page in self.in_order() if page.is_of(owner)]
            return graph_of_pages(pages, self.ties, self.items)

    def search(self, query: str, owner: str | None = None) -> Graph:
        """The entities with this text in name, type or an observation, whatever its case, with their relations."""
        with self.reading():
            text = query.lower()
            return self._part(
                (page for page in self.items.values() if text in page.searched), owner
            )

    def open(self, names: Iterable[str], owner: str | None = None) -> Graph:
        """The entities with these names, with their relations."""
        with self.reading():
            return self._part((page for name in set(names) for page in self.all_named(name)), owner)

    def entity(self, name: str) -> Entity | None:
        """The entity of exactly this name."""
        return next(iter(self.open([name]).entities), None)

    def relation(self, source: str, kind: str, target: str) -> Relation | None:
        """The relation of that type from one name to another."""
        return next(
            (each for each in self.open([source]).relations if each.key == (source, kind, target)),
            None,
        )

    def changed_by_others(self) -> int:
        """A number that grows when anybody but this process changes the graph, and when nobody here has read it yet."""
        with self.lock:
            self.external_changes += self.mark is None
            self.refresh()
            return self.external_changes

    create_entities = _step(GraphEdit.create)
    create_relations = _step(GraphEdit.relate)
    add_observations = _step(GraphEdit.say)
    delete_entities = _step(GraphEdit.delete)
    delete_observations = _step(GraphEdit.unsay)
    delete_relations = _step(GraphEdit.unrelate)
    update_relation = _step(GraphEdit.update)
    take_in = _step(GraphEdit.take_in)

    def new_of(self, graph: Graph) -> tuple[int, int, int]:
        """How many entities, relations, and observations of others a graph would bring."""
        with self.reading():
            return GraphEdit(self).take_in(graph)

    def all_named(self, name: str, owner: str | None = None) -> list[GraphPage]:
        """The pages of an exact name; with `owner` those that belong to that user."""
        pages = [self.items[path] for path in self._named.get(name, ())]
        return sorted((page for page in pages if page.is_of(owner)), key=ENTITY.sort_key)

    def named(self, name: str, owner: str | None = None) -> GraphPage | None:
        """The page of an exact name: the entity, else the note, else the stub that has it."""
        pages = self.all_named(name, owner)
        return min(pages, key=lambda page: (page.is_stub, not page.is_own), default=None)

    def page_of(self, name: str, owner: str | None = None) -> GraphPage | None:
        """The page of an entity or a note."""
        page = self.named(name, owner)
        return None if page is None or page.is_stub else page

    def page_at(self, path: str) -> GraphPage | None:
        """A note as a page, whether or not it is part of the graph."""
        return self.items.get(path) or next(
            map(self.note_type.read, self.extension.read([path])), None
        )

    def pointing_at(self, path: str, name: str) -> list[GraphPage]:
        """The pages with a relation to a page of this name, or to the name alone."""
        both = {*self._into.get(path, ()), *self._into.get((None, name), ())}
        return [self.items[each] for each in both if each in self.items]

    def is_awaited(self, stem: str, name: str) -> bool:
        """Whether a link that leads nowhere would lead to a new file, though it says another name."""
        key = _key(stem)
        ties = (tie for source in self._linking.get(key, ()) for tie in self.ties.get(source, ()))
        return any(
            tie.path is None and tie.name != name and _key(tie.bond.link) == key for tie in ties
        )

    def _part(self, pages: Iterable[GraphPage], owner: str | None = None) -> Graph:
        """Pages as entities, with the relations that have an end among them.

        With `owner`, neither entities nor relations of other users are in it.
        """
        some = sorted(
            (page for page in pages if not page.is_stub and page.is_of(owner)), key=ENTITY.sort_key
        )
        near = {
            each.path: each
            for page in some
            for each in (page, *self.pointing_at(page.path, page.name))
        }
        near = {path: page for path, page in near.items() if page.is_of(owner)}
        names = {page.name for page in some}
        every = graph_of_pages(
            sorted(near.values(), key=ENTITY.sort_key), self.ties, self.items
        ).relations
        return Graph(
            tuple(some),
            tuple(each for each in every if each.source in names or each.target in names),
        )

    def resolved(
        self, pages: Iterable[GraphPage], among: Collection[str] | None = None
    ) -> dict[str, list[Tie]]:
        """What the relations of some pages lead to; as if only the files `among` were there."""
        bonds = [(page.path, bond) for page in pages for bond in page.bonds]
        meant = iter(
            self.extension.resolve_links(
                [(bond.link, path) for path, bond in bonds if bond.link], among
            )
        )
        ties: dict[str, list[Tie]] = {}
        for path, bond in bonds:
            to = next(meant) if bond.link else None
            note = to if to is not None and to.lower().endswith(".md") else None
            ties.setdefault(path, []).append(
                Tie(bond, note, bond.name or bond.link.rsplit("/", 1)[-1])
            )
        return ties

    def add(self, item: GraphPage) -> None:
        self.remove(item.path)
        super().add(item)
        self.last_order = max(self.last_order, item.order or 0)
        self._named[item.name].add(item.path)
        for bond in item.bonds:
            self._linking[_key(bond.link)].add(item.path)

    def remove(self, path: str) -> None:
        self._states.pop(path, None)
        if (old := self.items.get(path)) is not None:
            self._named[old.name].discard(path)
            for bond in old.bonds:
                self._linking[_key(bond.link)].discard(path)
        super().remove(path)

    def is_needed(self, path: str) -> bool:
        """Whether an entity leads to a note."""
        return any(
            self.items[source].is_own for source in self._into.get(path, ()) if source in self.items
        )

    def update_derived(self, changed: Collection[str], files: Collection[str]) -> None:
        """Find out what relations of changed pages, or to one of the files, lead to, and which notes that draws in."""
        paths = {
            *changed,
            *(source for path in files for source in self._linking.get(_key(path), ())),
        }
        ties = self.resolved(self.items[path] for path in paths if path in self.items)
        touched = set(paths)
        for path in paths:
            old, new = self.ties.pop(path, []), ties.get(path, [])
            if new:
                self.ties[path] = new
            for tie in old:
                self._into[tie.path or (None, tie.name)].discard(path)
            for tie in new:
                self._into[tie.path or (None, tie.name)].add(path)
            touched |= {tie.path for tie in (*old, *new) if tie.path is not None}
        wanted = sorted(path for path in touched if path not in self.items and self.is_needed(path))
        drawn = [self.note_type.read(read) for read in self.extension.read(wanted)]
        for page in drawn:
            self.add(page)
        idle = [
            p
            for p in touched
            if p in self.items and not self.items[p].is_own and not self.is_needed(p)
        ]
        for path in idle:
            self.remove(path)
        if drawn or idle:
            self.update_derived([*(page.path for page in drawn), *idle], ())

    def entity_history(self, store: EnhancedStore, name: str, path: str = "") -> Past[Entity]:
        """All that an entity was, oldest first; nothing for a name that never was one.

        `path` says which page is meant where several users have an entity of that name.
        """

        def entity_on(page: GraphPage) -> Entity | None:
            return None if page.is_stub else Entity(page.name, page.type, page.observations)

        return self._history(store, name, entity_on, path)

    def relation_history(self, store: EnhancedStore, wanted: Relation) -> Past[Relation]:
        """All that a relation was, oldest first."""
        ends = {wanted.target, base_name(self._path_of(wanted.target))}

        def relation_on(page: GraphPage) -> Relation | None:
            same = (bond for bond in page.bonds if bond.type == wanted.type)
            found = next(
                (bond for bond in same if (bond.name or base_name(bond.link)) in ends), None
            )
            return None if found is None else replace(wanted, attributes=found.attributes)

        return self._history(store, wanted.source, relation_on)

    def _history(
        self, store: EnhancedStore, name: str, read: Callable[[GraphPage], V | None], path: str = ""
    ) -> Past[V]:
        """What was read of the page of a name after each change of it, as far as the change made it another."""
        past: Past[V] = []
        for page, when, who in self._states_of(store, path or self._path_of(name)):
            value = read(page) if page is not None and page.name == name else None
            if past and past[-1][2] is None:
                former, begun, _, by = past[-1]
                if former == value:
                    continue
                past[-1] = (former, begun, max(when, begun), by)
            if value is not None:
                past.append((value, when, None, who))
        return past

    def _states_of(self, store: EnhancedStore, path: str) -> States:
        """A page after each change of it, and when and by whom it was made. Read once until it changes."""
        newest = store.extension.last_version()
        for version in store.extension.changes(after=self._upto) if newest != self._upto else ():
            self._states.pop(version.path, None)
            self._states.pop(version.new_path or "", None)
        self._upto = newest
        if (known := self._states.get(path)) is not None:
            return known
        states: States = []

        def add(called: str, version: str | None, since: str, who: str) -> None:
            page = None
            with suppress(SimplememError):
                page = (
                    read_page(f"{called}.md", store.read(called, version=version).text)
                    if version != ""
                    else None
                )
            # git's times, and those without an offset, are local
            states.append((page, datetime.fromisoformat(since).astimezone(UTC), who))

        last: str | None = None
        with suppress(SimplememError):  # no history, and perhaps no note
            for entry in reversed(store.history(name_of(path), limit=_MOST_CHANGES)):
                if entry.op != "recovered":
                    if entry.source != "git" and last and entry.before and entry.before != last:
                        add(entry.name, entry.before, entry.when, "")
                    last = entry.sha256 or ""
                    add(
                        entry.new_name or entry.name,
                        entry.version if last else "",
                        entry.when,
                        entry.who,
                    )
        with suppress(SimplememError):
            memory = store.read(name_of(path))
            if memory.sha256 != last and memory.name == name_of(path):
                add(memory.name, None, memory.modified, "")
        if path in self.items:
            self._states[path] = states
        return states

    def _path_of(self, name: str) -> str:
        """The page of a name: the one there is, else the one it would have had."""
        there = self.entity(name)
        return there.path if there is not None else file_for(name)

    def at(self, when: datetime) -> Graph:
        """The graph as it was at a moment, as far as the history tells: also what was deleted since."""
        with self.reading():
            pages, files = dict(self.items), set(self.extension.indexed())
        for then in (then for then, differs in self.extension.notes_at(when) if differs):
            pages.pop(then.path, None)
            files.discard(then.path)
            if then.data is not None and then.path.lower().endswith(".md"):
                pages[then.path] = read_page(
                    then.path, then.data.decode("utf-8", "replace"), then.sha256 or ""
                )
                files.add(then.path)
        shown = {path: page for path, page in pages.items() if page.is_own}
        drawn = {
            tie.path
            for ties in self.resolved(shown.values(), files).values()
            for tie in ties
            if tie.path
        }
        linked = (pages.get(path) or self.page_at(path) for path in drawn - shown.keys())
        shown |= {page.path: page for page in linked if page is not None}
        return graph_of_pages(
            sorted(shown.values(), key=ENTITY.sort_key), self.resolved(shown.values(), files), shown
        )


def _key(target: str) -> str:
    """What a link and the files it could mean have in common."""
    return compare_key(base_name(target))


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """The graph of a store: one for all who ask."""
    made: dict[str, KnowledgeGraph] = store.extension.services
    return made.get("graph") or made.setdefault("graph", KnowledgeGraph(store))
