"""The operations that the crash tests interrupt: what the notes are before each, and what they are after it."""

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
    return FileChange.update(path, sha256(OLD[path]), data)


def move(
    vault: FolderVault, new_path: str, data: bytes | None = None, *rewrites: FileChange
) -> None:
    vault.carry_out(
        [FileChange("move", "a.md", sha256(OLD["a.md"]), new_path, data), *rewrites], CHANGE
    )


@dataclass(frozen=True)
class Case:
    """An operation, and what the notes are after it."""

    act: Callable[[FolderVault], Any]
    new: Files
    before: Callable[[FolderVault], Any] = lambda vault: None
    old: Files | None = None


def changed(**changes: bytes | None) -> Files:
    files = OLD | {path: data for path, data in changes.items() if data is not None}
    return {path: data for path, data in files.items() if changes.get(path, b"") is not None}


B2, C2 = b"[[x/y/z]] from b\n", b"[[x/y/z]] from c\n"
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
        before=lambda v: v.trash("deep/b.md", None, CHANGE),
        old=changed(**{"deep/b.md": None}),
    ),
    "undo of a group": Case(
        lambda v: v.undo(next(v.history.log.backwards()).id, CHANGE),
        OLD,
        before=lambda v: move(v, "x/z.md", b"rebased\n", rewrite("deep/b.md", B2)),
        old=changed(**{"a.md": None, "x/z.md": b"rebased\n", "deep/b.md": B2}),
    ),
}


def make(root: Path, case: Case) -> None:
    root.mkdir()
    vault = FolderVault(root)
    for path, data in OLD.items():
        vault.create(path, data, CHANGE)
    case.before(vault)
    assert notes(root) == (OLD if case.old is None else case.old)


def lying(root: Path) -> tuple[set[str], set[str]]:
    """The files and the folders outside our own folder, hidden ones too. They are asked for after every death, and our
    own folder, where most files lie, is not even walked."""
    files, folders, rest = set(), set(), [""]
    while rest:
        folder = rest.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = folder + entry.name
                if path == ".simplemem":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.add(path)
                    rest.append(path + "/")
                else:
                    files.add(path)
    return files, folders


def staged(root: Path) -> set[str]:
    """What a write leaves beside a note until it is done."""
    return {
        path
        for each in lying(root)
        for path in each
        if path.rpartition("/")[2].startswith(".simplemem-")
    }


def notes(root: Path) -> Files:
    """All files outside our own folder, except our staged ones."""
    files, _ = lying(root)
    return {
        path: (root / path).read_bytes() for path in files - staged(root) if (root / path).is_file()
    }
