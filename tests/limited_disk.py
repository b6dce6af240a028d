"""Disks without some system calls: the kernel refuses a call, and the vault uses another way."""

from __future__ import annotations

import errno
import os
from typing import Any, NoReturn

import pytest

from simplemem.vault.folder import dir_handles, disk

# The kinds of disks, with the calls that each refuses. On "by path", no folder is kept open, as on
# Windows.
LIMITED_DISKS: dict[str, tuple[tuple[Any, str], ...]] = {
    "exchange": (),
    "links": ((disk, "exchange"), (disk, "rename_new")),
    "neither": ((disk, "exchange"), (disk, "rename_new"), (disk, "_link")),
    "by path": (),
}


def refuse(*_: object) -> NoReturn:
    """Raise the error of a call that the file system does not support."""
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def limit_disk(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Let the disk be of a kind in LIMITED_DISKS until the end of the test."""
    for owner, call in LIMITED_DISKS[kind]:
        replacement = refuse if call != "_link" else lambda *_: False
        monkeypatch.setattr(owner, call, replacement)
    if kind == "by path":
        monkeypatch.setattr(dir_handles, "BY_PATH", True)
