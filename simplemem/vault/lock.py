"""Kernel locks on files of ours: `<vault>/.simplemem/lock`, held by one thread of one process while it writes, and
`index.leader`, held by the server that looks after an index.

The kernel holds them (flock, LockFileEx), so that each is free the moment its holder dies and nobody ever has to judge a
stale file. The number written into a lock is for the message to those who wait, and never believed (durability.md F21, F22).
"""

from __future__ import annotations

import errno
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simplemem.errors import ReadOnly, SimplememError, Unavailable
from simplemem.vault import kernel
from simplemem.vault.kernel import telling
from simplemem.vault.paths import SIDECAR, WRITE_NEW, Beneath, unlimited

_LOCK = f"{SIDECAR}/lock"
_LONG = 0.5  # seconds of waiting
_NAME_WIDTH = 20


class VaultLock:
    """Re-entrant in a thread; excludes other threads and other processes."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._path = os.path.join(unlimited(root) if sys.platform == "win32" else root, *_LOCK.split("/"))
        self._thread = threading.RLock()
        self._depth = 0
        self._fd = -1

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold the lock for a block, or raise Unavailable after `timeout` seconds, naming who has it."""
        deadline = time.monotonic() + timeout
        if not self._thread.acquire(timeout=max(timeout, 0)):
            raise _busy(f"another thread of this process ({os.getpid()})", timeout)
        try:
            if self._depth == 0:
                self._fd = self._take(deadline, timeout)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._fd = _given_back(self._fd)
        finally:
            self._thread.release()

    def _take(self, deadline: float, timeout: float) -> int:
        pause = 0.0005
        while True:
            with telling("lock", _LOCK, writing=True):
                fd, holder = self._try()
            if fd >= 0:
                return fd
            left = deadline - time.monotonic()
            if left <= 0:
                raise _busy(f"process {holder}" if holder else "another process", timeout)
            # Uneven pauses, so that those who wait do not all come back at the same moment.
            time.sleep(min(pause * random.uniform(0.5, 1.0), left))  # noqa: S311
            # Whoever has just had the lock asks again at once: who has waited for long looks more often than at first.
            pause = 0.001 if left < timeout - _LONG else min(pause * 1.5, 0.01)

    def _try(self) -> tuple[int, str]:
        """The lock's descriptor, or -1 and who has it."""
        fd = self._open()
        try:
            # Somebody may have thrown `.simplemem` away meanwhile; then what we hold excludes nobody.
            taken = kernel.try_lock(fd) and _is_in_place(fd, self._path)
            os.lseek(fd, 0, os.SEEK_SET)  # Windows locks a byte far behind, and has moved there
            if taken:
                os.write(fd, str(os.getpid()).ljust(_NAME_WIDTH).encode())
                return fd, ""
            holder = os.read(fd, _NAME_WIDTH).decode("ascii", "replace").strip("\0 ")
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return -1, holder

    def _open(self) -> int:
        with Beneath(self._root) as here:
            try:
                folder, name = here.spot(_LOCK)
                return folder.open(name, os.O_RDWR)
            except (FileNotFoundError, NotADirectoryError):
                make_sidecar(here)
                folder, name = here.spot(_LOCK)
                return folder.open(name, os.O_RDWR | os.O_CREAT)


class Leadership:
    """Which of several servers on an index looks after it: the one that holds the file `index.leader` beside it. Tried for
    now and then; held until `resign` or the end of the process. Leading is a convenience, never a right to write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def held(self) -> bool:
        """Whether we lead, taking the lead if nobody has it."""
        if self._fd >= 0:
            if _is_in_place(self._fd, str(self._path)):
                return True
            self.resign()
        try:
            with Beneath(str(self._path.parent)) as here:
                folder, name = here.spot(self._path.name)
                fd = folder.open(name, os.O_RDWR | os.O_CREAT)
        except (OSError, SimplememError):  # the folder is not there just now, or a link lies in the file's place
            return False
        with suppress(OSError):
            if kernel.try_lock(fd):
                self._fd = fd
                return _is_in_place(fd, str(self._path))
        os.close(fd)
        return False

    def resign(self) -> None:
        if self._fd >= 0:
            self._fd = _given_back(self._fd)


def _is_in_place(fd: int, path: str) -> bool:
    """Whether the file that we hold is the one at its path: wherever that leads, what counts is which file it is."""
    try:
        ours, there = os.fstat(fd), os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)


def _given_back(fd: int) -> int:
    with suppress(OSError):  # closing frees it in any case
        kernel.unlock(fd)
    os.close(fd)
    return -1


def make_sidecar(here: Beneath) -> None:
    """Make `.simplemem` with a `.gitignore` of `*`, unless they are there."""
    try:
        here.make((SIDECAR,))
        with suppress(FileExistsError), here.opened(f"{SIDECAR}/.gitignore", WRITE_NEW) as fd:
            os.write(fd, b"*\n")
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            hint = "simplemem writes nothing through a link: make .simplemem a real folder."
            raise ReadOnly(f"{SIDECAR!r} in the vault is a file or a link, not a folder.", hint=hint) from error
        raise


def _busy(holder: str, timeout: float) -> Unavailable:
    hint = "It is never taken away from its holder. Try again, or end that process if it hangs."
    return Unavailable(f"The vault is locked by {holder}; waited {timeout:g} s.", hint=hint)
