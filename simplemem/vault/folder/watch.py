"""Paths of the vault that may have changed, files or folders with all below them: told by the operating system, or found
by looking about. All are hints: the kind and order of events say little, as every editor
saves in its own way. This never reads a note."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from simplemem.note.paths import is_unicode
from simplemem.obsidian.settings import CONVENTION_FILES
from simplemem.vault.source import EVERYTHING

_QUIET_MS = 20  # quiet time that ends a batch: the latency
_MOST_SECONDS = 0.1  # longest time a batch is held back while changes keep coming
_PULSE = 1.0  # seconds after which it is looked whether the root is still the same folder
_MANY = 1_000  # paths; beyond that a look through the whole vault is no dearer
_UNTOLD_SECONDS = (
    30.0  # how long after an event all is looked at, where nobody tells of events that were lost
)
_OBSIDIAN = ".obsidian"
_LIMIT = "this system's limit of watched folders is reached (raise fs.inotify.max_user_watches)"
# Other computers may write to these at the same time; inotify sees only what this machine does (F40).
SHARED = frozenset(
    "9p afs ceph cifs davfs drvfs glusterfs lustre nfs nfs4 smb3 smbfs vboxsf virtiofs".split()
)
SHARED |= {
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.davfs2",
    "fuse.vmhgfs-fuse",
}


def file_system(path: str) -> str:
    """The kind of disk a path is on, by Linux's list of mounts; "" where that does not tell."""
    with (
        suppress(OSError),
        open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts,
    ):
        device = os.stat(path).st_dev
        for line in mounts:
            if line.split(" ", 3)[2] == f"{os.major(device)}:{os.minor(device)}":
                return line.partition(" - ")[2].partition(" ")[0]
    return ""


class Watch:
    """What may have changed in a vault since this was last asked: by one thread; any may ring. Where the system can't
    tell, `warn` says so, once, and every `poll_seconds` everything may have changed. A missing root is waited for."""

    def __init__(
        self,
        root: Path,
        *,
        poll: bool = False,
        poll_seconds: float = 2,
        warn: Callable[[str], None],
    ) -> None:
        self.polling, self.poll_seconds = poll, poll_seconds
        self._root, self._warn = root, warn
        self._bell, self._rope = socket.socketpair()
        self._bell.setblocking(False)
        self._rung = threading.Event()
        self._listener: Inotify | Watchfiles | None = None
        self._open()

    def wake(self) -> None:
        """End a wait, or the next one."""
        if not self._rung.is_set():
            self._rung.set()
            with suppress(OSError):  # it was closed
                self._rope.send(b".")

    def close(self) -> None:
        """Listen no more."""
        for each in (self._listener, self._bell, self._rope):
            if each is not None:
                each.close()
        self._listener = None

    def paths(self, seconds: float) -> set[str]:
        """What was told by now; else wait so long for something, and then until it is quiet, but not for ever."""
        changed, seconds = set[str](), 0.0 if self._rung.is_set() else min(seconds, _PULSE)
        if self._listener is not None:
            try:
                changed = self._listener.changed(seconds)
            except (
                OSError,
                RuntimeError,
            ):  # more folders than the system allows: opening it anew says so
                changed = {EVERYTHING}
        else:
            due = (
                self._polled + self.poll_seconds - time.monotonic()
                if self._identity is not None
                else float("inf")
            )
            if not self._rung.wait(max(min(seconds, due), 0.0)) and due <= seconds:
                changed = {EVERYTHING}
        self._rung.clear()
        with suppress(OSError):
            self._bell.recv(1 << 12)
        if EVERYTHING in changed or len(changed) > _MANY or _identity(self._root) != self._identity:
            self._open()
            return {EVERYTHING}
        return changed

    def _open(self) -> None:
        """Begin with the folder that is at the root now, or note that there is none."""
        if self._listener is not None:
            self._listener.close()
        self._listener, self._polled = None, time.monotonic()
        self._identity, base, reason = _identity(self._root), os.path.realpath(self._root), ""
        if self._identity is None or self.polling:
            return
        kind = file_system(base)
        if kind in SHARED or kind == "fuse" or kind.startswith("fuse."):
            reason = f"a disk of type {kind} does not report changes by other computers"
        else:
            try:
                is_linux = sys.platform == "linux"
                self._listener = (
                    Inotify(base, self._bell) if is_linux else Watchfiles(base, self._rung)
                )
            except FileNotFoundError:
                self._identity = None  # it went away just now
            except (ImportError, OSError, RuntimeError) as failure:
                is_limit = getattr(failure, "errno", None) == errno.ENOSPC
                reason = _LIMIT if is_limit else str(failure) or type(failure).__name__
        if reason:
            self.polling = True
            self._warn(f"{self._root} cannot be watched: {reason}; simplemem polls it instead")


