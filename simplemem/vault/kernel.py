"""What the vault asks of the operating system beyond `os`: two renames, a lock, a sync and a copy of attributes.

One function a request, each raising OSError like `os` does, chosen once by platform. Files are named by an open folder
and a name in it; where folders cannot be held open (Windows) the folder is None and the name a full path.
Nothing here decides anything: what to do when the disk cannot do it is `atomic.py`'s business.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from contextlib import suppress

# renameat2 on FUSE and many network disks answers EINVAL, an old kernel ENOSYS, macOS on FAT ENOTSUP.
CANNOT_RENAME_SO = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# FAT answers EPERM, Android's shared storage EACCES; EMLINK is a file with too many names already.
CANNOT_LINK = frozenset({*CANNOT_RENAME_SO, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EXDEV})

if sys.platform == "win32":
    import msvcrt

    # ReplaceFileW failed halfway: the old file has been renamed to the backup name and nothing took its place.
    _UNABLE_TO_MOVE_REPLACEMENT_2 = 1177
    _WRITE_THROUGH = 0x8
    _IGNORE_MERGE_ERRORS = 0x2
    _FAR = 1 << 30  # the locked byte lies far behind the text, so that others can read who holds the lock
    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.MoveFileExW.argtypes = (ctypes.c_wchar_p, ctypes.c_wchar_p, ctypes.c_uint32)
    _kernel32.ReplaceFileW.argtypes = (
        *(ctypes.c_wchar_p,) * 3,
        ctypes.c_uint32,
        ctypes.c_void_p,
        ctypes.c_void_p,
    )

    def _move(source: str, target: str) -> None:
        if not _kernel32.MoveFileExW(source, target, _WRITE_THROUGH):
            raise ctypes.WinError(ctypes.get_last_error())

    def exchange(temp_folder: int | None, temp: str, folder: int | None, name: str) -> None:
        """Put `temp` in the place of `name`; what `name` was is found under `temp`. The target keeps its ACL."""
        del temp_folder, folder
        aside = temp.removesuffix(".tmp") + "-old.tmp"
        if not _kernel32.ReplaceFileW(name, temp, aside, _IGNORE_MERGE_ERRORS, None, None):
            problem = ctypes.get_last_error()
            if problem == _UNABLE_TO_MOVE_REPLACEMENT_2:
                _move(aside, name)
            raise ctypes.WinError(problem)
        _move(aside, temp)

    def rename_new(source_folder: int | None, source: str, folder: int | None, name: str) -> None:
        """Rename, never onto something: FileExistsError instead."""
        del source_folder, folder
        _move(source, name)

    def try_lock(fd: int) -> bool:
        """Take the whole-file lock now, or say that another has it. The kernel frees it when its holder dies."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(fd: int) -> None:
        """Give the lock back."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    def is_alive(pid: int) -> bool:
        """Whether a process of that number runs."""
        query_limited_information, still_active = 0x1000, 259
        handle = _kernel32.OpenProcess(query_limited_information, False, pid)
        if not handle:
            return ctypes.get_last_error() == 5  # access denied: it is there, and another user's
        try:
            code = ctypes.c_uint32()
            return bool(_kernel32.GetExitCodeProcess(handle, ctypes.byref(code))) and code.value == still_active
        finally:
            _kernel32.CloseHandle(handle)

    def copy_attributes(source: int, target: int) -> None:
        """Nothing to do: ReplaceFileW carries attributes and access lists over itself."""

else:
    import fcntl

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


def sync_file(fd: int, *, full: bool = False) -> None:
    """Wait until the file's bytes are on the disk. `full` asks a Mac's drive to empty its own cache too."""
    if sys.platform == "darwin" and full:
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)
