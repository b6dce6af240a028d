"""Disks that lack calls, in the words of the kernel: it refuses, and the vault does it otherwise."""

from __future__ import annotations

import errno
import os
from typing import Any, NoReturn

import pytest

from simplemem.vault.folder import dir_handles, disk

LACKS: dict[str, tuple[tuple[Any, str], ...]] = {
    "exchange": (),
    "links": ((disk, "exchange"), (disk, "rename_new")),
    "neither": ((disk, "exchange"), (disk, "rename_new"), (disk, "_link")),
    "by path": (),
}
"""What each refuses. "By path" it holds no folder open, as Windows."""


def refuse(*_: object) -> NoReturn:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def lack(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let the disk be such a one from here on."""
    for owner, call in LACKS[name]:
        patch.setattr(owner, call, refuse if call != "_link" else lambda *_: False)
    if name == "by path":
        patch.setattr(dir_handles, "BY_PATH", True)
