"""Whether a server before us died at its work, so that what it left is cleared before anybody looks.

Each server that writes has a file of its own, locked by the kernel for as long as it lives. One that
nobody holds was left by a death. Looking costs a directory listing; a start after a clean end does no more
than that.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from simplemem.vault import kernel

_OPEN = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class Presence:
    """The files of the servers at one vault, and our own among them."""

    def __init__(self, root: Path) -> None:
        self._folder = root / ".simplemem" / "servers"
        self._ours: tuple[Path, int] | None = None

    def announce(self) -> None:
        """Say that we write. A disk that refuses this will refuse the write as well, and say why."""
        if self._ours is not None:
            return
        path = self._folder / f"{os.getpid()}-{os.urandom(4).hex()}"
        with suppress(OSError):
            if not self._folder.parent.is_dir():
                return
            self._folder.mkdir(exist_ok=True)
            fd = os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
            kernel.try_lock(fd)
            self._ours = (path, fd)

    def withdraw(self) -> None:
        """Say that we ended as one should."""
        if self._ours is not None:
            path, fd = self._ours
            self._ours = None
            with suppress(OSError):
                os.close(fd)
                path.unlink()

    def left_by_the_dead(self) -> list[Path]:
        """The files of servers that are no more."""
        return [path for path in self._files() if self._is_free(path)]

    def _files(self) -> list[Path]:
        try:
            return [self._folder / name for name in os.listdir(self._folder)]
        except OSError:
            return []

    @staticmethod
    def _is_free(path: Path) -> bool:
        try:
            fd = os.open(path, _OPEN)
        except OSError:
            return False
        try:
            return kernel.try_lock(fd)
        finally:
            os.close(fd)
