"""Paths of the vault that may have changed: told by the operating system, or found by looking about.

Everything reported is a hint: the vault path of a file or a folder where something may be different now, "" for the whole
vault. A reported folder stands for all that is below it. What really changed is for the reader to find out, by stat and
hash: editors save in many ways, and the kind and the order of events say little (limits.md F). This never reads a note,
never writes, and keeps nothing that matters.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol, Self

from simplemem.errors import SimplememError
from simplemem.vault.disk import entry_at
from simplemem.vault.obsidian import CONVENTION_FILES
from simplemem.vault.paths import Beneath, is_unicode
from simplemem.vault.place import is_silent, mounted_on
from simplemem.vault.scan import walk

EVERYTHING = ""  # the path of the vault itself: anything may have changed, look at all of it
_QUIET_MS = 20  # quiet time that ends a batch: this is the latency (limits.md F)
_MOST_MS = 100  # longest time a batch is held back while changes keep coming
_PULSE_MS = 1_000  # how often the watcher looks up to see whether the root is still the same folder
_MANY = 1_000  # paths; beyond that a look through the whole vault is no dearer
_UNTOLD_SECONDS = 30.0  # how long after an event all is looked at, where nobody tells of events that were lost


class Listener(Protocol):
    """What tells of changes below a folder: `Inotify` on Linux, watchfiles elsewhere. Made anew when it says EVERYTHING."""

    def changed(self, timeout_ms: int, quiet_ms: int = 0, most_ms: int = 0) -> set[str]: ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


def listen(base: str) -> Listener:
    """Begin to listen to a folder and all below it. OSError or RuntimeError: the system refuses."""
    if sys.platform.startswith("linux"):
        from simplemem.vault.inotify import Inotify

        return Inotify(base)
    return Watchfiles(base)


def concerned(path: str) -> set[str]:
    """What a change at a path bears on: nothing when it is hidden, but for the vault's conventions."""
    if path == ".obsidian":
        return set(CONVENTION_FILES)  # made or moved as a whole, its files are not announced one by one
    if path not in CONVENTION_FILES and any(part.startswith(".") for part in path.split("/")):
        return set()
    while not is_unicode(path):  # no note has such a name: its folder is looked at
        path = path.rpartition("/")[0]
    return {path}


class Watcher:
    """Calls `on_change` with sets of vault paths, in a thread of its own, from `start` until `stop`.

    When `start` returns, every later change will be reported: so start first, then scan. `warn` is told, once, when the
    system can't do the watching and the vault is looked through every `poll_seconds` instead; and when `on_change` raises,
    after which the paths are reported again. A missing root is waited for.
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
        self.root = root
        self._on_change = on_change
        self._warn = warn
        self._poll_seconds = poll_seconds
        self._polling = poll
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._identity: tuple[int, int] | None = None  # of the root folder; None while it isn't there
        self._base = ""  # the root without links
        self._listener: Listener | None = None
        self._seen: dict[str, object] = {}  # what the last look found, when polling
        self._look_took = 0.0
        self._owed: set[str] = set()  # what `on_change` has not taken yet

    @property
    def mode(self) -> Literal["watching", "polling", "off"]:
        """How changes are found at present."""
        if self._thread is None or not self._thread.is_alive():
            return "off"
        return "polling" if self._polling else "watching"

    def start(self) -> None:
        """Begin; does nothing when it has begun. A stopped watcher stays stopped: make another."""
        if self._thread is None:
            self._open()
            self._thread = threading.Thread(target=self._run, name="simplemem-watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End. No call of `on_change` begins after this; one under way is waited for, within reason."""
        self._stop.set()
        if (listener := self._listener) is not None:
            listener.wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                changed = self._next()
                if EVERYTHING in changed or _identity(self.root) != self._identity:
                    self._open()
                    changed = {EVERYTHING}
                self._report(changed | self._owed)
        finally:
            self._close()

    def _next(self) -> set[str]:
        """The next batch of hints; nothing when a pulse has passed quietly."""
        if self._listener is not None:
            try:
                return self._listener.changed(_PULSE_MS, _QUIET_MS, _MOST_MS)
            except (OSError, RuntimeError):  # more folders than the system allows: opening it anew says so
                self._stop.wait(0.1)
                return {EVERYTHING}
        # A vault that takes long to look through is looked at seldom.
        pause = max(self._poll_seconds, 20 * self._look_took) if self._identity is not None else 0.25
        if self._stop.wait(pause) or self._identity is None:
            return set()
        before, self._seen = self._seen, self._look()
        return {path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path)}

    def _report(self, changed: set[str]) -> None:
        if not changed or self._stop.is_set():
            return
        try:
            self._on_change(changed)
        except Exception as failure:  # noqa: BLE001 - whatever it was, watching goes on and the paths come again
            if not self._owed:
                self._warn(f"Taking in changes failed and will be tried again: {failure!r}")
            self._owed = changed
            self._stop.wait(min(self._poll_seconds, 2.0))
        else:
            self._owed = set()

    def _open(self) -> None:
        """Begin with the folder that is at the root now, or note that there is none."""
        self._close()
        self._identity, self._base = _identity(self.root), os.path.realpath(self.root)
        if self._identity is None:
            return
        if not self._polling:
            kind = mounted_on(self._base)
            if is_silent(kind):
                self._poll_from_now_on(f"a {kind} disk doesn't announce what others change on it")
        if not self._polling:
            try:
                self._listener = listen(self._base)
            except FileNotFoundError:
                self._identity = None  # it went away just now; the thread waits for it
            except (ImportError, OSError, RuntimeError) as failure:
                self._poll_from_now_on(_reason(failure))
        if self._polling:
            self._seen = self._look()

    def _close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def _poll_from_now_on(self, reason: str) -> None:
        self._polling = True
        every = f"It is looked through every {self._poll_seconds:g} seconds instead."
        self._warn(f"{self.root} can't be watched: {reason}. {every}")

    def _look(self) -> dict[str, object]:
        """Every file that matters and what could not be seen, with what differs after a change."""
        began = time.monotonic()
        try:
            with Beneath(self._base) as here:
                listing = walk(here)
                found: dict[str, object] = {name: entry_at(here, name) for name in CONVENTION_FILES}
        except (OSError, SimplememError):  # the root went, which is seen next
            return self._seen
        self._look_took = time.monotonic() - began
        found |= {entry.path: entry for entry in listing.entries}
        return found | {problem.path: problem for problem in listing.problems}


