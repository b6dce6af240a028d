"""What the vault asks of the operating system beyond `os`, and what it says when it refuses.

Two renames, a lock, a sync and a copy of attributes, each raising OSError like `os` does. Files are named by an open folder
and a name in it; where folders cannot be held open (Windows) the folder is None and the name a full path. What to do when
the disk cannot do it is `disk.py`'s business. One table goes from errno to the errors of `errors.py`: nothing is retried and
nothing is hidden, and the OSError stays as the cause.

Windows lets nobody rename or remove a file that another program has open without sharing it for that, and virus scanners and
search indexers open every new file for a moment: so each such call is tried again for a while.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from simplemem.errors import Invalid, NotFound, ReadOnly, SimplememError, TooLong, Unavailable, Unreadable

_T = TypeVar("_T")

# renameat2 on FUSE and many network disks answers EINVAL, an old kernel ENOSYS, macOS on FAT ENOTSUP.
CANNOT_RENAME_SO = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# FAT answers EPERM, Android's shared storage EACCES; EMLINK is a file with too many names already.
CANNOT_LINK = frozenset({*CANNOT_RENAME_SO, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EXDEV})

if sys.platform == "win32":
    import msvcrt

    _PATIENCE = 2.0  # seconds
    _ACCESS_DENIED, _SHARING_VIOLATION, _LOCK_VIOLATION, _MAPPED = 5, 32, 33, 1224
    # ReplaceFileW could not remove the old file or move the new one; both have their names still.
    _UNABLE_TO_REMOVE_REPLACED, _UNABLE_TO_MOVE_REPLACEMENT = 1175, 1176
    # It failed halfway: the old file may have the backup name already, and nothing took its place.
    _UNABLE_TO_MOVE_REPLACEMENT_2 = 1177
    _PASSING = frozenset((
        _ACCESS_DENIED, _SHARING_VIOLATION, _LOCK_VIOLATION, _MAPPED, _UNABLE_TO_REMOVE_REPLACED, _UNABLE_TO_MOVE_REPLACEMENT
    ))  # fmt: skip
    _WRITE_THROUGH = 0x8
    _IGNORE_MERGE_ERRORS = 0x2
    _FAR = 1 << 30  # the locked byte lies far behind the text, so that others can read who holds the lock

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.MoveFileExW.argtypes = (ctypes.c_wchar_p, ctypes.c_wchar_p, ctypes.c_uint32)
    _kernel32.ReplaceFileW.argtypes = (*(ctypes.c_wchar_p,) * 3, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    _kernel32.OpenProcess.argtypes = (ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32)
    _kernel32.OpenProcess.restype = ctypes.c_void_p
    _kernel32.GetExitCodeProcess.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32))
    _kernel32.CloseHandle.argtypes = (ctypes.c_void_p,)

    def patiently(act: Callable[[], _T]) -> _T:
        """Do something that another program's open file may hinder for a moment."""
        deadline, pause = time.monotonic() + _PATIENCE, 0.002
        while True:
            try:
                return act()
            except OSError as error:
                if error.winerror not in _PASSING or time.monotonic() >= deadline:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 0.1)

    def _move(source: str, target: str) -> None:
        if not _kernel32.MoveFileExW(source, target, _WRITE_THROUGH):
            raise ctypes.WinError(ctypes.get_last_error())

    def _replace(name: str, temp: str, aside: str) -> None:
        if not _kernel32.ReplaceFileW(name, temp, aside, _IGNORE_MERGE_ERRORS, None, None):
            raise ctypes.WinError(ctypes.get_last_error())

    def exchange(temp_folder: int | None, temp: str, folder: int | None, name: str) -> None:
        """Put `temp` in the place of `name`; what `name` was is found under `temp`. The target keeps its ACL."""
        del temp_folder, folder
        aside = temp.removesuffix(".tmp") + "-old.tmp"
        try:
            patiently(lambda: _replace(name, temp, aside))
        except OSError as error:
            if error.winerror == _UNABLE_TO_MOVE_REPLACEMENT_2:
                with suppress(OSError):  # should it fail, the journal finds the old file under this name
                    patiently(lambda: _move(aside, name))
            raise
        patiently(lambda: _move(aside, temp))

    def rename_new(source_folder: int | None, source: str, folder: int | None, name: str) -> None:
        """Rename, never onto something: FileExistsError instead."""
        del source_folder, folder
        patiently(lambda: _move(source, name))

    def try_lock(fd: int) -> bool:
        """Take the lock now, or say that another has it. The kernel frees it when its holder dies."""
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
            return ctypes.get_last_error() == _ACCESS_DENIED  # it is there, and another user's
        try:
            code = ctypes.c_uint32()
            return bool(_kernel32.GetExitCodeProcess(handle, ctypes.byref(code))) and code.value == still_active
        finally:
            _kernel32.CloseHandle(handle)

    def copy_attributes(source: int, target: int) -> None:
        """Nothing to do: ReplaceFileW carries attributes and access lists over itself."""

    def sync_file(fd: int, *, last: bool = False) -> None:
        """Wait until the file's bytes are on the disk: FlushFileBuffers empties the drive's cache too."""
        del last
        os.fsync(fd)

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


