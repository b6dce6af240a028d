"""What every vault shares: the lock, checks, undo, its own folder, and the steps of an operation.

Either all changes of an operation are made or none, and the vault's lock is held meanwhile. This
module does not know where a change comes from, or what a note means.
docs/internals/writing.md#steps-of-a-write has the steps.
"""

from __future__ import annotations

import copy
import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self

from simplemem.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    ReadOnly,
    SimplememError,
    TooLong,
    Unavailable,
)
from simplemem.note.diff import WHAT_YOU_HAD, WHAT_YOU_WANT, unified_diff
from simplemem.note.names import check_path, compare_key, is_path
from simplemem.vault.folder import disk, pruning
from simplemem.vault.folder.dir_handles import OWN_FOLDER, DirHandles, translating_os_errors
from simplemem.vault.folder.history import History
from simplemem.vault.folder.lock import FileLock, make_own_folder
from simplemem.vault.values import (
    Access,
    Author,
    Entry,
    File,
    FileChange,
    Kind,
    Version,
    WriteResult,
    sha256,
)

# -- operations


class Text(NamedTuple):
    """The bytes of a file, and their hash."""

    data: bytes
    sha256: str


class _Listing(NamedTuple):
    """The names in one folder."""

    names: list[str]
    searchable: str  # all names in lower case, with a slash before and after each


BeforeWrite = Callable[[Sequence[FileChange], Mapping[str, bytes], Author], None]
"""Called with changes that fit the files that exist, the bytes of these files, and the author.

It may raise an error, and nothing is written then.
"""


