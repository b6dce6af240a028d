"""What can be mended, as one change of many notes: drafted and shown before anything is written. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simplemem.errors import SimplememError
from simplemem.index.links import named_in_memory
from simplemem.memory import Finding, Mend
from simplemem.note.diff import unified_diff
from simplemem.note.names import name_of
from simplemem.note.note import Note, read_note
from simplemem.note.properties import without_repeated
from simplemem.store.core import Core
from simplemem.store.doctor.case import Discard, DropRepeated, MakeIndexAnew, Noticed, Point, Remedy, Rename
from simplemem.vault.links import resolve
from simplemem.vault.rewrite import Aim, Moved, lead_links, rewrite_links
from simplemem.vault.vault import Wish


@dataclass(frozen=True, slots=True)
class Mending:
    """Everything that was found, and what of it can be mended: the changes as a person reads them, and as wishes; and what
    is left then. Where the index is to be made anew, no note is touched for that."""

    findings: tuple[Finding, ...]
    left: tuple[Finding, ...]
    changes: tuple[Mend, ...]
    wishes: tuple[Wish, ...]
    makes_index_anew: bool
    unmended: tuple[str, ...] = ()  # what cannot be mended after all, and why

    @property
    def is_empty(self) -> bool:
        return not self.wishes and not self.makes_index_anew


@dataclass(slots=True)
class _Draft:
    """One file as it is, and as it shall be."""

    path: str
    sha256: str
    data: bytes
    text: str | None = None  # None while its bytes stay
    new_path: str = ""
    gone: bool = False
    what: list[str] = field(default_factory=list)

    @property
    def note(self) -> Note:
        return read_note(self.data if self.text is None else self.text.encode())

    @property
    def wanted(self) -> bytes:
        return self.data if self.text is None else self.text.encode()


class _Drafts:
    """All files that change, each read once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._drafts: dict[str, _Draft] = {}
        self._files = set(core.healing(core.index.files))
        self._named = named_in_memory(self._files)
        self.unmended: list[str] = []

    def of(self, path: str) -> _Draft:
        if path not in self._drafts:
            file = self._core.vault.read(path)
            self._drafts[path] = _Draft(path, file.sha256, file.data)
        return self._drafts[path]

    def _to_change(self, path: str) -> _Draft:
        """The draft of a file that is going to be changed. ReadOnly where the rules forbid it: such a file is left alone."""
        self._core.vault.access.check(path, asked=True)
        return self.of(path)

    def changed(self) -> list[_Draft]:
        return [each for each in self._drafts.values() if each.gone or each.new_path or each.wanted != each.data]

    def apply(self, remedies: Sequence[Remedy | None]) -> list[Remedy]:
        """Draft what remedies of one kind do to one file; those that came to nothing."""
        points = [each for each in remedies if isinstance(each, Point)]
        if points:
            return self._lead(points[0].source, points)
        for remedy in remedies:
            if isinstance(remedy, DropRepeated):
                self._drop_repeated(remedy)
            elif isinstance(remedy, Rename):
                self._rename(remedy)
            elif isinstance(remedy, Discard):
                self._discard(remedy)
        return []

    def _drop_repeated(self, remedy: DropRepeated) -> None:
        draft = self._to_change(remedy.path)
        draft.text = without_repeated(draft.note.text)
        draft.what.append("a key of its header is there once")

    def _lead(self, source: str, points: Sequence[Point]) -> list[Remedy]:
        draft = self._to_change(source)
        note = draft.note
        note.must_be_editable(source)
        aims = {point.target: Aim(point.path, point.was) for point in points}
        draft.text = lead_links(note, source, aims, self._named, self._core.conventions.link_format)
        nowhere = {link.target for link in draft.note.links if resolve(link.target, source, self._named).path is None}
        draft.what += [f"[[{t}]] leads to {name_of(aim.path)}" for t, aim in aims.items() if t not in nowhere]
        if stubborn := nowhere & aims.keys():
            self.unmended.append(
                f"{source}: [[{', '.join(sorted(stubborn))}]] can be written in no way that leads there"
            )
        return [point for point in points if point.target in nowhere]

    def _rename(self, remedy: Rename) -> None:
        self._to_change(remedy.path)
        self._core.vault.access.check(remedy.new_path, asked=True)
        moved = Moved(remedy.path, remedy.new_path)
        after = self._files - {remedy.path} | {remedy.new_path}
        after_named = named_in_memory(after)
        touched = set(
            self._core.healing(lambda: self._core.index.sources_that_could_mean([remedy.path, remedy.new_path]))
        )
        if remedy.path.casefold().endswith(".md"):
            touched.add(remedy.path)
        following: list[tuple[_Draft, str]] = []
        for draft in map(self.of, sorted(touched)):
            note, source = draft.note, draft.new_path or draft.path
            text = rewrite_links(note, source, moved, self._named, after_named, self._core.conventions.link_format)
            if text == note.text:
                continue
            note.must_be_editable(source)
            self._to_change(draft.path)
            following.append((draft, text))
        for draft, text in following:
            draft.text = text
            draft.what.append(f"its links follow {name_of(remedy.new_path)}")
        draft = self.of(remedy.path)
        draft.new_path = remedy.new_path
        draft.what.insert(0, f"is called {remedy.new_path}")
        self._files, self._named = after, after_named

    def _discard(self, remedy: Discard) -> None:
        self._core.vault.access.check_gone(remedy.path)
        draft = self._to_change(remedy.path)
        draft.gone, draft.text, draft.new_path = True, None, ""
        draft.what = [f"goes to the trash: {remedy.why}"]


_ORDER = (DropRepeated, Point, Rename, Discard)
"""A header is mended before the links in it, and links lead where they should before a name changes."""


def plan(core: Core, noticed: Sequence[Noticed]) -> Mending:
    """One change of all that can be mended in what was noticed."""
    drafts = _Drafts(core)
    groups: dict[tuple[int, str], list[Noticed]] = {}
    for each in noticed:
        if isinstance(each.remedy, _ORDER):
            path = each.remedy.source if isinstance(each.remedy, Point) else each.remedy.path
            groups.setdefault((_ORDER.index(type(each.remedy)), path), []).append(each)
    left = {each.finding for each in noticed if each.remedy is None}
    for _, group in sorted(groups.items(), key=lambda item: item[0]):
        try:
            failed = drafts.apply([each.remedy for each in group])
        except SimplememError as error:
            drafts.unmended.append(error.message)
            failed = [each.remedy for each in group if each.remedy is not None]
        left |= {each.finding for each in group if each.remedy in failed}
    changed = sorted(drafts.changed(), key=lambda draft: draft.path)
    return Mending(
        tuple(each.finding for each in noticed),
        tuple(each.finding for each in noticed if each.finding in left),
        tuple(map(_shown, changed)),
        tuple(map(_wish, changed)),
        any(isinstance(each.remedy, MakeIndexAnew) for each in noticed),
        tuple(drafts.unmended),
    )


def _shown(draft: _Draft) -> Mend:
    diff = unified_diff(draft.data, draft.wanted, (draft.path, draft.new_path or draft.path), most=None)
    return Mend(draft.path, draft.new_path, tuple(dict.fromkeys(draft.what)), diff, draft.gone)


def _wish(draft: _Draft) -> Wish:
    if draft.gone:
        return Wish("delete", draft.path, before=draft.sha256, gone=True)
    data = draft.wanted if draft.wanted != draft.data else None
    if draft.new_path:
        return Wish("move", draft.path, before=draft.sha256, new_path=draft.new_path, data=data)
    return Wish("update", draft.path, before=draft.sha256, data=data)
