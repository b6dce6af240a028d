"""A change of the graph while it is made: the pages it touches, and the bullets that come, change and go.

What is added to a page is put there at the end, all at once, however many relations it gets.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

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
Held = tuple[Bullet, Relation]


class GraphEdit(ChangeSet):
    """The pages that one change of the graph touches."""

    def __init__(self, network: Network) -> None:
        super().__init__(network.bench)
        self._network = network
        self._now = now()
        self._order = network.last_order + 1
        self._files: dict[str, str] = {}  # new pages, by the names they are for
        self._stems: dict[str, str] = {}  # their paths by file name, or a name that a new link waits for
        self._lines: dict[str, dict[str, list[str]]] = {}  # that are added, by page and section
        self._held: dict[str, dict[tuple[str, str, str], Held]] = {}
        self._loosened: set[str] = set()  # pages that lost relations, or that those led to

    # -- pages

    def page(self, path: str) -> GraphPage | None:
        """A page as this change has made it so far, beginning with what lies on the disk now."""
        self._settle(path)
        text = self.find(path)
        return None if text is None else read_page(path, text, "")

    def _settle(self, path: str) -> None:
        for section, added in self._lines.pop(path, {}).items():
            text = self.text(path)
            self.put(path, pages.with_lines(text, read_page(path, text, ""), section, added))

    def drafts(self) -> list[Draft]:
        for path in list(self._lines):
            self._settle(path)
        for path in sorted(self._loosened):
            self._drop_if_idle(path)
        return super().drafts()

    def make(self, entity: Entity, *, stub: bool = False) -> str:
        """A new page. Returns its path."""
        path = file_for(entity.name, lambda path: self._is_taken(path, entity.name))
        self._files[entity.name] = self._stems[compare_key(base_name(path))] = path
        self.put(path, pages.new_page(path, entity, self._order, self._now, stub=stub))
        self._order += 1
        return path

    def become(self, path: str, entity: Entity) -> None:
        """Make an entity of a page that only held relations."""
        self.put(path, pages.made_entity(self.text(path), entity.type, self._order))
        self._order += 1
        self.say(path, entity.observations)

    def say(self, path: str, observations: Iterable[Observation]) -> None:
        """Add observations to a page."""
        if lines := [pages.observation_line(each) for each in observations]:
            self._lines.setdefault(path, {}).setdefault("observations", []).extend(lines)

    def unsay(self, path: str, texts: Collection[str]) -> int:
        """Take the observations that are equal to these texts out of a page. Returns how many."""
        page = self.page(path)
        bullets = page.bullets if page is not None else ()
        gone = [each for each in bullets if isinstance(each.says, Observation) and each.says.text in texts]
        if gone:
            self.put(path, pages.without(self.text(path), gone))
        return len(gone)

    # -- relations

    def held(self, relation: Relation) -> Held | None:
        """The first relation that says the same, as it stood before this change, and its bullet."""
        page = self._network.named(relation.source)
        if page is None:
            return None
        if page.path not in self._held:
            self._held[page.path] = {held[1].key: held for held in reversed(self._relations_on(page.path))}
        return self._held[page.path].get(relation.key)

    def relate(self, relation: Relation) -> None:
        """Add a relation to the page of its source, which is made if need be. A link to a name that nothing has yet leads
        to it once it is made."""
        source = self._find(relation.source) or self.make(Entity(relation.source, ""), stub=True)
        link = self._link_to(self._find(relation.target), relation.target, source)
        line = pages.bond_line(relation.type, link, relation.attributes)
        self._lines.setdefault(source, {}).setdefault("relations", []).append(line)

    def set_attributes(self, held: Held, attributes: Mapping[str, Any]) -> None:
        """Give a relation other attributes."""
        page = self._network.named(held[1].source)
        assert page is not None
        self.put(page.path, pages.with_attributes(self.text(page.path), held[0], attributes))

    def unrelate(self, path: str, which: Callable[[Relation], bool]) -> int:
        """Take relations out of a page. Returns how many."""
        count = 0
        while gone := [bullet for bullet, relation in self._relations_on(path) if which(relation)]:
            text = self.text(path)
            for bullet in reversed(gone):
                text = pages.without_bond(text, bullet)
            self.put(path, text)
            count += len(gone)  # of two links in a bullet the second counts now
            self._loosened |= {path, *(tie.path for tie in self._network.ties(path) if tie.path is not None)}
        return count

    def _drop_if_idle(self, path: str) -> None:
        """Drop a page that only held relations, where none is left from or to it and nobody wrote on it."""
        stub = self._network.items.get(path)
        page = self.page(path) if stub is not None and stub.is_stub else None
        if page is None or not page.is_stub or page.bonds or not pages.is_bare(self.text(path)):
            return
        sources = [source.path for source in self._network.pointing_at(path, page.name)]
        is_held = any(each.target == page.name for source in sources for _, each in self._relations_on(source))
        if not is_held and self.bench.may_go(path):
            self.drop(path)

    def _relations_on(self, path: str) -> list[Held]:
        """The relations of a page as this change has made it so far, also to pages that it makes."""
        page = self.page(path)
        if page is None or not page.bonds:
            return []
        relations = graph_of_pages([page], self._network.resolved([page]), self._network.items).relations
        return list(zip((each for each in page.bullets if isinstance(each.says, Bond)), relations, strict=True))

    def _find(self, name: str) -> str | None:
        """The page of a name: the one there is or that this change makes, else the one note that is called so, which a
        relation then draws into the graph."""
        page = self._network.named(name)
        if page is not None or name in self._files:
            return page.path if page is not None else self._files[name]
        found = [path for path in self.bench.files_called(f"{name}.md") if base_name(path) == name]
        note = self._network.page_at(found[0]) if len(found) == 1 else None
        return note.path if note is not None and note.name == name else None

    def _link_to(self, path: str | None, name: str, source: str) -> str:
        """A link to a page from another, as short as it can be, showing the exact name where the file has another; a
        literal where no link can say what is meant."""
        if path is None:
            if not _carries(name) or self.bench.meant([(name, source)]) != [None]:
                return literal(name)
            is_free = self._stems.setdefault(compare_key(name), name) == name
            return f"[[{name}]]" if is_free else literal(name)
        stem = target = base_name(path)
        if self._stems.get(compare_key(stem)) != path:  # a new page has a name of its own, which no index knows yet
            spellings = (stem, name_of(path), f"{stem}.md", path)
            meant = self.bench.meant([(spelling, source) for spelling in spellings])
            target = next((each for each, found in zip(spellings, meant, strict=True) if found == path), path)
        if set(target) & set("[]|#"):  # the name of a person's file, which no link can say
            return literal(name)
        return f"[[{target}|{name}]]" if name != target and _can_be_shown(name) else f"[[{target}]]"

    # -- files

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
    paths: Sequence[str] = [f"{FOLDER}/{readable}~{digest[:length]}.md" for length in (12, 24, 64)]
    return next(path for path in paths if not is_taken(path))


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
