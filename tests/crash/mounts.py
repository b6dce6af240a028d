"""A file system of its own for one action: mounted in a child, where nobody else sees it. Needs Linux and root."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash_harness import in_child

_NEW_MOUNTS, _PRIVATE = 0x20000, 0x4000 | 0x40000
READ_ONLY, _REMOUNT, _BIND = 1, 32, 4096


def may_mount() -> bool:
    """Whether this process may have mounts of its own."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(_NEW_MOUNTS) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def mounted(kind: str, place: Path, action: Callable[[], Any], options: str = "", source: str = "test") -> Any:
    """What `action` returns, run where a file system of this kind lies at `place`."""
    return in_own_mounts(lambda: mount(kind, place, options, source), action)


def read_only(place: Path, action: Callable[[], Any]) -> Any:
    """What `action` returns, run where `place` cannot be written, as on a disk that was mounted so."""

    def close() -> None:
        _mount(str(place), str(place), "", _BIND, "")
        _mount("", str(place), "", _BIND | _REMOUNT | READ_ONLY, "")

    return in_own_mounts(close, action)


def in_own_mounts(prepare: Callable[[], None], action: Callable[[], Any]) -> Any:
    """Run both in a child with mounts of its own."""

    def run() -> Any:
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS):
            raise OSError(ctypes.get_errno(), "unshare")
        _mount("", "/", "", _PRIVATE, "")
        prepare()
        return action()

    return in_child(run)


def mount(kind: str, place: Path, options: str = "", source: str = "test") -> None:
    _mount(source, str(place), kind, 0, options)


def _mount(source: str, place: str, kind: str, flags: int, options: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [word.encode() or None for word in (source, place, kind)]
    if libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), options.encode() or None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), place)
