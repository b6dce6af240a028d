"""Carry out a write: check the wishes, stage the new texts, apply them, and report the results.

A wish says what one note shall become. Either all wishes of an operation come true or none does,
and the vault's lock is held meanwhile. This module does not know where a wish comes from, or what
a note means. docs/internals/writing.md#steps-of-a-write has the steps of a write.
"""

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
from simplemem.note.paths import is_path, parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.disk import ConcurrentWrite, Entry, entry_at, sha256
from simplemem.vault.folder.history import OWN_TRASH, Op, Version, format_version
from simplemem.vault.folder.journal import OBSIDIAN_TRASH, Step

if TYPE_CHECKING:
    from simplemem.vault.folder.vault import Vault

_WRITE_BITS = 0o222


class Change(NamedTuple):
    """Who requests a write, and why. The history keeps it."""

    tool: str
    who: str = ""
    reason: str = ""


class WriteResult(NamedTuple):
    """The result of a write for one note. `changed` is False if the wish had come true already."""

    path: str
    sha256: str | None
    previous_sha256: str | None
    version: str
    entry: Entry | None
    changed: bool


@dataclass(frozen=True)
class FileChange:
    """What one note shall become.

    Without `before`, the note must not exist. Without `data`, it keeps its text.
    """

    op: Op
    path: str
    before: str | None = None  # the hash that the file must have
    new_path: str | None = None
    data: bytes | None = None
    gone: bool = False  # the note is to be deleted
    trash: str | None = None  # the file in the trash that is restored
    at: float | None = None  # the modification time in seconds, if it is not now

    @staticmethod
    def update(path: str, before: str | None, data: bytes | None) -> FileChange:
        """Return the wish for new bytes in the file whose hash is `before`.

        Without `before`, the file is created. Without `data`, it goes to the trash.
        """
        if data is None:
            return FileChange("delete", path, before=before, gone=True)
        if before is None:
            return FileChange("create", path, data=data)
        return FileChange("update", path, before=before, data=data)

    @cached_property
    def after(self) -> str | None:
        """The hash of the note's bytes afterwards, None if it is deleted."""
        if self.gone:
            return None
        if self.data is None:
            return self.before
        return sha256(self.data)

    @property
    def target(self) -> str:
        """The path of the note afterwards."""
        return self.path if self.new_path is None else self.new_path


class _Text(NamedTuple):
    """The bytes of a file, and their hash."""

    data: bytes
    sha256: str


class _Listing(NamedTuple):
    """The names in one folder, and all of them in lower case, each between two slashes."""

    names: list[str]
    searchable: str


