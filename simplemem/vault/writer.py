"""How a write goes: wishes are checked, staged, carried out together, and answered (durability.md §3).

A wish says what one note shall become. Everything that changes a note is a list of them, all carried out or none, under
the vault's lock. Nothing here knows where a wish comes from, or what a note means.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, ReadOnly, TooLong
from simplemem.note.diff import WHAT_YOU_HAD, WHAT_YOU_WANT, unified_diff
from simplemem.note.names import compare_key
from simplemem.vault import disk
from simplemem.vault.disk import Entry, Intruded, entry_at, sha256
from simplemem.vault.history import OWN_TRASH, History, Op, Version, spell
from simplemem.vault.journal import OBSIDIAN_TRASH, Journal, Step
from simplemem.vault.paths import Beneath, check_path, is_path, parent, telling


@dataclass(frozen=True, slots=True)
class Change:
    """Who asks for a write, and why: kept in the history."""

    tool: str
    who: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did to one note. `changed` is False when it had been done already."""

    path: str
    sha256: str | None
    previous_sha256: str | None
    version: str
    entry: Entry | None
    changed: bool


@dataclass(frozen=True)
class Wish:
    """What one note shall become. Without `before` it must not exist; without `data` it keeps its text."""

    op: Op
    path: str
    before: str | None = None
    new_path: str | None = None
    data: bytes | None = None
    gone: bool = False
    trash: str | None = None  # the file in the trash that comes back

    @staticmethod
    def update(path: str, before: str, data: bytes) -> Wish:
        """New bytes for the file whose hash is `before`."""
        return Wish("update", path, before=before, data=data)

    @cached_property
    def after(self) -> str | None:
        """The hash of its bytes afterwards."""
        return None if self.gone else sha256(self.data) if self.data is not None else self.before

    @property
    def target(self) -> str:
        """Where the note is afterwards."""
        return self.path if self.new_path is None else self.new_path


class _Present(NamedTuple):
    """What lies at the path of a wish."""

    data: bytes
    sha256: str
    writable: bool


