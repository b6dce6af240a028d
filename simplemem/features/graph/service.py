"""The knowledge graph of one store: entities and relations that are notes.

A note that an entity has a relation to is part of the graph too, with its own relations, but not
the notes that those lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeVar, Unpack

from simplemem.features.graph.edit import AddedTexts, DeletedObservations, GraphEdit, MergeCounts
from simplemem.features.graph.history import PageHistory, Period, periods_of
from simplemem.features.graph.names import path_for_entity
from simplemem.features.graph.page import ENTITY, GraphPage, read_page
from simplemem.features.graph.pages import GraphPages
from simplemem.features.graph.resolved import Resolutions, build_graph
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.names import base_name

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

R = TypeVar("R")
V = TypeVar("V", Entity, Relation)


class KnowledgeGraph(FeatureService):
    """Reads and changes the graph of a store. Guards its pages and their history. Thread-safe.

    `owner` is the user whose entities count, None for those of all users.

    Each method that changes the graph writes one step, which one undo takes back. `by` is who makes
    the change, with which tool, and why (`AuthorArgs`). Each raises Conflict if a page changed
    since it was read, Unreadable if a page cannot be changed, TooLong if a page would become too
    large, and ReadOnly.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store. The graph is read by the first call that needs it."""
        super().__init__(store)
        self._history = PageHistory(store.extension)
        self.pages = GraphPages(store.extension, on_removed=self._history.remove)

    # Reading

    def read(self, owner: str | None = None) -> Graph:
        """Return the graph, of one user or of all, in the order in which entities were made."""
        with self.pages.reading():
            return self.pages.whole_graph(owner)

    def search(
        self,
        query: str,
        owner: str | None = None,
    ) -> Graph:
        """Return the entities with a text in name, type or an observation, and their relations.

        The text may be part of a word, and case does not matter. Every entity has the text "".
        Entities are in the order in which they were made.
        """
        text = query.lower()
        with self.pages.reading():
            pages = [page for page in self.pages.items.values() if text in page.search_text]
            return self.pages.graph_around(pages, owner)

    def open(
        self,
        names: Iterable[str],
        owner: str | None = None,
    ) -> Graph:
        """Return the entities with exactly these names, and all relations from and to them.

        Entities are in the order in which they were made. Names that none has are left out.
        """
        distinct_names = set(names)
        pages: list[GraphPage] = []
        with self.pages.reading():
            for name in distinct_names:
                pages += self.pages.all_named(name)
            return self.pages.graph_around(pages, owner)

    def entity(self, name: str) -> Entity | None:
        """Return the entity of exactly this name, None if there is none."""
        return next(iter(self.open([name]).entities), None)

    def relation(
        self,
        source: str,
        relation_type: str,
        target: str,
    ) -> Relation | None:
        """Return the relation of this type from one name to another, None if there is none."""
        key = (source, relation_type, target)
        for relation in self.open([source]).relations:
            if relation.key == key:
                return relation
        return None

    def changed_by_others(self) -> int:
        """Return a number that grows when anyone but this process changes the graph.

        The call that reads the graph for the first time counts as such a change.
        """
        with self.pages.lock:
            if self.pages.mark is None:
                self.pages.external_changes += 1
            self.pages.refresh()
            return self.pages.external_changes

    # Changing

    def create_entities(
        self,
        entities: Iterable[Entity],
        *,
        owner: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> list[Entity]:
        """Create entities, and return those that did not exist. Existing ones stay as they are.

        With `owner` they belong to that user, and entities of other users do not count. Of several
        with one name, the first is created.
        """
        entities = list(entities)

        def draft(edit: GraphEdit) -> list[Entity]:
            return edit.create_entities(entities, owner=owner)

        return self._change(draft, by)

    def create_relations(
        self,
        relations: Iterable[Relation],
        *,
        missing: Literal["stub", "skip"] = "stub",
        owner: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> list[Relation]:
        """Create relations, and return those that are new or that got new attributes.

        An existing relation gets the attributes of the new one. If `missing` is "stub", a source
        that is no entity gets a page without a type, which is no entity either. If it is "skip",
        relations with an end that is no entity or note are left out.
        """
        relations = list(relations)

        def draft(edit: GraphEdit) -> list[Relation]:
            return edit.create_relations(relations, missing=missing, owner=owner)

        return self._change(draft, by)

    def add_observations(
        self,
        additions: Iterable[tuple[str, Sequence[Observation]]],
        *,
        missing: Literal["refuse", "skip"] = "refuse",
        owner: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> AddedTexts:
        """Add observations to entities by name. Return for each entity the texts that are new.

        `additions` are pairs of a name and observations. A text that an entity has already is not
        added again. Raises NoSuchEntity for a name of no entity, unless `missing` is "skip": such a
        name is then left out.
        """
        additions = list(additions)

        def draft(edit: GraphEdit) -> AddedTexts:
            return edit.add_observations(additions, missing=missing, owner=owner)

        return self._change(draft, by)

    def delete_entities(
        self,
        names: Sequence[str],
        **by: Unpack[AuthorArgs],
    ) -> list[str]:
        """Move entities to the trash with all their relations. Return the names that none has.

        All entities of a name are moved, of all users. Of a name that none has, relations to it and
        its stubs are removed as well. Raises Invalid, and deletes nothing, if a name is only that
        of a note, which is no entity.
        """
        return self._change(lambda edit: edit.delete_entities(names), by)

    def delete_observations(
        self, deletions: Iterable[tuple[str, Iterable[str]]], **by: Unpack[AuthorArgs]
    ) -> DeletedObservations:
        """Remove all observations with these texts from entities by name.

        `deletions` are pairs of a name and texts. Return how many observations were removed, and
        the names that no entity has. The entities of all users count.
        """
        texts_by_entity = [(name, list(texts)) for name, texts in deletions]

        def draft(edit: GraphEdit) -> DeletedObservations:
            return edit.delete_observations(texts_by_entity)

        return self._change(draft, by)

    def delete_relations(self, relations: Iterable[Relation], **by: Unpack[AuthorArgs]) -> int:
        """Remove relations, and return how many there were. Attributes do not matter.

        Relations that the graph does not have are ignored.
        """
        relations = list(relations)

        def draft(edit: GraphEdit) -> int:
            return edit.delete_relations(relations)

        return self._change(draft, by)

    def update_relation(self, relation: Relation, **by: Unpack[AuthorArgs]) -> None:
        """Set the attributes that `relation` has; others of the relation in the graph stay.

        Raises NotFound if the graph does not have the relation.
        """
        self._change(lambda edit: edit.update_relation(relation), by)

    def merge(self, graph: Graph, **by: Unpack[AuthorArgs]) -> MergeCounts:
        """Add a whole graph, and return how much of it is new. What exists stays as it is."""
        return self._change(lambda edit: edit.merge(graph), by)

    def _change(self, draft: Callable[[GraphEdit], R], by: AuthorArgs) -> R:
        """Write an edit as one step, and return what `draft` returned for it.

        `draft` makes its changes with the edit that it gets. It is called again, with a new edit,
        if a page is saved meanwhile. Raises what `draft` raises, and what the class names.
        """
        author: AuthorArgs = {"who": "", "tool": "graph", "reason": "", **by}
        answer, _ = self.pages.change(draft, author, GraphEdit)
        return answer

    def count_new(self, graph: Graph) -> MergeCounts:
        """Return what `merge` would return if it succeeded, without writing anything.

        Raises Conflict, Unreadable or TooLong only for a stub that would become an entity's page:
        the other pages are not checked.
        """
        with self.pages.reading():
            return GraphEdit(self.pages).merge(graph)

    # The past

    def entity_history(self, name: str, path: str = "") -> list[Period[Entity]]:
        """Return the periods of an entity, oldest first; [] for a name that never was an entity's.

        Their values have name, type and observations only. `path` is the path of the page, needed
        if several users have an entity of that name.
        """

        def entity_on(page: GraphPage) -> Entity | None:
            if page.is_stub:
                return None
            return Entity(page.name, page.type, page.observations)

        return self._periods(name, entity_on, path or self._path_of(name))

    def relation_history(self, relation: Relation) -> list[Period[Relation]]:
        """Return the periods of a relation, oldest first; [] for one that never was in the graph.

        Their values are the relation with the attributes that it had.
        """
        target_path = self._path_of(relation.target)
        target_names = {relation.target, base_name(target_path)}

        def relation_on(page: GraphPage) -> Relation | None:
            for line in page.relation_lines:
                target = line.name or base_name(line.link)
                if line.type == relation.type and target in target_names:
                    return replace(relation, attributes=line.attributes)
            return None

        return self._periods(relation.source, relation_on, self._path_of(relation.source))

    def _periods(
        self, name: str, read: Callable[[GraphPage], V | None], path: str
    ) -> list[Period[V]]:
        """Return the periods of what `read` returns for the page of a name at a path."""
        is_present = path in self.pages.items
        states = self._history.states(self.store, path, cache=is_present)
        return periods_of(states, name, read)

    def _path_of(self, name: str) -> str:
        """Return the path of the entity of a name, or the one that it would have had."""
        entity = self.entity(name)
        if entity is None:
            return path_for_entity(name)
        return entity.path

    def at(self, when: datetime) -> Graph:
        """Return the graph of all users as it was at a moment, as far as the history has it.

        What has been deleted since is in it too. A note that the history does not have is in it as
        it is now.
        """
        notes, files = self._notes_at(when)
        pages = {path: page for path, page in notes.items() if page.is_own}
        resolutions = self.pages.resolve_relations(pages.values(), files)

        # The notes that entities had relations to.
        for path in _target_paths(resolutions) - pages.keys():
            note = notes.get(path) or self.pages.page_at(path)
            if note is not None:
                pages[path] = note

        in_order = sorted(pages.values(), key=ENTITY.sort_key)
        resolutions = self.pages.resolve_relations(pages.values(), files)
        return build_graph(in_order, resolutions, pages)

    def _notes_at(self, when: datetime) -> tuple[dict[str, GraphPage], set[str]]:
        """Return by path the graph's pages at a moment, and the paths of all notes at that time.

        The pages include every note whose text was another one then, whether or not it was an
        entity.
        """
        with self.pages.reading():
            pages = dict(self.pages.items)
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


def _target_paths(resolutions: Resolutions) -> set[str]:
    """Return the paths of all notes that relations of these pages lead to."""
    paths: set[str] = set()
    for relations in resolutions.values():
        for resolved in relations:
            if resolved.path is not None:
                paths.add(resolved.path)
    return paths


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """Return the graph of a store: the one service, which the first call makes."""
    return KnowledgeGraph.of(store)
