"""Listen to what the operating system reports about the files of a folder.

Linux is listened to with inotify, other systems with watchfiles. `docs/decisions.md` says why, with
the figures of a comparison.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
import threading
import time
from typing import Protocol

from simplemem.note.names import is_unicode
from simplemem.obsidian.settings import SETTINGS_FILES
from simplemem.vault.source import EVERYTHING

_MAX_BATCH_SECONDS = 0.1  # a batch is not held back for longer, even if changes keep coming
_QUIET_MILLISECONDS = 20  # without an event, after which a batch is complete
_OBSIDIAN = ".obsidian"

# watchfiles wakes after each such step to see whether something happened. A person notices a delay
# of more than 50 ms, and shorter steps cost more.
_WATCHFILES_STEP_MILLISECONDS = 50
# watchfiles does not report lost events. So `EVERYTHING` is reported this long after an event.
_RECHECK_SECONDS = 30.0


class FolderListener(Protocol):
    """Listens to one folder. After it has reported `EVERYTHING`, it has to be opened again."""

    def changed(self, seconds: float) -> set[str]:
        """Return the paths where something happened; `EVERYTHING` is one if events were lost.

        Waits up to `seconds`; the set is empty if nothing happened. Paths are relative to the
        folder. Raises OSError or RuntimeError if more folders exist than the system can watch.
        """

    def close(self) -> None:
        """Stop listening. `changed` may not be called after this."""


def affected_paths(path: str) -> set[str]:
    """Return the paths that a change at a path may concern; none if it is hidden.

    Of the hidden files, only the `SETTINGS_FILES` of Obsidian count. A name that is no Unicode
    stands for its folder.
    """
    if path == _OBSIDIAN:
        # If it was created or moved as a whole, its files are not reported one by one.
        return set(SETTINGS_FILES)
    is_hidden = any(part.startswith(".") for part in path.split("/"))
    if is_hidden and path not in SETTINGS_FILES:
        return set()

    while not is_unicode(path):  # no note has such a name, so its folder is looked at
        path = path.rpartition("/")[0]
    return {path}


class WatchfilesListener:
    """Listens with watchfiles. Guards the time at which `EVERYTHING` is reported next."""

    def __init__(self, root: str, woken: threading.Event) -> None:
        """Begin to listen below the folder `root`. Setting `woken` ends the wait of `changed`.

        Raises OSError or RuntimeError if the system does not allow it.
        """
        from watchfiles._rust_notify import RustNotify

        self._prefix = root.rstrip(os.sep) + os.sep
        self._woken = woken
        # No debug output, no polling, no pause between polls, with subfolders, and an error for a
        # folder that may not be read.
        self._native = RustNotify([root], False, False, 0, True, False)
        self._recheck_at = float("inf")

    def close(self) -> None:
        """Stop listening."""
        self._native.close()

    def changed(self, seconds: float) -> set[str]:
        """Return the paths where something happened; wait up to `seconds` for it.

        `EVERYTHING` is the only one after an event about the folder itself, and half a minute after
        any event, because lost events are not reported.
        """
        batch_milliseconds = int(_MAX_BATCH_SECONDS * 1000)
        milliseconds = max(int(seconds * 1000), 1)
        events = self._native.watch(
            batch_milliseconds, _WATCHFILES_STEP_MILLISECONDS, milliseconds, self._woken
        )
        if not isinstance(events, set):  # a text such as "timeout" says why there are none
            events = set()

        paths: set[str] = set()
        for _, path in events:
            if not path.startswith(self._prefix):  # an event about the root itself
                return {EVERYTHING}
            relative_path = path[len(self._prefix) :].replace(os.sep, "/")
            paths |= affected_paths(relative_path)

        now = time.monotonic()
        if paths:
            self._recheck_at = min(self._recheck_at, now + _RECHECK_SECONDS)
        if now > self._recheck_at:
            return {EVERYTHING}
        return paths


# What happened, as the bits of an event (`man 7 inotify`).
_WRITTEN = 0x2 | 0x8  # IN_MODIFY, IN_CLOSE_WRITE
_ATTRIBUTES = 0x4  # IN_ATTRIB: times and permissions
_ARRIVED = 0x80 | 0x100  # IN_MOVED_TO, IN_CREATE
_DEPARTED = 0x40 | 0x200  # IN_MOVED_FROM, IN_DELETE
_FOLDER_DEPARTED = 0x400 | 0x800 | 0x2000  # IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT
_OVERFLOW = 0x4000  # IN_Q_OVERFLOW: the queue was full, and events were lost
_WATCH_ENDED = 0x8000  # IN_IGNORED
_IS_FOLDER = 0x40000000  # IN_ISDIR
# Only folders, no links, and nothing about files that have no name any more.
_OPTIONS = 0x1000000 | 0x2000000 | 0x4000000  # IN_ONLYDIR, IN_DONT_FOLLOW, IN_EXCL_UNLINK
_WATCHED = _WRITTEN | _ATTRIBUTES | _ARRIVED | _DEPARTED | _FOLDER_DEPARTED | _OPTIONS

_EVENT_HEADER = struct.Struct("iIII")  # the watch, what happened, a cookie, the length of the name
_READ_BYTES = 1 << 16


class InotifyListener:
    """Listens with inotify. Guards which folder each watch belongs to, by the watch's number."""

    def __init__(self, root: str, wake_socket: socket.socket) -> None:
        """Begin to listen to the folder `root` and all folders in it.

        Data at `wake_socket` ends the wait of `changed`. Raises OSError if the system can watch no
        more folders, or if the root cannot be read.
        """
        self._root = root
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}
        self._fd = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(wake_socket.fileno(), select.POLLIN)
        try:
            self._watch_below(EVERYTHING)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Stop listening."""
        os.close(self._fd)

    def changed(self, seconds: float) -> set[str]:
        """Return the paths where something happened; wait up to `seconds` for it.

        `EVERYTHING` is one of them if events were lost. After an event, more are collected until
        none comes for a while. With 0 seconds, only what has happened before this call is returned.
        Raises OSError if a new folder is one more than the system can watch.
        """
        paths: set[str] = set()
        quiet_milliseconds = _QUIET_MILLISECONDS if seconds > 0 else 0
        wait_milliseconds = int(seconds * 1000)
        deadline = float("inf")
        while time.monotonic() < deadline and self._has_events(wait_milliseconds):
            paths |= self._read_events()
            latest = time.monotonic() + _MAX_BATCH_SECONDS
            deadline = min(deadline, latest)
            wait_milliseconds = quiet_milliseconds
        return paths

    def _has_events(self, milliseconds: int) -> bool:
        """Wait some milliseconds for an event; return whether there is one.

        False too if data at the wake socket ended the wait.
        """
        return any(fd == self._fd for fd, _ in self._poll.poll(milliseconds))

    def _read_events(self) -> set[str]:
        """Read the events that have happened, and return the paths that they concern."""
        paths: set[str] = set()
        events = os.read(self._fd, _READ_BYTES)
        offset = 0
        while offset < len(events):
            watch, mask, _, name_size = _EVENT_HEADER.unpack_from(events, offset)
            offset += _EVENT_HEADER.size + name_size
            padded_name = events[offset - name_size : offset]
            name = os.fsdecode(padded_name.rstrip(b"\0"))
            paths |= self._paths_of_event(watch, mask, name)
        return paths

    def _paths_of_event(self, watch: int, mask: int, name: str) -> set[str]:
        """Return the paths that an event concerns, and watch a folder that arrived.

        `watch` is the number of the watch, `mask` says what happened, and `name` is the name of the
        file in the watched folder, "" if the event is about that folder itself.
        """
        folder = self._folders.get(watch)
        has_root_departed = mask & _FOLDER_DEPARTED and folder == EVERYTHING
        if mask & _OVERFLOW or has_root_departed:
            return {EVERYTHING}
        if mask & _WATCH_ENDED:
            self._folders.pop(watch, None)
        if folder is None or mask & (_WATCH_ENDED | _FOLDER_DEPARTED):
            return set()  # the folder above reports this too

        path = f"{folder}/{name}" if folder else name
        paths = affected_paths(path)
        is_folder = mask & _IS_FOLDER
        if is_folder and mask & _ARRIVED and paths:
            self._watch_below(path)  # a watched folder that was moved gets its new path by this
        if is_folder and mask & _ATTRIBUTES:
            return set()  # its times or permissions changed, and no note
        return paths

    def _watch_below(self, top: str) -> None:
        """Watch a folder and those in it, except links and hidden ones other than `.obsidian`.

        `top` is a path in the vault, `EVERYTHING` for its root. Of `.obsidian`, only the folder
        itself is watched. Each folder is watched before it is listed, so that no event in it is
        missed. A folder that was deleted or may not be read is skipped. Raises OSError if the
        system can watch no more folders, or if the root of the vault cannot be read.
        """
        pending = [top]
        while pending:
            folder = pending.pop()
            try:
                subfolders = self._watch(folder)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                # It was deleted meanwhile, or may not be read.
                if folder == EVERYTHING:
                    raise
            else:
                pending += filter(affected_paths, subfolders)

    def _watch(self, folder: str) -> list[str]:
        """Watch one folder; return the paths of the folders in it. Raises OSError.

        `folder` is its path in the vault. Of `.obsidian`, no folders are returned.
        """
        path = f"{self._root}/{folder}"
        watch = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _WATCHED)
        self._folders[_checked(watch)] = folder
        if folder == _OBSIDIAN:
            return []
        with os.scandir(path) as items:
            names = [item.name for item in items if item.is_dir(follow_symlinks=False)]
        return [f"{folder}/{name}".lstrip("/") for name in names]


def _checked(result: int) -> int:
    """Return the result of a system call. Raises OSError, with its reason, if it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
