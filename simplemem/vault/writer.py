"""How a write goes: wishes are checked, staged, carried out together under the vault's lock, and answered
(durability.md §3). Nothing here knows where a wish comes from, or what a note means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from simplemem.errors import AlreadyExists, Conflict, NotFound, ReadOnly
from simplemem.note.diff import WHAT_YOU_HAD, WHAT_YOU_WANT, unified_diff
from simplemem.note.names import compare_key
from simplemem.vault import disk
from simplemem.vault.disk import Entry, Intruded, entry_at, sha256
from simplemem.vault.history import OWN_TRASH, Op, Version, spell
from simplemem.vault.journal import OBSIDIAN_TRASH, Step
from simplemem.vault.paths import Beneath, is_path, parent

if TYPE_CHECKING:
    from simplemem.vault.vault import Vault


class Change(NamedTuple):
    """Who asks for a write, and why: kept in the history."""

    tool: str
    who: str = ""
    reason: str = ""


class Written(NamedTuple):
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
    at: float | None = None  # when it was changed last, in seconds, if that is not now

    @staticmethod
    def update(path: str, before: str | None, data: bytes | None) -> Wish:
        """New bytes for the file whose hash is `before`, None for a new file; without bytes it goes to the trash."""
        if data is None:
            return Wish("delete", path, before=before, gone=True)
        return Wish("create" if before is None else "update", path, before=before, data=data)

    @cached_property
    def after(self) -> str | None:
        """The hash of its bytes afterwards."""
        return None if self.gone else sha256(self.data) if self.data is not None else self.before

    @property
    def target(self) -> str:
        """Where the note is afterwards."""
        return self.path if self.new_path is None else self.new_path


class Operation:
    """Wishes that are being carried out, all or none, with the vault's lock held."""

    def __init__(self, vault: Vault, here: Beneath, wishes: Sequence[Wish]) -> None:
        self._vault, self._here, self._wishes = vault, here, wishes
        self._texts: dict[
            str, tuple[bytes, str]
        ] = {}  # what lies at the path of each wish, and its hash
        self._staged: dict[str, str] = {}  # by path, until the journal answers for it
        self._folders: dict[
            str, tuple[list[str], str]
        ] = {}  # the names in those that were looked into

    def carry_out(self, change: Change) -> list[Written]:
        """All of it or nothing; the answers in the order of the wishes."""
        for wish in self._wishes:
            if (data := self._text(wish.path)) is not None:
                self._texts[wish.path] = data, sha256(data)
        if all(map(self._is_done, self._wishes)):
            last = [next(self._vault.history.log.of(wish.target), None) for wish in self._wishes]
            return [
                self._written(
                    wish,
                    wish.after,
                    one.id if one is not None and one.after == wish.after else "",
                    False,
                )
                for wish, one in zip(self._wishes, last, strict=True)
            ]
        for wish in self._wishes:
            self._check_expected(wish)
        for wish in self._wishes:
            self._check_free(wish)
        versions = self._versions(change)
        self._make(versions)
        paired = zip(self._wishes, versions, strict=True)
        return [self._written(wish, wish.before, version.id, True) for wish, version in paired]

    # -- where the notes lie: in a folder

    def _text(self, path: str) -> bytes | None:
        """What lies at a path, None for nothing."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return disk.read_file(self._here, path)[0]
        return None

    def _names(self, folder: str) -> list[str]:
        """What is in a folder."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return self._here.folder(parent(folder)).names()
        return []

    def _entry(self, path: str) -> Entry | None:
        return entry_at(self._here, path)

    def _check_writable(self, path: str) -> None:
        """Refuse what is write-protected, or no file."""
        with suppress(FileNotFoundError):
            if not self._here.stat(path).st_mode & 0o222:
                raise ReadOnly(
                    f"{path!r} is write-protected", hint="Allow writing to the file first."
                )

    def _in_trash(self, path: str, number: int) -> str | None:
        """Where a file goes that is deleted; what clashes there is numbered (obsidian.md §5)."""
        top = f"{OWN_TRASH}/{spell(number)}" if self._vault.trash_kind == "own" else OBSIDIAN_TRASH
        (stem, ending), clashes = os.path.splitext(f"{top}/{path}"), 1
        place = f"{stem}{ending}"
        while self._entry(place) is not None:
            clashes += 1
            place = f"{stem} {clashes}{ending}"
        return place

    def _make(self, versions: Sequence[Version]) -> None:
        """Carry the wishes out, which are these versions."""
        keep = self._vault.history.keep
        for wish in self._wishes:
            if (
                wish.path in self._texts
            ):  # of a move too: where it goes, another program may change it unseen
                keep(self._here, *self._texts[wish.path])
            if wish.data is not None:
                keep(self._here, wish.data, wish.after or "")
        try:
            self._stage()
        except BaseException:
            for temp in self._staged.values():
                disk.remove(self._here, temp)
            raise
        try:
            paired = zip(self._wishes, versions, strict=True)
            steps = [
                Step(version, self._staged.get(wish.path, wish.trash)) for wish, version in paired
            ]
            self._vault.journal.perform(self._here, steps)
        except Intruded as event:
            wish = next(wish for wish in self._wishes if event.path in (wish.path, wish.new_path))
            raise self._conflict(wish) from event
        except FileExistsError as error:
            raise taken(self._wishes[0].target) from error

    # -- for every vault alike

    def _written(self, wish: Wish, before: str | None, version: str, changed: bool) -> Written:
        return Written(wish.target, wish.after, before, version, self._entry(wish.target), changed)

    def _is_done(self, wish: Wish) -> bool:
        """A repeated write that has happened is success: the answer to the first may have been lost (F66)."""
        if wish.new_path is None and not wish.gone:
            return wish.path in self._texts and self._texts[wish.path][1] == wish.after
        there = self._text(wish.target)
        if wish.path in self._texts or (None if there is None else sha256(there)) != wish.after:
            return False
        asked = (wish.path, wish.new_path, wish.before, wish.after)
        last = next(self._vault.history.log.of(wish.path), None)
        return last is not None and (last.path, last.new_path, last.before, last.after) == asked

    def _check_expected(self, wish: Wish) -> None:
        if wish.path not in self._texts:
            if wish.before is None:
                return
            self._check_writable(
                wish.path
            )  # a link or a file where a folder should be is told as such
            raise self._conflict(wish) if wish.op == "undo" else no_such(wish.path)
        if wish.before is None and wish.op != "undo":
            raise taken(wish.path)
        if self._texts[wish.path][1] != wish.before:
            raise self._conflict(wish)
        if wish.data is not None:
            self._check_writable(wish.path)

    def _check_free(self, wish: Wish) -> None:
        """obsidian.md §5: unique without regard to case and to how accents are spelled."""
        if (wish.before is not None and wish.new_path is None) or (
            wish.op == "undo" and wish.new_path is not None
        ):
            return  # it stays where it is, or goes back to where it was
        found, parts = [""], wish.target.split("/")
        for depth, part in enumerate(parts, 1):
            ending = "/" if depth < len(parts) else ""
            found = [
                f"{above}{name}{ending}"
                for above in found
                for name in self._called_so(above, compare_key(part))
            ]
        for twin in found:
            if is_path(twin) and (twin != wish.path or wish.new_path is None):
                raise taken(twin)

    def _called_so(self, folder: str, key: str) -> list[str]:
        """The names in a folder with this compare key: looked for in all of them together first, they may be many."""
        if folder not in self._folders:
            names = self._names(folder)
            self._folders[folder] = names, f"/{'/'.join(names)}/".lower()
        names, together = self._folders[folder]
        if together.isascii() and f"/{key}/" not in together:
            return []
        return [name for name in names if compare_key(name) == key]

    def _conflict(self, wish: Wish) -> Conflict:
        path, data = wish.path, self._text(wish.path)
        if data is None:
            hint = "Look for it under another name, or create it again."
            return Conflict(
                f"{path!r} was deleted or moved meanwhile",
                current_sha256=None,
                hint=hint,
                path=path,
            )
        had = self._vault.history.content(wish.before) if wish.before else None
        diff = (
            unified_diff(wish.data, data, WHAT_YOU_WANT)
            if had is None
            else unified_diff(had, data, WHAT_YOU_HAD)
        )
        hint = "Read its current text, and apply your change to that."
        message = (
            f"{path!r} has changed since it was read" if wish.before else f"{path!r} exists again"
        )
        return Conflict(message, current_sha256=sha256(data), diff=diff, hint=hint, path=path)

    def _stage(self) -> None:
        """Write the new texts beside the notes, and wait until they are on the disk."""
        is_one = len(self._wishes) == 1
        for wish in self._wishes:
            # A file that can come back from the trash itself comes with its dates and attributes.
            if wish.data is None or (
                wish.trash is not None and disk.hash_of(self._here, wish.trash) == wish.after
            ):
                continue
            folder, like = parent(wish.target), wish.path if wish.before is not None else None
            # Folders are made when the change is carried out, not before: it may yet fail.
            folder = folder[: len(folder) - len(self._here.missing(folder))]
            sync = self._vault.durable and is_one
            self._staged[wish.path] = disk.stage(
                self._here, folder, wish.data, like=like, sync=sync, at=wish.at
            )
        if self._vault.durable and not is_one:
            disk.sync_paths(self._here.root, list(self._staged.values()))

    def _versions(self, change: Change) -> list[Version]:
        log = self._vault.history.log
        number, steps = log.next_number(self._here), list[dict[str, str | None]]()
        for wish in self._wishes:
            step = {
                "path": wish.path,
                "new_path": wish.new_path,
                "op": wish.op,
                "before": wish.before,
            }
            if wish.gone:
                step["trash"] = self._in_trash(wish.path, number)
            steps.append(step | {"after": wish.after})
        return log.stamp(
            steps, first=number, tool=change.tool, who=change.who, reason=change.reason
        )


def no_such(path: str) -> NotFound:
    """The error for a path where nothing is."""
    return NotFound(f"no file {path!r} in the vault")


def taken(path: str) -> AlreadyExists:
    hint = "Choose another name, or change the existing file."
    return AlreadyExists(f"{path!r} already exists", hint=hint, path=path)
