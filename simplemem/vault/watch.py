"""Paths of the vault that may have changed: told by the operating system, or found by looking about.

Everything reported is a hint: the vault path of a file or a folder where something may be different now,
"" for the whole vault. A reported folder stands for all that is below it. What really changed is for the
reader to find out, by stat and hash: editors save in many ways, and the kind and the order of events say
little (limits.md F). This never reads a note, never writes, and keeps nothing that matters.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from simplemem.vault.obsidian import CONVENTION_FILES
from simplemem.vault.place import is_silent, mounted_on

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

    from simplemem.vault.inotify import Inotify


EVERYTHING = ""  # the path of the vault itself: anything may have changed, look at all of it
STEP_MS = 20  # quiet time that ends a batch: this, not the debounce, is the latency (limits.md F)
DEBOUNCE_MS = 100  # longest time a batch is held back while changes keep coming
PULSE_MS = 250  # how often the watcher looks up to see whether the root is still the same folder
QUIET_PULSE_MS = 1_000  # the same where the kernel itself tells when the root goes
MANY = 1_000  # a batch this large may be the rest of a queue that overflowed, and nobody tells us of that
FAILURES, FAILURES_SECONDS = 5, 60.0  # watching that breaks this often is given up

Stamp = tuple[int, int, int, int]


class Watcher:
    """Calls `on_change` with sets of vault paths, in a thread of its own, from `start` until `stop`.

    When `start` returns, every later change will be reported: so start first, then scan. `warn` is told,
    once, when the system can't do the watching and the vault is looked through every `poll_seconds` instead;
    and when `on_change` raises, after which the paths are reported again. A missing root is waited for.
    """

    def __init__(
        self,
        root: Path,
        on_change: Callable[[set[str]], None],
        *,
        poll: bool = False,
        poll_seconds: float = 2.0,
        warn: Callable[[str], None],
        own: bool = sys.platform.startswith("linux"),
    ) -> None:
        self.root = root
        self._on_change = on_change
        self._warn = warn
        self._poll_seconds = poll_seconds
        self._polling = poll
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._identity: tuple[int, int] | None = None  # of the root folder; None while it isn't there
        self._base = ""  # the root as events name it: absolute, without links
        self._native: Inotify | _Watchfiles | None = None
        self._own = own  # on Linux the kernel is asked by ourselves, elsewhere through watchfiles
        self._seen: dict[str, Stamp] = {}  # what the last look found, when polling
        self._look_took = 0.0
        self._lost = False  # the watching has to begin anew
        self._new_folders: dict[str, float] = {}  # reported once more when they have settled
        self._failures: list[float] = []
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
        native = self._native
        if native is not None:
            native.wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                changed: set[str] = set()
                if self._native is not None:
                    changed = self._listen(self._native)
                elif self._identity is not None:
                    changed = self._look_again()
                else:
                    self._stop.wait(PULSE_MS / 1000)
                if self._lost or identity(self.root) != self._identity:
                    self._open()
                    changed = {EVERYTHING}
                self._tell(changed | self._owed)
        finally:
            self._close()

    def _tell(self, changed: set[str]) -> None:
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
        self._lost = False
        self._identity = identity(self.root)
        if self._identity is None:
            return
        self._base = os.path.realpath(self.root)
        if not self._polling:
            kind = mounted_on(self._base)
            if is_silent(kind):
                self._poll_from_now_on(f"a {kind} disk doesn't announce what others change on it")
            else:
                self._open_native()
        if self._polling:
            self._seen = self._look()
            self._lost = False

    def _open_native(self) -> None:
        try:
            self._native = _own_notifier(self._base) if self._own else _Watchfiles(self._base, self._stop)
        except FileNotFoundError:
            self._identity = None  # it went away just now; the thread waits for it
        except (ImportError, OSError, RuntimeError) as failure:
            self._poll_from_now_on(_reason(failure))

    def _close(self) -> None:
        native, self._native = self._native, None
        self._seen = {}
        self._new_folders = {}
        if native is not None:
            native.close()

    def _poll_from_now_on(self, reason: str) -> None:
        self._polling = self._lost = True
        self._warn(
            f"{self.root} can't be watched: {reason}. "
            f"It is looked through every {self._poll_seconds:g} seconds instead."
        )

    # --- told by the operating system -----------------------------------------------------------------

    def _listen(self, native: Inotify | _Watchfiles) -> set[str]:
        """The next batch of hints; nothing when a pulse has passed quietly."""
        try:
            events = native.watch(DEBOUNCE_MS, STEP_MS, QUIET_PULSE_MS if self._own else PULSE_MS)
        except (OSError, RuntimeError) as failure:
            # A name that isn't Unicode, for one. The notifier repeats the error for ever: it needs replacing.
            self._note_failure(failure)
            return {EVERYTHING}
        changed = {EVERYTHING} if len(events) >= MANY and not self._own else set()
        for kind, named in events:
            path = vault_path(self._base, named)
            changed |= concerned(path)
            if path == EVERYTHING and kind == _DELETED:
                self._lost = True  # a folder made in its place can have the same inode number
            elif kind == _ADDED and not self._own and os.path.isdir(named):
                self._new_folders[path] = time.monotonic() + PULSE_MS / 1000
        return changed | self._settled_folders()

    def _note_failure(self, failure: Exception) -> None:
        now = time.monotonic()
        self._lost = True
        self._failures = [when for when in self._failures if now - when < FAILURES_SECONDS] + [now]
        if len(self._failures) >= FAILURES:
            self._poll_from_now_on(_reason(failure))

    def _settled_folders(self) -> set[str]:
        """New folders, a moment later: what came into them before they were watched was not announced."""
        now = time.monotonic()
        settled = {path for path, due in self._new_folders.items() if due <= now}
        for path in settled:
            del self._new_folders[path]
        if settled and sys.platform.startswith("linux"):
            self._check_for_room(os.path.join(self._base, *min(settled).split("/")))
        return set().union(*map(concerned, settled))

    def _check_for_room(self, folder: str) -> None:
        """A new folder over the system's limit is silently left out: see if one more is granted."""
        try:
            _notifier(folder, recursive=False).close()
        except (FileNotFoundError, NotADirectoryError, PermissionError, RuntimeError):
            return  # gone again, closed to us, too many open files: says nothing about the limit
        except OSError as failure:
            self._poll_from_now_on(_reason(failure))

    # --- found by looking -----------------------------------------------------------------------------

    def _look_again(self) -> set[str]:
        """What differs from the last look. A vault that takes long to look through is looked at seldom."""
        if self._stop.wait(max(self._poll_seconds, 20 * self._look_took)):
            return set()
        before, self._seen = self._seen, self._look()
        return {path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path)}

    def _look(self) -> dict[str, Stamp]:
        """Every file and folder that matters, with what differs after a change. Cut short by `stop`."""
        began = time.monotonic()
        found = {name: _stamp(os.path.join(self._base, name)) for name in CONVENTION_FILES}
        waiting = [EVERYTHING]
        while waiting and not self._stop.is_set():
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._base, folder)) as listing:
                    entries = [entry for entry in listing if not entry.name.startswith(".")]
            except OSError:
                found[folder] = _UNREADABLE
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    found[path] = (entry.inode(), 0, 0, 0)
                    waiting.append(path)
                else:
                    found[path] = _stamp(entry.path)
        self._look_took = time.monotonic() - began
        return found


