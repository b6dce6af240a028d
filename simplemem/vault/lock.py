"""Kernel locks on files of ours: `<vault>/.simplemem/lock`, held by one thread of one process while it writes;
`index.leader`, held by the server that looks after an index; and one beside each file of lines that several processes share.

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
from typing import NamedTuple

from simplemem.errors import ReadOnly, SimplememError, Unavailable
from simplemem.vault import disk
from simplemem.vault.paths import OVERWRITE, READ, SIDECAR, WRITE_NEW, Beneath, parent, telling, unlimited

_LOCK = f"{SIDECAR}/lock"
_NAME_WIDTH = 20


class _FileLock:
    """The kernel's lock on one file beneath a root. `holder` is what the file said when it was not to be had."""

    def __init__(self, root: str, path: str, *, makes: bool = True) -> None:
        self._root, self._path, self._makes = root, path, makes
        self._full = os.path.join(unlimited(root) if sys.platform == "win32" else root, *path.split("/"))
        self.fd = -1
        self.holder = ""

    def take(self) -> bool:
        """Take it now, or say that another has it."""
        with Beneath(self._root) as here:
            try:
                folder, name = here.spot(self._path)
                fd = folder.open(name, os.O_RDWR)
            except (FileNotFoundError, NotADirectoryError):
                if self._makes:
                    make_sidecar(here)
                    here.make(parent(self._path))
                folder, name = here.spot(self._path)
                fd = folder.open(name, os.O_RDWR | os.O_CREAT)
        try:
            # Somebody may have thrown `.simplemem` away meanwhile; then what we hold excludes nobody.
            if disk.try_lock(fd) and _is_in_place(fd, self._full):
                self.fd, fd = fd, -1
                return True
            os.lseek(fd, 0, os.SEEK_SET)  # Windows locks a byte far behind, and has moved there
            self.holder = os.read(fd, _NAME_WIDTH).decode("ascii", "replace").strip("\0 ")
            return False
        finally:
            if fd >= 0:
                os.close(fd)

    def is_held(self) -> bool:
        """Whether we hold the file that is at its path."""
        return self.fd >= 0 and _is_in_place(self.fd, self._full)

    def give_back(self) -> None:
        """Free it."""
        if self.fd >= 0:
            with suppress(OSError):  # closing frees it in any case
                disk.unlock(self.fd)
            os.close(self.fd)
            self.fd = -1


def _is_in_place(fd: int, path: str) -> bool:
    """Whether the file that we hold is the one at its path: wherever that leads, what counts is which file it is."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


class VaultLock:
    """Re-entrant in a thread; excludes other threads and other processes."""

    def __init__(self, root: str) -> None:
        self._file = _FileLock(root, _LOCK)
        self._thread = threading.RLock()
        self._depth = 0

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold the lock for a block, or raise Unavailable after `timeout` seconds, naming who has it."""
        deadline = time.monotonic() + timeout
        if not self._thread.acquire(timeout=max(timeout, 0)):
            raise _busy(f"another thread of this process ({os.getpid()})", timeout)
        try:
            if self._depth == 0:
                self._take(deadline, timeout)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._file.give_back()
        finally:
            self._thread.release()

    def _take(self, deadline: float, timeout: float) -> None:
        with telling("lock", _LOCK, writing=True):
            while not self._file.take():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _busy(f"process {self._file.holder}" if self._file.holder else "another process", timeout)
                # Uneven pauses, so that those who wait do not all come back at the same moment.
                time.sleep(min(random.uniform(0.0005, 0.005), left))  # noqa: S311
        with suppress(OSError):  # the name is for a message only
            os.lseek(self._file.fd, 0, os.SEEK_SET)
            os.write(self._file.fd, str(os.getpid()).ljust(_NAME_WIDTH).encode())


class Leadership:
    """Which of several servers on an index looks after it: the one that holds the file `index.leader` beside it. Tried for
    now and then; held until `resign` or the end of the process. Leading is a convenience, never a right to write."""

    def __init__(self, path: Path) -> None:
        self._file = _FileLock(str(path.parent), path.name, makes=False)

    def held(self) -> bool:
        """Whether we lead, taking the lead if nobody has it."""
        if self._file.is_held():
            return True
        self.resign()
        try:
            return self._file.take()
        except (OSError, SimplememError):  # the folder is not there just now, or a link lies in the file's place
            return False

    def resign(self) -> None:
        """Let another server lead."""
        self._file.give_back()


def _busy(holder: str, timeout: float) -> Unavailable:
    hint = "It is never taken away from its holder. Try again, or end that process if it hangs."
    return Unavailable(f"The vault is locked by {holder}; waited {timeout:g} s.", hint=hint)


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


class Extent(NamedTuple):
    """How far a file was read, and which file that was."""

    device: int
    inode: int
    offset: int


class SideFile:
    """A file under `.simplemem/` beside the index, `state/access.jsonl` say: lines of several processes, or a whole file put
    in place at once. Its own lock is held no longer than a line takes."""

    def __init__(self, root: str, name: str) -> None:
        self._root = root
        self._path = f"{SIDECAR}/{name}"
        self._lock = _FileLock(root, f"{SIDECAR}/{name.rsplit('.', 1)[0]}.lock")

    @contextmanager
    def held(self, patience: float) -> Iterator[bool]:
        """Hold the lock of this file, if it is to be had in so many seconds: whether it was."""
        ends = time.monotonic() + patience
        while not (taken := self._lock.take()) and time.monotonic() < ends:
            time.sleep(0.002)
        try:
            yield taken
        finally:
            self._lock.give_back()

    def append(self, lines: bytes, *, sync: bool = False) -> None:
        """Add whole lines, also behind one that a power cut tore. The lock is held."""
        with (
            telling("write", self._path, writing=True),
            self._made() as here,
            here.opened(self._path, OVERWRITE | os.O_APPEND) as fd,
        ):
            disk.append_lines(fd, lines)
            if sync:
                disk.sync_file(fd)

    def read(self, since: Extent | None) -> tuple[bytes, Extent | None, bool]:
        """The whole lines behind what was read, how far that is, and whether the file is another by now: then
        the lines are all there are."""
        try:
            with Beneath(self._root) as here, here.opened(self._path, READ) as fd:
                stat = os.fstat(fd)
                is_same = since is not None and since[:2] == (stat.st_dev, stat.st_ino) and since.offset <= stat.st_size
                offset = since.offset if since is not None and is_same else 0
                os.lseek(fd, offset, os.SEEK_SET)
                data = disk.read_all(fd, stat.st_size - offset)
        except (OSError, SimplememError):
            return b"", None, since is not None
        whole = data[: data.rfind(b"\n") + 1]  # what is being written just now is for the next time
        return whole, Extent(stat.st_dev, stat.st_ino, offset + len(whole)), not is_same

    def replace(self, data: bytes) -> Path:
        """Put a whole file in place; its path."""
        with telling("write", self._path, writing=True), self._made() as here:
            disk.put(here, self._path, data, sync=True)
        return Path(self._root, *self._path.split("/"))

    @contextmanager
    def _made(self) -> Iterator[Beneath]:
        with Beneath(self._root) as here:
            make_sidecar(here)
            here.make(parent(self._path))
            yield here