@dataclass
class Writer:
    """Carries out wishes in one vault."""

    root: str
    lock: Callable[[], AbstractContextManager[None]]
    history: History
    journal: Journal
    durable: bool
    max_bytes: int
    trash: Literal["own", "obsidian"]

    def carry_out(self, wishes: Sequence[Wish], change: Change) -> list[Written]:
        """All of it or nothing; the answers in the order of the wishes."""
        self._check(wishes)
        first, staged = wishes[0], dict[str, str]()
        with telling(first.op, first.path, writing=True), Beneath(self.root) as here, ExitStack() as held:
            held.callback(_drop, here, staged)  # what was never in place
            if len(wishes) == 1:
                # One note: its text is written and synced before the lock is asked for, so that others need not wait.
                present = self._present(here, first)
                if self._is_done(here, first, present):
                    return self._repeated(here, wishes)
                self._check_expected(here, first, present)
                if first.data is not None and first.trash is None:
                    staged[first.path], fd = self._stage(here, first, first.data, hold=True)
                    if fd >= 0:
                        held.callback(os.close, fd)
            with self.lock():
                return self._under_lock(here, wishes, change, staged)

    def _under_lock(
        self, here: Beneath, wishes: Sequence[Wish], change: Change, staged: dict[str, str]
    ) -> list[Written]:
        self.journal.resume(here)
        present = self._present(here, wishes[0])
        others = (self._is_done(here, wish, self._present(here, wish)) for wish in wishes[1:])
        if self._is_done(here, wishes[0], present) and all(others):
            return self._repeated(here, wishes)
        for wish in wishes:
            present = present if wish is wishes[0] else self._present(here, wish)
            self._check_expected(here, wish, present)
            if present is not None:  # of a move too: where it goes, another program may change it unseen
                self.history.keep(here, present.data, present.sha256)
        folders: dict[str, tuple[list[str], str]] = {}
        for wish in wishes:
            _check_free(here, wish, folders)
            if wish.data is not None:
                self.history.keep(here, wish.data, wish.after or "")
        versions = self._versions(here, wishes, change)
        self._stage_all(here, wishes, staged)
        # From here on the journal answers for what is staged.
        paired = list(zip(wishes, versions, strict=True))
        steps = [Step(version, staged.pop(wish.path, wish.trash)) for wish, version in paired]
        try:
            self.journal.perform(here, steps)
        except Intruded as event:
            wish = next(wish for wish in wishes if event.path in (wish.path, wish.new_path))
            raise self._conflict(here, wish) from event
        except FileExistsError as error:
            raise _exists(wishes[0].target) from error
        return [
            Written(wish.target, wish.after, wish.before, version.id, entry_at(here, wish.target), True)
            for wish, version in paired
        ]

    # Checks

    def _check(self, wishes: Sequence[Wish]) -> None:
        seen: set[str] = set()
        for wish in wishes:
            for path in {wish.path, wish.target}:
                check_path(path)
                if path in seen:
                    raise Invalid(f"{path!r} is changed twice in one operation.")
                seen.add(path)
            if wish.data is not None and len(wish.data) > self.max_bytes:
                much = f"{len(wish.data):,} bytes for {wish.path!r}"
                raise TooLong(f"{much}; at most {self.max_bytes:,} are written.")

    def _present(self, here: Beneath, wish: Wish) -> _Present | None:
        try:
            data, found = disk.read_file(here, wish.path, self.max_bytes)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _Present(data, sha256(data), bool(found.st_mode & 0o222))

    def _is_done(self, here: Beneath, wish: Wish, present: _Present | None) -> bool:
        """A repeated write that has happened is success: the answer to the first may have been lost (F66)."""
        if wish.new_path is None and not wish.gone:
            return present is not None and present.sha256 == wish.after
        try:
            there = disk.hash_of(here, wish.target)
        except NotADirectoryError:
            there = None
        if present is not None or there != wish.after:
            return False
        asked = (wish.path, wish.new_path, wish.before, wish.after)
        last = next(self.history.log.of(wish.path), None)
        return last is not None and (last.path, last.new_path, last.before, last.after) == asked

    def _check_expected(self, here: Beneath, wish: Wish, present: _Present | None) -> None:
        if present is None and wish.before is None:
            return
        if present is None:
            with suppress(FileNotFoundError):
                here.stat(wish.path)  # a link or a file where a folder should be is told as such
            raise self._conflict(here, wish) if wish.op == "undo" else no_such(wish.path)
        if wish.before is None:
            raise self._conflict(here, wish) if wish.op == "undo" else _exists(wish.path)
        if present.sha256 != wish.before:
            raise self._conflict(here, wish)
        if wish.data is not None and not present.writable:
            raise ReadOnly(f"{wish.path!r} is write-protected.", hint="Allow writing to the file first.")

    def _conflict(self, here: Beneath, wish: Wish) -> Conflict:
        path = wish.path
        try:
            data, _ = disk.read_file(here, path)
        except FileNotFoundError:
            hint = "Look for it under another name, or create it anew."
            return Conflict(f"{path!r} was deleted or moved meanwhile.", current_sha256=None, hint=hint, path=path)
        had = self.history.content(wish.before) if wish.before else None
        diff = unified_diff(wish.data, data, WHAT_YOU_WANT) if had is None else unified_diff(had, data, WHAT_YOU_HAD)
        hint = "Read what is there now, and apply your change to that."
        message = f"{path!r} has changed since." if wish.before else f"{path!r} is there again."
        return Conflict(message, current_sha256=sha256(data), diff=diff, hint=hint, path=path)

    # Staging

    def _stage_all(self, here: Beneath, wishes: Sequence[Wish], staged: dict[str, str]) -> None:
        fresh = []
        for wish in wishes:
            # A file that can come back from the trash itself comes with its dates and attributes.
            comes_back = wish.trash is not None and disk.hash_of(here, wish.trash) == wish.after
            if wish.data is not None and wish.path not in staged and not comes_back:
                # Under the lock nobody sweeps, so nothing is held open: there may be thousands.
                staged[wish.path], _ = self._stage(here, wish, wish.data, hold=False)
                fresh.append(staged[wish.path])
        if self.durable:
            disk.sync_paths(here, fresh)

    def _stage(self, here: Beneath, wish: Wish, data: bytes, *, hold: bool) -> tuple[str, int]:
        folder = parent(wish.target)
        # Folders are made when the change is carried out, not before: it may yet fail.
        folder = folder[: len(folder) - len(here.missing(folder))]
        like = wish.path if wish.before is not None else None
        return disk.stage(here, folder, data, like=like, sync=self.durable and hold, hold=hold)

    # What is said about it

    def _versions(self, here: Beneath, wishes: Sequence[Wish], change: Change) -> list[Version]:
        number = self.history.log.next_number(here)
        steps = [
            {"path": wish.path, "new_path": wish.new_path, "op": wish.op, "before": wish.before, "after": wish.after}
            | ({"trash": self._trash_place(here, wish.path, spell(number))} if wish.gone else {})
            for wish in wishes
        ]
        return self.history.log.stamp(steps, first=number, tool=change.tool, who=change.who, reason=change.reason)

    def _trash_place(self, here: Beneath, path: str, version: str) -> str:
        """Where a deleted file goes: ours keeps versions apart, and what clashes is numbered (obsidian.md §5)."""
        place = first = f"{OWN_TRASH}/{version}/{path}" if self.trash == "own" else f"{OBSIDIAN_TRASH}/{path}"
        cut = first.rindex(".") if "." in path.rpartition("/")[2] else len(first)
        number = 1
        while entry_at(here, place) is not None:
            number += 1
            place = f"{first[:cut]} {number}{first[cut:]}"
        return place

    def _repeated(self, here: Beneath, wishes: Sequence[Wish]) -> list[Written]:
        answers = []
        for wish in wishes:
            last = next(self.history.log.of(wish.target), None)
            version = last.id if last is not None and last.after == wish.after else ""
            entry = entry_at(here, wish.target)
            answers.append(Written(wish.target, wish.after, wish.after, version, entry, changed=False))
        return answers


