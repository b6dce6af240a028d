"""A server's background: one thread that keeps the index in step, and tells who listens what changed.

Of several servers on an index one leads: it watches, scans and embeds. The others index their own writes, look twice at
what they return, and try for the lead now and then. Nothing here is needed for an answer to be right.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from simplemem.errors import SimplememError
from simplemem.index.failures import Damaged
from simplemem.index.sidecar import Sidecar
from simplemem.index.sync import Stopped
from simplemem.vault.lock import Leadership
from simplemem.vault.watch import EVERYTHING

if TYPE_CHECKING:
    from simplemem.vault.watch import Watcher

_LOG = logging.getLogger(__name__)
_FOLLOW_SECONDS = 1.0


class Kept(Protocol):
    """What the background does to a store."""

    root: Path
    index: Sidecar

    def catch_up(self) -> None: ...

    def check_index(self) -> None: ...

    def look_at(self, paths: set[str]) -> None: ...

    def fill_vectors(self, stopped: Callable[[], bool]) -> float | None: ...

    def thin_history(self) -> None: ...

    def tell_what_others_changed(self) -> None: ...


class Keeper:
    """The background thread of one store. `start` returns at once; `stop` ends within a note's work."""

    def __init__(
        self, store: Kept, *, embed: bool, scan_seconds: float, watch: str, warn: Callable[[str], None] = _LOG.warning
    ) -> None:
        self._store = store
        self._embed = embed
        self._scan_seconds = scan_seconds
        self._watch = watch
        self._warn = warn
        self._leadership = Leadership(store.index.path.with_suffix(".leader"))
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._dirty: set[str] = set()
        self._guard = threading.Lock()
        self._scan_wanted = True
        self._fill_wanted = True
        self._check_wanted = True  # each leader asks once whether the index was looked over lately
        self._fill_at = float("inf")  # when to try again what an embedder could not do
        self.settled = threading.Event()  # the first scan is done
        self._thread = threading.Thread(target=self._run, name="simplemem-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def scan_soon(self) -> None:
        """The index was replaced or doubts itself: look through the whole vault."""
        self._scan_wanted = True
        self._wake.set()

    def fill_soon(self) -> None:
        """A note was written: its vectors are wanted."""
        self._fill_wanted = True
        self._wake.set()

    def _paths_changed(self, paths: set[str]) -> None:
        """The watcher's hint. `EVERYTHING` asks for a look through the whole vault."""
        with self._guard:
            self._scan_wanted = self._scan_wanted or EVERYTHING in paths
            self._dirty |= paths - {EVERYTHING}
        self._wake.set()

    def _run(self) -> None:
        watcher: Watcher | None = None
        last_scan = 0.0
        try:
            while not self._stop.is_set():
                leads = self._leadership.held()
                if leads and watcher is None and self._watch != "off":
                    watcher = self._started_watcher()
                    self._scan_wanted = True  # what changed before the watching began
                due = leads and time.monotonic() - last_scan > self._scan_seconds
                if self._scan_wanted or due:
                    self._scan_wanted = False
                    self._carefully(self._store.catch_up)
                    last_scan = time.monotonic()
                    if not self._stop.is_set():
                        self.settled.set()
                self._look_at_hints()
                if (self._fill_wanted or time.monotonic() >= self._fill_at) and not self._stop.is_set():
                    self._fill_wanted, self._fill_at = False, float("inf")
                    self._carefully(self._store.thin_history)  # something was written
                    if self._embed:
                        self._carefully(self._fill)
                if leads and self._check_wanted and not self._is_interrupted():
                    self._check_wanted = False
                    self._carefully(self._store.check_index)
                if not leads:
                    self._carefully(self._store.tell_what_others_changed)
                self._sleep(self._scan_seconds - (time.monotonic() - last_scan) if leads else _FOLLOW_SECONDS)
        finally:
            if watcher is not None:
                watcher.stop()
            self._leadership.resign()

    def _started_watcher(self) -> Watcher:
        from simplemem.vault.watch import Watcher

        watcher = Watcher(self._store.root, self._paths_changed, poll=self._watch == "poll", warn=self._warn)
        watcher.start()
        return watcher

    def _look_at_hints(self) -> None:
        with self._guard:
            paths, self._dirty = self._dirty, set()
        if paths:
            self._carefully(lambda: self._store.look_at(paths))
            self._fill_wanted = True

    def _fill(self) -> None:
        again = self._store.fill_vectors(self._is_interrupted)
        self._fill_at = time.monotonic() + again if again is not None else float("inf")

    def _is_interrupted(self) -> bool:
        """Whether something more urgent than vectors waits. What is left is taken up right after."""
        if self._stop.is_set():
            return True
        with self._guard:
            waiting = bool(self._dirty) or self._scan_wanted
        if waiting:
            self._fill_wanted = True
        return waiting

    def _carefully(self, work: Callable[[], None]) -> None:
        """A failure in the background is told and tried again with the next scan; it never ends the thread."""
        try:
            work()
        except Stopped:
            self._stop.set()
        except (SimplememError, Damaged, OSError) as error:
            _LOG.warning("keeping the index in step failed: %s", error)
        except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
            _LOG.exception("keeping the index in step failed unexpectedly")

    def _sleep(self, seconds: float) -> None:
        with self._guard:
            busy = bool(self._dirty) or self._scan_wanted or self._fill_wanted
        if not busy:
            seconds = min(seconds, self._fill_at - time.monotonic())
            self._wake.wait(timeout=max(0.05, seconds))
        self._wake.clear()
