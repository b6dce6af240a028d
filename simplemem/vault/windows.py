"""What Windows offers beyond `os`: the calls of `disk.py`, in its own words. Imported there alone."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    import msvcrt
    import os

    from simplemem.vault.paths import patiently

    _FAR = 1 << 30  # the locked byte lies far behind the text, so that others can read who holds the lock
    _WRITE_THROUGH, _IGNORE_MERGE_ERRORS = 0x8, 0x2
    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.OpenProcess.restype = ctypes.c_void_p

    def _called(name: str, *given: object) -> None:
        if not getattr(_kernel32, name)(*given):
            raise ctypes.WinError(ctypes.get_last_error())

    def exchange(_: int | None, temp: str, __: int | None, name: str) -> None:
        """Put `temp` in the place of `name`; what `name` was is found under `temp`. The target keeps its ACL. Should it
        stop halfway, the journal finds the old file under its name aside."""
        old = temp.removesuffix(".tmp") + "-old.tmp"
        patiently(lambda: _called("ReplaceFileW", name, temp, old, _IGNORE_MERGE_ERRORS, None, None))
        patiently(lambda: _called("MoveFileExW", old, temp, _WRITE_THROUGH))

    def rename_new(_: int | None, source: str, __: int | None, name: str) -> None:
        """Rename, never onto something: FileExistsError instead."""
        patiently(lambda: _called("MoveFileExW", source, name, _WRITE_THROUGH))

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
        if handle := _kernel32.OpenProcess(0x1000, False, pid):
            _kernel32.CloseHandle(ctypes.c_void_p(handle))
        return bool(handle) or ctypes.get_last_error() == 5  # it is there, and another user's
