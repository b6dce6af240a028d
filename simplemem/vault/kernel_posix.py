"""What `kernel.py` promises, on Linux and macOS: renameat2 and renameatx_np, flock, and the syncs of each."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

assert sys.platform != "win32"
import fcntl  # noqa: E402  (Windows has none)

_T = TypeVar("_T")

_libc = ctypes.CDLL(None, use_errno=True)
if sys.platform == "darwin":
    _HERE, _NEVER_ONTO, _SWAP = -2, 0x4, 0x2  # AT_FDCWD, RENAME_EXCL, RENAME_SWAP
    _CALL, _PREFIX = "renameatx_np", ()
else:
    _HERE, _NEVER_ONTO, _SWAP = -100, 0x1, 0x2  # AT_FDCWD, RENAME_NOREPLACE, RENAME_EXCHANGE
    _CALL, _PREFIX = "renameat2", ()
    if not hasattr(_libc, _CALL):  # musl: the call by its number
        _NUMBERS = {"x86_64": 316, "aarch64": 276, "riscv64": 276}
        if os.uname().machine in _NUMBERS:
            _CALL, _PREFIX = "syscall", (ctypes.c_long(_NUMBERS[os.uname().machine]),)  # type: ignore[assignment]
_rename = getattr(_libc, _CALL, None)


def _rename_so(source_folder: int | None, source: str, folder: int | None, name: str, how: int) -> None:
    if _rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source)
    result = _rename(
        *_PREFIX,
        ctypes.c_int(_HERE if source_folder is None else source_folder),
        os.fsencode(source),
        ctypes.c_int(_HERE if folder is None else folder),
        os.fsencode(name),
        ctypes.c_uint(how),
    )
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), source, None, name)


def exchange(temp_folder: int | None, temp: str, folder: int | None, name: str) -> None:
    """Let two files change places in one step; no moment shows neither."""
    _rename_so(temp_folder, temp, folder, name, _SWAP)


def rename_new(source_folder: int | None, source: str, folder: int | None, name: str) -> None:
    """Rename, never onto something: FileExistsError instead."""
    _rename_so(source_folder, source, folder, name, _NEVER_ONTO)


def patiently(act: Callable[[], _T]) -> _T:
    """Do something that another program's open file may hinder on Windows, and nowhere else."""
    return act()


def try_lock(fd: int) -> bool:
    """Take the whole-file lock now, or say that another has it. The kernel frees it when its holder dies."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # A disk without locks: the hash and the exchange still guard every write (durability.md §3, Layout).
        if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK):
            raise
    return True


def unlock(fd: int) -> None:
    """Give the lock back."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def copy_attributes(source: int, target: int) -> None:
    """Give the new file the old one's owner, mode and extended attributes, as far as we may."""
    old, new = os.fstat(source), os.fstat(target)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):  # only root may give a file away; the note stays readable either way
            os.fchown(target, old.st_uid, old.st_gid)
    if old.st_mode != os.fstat(target).st_mode:
        os.fchmod(target, old.st_mode & 0o7777)
    if sys.platform == "darwin":
        access_lists_and_attributes = 0x1 | 0x4  # COPYFILE_ACL, COPYFILE_XATTR
        _libc.fcopyfile(source, target, None, ctypes.c_uint32(access_lists_and_attributes))
    elif sys.platform == "linux":
        with suppress(OSError):  # best effort: some disks carry none, some are for root alone
            for key in os.listxattr(source):
                with suppress(OSError):
                    os.setxattr(target, key, os.getxattr(source, key))


def sync_file(fd: int, *, last: bool = False) -> None:
    """Wait until the file's bytes are on the disk; `last` says that a write is answered after this.

    On a Mac fsync leaves them in the drive's own cache, which a power cut may write in any order. A barrier keeps the
    order, which is enough until the end; F_FULLFSYNC then empties the cache, and with it all that was synced before.
    """
    if sys.platform == "darwin":
        barrier = getattr(fcntl, "F_BARRIERFSYNC", 85)
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC if last else barrier)
        except OSError as error:
            # Shares and foreign disks know neither, and each says so in its own way.
            if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.ENOSYS):
                raise
        else:
            return
    os.fsync(fd)
