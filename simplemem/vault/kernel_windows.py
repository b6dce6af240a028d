"""What `kernel.py` promises, on Windows: ReplaceFileW, MoveFileExW and byte locks. Folders are never held open here.

Windows lets nobody rename or remove a file that another program has open without sharing it for that, and virus
scanners and search indexers open every new file for a moment: so each such call is tried again for a while.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

assert sys.platform == "win32"
import msvcrt  # noqa: E402  (no other system has it)

_T = TypeVar("_T")

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
