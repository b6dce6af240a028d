"""The pages of a vault's graph, with what their relations lead to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from simplemem.features.collection import NoteCollection
from simplemem.features.graph.page import ENTITY, GraphPage
from simplemem.features.graph.path_index import PathIndex
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
    use it inside `reading`, or in a draft of `change`. `owner` is the user whose pages count, None
    for those of all users.
    """

    def __init__(self, extension: ExtensionAPI, on_removed: Callable[[str], None]) -> None:
        """Create the collection without any pages. `on_removed` gets the path of a removed page."""
        super().__init__(extension, ENTITY)
        self.resolutions: dict[str, list[ResolvedRelation]] = {}  # by path of the page
        self.last_order = 0  # the highest number in the order of creation
        self._on_removed = on_removed
        self._by_name = PathIndex[str]()
        self._by_link = PathIndex[str]()  # by the keys of the links on a page
        self._by_target = PathIndex[RelationTarget]()  # by what the relations of a page lead to

    # Lookups

    def all_named(
        self,
        name: str,
        owner: str | None = None,
    ) -> list[GraphPage]:
        """Return the pages of exactly this name, of one user or of all, in order of creation.

        Entities and stubs are before notes. [] if no page has the name.
        """
        paths = self._by_name.paths(name)
        pages = [self.items[path] for path in paths]
        pages = _of_owner(pages, owner)
        return sorted(pages, key=ENTITY.sort_key)

    def named(
        self,
        name: str,
        owner: str | None = None,
    ) -> GraphPage | None:
        """Return the page of exactly this name: an entity, else a note, else a stub, else None.

        Of several, it is the one that was created first.
        """
        pages = self.all_named(name, owner)
        return min(pages, key=_preference, default=None)

    def page_of(
        self,
        name: str,
        owner: str | None = None,
    ) -> GraphPage | None:
        """Return the page of the entity or note of exactly this name; None for a stub or no page.

        Of several, it is the one that `named` returns.
        """
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
        if read is None:
            return None
        return self.note_type.read(read)

    def pointing_at(
        self,
        path: str,
        name: str,
    ) -> list[GraphPage]:
        """Return the pages with a relation to a path, or to a name that has no note, in no order.

        The path "" leaves only those with a relation to the name.
        """
        to_path = self._by_target.paths(path)
        to_name = self._by_target.paths((None, name))
        sources = to_path | to_name
        return [self.items[source] for source in sources if source in self.items]

    def is_awaited(
        self,
        stem: str,
        name: str,
    ) -> bool:
        """Return whether a new file would resolve a link that is meant for another name.

        `stem` is the name of the file without `.md`, and `name` that of its entity.
        """
        key = _link_key(stem)
        for source in self._by_link.paths(key):
            for resolved in self.resolutions.get(source, ()):
                is_for_other_name = resolved.path is None and resolved.name != name
                if is_for_other_name and _link_key(resolved.line.link) == key:
                    return True
        return False

    # Graphs

    def whole_graph(self, owner: str | None = None) -> Graph:
        """Return the graph, of one user or of all, in the order in which entities were made.

        The notes that entities have relations to are in it, after the entities.
        """
        pages = _of_owner(self.in_order(), owner)
        return build_graph(pages, self.resolutions, self.items)

    def graph_around(self, pages: Iterable[GraphPage], owner: str | None = None) -> Graph:
        """Return pages as entities, in order of creation, with all relations from and to them.

        With `owner`, neither entities nor relations of other users are in it. Stubs are left out.
        """
        pages = _of_owner(pages, owner)
        entities = [page for page in pages if not page.is_stub]
        entities.sort(key=ENTITY.sort_key)
        names = {entity.name for entity in entities}

        sources = self._with_pages_pointing_at(entities, owner)
        graph = build_graph(sources, self.resolutions, self.items)
        relations = [
            relation
            for relation in graph.relations
            if relation.source in names or relation.target in names
        ]
        return Graph(tuple(entities), tuple(relations))

    def _with_pages_pointing_at(
        self,
        entities: Iterable[GraphPage],
        owner: str | None,
    ) -> list[GraphPage]:
        """Return entities, and the pages of a user with relations to them, in order of creation."""
        pages = {}
        for entity in entities:
            pages[entity.path] = entity
            pointing = self.pointing_at(entity.path, entity.name)
            for page in _of_owner(pointing, owner):
                pages[page.path] = page
        return sorted(pages.values(), key=ENTITY.sort_key)

    # Relations

    def resolve_relations(
        self,
        pages: Iterable[GraphPage],
        among: Collection[str] | None = None,
    ) -> dict[str, list[ResolvedRelation]]:
        """Return what the relations of pages lead to, by path of the page. Changes nothing.

        Pages without relations are left out. With `among`, links are resolved as if the vault had
        only these files.
        """
        pages = [page for page in pages if page.relation_lines]
        links: list[tuple[str, str]] = []  # the target of each link, and the page that it is on
        for page in pages:
            targets = [line.link for line in page.relation_lines if line.link]
            links += [(target, page.path) for target in targets]
        # One call for all links, whose answers are in the same order.
        linked_paths = iter(self.extension.resolve_links(links, among))

        resolutions: dict[str, list[ResolvedRelation]] = {}
        for page in pages:
            resolved: list[ResolvedRelation] = []
            for line in page.relation_lines:
                linked_path = None
                if line.link:
                    linked_path = next(linked_paths)
                resolved.append(resolve_line(line, linked_path))
            resolutions[page.path] = resolved
        return resolutions

    # Changes

    def add(self, item: GraphPage) -> None:
        """Add a page, or replace the one with its path. Its relations are not resolved yet."""
        self.remove(item.path)
        super().add(item)
        self.last_order = max(self.last_order, item.order or 0)
        self._by_name.add(item.name, item.path)
        for line in item.relation_lines:
            self._by_link.add(_link_key(line.link), item.path)

    def remove(self, path: str) -> None:
        """Remove a page, if the graph has it.

        What its relations lead to stays in `resolutions` until `update_derived`.
        """
        self._on_removed(path)
        page = self.items.get(path)
        if page is not None:
            self._by_name.remove(page.name, path)
            for line in page.relation_lines:
                self._by_link.remove(_link_key(line.link), path)
        super().remove(path)

    def is_needed(self, path: str) -> bool:
        """Return whether an entity has a relation to a note, so that the note is kept as a page."""
        for source in self._by_target.paths(path):
            page = self.items.get(source)
            if page is not None and page.is_own:
                return True
        return False

    def update_derived(self, changed: Collection[str], files: Collection[str]) -> None:
        """Resolve the relations of changed pages again, and those with a link to a name of `files`.

        Add the notes that entities now have relations to, and remove those that they no longer
        have relations to. `changed` are paths of pages, and `files` paths of any files that were
        created or deleted.
        """
        touched = self._update_resolutions(changed, files)
        added = self._add_needed(touched)
        removed = self._remove_unneeded(touched)
        if added or removed:
            # These pages have relations too, whose targets may come or go.
            self.update_derived([*added, *removed], ())

    def _update_resolutions(
        self,
        changed: Collection[str],
        files: Collection[str],
    ) -> set[str]:
        """Resolve relations again. Return the paths of their pages, and old and new targets."""
        paths = set(changed)
        for path in files:
            paths |= self._by_link.paths(_link_key(path))

        pages = [self.items[path] for path in paths if path in self.items]
        resolutions = self.resolve_relations(pages)
        touched = set(paths)
        for path in paths:
            new = resolutions.get(path, [])
            touched |= self._replace_resolutions(path, new)
        return touched

    def _replace_resolutions(
        self,
        path: str,
        new: list[ResolvedRelation],
    ) -> set[str]:
        """Set what the relations of a page lead to. Return the paths of old and new targets."""
        old = self.resolutions.pop(path, [])
        if new:
            self.resolutions[path] = new

        for resolved in old:
            self._by_target.remove(resolved.target, path)
        for resolved in new:
            self._by_target.add(resolved.target, path)

        target_paths: set[str] = set()
        for resolved in (*old, *new):
            if resolved.path is not None:
                target_paths.add(resolved.path)
        return target_paths

    def _add_needed(self, paths: Iterable[str]) -> list[str]:
        """Add those of these notes that an entity relates to. Return the added paths."""
        missing = [path for path in paths if path not in self.items]
        needed = [path for path in missing if self.is_needed(path)]

        added: list[str] = []
        for read in self.extension.read(sorted(needed)):
            page = self.note_type.read(read)
            self.add(page)
            added.append(page.path)
        return added

    def _remove_unneeded(self, paths: Iterable[str]) -> list[str]:
        """Remove those of these notes that no entity relates to. Return the removed paths."""
        removed: list[str] = []
        for path in paths:
            page = self.items.get(path)
            is_note = page is not None and not page.is_own
            if is_note and not self.is_needed(path):
                self.remove(path)
                removed.append(path)
        return removed


def _preference(page: GraphPage) -> tuple[bool, bool]:
    """Return what sorts pages of one name: entities, then notes, then stubs."""
    return (page.is_stub, not page.is_own)


def _of_owner(pages: Iterable[GraphPage], owner: str | None) -> list[GraphPage]:
    """Return the pages of one user, or all pages for None."""
    return [page for page in pages if page.is_of(owner)]


def _link_key(target: str) -> str:
    """Return what a link has in common with the files that it may resolve to: their name.

    It is the part after the last slash, without `.md`, so that letter case does not matter.
    """
    return compare_key(base_name(target))