_MOST = 1_000  # paths; beyond that a look through the whole vault is no dearer


class RecentChanges:
    """Begun before a look through the whole vault, it tells from then on what to look at again. One thread asks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._base = ""
        self._identity: tuple[int, int] | None = None
        self._kernel: Inotify | None = None

    def begin(self) -> None:
        """Listen from now on, where that is possible."""
        self.end()
        self._identity, self._base = identity(self._root), os.path.realpath(self._root)
        if not sys.platform.startswith("linux") or is_silent(mounted_on(self._base)):
            return  # nobody tells what another machine changes there
        from simplemem.vault.inotify import Inotify

        with suppress(OSError):  # too many listeners, too many folders: then every time all is looked at
            self._kernel = Inotify(self._base)

    def paths(self) -> set[str] | None:
        """Files and folders where something may be different since this was last asked; None when that is not known."""
        if self._kernel is None or identity(self._root) != self._identity:
            return None
        found: set[str] = set()
        try:
            while events := self._kernel.watch(0, 0, 0):
                for _, named in events:
                    found |= concerned(vault_path(self._base, named))
                if EVERYTHING in found or len(found) > _MOST:
                    return None
        except OSError:
            return None
        return found

    def end(self) -> None:
        """Listen no more."""
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None


_ADDED, _DELETED = 1, 3  # watchfiles.Change, without importing it
_UNREADABLE: Stamp = (-1, -1, -1, -1)


def _notifier(folder: str, *, recursive: bool) -> RustNotify:
    """A running notifier of watchfiles; raises OSError or RuntimeError when the system refuses."""
    from watchfiles._rust_notify import RustNotify

    # ignore_permission_denied stays off: it would also swallow the watch limit, and leave unwatched every
    # folder that comes after the first refused one.
    return RustNotify([folder], False, False, 0, recursive, False)


class _Watchfiles:
    """The notifier of watchfiles, asked as our own is."""

    def __init__(self, base: str, stop: threading.Event) -> None:
        self._native = _notifier(base, recursive=True)
        self._stop = stop

    def watch(self, most_ms: int, step_ms: int, timeout_ms: int) -> set[tuple[int, str]]:
        answer = self._native.watch(most_ms, step_ms, timeout_ms, self._stop)
        return answer if isinstance(answer, set) else set()

    def wake(self) -> None:
        """It looks for the end by itself."""

    def close(self) -> None:
        self._native.close()


def _own_notifier(folder: str) -> Inotify:
    """A listener of our own; raises OSError when the system refuses."""
    from simplemem.vault.inotify import Inotify

    return Inotify(folder)


def _stamp(file: str) -> Stamp:
    try:
        facts = os.stat(file, follow_symlinks=False)
    except OSError:
        return _UNREADABLE
    return (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino)


def _reason(failure: Exception) -> str:
    """Why watching failed, with what would help where that is known."""
    text = str(failure)
    if "watch limit" in text or "os error 28" in text:
        return "this system's limit of watched folders is reached (fs.inotify.max_user_watches raises it)"
    if "os error 24" in text:
        return "too many files or watchers are open (fs.inotify.max_user_instances, ulimit -n)"
    return text or type(failure).__name__


def identity(root: Path) -> tuple[int, int] | None:
    """Which folder is at the root: another after it was replaced or (un)mounted, None when there is none."""
    try:
        facts = os.stat(root)
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino)


def vault_path(base: str, named: str) -> str:
    """An event's path as a vault path; everything when it isn't below the root as we know it."""
    inside = base.rstrip(os.sep) + os.sep
    path = named[len(inside) :].replace(os.sep, "/") if named.startswith(inside) else EVERYTHING
    while not path.isascii() and not _is_unicode(path):  # no note has such a name: its folder is looked at
        path = path.rpartition("/")[0]
    return path


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def concerned(path: str) -> set[str]:
    """What a change at `path` bears on: nothing when it is hidden, but for the vault's conventions."""
    if path == ".obsidian":
        return set(CONVENTION_FILES)  # made or moved as a whole, its files are not announced one by one
    hidden = any(part.startswith(".") for part in path.split("/"))
    return set() if hidden and path not in CONVENTION_FILES else {path}
