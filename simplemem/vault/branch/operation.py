"""Carry out a write in a branch: one commit on top of the newest one."""

from __future__ import annotations

from collections.abc import Sequence

import pygit2

from simplemem.vault.base import WriteOperation, already_exists
from simplemem.vault.branch.entries import EntryReader
from simplemem.vault.branch.log import BranchHistory, message_of
from simplemem.vault.branch.repository import Branch, at
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.values import Entry, FileChange, Version


class BranchOperation(WriteOperation):
    """Changes that become one commit. Guards the commit that they were checked against.

    `carry_out` raises PushRejected if another writer commits first.
    """

    def __init__(
        self,
        root: DirHandles,
        history: BranchHistory,
        entries: EntryReader,
        changes: Sequence[FileChange],
    ) -> None:
        """Prepare an operation on top of the newest commit; bring the log up to this commit.

        Raises Unavailable if the branch cannot be read.
        """
        super().__init__(root, history, changes)
        self._branch: Branch = history.log.branch
        self._entries = entries
        self._parent = history.log.follow()
        self._commit = ""  # the new commit, once it is made

    def _read(self, path: str) -> bytes | None:
        """Return the bytes of a file in the commit that the changes are checked against.

        Returns None if there is no file.
        """
        blob = self._branch.file(self._parent, path)
        return None if blob is None else blob.data

    def _names(self, folder: str) -> list[str]:
        """Return the names in a folder of that commit; none if it does not exist."""
        tree = at(self._branch.tree(self._parent), folder.rstrip("/"))
        if not isinstance(tree, pygit2.Tree):
            return []
        return [item.name or "" for item in tree]

    def _entry(self, path: str) -> Entry | None:
        """Return the entry of a file in the new commit, or in its parent before it is made."""
        return self._entries.entry_in(self._commit or self._parent, path)

    def _check_writable(self, path: str) -> None:
        """Do nothing: no file of a branch is protected."""

    def _trash_path(self, path: str, number: int) -> None:  # noqa: ARG002
        """Return None: a deleted file stays in the commits before."""
        return

    def _apply(self, versions: Sequence[Version]) -> None:
        """Commit the changes as one commit on the branch.

        Raises PushRejected if another writer commits first, and AlreadyExists if a file or folder
        is in the place of a new one.
        """
        files: dict[str, bytes | None] = {}
        for change in self._changes:
            if change.is_deletion or change.new_path:
                files[change.path] = None

        for change in self._changes:
            # A target in `files` is free: another change deletes its file or moves it away.
            if change.new_path and change.target not in files:
                self._check_target_free(change.target)
            if not change.is_deletion:
                data = change.data
                if data is None:
                    data = self._texts[change.path].data
                files[change.target] = data
        self._commit = self._branch.commit(self._parent, files, message_of(versions))

    def _check_target_free(self, path: str) -> None:
        """Raise AlreadyExists if there is something at a path.

        An undo moves a note back to a path at which another note may be by now.
        """
        if at(self._branch.tree(self._parent), path):
            raise already_exists(path)
