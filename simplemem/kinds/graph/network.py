"""The pages of the graph as this process knows them, and what their relations lead to.

A page is known by its path, and what its relations mean by path as well; names are looked up when they are told. So a note
that is renamed, or a title that a person mends, takes its relations along. A note that an entity leads to is part of the
graph too, with its own relations; what those lead to is not drawn in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from simplemem.kinds.graph.page import ENTITY, Bond, GraphPage, place
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.kinds.kind import Lookup, Shelf
from simplemem.note.names import base_name, compare_key
from simplemem.store import Bench

_MANY = 500


class Tie(NamedTuple):
    """A bond with what it leads to: a page, or no more than a name."""

    bond: Bond
    path: str | None
    name: str

    @property
    def end(self) -> object:
        return self.path or (None, self.name)


class Network(Shelf[GraphPage]):
    """All pages of a vault."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, ENTITY)
        self._named, self._linking = Lookup(set), Lookup(set)  # pages by their names, by the names that they link to
        self._into = Lookup(set)  # pages by the path or the name that a relation of theirs leads to
        self.ties: dict[str, list[Tie]] = {}
        self.last_order = 0

    # -- asking

    def all_named(self, name: str) -> list[GraphPage]:
        return sorted((self.items[path] for path in self._named.get(name, ())), key=place)

    def named(self, name: str) -> GraphPage | None:
        """The page of an exact name: the entity, else the note, else the stub that has it."""
        return min(self.all_named(name), key=lambda page: (page.is_stub, not page.is_own), default=None)

    def entity(self, name: str) -> GraphPage | None:
        """The page of an entity or a note."""
        page = self.named(name)
        return None if page is None or page.is_stub else page

    def page_at(self, path: str) -> GraphPage | None:
        """A note as a page, whether or not it is part of the graph."""
        return self.items.get(path) or next(map(self.kind.read, self.bench.read([path])), None)

    def pointing_at(self, path: str, name: str) -> list[GraphPage]:
        """The pages with a relation to a page of this name, or to the name alone."""
        both = {*self._into.get(path, ()), *self._into.get((None, name), ())}
        return [self.items[each] for each in both if each in self.items]

    def is_awaited(self, stem: str, name: str) -> bool:
        """Whether a link that leads nowhere would lead to a new file, though it says another name."""
        key = _key(stem)
        ties = (tie for source in self._linking.get(key, ()) for tie in self.ties.get(source, ()))
        return any(tie.path is None and tie.name != name and _key(tie.bond.link) == key for tie in ties)

    def graph(self, pages: Iterable[GraphPage]) -> Graph:
        """Pages as entities, with the relations that have an end among them."""
        some = sorted((page for page in pages if not page.is_stub), key=place)
        near = self.items  # of many all are looked through
        if len(some) <= _MANY:
            near = {each.path: each for page in some for each in (page, *self.pointing_at(page.path, page.name))}
        names = {page.name for page in some}
        every = graph_of_pages(sorted(near.values(), key=place), self.ties, self.items).relations
        relations = tuple(each for each in every if each.source in names or each.target in names)
        return Graph(tuple(map(entity_of, some)), relations)

    # -- what relations lead to

    def resolved(self, pages: Iterable[GraphPage], among: Collection[str] | None = None) -> dict[str, list[Tie]]:
        """What the relations of some pages lead to; as if only the files `among` were there."""
        bonds = [(page.path, bond) for page in pages for bond in page.bonds]
        meant = iter(self.bench.meant([(bond.link, path) for path, bond in bonds if bond.link], among))
        ties: dict[str, list[Tie]] = {}
        for path, bond in bonds:
            to = next(meant) if bond.link else None
            note = to if to is not None and to.lower().endswith(".md") else None
            ties.setdefault(path, []).append(Tie(bond, note, bond.name or bond.link.rsplit("/", 1)[-1]))
        return ties

    def place(self, item: GraphPage) -> None:
        self.forget(item.path)
        super().place(item)
        self.last_order = max(self.last_order, item.order or 0)
        self._named[item.name].add(item.path)
        for bond in item.bonds:
            self._linking[_key(bond.link)].add(item.path)

    def forget(self, path: str) -> None:
        if (old := self.items.get(path)) is not None:
            self._named[old.name].discard(path)
            for bond in old.bonds:
                self._linking[_key(bond.link)].discard(path)
        super().forget(path)

    def is_needed(self, path: str) -> bool:
        """Whether an entity leads to a note."""
        return any(self.items[source].is_own for source in self._into.get(path, ()) if source in self.items)

    def settle(self, changed: Collection[str], files: Collection[str]) -> None:
        """Find out what the relations lead to of pages that changed, or that could mean one of the files. The notes that are
        drawn in by that are read, those that nothing draws in any more are let go of."""
        paths = {*changed, *(source for path in files for source in self._linking.get(_key(path), ()))}
        ties = self.resolved(self.items[path] for path in paths if path in self.items)
        touched, wanted = set(paths), set()
        for path in paths:
            old, new = self.ties.pop(path, []), ties.get(path, [])
            if new:
                self.ties[path] = new
            for tie in old:
                self._into[tie.end].discard(path)
            for tie in new:
                self._into[tie.end].add(path)
            leading_to = {tie.path for tie in new if tie.path is not None}
            touched |= leading_to | {tie.path for tie in old if tie.path is not None}
            if path in self.items and self.items[path].is_own:
                wanted |= {to for to in leading_to if to not in self.items}
        drawn = [self.kind.read(read) for read in self.bench.read(sorted(wanted))]
        for page in drawn:
            self.place(page)
        idle = [p for p in touched if p in self.items and not self.items[p].is_own and not self.is_needed(p)]
        for path in idle:
            self.forget(path)
        if drawn or idle:
            self.settle([*(page.path for page in drawn), *idle], ())


def _key(target: str) -> str:
    """What a link and the files it could mean have in common."""
    return compare_key(base_name(target))


def entity_of(page: GraphPage) -> Entity:
    """A page as it is told."""
    facts = (page.path, page.sha256, page.created, page.modified, not page.is_own)
    return Entity(page.name, page.type, page.observations, *facts)


def graph_of_pages(
    pages: Iterable[GraphPage], ties: Mapping[str, Sequence[Tie]], items: Mapping[str, GraphPage]
) -> Graph:
    """The graph that some pages make, with the names that what relations lead to has now. `ties` are by the pages' paths."""
    every = list(pages)
    relations = []
    for page in every:
        for bond, path, name in ties.get(page.path, ()):
            if path is not None:
                name = items[path].name if path in items else base_name(path)
            relations.append(Relation(page.name, bond.type, name, bond.attributes))
    return Graph(tuple(entity_of(page) for page in every if not page.is_stub), tuple(relations))
