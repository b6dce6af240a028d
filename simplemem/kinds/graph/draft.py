"""A change of the graph while it is made: the pages it touches, read as they are now, and what they shall be.

It is written as one step, or not at all. A page that somebody saves meanwhile makes the step be thought out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simplemem.errors import Unreadable
from simplemem.kinds.graph import page as pages
from simplemem.kinds.graph.files import file_for
from simplemem.kinds.graph.lists import Bullet
from simplemem.kinds.graph.page import Page, read_page
from simplemem.kinds.graph.spelling import literal
from simplemem.kinds.graph.values import Observation
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.store.bench import Bench, Draft


class Gone(Exception):
    """A page that a change is for has gone from the disk, which the index does not know or not believe yet."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Drafting:
    """The notes that one change touches."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._before: dict[str, str | None] = {}
        self._after: dict[str, str | None] = {}
        self._pages: dict[str, tuple[str, Page]] = {}  # with the texts they were read from
        self._made: dict[str, str] = {}  # new pages by what the names of their files are compared by

    def page(self, path: str) -> Page | None:
        """A page as this change has made it so far, beginning with what lies on the disk now."""
        text = self._text(path)
        return None if text is None else self._page_of(path, text)

    def text(self, path: str) -> str:
        """The text of a page that is there."""
        text = self._text(path)
        if text is None:
            raise Gone(path)
        return text

    def made_as(self, target: str) -> str | None:
        """The name of the page that this change makes, and a link with that target would lead to."""
        path = self._made.get(compare_key(base_name(target)))
        page = None if path is None else self.page(path)
        return None if page is None else page.name

    def _text(self, path: str) -> str | None:
        if path not in self._after:
            read = next(iter(self._bench.read([path])), None)
            if read is not None and (problem := read.problem or self._page_of(path, read.text).problem):
                raise Unreadable(
                    f"{name_of(path)} cannot be changed: {problem}",
                    hint="It is read as it is. Mend it in an editor, then try again.",
                )
            self._before[path] = self._after[path] = None if read is None else read.text
        return self._after[path]

    def _page_of(self, path: str, text: str) -> Page:
        """A text as a page, read once however often it is asked for."""
        kept = self._pages.get(path)
        if kept is None or kept[0] is not text:
            kept = self._pages[path] = (text, read_page(path, text, ""))
        return kept[1]

    def choose(self, name: str) -> str:
        """The path of a page that this change will make."""
        path = file_for(name, self._is_taken)
        self._made[compare_key(base_name(path))] = path
        return path

    def make(
        self,
        name: str,
        kind: str | None,
        order: int,
        now: str,
        observations: Sequence[Observation] = (),
        bonds: Sequence[str] = (),
        path: str = "",
    ) -> str:
        """A new page, and its path, chosen before or now."""
        path = path or self.choose(name)
        self._before.setdefault(path, None)
        self._after[path] = pages.new_page(name, path, kind, order, now, observations=observations, bonds=bonds)
        return path

    def written(self) -> None:
        """Forget what is on the disk now; the names that were chosen stay taken."""
        self._before, self._after, self._pages = {}, {}, {}

    def set(self, path: str, text: str) -> None:
        self._text(path)
        self._after[path] = text

    def add(self, path: str, section: str, lines: Sequence[str]) -> None:
        """Add bullets to a section of a page."""
        text = self.text(path)
        self._after[path] = pages.with_lines(text, self._page_of(path, text), section, lines)

    def take_out(self, path: str, bullets: Sequence[Bullet]) -> None:
        self._after[path] = pages.without_bullets(self.text(path), bullets)

    def take_out_bonds(self, path: str, bullets: Sequence[Bullet]) -> None:
        self._after[path] = pages.without_bonds(self.text(path), bullets)

    def change(self, path: str, bullet: Bullet, attributes: Mapping[str, Any]) -> None:
        self._after[path] = pages.with_attributes(self.text(path), bullet, attributes)

    def drop(self, path: str) -> None:
        """The page goes into the trash."""
        if self._text(path) is not None:
            self._after[path] = None

    def drafts(self) -> list[Draft]:
        return [
            Draft(path, text, self._before[path]) for path, text in self._after.items() if text != self._before[path]
        ]

    def link_to(self, path: str, name: str, source: str) -> str:
        """A link to a page from another, as short as it can be, showing the exact name where the file has another."""
        stem = base_name(path)
        spellings = (stem, name_of(path), f"{stem}.md", path)
        target = stem
        if self._made.get(compare_key(stem)) != path:  # a new page has a name of its own, which no index knows yet
            meant = self._bench.meant([(spelling, source) for spelling in spellings])
            target = next((each for each, found in zip(spellings, meant, strict=True) if found == path), path)
        if set(target) & set("[]|#"):  # the name of a person's file, which no link can say
            return literal(name)
        shown = name if name != target and _can_be_shown(name) else ""
        return f"[[{target}|{shown}]]" if shown else f"[[{target}]]"

    def _is_taken(self, path: str) -> bool:
        """Whether a link to this name would be doubtful, or a file is in the way."""
        stem = base_name(path)
        if compare_key(stem) in self._made:
            return True
        called = [*self._bench.files_called(stem), *self._bench.files_called(f"{stem}.md")]
        return bool(called) or self._bench.is_taken(path)


def _can_be_shown(name: str) -> bool:
    """Whether a link can show this name."""
    return (
        bool(name) and len(name) <= 120 and name.isprintable() and name == name.strip()
        and not set(name) & set("[]|#^") and "%%" not in name
    )  # fmt: skip
