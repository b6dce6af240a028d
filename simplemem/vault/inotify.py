"""What the kernel of Linux tells about the folders of a vault, as vault paths.

watchfiles, which does this elsewhere, follows links out of the vault (durability.md F36), drops the kernel's word that its
queue overflowed (F72), wakes all the time, and does not know yet of some changes that were made just before it was asked.
This follows no link, sleeps until something happens, says when something was lost, and answers from the kernel's own list.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
import time
from contextlib import suppress

from simplemem.vault.watch import EVERYTHING, concerned

_MODIFIED = 0x2 | 0x8  # written to, closed after writing
_ATTRIB = 0x4  # times and rights
_CAME, _WENT = 0x80 | 0x100, 0x40 | 0x200  # moved to or created, moved from or deleted
_SELF_WENT, _UNMOUNTED = 0x400 | 0x800, 0x2000  # deleted or moved
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_WANTED = _MODIFIED | _ATTRIB | _CAME | _WENT | _SELF_WENT
_HOW = 0x1000000 | 0x2000000 | 0x4000000  # folders only, follow no link, nothing about what has no name any more
_HEAD = struct.Struct("iIII")  # watch, what happened, a number that ties two ends of a move, length of the name
_OBSIDIAN = ".obsidian"


class Inotify:
    """All folders of a vault, listened to. One thread asks; any thread may `wake` it."""

    def __init__(self, base: str) -> None:
        """Raises OSError when the system refuses: ENOSPC for too many folders, EMFILE for too many listeners."""
        self._base = base
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}  # vault paths by the kernel's number
        self._open = threading.Lock()  # held to ring and to close: a closed descriptor may be somebody else's by then
        self._fd = self._bell = -1
        try:
            self._fd = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._listen_below(EVERYTHING)
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        for fd in (self._fd, self._bell):
            self._poll.register(fd, select.POLLIN)

    def close(self) -> None:
        with self._open:
            for fd in {self._fd, self._bell} - {-1}:
                os.close(fd)
            self._fd = self._bell = -1

    def wake(self) -> None:
        """End the waiting of the thread that asks."""
        with self._open:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def changed(self, timeout_ms: int, quiet_ms: int = 0, most_ms: int = 0) -> set[str]:
        """Paths where something happened. Waits for the first, then until it is quiet, but not for ever. EVERYTHING:
        something was lost, or the vault itself went, and a new listener is needed."""
        paths: set[str] = set()
        if not self._waits(timeout_ms):
            return paths
        ends = time.monotonic() + most_ms / 1000
        while True:
            paths |= self._read()
            if time.monotonic() >= ends or not self._waits(quiet_ms):
                return paths

    def _waits(self, milliseconds: int) -> bool:
        """Whether the kernel has something to tell, waiting for it. A bell ends the waiting."""
        ready = [fd for fd, _ in self._poll.poll(milliseconds)]
        if self._bell in ready:
            with suppress(BlockingIOError):
                os.eventfd_read(self._bell)
        return self._fd in ready

    def _read(self) -> set[str]:
        paths: set[str] = set()
        events, at = os.read(self._fd, 1 << 16), 0
        while at < len(events):
            watch, what, _, length = _HEAD.unpack_from(events, at)
            at += _HEAD.size + length
            paths |= self._event(watch, what, os.fsdecode(events[at - length : at].rstrip(b"\0")))
        return paths

    def _event(self, watch: int, what: int, name: str) -> set[str]:
        folder = self._folders.get(watch)
        if what & _OVERFLOW or (what & (_SELF_WENT | _UNMOUNTED) and folder == EVERYTHING):
            return {EVERYTHING}
        if what & _IGNORED:
            self._folders.pop(watch, None)
        if folder is None or what & (_IGNORED | _SELF_WENT | _UNMOUNTED):  # of any other its parent tells
            return set()
        path = f"{folder}/{name}" if folder else name
        if what & _IS_FOLDER:
            if what & _WENT:
                self._leave(path)
            elif what & _CAME and _may_hold_notes(path):
                self._listen_below(path)
            elif what & _ATTRIB:
                return set()  # times and rights of a folder
        return concerned(path)

    # Which folders

    def _listen_below(self, top: str) -> None:
        """Listen to a folder first and look into it then, so that nothing comes into it unheard."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            path = f"{self._base}/{folder}"
            try:
                watch = _checked(self._libc.inotify_add_watch(self._fd, os.fsencode(path), _WANTED | _HOW))
                self._folders[watch] = folder
                with os.scandir(path) as entries:
                    below = [f"{folder}/{at.name}".lstrip("/") for at in entries if at.is_dir(follow_symlinks=False)]
            except (FileNotFoundError, NotADirectoryError, PermissionError):  # it went again, or is closed to us
                if folder == EVERYTHING:
                    raise
            else:
                waiting += filter(_may_hold_notes, below if folder != _OBSIDIAN else ())

    def _leave(self, gone: str) -> None:
        """A folder went elsewhere, and the kernel would go on telling of it under its old name."""
        for watch, folder in list(self._folders.items()):
            if folder == gone or folder.startswith(f"{gone}/"):
                self._libc.inotify_rm_watch(self._fd, watch)
                del self._folders[watch]


def _may_hold_notes(path: str) -> bool:
    return not path.rpartition("/")[2].startswith(".") or path == _OBSIDIAN


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
