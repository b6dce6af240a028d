"""A change of the graph while it is made: the pages that come, and the bullets that come, change and go.

What is added to a page is put there at the end, all at once, however many relations it gets.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.kinds.graph import page as pages
from simplemem.kinds.graph.network import Network, graph_of_pages
from simplemem.kinds.graph.page import FOLDER, Bond, Bullet, GraphPage, read_page
from simplemem.kinds.graph.spelling import literal
from simplemem.kinds.graph.values import Entity, Observation, Relation
from simplemem.kinds.kind import ChangeSet
from simplemem.note.names import base_name, check_name, compare_key, legal_name, name_of
from simplemem.store import Draft, now

_MOST_BYTES: Final = 120  # of the readable part of a file's name, where more must follow
Key = tuple[str, str, str]


class _New(NamedTuple):
    """A page that is made."""

    path: str
    entity: Entity
    order: int
    is_stub: bool


class GraphEdit(ChangeSet):
    """The pages that one change of the graph touches. What it looks at is the network as it was before; `text` sees to it
    that this is what the disk has."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._network = network
        self._order = network.last_order
        self._new: dict[str, _New] = {}  # by name
        self._stems: dict[str, str] = {}  # names that a file is made for, or that a new link waits for, by file name
        self._lines: dict[tuple[str, str], list[str]] = {}  # that are added, by page and section
        self._held: dict[str, dict[Key, tuple[str, Bullet]]] = {}

    def drafts(self) -> list[Draft]:
        moment = now()
        for path, entity, order, is_stub in self._new.values():
            bonds = self._lines.pop((path, "relations"), ())
            self.put(path, pages.new_page(path, entity, order, moment, stub=is_stub, bonds=bonds))
        for (path, section), lines in self._lines.items():
            text = self.text(path)
            self.put(path, pages.with_lines(text, read_page(path, text), section, lines))
        return super().drafts()

    def make(self, entity: Entity, *, stub: bool = False) -> str:
        """A new page. Returns its path."""
        path = file_for(entity.name, lambda path: self._is_taken(path, entity.name))
        self._stems[compare_key(base_name(path))] = entity.name
        self._order += 1
        self._new[entity.name] = _New(path, entity, self._order, stub)
        return path

    def become(self, path: str, entity: Entity) -> None:
        """Make an entity of a page that only held relations."""
        self._order += 1
        self.put(path, pages.made_entity(self.text(path), entity.type, self._order))
        self.say(path, entity.observations)

    def say(self, path: str, observations: Iterable[Observation]) -> None:
        """Add observations to a page."""
        if lines := [pages.observation_line(each) for each in observations]:
            self._lines.setdefault((path, "observations"), []).extend(lines)

    def unsay(self, page: GraphPage, texts: Collection[str]) -> int:
        """Take the observations that are equal to these texts out of a page. Returns how many."""
        gone = [each for each in page.bullets if isinstance(each.says, Observation) and each.says.text in texts]
        if gone:
            self.put(page.path, pages.without(self.text(page.path), gone))
        return len(gone)

    # -- relations

    def held(self, relation: Relation) -> tuple[str, Bullet] | None:
        """The first relation that says the same: its page and its bullet."""
        source = relation.source
        if source not in self._held:
            every = [(page, *each) for page in self._network.all_named(source) for each in self._relations_on(page)]
            self._held[source] = {said.key: (page.path, bullet) for page, bullet, said in reversed(every)}
        return self._held[source].get(relation.key)

    def relate(self, relation: Relation) -> None:
        """Add a relation to the page of its source, which is made if need be."""
        name = relation.source
        own = [page for page in self._network.all_named(name) if page.is_own]
        if own:
            source = min(own, key=lambda page: page.is_stub).path
        else:
            source = self._new[name].path if name in self._new else self.make(Entity(name, ""), stub=True)
        line = pages.bond_line(relation.type, self._link_to(relation.target, source), relation.attributes)
        self._lines.setdefault((source, "relations"), []).append(line)

    def set_attributes(self, path: str, bullet: Bullet, attributes: Mapping[str, Any]) -> None:
        """Give a relation other attributes."""
        self.put(path, pages.with_attributes(self.text(path), bullet, attributes))

    def unrelate(self, page: GraphPage, which: Callable[[Relation], bool]) -> int:
        """Take relations out of a page, and a page that only held those and on which nobody wrote. Returns how many."""
        gone = [bullet for bullet, relation in self._relations_on(page) if which(relation)]
        if gone:
            text = pages.without(self.text(page.path), gone)
            self.put(page.path, text)
            is_idle = page.is_stub and len(gone) == len(page.bonds) and pages.is_bare(text)
            if is_idle and self.bench.may_go(page.path):
                self.drop(page.path)
        return len(gone)

    def _relations_on(self, page: GraphPage) -> list[tuple[Bullet, Relation]]:
        bonds = [each for each in page.bullets if isinstance(each.says, Bond)]
        return list(zip(bonds, graph_of_pages([page], self._network.ties, self._network.items).relations, strict=True))

    def _link_to(self, name: str, source: str) -> str:
        """A link to a name: to the page it has, or that this change makes, else to the one note that is called so, which is
        drawn into the graph by that. To what is not there yet it is a link that leads there later, else a literal."""
        page, new = self._network.named(name), self._new.get(name)
        stub = page.path if page is not None and page.is_stub else None
        if new is not None and not new.is_stub:
            path: str | None = new.path
        elif page is not None:
            path = None if stub else page.path
        else:
            found = [path for path in self.bench.files_called(f"{name}.md") if base_name(path) == name]
            note = self._network.page_at(found[0]) if len(found) == 1 else None
            path = note.path if note is not None and note.name == name else None
        if path is None:
            is_free = _carries(name) and self.bench.meant([(name, source)])[0] in (None, stub)
            return (
                f"[[{name}]]" if is_free and self._stems.setdefault(compare_key(name), name) == name else literal(name)
            )
        target = base_name(path)
        if new is None:  # no index knows a new page yet, and nothing else is called as that is
            spellings = (target, name_of(path), f"{target}.md", path)
            meant = self.bench.meant([(spelling, source) for spelling in spellings])
            target = next((each for each, led in zip(spellings, meant, strict=True) if led == path), path)
        if set(target) & set("[]|#"):  # the name of a person's file, which no link can say
            return literal(name)
        return f"[[{target}|{name}]]" if name != target and _can_be_shown(name) else f"[[{target}]]"

    def _is_taken(self, path: str, name: str) -> bool:
        """Whether a link to this file would be doubtful, or another is in the way."""
        stem = base_name(path)
        called = [*self.bench.files_called(stem), *self.bench.files_called(f"{stem}.md")]
        is_ours = self._stems.get(compare_key(stem), name) != name
        return bool(is_ours or called or self.bench.is_taken(path) or self._network.is_awaited(stem, name))


def file_for(name: str, is_taken: Callable[[str], bool] = lambda _path: False) -> str:
    """The path of the note for a new entity: its own name where every system and every link can carry it, else a near
    one. `is_taken` says of a path whether a link to its name would be doubtful."""
    path = f"{FOLDER}/{name}.md"
    if _carries(name) and not is_taken(path):
        return path
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    readable = legal_name(name.replace("~", "-").encode("utf-8", "replace").decode())
    readable = readable.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .")
    return next(path for length in (12, 24, 64) if not is_taken(path := f"{FOLDER}/{readable}~{digest[:length]}.md"))


def _carries(name: str) -> bool:
    """Whether the name can be the file's, letter for letter; the tilde is kept for the others."""
    if "/" in name or "~" in name or not name.isprintable() or unicodedata.normalize("NFC", name) != name:
        return False
    try:
        return check_name(name) == name
    except SimplememError:
        return False


def _can_be_shown(name: str) -> bool:
    """Whether a link can show this name."""
    if not name or len(name) > 120 or not name.isprintable() or name != name.strip():
        return False
    return not set(name) & set("[]|#^") and "%%" not in name
