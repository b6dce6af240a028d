"""A file system for one action, mounted in a child process, where no other process sees it.

It needs Linux and root.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash_harness import in_child

_NEW_MOUNTS = 0x20000
_PRIVATE = 0x4000 | 0x40000
_READ_ONLY = 1
_REMOUNT = 32
_BIND = 4096


def may_mount() -> bool:
    """Return whether this process may have mounts of its own."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(_NEW_MOUNTS) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def read_only(place: Path, action: Callable[[], Any]) -> Any:
    """Run an action while `place` is mounted read-only, and return its value."""

    def prepare() -> None:
        mount(str(place), place, "", _BIND)
        mount("", place, "", _BIND | _REMOUNT | _READ_ONLY)

    return in_own_mounts(prepare, action)


def in_own_mounts(prepare: Callable[[], None], action: Callable[[], Any]) -> Any:
    """Run both in a child with mounts of its own, and return the value of the action."""

    def run() -> Any:
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS):
            raise OSError(ctypes.get_errno(), "unshare")
        mount("", Path("/"), "", _PRIVATE)
        prepare()
        return action()

    return in_child(run)


def mount(source: str, place: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system of a kind at a folder. Raises OSError if the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = [word.encode() or None for word in (source, str(place), kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(place))