class Watchfiles:
    """The listener of macOS and Windows. It does not tell of lost events: after some were heard, all is looked at."""

    def __init__(self, base: str, rung: threading.Event) -> None:
        from watchfiles._rust_notify import RustNotify

        self._prefix, self._rung = base.rstrip(os.sep) + os.sep, rung
        self._native = RustNotify([base], False, False, 0, True, False)
        self._untold = float("inf")  # when to look at everything
        self.close = self._native.close

    def changed(self, seconds: float) -> set[str]:
        # It wakes after every quiet time to see whether something happened: above 50 ms is felt, below costs more.
        events = self._native.watch(
            int(_MOST_SECONDS * 1000), 50, max(int(seconds * 1000), 1), self._rung
        )
        paths: set[str] = set()
        for _, path in events if isinstance(events, set) else ():
            if not path.startswith(self._prefix):
                return {EVERYTHING}
            paths |= _concerned(path[len(self._prefix) :].replace(os.sep, "/"))
        now = time.monotonic()
        if paths:
            self._untold = min(self._untold, now + _UNTOLD_SECONDS)
        return paths if now <= self._untold else {EVERYTHING}


_MODIFIED, _ATTRIB = 0x2 | 0x8, 0x4  # written to, closed after writing; times and rights
_CAME, _WENT = 0x80 | 0x100, 0x40 | 0x200  # moved to or created, moved from or deleted
_SELF_WENT = 0x400 | 0x800 | 0x2000  # deleted, moved, unmounted
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_HOW = (
    0x1000000 | 0x2000000 | 0x4000000
)  # folders only, follow no link, nothing about what has no name any more
_WANTED = _MODIFIED | _ATTRIB | _CAME | _WENT | _SELF_WENT | _HOW
_HEAD = struct.Struct(
    "iIII"
)  # watch, what happened, a number that ties two ends of a move, length of the name


class Inotify:
    """The listener of Linux. watchfiles, which does this elsewhere, follows links out of the vault (F36),
    drops the kernel's word that its queue overflowed (F72), wakes all the time, and is late with some changes."""

    def __init__(self, base: str, bell: socket.socket) -> None:
        self._base = base
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}  # vault paths by the kernel's number
        self._fd = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(bell.fileno(), select.POLLIN)
        self.close = partial(os.close, self._fd)
        try:
            self._listen_below(EVERYTHING)
        except OSError:
            self.close()
            raise

    def changed(self, seconds: float) -> set[str]:
        """Paths where something happened. EVERYTHING: something was lost, or the vault went; open a new one."""
        paths: set[str] = set()
        ends, wait, quiet = float("inf"), int(seconds * 1000), _QUIET_MS if seconds > 0 else 0
        while time.monotonic() < ends and any(fd == self._fd for fd, _ in self._poll.poll(wait)):
            events, at = os.read(self._fd, 1 << 16), 0
            while at < len(events):
                watch, what, _, length = _HEAD.unpack_from(events, at)
                at += _HEAD.size + length
                paths |= self._event(
                    watch, what, os.fsdecode(events[at - length : at].rstrip(b"\0"))
                )
            ends, wait = min(ends, time.monotonic() + _MOST_SECONDS), quiet
        return paths

    def _event(self, watch: int, what: int, name: str) -> set[str]:
        folder = self._folders.get(watch)
        if what & _OVERFLOW or (what & _SELF_WENT and folder == EVERYTHING):
            return {EVERYTHING}
        if what & _IGNORED:
            self._folders.pop(watch, None)
        if folder is None or what & (_IGNORED | _SELF_WENT):  # of any other its parent tells
            return set()
        concerned = _concerned(f"{folder}/{name}" if folder else name)
        if what & _IS_FOLDER and what & _CAME and concerned:
            self._listen_below(
                f"{folder}/{name}" if folder else name
            )  # one that moved gets its new name here
        return concerned if not (what & _IS_FOLDER and what & _ATTRIB) else set()

    def _listen_below(self, top: str) -> None:
        """Listen to a folder first and look into it then, so that nothing comes into it unheard."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            path = f"{self._base}/{folder}"
            try:
                watch = _checked(self._libc.inotify_add_watch(self._fd, os.fsencode(path), _WANTED))
                self._folders[watch] = folder
                with os.scandir(path) as entries:
                    below = [
                        f"{folder}/{at.name}".lstrip("/")
                        for at in entries
                        if at.is_dir(follow_symlinks=False)
                    ]
            except (
                FileNotFoundError,
                NotADirectoryError,
                PermissionError,
            ):  # it went again, or is closed to us
                if folder == EVERYTHING:
                    raise
            else:
                waiting += filter(_concerned, below if folder != _OBSIDIAN else ())


def _concerned(path: str) -> set[str]:
    """What a change at a path bears on: nothing when it is hidden, but for the vault's conventions."""
    if path == _OBSIDIAN:
        return set(
            CONVENTION_FILES
        )  # made or moved as a whole, its files are not announced one by one
    if path not in CONVENTION_FILES and any(part.startswith(".") for part in path.split("/")):
        return set()
    while not is_unicode(path):  # no note has such a name: its folder is looked at
        path = path.rpartition("/")[0]
    return {path}


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


def _identity(root: Path) -> tuple[int, int] | None:
    """Which folder is at the root: another after it was replaced or (un)mounted, None when there is none."""
    with suppress(OSError):
        facts = os.stat(root)
        return facts.st_dev, facts.st_ino
    return None
