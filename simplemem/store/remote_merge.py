"""Merge what a remote changed with what was changed here, file by file."""

from __future__ import annotations

from contextlib import suppress

from pygit2 import Commit

from simplemem.errors import Unavailable
from simplemem.gitrepo.exchange import CommittedFile, Exchange, TreeChange
from simplemem.note.merge import merge

Files = dict[str, bytes | None]
"""What files become, by path; None for a file that is deleted."""


class RemoteMerge:
    """What a merge with the remote makes of the vault.

    `files` has what becomes of each file that the remote changed, except those that it deleted and
    we changed: they stay as they are. `copies` are the paths of texts that could not be merged and
    are put beside their notes. `moves` has the new path of each file that either side moved, by its
    old one; our move wins.
    """

    def __init__(self, exchange: Exchange, base: Commit, their_commit: Commit) -> None:
        """Merge what both sides changed since the commit `base`, in memory. Writes nothing.

        `their_commit` is the newest one of the remote; ours is that of `exchange`. Raises
        Unavailable if the remote changed a file that is neither a note nor an attachment.
        """
        self._exchange = exchange
        self._their_commit = their_commit
        self.files: Files = {}
        self.copies: list[str] = []

        our_changes = dict[str, TreeChange]()  # by the first path of the file
        for change in exchange.changes_since(base, exchange.ours):
            if all(file.is_ours for file in change.files):
                our_changes[change.files[0].path] = change

        their_changes = exchange.changes_since(base, their_commit)
        for change in their_changes:
            self._check_allowed(change)
            first_path = change.files[0].path
            our_change = our_changes.get(first_path)
            self._merge_change(change, our_change)
        self.moves = self._moves_of([*their_changes, *our_changes.values()])

    def _check_allowed(self, change: TreeChange) -> None:
        """Raise Unavailable if a change is of a file that is neither a note nor an attachment."""
        for file in change.files:
            if not file.is_ours:
                raise Unavailable(
                    f"{self._exchange.remote} changed {file.path!r},"
                    " which is not a note or an attachment",
                    hint="Nothing was changed here. Get such changes with `git pull`.",
                )

    def _moves_of(self, changes: list[TreeChange]) -> dict[str, str]:
        """Return the new path of each file that one of the changes moved, by its old one.

        If two changes move a file, the later one in `changes` counts. A path that still has a file
        after the merge is left out.
        """
        moves = {}
        for old, new in changes:
            if old is None or new is None or old.path == new.path:
                continue
            if self.files.get(old.path) is None:
                moves[old.path] = new.path
        return moves

    def _merge_change(self, their_change: TreeChange, our_change: TreeChange | None) -> None:
        """Add to `files` what becomes of a file that the remote changed, and perhaps we did too.

        A file that one side deleted and the other changed is kept, with the change.
        """
        if our_change is None:
            self._take(their_change)
        elif their_change.new is not None:  # what they deleted stays, as it was changed here
            self._merge_both(their_change.old, our_change.new, their_change.new)

    def _take(self, change: TreeChange) -> None:
        """Add to `files` what the remote did to a file that was not changed here.

        A file that it created or moved is merged with the file of ours at its new path, if there is
        one.
        """
        old, new = change
        if old is not None and new is not None and old.path == new.path:
            self.files[new.path] = new.data
            return
        if old is not None:
            self.files[old.path] = None
        if new is not None:
            self._add(new)

    def _add(self, file: CommittedFile) -> None:
        """Add to `files` a file of the remote that has no common earlier text, or that we deleted.

        It is merged with the file that our last commit has at its path, if there is one. If they
        are in conflict, a copy is added too.
        """
        current = self._exchange.text_in_last_commit(file.path)
        self._merge_texts(None, current, file.data, file.path)

    def _merge_both(
        self,
        base_file: CommittedFile | None,
        our_file: CommittedFile | None,
        their_file: CommittedFile,
    ) -> None:
        """Add to `files` the merge of both sides' changes to a file; it may have moved on either.

        If both moved it, our path counts. If there was no such file before, or we deleted it, the
        file of the remote is taken.
        """
        if base_file is None or our_file is None:
            self._add(their_file)
            return

        path = our_file.path
        is_moved_by_us = our_file.path != base_file.path
        is_moved_by_them = their_file.path != base_file.path
        if is_moved_by_them and not is_moved_by_us:
            path = their_file.path
            self.files[our_file.path] = None
        self._merge_texts(base_file.data, our_file.data, their_file.data, path)

    def _merge_texts(
        self,
        base: bytes | None,
        our_text: bytes | None,
        their_text: bytes,
        path: str,
    ) -> None:
        """Add to `files` the merge of two texts of a file, or ours with theirs in a copy beside it.

        A copy is made for a conflict and for a file that is not Markdown, and is added to `copies`.
        If we have no text or did not change it, theirs is taken. `base` is the common earlier text,
        None if there is none.
        """
        if our_text is None or our_text in (base, their_text):
            self.files[path] = their_text
            return

        merged = None
        if path.endswith(".md"):
            merged = _merge_notes(base, our_text, their_text)
        if merged is not None:
            self.files[path] = merged
            return
        self.files[path] = our_text
        copy_path = self._copy_path(path)
        self.files[copy_path] = their_text
        self.copies.append(copy_path)

    def _copy_path(self, path: str) -> str:
        """Return the path for the remote's text beside ours, in the form of git's merge tools.

        For "a.md", it is such as "a.REMOTE.1234.md". The number is made from the id of the remote's
        commit.
        """
        stem, dot, extension = path.rpartition(".")
        digits = str(self._their_commit.id)[:7]
        number = int(digits, 16)
        return f"{stem}.REMOTE.{number}{dot}{extension}"


def _merge_notes(base_data: bytes | None, our_data: bytes, their_data: bytes) -> bytes | None:
    """Return the merge of two texts of a note; None if they are in conflict or not UTF-8.

    `base_data` is their common earlier text, None if there is none.
    """
    with suppress(UnicodeDecodeError):
        base_text = None if base_data is None else base_data.decode("utf-8")
        our_text = our_data.decode("utf-8")
        their_text = their_data.decode("utf-8")
        merged = merge(base_text, our_text, their_text, both=True)
        if merged.is_clean:
            return merged.text.encode("utf-8", "surrogatepass")
    return None
