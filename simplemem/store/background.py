"""The background thread of a server, which keeps the index up to date.

Of several servers on one vault, one is the leader: it watches the files, scans them at intervals
and makes vectors. The others index their own writes, notify their listeners of what the leader
indexed, and try to become the leader at each turn.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from simplemem.errors import SimplememError
from simplemem.index.engine import Damaged, Engine
from simplemem.index.service import IndexService
from simplemem.index.sync_pass import Stopped
from simplemem.index.updater import IndexUpdater
from simplemem.settings.model import IndexSettings
from simplemem.store.embedding import Embedding
from simplemem.store.listeners import Listeners
from simplemem.store.vault_index import IndexKeeper
from simplemem.vault.source import EVERYTHING, NoteSource, Watcher

_LOG = logging.getLogger(__name__)
_FIRST_RETRY_SECONDS = 0.5  # doubled with each failure
_MAX_RETRY_SECONDS = 30.0
_FOLLOWER_SECONDS = 1.0  # how often a server that is not the leader looks around
_MIN_REST_SECONDS = 0.05
_STOP_SECONDS = 5.0  # that `stop` waits for the thread
# If changes are found by polling, the vault is compared again after 50 times as long as comparing
# it takes, so that polling needs 2 % of the time at most.
_MIN_POLL_SECONDS = 2.0
_POLL_FACTOR = 50

# A query waits for the index until it has taken a second of CPU time, and on a busy machine, where
# that takes longer, for 8 seconds at most.
_MAX_CPU_SECONDS = 1.0
_MAX_WAIT_SECONDS = 8.0
_MAX_REMOTE_WAIT_SECONDS = 1.0  # for vectors of a service, which cost time and no CPU
_MILESTONE_POLL_SECONDS = 0.01

T = TypeVar("T")


class Milestone:
    """A state of the index that queries wait for, such as "all notes are read".

    Any thread may wait. Guards when the work towards it began.
    """

    def __init__(self) -> None:
        self._reached = threading.Event()
        self.begin()

    def begin(self) -> None:
        """Record that the work towards it begins (again): from now on it is not reached."""
        self._cpu_before = time.process_time()
        self._began_at = time.monotonic()
        self._reached.clear()

    def reach(self) -> None:
        """Record that it is reached, and wake those who wait."""
        self._reached.set()

    @property
    def is_reached(self) -> bool:
        """Whether the state is reached since the work towards it last began."""
        return self._reached.is_set()

    def wait(self, timeout: float) -> bool:
        """Wait for it at most `timeout` seconds; return whether it was reached."""
        return self._reached.wait(timeout)

    def wait_for_small_work(self, max_wait: float = _MAX_WAIT_SECONDS) -> bool:
        """Wait until it is reached, or the work has taken a second of CPU time or `max_wait`.

        The times count from the last `begin`; the CPU time is that of the whole process. Returns
        whether it was reached.
        """
        while not self._reached.wait(_MILESTONE_POLL_SECONDS):
            cpu_seconds = time.process_time() - self._cpu_before
            seconds = time.monotonic() - self._began_at
            if cpu_seconds > _MAX_CPU_SECONDS or seconds > max_wait:
                return False
        return True


class Background:
    """The background thread of one store. It runs from the constructor until `stop`.

    Guards what is to be done (a scan, paths to look at, missing vectors) and when to try again what
    failed.
    """

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        database: Engine,
        updater: IndexUpdater,
        *,
        keeper: IndexKeeper,
        embedding: Embedding,
        listeners: Listeners,
        settings: IndexSettings,
        embed: bool,
    ) -> None:
        self._vault = vault
        self._index = index
        self._updater = updater
        self._keeper = keeper
        self._embedding = embedding
        self._listeners = listeners
        self._embed = embed
        self._watch_mode = settings.watch
        self._scan_seconds = settings.scan_minutes * 60
        self._leadership = database.leadership()
        self._watch: Watcher | None = None
        self._stop = threading.Event()
        self._wake = threading.Event()

        self._changed_paths: set[str] = set()
        self._is_scan_wanted = True
        self._is_fill_wanted = True
        self._scanned_at = 0.0
        self._is_checked = False  # each leader checks once whether the index is intact
        self._fill_at = math.inf  # when to try again what the embedder could not do
        self._retry_at = math.inf  # when to scan again because something failed
        self._retry_seconds = _FIRST_RETRY_SECONDS

        # Held while the wanted work and the milestones change, so that they agree.
        self._milestones = threading.Lock()
        self._scanned = Milestone()  # the vault was compared with the index
        self._embedded = Milestone()  # also, the missing vectors are made, as far as they can be
        self._thread = threading.Thread(target=self._run, name="simplemem-background", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which finishes the note that it is working on.

        Waits a few seconds for it, unless the thread itself calls this.
        """
        self._stop.set()
        self.wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=_STOP_SECONDS)

    def wake(self, *, scan: bool = False, fill: bool = False) -> None:
        """Wake the thread, to `scan` the whole vault or to make missing vectors (`fill`).

        Returns at once. Those who wait for the thread then wait for the new work too.
        """
        with self._milestones:
            self._is_scan_wanted = self._is_scan_wanted or scan
            self._is_fill_wanted = self._is_fill_wanted or fill
            if scan:
                self._scanned.begin()
            # If it is not reached yet, the work towards it goes on. To begin again would restart
            # the time limit of the queries that wait for it.
            if (scan or fill) and self._embedded.is_reached:
                self._embedded.begin()
        self._wake.set()
        if self._watch is not None:
            self._watch.wake()

    @property
    def is_settled(self) -> bool:
        """Whether the whole vault was compared with the index since that was last asked for."""
        return self._scanned.is_reached

    def wait_until_settled(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the comparison of the vault with the index.

        Returns whether it is done.
        """
        return self._scanned.wait(timeout)

    def wait_until_ready(self, *, vectors: bool) -> None:
        """Wait until all notes are indexed; with `vectors`, also until they have vectors.

        Returns before if that takes more than a second of CPU time, or 8 seconds. Returns at once
        in the background thread itself, and after `stop` was called.
        """
        if threading.current_thread() is self._thread or self._stop.is_set():
            return
        is_scanned = self._scanned.wait_for_small_work()
        if not is_scanned or not vectors:
            return

        max_wait = _MAX_WAIT_SECONDS
        if self._embedding.is_remote():
            max_wait = _MAX_REMOTE_WAIT_SECONDS
        self._embedded.wait_for_small_work(max_wait)

    def _run(self) -> None:
        """Do what is to be done until `stop` is called; then close the watch, and lead no more."""
        try:
            while not self._stop.is_set():
                self._take_turn()
        finally:
            if self._watch is not None:
                self._watch.close()
            self._leadership.release()

    def _take_turn(self) -> None:
        """Do what is to be done once, and wait until there is more."""
        is_leader = self._leadership.acquire_or_keep()
        if is_leader:
            self._begin_to_watch()
        self._update(is_leader=is_leader)
        if is_leader:
            self._check_index_once()
        else:
            self._follow_leader()
        self._wait_for_changes(self._seconds_to_rest(is_leader=is_leader))

    def _begin_to_watch(self) -> None:
        """Start the watch if there is none and the settings allow it; then also ask for a scan."""
        if self._watch is None and self._watch_mode != "off":
            is_polling = self._watch_mode == "poll"
            self._watch = self._vault.watch(poll=is_polling, warn=_LOG.warning)
            self._is_scan_wanted = True  # for what changed before the watch began

    def _check_index_once(self) -> None:
        """Check whether the index is intact, once per process, when nothing more urgent waits."""
        if not self._is_checked and not self._is_interrupted():
            self._is_checked = True
            self._attempt(self._index.check)

    def _follow_leader(self) -> None:
        """Fetch the revision that the leader has indexed, and notify of what it indexed."""
        self._attempt(self._fetch_indexed_revision)
        self._attempt(self._listeners.notify_of_others)

    def _fetch_indexed_revision(self) -> None:
        """Fetch the commit that the leader has indexed, so that the notes here include it.

        Does nothing if the notes have no revisions. Raises Unavailable if the network fails.
        """
        revisions = self._vault.revisions
        if revisions is not None:
            revisions.fetch(self._index.progress().commit)

    def _seconds_to_rest(self, *, is_leader: bool) -> float:
        """Return how many seconds to wait for a change until something is due without one."""
        has_work = self._is_scan_wanted or self._is_fill_wanted or bool(self._changed_paths)
        if has_work or self._stop.is_set():
            return 0.0

        now = time.monotonic()
        seconds = _FOLLOWER_SECONDS
        if is_leader:
            seconds = self._scanned_at + self._scan_seconds - now
        seconds_to_retry = min(self._fill_at, self._retry_at) - now
        return max(_MIN_REST_SECONDS, min(seconds, seconds_to_retry))

    def _wait_for_changes(self, seconds: float) -> None:
        """Wait up to `seconds` for a change of a file, or until another thread calls `wake`.

        Adds the paths that may have changed to `_changed_paths`. If they are not known, asks for a
        scan instead.
        """
        if self._watch is None:
            self._wake.wait(seconds)
            self._wake.clear()
            return

        paths = self._watch.paths(seconds)
        if EVERYTHING in paths:
            self._is_scan_wanted = True
        self._changed_paths |= paths - {EVERYTHING}

    def _update(self, *, is_leader: bool) -> None:
        """Scan if it is due, look at the paths that may have changed, and make missing vectors."""
        if self._is_scan_due(is_leader=is_leader):
            self._scan()

        paths = self._changed_paths
        self._changed_paths = set()
        if paths:
            self._attempt(partial(self._keeper.look_at, paths))
            self._is_fill_wanted = True

        is_fill_due = self._is_fill_wanted or time.monotonic() >= self._fill_at
        if is_fill_due and not self._stop.is_set():
            self._fill()

    def _is_scan_due(self, *, is_leader: bool) -> bool:
        """Return whether to scan: on request, a while after a failure, or regularly as the leader.

        Only the regular scan depends on `is_leader`.
        """
        now = time.monotonic()
        is_interval_over = is_leader and now - self._scanned_at > self._scan_seconds
        return self._is_scan_wanted or is_interval_over or now > self._retry_at

    def _scan(self) -> None:
        """Compare the whole vault with the index, and wake those who wait for that.

        They are woken also if it failed, but not if another scan was asked for meanwhile.
        """
        self._is_scan_wanted = False
        self._is_fill_wanted = True
        self._retry_at = math.inf

        began_at = time.monotonic()
        report = self._attempt(self._keeper.compare_all)
        if report is not None:
            self._retry_seconds = _FIRST_RETRY_SECONDS
        self._scanned_at = time.monotonic()
        if self._watch is not None:
            seconds = self._scanned_at - began_at
            self._watch.poll_seconds = max(_MIN_POLL_SECONDS, _POLL_FACTOR * seconds)

        with self._milestones:
            if not self._stop.is_set() and not self._is_scan_wanted:
                self._scanned.reach()

    def _fill(self) -> None:
        """Prune the history if that is due, and make missing vectors.

        Then wakes those who wait for vectors, also if some could not be made, but not if more work
        was asked for meanwhile.
        """
        self._is_fill_wanted = False
        self._attempt(self._keeper.prune_history)
        if self._embed:
            fill = partial(
                self._embedding.fill_in_background,
                self._updater.waiting,
                self._is_interrupted,
            )
            seconds = self._attempt(partial(self._index.with_retry, fill))
            self._fill_at = math.inf if seconds is None else time.monotonic() + seconds

        with self._milestones:
            if not self._is_fill_wanted and not self._is_scan_wanted:
                self._embedded.reach()

    def _is_interrupted(self) -> bool:
        """Return whether something more urgent than vectors waits, or the thread is to stop.

        Collects changes without waiting for them. If there are some, asks for vectors again, which
        are then made after the changes are indexed.
        """
        self._wait_for_changes(0.0)
        is_urgent = self._is_scan_wanted or bool(self._changed_paths)
        if is_urgent:
            self._is_fill_wanted = True
        return is_urgent or self._stop.is_set()

    def _attempt(self, work: Callable[[], T]) -> T | None:
        """Return the result of some work; None if it failed.

        A failure is logged and does not end the thread. After an expected one, another scan follows
        soon. Stopped is no failure: a scan was told to end because the store closes, so the thread
        ends too.
        """
        try:
            return work()
        except Stopped:
            self._stop.set()
        except (SimplememError, Damaged, OSError) as error:
            self._retry_later(error)
        except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
            _LOG.exception("the index could not be updated because of an unexpected error")
        return None

    def _retry_later(self, error: Exception) -> None:
        """Log a failure and plan another scan, later after each failure in a row.

        If a scan is planned already, does nothing.
        """
        if self._retry_at == math.inf:
            _LOG.warning("the index could not be updated: %s", error)
            self._retry_at = time.monotonic() + self._retry_seconds
            self._retry_seconds = min(2 * self._retry_seconds, _MAX_RETRY_SECONDS)
