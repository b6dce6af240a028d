"""Notes in a folder of the disk, as a `NoteSource`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.note.names import check_path
from simplemem.vault.base import VaultBase, VaultOptions
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import OWN_FOLDER, DirHandles
from simplemem.vault.folder.history import History
from simplemem.vault.folder.journal import Journal
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.folder.log import Log
from simplemem.vault.folder.operation import FolderOperation
from simplemem.vault.folder.scanner import Scan, list_paths, scan_folder
from simplemem.vault.folder.watcher import FolderWatcher
from simplemem.vault.operation import no_such_file
from simplemem.vault.os_errors import translating_os_errors
from simplemem.vault.values import Author, Entry, File, FileChange, WriteResult, sha256

if TYPE_CHECKING:
    from simplemem.gitrepo.repository import OpenRepository

_DEFAULT_OPTIONS = VaultOptions()


class FolderVault(VaultBase):
    """A folder of notes. Guards the journal, which makes a write survive a crash."""

    revisions = None  # each file is changed on its own

    def __init__(self, root: Path, options: VaultOptions = _DEFAULT_OPTIONS) -> None:
        self.location = str(root)
        folder = os.path.abspath(root)
        history = History(
            folder,
            Log(folder, kind=options.author_kind),
            keep_days=options.keep_days,
            keep_mb=options.keep_mb,
        )
        self._options = options
        self._journal = Journal(history, durable=options.durable)
        file_lock = FileLock(folder, f"{OWN_FOLDER}/lock")
        super().__init__(Path(folder), options, file_lock=file_lock, history=history)

    # Read

    def scan(self) -> list[Entry]:
        """Return all visible files, sorted by path, and set `problems`.

        Files are regular files outside of folders whose name begins with a dot.
        """
        with self._open_root() as handles:
            scan = scan_folder(handles)
        return self._visible_entries(scan)

    def _visible_entries(self, scan: Scan) -> list[Entry]:
        """Return the visible files of a scan, and set `problems`."""
        hides = self.access.hides
        self.problems = {path: reason for path, reason in scan.problems.items() if not hides(path)}
        return [entry for entry in scan.entries if not hides(entry.path)]

    def paths(self) -> list[str]:
        """Return the paths that `scan` would find, sorted. No file is examined."""
        with self._open_root() as handles:
            paths = list_paths(handles)
        if not self.access.is_partial:
            return paths
        return [path for path in paths if not self.access.hides(path)]

    def entries_below(self, folder: str) -> list[Entry]:
        """Return the files in a folder and its subfolders; none if it does not exist."""
        parts = check_path(folder) if folder else ()
        with self._open_root() as handles:
            entries = scan_folder(handles, parts).entries
        return [entry for entry in entries if not self.access.hides(entry.path)]

    def entry(self, path: str) -> Entry | None:
        """Return the entry of a file as it is now, None if there is no regular file."""
        check_path(path)
        if self.access.hides(path):
            return None
        with self._open_root() as handles, translating_os_errors("access", path):
            return disk.entry_at(handles, path)

    def read(self, path: str) -> File:
        """Return a file with its bytes, all from one moment.

        A file that another program is writing to is read again.
        """
        with self.reading() as read:
            return read(path)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], File]]:
        """Yield a function that reads many files as `read` does.

        It keeps folders open, so it may read from a folder that is moved away meanwhile. Use it for
        a short time.
        """
        with self._open_root() as handles:
            yield lambda path: self._read_file(handles, path)

    def _read_file(self, handles: DirHandles, path: str) -> File:
        check_path(path)
        if self.access.hides(path):
            raise no_such_file(path)

        with translating_os_errors("read", path):
            try:
                data, file_stat = disk.read_file(handles, path)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise no_such_file(path) from error
        return File(path, data, sha256(data), disk.entry_of(path, file_stat))

    # Write

    def _carry_out(self, changes: Sequence[FileChange], author: Author) -> list[WriteResult]:
        with self._open_root() as handles:
            self._journal.resume(handles)
            operation = FolderOperation(
                handles,
                self.history,
                self._journal,
                changes,
                durable=self._options.durable,
                trash_kind=self._options.trash,
            )
            return operation.carry_out(author)

    # Maintenance

    def recover(self) -> tuple[int, list[Entry]]:
        """Finish what a crash interrupted, and save texts that were left in staged files.

        Returns how much there was to do, and the files of the scan that this needs.
        """
        if self.read_only:
            return 0, self.scan()

        with self._maintaining("recover") as handles:
            was_interrupted = self._journal.resume(handles)
            scan = scan_folder(handles)
            for path in scan.staged_files:
                # Whoever writes holds the lock, so no process uses this file any longer.
                with suppress(FileNotFoundError):
                    self.history.rescue(handles, path, path, "left by an interrupted write")
                handles.close_all()
            late_saves = self.history.settle(handles)
            count = was_interrupted + len(scan.staged_files) + len(late_saves)
            return count, self._visible_entries(scan)

    def finish_interrupted(self) -> None:
        """Complete or drop a write that a crash interrupted, as each write does before its own."""
        if not self.read_only:
            with self._maintaining("recover") as handles:
                self._journal.resume(handles)

    def _resume(self, handles: DirHandles) -> bool:
        return self._journal.resume(handles)

    def watch(
        self, *, poll: bool, poll_seconds: float = 2.0, warn: Callable[[str], None]
    ) -> FolderWatcher:
        """Return what reports changes from now on."""
        return FolderWatcher(self.root, poll=poll, poll_seconds=poll_seconds, warn=warn)

    # Git

    def is_in_git(self) -> bool:
        """Return whether the folder, or one that it is in, looks like a git repository."""
        folder = Path(os.path.realpath(self.root))
        candidates = (folder, *folder.parents)
        return any(os.path.lexists(candidate / ".git") for candidate in candidates)

    def git_repository(self, trusted_folders: Sequence[str]) -> OpenRepository:
        """Return the git repository that the folder is in.

        To open it raises NotFound if none is.
        """
        from simplemem.gitrepo.repository import open_repository  # this loads libgit2

        return open_repository(self.root, trusted_folders)
