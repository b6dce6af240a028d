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
from simplemem.kinds.graph.network import Network, relations_of
from simplemem.kinds.graph.page import FOLDER, Bond, Bullet, GraphPage, read_page
from simplemem.kinds.graph.spelling import literal
from simplemem.kinds.graph.values import Entity, Observation, Relation
from simplemem.kinds.kind import ChangeSet
from simplemem.note.names import base_name, check_name, compare_key, legal_name, name_of
from simplemem.store import Draft, now

_MOST_BYTES: Final = 120  # of the readable part of a file's name, where more must follow
Held = tuple[Bullet, Relation]


class GraphEdit(ChangeSet):
    """The pages that one change touches. With a `plan`, the files of names that other changes will make pages for, ends of
    relations without a page are planned too, and not made."""

    def __init__(self, network: Network, plan: dict[str, str] | None = None) -> None:
        super().__init__(network.bench)
        self._network = network
        self._now = now()
        self._order = network.next_order()
        self._pages: dict[str, tuple[str, GraphPage]] = {}  # with the texts they were read from
        self._is_planned = plan is not None
        self._new = plan if plan is not None else {}  # new pages by the names they are for
        self._stems = {compare_key(base_name(path)): path for path in self._new.values()}
        self._lines: dict[str, dict[str, list[str]]] = {}
        self._attributes: dict[str, list[tuple[Bullet, Mapping[str, Any]]]] = {}
        self._held: dict[str, dict[tuple[str, str, str], Held]] = {}

    # -- pages

    def page(self, path: str) -> GraphPage | None:
        """A page as this change has made it so far, beginning with what lies on the disk now."""
        self._settle(path)
        text = self.find(path)
        if text is None:
            return None
        if path not in self._pages or self._pages[path][0] is not text:
            self._pages[path] = (text, read_page(path, text, ""))
        return self._pages[path][1]

    def make(self, name: str, kind: str | None, observations: Sequence[Observation] = ()) -> str:
        """A new page; without a kind it only holds relations. Returns its path."""
        path = self._new.get(name) or self._choose(name)
        self.put(path, pages.new_page(name, path, kind, self._order, self._now, observations=observations))
        self._order += 1
        return path

    def become(self, path: str, entity: Entity) -> None:
        """Make an entity of a page that only held relations."""
        self.put(path, pages.made_entity(self.text(path), entity.type, self._order))
        self._order += 1
        self.say(path, entity.observations)

    def say(self, path: str, observations: Iterable[Observation]) -> None:
        self._add(path, "observations", map(pages.observation_line, observations))

    def unsay(self, path: str, texts: Collection[str]) -> int:
        """Take the observations that are equal to these texts out of a page. Returns how many."""
        page = self.page(path)
        bullets = page.bullets if page is not None else ()
        gone = [each for each in bullets if isinstance(each.says, Observation) and each.says.text in texts]
        if gone:
            self.put(path, pages.without(self.text(path), gone))
        return len(gone)

    def drafts(self) -> list[Draft]:
        for path in {**self._lines, **self._attributes}:
            self._settle(path)
        return super().drafts()

    def _add(self, path: str, section: str, lines: Iterable[str]) -> None:
        self._lines.setdefault(path, {}).setdefault(section, []).extend(lines)

    def _settle(self, path: str) -> None:
        """Put what was added and changed into a page."""
        changes, lines = self._attributes.pop(path, []), self._lines.pop(path, {})
        if not changes and not any(lines.values()):
            return
        text = self.text(path)
        for bullet, attributes in sorted(changes, key=lambda each: -each[0].start):  # so that places stay as they are
            text = pages.with_attributes(text, bullet, attributes)
        for section, added in lines.items():
            text = pages.with_lines(text, read_page(path, text, ""), section, added)
        self.put(path, text)

    # -- ends of relations

    def is_lacking(self, name: str) -> bool:
        """Whether no entity or note has this name."""
        page = self._network.named(name)
        return page is None or page.is_stub

    def end(self, name: str) -> str:
        """The page of a name: the one there is, else the one note that is called so, else a new one."""
        page = self._network.named(name)
        if page is not None:
            return page.path
        return self._new.get(name) or self._note_called(name) or self._make_end(name)

    def _make_end(self, name: str) -> str:
        return self._choose(name) if self._is_planned else self.make(name, None)

    def _note_called(self, name: str) -> str | None:
        """The one note of exactly this name, which a relation then draws into the graph."""
        found = [path for path in self.bench.files_called(f"{name}.md") if base_name(path) == name]
        page = self._network.page_at(found[0]) if len(found) == 1 else None
        return found[0] if page is not None and page.name == name else None

    # -- relations

    def held(self, relation: Relation) -> Held | None:
        """The first relation that says the same, as it stood before this change, and its bullet."""
        page = self._network.named(relation.source)
        if page is None:
            return None
        if page.path not in self._held:
            there: dict[tuple[str, str, str], Held] = {}
            for held in self._relations_on(page.path):
                there.setdefault(held[1].key, held)
            self._held[page.path] = there
        return self._held[page.path].get(relation.key)

    def relate(self, relation: Relation) -> None:
        source, target = self.end(relation.source), self.end(relation.target)
        link = self._link_to(target, relation.target, source)
        self._add(source, "relations", [pages.bond_line(relation.type, link, relation.attributes)])

    def set_attributes(self, held: Held, attributes: Mapping[str, Any]) -> None:
        """Give a relation other attributes."""
        page = self._network.named(held[1].source)
        assert page is not None
        self._attributes.setdefault(page.path, []).append((held[0], attributes))

    def unrelate(self, path: str, which: Callable[[Relation], bool]) -> int:
        """Take relations out of a page. Returns how many."""
        count = 0
        while gone := [bullet for bullet, relation in self._relations_on(path) if which(relation)]:
            self.put(path, pages.without_bonds(self.text(path), gone))  # of two links in a bullet the second counts now
            count += len(gone)
        return count

    def is_bare(self, path: str) -> bool:
        """Whether nobody wrote anything on a page that relations made."""
        page = self.page(path)
        return page is not None and page.is_stub and pages.is_bare(self.text(path))

    def drop_idle_stubs(self, gone: Collection[str] = ()) -> None:
        """Drop pages that only held relations, and hold none any more once those that are `gone` went."""
        items = self._network.items
        touched = {draft.path for draft in self.drafts()} | set(gone)
        led_to = {tie.path for path in touched if path in items for tie in self._network.ties(items[path]) if tie.path}
        for path in sorted((touched | led_to) - set(gone)):
            stub = items.get(path)
            if stub is None or not stub.is_stub or self._relations_on(path) or not self.is_bare(path):
                continue
            sources = [page.path for page in self._network.pointing_at(stub) if page.path not in gone]
            is_held = any(each.target == stub.name for source in sources for _, each in self._relations_on(source))
            if not is_held and self.bench.may_go(path):
                self.drop(path)

    def _relations_on(self, path: str) -> list[Held]:
        """The relations of a page as this change has made it so far, also to pages that it makes."""
        page = self.page(path)
        if page is None:
            return []
        bullets = [bullet for bullet in page.bullets if isinstance(bullet.says, Bond)]
        if not bullets:
            return []
        relations = relations_of([page], self._network.resolved([page]), self._network.items)
        return list(zip(bullets, relations, strict=True))

    def _link_to(self, path: str, name: str, source: str) -> str:
        """A link to a page from another, as short as it can be, showing the exact name where the file has another."""
        stem = base_name(path)
        target = stem
        if self._stems.get(compare_key(stem)) != path:  # a new page has a name of its own, which no index knows yet
            spellings = (stem, name_of(path), f"{stem}.md", path)
            meant = self.bench.meant([(spelling, source) for spelling in spellings])
            target = next((each for each, found in zip(spellings, meant, strict=True) if found == path), path)
        if set(target) & set("[]|#"):  # the name of a person's file, which no link can say
            return literal(name)
        return f"[[{target}|{name}]]" if name != target and _can_be_shown(name) else f"[[{target}]]"

    # -- files

    def _choose(self, name: str) -> str:
        """The path of a new page."""
        path = file_for(name, self._is_taken)
        self._new[name] = self._stems[compare_key(base_name(path))] = path
        return path

    def _is_taken(self, path: str) -> bool:
        """Whether a link to this name would be doubtful, or a file is in the way."""
        stem = base_name(path)
        if compare_key(stem) in self._stems:
            return True
        called = [*self.bench.files_called(stem), *self.bench.files_called(f"{stem}.md")]
        return bool(called) or self.bench.is_taken(path)


def file_for(name: str, is_taken: Callable[[str], bool]) -> str:
    """The path of the note for a new entity: its own name where every system and every link can carry it, else a near
    one. `is_taken` says of a path whether a link to its name would be doubtful."""
    if _carries(name):
        path = f"{FOLDER}/{name}.md"
        if not is_taken(path):
            return path
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    readable = legal_name(name.replace("~", "-").encode("utf-8", "replace").decode())
    readable = readable.encode()[:_MOST_BYTES].decode("utf-8", "ignore").rstrip(" .")
    for length in (12, 24, 64):
        path = f"{FOLDER}/{readable}~{digest[:length]}.md"
        if not is_taken(path):
            return path
    raise AssertionError("two names with one SHA-256")


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
    return (
        bool(name) and len(name) <= 120 and name.isprintable() and name == name.strip()
        and not set(name) & set("[]|#^") and "%%" not in name
    )  # fmt: skip
