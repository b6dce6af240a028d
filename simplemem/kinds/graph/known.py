"""The pages of the graph as this process knows them: read once, and again when the store says that a note changed.

A page is known by its path, and what its relations mean by path as well; names are looked up when they are told. So a note
that is renamed, or a title that a person mends, takes its relations along.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from simplemem.kinds.graph.lists import Bond
from simplemem.kinds.graph.page import FOLDER, Page, is_entity_note, read_page
from simplemem.kinds.graph.values import Entity, Relation
from simplemem.note.names import base_name
from simplemem.store.bench import Bench, Changes, Read
from simplemem.store.seen import Seen
from simplemem.vault.links import lookup_keys, name_key

ORIGIN = "permalink"
"""The property that notes of another Markdown memory have, whose lists are relations and observations too."""
_MANY = 200


class Tie(NamedTuple):
    """A bond with what it leads to: a page, or no more than a name."""

    bond: Bond
    path: str | None
    name: str


class Known:
    """Everything that is known. Not thread-safe: the graph sees to that."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._seen = Seen(bench, ORIGIN)
        self.begun = False
        self.outside = 0  # how often others changed it since it was first read: a person, another process
        self._roots: set[str] = set()  # entities, and notes that count by themselves
        self._paths: set[str] = set()  # all notes there are: one that comes or goes may change what a link means
        self._lost: set[str] = set()  # pages whose file was not there, though the index does not believe it yet
        self._ties: dict[str, tuple[Tie, ...]] = {}
        self._by_key: dict[str, set[str]] = {}  # what a link is looked up by -> the pages with such a link
        self._into: dict[str, set[str]] = {}  # page -> the pages with a relation to it
        self._into_name: dict[str, set[str]] = {}  # the same for names without a page
        self._named: dict[str, set[str]] = {}
        self._in_order: list[Page] | None = None
        self._last_order: int | None = None
        # all that is searched, and where each page begins
        self._haystack: tuple[str, list[int], list[Page]] | None = None
        self.pages: dict[str, Page] = {}

    # -- asking

    def in_order(self) -> list[Page]:
        """All pages, as they came."""
        if self._in_order is None:
            self._in_order = sorted(self.pages.values(), key=place)
        return self._in_order

    def named(self, name: str) -> Page | None:
        """The page of an exact name: the entity, else the stub or the note that has it."""
        paths = self._named.get(name)
        if not paths:
            return None
        return min(
            (self.pages[path] for path in paths), key=lambda page: (page.is_stub, not page.is_entity, place(page))
        )

    def surely_named(self, name: str) -> Page | None:
        """The page of an exact name as `named` has it, with the disk asked whether it is there: an index may not know yet of
        a file that came or went a moment ago, or not believe it."""
        page = self.named(name)
        path = f"{FOLDER}/{name}.md" if page is None else page.path
        if self._bench.stats([path]) if page is None else not self._bench.stats([path]):
            self.look_again([path])
            return self.named(name)
        return page

    def all_named(self, name: str) -> list[Page]:
        return sorted((self.pages[path] for path in self._named.get(name, ())), key=place)

    def ties(self, page: Page) -> tuple[Tie, ...]:
        return self._ties.get(page.path, ())

    def target(self, tie: Tie) -> str:
        """The name that a relation leads to."""
        if tie.path is None:
            return tie.name
        page = self.pages.get(tie.path)
        return page.name if page is not None else base_name(tie.path)

    def relations_of(self, page: Page) -> Iterator[Relation]:
        for tie in self.ties(page):
            yield Relation(page.name, tie.bond.type, self.target(tie), tie.bond.attributes)

    def pointing_at(self, page: Page) -> list[Page]:
        """The pages with a relation to this one."""
        sources = self._into.get(page.path, set()) | self._into_name.get(page.name, set())
        return sorted((self.pages[path] for path in sources if path in self.pages), key=place)

    def pointing_at_name(self, name: str) -> list[Page]:
        """The pages with a relation to a name that has no page."""
        return sorted((self.pages[path] for path in self._into_name.get(name, ())), key=place)

    def matching(self, query: str) -> list[Page]:
        """The entities with this text, in lower case, in their name, their type or one observation."""
        if self._haystack is None:
            pages = [page for page in self.in_order() if not page.is_stub]
            texts = ["\n".join(_searched(page)) for page in pages]
            starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
            self._haystack = ("\n".join(texts), starts, pages)
        text, starts, pages = self._haystack
        if not query:
            return list(pages)
        found, at = [], text.find(query)
        while at >= 0:
            number = bisect_right(starts, at) - 1
            if any(query in part for part in _searched(pages[number])):
                found.append(pages[number])
            at = text.find(query, starts[number + 1])
        return found

    def next_order(self) -> int:
        """The place behind all others."""
        if self._last_order is None:
            self._last_order = max((page.order for page in self.pages.values() if page.order is not None), default=0)
        return self._last_order + 1

    def page_at(self, path: str) -> Page | None:
        """A note as a page, whether or not it is part of the graph."""
        if path in self.pages:
            return self.pages[path]
        read = next(iter(self._bench.read([path])), None)
        return None if read is None else read_page(path, read.text, read.sha256)

    def resolved(self, page: Page) -> list[Tie]:
        """What the relations of a page lead to that is not known, or not as it is now."""
        bonds = page.bonds
        meant = iter(self._bench.meant([(bond.link, page.path) for bond in bonds if bond.link]))
        return [_tie(bond, next(meant) if bond.link else None) for bond in bonds]

    # -- keeping up

    def refresh(self) -> None:
        """Read what changed since this was last asked."""
        if self._lost and (back := self._bench.stats(self._lost).keys()):
            self._lost -= back
            self.take(self._bench.read(sorted(back)), (), set(back))
        noticed = self._seen.noticed()
        if noticed is None:
            return
        changed = {each.path for each in noticed.notes}
        came, gone = changed - self._paths, set[str]()
        if len(self._paths) + len(came) != noticed.count:
            gone = self._paths - (changed if noticed.whole else self._bench.indexed())
            too_large = self._bench.stats(gone & self.pages.keys()).keys()  # to be indexed, and there all the same
            self._paths -= too_large
            gone -= too_large
            self._lost -= gone
        to_read = self._concerning(noticed)
        if noticed.whole:  # those too large to be indexed are no less part of the graph
            to_read |= set(self._bench.files_below(FOLDER)) - changed
        copies = {each.path for each in noticed.notes if each.is_copy}
        self.take(self._bench.read(sorted(to_read)), gone, came, copies)
        self._seen.take_in(noticed)
        self.begun = True

    def _concerning(self, noticed: Changes) -> set[str]:
        """The paths among those that changed whose pages must be read."""
        to_read = set()
        for each in noticed.notes:
            page = self.pages.get(each.path)
            if each.path in noticed.having:
                self._roots.add(each.path)
            elif each.path in self._roots and not is_entity_note(each.path, each.type):
                self._roots.discard(each.path)  # a person made it something else
                to_read.add(each.path)
            if page is not None and page.sha256 == each.sha256:
                continue
            if page is not None or each.path in noticed.having or is_entity_note(each.path, each.type):
                to_read.add(each.path)
        return to_read

    def take(
        self,
        read: Iterable[Read],
        gone: Collection[str] = (),
        came: Collection[str] = (),
        copies: Collection[str] = (),
        *,
        ours: bool = False,
    ) -> None:
        """Texts as they are now, files that are gone, and files that came. A page among the `copies` with the order of
        another is a conflict copy of that; two entities with names like that ("Plan", "Plan 2") are two. `ours` is what
        this process has written."""
        self._paths |= set(came)
        self._paths -= set(gone)
        differs = not self.pages.keys().isdisjoint(gone)
        undrawn: set[str] = set()
        placed = []
        for each in read:
            page = read_page(each.path, each.text, each.sha256)
            if each.problem:
                page = page._replace(problem=each.problem)
            self._seen.keep(each)
            if page.is_entity:
                self._roots.add(each.path)
            elif each.path not in self._roots and not self._is_drawn(each.path):
                differs = differs or each.path in self.pages
                undrawn |= self._forget(each.path)
                continue
            undrawn |= self._untie(each.path)
            old = self.pages.get(each.path)
            differs = differs or old is None or old.sha256 != each.sha256
            self._place(page)
            placed.append(page)
        for path in gone:
            undrawn |= self._forget(path)
        for path in copies:
            if path in self.pages and self._is_a_twin(self.pages[path]):
                undrawn |= self._forget(path)
        again = self._that_could_mean([*gone, *came])
        for page in again:
            undrawn |= self._untie(page.path)
        self._tie([*(page for page in placed if page.path in self.pages), *again])
        for path in undrawn:
            if path not in self._roots and not self._is_drawn(path):
                self._forget(path)
        if self.begun and not ours and (differs or again):
            self.outside += 1

    def look_again(self, paths: Collection[str]) -> None:
        """Read pages whose file is another, whatever the index says of them."""
        read = list(self._bench.read(sorted(paths)))
        missing = set(paths) - {each.path for each in read}
        indexed = missing & self._paths
        self.take(read, missing)
        self._paths |= indexed  # until the index says so too: of a file that comes back as it was it says nothing
        self._lost |= indexed

    def differing(self, pages: Collection[Page]) -> set[str]:
        """The paths of those whose file is another than the one that was read."""
        if len(pages) > _MANY:
            return set()
        return self._seen.differing({page.path for page in pages})

    def _is_a_twin(self, page: Page) -> bool:
        """Whether a copy has the place of another in the order; a person's has none, and needs none to be a copy."""
        return page.order is None or any(
            other.order == page.order and other.path != page.path for other in self.pages.values()
        )

    def _is_drawn(self, path: str) -> bool:
        """Whether a note is part of the graph because one that counts by itself links to it."""
        return any(source in self._roots for source in self._into.get(path, ()))

    def _place(self, page: Page) -> None:
        old = self.pages.get(page.path)
        if old is not None:
            self._named[old.name].discard(page.path)
        if self._last_order is not None and page.order is not None and old is None:
            self._last_order = max(self._last_order, page.order)
        elif old is None or old.order != page.order:
            self._last_order = None
        self.pages[page.path] = page
        self._named.setdefault(page.name, set()).add(page.path)
        self._haystack = None
        if self._in_order is None:
            return
        at = bisect_left(self._in_order, place(page), key=place)
        if old is None:
            self._in_order.insert(at, page)
        elif place(old) == place(page):
            self._in_order[at] = page
        else:
            self._in_order = None

    def _forget(self, path: str) -> set[str]:
        """A page that is none any more. Returns the pages it led to."""
        page = self.pages.pop(path, None)
        self._roots.discard(path)
        self._seen.forget(path)
        self._haystack = None
        if page is not None:
            self._last_order = None
            self._named[page.name].discard(path)
            if self._in_order is not None:
                del self._in_order[bisect_left(self._in_order, place(page), key=place)]
        return self._untie(path)

    # -- what relations lead to

    def _tie(self, pages: Sequence[Page]) -> None:
        """Find out what the relations of some pages lead to, and read the notes that are drawn in by that."""
        links = [(bond.link, page.path) for page in pages for bond in page.bonds if bond.link]
        meant = iter(self._bench.meant(links))
        wanted = set()
        for page in pages:
            ties = []
            for bond in page.bonds:
                tie = _tie(bond, next(meant) if bond.link else None)
                ties.append(tie)
                note = tie.path
                if bond.link:
                    self._by_key.setdefault(name_key(bond.link), set()).add(page.path)
                if note is None:
                    self._into_name.setdefault(tie.name, set()).add(page.path)
                    continue
                self._into.setdefault(note, set()).add(page.path)
                if page.path in self._roots and note not in self.pages:
                    wanted.add(note)
            self._ties[page.path] = tuple(ties)
        linked = []
        for read in self._bench.read(sorted(wanted)):
            self._seen.keep(read)
            self._place(read_page(read.path, read.text, read.sha256))
            linked.append(self.pages[read.path])
        if linked:
            self._tie(linked)  # their own relations are told; what those lead to is not drawn in

    def _untie(self, path: str) -> set[str]:
        """Forget what the relations of a page lead to. Returns the pages they led to."""
        led_to = set()
        for tie in self._ties.pop(path, ()):
            if tie.path is None:
                self._into_name.get(tie.name, set()).discard(path)
            else:
                self._into.get(tie.path, set()).discard(path)
                led_to.add(tie.path)
            if tie.bond.link:
                self._by_key.get(name_key(tie.bond.link), set()).discard(path)
        return led_to

    def _that_could_mean(self, files: Collection[str]) -> list[Page]:
        """The pages with a link that could mean one of these files, which came or went."""
        sources = {source for path in files for key in lookup_keys(path) for source in self._by_key.get(key, ())}
        return [self.pages[path] for path in sorted(sources) if path in self.pages]


def _tie(bond: Bond, path: str | None) -> Tie:
    """A bond, and the note it leads to if its link leads to one."""
    note = path if path is not None and path.lower().endswith(".md") else None
    return Tie(bond, note, bond.name or bond.link.rsplit("/", 1)[-1])


def _searched(page: Page) -> list[str]:
    """What is searched of a page, in lower case, part by part."""
    return [page.name.lower(), page.type.lower(), *(each.text.lower() for each in page.observations)]


def entity_of(page: Page) -> Entity:
    """A page as it is told."""
    return Entity(
        page.name, page.type, page.observations, page.path, page.sha256, page.created, page.modified, not page.is_entity
    )


def place(page: Page) -> tuple[bool, bool, int, str, str]:
    """Where a page stands among the others: in the order in which they were made, those that tell none behind."""
    return (not page.is_entity, page.order is None, page.order or 0, page.created, page.path)
