"""Paths of the vault that may have changed: told by the operating system, or found by looking about.

Everything reported is a hint: the vault path of a file or a folder where something may be different now, "" for the whole
vault. A reported folder stands for all that is below it. What really changed is for the reader to find out, by stat and
hash: editors save in many ways, and the kind and the order of events say little (limits.md F). This never reads a note,
never writes, and keeps nothing that matters.
"""

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
from pathlib import Path

from simplemem.errors import SimplememError
from simplemem.vault.disk import entry_at
from simplemem.vault.obsidian import CONVENTION_FILES
from simplemem.vault.paths import Beneath, is_unicode
from simplemem.vault.place import file_system, is_silent
from simplemem.vault.scan import walk

EVERYTHING = ""  # the path of the vault itself: anything may have changed, look at all of it
_QUIET_MS = 20  # quiet time that ends a batch: this is the latency (limits.md F)
_MOST_MS = 100  # longest time a batch is held back while changes keep coming
_PULSE_MS = 1_000  # how often the watcher looks up to see whether the root is still the same folder
_MANY = 1_000  # paths; beyond that a look through the whole vault is no dearer
_UNTOLD_SECONDS = 30.0  # how long after an event all is looked at, where nobody tells of events that were lost
_OBSIDIAN = ".obsidian"
_TOO_MANY = "too many files or watchers are open (fs.inotify.max_user_instances, ulimit -n)"
_REASONS: dict[int | None, str] = {
    errno.ENOSPC: "this system's limit of watched folders is reached (fs.inotify.max_user_watches raises it)",
    errno.EMFILE: _TOO_MANY,
    errno.ENFILE: _TOO_MANY,
}


def concerned(path: str) -> set[str]:
    """What a change at a path bears on: nothing when it is hidden, but for the vault's conventions."""
    if path == _OBSIDIAN:
        return set(CONVENTION_FILES)  # made or moved as a whole, its files are not announced one by one
    if path not in CONVENTION_FILES and any(part.startswith(".") for part in path.split("/")):
        return set()
    while not is_unicode(path):  # no note has such a name: its folder is looked at
        path = path.rpartition("/")[0]
    return {path}


