"""What a room above the store needs to keep a kind of note of its own: which notes changed, their texts, what a link
means, and several notes written as one step. The store's promises hold for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from simplemem.errors import SimplememError
from simplemem.index.links import named_in_memory
from simplemem.index.notes import Noted, Stat, stat_of
from simplemem.note.note import read_note
from simplemem.note.privacy import private_by_rule, private_reason
from simplemem.note.words import well_formed
from simplemem.store.core import Core
from simplemem.store.saving import now
from simplemem.store.together import Carried, Draft, write_together
from simplemem.vault.links import name_key, resolve
from simplemem.vault.side import SideFile
from simplemem.vault.vault import Change

__all__ = ["Bench", "Carried", "Draft", "Mark", "Noted", "Noticed", "Read", "Stat", "now", "stat_of"]

_MANY = 300  # links that are resolved at once: all names are read then rather than asked for one by one


class Mark(NamedTuple):
    """A state of the index, to ask what changed since."""

    generation: int
    rev: int


@dataclass(frozen=True, slots=True)
class Noticed:
    """Notes put since a mark, and how many there are in all. `having` are those of them with the property that was asked
    for; `whole` says that `notes` are all there are."""

    mark: Mark
    notes: tuple[Noted, ...]
    having: frozenset[str]
    count: int
    whole: bool


class Read(NamedTuple):
    """A note's text, and what the disk said about its file."""

    path: str
    text: str
    sha256: str
    stat: Stat
    problem: str


class Bench:
    """One store, for the rooms above it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._begun = False

    @property
    def read_only(self) -> bool:
        return self._core.read_only or self._core.vault.read_only

    def must_be_writable(self) -> None:
        """Raise ReadOnly where nothing may be written."""
        self._core.must_be_writable()

    def side(self, name: str) -> SideFile:
        """A file under `.simplemem/` that is neither a note nor the index's."""
        return SideFile(str(self._core.root), name)

    def alone(self) -> AbstractContextManager[None]:
        """Hold the vault: what is read in here is what is written on. A thread may take it again and again."""
        return self._core.vault.lock()

    def catch_up(self) -> None:
        """Index what a person or another program wrote, up to this moment. Not while the vault is held."""
        if not self.read_only:
            self._core.catch_up_lately()
        elif not self._begun:
            self._core.sync(None, embed=False, rebuild=False, believe=False, begin=False)
            self._begun = True

    def noticed_since(self, mark: Mark | None, having: str) -> Noticed:
        """What changed in the index since a mark, everything without one. Any process's changes, and a person's as soon
        as they are indexed."""
        return self._core.healing(lambda: self._noticed_since(mark, having))

    def _noticed_since(self, mark: Mark | None, having: str) -> Noticed:
        index = self._core.index
        with index.snapshot():
            generation = index.generation
            whole = mark is None or mark.generation != generation
            rev, noted, with_it, count = index.noted_since(-1 if whole or mark is None else mark.rev, having)
        return Noticed(Mark(generation, rev), tuple(noted), with_it, count, whole)

    def indexed(self) -> frozenset[str]:
        """The paths of all notes in the index."""
        return frozenset(self._core.healing(self._core.index.all_paths))

    def files_below(self, folder: str) -> list[str]:
        """The note files in a folder as the disk has them, those too large to be indexed as well."""
        entries = self._core.vault.entries_below(folder)
        return [entry.path for entry in entries if entry.path.lower().endswith(".md")]

    def read(self, paths: Iterable[str]) -> Iterator[Read]:
        """Notes as they stand on the disk, one after the other. Those that are not there are left out."""
        with self._core.vault.reading() as reading:
            for path in paths:
                try:
                    file = reading(path)
                except (SimplememError, OSError):
                    continue
                stat = stat_of(file.entry)
                try:
                    yield Read(path, file.data.decode("utf-8"), file.sha256, stat, "")
                except UnicodeDecodeError as error:
                    problem = f"byte {error.start} is not UTF-8 text"
                    yield Read(path, file.data.decode("utf-8", "replace"), file.sha256, stat, problem)

    def stats(self, paths: Iterable[str]) -> dict[str, Stat]:
        """What the disk says about some files now; those that are gone are absent."""
        found = {}
        for path in paths:
            entry = self._core.entry(path)
            if entry is not None:
                found[path] = stat_of(entry)
        return found

    def meant(self, links: Sequence[tuple[str, str]], among: Collection[str] | None = None) -> list[str | None]:
        """The paths of the files that links lead to, each a target and the note it stands in; as if only the files
        `among` were there, if they are given."""
        if not links:
            return []
        if among is not None:
            then = named_in_memory(among)
            return [resolve(target, source, then).path for target, source in links]
        return self._core.healing(lambda: self._meant(links))

    def _meant(self, links: Sequence[tuple[str, str]]) -> list[str | None]:
        index = self._core.index
        named = named_in_memory(index.files()) if len(links) > _MANY else index.named()
        with index.snapshot():
            return [resolve(target, source, named).path for target, source in links]

    def files_called(self, name: str) -> Sequence[str]:
        """All files of that name, compared as links compare. Half a character is in no file's name."""
        if well_formed(name) != name:
            return ()
        return self._core.healing(lambda: self._core.index.named()(name_key(name)))

    def judge_of_privacy(self) -> Callable[[str, bytes, str], bool]:
        """What says of a note's path, its bytes and their hash whether it is private. The index knows it of most; what it
        has read otherwise, or not at all, is read again, since its text is about to go out."""
        known, rules = self._core.healing(self._core.index.privacy), self._core.settings.embed.private

        def is_private(path: str, data: bytes, sha256: str) -> bool:
            there = known.get(path)
            if there is not None and there[0] == sha256:
                return there[1] or private_by_rule(path, rules)
            return private_reason(path, read_note(data, sha256), rules) is not None

        return is_private

    def is_taken(self, path: str) -> bool:
        """Whether anything lies at a path."""
        return self._core.vault.is_taken(path)

    def may_go(self, path: str) -> bool:
        """Whether the rules let a note be deleted."""
        rules = self._core.vault.access
        return not rules.no_delete and not rules.hides(path) and rules.may_change(path)

    def write(self, drafts: Sequence[Draft], *, who: str, tool: str, reason: str) -> Carried:
        """Carry out drafts as one step: one entry of the history, one undo. Conflict when a note is another by now."""
        return write_together(self._core, drafts, Change(tool, who, reason), now())

    def look_at(self, paths: Iterable[str]) -> None:
        """Index what is at these paths now."""
        self._core.look_at(set(paths))
