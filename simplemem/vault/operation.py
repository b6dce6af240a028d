"""Carry out a write: read the current files, check the changes, apply them, report the results.

Either all changes of an operation are made or none, and the vault's lock is held meanwhile. This
module does not know where a change comes from, or what a note means.
docs/internals/writing.md#steps-of-a-write has the steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from simplemem.errors import AlreadyExists, Conflict, NotFound
from simplemem.note.diff import WHAT_YOU_HAD, WHAT_YOU_WANT, unified_diff
from simplemem.note.names import compare_key, is_path
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.history import History
from simplemem.vault.values import Author, Entry, FileChange, WriteResult, sha256
from simplemem.vault.versions import Version


class Text(NamedTuple):
    """The bytes of a file, and their hash."""

    data: bytes
    sha256: str


class _Listing(NamedTuple):
    """The names in one folder, and all of them in lower case, each between two slashes."""

    names: list[str]
    searchable: str


class WriteOperation(ABC):
    """Changes of files that are carried out as a whole, while the vault's lock is held.

    Reads the current files first, and checks that each change fits them. Where the files are, and
    how they are changed, is up to the subclass.
    """

    def __init__(self, root: DirHandles, history: History, changes: Sequence[FileChange]) -> None:
        self._root = root
        self._history = history
        self._changes = changes

        self._texts: dict[str, Text] = {}  # the current file at the path of each change
        self._listings: dict[str, _Listing] = {}  # by folder, with a slash at its end

    def carry_out(self, author: Author) -> list[WriteResult]:
        """Apply all changes or none; return their results in the same order.

        If all of them were made already, nothing is written. Raises Conflict, NotFound,
        AlreadyExists or ReadOnly if a change does not fit the files that exist.
        """
        self._read_texts()
        is_done = all(map(self._is_done, self._changes))
        if is_done:
            return self._results_of_done()

        for change in self._changes:
            self._check_expected(change)
        for change in self._changes:
            self._check_free(change)

        versions = self._versions(author)
        self._apply(versions)
        return [
            self._result(change, change.before, version.id, changed=True)
            for change, version in zip(self._changes, versions, strict=True)
        ]

    @abstractmethod
    def _read(self, path: str) -> bytes | None:
        """Return the bytes of the file at a path, None if there is no file."""

    @abstractmethod
    def _names(self, folder: str) -> list[str]:
        """Return the names in a folder, written with a final slash; none if it does not exist."""

    @abstractmethod
    def _entry(self, path: str) -> Entry | None:
        """Return the entry of a file as it is now, None if there is no file."""

    @abstractmethod
    def _check_writable(self, path: str) -> None:
        """Raise an error if a file is protected, or if something else is at its path.

        A path at which nothing is raises none.
        """

    @abstractmethod
    def _trash_path(self, path: str, number: int) -> str | None:
        """Return where change `number` puts a deleted file, None if it is not kept as a file."""

    @abstractmethod
    def _apply(self, versions: Sequence[Version]) -> None:
        """Make the changes; `versions` are their lines of the log, in the same order.

        Raises Conflict or AlreadyExists if another program changed a file at the same moment.
        """

    def _read_texts(self) -> None:
        for change in self._changes:
            data = self._read(change.path)
            if data is not None:
                self._texts[change.path] = Text(data, sha256(data))

    def _results_of_done(self) -> list[WriteResult]:
        """Return the results of changes that had been made before, each with its version then."""
        log = self._history.log
        newest_changes = [next(log.of(change.target), None) for change in self._changes]

        results = []
        for change, newest in zip(self._changes, newest_changes, strict=True):
            version = ""
            if newest is not None and newest.after == change.after:
                version = newest.id
            results.append(self._result(change, change.after, version, changed=False))
        return results

    def _result(
        self, change: FileChange, previous: str | None, version: str, *, changed: bool
    ) -> WriteResult:
        return WriteResult(
            path=change.target,
            sha256=change.after,
            previous_sha256=previous,
            version=version,
            entry=self._entry(change.target),
            changed=changed,
        )

    def _is_done(self, change: FileChange) -> bool:
        """Return whether a change was made already.

        To repeat a write is no error: the reply to the first call may have been lost (F66).
        """
        current = self._texts.get(change.path)
        if change.new_path is None and not change.gone:
            return current is not None and current.sha256 == change.after

        target_data = self._read(change.target)
        target_digest = None if target_data is None else sha256(target_data)
        if current is not None or target_digest != change.after:
            return False

        newest = next(self._history.log.of(change.path), None)
        if newest is None:
            return False
        last_change = (newest.path, newest.new_path, newest.before, newest.after)
        return last_change == (change.path, change.new_path, change.before, change.after)

    def _check_expected(self, change: FileChange) -> None:
        """Raise unless the file at the change's path is the one that the change expects."""
        current = self._texts.get(change.path)
        if current is None:
            self._check_absence_expected(change)
            return

        if change.before is None and change.op != "undo":
            raise already_exists(change.path)
        if current.sha256 != change.before:
            raise self._conflict(change)
        if change.data is not None:
            self._check_writable(change.path)

    def _check_absence_expected(self, change: FileChange) -> None:
        if change.before is None:
            return
        # A link, or a file in the place of a folder, has an error of its own.
        self._check_writable(change.path)
        if change.op == "undo":
            raise self._conflict(change)
        raise no_such_file(change.path)

    def _check_free(self, change: FileChange) -> None:
        """Raise AlreadyExists if the target exists under this name or under a similar one.

        Names that differ only in case, or in how accents are stored, count as one: some file
        systems cannot hold both. A note that keeps its place, or goes back to it, is not checked.
        """
        stays_in_place = change.before is not None and change.new_path is None
        goes_back = change.op == "undo" and change.new_path is not None
        if stays_in_place or goes_back:
            return

        for path in self._similar_paths(change.target):
            is_moved_note = path == change.path and change.new_path is not None
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

    def _conflict(self, change: FileChange) -> Conflict:
        """Return the error for an unexpected file, with a diff to its current text."""
        path = change.path
        current = self._read(path)
        if current is None:
            return Conflict(
                f"{path!r} was deleted or moved meanwhile",
                current_sha256=None,
                hint="Look for it under another name, or create it again.",
                path=path,
            )

        if change.before:
            message = f"{path!r} has changed since it was read"
            expected = self._history.content(change.before)
        else:
            message = f"{path!r} exists again"
            expected = None
        if expected is None:
            diff = unified_diff(change.data, current, WHAT_YOU_WANT)
        else:
            diff = unified_diff(expected, current, WHAT_YOU_HAD)
        return Conflict(
            message,
            current_sha256=sha256(current),
            diff=diff,
            hint="Read its current text, and apply your change to that.",
            path=path,
        )

    def _versions(self, author: Author) -> list[Version]:
        """Return the lines of the log for the changes, numbered from the next free number."""
        log = self._history.log
        first = log.next_number(self._root)

        steps = list[dict[str, str | None]]()
        for change in self._changes:
            step = {
                "path": change.path,
                "new_path": change.new_path,
                "op": change.op,
                "before": change.before,
                "after": change.after,
            }
            if change.gone:
                step["trash"] = self._trash_path(change.path, first)
            steps.append(step)
        return log.new_versions(
            steps,
            first=first,
            tool=author.tool,
            who=author.who,
            reason=author.reason,
        )


def no_such_file(path: str) -> NotFound:
    """Return the error for a path without a file."""
    return NotFound(f"no file {path!r} in the vault")


def already_exists(path: str) -> AlreadyExists:
    """Return the error for a new file whose path is in use."""
    hint = "Choose another name, or change the existing file."
    return AlreadyExists(f"{path!r} already exists", hint=hint, path=path)