class Watcher:
    """Calls `on_change` with sets of vault paths, in a thread of its own, until it is closed.

    Once it is made, every later change will be reported: so make it first, then scan. `warn` is told, once, when the
    system can't do the watching and the vault is looked through every `poll_seconds` instead. A missing root is waited for.
    """

    def __init__(
        self,
        root: Path,
        on_change: Callable[[set[str]], None],
        *,
        poll: bool = False,
        poll_seconds: float = 2.0,
        warn: Callable[[str], None],
    ) -> None:
        self.polling = poll  # it is looked about, not listened
        self._root, self._on_change, self._warn, self._poll_seconds = root, on_change, warn, poll_seconds
        self._stop = threading.Event()
        self._bell, self._rope = socket.socketpair()  # rung to end a wait
        self._identity: tuple[int, int] | None = None  # of the root folder; None while it isn't there
        self._listener: Listener | None = None
        self._open()
        self._thread = threading.Thread(target=self._run, name="simplemem-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End. No call of `on_change` begins after this; one under way is waited for, within reason."""
        self._stop.set()
        with suppress(OSError):  # it has ended
            self._rope.send(b".")
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                changed = self._next()
                if self._stop.is_set():
                    break
                if EVERYTHING in changed or _identity(self._root) != self._identity:
                    self._open()
                    changed = {EVERYTHING}
                if changed:
                    self._on_change(changed)
        finally:
            for each in (self._listener, self._bell, self._rope):
                if each is not None:
                    each.close()

    def _next(self) -> set[str]:
        """The next batch of hints; nothing when a pulse has passed quietly."""
        try:
            if self._listener is not None:
                return self._listener.changed(_PULSE_MS, _QUIET_MS, _MOST_MS)
        except (OSError, RuntimeError):  # more folders than the system allows: opening it anew says so
            self._stop.wait(0.1)
            return {EVERYTHING}
        self._stop.wait(0.25)  # until there is a root
        return set()

    def _open(self) -> None:
        """Begin with the folder that is at the root now, or note that there is none."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        self._identity, base, reason = _identity(self._root), os.path.realpath(self._root), ""
        if self._identity is None:
            return
        if not self.polling and is_silent(kind := file_system(base)):
            reason = f"a {kind} disk doesn't announce what others change on it"
        elif not self.polling:
            try:
                self._listener = listen(base, self._stop, self._bell.fileno())
            except FileNotFoundError:
                self._identity = None  # it went away just now; the thread waits for it
            except (ImportError, OSError, RuntimeError) as failure:
                reason = _REASONS.get(getattr(failure, "errno", None), str(failure) or type(failure).__name__)
        if reason:
            self.polling = True
            every = f"It is looked through every {self._poll_seconds:g} seconds instead."
            self._warn(f"{self._root} can't be watched: {reason}. {every}")
        if self.polling:
            self._listener = Polling(base, self._stop, self._poll_seconds)


class RecentChanges:
    """What has changed in the vault since this was last asked, from the kernel's own list: no waiting, no walk.

    A change is in the list before the program that made it goes on: who begins this, then looks through the vault once
    and asks here from then on, knows of every file that differs. One thread asks.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._identity, base = root, _identity(root), os.path.realpath(root)
        self._listener: Inotify | None = None
        # What another machine changes nobody tells, and watchfiles hears of a change a moment after it.
        if sys.platform == "linux" and not is_silent(file_system(base)):
            with suppress(OSError):  # too many listeners, too many folders: then every time all is looked at
                self._listener = Inotify(base)

    def paths(self) -> set[str] | None:
        """Files and folders where something may be different since this was last asked; None when that is not known."""
        if self._listener is None or _identity(self._root) != self._identity:
            return None
        paths: set[str] = set()
        with suppress(OSError):
            while changed := self._listener.changed(0, 0, 0):
                paths |= changed
                if EVERYTHING in paths or len(paths) > _MANY:
                    return None
            return paths
        return None

    def close(self) -> None:
        """Listen no more."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()


class Polling:
    """Looking through the vault every few seconds, or less often where that takes long."""

    def __init__(self, base: str, stop: threading.Event, seconds: float) -> None:
        self._base, self._stop, self._seconds = base, stop, seconds
        self._took, self._seen = 0.0, dict[str, object]()
        self._look()

    def changed(self, _timeout_ms: int, _quiet_ms: int, _most_ms: int) -> set[str]:
        if self._stop.wait(max(self._seconds, 20 * self._took)):
            return set()
        before = self._seen
        self._look()
        return {path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path)}

    def close(self) -> None:
        pass

    def _look(self) -> None:
        """Every file that matters and what could not be seen, with what differs after a change."""
        began = time.monotonic()
        with suppress(OSError, SimplememError), Beneath(self._base) as here:  # else the root went, which is seen next
            listing = walk(here)
            self._seen = {name: entry_at(here, name) for name in CONVENTION_FILES}
            self._seen |= {entry.path: entry for entry in listing.entries}
            self._seen |= {problem.path: problem for problem in listing.problems}
        self._took = time.monotonic() - began


class Watchfiles:
    """The listener of macOS and Windows. It does not tell of lost events: after some were heard, all is looked at."""

    def __init__(self, base: str, stop: threading.Event) -> None:
        from watchfiles._rust_notify import RustNotify

        self._prefix, self._stop = base.rstrip(os.sep) + os.sep, stop
        self._native = RustNotify([base], False, False, 0, True, False)
        self._untold = float("inf")  # when to look at everything
        self.close = self._native.close

    def changed(self, timeout_ms: int, quiet_ms: int, most_ms: int) -> set[str]:
        # It wakes after every quiet time to see whether something happened: longer than 50 ms is felt, shorter costs more.
        events = self._native.watch(most_ms, max(quiet_ms, 50), timeout_ms, self._stop)
        paths: set[str] = set()
        for _, path in events if isinstance(events, set) else ():
            if not path.startswith(self._prefix):
                return {EVERYTHING}
            paths |= concerned(path[len(self._prefix) :].replace(os.sep, "/"))
        now = time.monotonic()
        if len(paths) >= _MANY or now > self._untold:
            return {EVERYTHING}
        if paths:
            self._untold = min(self._untold, now + _UNTOLD_SECONDS)
        return paths


_MODIFIED = 0x2 | 0x8  # written to, closed after writing
_ATTRIB = 0x4  # times and rights
_CAME, _WENT = 0x80 | 0x100, 0x40 | 0x200  # moved to or created, moved from or deleted
_SELF_WENT, _UNMOUNTED = 0x400 | 0x800, 0x2000  # deleted or moved
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_WANTED = _MODIFIED | _ATTRIB | _CAME | _WENT | _SELF_WENT
_HOW = 0x1000000 | 0x2000000 | 0x4000000  # folders only, follow no link, nothing about what has no name any more
_HEAD = struct.Struct("iIII")  # watch, what happened, a number that ties two ends of a move, length of the name


class Inotify:
    """The listener of Linux: all folders of a vault. One thread asks.

    watchfiles, which does this elsewhere, follows links out of the vault (durability.md F36), drops the kernel's word that
    its queue overflowed (F72), wakes all the time, and does not know yet of some changes made just before it was asked.
    """

    def __init__(self, base: str, bell: int = -1) -> None:
        """Raises OSError when the system refuses: ENOSPC for too many folders, EMFILE for too many listeners. What can be
        read from `bell` ends a wait."""
        self._base = base
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}  # vault paths by the kernel's number
        self._fd = _checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._listen_below(EVERYTHING)
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        for fd in (self._fd, bell) if bell >= 0 else (self._fd,):
            self._poll.register(fd, select.POLLIN)

    def close(self) -> None:
        os.close(self._fd)

    def changed(self, timeout_ms: int, quiet_ms: int, most_ms: int) -> set[str]:
        """Paths where something happened. Waits for the first, then until it is quiet, but not for ever. EVERYTHING:
        something was lost, or the vault itself went, and a new listener is needed."""
        paths: set[str] = set()
        ends, wait = float("inf"), timeout_ms
        while time.monotonic() < ends and (ready := self._poll.poll(wait)):
            if all(fd != self._fd for fd, _ in ready):
                break  # the bell
            events, at = os.read(self._fd, 1 << 16), 0
            while at < len(events):
                watch, what, _, length = _HEAD.unpack_from(events, at)
                at += _HEAD.size + length
                paths |= self._event(watch, what, os.fsdecode(events[at - length : at].rstrip(b"\0")))
            ends, wait = min(ends, time.monotonic() + most_ms / 1000), quiet_ms
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
            if what & _CAME and _may_hold_notes(path):
                self._listen_below(path)  # one that moved is listened to already, and gets its new name here
            elif what & _ATTRIB:
                return set()  # times and rights of a folder
        return concerned(path)

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


Listener = Polling | Inotify | Watchfiles


def listen(base: str, stop: threading.Event, bell: int) -> Listener:
    """Begin to listen to a folder and all below it, until `stop`, of which the `bell` tells. OSError or RuntimeError: the
    system refuses. A listener that says EVERYTHING is to be made anew."""
    return Inotify(base, bell) if sys.platform == "linux" else Watchfiles(base, stop)


def _may_hold_notes(path: str) -> bool:
    return not path.rpartition("/")[2].startswith(".") or path == _OBSIDIAN


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
