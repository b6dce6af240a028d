"""Whether a server before us died at its work, so that what it left is cleared before anybody looks.

Each server that writes has a file of its own, locked for as long as it lives. One that nobody holds was left by a death.
Looking costs a directory listing and loads no store; a start after a clean end does no more than that. No link is followed
on the way: what lies elsewhere is nobody's to clear (durability.md F36).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_A_SERVER = re.compile(r"\d{1,10}-[0-9a-f]{8}")
"""Number of the process, and chance. Nothing else in the folder is looked at."""
_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Presence:
    """The files of the servers at one vault, and our own among them."""

    def __init__(self, root: Path) -> None:
        self._own = root / ".simplemem"
        self._folder = self._own / "servers"
        self._ours: tuple[str, int] | None = None

    def announce(self) -> None:
        """Say that we write. A disk that refuses this will refuse the write as well, and say why."""
        if self._ours is None and _is_folder(self._own):  # without it there is nothing to announce yet
            name = f"{os.getpid()}-{os.urandom(4).hex()}"
            with suppress(OSError):
                self._folder.mkdir(exist_ok=True)
                if _is_folder(self._folder):
                    fd = os.open(self._folder / name, _FLAGS | os.O_CREAT | os.O_EXCL)
                    _lock(fd)
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
        with suppress(OSError):
            if _is_folder(self._own) and _is_folder(self._folder):
                return [name for name in os.listdir(self._folder) if _A_SERVER.fullmatch(name) and self._is_free(name)]
        return []

    def clear(self, names: Iterable[str]) -> None:
        """Remove such files."""
        if _is_folder(self._own) and _is_folder(self._folder):
            for name in names:
                with suppress(OSError):
                    os.unlink(self._folder / name)

    def _is_free(self, name: str) -> bool:
        try:
            fd = os.open(self._folder / name, _FLAGS)
        except OSError:
            return False
        try:
            return _lock(fd)
        finally:
            os.close(fd)


def _is_folder(path: Path) -> bool:
    """Whether a folder lies there itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def _lock(fd: int) -> bool:
    """Lock a file for as long as it is open; False when somebody else has."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
