"""The pages of a vault's graph, with what their relations lead to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from simplemem.features.collection import NoteCollection
from simplemem.features.graph.page import ENTITY, GraphPage
from simplemem.features.graph.resolved import (
    RelationTarget,
    ResolvedRelation,
    build_graph,
    resolve_line,
)
from simplemem.features.graph.values import Graph
from simplemem.note.names import base_name, compare_key
from simplemem.store import ExtensionAPI


class GraphPages(NoteCollection[GraphPage]):
    """The entities of a vault as pages, and the notes that entities have relations to.

    Guards the pages by name, and what the relations of each page lead to (`resolutions`). A page
    and the targets of its relations are known by their paths, so they survive a rename. Callers
    use it inside `reading`.
    """

    def __init__(self, extension: ExtensionAPI, on_removed: Callable[[str], None]) -> None:
        """Create the collection without any pages. `on_removed` gets the path of a removed page."""
        super().__init__(extension, ENTITY)
        self.resolutions: dict[str, list[ResolvedRelation]] = {}  # by path of the page
        self.last_order = 0  # the highest number in the order of creation
        self._on_removed = on_removed
        # Paths of pages by their names, by the names in their links, by what relations lead to.
        self._by_name = defaultdict[str, set[str]](set)
        self._by_link = defaultdict[str, set[str]](set)
        self._by_target = defaultdict[RelationTarget, set[str]](set)

    # Lookups

    def all_named(self, name: str, owner: str | None = None) -> list[GraphPage]:
        """Return the pages of exactly this name, of one user or of all, in the order of creation."""
        pages = [self.items[path] for path in self._by_name.get(name, ())]
        return sorted(_of_owner(pages, owner), key=ENTITY.sort_key)

    def named(self, name: str, owner: str | None = None) -> GraphPage | None:
        """Return the page of exactly this name: the entity, else the note, else the stub."""
        pages = self.all_named(name, owner)
        return min(pages, key=lambda page: (page.is_stub, not page.is_own), default=None)

    def page_of(self, name: str, owner: str | None = None) -> GraphPage | None:
        """Return the page of the entity or note of exactly this name, None if there is none."""
        page = self.named(name, owner)
        if page is None or page.is_stub:
            return None
        return page

    def page_at(self, path: str) -> GraphPage | None:
        """Return a note as a page, whether or not it is part of the graph; None without a file."""
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
        """Return whether a new file would resolve a link that is meant for another name.

        `stem` is the name of the file, and `name` that of its entity.
        """
        key = _link_key(stem)
        for source in self._by_link.get(key, ()):
            for resolved in self.resolutions.get(source, ()):
                is_unresolved = resolved.path is None and _link_key(resolved.line.link) == key
                if is_unresolved and resolved.name != name:
                    return True
        return False

    # Graphs

    def whole_graph(self, owner: str | None = None) -> Graph:
        """Return the graph, of one user or of all, in the order in which entities were made."""
        pages = _of_owner(self.in_order(), owner)
        return build_graph(pages, self.resolutions, self.items)

    def graph_around(self, pages: Iterable[GraphPage], owner: str | None = None) -> Graph:
        """Return pages as entities, with all relations that have an end among them.

        With `owner`, neither entities nor relations of other users are in it. Stubs are left out.
        """
        entities = [page for page in _of_owner(pages, owner) if not page.is_stub]
        entities.sort(key=ENTITY.sort_key)

        sources = {entity.path: entity for entity in entities}
        for entity in entities:
            pointing = self.pointing_at(entity.path, entity.name)
            for page in _of_owner(pointing, owner):
                sources[page.path] = page
        in_order = sorted(sources.values(), key=ENTITY.sort_key)
        graph = build_graph(in_order, self.resolutions, self.items)

        names = {entity.name for entity in entities}
        relations = [
            relation
            for relation in graph.relations
            if relation.source in names or relation.target in names
        ]
        return Graph(tuple(entities), tuple(relations))

    def resolve_relations(
        self, pages: Iterable[GraphPage], among: Collection[str] | None = None
    ) -> dict[str, list[ResolvedRelation]]:
        """Return what the relations of pages lead to, by path of the page.

        With `among`, links are resolved as if the vault had only these files. Changes nothing.
        """
        lines = [(page.path, line) for page in pages for line in page.relation_lines]
        links = [(line.link, path) for path, line in lines if line.link]
        linked_paths = iter(self.extension.resolve_links(links, among))

        resolutions: dict[str, list[ResolvedRelation]] = {}
        for path, line in lines:
            linked_path = next(linked_paths) if line.link else None
            resolutions.setdefault(path, []).append(resolve_line(line, linked_path))
        return resolutions

    # Changes

    def add(self, item: GraphPage) -> None:
        """Add a page, or replace the one with its path. Its relations are not resolved yet."""
        self.remove(item.path)
        super().add(item)
        self.last_order = max(self.last_order, item.order or 0)
        self._by_name[item.name].add(item.path)
        for line in item.relation_lines:
            self._by_link[_link_key(line.link)].add(item.path)

    def remove(self, path: str) -> None:
        """Remove a page, if the graph has it. What its relations lead to stays until an update."""
        self._on_removed(path)
        page = self.items.get(path)
        if page is not None:
            self._by_name[page.name].discard(path)
            for line in page.relation_lines:
                self._by_link[_link_key(line.link)].discard(path)
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
        touched = self._update_resolutions(changed, files)

        missing = [path for path in touched if path not in self.items and self.is_needed(path)]
        added = [self.note_type.read(read) for read in self.extension.read(sorted(missing))]
        for page in added:
            self.add(page)

        unneeded = [path for path in touched if self._is_unneeded(path)]
        for path in unneeded:
            self.remove(path)

        # These pages have relations too, whose targets may come or go.
        if added or unneeded:
            added_paths = [page.path for page in added]
            self.update_derived([*added_paths, *unneeded], ())

    def _update_resolutions(self, changed: Collection[str], files: Collection[str]) -> set[str]:
        """Resolve relations again. Return the paths of their pages, and old and new targets."""
        paths = set(changed)
        for path in files:
            paths.update(self._by_link.get(_link_key(path), ()))

        pages = [self.items[path] for path in paths if path in self.items]
        resolutions = self.resolve_relations(pages)
        touched = set(paths)
        for path in paths:
            touched |= self._replace_resolutions(path, resolutions.get(path, []))
        return touched

    def _replace_resolutions(self, path: str, new: list[ResolvedRelation]) -> set[str]:
        """Set what the relations of a page lead to. Return the paths of old and new targets."""
        old: Sequence[ResolvedRelation] = self.resolutions.pop(path, [])
        if new:
            self.resolutions[path] = new
        for resolved in old:
            self._by_target[resolved.target].discard(path)
        for resolved in new:
            self._by_target[resolved.target].add(path)
        return {resolved.path for resolved in (*old, *new) if resolved.path is not None}

    def _is_unneeded(self, path: str) -> bool:
        """Return whether the graph has a note that no entity has a relation to any more."""
        page = self.items.get(path)
        return page is not None and not page.is_own and not self.is_needed(path)


def _of_owner(pages: Iterable[GraphPage], owner: str | None) -> list[GraphPage]:
    """Return the pages of one user, or all pages for None."""
    return [page for page in pages if page.is_of(owner)]


def _link_key(target: str) -> str:
    """Return what a link has in common with the files that it may resolve to."""
    return compare_key(base_name(target))