class Operation:
    """A group of wishes that is carried out as a whole, while the vault's lock is held.

    A branch of a git repository overrides the methods that read and write files.
    """

    def __init__(self, vault: Vault, root: DirHandles, wishes: Sequence[FileChange]) -> None:
        self._vault = vault
        self._root = root
        self._wishes = wishes

        self._texts: dict[str, _Text] = {}  # the current file at the path of each wish
        self._staged: dict[str, str] = {}  # the staged file of each wish, by the path of the wish
        self._listings: dict[str, _Listing] = {}  # by folder, with a slash at its end

    def carry_out(self, change: Change) -> list[WriteResult]:
        """Apply all wishes or none; return their results in the same order.

        If all of them have come true already, nothing is written. Raises Conflict, NotFound,
        AlreadyExists or ReadOnly if a wish does not fit the files that exist.
        """
        self._read_texts()
        is_done = all(map(self._is_done, self._wishes))
        if is_done:
            return self._results_of_done()

        for wish in self._wishes:
            self._check_expected(wish)
        for wish in self._wishes:
            self._check_free(wish)

        versions = self._versions(change)
        self._make(versions)
        return [
            self._result(wish, wish.before, version.id, changed=True)
            for wish, version in zip(self._wishes, versions, strict=True)
        ]

    def _read_texts(self) -> None:
        for wish in self._wishes:
            data = self._text(wish.path)
            if data is not None:
                self._texts[wish.path] = _Text(data, sha256(data))

    # What a folder does, and a branch does in its own way

    def _text(self, path: str) -> bytes | None:
        """Return the bytes of the file at a path, None if there is no file."""
        with suppress(FileNotFoundError, NotADirectoryError):
            data, _ = disk.read_file(self._root, path)
            return data
        return None

    def _names(self, folder: str) -> list[str]:
        """Return the names in a folder, written with a final slash; none if it does not exist."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return self._root.folder(parent(folder)).names()
        return []

    def _entry(self, path: str) -> Entry | None:
        return entry_at(self._root, path)

    def _check_writable(self, path: str) -> None:
        """Raise ReadOnly for a write-protected file; an OSError if the path leads to no file."""
        with suppress(FileNotFoundError):
            mode = self._root.stat(path).st_mode
            if not mode & _WRITE_BITS:
                hint = "Allow writing to the file first."
                raise ReadOnly(f"{path!r} is write-protected", hint=hint)

    def _in_trash(self, path: str, number: int) -> str | None:
        """Return the free path in the trash for a file that change `number` deletes.

        As in Obsidian, a file whose name is used there already gets a number after its name.
        """
        if self._vault.trash_kind == "own":
            trash = f"{OWN_TRASH}/{format_version(number)}"
        else:
            trash = OBSIDIAN_TRASH
        stem, extension = os.path.splitext(f"{trash}/{path}")

        candidate = f"{stem}{extension}"
        count = 1
        while self._entry(candidate) is not None:
            count += 1
            candidate = f"{stem} {count}{extension}"
        return candidate

    def _make(self, versions: Sequence[Version]) -> None:
        """Carry out the wishes on the disk; `versions` are their lines of the log, in order.

        Raises Conflict or AlreadyExists if another program changed a file at the same moment.
        """
        self._keep_texts()
        self._stage_or_clean_up()

        steps = []
        for wish, version in zip(self._wishes, versions, strict=True):
            staged_file = self._staged.get(wish.path, wish.trash)
            steps.append(Step(version, staged_file))
        try:
            self._vault.journal.perform(self._root, steps)
        except ConcurrentWrite as intrusion:
            affected = self._wish_for(intrusion.path)
            raise self._conflict(affected) from intrusion
        except FileExistsError as error:
            raise already_exists(self._wishes[0].target) from error

    def _wish_for(self, path: str) -> FileChange:
        """Return the wish that changes, or moves to, a path."""
        return next(wish for wish in self._wishes if path in (wish.path, wish.new_path))

    def _keep_texts(self) -> None:
        """Keep the old and the new text of each note in the history.

        The old text of a moved note is kept as well: at its new path, another program may change it
        before simplemem sees it.
        """
        history = self._vault.history
        for wish in self._wishes:
            text = self._texts.get(wish.path)
            if text is not None:
                history.keep(self._root, text.data, text.sha256)
            if wish.data is not None:
                history.keep(self._root, wish.data, wish.after or "")

    # Steps that folders and branches share

    def _results_of_done(self) -> list[WriteResult]:
        """Return the results of wishes that have come true, with the changes that did it."""
        log = self._vault.history.log
        newest_changes = [next(log.of(wish.target), None) for wish in self._wishes]

        results = []
        for wish, newest in zip(self._wishes, newest_changes, strict=True):
            version = ""
            if newest is not None and newest.after == wish.after:
                version = newest.id
            results.append(self._result(wish, wish.after, version, changed=False))
        return results

    def _result(
        self, wish: FileChange, previous: str | None, version: str, *, changed: bool
    ) -> WriteResult:
        return WriteResult(
            path=wish.target,
            sha256=wish.after,
            previous_sha256=previous,
            version=version,
            entry=self._entry(wish.target),
            changed=changed,
        )

    def _is_done(self, wish: FileChange) -> bool:
        """Return whether a wish has come true already.

        To repeat a write is no error: the reply to the first call may have been lost (F66).
        """
        current = self._texts.get(wish.path)
        if wish.new_path is None and not wish.gone:
            return current is not None and current.sha256 == wish.after

        target_data = self._text(wish.target)
        target_digest = None if target_data is None else sha256(target_data)
        if current is not None or target_digest != wish.after:
            return False

        newest = next(self._vault.history.log.of(wish.path), None)
        if newest is None:
            return False
        last_change = (newest.path, newest.new_path, newest.before, newest.after)
        return last_change == (wish.path, wish.new_path, wish.before, wish.after)

    def _check_expected(self, wish: FileChange) -> None:
        """Raise unless the file at the wish's path is the one that the wish expects."""
        current = self._texts.get(wish.path)
        if current is None:
            self._check_absence_expected(wish)
            return

        if wish.before is None and wish.op != "undo":
            raise already_exists(wish.path)
        if current.sha256 != wish.before:
            raise self._conflict(wish)
        if wish.data is not None:
            self._check_writable(wish.path)

    def _check_absence_expected(self, wish: FileChange) -> None:
        if wish.before is None:
            return
        # A link, or a file in the place of a folder, has an error of its own.
        self._check_writable(wish.path)
        if wish.op == "undo":
            raise self._conflict(wish)
        raise no_such_file(wish.path)

    def _check_free(self, wish: FileChange) -> None:
        """Raise AlreadyExists if the target exists under this name or under a similar one.

        Names that differ only in case, or in how accents are stored, count as one: some file
        systems cannot hold both. A note that keeps its place, or goes back to it, is not checked.
        """
        stays_in_place = wish.before is not None and wish.new_path is None
        goes_back = wish.op == "undo" and wish.new_path is not None
        if stays_in_place or goes_back:
            return

        for path in self._similar_paths(wish.target):
            is_moved_note = path == wish.path and wish.new_path is not None
            if is_path(path) and not is_moved_note:
                raise already_exists(path)

    def _similar_paths(self, path: str) -> list[str]:
        """Return the paths that exist and equal this one but for case and accents."""
        *folders, name = path.split("/")
        prefixes = [""]
        for folder in folders:
            prefixes = [f"{similar}/" for similar in self._similar_children(prefixes, folder)]
        return self._similar_children(prefixes, name)

    def _similar_children(self, prefixes: Sequence[str], name: str) -> list[str]:
        """Return the paths in some folders whose names equal `name` but for case and accents."""
        key = compare_key(name)
        children = list[str]()
        for prefix in prefixes:
            similar_names = self._similar_names(prefix, key)
            children += [prefix + similar for similar in similar_names]
        return children

    def _similar_names(self, folder: str, key: str) -> list[str]:
        """Return the names in a folder whose compare key is `key`.

        The key is first searched in all names together: a folder may have very many of them.
        """
        listing = self._listings.get(folder)
        if listing is None:
            names = self._names(folder)
            joined = "/".join(names)
            listing = _Listing(names, f"/{joined}/".lower())
            self._listings[folder] = listing

        if listing.searchable.isascii() and f"/{key}/" not in listing.searchable:
            return []
        return [name for name in listing.names if compare_key(name) == key]

    def _conflict(self, wish: FileChange) -> Conflict:
        """Return the error for an unexpected file, with a diff to its current text."""
        path = wish.path
        current = self._text(path)
        if current is None:
            return Conflict(
                f"{path!r} was deleted or moved meanwhile",
                current_sha256=None,
                hint="Look for it under another name, or create it again.",
                path=path,
            )

        if wish.before:
            message = f"{path!r} has changed since it was read"
            expected = self._vault.history.content(wish.before)
        else:
            message = f"{path!r} exists again"
            expected = None
        if expected is None:
            diff = unified_diff(wish.data, current, WHAT_YOU_WANT)
        else:
            diff = unified_diff(expected, current, WHAT_YOU_HAD)
        return Conflict(
            message,
            current_sha256=sha256(current),
            diff=diff,
            hint="Read its current text, and apply your change to that.",
            path=path,
        )

    def _stage_or_clean_up(self) -> None:
        """Stage the new texts; if that fails, remove those that were staged."""
        try:
            self._stage()
        except BaseException:
            for staged_file in self._staged.values():
                disk.remove(self._root, staged_file)
            raise

    def _stage(self) -> None:
        """Write the new texts beside the notes, and sync them to the disk."""
        is_durable = self._vault.durable
        is_single = len(self._wishes) == 1
        for wish in self._wishes:
            # A file restored from the trash keeps its dates and attributes, so it is not written.
            if wish.data is not None and not self._is_in_trash_unchanged(wish):
                sync = is_durable and is_single
                self._staged[wish.path] = self._stage_text(wish, wish.data, sync=sync)

        if is_durable and not is_single:
            disk.sync_paths(self._root.root, list(self._staged.values()))

    def _is_in_trash_unchanged(self, wish: FileChange) -> bool:
        if wish.trash is None:
            return False
        digest = disk.hash_of(self._root, wish.trash)
        return digest == wish.after

    def _stage_text(self, wish: FileChange, data: bytes, *, sync: bool) -> str:
        """Write one new text as close to its note as folders exist; return the staged file's path.

        Missing folders are created when the change is carried out: until then, it may fail.
        """
        folder = parent(wish.target)
        missing_count = len(self._root.missing(folder))
        existing_folder = folder[: len(folder) - missing_count]

        model = None if wish.before is None else wish.path
        return disk.stage(
            self._root,
            existing_folder,
            data,
            like=model,
            sync=sync,
            at=wish.at,
        )

    def _versions(self, change: Change) -> list[Version]:
        """Return the lines of the log for the wishes, numbered from the next free number."""
        log = self._vault.history.log
        first = log.next_number(self._root)

        steps = list[dict[str, str | None]]()
        for wish in self._wishes:
            step = {
                "path": wish.path,
                "new_path": wish.new_path,
                "op": wish.op,
                "before": wish.before,
                "after": wish.after,
            }
            if wish.gone:
                step["trash"] = self._in_trash(wish.path, first)
            steps.append(step)
        return log.new_versions(
            steps,
            first=first,
            tool=change.tool,
            who=change.who,
            reason=change.reason,
        )


def no_such_file(path: str) -> NotFound:
    """Return the error for a path without a file."""
    return NotFound(f"no file {path!r} in the vault")


def already_exists(path: str) -> AlreadyExists:
    """Return the error for a new file whose path is in use."""
    hint = "Choose another name, or change the existing file."
    return AlreadyExists(f"{path!r} already exists", hint=hint, path=path)
