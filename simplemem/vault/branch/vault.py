"""Notes in a branch of a git repository, as a `NoteSource`.

The notes are those of the newest commit. A write is a commit on top of the one that it was checked
against; if another writer was faster, it is checked again. There is no working tree. Each server
has a folder for its own files.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from simplemem.errors import Unavailable
from simplemem.gitrepo.repository import Checkout, RepositoryContext
from simplemem.gitrepo.user_git import PushRejected
from simplemem.note.names import check_path
from simplemem.vault.base import VaultBase, VaultOptions, create_own_folder, no_such_file
from simplemem.vault.branch.entries import EntryReader
from simplemem.vault.branch.log import BranchHistory, BranchLog
from simplemem.vault.branch.operation import BranchOperation
from simplemem.vault.branch.repository import Branch, redact_address
from simplemem.vault.branch.revisions import BranchRevisions, BranchWatcher
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.values import Author, Entry, File, FileChange, WriteResult, sha256

_MAX_TRIES = 50  # of a write that other writers overtake
_MAX_PAUSED_TRIES = 10  # the pause between two tries grows with each of the first ten
_PAUSE_SECONDS = 0.01


class BranchVault(VaultBase):
    """A branch of notes. `root` is the folder of this server, which has no notes."""

    def __init__(self, root: Path, options: VaultOptions, *, repository: str, name: str) -> None:
        """Open the branch `name` of a repository: a path, or the address of one elsewhere.

        A copy of a repository elsewhere is kept in `root`. Raises Unavailable if the repository
        cannot be used.
        """
        self.location = f"{redact_address(repository)}, branch {name}"
        folder = Path(os.path.abspath(root))
        clone = create_own_folder(folder) / "branch"
        self._branch = Branch(repository, name, clone)
        self._log = BranchLog(str(folder), self._branch, kind=options.author_kind)
        self._entries = EntryReader(self._log)
        self._branch_history = BranchHistory(
            str(folder), self._log, keep_days=options.keep_days, keep_mb=options.keep_mb
        )
        self.revisions = BranchRevisions(self._log)
        # All servers of this machine share this lock, as they share the repository.
        file_lock = FileLock(str(self._branch.path), "simplemem.lock")
        super().__init__(folder, options, file_lock=file_lock, history=self._branch_history)

    # Read

    def scan(self) -> list[Entry]:
        """Return all visible files of the newest commit, sorted by path, and set `problems`."""
        return self.entries_below("")

    def paths(self) -> list[str]:
        """Return the paths that `scan` would find, sorted.

        It takes as long as a scan, and sets `problems` as well.
        """
        return [entry.path for entry in self.scan()]

    def entries_below(self, folder: str) -> list[Entry]:
        """Return the visible files in a folder and its subfolders; none if it does not exist.

        "" is the whole branch; then `problems` is set.
        """
        hides = self.access.hides
        commit = self.revisions.current()
        entries, problems = self._entries.entries_below(commit, folder)
        if not folder:
            self.problems = {path: why for path, why in problems.items() if not hides(path)}
        return [entry for entry in entries if not hides(entry.path)]

    def entry(self, path: str) -> Entry | None:
        """Return the entry of a file in the newest commit, None if there is no file.

        None also for a hidden file. Raises Invalid for a malformed path.
        """
        check_path(path)
        if self.access.hides(path):
            return None
        commit = self.revisions.current()
        return self._entries.entry_in(commit, path)

    def read(self, path: str) -> File:
        """Return a file of the newest commit.

        Raises NotFound, also for a hidden file, and Invalid for a malformed path.
        """
        with self.reading() as read:
            return read(path)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], File]]:
        """Yield a function that reads files as they are in the newest commit of this moment."""
        commit = self.revisions.current()
        yield lambda path: self._read_file(commit, path)

    def _read_file(self, commit: str, path: str) -> File:
        """Return a file of a commit. Raises NotFound, also for a hidden file, or Invalid."""
        check_path(path)
        if self.access.hides(path):
            raise no_such_file(path)
        blob = self._branch.file(commit, path)
        if blob is None:
            raise no_such_file(path)

        digest = sha256(blob.data)
        entry = self._entries.entry_of(path, blob)
        return File(path, blob.data, digest, entry)

    # Write

    def _carry_out(self, changes: Sequence[FileChange], author: Author) -> list[WriteResult]:
        """Commit changes; check them again on top of each commit of another writer.

        Raises Unavailable if other writers are faster too often.
        """
        for attempt in range(_MAX_TRIES):
            with suppress(PushRejected), self._open_root() as handles:
                operation = BranchOperation(handles, self._branch_history, self._entries, changes)
                return operation.carry_out(author, self.before_write)
            # Another writer has committed first.
            self._branch.fetch()
            max_pause = _PAUSE_SECONDS * min(attempt, _MAX_PAUSED_TRIES)
            time.sleep(random.uniform(0, max_pause))  # noqa: S311
        raise Unavailable(
            "other writers keep committing to the branch", hint="Try again in a moment."
        )

    # Maintenance

    def recover(self) -> tuple[int, None]:
        """Fetch new commits, if there is a connection. Returns 0 and no files.

        There is nothing to recover: a commit is made as a whole, or not.
        """
        with suppress(Unavailable):  # without a connection, the commits that are here are served
            self._branch.fetch()
        return 0, None

    def finish_interrupted(self) -> None:
        """Do nothing: a commit is made as a whole, or not."""

    def watch(self, **_options: object) -> BranchWatcher:
        """Return what reports changes from now on.

        A branch is always polled, so no option counts.
        """
        return BranchWatcher(self._log, self.revisions)

    # Git

    def is_in_git(self) -> bool:
        """Return True: the commits of the branch are the history of the notes."""
        return True

    def git_repository(self, trusted_folders: Sequence[str]) -> RepositoryContext:  # noqa: ARG002
        """Return a context with the repository of the branch, which was opened already.

        `trusted_folders` do not matter.
        """
        path = self._branch.path
        checkout = Checkout(path, path, path, "", self._branch.ref)
        return nullcontext((self._branch.repo, checkout))
