"""Locks between processes, and files of lines that several processes append to under such a lock.

A lock belongs to an open file, and the kernel releases it as soon as its process ends. So nobody
ever has to decide whether the owner of a lock file is still alive (F21, F22).
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from simplemem.errors import ReadOnly, SimplememError
from simplemem.note.names import Parts, parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import (
    OVERWRITE,
    OWN_FOLDER,
    READ,
    WRITE_NEW,
    DirHandles,
    as_long_path,
    translating_os_errors,
)

_PID_BYTES = 20  # a lock file contains the number of its owner's process, padded to this
_RETRY_SECONDS = 0.002

if sys.platform == "win32":
    import ctypes
    import msvcrt

    # The locked byte is far behind the text, so that other processes can read who has the lock.
    _LOCKED_BYTE = 1 << 30
    _PROCESS_QUERY_LIMITED_INFORMATION = 0x1000
    _ERROR_ACCESS_DENIED = 5

    def _try_lock(fd: int) -> bool:
        """Lock an open file without waiting; return False if another process has it locked."""
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        """Release the lock on an open file."""
        os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    def is_alive(pid: int) -> bool:
        """Return whether a process with this number runs, of whatever user."""
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.OpenProcess.restype = ctypes.c_void_p
        handle = kernel32.OpenProcess(_PROCESS_QUERY_LIMITED_INFORMATION, False, pid)
        if handle:
            kernel32.CloseHandle(ctypes.c_void_p(handle))
            return True
        # The process of another user exists, but may not be opened.
        return ctypes.get_last_error() == _ERROR_ACCESS_DENIED
else:
    import fcntl

    _NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK)

    def _try_lock(fd: int) -> bool:
        """Lock an open file without waiting; return False if another process has it locked.

        On a disk without locks, it returns True without one.
        """
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            # On a disk without locks, a write is still protected: it compares the hash of the note
            # first, and checks the displaced file after the exchange.
            if error.errno not in _NO_LOCKS:
                raise
        return True

    def _unlock(fd: int) -> None:
        """Release the lock on an open file."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    def is_alive(pid: int) -> bool:
        """Return whether a process with this number runs, of whatever user."""
        try:
            os.kill(pid, 0)
        except OSError as error:
            return error.errno == errno.EPERM
        return True


class FileLock:
    """A lock on one file, for one process at a time.

    `fd` is the descriptor of the file while this object has the lock, else -1. `holder` is the
    number of the process that had the lock when `try_acquire` last failed; "" if it is not known.
    """

    def __init__(self, root: str, path: str) -> None:
        """Begin without the lock; the file is not opened yet.

        `path` is the path of the file in `root`, a vault or another folder.
        """
        self.fd = -1
        self.holder = ""
        self._root_path = root
        self._path = path

        absolute_root = as_long_path(root) if sys.platform == "win32" else root
        self._full_path = os.path.join(absolute_root, *path.split("/"))

    @property
    def is_taken(self) -> bool:
        """Whether this object has taken the lock. Whether the file is still there is not tested."""
        return self.fd >= 0

    def try_acquire(self) -> bool:
        """Take the lock; return False if another process has it, which `holder` then names.

        False too if another object of this process has it, or if the file was just replaced. Never
        waits. This object must not have the lock. Creates the file if it does not exist. Raises
        ReadOnly, Unavailable or Invalid if the file cannot be opened, and OSError if it cannot be
        locked.
        """
        fd = self._open()
        is_taken = False
        try:
            is_taken = self._lock_file(fd)
        finally:
            if is_taken:
                self.fd = fd
            else:
                os.close(fd)
        return is_taken

    def _open(self) -> int:
        """Open the file of the lock, and create it if it does not exist; return its descriptor."""
        with (
            translating_os_errors("lock", self._path, writing=True),
            DirHandles(self._root_path) as root,
        ):
            try:
                return root.opened(self._path, os.O_RDWR).fd
            except (FileNotFoundError, NotADirectoryError):
                if self._path.startswith(f"{OWN_FOLDER}/"):
                    make_own_folder(root, parent(self._path))
                return root.opened(self._path, os.O_RDWR | os.O_CREAT).fd

    def _lock_file(self, fd: int) -> bool:
        """Lock the open file, or read who has the lock; return whether this process has it now.

        Returns False too if the file is no longer at its path: somebody may have deleted
        `.simplemem` meanwhile, and a lock on a file that other processes cannot find would exclude
        nobody.
        """
        if _try_lock(fd) and self._is_in_place(fd):
            _write_owner(fd)
            return True
        self.holder = _read_owner(fd)
        return False

    def acquire_or_keep(self) -> bool:
        """Return whether this object has the lock, after taking it if it is free. Never raises.

        A lock whose file was deleted or replaced is taken anew. In this way, one of several servers
        leads until it ends.
        """
        if self.fd >= 0 and self._is_in_place(self.fd):
            return True

        self.release()
        try:
            return self.try_acquire()
        except (OSError, SimplememError):
            # The folder does not exist at the moment, or a link is in the place of the file.
            return False

    def release(self) -> None:
        """Release the lock. It is no error if this object does not have it."""
        if self.fd < 0:
            return
        with suppress(OSError):  # to close the file releases the lock in any case
            _unlock(self.fd)
        os.close(self.fd)
        self.fd = -1

    def _is_in_place(self, fd: int) -> bool:
        """Return whether the path of the lock still leads to the open file. Never raises."""
        with suppress(OSError):
            open_file = os.fstat(fd)
            file_at_path = os.stat(self._full_path, follow_symlinks=False)
            return os.path.samestat(open_file, file_at_path)
        return False


