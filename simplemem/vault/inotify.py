"""What the kernel of Linux tells about the folders of a vault, by its own calls.

The notifier of watchfiles walks through links to folders, out of the vault and through all that lies there (F36), wakes
fifty times a second to see whether anything happened, and keeps silent when the kernel's queue overflowed (F72). This one
follows no link, sleeps until something happens, and says when something was lost. Folders that begin with a dot are nobody's
notes: of those only Obsidian's own is listened to.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

ADDED, CHANGED, DELETED = 1, 2, 3  # as watchfiles numbers them
Event = tuple[int, str]

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_FOLDERS, _FOLLOW_NO_LINK, _NOTHING_UNLINKED, _IS_FOLDER = 0x1000000, 0x2000000, 0x4000000, 0x40000000
_WANTED = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
    | _ONLY_FOLDERS | _FOLLOW_NO_LINK | _NOTHING_UNLINKED
)  # fmt: skip
_HEAD = struct.Struct("iIII")  # watch, what happened, a number that ties two ends of a move, length of the name
_CHUNK = 1 << 16
_OBSIDIAN = ".obsidian"


class Inotify:
    """All folders of a vault, listened to. One thread asks; any thread may `wake` it."""

    def __init__(self, base: str) -> None:
        """Raises OSError when the system refuses: ENOSPC for too many folders, EMFILE for too many listeners."""
        self._base = base
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}
        self._open = threading.Lock()  # held to ring and to close: a closed descriptor may be somebody else's by then
        self._closed = False
        self._fd = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except OSError:
            os.close(self._fd)
            raise
        try:
            self._listen_below(base)
        except OSError:
            self.close()
            raise
        self._asked = select.poll()
        for fd in (self._fd, self._bell):
            self._asked.register(fd, select.POLLIN)

    def close(self) -> None:
        with self._open:
            if not self._closed:
                self._closed = True
                os.close(self._fd)
                os.close(self._bell)

    def wake(self) -> None:
        """End the waiting of the thread that asks."""
        with self._open:
            if not self._closed:
                os.eventfd_write(self._bell, 1)

    def watch(self, most_ms: int, step_ms: int, timeout_ms: int) -> set[Event]:
        """What has happened: waits for it so long, and once something has, until a step is quiet, but not for ever."""
        events: set[Event] = set()
        if not self._waits(timeout_ms):
            return events
        ends = time.monotonic() + most_ms / 1000
        while True:
            events.update(self._told())
            if time.monotonic() >= ends or not self._waits(step_ms):
                return events

    def _waits(self, milliseconds: int) -> bool:
        """Whether the kernel has something to tell, waiting for it. A bell ends the waiting."""
        ready = [fd for fd, _ in self._asked.poll(milliseconds)]
        if self._bell in ready:
            with suppress(BlockingIOError):
                os.eventfd_read(self._bell)
        return self._fd in ready

    def _told(self) -> Iterator[Event]:
        try:
            told = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        at = 0
        while at < len(told):
            watch, what, _, length = _HEAD.unpack_from(told, at)
            at += _HEAD.size
            name = os.fsdecode(told[at : at + length].rstrip(b"\0"))
            at += length
            yield from self._event(watch, what, name)

    def _event(self, watch: int, what: int, name: str) -> Iterator[Event]:
        if what & _OVERFLOW:
            yield DELETED, self._base  # the kernel threw events away: all begins anew
            return
        if what & _IGNORED:
            self._folders.pop(watch, None)
            return
        folder = self._folders.get(watch)
        if folder is None:
            return
        if what & (_DELETE_SELF | _MOVE_SELF | _UNMOUNT):
            if folder == self._base:
                yield DELETED, folder
            return  # of any other its parent tells
        path = f"{folder}/{name}"
        if what & _IS_FOLDER:
            if what & (_MOVED_FROM | _DELETE):
                self._leave(path)
            elif what & (_MOVED_TO | _CREATE) and self._concerns_us(path):
                self._listen_below(path)
            elif what & _ATTRIB:
                return  # times and rights of a folder
        if what & (_MOVED_TO | _CREATE):
            yield ADDED, path
        else:
            yield DELETED if what & (_MOVED_FROM | _DELETE) else CHANGED, path

    # -- which folders

    def _concerns_us(self, path: str) -> bool:
        name = path.rsplit("/", 1)[-1]
        return not name.startswith(".") or path == f"{self._base}/{_OBSIDIAN}"

    def _listen_below(self, top: str) -> None:
        """Listen to a folder first and look into it then, so that nothing comes into it unheard."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            if not self._listen_to(folder) or folder == f"{self._base}/{_OBSIDIAN}":
                continue
            try:
                with os.scandir(folder) as entries:
                    inside = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            except OSError:  # it went again, or is closed to us: then nothing in it is a note of ours
                continue
            waiting += filter(self._concerns_us, inside)

    def _listen_to(self, folder: str) -> bool:
        try:
            watch = _checked(self._libc.inotify_add_watch(self._fd, os.fsencode(folder), _WANTED))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            if folder == self._base:
                raise
            return False
        self._folders[watch] = folder
        return True

    def _leave(self, gone: str) -> None:
        """A folder went elsewhere, and the kernel would go on telling of it under its old name."""
        for watch, folder in list(self._folders.items()):
            if folder == gone or folder.startswith(f"{gone}/"):
                self._libc.inotify_rm_watch(self._fd, watch)
                del self._folders[watch]


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        if code == errno.ENOSPC:
            raise OSError(code, "the limit of watched folders is reached (os error 28)")
        raise OSError(code, os.strerror(code))
    return answer
