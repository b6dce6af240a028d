"""Paths as hints: where in the vault something may be different, from what the operating system says of a change."""

from __future__ import annotations

import os
from pathlib import Path

from simplemem.vault.obsidian import CONVENTION_FILES

EVERYTHING = ""  # the path of the vault itself: anything may have changed, look at all of it


def identity(root: Path) -> tuple[int, int] | None:
    """Which folder is at the root: another after it was replaced or (un)mounted, None when there is none."""
    try:
        facts = os.stat(root)
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino)


def vault_path(base: str, named: str) -> str:
    """An event's path as a vault path; everything when it isn't below the root as we know it."""
    inside = base.rstrip(os.sep) + os.sep
    path = named[len(inside) :].replace(os.sep, "/") if named.startswith(inside) else EVERYTHING
    while not path.isascii() and not _is_unicode(path):  # no note has such a name: its folder is looked at
        path = path.rpartition("/")[0]
    return path


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def concerned(path: str) -> set[str]:
    """What a change at `path` bears on: nothing when it is hidden, but for the vault's conventions."""
    if path == ".obsidian":
        return set(CONVENTION_FILES)  # made or moved as a whole, its files are not announced one by one
    hidden = any(part.startswith(".") for part in path.split("/"))
    return set() if hidden and path not in CONVENTION_FILES else {path}
