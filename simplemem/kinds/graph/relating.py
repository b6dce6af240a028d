"""The relations of a change while it is made: which there are, which come, which go, and what they leave behind.

A page is read once for a change, however many relations it gets; its lines are changed together at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from simplemem.kinds.graph.draft import Drafting
from simplemem.kinds.graph.known import Known, Tie
from simplemem.kinds.graph.lists import Bond, Bullet
from simplemem.kinds.graph.page import bond_line, is_bare
from simplemem.kinds.graph.spelling import literal
from simplemem.kinds.graph.values import Relation
from simplemem.note.names import base_name
from simplemem.store.bench import Bench

Key = tuple[str, str, str]


class Relating:
    """What one change does to relations."""

    def __init__(self, known: Known, bench: Bench, drafting: Drafting) -> None:
        self._known = known
        self._bench = bench
        self._drafting = drafting
        self._held: dict[str, dict[Key, tuple[Bullet, Relation]]] = {}
        self._lines: dict[str, list[str]] = {}
        self._changes: dict[str, list[tuple[Bullet, Mapping[str, Any]]]] = {}

    # -- ends

    def end(self, name: str) -> str | None:
        """The page of a name."""
        page = self._known.named(name)
        return None if page is None else page.path

    def is_lacking(self, name: str) -> bool:
        """Whether no entity or note has this name."""
        page = self._known.named(name)
        return page is None or page.is_stub

    def note_called(self, name: str) -> str | None:
        """The one note of exactly this name, which a relation then draws into the graph."""
        found = [path for path in self._bench.files_called(f"{name}.md") if base_name(path) == name]
        pages = [page for page in map(self._known.page_at, found) if page is not None and page.name == name]
        return pages[0].path if len(pages) == 1 and len(found) == 1 else None

    # -- what there is

    def held(self, path: str, key: Key) -> tuple[Bullet, Relation] | None:
        """A relation that stands on a page, and its bullet."""
        there = self._held.get(path)
        if there is None:
            there = self._held[path] = {}
            for bullet, relation in self._on(path):
                there.setdefault(relation.key, (bullet, relation))
        return there.get(key)

    def _on(self, path: str) -> list[tuple[Bullet, Relation]]:
        """The relations of a page as this change has made it so far."""
        page = self._drafting.page(path)
        if page is None:
            return []
        bullets = [bullet for bullet in page.bullets if isinstance(bullet.says, Bond)]
        return [
            (bullet, Relation(page.name, tie.bond.type, self._name_at(tie), tie.bond.attributes))
            for bullet, tie in zip(bullets, self._known.resolved(page), strict=True)
        ]

    def _name_at(self, tie: Tie) -> str:
        """Where a relation leads, also to a page that is made in this very change."""
        if tie.path is None and tie.bond.link and (made := self._drafting.made_as(tie.bond.link)) is not None:
            return made
        return self._known.target(tie)

    # -- what comes and goes

    def line(self, source: str, relation: Relation, target: str | None) -> str:
        """A relation as a bullet of the page `source`; `target` is the page it leads to."""
        link = literal(relation.target) if target is None else self._drafting.link_to(target, relation.target, source)
        return bond_line(relation.type, link, relation.attributes)

    def add(self, source: str, relation: Relation, target: str | None) -> None:
        self._lines.setdefault(source, []).append(self.line(source, relation, target))

    def change(self, source: str, bullet: Bullet, relation: Relation) -> None:
        self._changes.setdefault(source, []).append((bullet, relation.attributes))

    def settle(self) -> None:
        """Put what was added and changed into the pages."""
        for path, changes in self._changes.items():
            changes.sort(key=lambda each: -each[0].start)  # from the end, so that places stay as they are
            for bullet, attributes in changes:
                self._drafting.change(path, bullet, attributes)
        for path, lines in self._lines.items():
            self._drafting.add(path, "relations", lines)

    def take_out(self, path: str, which: Callable[[Relation], bool]) -> int:
        """Take relations out of a page. Returns how many."""
        count = 0
        while gone := [bullet for bullet, relation in self._on(path) if which(relation)]:
            self._drafting.take_out_bonds(path, gone)  # a bullet with two links is about the second one now
            count += len(gone)
        return count

    def is_bare(self, path: str) -> bool:
        """Whether nobody wrote anything on a page that relations made."""
        page = self._drafting.page(path)
        return page is not None and page.is_stub and is_bare(self._drafting.text(path))

    def drop_idle_stubs(self, gone: Collection[str]) -> None:
        """Pages that only held relations, and hold none any more once those that are `gone` went."""
        touched = {draft.path for draft in self._drafting.drafts()} | set(gone)
        led_to = {
            tie.path
            for path in touched
            if (page := self._known.pages.get(path)) is not None
            for tie in self._known.ties(page)
            if tie.path is not None
        }
        for path in sorted((touched | led_to) - set(gone)):
            stub = self._known.pages.get(path)
            if (
                stub is None
                or not stub.is_stub
                or self._on(path)
                or not self.is_bare(path)
                or not self._bench.may_go(path)
            ):
                continue
            sources = [page.path for page in self._known.pointing_at(stub) if page.path not in gone]
            if not any(relation.target == stub.name for source in sources for _, relation in self._on(source)):
                self._drafting.drop(path)