class RecentChanges:
    """What has changed in the vault since this was last asked, from the kernel's own list: no waiting, no walk.

    A change is in the list before the program that made it goes on, so who begins this, then looks through the vault once
    and asks here from then on, knows of every file that differs. Where the kernel keeps no such list, or has lost some of
    it, it says that it does not know. One thread asks.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._identity: tuple[int, int] | None = None
        self._listener: Listener | None = None

    def begin(self) -> None:
        """Listen from now on, where that is possible."""
        self.end()
        self._identity, base = _identity(self._root), os.path.realpath(self._root)
        # What another machine changes nobody tells, and watchfiles hears of a change a moment after it.
        if sys.platform.startswith("linux") and not is_silent(mounted_on(base)):
            with suppress(OSError):  # too many listeners, too many folders: then every time all is looked at
                self._listener = listen(base)

    def paths(self) -> set[str] | None:
        """Files and folders where something may be different since this was last asked; None when that is not known."""
        if self._listener is None or _identity(self._root) != self._identity:
            return None
        paths: set[str] = set()
        try:
            while changed := self._listener.changed(0):
                paths |= changed
                if EVERYTHING in paths or len(paths) > _MANY:
                    return None
        except OSError:
            return None
        return paths

    def end(self) -> None:
        """Listen no more."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None


class Watchfiles:
    """The listener of macOS and Windows. It does not tell of lost events: after some were heard, all is looked at."""

    def __init__(self, base: str) -> None:
        from watchfiles._rust_notify import RustNotify

        self._prefix = base.rstrip(os.sep) + os.sep
        self._stop = threading.Event()
        self._native = RustNotify([base], False, False, 0, True, False)
        self._untold = float("inf")  # when to look at everything

    def changed(self, timeout_ms: int, quiet_ms: int = 0, most_ms: int = 0) -> set[str]:
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

    def wake(self) -> None:
        self._stop.set()

    def close(self) -> None:
        self._native.close()


def _identity(root: Path) -> tuple[int, int] | None:
    """Which folder is at the root: another after it was replaced or (un)mounted, None when there is none."""
    try:
        facts = os.stat(root)
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino)


def _reason(failure: Exception) -> str:
    """Why watching failed, with what would help where that is known."""
    if isinstance(failure, OSError) and failure.errno == errno.ENOSPC:
        return "this system's limit of watched folders is reached (fs.inotify.max_user_watches raises it)"
    if isinstance(failure, OSError) and failure.errno in (errno.EMFILE, errno.ENFILE):
        return "too many files or watchers are open (fs.inotify.max_user_instances, ulimit -n)"
    return str(failure) or type(failure).__name__