class WriteOperation(ABC):
    """Changes of files that are carried out as a whole, while the vault's lock is held.

    Reads the current files first, and checks that each change fits them. Where the files are, and
    how they are changed, is up to the subclass.
    """

    def __init__(self, root: DirHandles, history: History, changes: Sequence[FileChange]) -> None:
        """Prepare an operation in the open vault `root`; reads nothing yet.

        `changes` are made in their order. The vault's lock must be held until the operation ends.
        """
        self._root = root
        self._history = history
        self._changes = changes

        self._texts: dict[str, Text] = {}  # by path, the files that the changes find
        self._listings: dict[str, _Listing] = {}  # by the path of a folder, with a final slash

    def carry_out(
        self, author: Author, before_write: BeforeWrite | None = None
    ) -> list[WriteResult]:
        """Apply all changes or none, and log them; return their results in the same order.

        If all of them were made already, nothing is written. Raises Conflict, NotFound,
        AlreadyExists or ReadOnly if a change does not fit the files that exist, and what
        `before_write`, `_read` and `_apply` raise.
        """
        self._read_texts()
        is_done = all(map(self._is_done, self._changes))
        if is_done:
            return self._results_of_done()

        for change in self._changes:
            self._check_expected(change)
        for change in self._changes:
            self._check_free(change)
        if before_write is not None:
            texts = {path: text.data for path, text in self._texts.items()}
            before_write(self._changes, texts, author)

        versions = self._versions(author)
        self._apply(versions)
        return [
            self._result(change, change.old_sha256, version.id, changed=True)
            for change, version in zip(self._changes, versions, strict=True)
        ]

    @abstractmethod
    def _read(self, path: str) -> bytes | None:
        """Return the bytes of the file at a path, None if there is no file.

        Raises Unreadable or TooLong for what is there but cannot be read.
        """

    @abstractmethod
    def _names(self, folder: str) -> list[str]:
        """Return the names in a folder, written with a final slash; none if it does not exist.

        "" is the vault itself. The names are those of files and folders.
        """

    @abstractmethod
    def _entry(self, path: str) -> Entry | None:
        """Return the entry of a file as it is now, None if there is no file.

        After `_apply`, it is that of the new file.
        """

    @abstractmethod
    def _check_writable(self, path: str) -> None:
        """Raise ReadOnly if a file is protected, or OSError if a part above it is no folder.

        Does nothing if the folder or the file does not exist.
        """

    @abstractmethod
    def _trash_path(self, path: str, number: int) -> str | None:
        """Return the path at which a deleted file is kept, None if it is not kept as a file.

        `number` is that of the first version of the operation.
        """

    @abstractmethod
    def _apply(self, versions: Sequence[Version]) -> None:
        """Make and log the changes, which were checked, all or none.

        `versions` are their lines of the log, in order. Raises Conflict or AlreadyExists if another
        program changed a file at the same moment.
        """

    def _read_texts(self) -> None:
        """Read the file at the path of each change, if there is one, into `_texts`."""
        for change in self._changes:
            data = self._read(change.path)
            if data is not None:
                self._texts[change.path] = Text(data, sha256(data))

    def _results_of_done(self) -> list[WriteResult]:
        """Return the results of changes that had all been made before, each with its version then.

        The version is "" if the newest change of the file in the log left another text.
        """
        log = self._history.log
        newest_changes = [next(log.of(change.target), None) for change in self._changes]

        results = []
        for change, newest in zip(self._changes, newest_changes, strict=True):
            version = ""
            if newest is not None and newest.after == change.new_sha256:
                version = newest.id
            results.append(self._result(change, change.new_sha256, version, changed=False))
        return results

    def _result(
        self,
        change: FileChange,
        previous: str | None,
        version: str,
        *,
        changed: bool,
    ) -> WriteResult:
        """Return the result of a change; `previous` is the hash of the file before it."""
        return WriteResult(
            path=change.target,
            sha256=change.new_sha256,
            previous_sha256=previous,
            version=version,
            entry=self._entry(change.target),
            changed=changed,
        )

    def _is_done(self, change: FileChange) -> bool:
        """Return whether a change was made already, so that nothing is left to do for it.

        To repeat a write is no error: the reply to the first call may have been lost (F66). A move
        or deletion counts as made only if it is also the newest change in the log.
        """
        current = self._texts.get(change.path)
        if change.new_path is None and not change.is_deletion:
            return current is not None and current.sha256 == change.new_sha256

        target_data = self._read(change.target)
        target_digest = None if target_data is None else sha256(target_data)
        if current is not None or target_digest != change.new_sha256:
            return False

        newest = next(self._history.log.of(change.path), None)
        if newest is None:
            return False
        last_change = (newest.path, newest.new_path, newest.before, newest.after)
        return last_change == (change.path, change.new_path, change.old_sha256, change.new_sha256)

    def _check_expected(self, change: FileChange) -> None:
        """Raise unless the file at the change's path is the one that the change expects.

        Raises Conflict for other bytes, AlreadyExists or NotFound if a file is there or missing
        against the expectation, and ReadOnly if it is protected.
        """
        current = self._texts.get(change.path)
        if current is None:
            self._check_absence_expected(change)
            return

        # For an undo, a file that exists again is a conflict, as any other text is.
        if change.old_sha256 is None and change.op != "undo":
            raise already_exists(change.path)
        if current.sha256 != change.old_sha256:
            raise self._conflict(change)
        if change.data is not None:
            self._check_writable(change.path)

    def _check_absence_expected(self, change: FileChange) -> None:
        """Raise NotFound or Conflict if a change expects a file at a path that has none."""
        if change.old_sha256 is None:
            return
        # A link, or a file in the place of a folder, has an error of its own.
        self._check_writable(change.path)
        if change.op == "undo":
            raise self._conflict(change)
        raise no_such_file(change.path)

    def _check_free(self, change: FileChange) -> None:
        """Raise AlreadyExists if the target exists under this name or under a similar one.

        Names that differ only in case, or in how accents are stored, count as one: some file
        systems cannot hold both. A note that keeps its path, or goes back to it, is not checked:
        the name was accepted before.
        """
        stays_in_place = change.old_sha256 is not None and change.new_path is None
        goes_back = change.op == "undo" and change.new_path is not None
        if stays_in_place or goes_back:
            return

        for path in self._similar_paths(change.target):
            is_moved_note = path == change.path and change.new_path is not None
            if is_path(path) and not is_moved_note:
                raise already_exists(path)

    def _similar_paths(self, path: str) -> list[str]:
        """Return the paths that exist and equal this one but for case and accents.

        The path itself is among them if it exists.
        """
        *folders, name = path.split("/")
        prefixes = [""]
        for folder in folders:
            prefixes = [f"{similar}/" for similar in self._similar_children(prefixes, folder)]
        return self._similar_children(prefixes, name)

    def _similar_children(self, prefixes: Sequence[str], name: str) -> list[str]:
        """Return the paths in some folders whose names equal `name` but for case and accents.

        `prefixes` are the folders, each with a final slash; "" is the vault itself.
        """
        key = compare_key(name)
        children = list[str]()
        for prefix in prefixes:
            similar_names = self._similar_names(prefix, key)
            children += [prefix + similar for similar in similar_names]
        return children

    def _similar_names(self, folder: str, key: str) -> list[str]:
        """Return the names in a folder whose compare key is `key`.

        `folder` has a final slash. A folder may have very many names, so the key is first searched
        in all of them together.
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
        """Return the error for an unexpected file, with a diff to its current text.

        The diff is from the text that the caller expected, if the history still has it, else from
        the text that the caller wants to write.
        """
        path = change.path
        current = self._read(path)
        if current is None:
            return Conflict(
                f"{path!r} was deleted or moved meanwhile",
                current_sha256=None,
                hint="Look for it under another name, or create it again.",
                path=path,
            )

        if change.old_sha256:
            message = f"{path!r} has changed since it was read"
            expected = self._history.content(change.old_sha256)
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
        """Return the lines of the log for the changes, numbered from the next free number.

        They are not logged yet.
        """
        log = self._history.log
        first = log.next_number(self._root)

        steps = list[dict[str, str | None]]()
        for change in self._changes:
            step = {
                "path": change.path,
                "new_path": change.new_path,
                "op": change.op,
                "before": change.old_sha256,
                "after": change.new_sha256,
            }
            if change.is_deletion:
                step["trash"] = self._trash_path(change.path, first)
            steps.append(step)
        return log.new_versions(
            steps,
            first=first,
            tool=author.tool,
            who=author.who,
            reason=author.reason,
            kind=author.kind,
            session=author.session,
            sources=author.sources,
        )


def no_such_file(path: str) -> NotFound:
    """Return the error for a path without a file."""
    return NotFound(f"no file {path!r} in the vault")


def already_exists(path: str) -> AlreadyExists:
    """Return the error for a new file whose path is in use."""
    hint = "Choose another name, or change the existing file."
    return AlreadyExists(f"{path!r} already exists", hint=hint, path=path)


# -- the vault

_MIN_PAUSE_SECONDS = 0.0005
_MAX_PAUSE_SECONDS = 0.005


@dataclass(frozen=True)
class VaultOptions:
    """How a vault is opened."""

    read_only: bool = False
    durable: bool = True  # each write is synced to the disk before it is reported
    keep_days: int = 30  # of the history
    keep_mb: int = 100
    trash: Literal["own", "obsidian"] = "own"
    access: Access = Access()  # noqa: RUF009  (a tuple, which nobody can change)
    author_kind: Kind = "agent"


class VaultBase(ABC):
    """What all vaults have in common, wherever their notes are stored.

    Guards the lock that excludes other threads and processes while something is written.
    """

    def __init__(
        self,
        root: Path,
        options: VaultOptions,
        *,
        file_lock: FileLock,
        history: History,
    ) -> None:
        """Open the vault in the folder `root`. Raises Unavailable if there is no such folder.

        The vault is read-only if the options say so, or if the folder cannot be written.
        """
        self.root = root
        self.access = options.access
        self.history = history
        self.problems: dict[str, str] = {}
        self.on_written: Callable[[str], None] | None = None
        self.before_write: BeforeWrite | None = None
        self._file_lock = file_lock
        self._thread_lock = threading.RLock()

        with self._open_root() as handles:
            handles.folder(())  # raises Unavailable if there is no folder
        # A vault on a disk that cannot be written is opened all the same, and read (F9).
        is_writable = os.access(root, os.W_OK) or os.access(root / OWN_FOLDER, os.W_OK)
        self.read_only = options.read_only or not is_writable

    def without_rules(self) -> Self:
        """Return the same vault without access rules, for checks that concern all notes.

        It shares the lock and the history with this one. What it reveals must not be shown to
        anyone who may see less.
        """
        whole = copy.copy(self)
        whole.access = Access()
        return whole

    def own_folder(self) -> Path:
        """Return `<root>/.simplemem`, which is created if it does not exist.

        Raises what `create_own_folder` raises.
        """
        return create_own_folder(self.root)

    # Lock

    @contextmanager
    def lock(self, timeout: float = 10.0) -> Iterator[None]:
        """Exclude other writers, in this and other processes, for a block.

        A thread may take the lock again. Raises ReadOnly at once in a read-only vault, and after
        `timeout` seconds Unavailable, which names the holder. Also raises what
        `FileLock.try_acquire` raises.
        """
        if self.read_only:
            hint = "Open the vault without --read-only, and make its folder writable."
            raise ReadOnly(f"the vault {str(self.root)!r} is read-only", hint=hint)

        deadline = time.monotonic() + timeout
        if not self._thread_lock.acquire(timeout=max(timeout, 0)):
            raise _busy(f"another thread of this process ({os.getpid()})", timeout)
        # If the file lock is taken, it is by an outer block of this thread, which releases it.
        is_outermost = not self._file_lock.is_taken
        try:
            if is_outermost:
                self._acquire_file_lock(deadline, timeout)
            yield
        finally:
            if is_outermost:
                self._file_lock.release()
            self._thread_lock.release()

    def _acquire_file_lock(self, deadline: float, timeout: float) -> None:
        """Wait for the lock between processes until `deadline`; raise Unavailable then."""
        while not self._file_lock.try_acquire():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                holder = self._file_lock.holder
                raise _busy(f"process {holder}" if holder else "another process", timeout)
            # Uneven pauses, so that waiting processes do not all try at the same moment.
            pause = random.uniform(_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS)  # noqa: S311
            time.sleep(min(pause, remaining))

    # Read

    @abstractmethod
    def entry(self, path: str) -> Entry | None:
        """Return the entry of a file as it is now, None if there is no file or it is hidden.

        Raises Invalid for a malformed path, and Unreadable or Unavailable if the disk fails.
        """

    @abstractmethod
    def read(self, path: str) -> File:
        """Return a file with its bytes, which are never decoded.

        Raises NotFound, also for a hidden file, Unreadable or TooLong, Invalid for a malformed path
        or a link, and Unavailable if the vault is out of reach.
        """

    def is_certainly_gone(self, path: str) -> bool:
        """Return whether there is no file at a path, rather than one that is out of reach.

        True also for a hidden file. False for a path that is malformed or cannot be looked at;
        never raises for these.
        """
        with suppress(SimplememError):
            return self.entry(path) is None and self.root.is_dir()
        return False

    # Write

    def create(
        self,
        path: str,
        data: bytes,
        author: Author,
        *,
        rewrites: Sequence[FileChange] = (),
        template: bytes | None = None,
    ) -> WriteResult:
        """Create a file, and make some other changes with it, all or none; return its result.

        `template` is the text to which something was added, if there is one. If the file has these
        bytes already, nothing is written. Raises AlreadyExists if there is another file whose path
        differs at most in case or accents, and what `carry_out` raises.
        """
        creation = FileChange("create", path, data=data, template=template)
        results = self.carry_out([creation, *rewrites], author)
        return results[0]

    def replace(self, path: str, data: bytes, expected_sha256: str, author: Author) -> WriteResult:
        """Replace the bytes of a file; never creates one.

        If it has the new bytes already, nothing is written. Raises Conflict if the file has others
        than the expected ones, NotFound without a file, and what `carry_out` raises.
        """
        change = FileChange.update(path, expected_sha256, data)
        results = self.carry_out([change], author)
        return results[0]

    def trash(self, path: str, expected_sha256: str | None, author: Author) -> WriteResult:
        """Delete a file. `undo` restores it while the history keeps its text, even without a trash.

        If there is an expected hash, raises Conflict for another text; without one, deletes
        whatever text is there. Raises NotFound if there is no file, and what `carry_out` raises.
        """
        with self.lock():
            digest = expected_sha256 or self.read(path).sha256
            deletion = FileChange("delete", path, digest, is_deletion=True)
            results = self.carry_out([deletion], author)
        return results[0]

    def carry_out(self, changes: Sequence[FileChange], author: Author) -> list[WriteResult]:
        """Change several files as one operation: all of them, or none.

        Return their results in order. Every write passes through this method and is checked in it.
        `changes` must not be empty. A change that was made already counts as made. Raises Conflict,
        NotFound, AlreadyExists, ReadOnly, Invalid, TooLong, Unreadable or Unavailable.
        """
        with self.lock():
            self._check_changes(changes)
            first = changes[0]
            with translating_os_errors(first.op, first.path, writing=True):
                results = self._carry_out(changes, author)

        if self.on_written is not None and results[0].changed:
            self.on_written(results[0].version)
        return results

    def _check_changes(self, changes: Sequence[FileChange]) -> None:
        """Raise unless the rules permit all changes, and no file is changed twice.

        Raises ReadOnly for what the rules forbid, Invalid for malformed paths or a path that is
        changed twice, and TooLong for new bytes above the limit. Reads no file.
        """
        changed_paths = set[str]()
        for number, change in enumerate(changes):
            # The first change is the one that was requested. The others follow from it, as the
            # rewritten links of a move do, and an undo is requested by its version.
            is_named_by_caller = number == 0 and change.op != "undo"
            for path in {change.path, change.target}:
                self.access.check(path, is_named_by_caller=is_named_by_caller)
                check_path(path)
                if path in changed_paths:
                    raise Invalid(f"{path!r} is changed twice in one operation")
                changed_paths.add(path)

            if change.is_deletion:
                self.access.check_deletable(change.path)
            if change.data is not None and len(change.data) > disk.MAX_FILE_BYTES:
                limit = f"the limit is {disk.MAX_FILE_BYTES:,}"
                raise TooLong(f"{change.path!r} would have {len(change.data):,} bytes; {limit}")

    @abstractmethod
    def _carry_out(self, changes: Sequence[FileChange], author: Author) -> list[WriteResult]:
        """Make changes that were checked by `_check_changes`. The lock is held.

        Returns their results in the same order, and raises as `carry_out` does.
        """

    def undo(self, version: str, author: Author) -> list[WriteResult]:
        """Reverse the whole operation that a version belongs to; an undo can be undone.

        The changes are reversed as new changes in the log. Raises Conflict if one of its files has
        changed since, AlreadyExists if the former path of a moved file is in use, NotFound if there
        is no such version or a text is no longer kept, Invalid for a recovered text, and what
        `carry_out` raises.
        """
        with self.lock():
            first = self.history.log.find(version)
            if first.op == "recovered":
                hint = "Read it by its sha256, and write it to the note that it belongs to."
                raise Invalid(
                    f"{first.id} is a recovered text, not a change that can be undone", hint=hint
                )

            operation = self.history.log.group(first.group)
            reversed_changes = [self._reverse(change) for change in reversed(operation)]
            return self.carry_out(reversed_changes, author)

    def _reverse(self, change: Version) -> FileChange:
        """Return the change that takes another back.

        Raises NotFound if the text before it is needed and no longer kept.
        """
        if change.before is None:
            return FileChange("undo", change.path, old_sha256=change.after, is_deletion=True)

        data = None
        if change.before != change.after:
            data = self.history.text_before(change)
            if data is None:
                raise NotFound(
                    f"the text before {change.id} is no longer kept",
                    hint="The settings history.keep_days and history.keep_mb limit how long "
                    "texts are kept.",
                )

        if change.after is None:
            return FileChange("undo", change.path, data=data, trash=change.trash)
        if change.new_path:
            return FileChange(
                "undo",
                change.new_path,
                old_sha256=change.after,
                new_path=change.path,
                data=data,
            )
        return FileChange("undo", change.path, old_sha256=change.after, data=data)

    # History

    def store_text(self, data: bytes) -> None:
        """Keep a text that no change has written, so that its hash finds it.

        `history.content` returns it until it is pruned. Does nothing if the text cannot be written
        at the moment.
        """
        with suppress(SimplememError, OSError), self.lock(), self._open_root() as handles:
            digest = sha256(data)
            self.history.keep(handles, data, digest)
            self.history.unwritten_texts.add(digest)

    def prune_history(self) -> list[str]:
        """Remove earlier texts that need not be kept any longer; return their hashes.

        Finishes an interrupted write first. Otherwise, the notes stay as they are, and no line of
        the log is removed. Raises ReadOnly or Unavailable.
        """
        with self._maintaining("prune") as handles:
            # What a crash interrupted has to be in the log first: its texts are needed.
            self._resume(handles)
            return pruning.prune(self.history, handles)

    def _resume(self, handles: DirHandles) -> bool:  # noqa: ARG002
        """Complete or drop an interrupted write; return whether there was one.

        A vault whose writes cannot be interrupted has none.
        """
        return False

    @contextmanager
    def _maintaining(self, task: str) -> Iterator[DirHandles]:
        """Hold the lock, and yield the open root, for a block that changes files of our own.

        `task` is a verb for the message of an error. An OSError of the block becomes an error of
        simplemem.
        """
        with (
            self.lock(),
            self._open_root() as handles,
            translating_os_errors(task, OWN_FOLDER, writing=True),
        ):
            yield handles

    def _open_root(self) -> DirHandles:
        """Return handles of the folders below the root, to be closed by a `with` block."""
        return DirHandles(str(self.root))


def create_own_folder(root: Path) -> Path:
    """Create `.simplemem` in a folder if it does not exist; return its path.

    Raises Unavailable if there is no such folder, and ReadOnly if it cannot be written.
    """
    with (
        DirHandles(str(root)) as handles,
        translating_os_errors("make", OWN_FOLDER, writing=True),
    ):
        make_own_folder(handles)
    return root / OWN_FOLDER


def _busy(holder: str, timeout: float) -> Unavailable:
    """Return the error for a lock that somebody else still has."""
    hint = "Try again, or end that process if it hangs."
    return Unavailable(f"the vault is still locked by {holder} after {timeout:g} s", hint=hint)
