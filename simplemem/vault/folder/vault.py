"""A vault in a folder: reading its files, and operations that write them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from simplemem.errors import ReadOnly
from simplemem.note.names import check_path, parent
from simplemem.vault.base import (
    VaultBase,
    VaultOptions,
    WriteOperation,
    already_exists,
    no_such_file,
)
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import OWN_FOLDER, DirHandles, translating_os_errors
from simplemem.vault.folder.disk import ConcurrentWrite, entry_at
from simplemem.vault.folder.history import OBSIDIAN_TRASH, OWN_TRASH, History, Log
from simplemem.vault.folder.journal import Journal, Step
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.folder.scanner import Scan, list_paths, scan_folder
from simplemem.vault.folder.watcher import FolderWatcher
from simplemem.vault.values import (
    Author,
    Entry,
    File,
    FileChange,
    Version,
    WriteResult,
    format_version,
    sha256,
)

if TYPE_CHECKING:
    from simplemem.gitrepo.repository import RepositoryContext


# -- operations

_WRITE_BITS = 0o222

TrashKind = Literal["own", "obsidian"]


class FolderOperation(WriteOperation):
    """Changes of the files in a folder. Guards the paths of the files that were staged for them."""

    def __init__(
        self,
        root: DirHandles,
        history: History,
        journal: Journal,
        changes: Sequence[FileChange],
        *,
        durable: bool,
        trash_kind: TrashKind,
    ) -> None:
        """Prepare an operation in the open vault `root`; reads and stages nothing yet.

        With `durable`, each write is synced to the disk. `trash_kind` says where deleted files go.
        """
        super().__init__(root, history, changes)
        self._journal = journal
        self._is_durable = durable
        self._trash_kind = trash_kind
        self._staged: dict[str, str] = {}  # the staged file of each change, by its path

    def _read(self, path: str) -> bytes | None:
        """Return the bytes of the file at a path, None if there is no file.

        Raises Unreadable, TooLong or OSError for what cannot be read, such as a link.
        """
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
        """Return the entry of a regular file as it is now, None if there is none."""
        return entry_at(self._root, path)

    def _check_writable(self, path: str) -> None:
        """Raise ReadOnly for a write-protected file. A path at which nothing is raises none.

        Raises an OSError if a part of the path is a link or a file.
        """
        with suppress(FileNotFoundError):
            mode = self._root.stat(path).st_mode
            if not mode & _WRITE_BITS:
                hint = "Allow writing to the file first."
                raise ReadOnly(f"{path!r} is write-protected", hint=hint)

    def _trash_path(self, path: str, number: int) -> str | None:
        """Return a path in the trash for a deleted file, at which there is no file yet.

        In our own trash, each operation has a folder, named after its first version, which has this
        number. As in Obsidian, a file whose name is in use gets a number after its name.
        """
        if self._trash_kind == "own":
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

    def _apply(self, versions: Sequence[Version]) -> None:
        """Carry out the changes on the disk; `versions` are their lines of the log, in order.

        Raises Conflict or AlreadyExists if another program changed a file at the same moment.
        """
        self._keep_texts()
        self._stage_or_clean_up()

        steps = []
        for change, version in zip(self._changes, versions, strict=True):
            # A new text that was not staged is in the trash, if there is a new text.
            text_file = self._staged.get(change.path, change.trash)
            steps.append(Step(version, text_file))
        try:
            self._journal.perform(self._root, steps)
        except ConcurrentWrite as error:
            affected_change = self._change_of(error.path)
            raise self._conflict(affected_change) from error
        except FileExistsError as error:
            raise already_exists(error.filename) from error

    def _change_of(self, path: str) -> FileChange:
        """Return the change that changes, or moves to, a path."""
        return next(change for change in self._changes if path in (change.path, change.new_path))

    def _keep_texts(self) -> None:
        """Keep the old and the new text of each note in the history.

        The old text of a moved note is kept as well: at its new path, another program may change it
        before simplemem sees it.
        """
        history = self._history
        for change in self._changes:
            text = self._texts.get(change.path)
            if text is not None:
                history.keep(self._root, text.data, text.sha256)
            if change.data is not None:
                history.keep(self._root, change.data, change.new_sha256 or "")

    def _stage_or_clean_up(self) -> None:
        """Stage the new texts. If that fails, remove the files staged so far; raise the error."""
        try:
            self._stage()
        except BaseException:
            for staged_file in self._staged.values():
                disk.remove(self._root, staged_file)
            raise

    def _stage(self) -> None:
        """Write the new texts to staged files, and sync these if durable.

        Adds their paths to `_staged`. Each is in the folder of its note or, if that does not exist
        yet, in the nearest one above: no folder is created. A file that is restored unchanged from
        the trash is not written. If it raises, the files staged so far remain.
        """
        is_durable = self._is_durable
        is_single = len(self._changes) == 1
        for change in self._changes:
            # A file restored from the trash keeps its dates and attributes, so it is not written.
            if change.data is not None and not self._is_in_trash_unchanged(change):
                sync = is_durable and is_single
                self._staged[change.path] = self._stage_text(change, change.data, sync=sync)

        if is_durable and not is_single:
            disk.sync_paths(self._root.root, list(self._staged.values()))

    def _is_in_trash_unchanged(self, change: FileChange) -> bool:
        """Return whether the file in the trash that a change restores still has the wanted text."""
        if change.trash is None:
            return False
        digest = disk.hash_of(self._root, change.trash)
        return digest == change.new_sha256

    def _stage_text(self, change: FileChange, data: bytes, *, sync: bool) -> str:
        """Write one new text to a staged file; return the path of that file.

        It is in the folder of its note, or in the nearest folder above that exists. Missing folders
        are created only when the change is carried out, because it may fail before.
        """
        folder = parent(change.target)
        missing_count = len(self._root.missing(folder))
        existing_folder = folder[: len(folder) - missing_count]

        model = None if change.old_sha256 is None else change.path
        return disk.stage(
            self._root,
            existing_folder,
            data,
            like=model,
            sync=sync,
            at=change.at,
        )


# -- the vault

_DEFAULT_OPTIONS = VaultOptions()


class FolderVault(VaultBase):
    """A folder of notes. Guards the journal, which makes a write survive a crash."""

    revisions = None  # each file is changed on its own

    def __init__(self, root: Path, options: VaultOptions = _DEFAULT_OPTIONS) -> None:
        """Open the vault in the folder `root`. Raises Unavailable if there is none.

        Nothing is scanned, and an interrupted write is not finished yet.
        """
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

        Files are regular files. Names that begin with a dot, of a file or a folder, are left out.
        """
        with DirHandles(str(self.root)) as handles:
            scan = scan_folder(handles)
        return self._visible_entries(scan)

    def _visible_entries(self, scan: Scan) -> list[Entry]:
        """Return the files of a scan that the access rules show, and set `problems` to theirs.

        A problem with a path that the rules hide is left out too.
        """
        hides = self.access.hides
        self.problems = {path: reason for path, reason in scan.problems.items() if not hides(path)}
        return [entry for entry in scan.entries if not hides(entry.path)]

    def paths(self) -> list[str]:
        """Return the visible paths that `scan` would find, sorted. No file is examined.

        `problems` is not set.
        """
        with DirHandles(str(self.root)) as handles:
            paths = list_paths(handles)
        if not self.access.is_partial:
            return paths
        return [path for path in paths if not self.access.hides(path)]

    def entries_below(self, folder: str) -> list[Entry]:
        """Return the visible files in a folder and its subfolders; none if it does not exist.

        "" is the whole vault. `problems` is not set.
        """
        parts = check_path(folder) if folder else ()
        with DirHandles(str(self.root)) as handles:
            entries = scan_folder(handles, parts).entries
        return [entry for entry in entries if not self.access.hides(entry.path)]

    def entry(self, path: str) -> Entry | None:
        """Return the entry of a file as it is now, None if there is no regular file.

        None also for a hidden file. Raises Invalid for a malformed path, and Unreadable or
        Unavailable if the disk fails.
        """
        check_path(path)
        if self.access.hides(path):
            return None
        with DirHandles(str(self.root)) as handles, translating_os_errors("access", path):
            return disk.entry_at(handles, path)

    def read(self, path: str) -> File:
        """Return a file with its bytes, all from one moment.

        A file that another program is writing to is read again. Raises NotFound, also for a hidden
        file, Unreadable for what is no regular file, TooLong, and Invalid for a malformed path or a
        link.
        """
        with self.reading() as read:
            return read(path)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], File]]:
        """Yield a function that reads many files, each as it is then; it raises as `read` does.

        Folders stay open for the block, so files of a folder that is moved away meanwhile are still
        read under its old path. Use it for a short time.
        """
        with DirHandles(str(self.root)) as handles:
            yield lambda path: self._read_file(handles, path)

    def _read_file(self, handles: DirHandles, path: str) -> File:
        """Return a file by its path; raises as `read` does."""
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
        """Finish an interrupted write, then make changes that were checked, on the disk."""
        with DirHandles(str(self.root)) as handles:
            self._journal.resume(handles)
            operation = FolderOperation(
                handles,
                self.history,
                self._journal,
                changes,
                durable=self._options.durable,
                trash_kind=self._options.trash,
            )
            return operation.carry_out(author, self.before_write)

    # Maintenance

    def recover(self) -> tuple[int, list[Entry]]:
        """Finish what a crash interrupted, and save texts that were left in staged files.

        Returns how many writes and texts there were, and the visible files of the scan that this
        needs. In a read-only vault, it only scans, and the number is 0.
        """
        if self.read_only:
            return 0, self.scan()

        with self._maintaining("recover") as handles:
            was_interrupted = self._journal.resume(handles)
            scan = scan_folder(handles)
            for path in scan.staged_files:
                # A process that writes holds the lock, which is ours now. So no process uses this
                # file any longer.
                with suppress(FileNotFoundError):
                    self.history.rescue(handles, path, path, "left by an interrupted write")
                handles.close_all()
            late_saves = self.history.check_displaced(handles)
            count = int(was_interrupted) + len(scan.staged_files) + len(late_saves)
            return count, self._visible_entries(scan)

    def finish_interrupted(self) -> None:
        """Finish a write that a crash interrupted, without a scan.

        Does nothing in a read-only vault.
        """
        if not self.read_only:
            with self._maintaining("recover") as handles:
                self._journal.resume(handles)

    def _resume(self, handles: DirHandles) -> bool:
        return self._journal.resume(handles)

    def watch(
        self,
        *,
        poll: bool,
        poll_seconds: float = 2.0,
        warn: Callable[[str], None],
    ) -> FolderWatcher:
        """Return what reports changes from now on. The caller closes it."""
        return FolderWatcher(self.root, poll=poll, poll_seconds=poll_seconds, warn=warn)

    # Git

    def is_in_git(self) -> bool:
        """Return whether the folder, or one that it is in, looks like a git repository.

        Opens nothing: the repository may still be refused.
        """
        folder = Path(os.path.realpath(self.root))
        candidates = (folder, *folder.parents)
        return any(os.path.lexists(candidate / ".git") for candidate in candidates)

    def git_repository(self, trusted_folders: Sequence[str]) -> RepositoryContext:
        """Return the git repository that the folder is in, not opened yet.

        `trusted_folders` may have parts of it outside of the working tree. To open it raises
        NotFound if there is none, and Unavailable if it is refused.
        """
        from simplemem.gitrepo.repository import open_repository  # this loads libgit2

        return open_repository(self.root, trusted_folders)
