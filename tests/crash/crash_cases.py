"""The operations that the crash tests interrupt, with the notes before and after each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Author, FileChange, sha256

CHANGE = Author("test")


Files = dict[str, bytes]
OLD: Files = {
    "a.md": b"alpha\n",
    "deep/b.md": b"[[a]] from b\n" * 40,
    "deep/er/c.md": b"[[a]] from c\n",
    "d.md": b"other\n",
}


def rewrite(path: str, data: bytes) -> FileChange:
    """Return the change of one of the OLD files to another text."""
    return FileChange.update(path, sha256(OLD[path]), data)


def move(
    vault: FolderVault, new_path: str, data: bytes | None = None, *rewrites: FileChange
) -> None:
    """Move a.md, and rewrite other notes, in one operation."""
    change = FileChange("move", "a.md", sha256(OLD["a.md"]), new_path, data)
    vault.carry_out([change, *rewrites], CHANGE)


@dataclass(frozen=True)
class Case:
    """An operation, the operations before it, and the notes before (`old`) and after it (`new`).

    `old` is None if the notes are OLD.
    """

    run: Callable[[FolderVault], Any]
    new: Files
    prepare: Callable[[FolderVault], Any] = lambda vault: None
    old: Files | None = None


def changed(**changes: bytes | None) -> Files:
    """Return the OLD files with other or more texts. None deletes a file."""
    files: dict[str, bytes | None] = {**OLD, **changes}
    return {path: data for path, data in files.items() if data is not None}


B2 = b"[[x/y/z]] from b\n"
C2 = b"[[x/y/z]] from c\n"
CASES = {
    "create": Case(lambda v: v.create("e.md", b"echo\n", CHANGE), changed(**{"e.md": b"echo\n"})),
    "create in new folders": Case(
        lambda v: v.create("new/newer/e.md", b"echo\n", CHANGE),
        changed(**{"new/newer/e.md": b"echo\n"}),
    ),
    "create with a rewrite": Case(
        lambda v: v.create("new/a.md", b"echo\n", CHANGE, rewrites=[rewrite("deep/b.md", B2)]),
        changed(**{"new/a.md": b"echo\n", "deep/b.md": B2}),
    ),
    "replace": Case(
        lambda v: v.replace("deep/b.md", B2, sha256(OLD["deep/b.md"]), CHANGE),
        changed(**{"deep/b.md": B2}),
    ),
    "move": Case(lambda v: move(v, "x/y/z.md"), changed(**{"a.md": None, "x/y/z.md": OLD["a.md"]})),
    "move to another case": Case(
        lambda v: move(v, "A.md"), changed(**{"a.md": None, "A.md": OLD["a.md"]})
    ),
    "move with rewrites": Case(
        lambda v: move(
            v, "x/y/z.md", b"rebased\n", rewrite("deep/b.md", B2), rewrite("deep/er/c.md", C2)
        ),
        changed(**{"a.md": None, "x/y/z.md": b"rebased\n", "deep/b.md": B2, "deep/er/c.md": C2}),
    ),
    "trash": Case(lambda v: v.trash("deep/b.md", None, CHANGE), changed(**{"deep/b.md": None})),
    "undo of a trash": Case(
        lambda v: v.undo(next(v.history.log.backwards()).id, CHANGE),
        OLD,
        prepare=lambda v: v.trash("deep/b.md", None, CHANGE),
        old=changed(**{"deep/b.md": None}),
    ),
    "undo of a group": Case(
        lambda v: v.undo(next(v.history.log.backwards()).id, CHANGE),
        OLD,
        prepare=lambda v: move(v, "x/z.md", b"rebased\n", rewrite("deep/b.md", B2)),
        old=changed(**{"a.md": None, "x/z.md": b"rebased\n", "deep/b.md": B2}),
    ),
}


def make(root: Path, case: Case) -> None:
    """Create a vault with the notes before an operation."""
    root.mkdir()
    vault = FolderVault(root)
    for path, data in OLD.items():
        vault.create(path, data, CHANGE)
    case.prepare(vault)
    assert notes(root) == (OLD if case.old is None else case.old)


def files_and_folders(root: Path) -> tuple[set[str], set[str]]:
    """Return the files and the folders of a vault, with hidden ones, outside `.simplemem`.

    The tests call this after every crash. `.simplemem`, which has most of the files, is not read.
    """
    files: set[str] = set()
    folders: set[str] = set()
    unread = [""]
    while unread:
        folder = unread.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = folder + entry.name
                if path == ".simplemem":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.add(path)
                    unread.append(path + "/")
                else:
                    files.add(path)
    return files, folders


def staged(root: Path) -> set[str]:
    """Return the staged files and folders, which lie beside a note while it is written."""
    files, folders = files_and_folders(root)
    return {path for path in files | folders if path.rpartition("/")[2].startswith(".simplemem-")}


def notes(root: Path) -> Files:
    """Return all files outside `.simplemem`, except staged ones."""
    files, _ = files_and_folders(root)
    paths = [path for path in files - staged(root) if (root / path).is_file()]
    return {path: (root / path).read_bytes() for path in paths}
