"""Whether a server before us died at its work, so that what it left is cleared before anybody looks.

Each server that writes has a file of its own, locked by the kernel for as long as it lives. One that
nobody holds was left by a death. Looking costs a directory listing; a start after a clean end does no more
than that. No link is followed on the way: what lies elsewhere is nobody's to clear (durability.md F36).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from simplemem.errors import SimplememError
from simplemem.vault import kernel
from simplemem.vault.paths import SIDECAR, Beneath, Folder

_SERVERS = (SIDECAR, "servers")
_A_SERVER = re.compile(r"\d{1,10}-[0-9a-f]{8}")
"""Number of the process, and chance. Nothing else in the folder is looked at."""


class Presence:
    """The files of the servers at one vault, and our own among them."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._ours: tuple[str, int] | None = None

    def announce(self) -> None:
        """Say that we write. A disk that refuses this will refuse the write as well, and say why."""
        if self._ours is not None:
            return
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        with suppress(OSError, SimplememError), Beneath(self._root) as here:
            here.folder((SIDECAR,))  # without it there is nothing to announce yet
            here.make(_SERVERS)
            fd = here.folder(_SERVERS).open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            kernel.try_lock(fd)
            self._ours = (name, fd)

    def withdraw(self) -> None:
        """Say that we ended as one should."""
        if self._ours is not None:
            name, fd = self._ours
            self._ours = None
            with suppress(OSError):
                os.close(fd)
            self.clear([name])

    def left_by_the_dead(self) -> list[str]:
        """The files of servers that are no more."""
        try:
            with Beneath(self._root) as here:
                folder = here.folder(_SERVERS)
                return [name for name in folder.names() if _A_SERVER.fullmatch(name) and _is_free(folder, name)]
        except (OSError, SimplememError):
            return []

    def clear(self, names: Iterable[str]) -> None:
        """Remove such files."""
        with suppress(OSError, SimplememError), Beneath(self._root) as here:
            folder = here.folder(_SERVERS)
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(folder.name(name), dir_fd=folder.fd)


def _is_free(folder: Folder, name: str) -> bool:
    try:
        fd = folder.open(name, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return kernel.try_lock(fd)
    finally:
        os.close(fd)
