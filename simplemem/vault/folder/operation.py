"""Carry out a write in a folder: stage new texts beside the notes; the journal swaps them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from simplemem.errors import ReadOnly
from simplemem.note.names import parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.disk import ConcurrentWrite, entry_at
from simplemem.vault.folder.history import History
from simplemem.vault.folder.journal import Journal
from simplemem.vault.folder.plan import Step
from simplemem.vault.folder.trash import OBSIDIAN_TRASH, OWN_TRASH
from simplemem.vault.operation import WriteOperation, already_exists
from simplemem.vault.values import Entry, FileChange
from simplemem.vault.versions import Version, format_version

_WRITE_BITS = 0o222

TrashKind = Literal["own", "obsidian"]


class FolderOperation(WriteOperation):
    """Changes of the files in a folder.

    Guards the files that are staged until they are in place.
    """

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
        super().__init__(root, history, changes)
        self._journal = journal
        self._is_durable = durable
        self._trash_kind = trash_kind
        self._staged: dict[str, str] = {}  # the staged file of each change, by its path

    def _read(self, path: str) -> bytes | None:
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
        """Raise ReadOnly for a write-protected file, an OSError for a link or the like."""
        with suppress(FileNotFoundError):
            mode = self._root.stat(path).st_mode
            if not mode & _WRITE_BITS:
                hint = "Allow writing to the file first."
                raise ReadOnly(f"{path!r} is write-protected", hint=hint)

    def _trash_path(self, path: str, number: int) -> str | None:
        """Return the free path in the trash for a file that change `number` deletes.

        As in Obsidian, a file whose name is used there already gets a number after its name.
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
            staged_file = self._staged.get(change.path, change.trash)
            steps.append(Step(version, staged_file))
        try:
            self._journal.perform(self._root, steps)
        except ConcurrentWrite as concurrent:
            affected = self._change_of(concurrent.path)
            raise self._conflict(affected) from concurrent
        except FileExistsError as error:
            raise already_exists(self._changes[0].target) from error

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
                history.keep(self._root, change.data, change.after or "")

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
        if change.trash is None:
            return False
        digest = disk.hash_of(self._root, change.trash)
        return digest == change.after

    def _stage_text(self, change: FileChange, data: bytes, *, sync: bool) -> str:
        """Write one new text as close to its note as folders exist; return the staged file's path.

        Missing folders are created when the change is carried out: until then, it may fail.
        """
        folder = parent(change.target)
        missing_count = len(self._root.missing(folder))
        existing_folder = folder[: len(folder) - missing_count]

        model = None if change.before is None else change.path
        return disk.stage(
            self._root,
            existing_folder,
            data,
            like=model,
            sync=sync,
            at=change.at,
        )
