"""What has changed in the vault since this was last asked: from the kernel's own list, without waiting and without a walk.

A change is in the kernel's list before the program that made it goes on, so who has looked through the vault once and asks
here from then on knows of every file that differs. It is a hint like the watcher's (`watch.py`): what really changed, stat
and hash must tell. Where the kernel keeps no such list, or has lost some of it, it says that it does not know.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from simplemem.vault.disk import is_silent, mounted_on
from simplemem.vault.hints import EVERYTHING, concerned, identity, vault_path

if TYPE_CHECKING:
    from pathlib import Path

    from simplemem.vault.inotify import Inotify

_MOST = 1_000  # paths; beyond that a look through the whole vault is no dearer


class ChangedLately:
    """Begun before a look through the whole vault, it tells from then on what to look at again. One thread asks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._base = ""
        self._identity: tuple[int, int] | None = None
        self._kernel: Inotify | None = None

    def begin(self) -> None:
        """Listen from now on, where that is possible."""
        self.end()
        self._identity, self._base = identity(self._root), os.path.realpath(self._root)
        if not sys.platform.startswith("linux") or is_silent(mounted_on(self._base)):
            return  # nobody tells what another machine changes there
        from simplemem.vault.inotify import Inotify

        with suppress(OSError):  # too many listeners, too many folders: then every time all is looked at
            self._kernel = Inotify(self._base)

    def paths(self) -> set[str] | None:
        """Files and folders where something may be different since this was last asked; None when that is not known."""
        if self._kernel is None or identity(self._root) != self._identity:
            return None
        found: set[str] = set()
        try:
            while events := self._kernel.watch(0, 0, 0):
                for _, named in events:
                    found |= concerned(vault_path(self._base, named))
                if EVERYTHING in found or len(found) > _MOST:
                    return None
        except OSError:
            return None
        return found

    def end(self) -> None:
        """Listen no more."""
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
