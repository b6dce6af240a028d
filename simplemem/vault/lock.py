"""Locks between processes, and files of lines in `.simplemem` that several processes add to under one. The kernel frees
the lock on a file the moment its holder dies: nobody judges a stale file (durability.md F21, F22)."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simplemem.errors import ReadOnly, SimplememError
from simplemem.vault import disk
from simplemem.vault.paths import (
    OVERWRITE,
    READ,
    SIDECAR,
    WRITE_NEW,
    Beneath,
    Parts,
    parent,
    telling,
    unlimited,
)

if sys.platform == "win32":
    import ctypes
    import msvcrt

    _FAR = (
        1 << 30
    )  # the locked byte lies far behind the text, so that others can read who holds the lock

    def _try_lock(fd: int) -> bool:
        os.lseek(fd, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    def is_alive(pid: int) -> bool:
        """Whether a process of that number runs."""
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.OpenProcess.restype = ctypes.c_void_p
        if handle := kernel32.OpenProcess(0x1000, False, pid):
            kernel32.CloseHandle(ctypes.c_void_p(handle))
        return bool(handle) or ctypes.get_last_error() == 5  # it is there, and another user's
else:
    import fcntl

    _NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK)

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            # A disk without locks: the hash and the exchange still guard every write (durability.md §3, Layout).
            if error.errno not in _NO_LOCKS:
                raise
        return True

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    def is_alive(pid: int) -> bool:
        """Whether a process of that number runs."""
        try:
            os.kill(pid, 0)
        except OSError as error:
            return error.errno == errno.EPERM
        return True


class FileLock:
    """The lock on one file. `holder` is what the file said when it was not to be had."""

    def __init__(self, root: str, path: str) -> None:
        self._root, self._path = root, path
        self._full = os.path.join(
            unlimited(root) if sys.platform == "win32" else root, *path.split("/")
        )
        self.fd, self.holder = -1, ""

    def take(self) -> bool:
        """Take it now, or say that another has it."""
        with telling("lock", self._path, writing=True), Beneath(self._root) as here:
            try:
                fd = here.opened(self._path, os.O_RDWR).fd
            except (FileNotFoundError, NotADirectoryError):
                if self._path.startswith(f"{SIDECAR}/"):
                    make_sidecar(here, parent(self._path))
                fd = here.opened(self._path, os.O_RDWR | os.O_CREAT).fd
        try:
            # Somebody may have thrown `.simplemem` away meanwhile; then what we hold excludes nobody.
            if _try_lock(fd) and self._is_in_place(fd):
                with suppress(OSError):  # who has it is for a message only
                    os.lseek(fd, 0, os.SEEK_SET)
                    os.write(fd, str(os.getpid()).ljust(20).encode())
                self.fd, fd = fd, -1
                return True
            self.holder = disk.read_at(fd, 0, 20).decode("ascii", "replace").strip("\0 ")
            return False
        finally:
            if fd >= 0:
                os.close(fd)

    def held(self) -> bool:
        """Whether we have it, taking it now if nobody has: so one of several servers leads, until it ends."""
        if self.fd >= 0 and self._is_in_place(self.fd):
            return True
        self.give_back()
        try:
            return self.take()
        except (
            OSError,
            SimplememError,
        ):  # the folder is not there just now, or a link lies in the file's place
            return False

    def give_back(self) -> None:
        """Free it."""
        if self.fd >= 0:
            with suppress(OSError):  # closing frees it in any case
                _unlock(self.fd)
            os.close(self.fd)
            self.fd = -1

    def _is_in_place(self, fd: int) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(fd), os.stat(self._full, follow_symlinks=False))
        return False


class SideFile:
    """A file in `.simplemem/` that several processes add lines to, under a lock held no longer than that takes."""

    def __init__(self, root: str, name: str) -> None:
        self._root, self._path = root, f"{SIDECAR}/{name}"
        self._lock = FileLock(root, f"{SIDECAR}/{name.rsplit('.', 1)[0]}.lock")
        self._seen = (0, 0, 0)  # which file was read, and how far

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
        with self._writing() as here, here.opened(self._path, OVERWRITE | os.O_APPEND) as fd:
            disk.append_lines(fd, lines)
            if sync:
                disk.sync_file(fd)

    def follow(self) -> tuple[bytes, bool]:
        """The whole lines behind what was read last, and whether the file is another, and these all its lines."""
        *was, offset = self._seen
        try:
            with Beneath(self._root) as here, here.opened(self._path, READ) as fd:
                stat = os.fstat(fd)
                is_another = was != [stat.st_dev, stat.st_ino] or offset > stat.st_size
                offset = 0 if is_another else offset
                data = disk.read_at(fd, offset, stat.st_size - offset)
        except (OSError, SimplememError):
            is_another, self._seen = self._seen != (0, 0, 0), (0, 0, 0)
            return b"", is_another
        whole = data[: data.rfind(b"\n") + 1]  # what is being written just now is for the next time
        self._seen = stat.st_dev, stat.st_ino, offset + len(whole)
        return whole, is_another

    def replace(self, data: bytes) -> Path:
        """Put a whole file in place; its path."""
        with self._writing() as here:
            disk.put(here, self._path, data, sync=True)
        return Path(self._root, *self._path.split("/"))

    @contextmanager
    def _writing(self) -> Iterator[Beneath]:
        with Beneath(self._root) as here, telling("write", self._path, writing=True):
            make_sidecar(here, parent(self._path))
            yield here


def make_sidecar(here: Beneath, folder: Parts = ()) -> None:
    """Make `.simplemem` with a `.gitignore` of `*`, unless they are there, and a folder in it."""
    try:
        here.make((SIDECAR,))
        with suppress(FileExistsError), here.opened(f"{SIDECAR}/.gitignore", WRITE_NEW) as fd:
            os.write(fd, b"*\n")
        here.make(folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            hint = "Make .simplemem a real folder: simplemem does not write through links."
            raise ReadOnly(
                f"{SIDECAR!r} in the vault is a file or a link, not a folder", hint=hint
            ) from error
        raise
