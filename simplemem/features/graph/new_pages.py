"""The pages that one change of the graph creates, and the links that its relations get."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simplemem.features.graph.literals import format_literal
from simplemem.features.graph.names import fits_in_path, format_link, path_for_entity
from simplemem.features.graph.page import GraphPage
from simplemem.features.graph.pages import GraphPages
from simplemem.features.graph.values import SHARED, Entity
from simplemem.note.names import base_name, compare_key, name_of


@dataclass(frozen=True)
class NewPage:
    """A page that a change creates, at a path that no file has.

    `order` is its number in the order of creation. A stub only holds relations whose source is no
    entity yet; its `entity` has only a name.
    """

    path: str
    entity: Entity
    order: int
    is_stub: bool


class NewPages:
    """Chooses the paths of new pages, and the links to new and old pages.

    Guards the new pages by name, the file names that are reserved for them, and the last number in
    the order of creation. `owner` is the user whose entities are changed, None for all users.
    Nothing is written.
    """

    def __init__(self, pages: GraphPages) -> None:
        """Begin without new pages. `pages` are those that the graph has."""
        self.owner: str | None = None
        self.by_name: dict[str, NewPage] = {}
        self._pages = pages
        self._extension = pages.extension
        self._last_order = pages.last_order
        # By the key of a file name: the name that a new file, or a new unresolved link, is for.
        self._reserved: dict[str, str] = {}

    def next_order(self) -> int:
        """Return the next number in the order of creation. Each call returns another one."""
        self._last_order += 1
        return self._last_order

    def create(self, entity: Entity, *, is_stub: bool = False) -> str:
        """Add a page for an entity that has none, or a stub of its name. Return its path.

        The page belongs to the user `owner`, and its file name is reserved.
        """
        owner = self.owner or ""
        if owner == SHARED:
            owner = ""
        entity = replace(entity, owner=owner)

        def is_taken(path: str) -> bool:
            return self._is_path_taken(path, entity.name)

        path = path_for_entity(entity.name, is_taken, owner)
        self._reserved[compare_key(base_name(path))] = entity.name
        self.by_name[entity.name] = NewPage(path, entity, self.next_order(), is_stub)
        return path

    def _is_path_taken(self, path: str, name: str) -> bool:
        """Return whether the new page of a name cannot have a path.

        Its file name may be reserved for another name, a link of another name may resolve to it, or
        a file may have the path or the file name already.
        """
        stem = base_name(path)
        reserved_for = self._reserved.get(compare_key(stem), name)
        if reserved_for != name or self._pages.is_awaited(stem, name):
            return True
        if self._extension.files_called(stem) or self._extension.files_called(f"{stem}.md"):
            return True
        return self._extension.exists(path)

    def link_to(self, name: str, source: str) -> str:
        """Return a link from the page at the path `source` to the page or note of a name.

        It is in brackets, as it stands on a page. For a name that has no page or note, return an
        unresolved link, or a literal if a link cannot carry the name or would resolve to another
        note. An unresolved link reserves its file name.
        """
        new = self.by_name.get(name)
        if new is not None and not new.is_stub:
            # The index does not know the file yet, and no other has its name.
            return format_link(base_name(new.path), name)

        page = self._pages.named(name, self.owner)
        if page is None or page.is_stub:
            return self._link_to_missing(name, source, stub=page)
        return format_link(self._shortest_target(page.path, source), name)

    def _link_to_missing(
        self,
        name: str,
        source: str,
        *,
        stub: GraphPage | None,
    ) -> str:
        """Return a link from `source` to a name that the graph does not have, or only as `stub`.

        It may be the name of a note that is not in the graph yet. Otherwise the link is unresolved
        or a literal, as for `link_to`.
        """
        if not fits_in_path(name):
            return format_literal(name)

        [target] = self._extension.resolve_links([(name, source)])
        resolves_to_stub = stub is not None and target == stub.path
        if target is None or resolves_to_stub:
            return self._unresolved_link(name)

        note = None
        if target.lower().endswith(".md"):
            note = self._pages.page_at(target)
        if note is None or note.name != name or not note.is_of(self.owner):
            return format_literal(name)
        return format_link(self._shortest_target(note.path, source), name)

    def _unresolved_link(self, name: str) -> str:
        """Return a link that the file of a new entity will resolve, and reserve its file name.

        Return a literal if a file name that differs only in case is reserved for another name.
        """
        reserved_for = self._reserved.setdefault(compare_key(name), name)
        if reserved_for != name:
            return format_literal(name)
        return f"[[{name}]]"

    def _shortest_target(self, path: str, source: str) -> str:
        """Return the shortest target that resolves to a path in a link from `source`.

        It is the bare name of the file, else the path without `.md`, else the whole path.
        """
        candidates = (base_name(path), name_of(path))
        resolved = self._extension.resolve_links([(target, source) for target in candidates])
        for target, resolved_path in zip(candidates, resolved, strict=True):
            if resolved_path == path:
                return target
        return path