def _write_owner(fd: int) -> None:
    """Write the number of this process, which other processes show in a message."""
    with suppress(OSError):
        os.lseek(fd, 0, os.SEEK_SET)
        pid = str(os.getpid())
        os.write(fd, pid.ljust(_PID_BYTES).encode())


def _read_owner(fd: int) -> str:
    """Return the number of the process that a lock file names, "" if it names none."""
    text = disk.read_at(fd, 0, _PID_BYTES)
    return text.decode("ascii", "replace").strip("\0 ")


class _ReadPosition(NamedTuple):
    """Which file was read, and up to which byte."""

    device: int
    inode: int
    offset: int


_NOTHING_READ = _ReadPosition(0, 0, 0)


class SideFile:
    """A file in `.simplemem/` that several processes append lines to, each under its lock.

    The lock is held only while lines are written or read. `follow` remembers how far it has read.
    """

    def __init__(self, root: str, name: str) -> None:
        """Begin at the start of the file `name` in `.simplemem/`, which need not exist.

        Its lock is a file beside it that ends with `.lock`.
        """
        stem = name.rsplit(".", 1)[0]
        self._root_path = root
        self._path = f"{OWN_FOLDER}/{name}"
        self._lock = FileLock(root, f"{OWN_FOLDER}/{stem}.lock")
        self._position = _NOTHING_READ

    @contextmanager
    def locked(self, seconds: float) -> Iterator[bool]:
        """Hold the lock for a block; yield whether it was free within so many seconds.

        The block is entered either way, unless `FileLock.try_acquire` raises an error.
        """
        is_taken = self._acquire_within(seconds)
        try:
            yield is_taken
        finally:
            self._lock.release()

    def _acquire_within(self, seconds: float) -> bool:
        """Wait up to some seconds for the lock; return whether it was taken."""
        deadline = time.monotonic() + seconds
        while not self._lock.try_acquire():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_RETRY_SECONDS)
        return True

    def append(self, lines: bytes, *, sync: bool = False) -> None:
        """Append whole lines, all or none; create the file if needed. The lock must be held.

        A line that a power cut cut off is closed first. With `sync`, waits until they are on the
        disk. Raises ReadOnly, Invalid or Unavailable if the file cannot be written.
        """
        with self._writing() as root, root.opened(self._path, OVERWRITE | os.O_APPEND) as fd:
            disk.append_lines(fd, lines)
            if sync:
                disk.sync_file(fd)

    def follow(self) -> tuple[bytes, bool]:
        """Return the whole lines since the last call, and whether they come from another file.

        Needs no lock. If the file was replaced or became shorter, it counts as another file, and
        all of its lines are returned. A file that cannot be read has no lines, and counts as
        another one if a file was read before. Never raises.
        """
        last = self._position
        try:
            with DirHandles(self._root_path) as root, root.opened(self._path, READ) as fd:
                file_stat = os.fstat(fd)
                is_same_file = (last.device, last.inode) == (file_stat.st_dev, file_stat.st_ino)
                is_continued = is_same_file and last.offset <= file_stat.st_size
                offset = last.offset if is_continued else 0
                data = disk.read_at(fd, offset, file_stat.st_size - offset)
        except (OSError, SimplememError):
            self._position = _NOTHING_READ
            return b"", last != _NOTHING_READ

        # A line that is still being written is left for the next call.
        end = data.rfind(b"\n") + 1
        self._position = _ReadPosition(file_stat.st_dev, file_stat.st_ino, offset + end)
        return data[:end], not is_continued

    def replace(self, data: bytes) -> Path:
        """Replace the whole file in one step; return its path. The lock must be held.

        Raises ReadOnly, Invalid or Unavailable if it cannot be written.
        """
        with self._writing() as root:
            disk.write_own_file(root, self._path, data, sync=True)
        return Path(self._root_path, *self._path.split("/"))

    @contextmanager
    def _writing(self) -> Iterator[DirHandles]:
        """Open the root for a block that writes; create the folder of the file."""
        with (
            DirHandles(self._root_path) as root,
            translating_os_errors("write", self._path, writing=True),
        ):
            make_own_folder(root, parent(self._path))
            yield root


def make_own_folder(root: DirHandles, folder: Parts = ()) -> None:
    """Create what is missing of `.simplemem`, its `.gitignore`, and a folder in it.

    `folder` has the components from the root on, `.simplemem` included. Raises ReadOnly if there is
    a file or a link in the place of `.simplemem`, and OSError if a folder cannot be created.
    """
    try:
        root.make((OWN_FOLDER,))
        with suppress(FileExistsError), root.opened(f"{OWN_FOLDER}/.gitignore", WRITE_NEW) as fd:
            os.write(fd, b"*\n")
        root.make(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        hint = "Make .simplemem a real folder: simplemem does not write through links."
        message = f"{OWN_FOLDER!r} in the vault is a file or a link, not a folder"
        raise ReadOnly(message, hint=hint) from error