Meaning = tuple[type[SimplememError], str, str]  # the kind of error, what is wrong, what to do

_FULL: Meaning = (Unavailable, "the disk is full.", "Free some space; nothing was changed.")
_TOO_MANY: Meaning = (Unavailable, "too many files are open.", "Try again in a moment.")
_ELSEWHERE: Meaning = (Unavailable, "another program has it open.", "Close it there, or try again in a moment.")
_NOT_WRITABLE: Meaning = (ReadOnly, "the disk or the permissions do not allow writing.", "")
_NOT_READABLE: Meaning = (Unreadable, "permission denied.", "Check who owns the file and its mode.")
_MEANINGS: dict[int, Meaning] = {
    errno.ENOSPC: _FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): _FULL,
    errno.EFBIG: _FULL,
    errno.EMFILE: _TOO_MANY,
    errno.ENFILE: _TOO_MANY,
    errno.EROFS: _NOT_WRITABLE,
    errno.EACCES: _NOT_READABLE,
    errno.EPERM: _NOT_READABLE,
    errno.ENAMETOOLONG: (TooLong, "the name is too long for the disk.", "Use a shorter name."),
    errno.ELOOP: (Invalid, "it is or leads through a symbolic link.", "Name the real file instead."),
    errno.ENOTDIR: (Invalid, "a part of it is a file or a link, not a folder.", ""),
    errno.EISDIR: (Unreadable, "it is a folder.", ""),
    errno.ENXIO: (Unreadable, "it is not a regular file.", ""),
    errno.ENOENT: (NotFound, "there is no such file.", ""),
}
_OPEN_ELSEWHERE = {32, 33, 1224}  # Windows: a sharing or lock violation, or mapped into another program's memory


@contextmanager
def telling(doing: str, path: str, *, writing: bool = False) -> Iterator[None]:
    """Turn an OSError of the block into one of ours: `with telling("read", path):`."""
    try:
        yield
    except OSError as error:
        raise explain(error, doing, path, writing=writing) from error


def explain(error: OSError, doing: str, path: str, *, writing: bool) -> SimplememError:
    """The error of ours that says what `error` means for somebody who wanted to `doing` `path`."""
    # A file that the disk cannot give is one bad file, and hurts no other; a write that failed may have failed anywhere.
    unknown = (
        Unavailable if writing else Unreadable,
        f"{error.strerror or error}.",
        "The disk may be failing: check it.",
    )
    meaning = _MEANINGS.get(error.errno or 0, unknown)
    if getattr(error, "winerror", None) in _OPEN_ELSEWHERE:
        meaning = _ELSEWHERE
    elif meaning is _NOT_READABLE and writing:
        meaning = _NOT_WRITABLE
    kind, what, hint = meaning
    return kind(f"Could not {doing} {path!r}: {what}", hint=hint)