def no_such(path: str) -> NotFound:
    """The error for a path where nothing is."""
    return NotFound(f"There is no {path!r} in the vault.")


def _exists(path: str) -> AlreadyExists:
    hint = "Choose another name, or change the one there is."
    return AlreadyExists(f"{path!r} is there already.", hint=hint, path=path)


def _drop(here: Beneath, staged: dict[str, str]) -> None:
    while staged:
        disk.remove(here, staged.popitem()[1])


def _check_free(here: Beneath, wish: Wish, folders: dict[str, tuple[list[str], str]]) -> None:
    """obsidian.md §5: unique without regard to case and to how accents are spelled. `folders` are the names in those that
    were looked into, and all of them in small letters: most operations ask once, of a folder that may have many thousand."""
    if (wish.before is not None and wish.new_path is None) or (wish.op == "undo" and wish.new_path is not None):
        return  # it stays where it is, or goes back to where it was
    found, parts = [""], check_path(wish.target)
    for depth, part in enumerate(parts, 1):
        key, ending, deeper = compare_key(part), "/" if depth < len(parts) else "", list[str]()
        for prefix in found:
            if prefix not in folders:
                names: list[str] = []
                with suppress(FileNotFoundError, NotADirectoryError):
                    names = here.folder(tuple(prefix.split("/")[:-1])).names()
                folders[prefix] = names, f"/{'/'.join(names)}/".lower()
            names, together = folders[prefix]
            if f"/{key}/" in together or not together.isascii():
                deeper += [f"{prefix}{name}{ending}" for name in names if compare_key(name) == key and is_path(name)]
        found = deeper
    for twin in found:
        if twin != wish.path or wish.new_path is None:
            raise _exists(twin)
