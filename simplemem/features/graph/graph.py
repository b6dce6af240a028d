"""The knowledge graph of one store: entities and relations that are notes.

A page and the targets of its relations are known by their paths, so they survive a rename. A note
that an entity has a relation to is part of the graph too, with its own relations, but not the
notes that those lead to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from simplemem.features.collection import NoteCollection
from simplemem.features.graph.edit import GraphEdit, path_for_entity
from simplemem.features.graph.history import PageHistory, Period, periods_of
from simplemem.features.graph.page import ENTITY, Bond, GraphPage, Tie, graph_of_pages, read_page
from simplemem.features.graph.values import Entity, Graph, Relation
from simplemem.models import AuthorArgs
from simplemem.note.names import base_name, compare_key

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

P = ParamSpec("P")
R = TypeVar("R")
Target = str | tuple[None, str]  # the path that a relation leads to, or the name that has no note


def _as_step(draft: Callable[Concatenate[GraphEdit, P], R]) -> Callable[..., R]:
    """Return a method of the graph that writes an edit as one step.

    The method also takes who makes the change, with which tool, and why (`AuthorArgs`).
    """

    @wraps(draft)
    def change(
        graph: KnowledgeGraph,
        *args: Any,
        who: str = "",
        tool: str = "graph",
        reason: str = "",
        **options: Any,
    ) -> R:
        by = AuthorArgs(who=who, tool=tool, reason=reason)
        answer, _ = graph.change(lambda edit: draft(edit, *args, **options), by, GraphEdit)
        return answer

    return change


class KnowledgeGraph(NoteCollection[GraphPage]):
    """The pages of a vault's entities, with what their relations lead to. It is thread-safe."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store.extension, ENTITY)
        self.ties: dict[str, list[Tie]] = {}  # by path of the page that has the relations
        self.last_order = 0
        # Paths of pages by their names, by the names in their links, by what relations lead to.
        self._by_name = defaultdict[str, set[str]](set)
        self._by_link = defaultdict[str, set[str]](set)
        self._by_target = defaultdict[Target, set[str]](set)
        self._history = PageHistory(store.extension)

    def read(self, owner: str | None = None) -> Graph:
        """Return the graph, of one user or of all, in the order in which entities were made."""
        with self.reading():
            pages = [page for page in self.in_order() if page.is_of(owner)]
            return graph_of_pages(pages, self.ties, self.items)

    def search(self, query: str, owner: str | None = None) -> Graph:
        """Return the entities with a text in name, type or an observation, and their relations.

        Case does not matter.
        """
        with self.reading():
            text = query.lower()
            pages = [page for page in self.items.values() if text in page.searched]
            return self._part(pages, owner)

    def open(self, names: Iterable[str], owner: str | None = None) -> Graph:
        """Return the entities with these names, and their relations."""
        with self.reading():
            pages = [page for name in set(names) for page in self.all_named(name)]
            return self._part(pages, owner)

    def entity(self, name: str) -> Entity | None:
        """Return the entity of exactly this name."""
        return next(iter(self.open([name]).entities), None)

    def relation(self, source: str, kind: str, target: str) -> Relation | None:
        """Return the relation of this type from one name to another."""
        key = (source, kind, target)
        relations = self.open([source]).relations
        return next((relation for relation in relations if relation.key == key), None)

    def changed_by_others(self) -> int:
        """Return a number that grows when anyone but this process changes the graph.

        It also grows while this process has not read the graph yet.
        """
        with self.lock:
            if self.mark is None:
                self.external_changes += 1
            self.refresh()
            return self.external_changes

    create_entities = _as_step(GraphEdit.create_entities)
    create_relations = _as_step(GraphEdit.create_relations)
    add_observations = _as_step(GraphEdit.add_observations)
    delete_entities = _as_step(GraphEdit.delete_entities)
    delete_observations = _as_step(GraphEdit.delete_observations)
    delete_relations = _as_step(GraphEdit.delete_relations)
    update_relation = _as_step(GraphEdit.update_relation)
    merge = _as_step(GraphEdit.merge)

    def count_new(self, graph: Graph) -> tuple[int, int, int]:
        """Return what `merge` would return, without writing anything."""
        with self.reading():
            return GraphEdit(self).merge(graph)

    def all_named(self, name: str, owner: str | None = None) -> list[GraphPage]:
        """Return the pages of exactly this name, of one user or of all."""
        pages = [self.items[path] for path in self._by_name.get(name, ())]
        return sorted((page for page in pages if page.is_of(owner)), key=ENTITY.sort_key)

    def named(self, name: str, owner: str | None = None) -> GraphPage | None:
        """Return the page of exactly this name: the entity, else the note, else the stub."""
        pages = self.all_named(name, owner)
        return min(pages, key=lambda page: (page.is_stub, not page.is_own), default=None)

    def page_of(self, name: str, owner: str | None = None) -> GraphPage | None:
        """Return the page of the entity or note of exactly this name."""
        page = self.named(name, owner)
        if page is None or page.is_stub:
            return None
        return page

    def page_at(self, path: str) -> GraphPage | None:
        """Return a note as a page, whether or not it is part of the graph."""
        page = self.items.get(path)
        if page is not None:
            return page
        read = next(iter(self.extension.read([path])), None)
        return None if read is None else self.note_type.read(read)

    def pointing_at(self, path: str, name: str) -> list[GraphPage]:
        """Return the pages with a relation to a path, or to a name that has no note."""
        sources = {*self._by_target.get(path, ()), *self._by_target.get((None, name), ())}
        return [self.items[source] for source in sources if source in self.items]

    def is_awaited(self, stem: str, name: str) -> bool:
        """Return whether a new file would resolve a link that is meant for another name."""
        key = _link_key(stem)
        for source in self._by_link.get(key, ()):
            for tie in self.ties.get(source, ()):
                is_unresolved = tie.path is None and _link_key(tie.bond.link) == key
                if is_unresolved and tie.name != name:
                    return True
        return False

    def _part(self, pages: Iterable[GraphPage], owner: str | None = None) -> Graph:
        """Return pages as entities, with the relations that have an end among them.

        With `owner`, neither entities nor relations of other users are in it.
        """
        entities = sorted(
            (page for page in pages if not page.is_stub and page.is_of(owner)),
            key=ENTITY.sort_key,
        )
        names = {page.name for page in entities}

        sources: dict[str, GraphPage] = {}
        for entity in entities:
            for page in (entity, *self.pointing_at(entity.path, entity.name)):
                if page.is_of(owner):
                    sources[page.path] = page
        in_order = sorted(sources.values(), key=ENTITY.sort_key)
        relations = graph_of_pages(in_order, self.ties, self.items).relations
        return Graph(
            tuple(entities),
            tuple(
                relation
                for relation in relations
                if relation.source in names or relation.target in names
            ),
        )

    def resolve_relations(
        self, pages: Iterable[GraphPage], among: Collection[str] | None = None
    ) -> dict[str, list[Tie]]:
        """Return what the relations of pages lead to, by path of the page.

        With `among`, links are resolved as if the vault had only these files.
        """
        bonds = [(page.path, bond) for page in pages for bond in page.bonds]
        links = [(bond.link, path) for path, bond in bonds if bond.link]
        resolved = iter(self.extension.resolve_links(links, among))
        ties: dict[str, list[Tie]] = {}
        for path, bond in bonds:
            target = next(resolved) if bond.link else None
            ties.setdefault(path, []).append(_tie(bond, target))
        return ties

    def add(self, item: GraphPage) -> None:
        """Add a page, or replace the one with its path."""
        self.remove(item.path)
        super().add(item)
        self.last_order = max(self.last_order, item.order or 0)
        self._by_name[item.name].add(item.path)
        for bond in item.bonds:
            self._by_link[_link_key(bond.link)].add(item.path)

    def remove(self, path: str) -> None:
        """Remove a page, if the graph has it."""
        self._history.remove(path)
        page = self.items.get(path)
        if page is not None:
            self._by_name[page.name].discard(path)
            for bond in page.bonds:
                self._by_link[_link_key(bond.link)].discard(path)
        super().remove(path)

    def is_needed(self, path: str) -> bool:
        """Return whether an entity has a relation to a note."""
        sources = [self.items.get(source) for source in self._by_target.get(path, ())]
        return any(source is not None and source.is_own for source in sources)

    def update_derived(self, changed: Collection[str], files: Collection[str]) -> None:
        """Resolve the relations of changed pages and those that may lead to the files.

        Add the notes that entities now have relations to, and remove those that they no longer
        have relations to.
        """
        touched = self._update_ties(changed, files)

        missing = sorted(
            path for path in touched if path not in self.items and self.is_needed(path)
        )
        added = [self.note_type.read(read) for read in self.extension.read(missing)]
        for page in added:
            self.add(page)
        unneeded = [path for path in touched if self._is_unneeded(path)]
        for path in unneeded:
            self.remove(path)
        if added or unneeded:
            self.update_derived([*(page.path for page in added), *unneeded], ())

    def _update_ties(self, changed: Collection[str], files: Collection[str]) -> set[str]:
        """Resolve relations again. Return the paths of their pages, and old and new targets."""
        paths = set(changed)
        for path in files:
            paths.update(self._by_link.get(_link_key(path), ()))

        ties = self.resolve_relations(self.items[path] for path in paths if path in self.items)
        touched = set(paths)
        for path in paths:
            touched |= self._replace_ties(path, ties.get(path, []))
        return touched

    def _replace_ties(self, path: str, new: list[Tie]) -> set[str]:
        """Set what the relations of a page lead to. Return the paths of old and new targets."""
        old = self.ties.pop(path, [])
        if new:
            self.ties[path] = new
        for tie in old:
            self._by_target[_target_of(tie)].discard(path)
        for tie in new:
            self._by_target[_target_of(tie)].add(path)
        return {tie.path for tie in (*old, *new) if tie.path is not None}

    def _is_unneeded(self, path: str) -> bool:
        page = self.items.get(path)
        return page is not None and not page.is_own and not self.is_needed(path)

    def entity_history(
        self, store: EnhancedStore, name: str, path: str = ""
    ) -> list[Period[Entity]]:
        """Return all that an entity was, oldest first; nothing for a name that never was one.

        `path` says which page is meant if several users have an entity of that name.
        """

        def entity_on(page: GraphPage) -> Entity | None:
            if page.is_stub:
                return None
            return Entity(page.name, page.type, page.observations)

        return self._periods(store, name, entity_on, path)

    def relation_history(self, store: EnhancedStore, relation: Relation) -> list[Period[Relation]]:
        """Return all that a relation was, oldest first."""
        target_names = {relation.target, base_name(self._path_of(relation.target))}

        def relation_on(page: GraphPage) -> Relation | None:
            for bond in page.bonds:
                target = bond.name or base_name(bond.link)
                if bond.type == relation.type and target in target_names:
                    return replace(relation, attributes=bond.attributes)
            return None

        return self._periods(store, relation.source, relation_on)

    def _periods(
        self, store: EnhancedStore, name: str, read: Callable[[GraphPage], Any], path: str = ""
    ) -> list[Period[Any]]:
        path = path or self._path_of(name)
        states = self._history.states(store, path, cache=path in self.items)
        return periods_of(states, name, read)

    def _path_of(self, name: str) -> str:
        """Return the path of the entity of a name, or the one that it would have had."""
        entity = self.entity(name)
        return path_for_entity(name) if entity is None else entity.path

    def at(self, when: datetime) -> Graph:
        """Return the graph as it was at a moment, as far as the history has it.

        What has been deleted since is in it too.
        """
        pages, files = self._notes_at(when)
        included = {path: page for path, page in pages.items() if page.is_own}
        ties = self.resolve_relations(included.values(), files)
        targets = {tie.path for own in ties.values() for tie in own if tie.path}
        for path in targets - included.keys():
            page = pages.get(path) or self.page_at(path)
            if page is not None:
                included[page.path] = page

        in_order = sorted(included.values(), key=ENTITY.sort_key)
        return graph_of_pages(in_order, self.resolve_relations(included.values(), files), included)

    def _notes_at(self, when: datetime) -> tuple[Mapping[str, GraphPage], set[str]]:
        """Return the pages of the graph and the paths of all notes at a moment."""
        with self.reading():
            pages = dict(self.items)
            files = set(self.extension.indexed())
        for note, is_different in self.extension.notes_at(when):
            if not is_different:
                continue
            pages.pop(note.path, None)
            files.discard(note.path)
            if note.data is not None and note.path.lower().endswith(".md"):
                text = note.data.decode("utf-8", "replace")
                pages[note.path] = read_page(note.path, text, note.sha256 or "")
                files.add(note.path)
        return pages, files


def _tie(bond: Bond, target: str | None) -> Tie:
    """Return a relation with the path it leads to, if that is a note, and the name it gives."""
    is_note = target is not None and target.lower().endswith(".md")
    name = bond.name or bond.link.rsplit("/", 1)[-1]
    return Tie(bond, target if is_note else None, name)


def _target_of(tie: Tie) -> Target:
    return tie.path or (None, tie.name)


def _link_key(target: str) -> str:
    """Return what a link has in common with the files that it may resolve to."""
    return compare_key(base_name(target))


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """Return the graph of a store, and make it on the first call."""
    services: dict[str, KnowledgeGraph] = store.extension.services
    return services.get("graph") or services.setdefault("graph", KnowledgeGraph(store))
