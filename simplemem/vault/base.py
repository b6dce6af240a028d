"""What every vault shares: the lock, the checks before a write, undo, and the folder of its own."""

from __future__ import annotations

import copy
import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError, TooLong, Unavailable
from simplemem.note.names import check_path
from simplemem.vault.access import Access
from simplemem.vault.folder import disk, pruning
from simplemem.vault.folder.dir_handles import OWN_FOLDER, DirHandles
from simplemem.vault.folder.history import History
from simplemem.vault.folder.lock import FileLock, make_own_folder
from simplemem.vault.os_errors import translating_os_errors
from simplemem.vault.values import Author, Entry, File, FileChange, WriteResult, sha256
from simplemem.vault.versions import Kind, Version

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
    """A vault as far as it does not matter where its notes are stored.

    Guards the lock that excludes other threads and processes while something is written.
    """

    def __init__(
        self, root: Path, options: VaultOptions, *, file_lock: FileLock, history: History
    ) -> None:
        self.root = root
        self.access = options.access
        self.history = history
        self.problems: dict[str, str] = {}
        self.on_written: Callable[[str], None] | None = None
        self._file_lock = file_lock
        self._thread_lock = threading.RLock()

        with self._open_root() as handles:
            handles.folder(())
        # A vault on a disk that cannot be written is opened all the same, and read (F9).
        is_writable = os.access(root, os.W_OK) or os.access(root / OWN_FOLDER, os.W_OK)
        self.read_only = options.read_only or not is_writable

    def without_rules(self) -> Self:
        """Return the same vault without access rules, for checks that concern all notes.

        What it reveals must not be shown to anyone who may see less.
        """
        whole = copy.copy(self)
        whole.access = Access()
        return whole

    def own_folder(self) -> Path:
        """Return `<root>/.simplemem`, which is created if it does not exist."""
        return create_own_folder(self.root)

    # Lock

    @contextmanager
    def lock(self, timeout: float = 10.0) -> Iterator[None]:
        """Exclude other writers for a block. A thread may take the lock again.

        Raises ReadOnly, and after `timeout` seconds Unavailable, which names the holder.
        """
        if self.read_only:
            hint = "Open the vault without --read-only, and make its folder writable."
            raise ReadOnly(f"the vault {str(self.root)!r} is read-only", hint=hint)

        deadline = time.monotonic() + timeout
        if not self._thread_lock.acquire(timeout=max(timeout, 0)):
            raise _busy(f"another thread of this process ({os.getpid()})", timeout)
        is_outermost = not self._file_lock.is_taken
        try:
            if is_outermost:
                self._take_file_lock(deadline, timeout)
            yield
        finally:
            if is_outermost:
                self._file_lock.release()
            self._thread_lock.release()

    def _take_file_lock(self, deadline: float, timeout: float) -> None:
        while not self._file_lock.take():
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
        """Return the entry of a file as it is now, None if there is no file."""

    @abstractmethod
    def read(self, path: str) -> File:
        """Return a file with its bytes. Raises NotFound, Unreadable or TooLong."""

    def is_certainly_gone(self, path: str) -> bool:
        """Return whether a file was deleted, rather than being out of reach at the moment."""
        with suppress(SimplememError):
            return self.entry(path) is None and self.root.is_dir()
        return False

    # Write

    def create(
        self, path: str, data: bytes, author: Author, *, rewrites: Sequence[FileChange] = ()
    ) -> WriteResult:
        """Create a file, and make some other changes with it.

        Raises AlreadyExists if there is a file whose path differs at most in case or accents.
        """
        creation = FileChange("create", path, data=data)
        results = self.carry_out([creation, *rewrites], author)
        return results[0]

    def replace(self, path: str, data: bytes, expected_sha256: str, author: Author) -> WriteResult:
        """Replace the bytes of a file. Raises Conflict if they are not the expected ones."""
        change = FileChange.update(path, expected_sha256, data)
        results = self.carry_out([change], author)
        return results[0]

    def trash(self, path: str, expected_sha256: str | None, author: Author) -> WriteResult:
        """Delete a file. `undo` restores it, even if the trash was emptied."""
        with self.lock():
            digest = expected_sha256 or self.read(path).sha256
            deletion = FileChange("delete", path, digest, gone=True)
            results = self.carry_out([deletion], author)
        return results[0]

    def carry_out(self, changes: Sequence[FileChange], author: Author) -> list[WriteResult]:
        """Change several files as one operation: all of them, or none.

        Every write passes through this method and is checked in it.
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
        """Raise unless the rules permit all changes, and no file is changed twice."""
        seen = set[str]()
        for number, change in enumerate(changes):
            is_named_by_caller = number == 0 and change.op != "undo"
            for path in {change.path, change.target}:
                self.access.check(path, asked=is_named_by_caller)
                check_path(path)
                if path in seen:
                    raise Invalid(f"{path!r} is changed twice in one operation")
                seen.add(path)

            if change.gone:
                self.access.check_gone(change.path)
            if change.data is not None and len(change.data) > disk.MAX_FILE_BYTES:
                limit = f"the limit is {disk.MAX_FILE_BYTES:,}"
                raise TooLong(f"{change.path!r} would have {len(change.data):,} bytes; {limit}")

    @abstractmethod
    def _carry_out(self, changes: Sequence[FileChange], author: Author) -> list[WriteResult]:
        """Make changes that were checked. The lock is held."""

    def undo(self, version: str, author: Author) -> list[WriteResult]:
        """Reverse a whole operation; an undo can be undone.

        Raises Conflict if one of its files has changed since, and NotFound if a text is no longer
        kept.
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
        """Return what takes a change back. Raises NotFound if the text before it is not kept."""
        if change.before is None:
            return FileChange("undo", change.path, change.after, gone=True)

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
            return FileChange("undo", change.new_path, change.after, change.path, data)
        return FileChange("undo", change.path, change.after, data=data)

    # History

    def store_text(self, data: bytes) -> None:
        """Keep a text that no change has written, so that its hash finds it.

        Does nothing if it cannot be kept at the moment.
        """
        with suppress(SimplememError, OSError), self.lock(), self._open_root() as handles:
            digest = sha256(data)
            self.history.keep(handles, data, digest)
            self.history.given.add(digest)

    def prune_history(self) -> list[str]:
        """Remove earlier texts that need not be kept any longer; return their hashes."""
        with self._maintaining("thin") as handles:
            # What a crash interrupted has to be in the log first: its texts are needed.
            self._resume(handles)
            return pruning.prune(self.history, handles)

    def _resume(self, handles: DirHandles) -> bool:  # noqa: ARG002
        """Complete or drop an interrupted write; return whether there was one."""
        return False

    @contextmanager
    def _maintaining(self, task: str) -> Iterator[DirHandles]:
        """Hold the lock, and yield the open root, for a block that changes files of our own."""
        with (
            self.lock(),
            self._open_root() as handles,
            translating_os_errors(task, OWN_FOLDER, writing=True),
        ):
            yield handles

    def _open_root(self) -> DirHandles:
        return DirHandles(str(self.root))


def create_own_folder(root: Path) -> Path:
    """Create `.simplemem` in a folder if it does not exist; return it."""
    with (
        DirHandles(str(root)) as handles,
        translating_os_errors("make", OWN_FOLDER, writing=True),
    ):
        make_own_folder(handles)
    return root / OWN_FOLDER


def _busy(holder: str, timeout: float) -> Unavailable:
    hint = "Try again, or end that process if it hangs."
    return Unavailable(f"the vault is still locked by {holder} after {timeout:g} s", hint=hint)
