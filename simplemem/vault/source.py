"""The interface to the notes of a vault, whatever stores them.

`FolderVault` keeps them in a folder, `BranchVault` in a branch of a git repository. The index and
the store know this interface only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from simplemem.vault.base import BeforeWrite
from simplemem.vault.folder.history import History
from simplemem.vault.values import Access, Author, Entry, File, FileChange, WriteResult

if TYPE_CHECKING:
    from simplemem.gitrepo.repository import RepositoryContext  # this loads libgit2

EVERYTHING = ""
"""The path of the vault itself. A watcher that reports it asks to look at all notes."""


class Watcher(Protocol):
    """Reports which paths may have changed. One thread asks; any thread may wake it."""

    poll_seconds: float
    """How often `EVERYTHING` is reported if the system does not report changes."""

    def paths(self, seconds: float) -> set[str]:
        """Return the paths that may have changed since the last call.

        If `EVERYTHING` is among them, any may have. A path may be that of a note, a folder or a
        file of settings, and need not exist any more. Waits for a change, `seconds` at most and
        perhaps less. Returns an empty set if there was none or `wake` was called.
        """

    def wake(self) -> None:
        """End the wait of `paths`, or the next one if none waits. Any thread may call it."""

    def close(self) -> None:
        """Stop watching. `wake` may still be called after this, `paths` may not."""


class Revisions(Protocol):
    """The revisions of a source: each write makes one, which is a state of all notes.

    A revision is named by its id. The index of such a source follows from one revision to the next,
    instead of looking at files. "" is the revision before the first.
    """

    def current(self) -> str:
        """Return the id of the newest revision that is here, "" if there is none.

        Fetches nothing. Raises Unavailable if the source cannot be read at the moment.
        """

    def fetch(self, revision: str) -> bool:
        """Return whether the notes here include a revision, after fetching it if needed.

        False if the remote does not have it either. Raises Unavailable if the network fails.
        """

    def is_ancestor(self, revision: str, other: str) -> bool:
        """Return whether `other` is the same revision as `revision`, or was made on top of it.

        False if one of them is not here.
        """

    def changed_paths(self, since: str, until: str) -> set[str] | None:
        """Return the paths of the files that differ between the revisions `since` and `until`.

        `until` must be here; `since` is fetched if necessary. Returns None if all may differ: the
        newest revision does not continue `since`, or Obsidian's settings differ. Raises
        Unavailable.
        """


class NoteSource(Protocol):
    """The notes of one vault, as files with paths. Says nothing about what a note means.

    All methods may be called from any thread. Writes exclude each other across processes. A path is
    relative to the vault and has `/` between its parts; a malformed one raises Invalid. Reading
    treats a hidden file as if it did not exist; writing to one raises ReadOnly. Any method that
    reads or writes raises Unavailable if the vault is out of reach.
    """

    root: Path
    """The folder in which simplemem keeps its own files for this vault."""

    location: str
    """Where the notes are, as people may read it, without a password."""

    access: Access
    """Which files are hidden or protected."""

    read_only: bool
    """Whether nothing can be written."""

    history: History
    """The log of changes, and the earlier texts."""

    problems: dict[str, str]
    """The files and folders that the last scan could not read, and why."""

    on_written: Callable[[str], None] | None
    """Called with the id of each write once it is made, before it is reported to the caller."""

    before_write: BeforeWrite | None
    """Called before each write that would be made, while the lock is held; may refuse it."""

    @property
    def revisions(self) -> Revisions | None:
        """The revisions of the notes; None if files are changed one by one, without revisions."""

    # Read

    def scan(self) -> list[Entry]:
        """Return all visible files, notes and attachments, sorted by path, and set `problems`.

        Files and folders whose names begin with a dot are not among them.
        """

    def paths(self) -> list[str]:
        """Return the paths that `scan` would find, sorted. In a folder, faster than `scan`."""

    def entries_below(self, folder: str) -> list[Entry]:
        """Return the files in a folder and its subfolders; none if it does not exist.

        "" is the vault itself. Hidden files are left out.
        """

    def entry(self, path: str) -> Entry | None:
        """Return the entry of a file as it is now, None if there is no file or it is hidden."""

    def is_certainly_gone(self, path: str) -> bool:
        """Return whether no file is at a path, or a hidden one.

        False if the vault cannot be read, or if anything else leaves a doubt. Never raises.
        """

    def read(self, path: str) -> File:
        """Return a file with its bytes, which are never decoded.

        Raises NotFound, also for a hidden file, Unreadable or TooLong.
        """

    def reading(self) -> AbstractContextManager[Callable[[str], File]]:
        """Return a context that yields a function for reading many files in a row.

        The function takes a path and returns and raises as `read` does. In a branch, all files are
        of one commit; in a folder, each is as it is when it is read.
        """

    # Write

    def lock(self, timeout: float = 10.0) -> AbstractContextManager[None]:
        """Exclude other writers for a block. A thread may take the lock again.

        Raises Unavailable after `timeout` seconds, and ReadOnly.
        """

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

    def replace(self, path: str, data: bytes, expected_sha256: str, author: Author) -> WriteResult:
        """Replace the bytes of a file; never creates one.

        If it has the new bytes already, nothing is written. Raises Conflict if the file has others
        than the expected ones, NotFound without a file, and what `carry_out` raises.
        """

    def trash(self, path: str, expected_sha256: str | None, author: Author) -> WriteResult:
        """Delete a file, which stays in the trash or the repository for a while, and log it.

        If there is an expected hash, raises Conflict for another text; without one, deletes
        whatever text is there. Raises NotFound if there is no file, and what `carry_out` raises.
        """

    def carry_out(self, changes: Sequence[FileChange], author: Author) -> list[WriteResult]:
        """Change several files as one operation: all of them, or none.

        Return their results in order. `changes` must not be empty. A change that was made already
        counts as made; each other is logged. Raises Conflict, NotFound, AlreadyExists, ReadOnly,
        Invalid, TooLong, Unreadable or Unavailable.
        """

    def undo(self, version: str, author: Author) -> list[WriteResult]:
        """Reverse the whole operation that a version belongs to, as a new operation in the log.

        Raises Conflict if one of its files has changed since, AlreadyExists if the former path of a
        moved file is in use, NotFound if there is no such version or a text is no longer kept,
        Invalid for a recovered text, and what `carry_out` raises.
        """

    def store_text(self, data: bytes) -> None:
        """Keep a text that no change has written, so that its hash finds it.

        `history.content` returns it until it is pruned. Does nothing if the text cannot be written
        at the moment.
        """

    # Maintenance

    def recover(self) -> tuple[int, list[Entry] | None]:
        """Finish what a crash interrupted, and bring the notes here up to date.

        Returns how many writes and texts there were to finish, and the files of a scan if one was
        needed, else None. Called when a server starts.
        """

    def finish_interrupted(self) -> None:
        """Finish what a crash interrupted, without a scan. Does nothing in a read-only vault."""

    def prune_history(self) -> list[str]:
        """Remove earlier texts that need not be kept any longer; return their hashes.

        The settings of the vault say for how many days and megabytes they are kept. An
        interrupted write is finished first; otherwise, no note changes.
        """

    def own_folder(self) -> Path:
        """Return `<root>/.simplemem`, which is created if it does not exist.

        Raises ReadOnly or Unavailable if it cannot be created.
        """

    def without_rules(self) -> Self:
        """Return the same vault without access rules, for checks that concern all notes.

        What it reveals must not be shown to anyone who may see less.
        """

    def watch(
        self,
        *,
        poll: bool,
        poll_seconds: float = 2.0,
        warn: Callable[[str], None],
    ) -> Watcher:
        """Return what reports changes from now on. The caller closes it.

        With `poll`, the watcher reports `EVERYTHING` every `poll_seconds`. If that is necessary
        although it was not requested, `warn` is called with a message.
        """

    def is_in_git(self) -> bool:
        """Return whether git may have a history of the notes. Fast; does not load libgit2."""

    def git_repository(self, trusted_folders: Sequence[str]) -> RepositoryContext:
        """Return the git repository that has the history of the notes, not opened yet.

        Parts of it outside of the working tree are used only if they are in `trusted_folders`. To
        open it raises NotFound if there is none, and Unavailable if it cannot be used.
        """
