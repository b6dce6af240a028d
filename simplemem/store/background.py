"""A server's background: one thread keeps the index up to date and tells who listens what changed. Of several servers
one leads: it watches, scans and embeds. The others index their own writes, and try for the lead now and then."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from simplemem.errors import SimplememError
from simplemem.index.engine import Damaged
from simplemem.index.sync import Stopped
from simplemem.note.names import name_of
from simplemem.vault.folder.watch import EVERYTHING, Watching

if TYPE_CHECKING:
    from simplemem.index.door import Mark
    from simplemem.index.sidecar import Sidecar
    from simplemem.store.core import Core
    from simplemem.vault.access import Access

_LOG = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds until what failed is tried again
# How long a question waits for the index: as long as a second of work takes. A busy machine may take a few for that.
_WORK_SECONDS = 1.0  # of CPU time
_MAX_WAIT = 8.0
_MAX_REMOTE_WAIT = 1.0  # for vectors of a service, which cost time and no work

T = TypeVar("T")
Listener = Callable[[frozenset[str]], None]


class Milestone:
    """A state of the index that questions wait for, such as "all notes are read". Any thread may wait."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self.begin()

    def begin(self) -> None:
        """The work towards it begins, or begins again."""
        self._work_before = time.process_time()
        self._began_at = time.monotonic()
        self._reached.clear()

    def reach(self) -> None:
        self._reached.set()

    @property
    def is_reached(self) -> bool:
        return self._reached.is_set()

    def wait(self, timeout: float) -> bool:
        """Wait so many seconds for it; whether it was reached."""
        return self._reached.wait(timeout)

    def wait_for_small_work(self, max_wait: float = _MAX_WAIT) -> bool:
        """Wait until it is reached or the work has taken a second; whether it was reached."""
        while not self._reached.wait(0.01):
            has_worked = time.process_time() - self._work_before > _WORK_SECONDS
            if has_worked or time.monotonic() - self._began_at > max_wait:
                return False
        return True


class Background:
    """The background thread of one store, started. `stop` ends within a note's work."""

    def __init__(self, core: Core, *, embed: bool) -> None:
        self._core, self._embed = core, embed
        self._scan_seconds = core.settings.index.scan_minutes * 60
        self._leadership = core.index.database.leadership()
        self._watch: Watching | None = None
        self._stop, self._wake = threading.Event(), threading.Event()
        self._hints: set[str] = set()
        self._scan_wanted = self._fill_wanted = True
        self._scanned_at = 0.0
        self._is_checked = False  # each leader asks once whether the index was checked lately
        self._fill_at = float("inf")  # when to try again what an embedder could not do
        self._again_at, self._waits = (
            float("inf"),
            _FIRST_WAIT,
        )  # when to look at all again, as something failed
        self._milestones = threading.Lock()  # between what is wanted and what was reached
        self.settled = Milestone()  # the vault was compared with the index
        self._embedded = Milestone()  # and the vectors that were missing are made, as far as can be
        self._thread = threading.Thread(target=self._run, name="simplemem-background", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self.ring()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def ring(self, *, scan: bool = False, fill: bool = False) -> None:
        """Wake the thread: to scan, as the index was replaced or doubts itself, or to embed what was written."""
        with self._milestones:
            self._scan_wanted, self._fill_wanted = (
                self._scan_wanted or scan,
                self._fill_wanted or fill,
            )
            if scan:
                self.settled.begin()
            if (
                scan or fill
            ) and self._embedded.is_reached:  # else the wait for it would begin again and again
                self._embedded.begin()
        self._wake.set()
        if self._watch is not None:
            self._watch.ring()

    @property
    def is_settled(self) -> bool:
        """Whether the whole vault was compared with the index since that was last asked for."""
        return self.settled.is_reached

    def wait_until_settled(self, timeout: float) -> bool:
        """Wait for the comparison of the vault with the index; return whether it is done."""
        return self.settled.wait(timeout)

    def wait_until_ready(self, *, vectors: bool) -> None:
        """Wait until the vault is indexed, with `vectors` until it is embedded, or until that has taken a second of work."""
        if threading.current_thread() is self._thread or self._stop.is_set():
            return
        if not self.settled.wait_for_small_work() or not vectors:
            return
        is_remote = self._core.embedding.is_remote()
        self._embedded.wait_for_small_work(_MAX_REMOTE_WAIT if is_remote else _MAX_WAIT)

    def _listen(self, seconds: float) -> None:
        """Take in what may have changed, and wait so long for it; `EVERYTHING` asks for a scan."""
        if self._watch is None:
            self._wake.wait(seconds)
            self._wake.clear()
            return
        paths = self._watch.paths(seconds)
        if EVERYTHING in paths:
            self._scan_wanted = True
        self._hints |= paths - {EVERYTHING}

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                leads = self._leadership.take_or_keep()
                watch = self._core.settings.index.watch
                if leads and self._watch is None and watch != "off":
                    self._watch = self._core.vault.watch(poll=watch == "poll", warn=_LOG.warning)
                    self._scan_wanted = True  # what changed before the watching began
                self._update(leads=leads)
                if leads and not self._is_checked and not self._is_interrupted():
                    self._is_checked = True
                    self._carefully(self._core.index.check)
                if not leads:
                    if self._core.vault.is_branch:  # what the leader has fetched, and indexed
                        self._carefully(
                            lambda: self._core.vault.reach(self._core.index.standing().commit)
                        )
                    self._carefully(self._core.listeners.tell_of_others)
                until_scan = self._scan_seconds - (time.monotonic() - self._scanned_at)
                seconds = min(self._fill_at, self._again_at) - time.monotonic()
                seconds = min(until_scan if leads else 1.0, seconds)  # a follower looks this often
                is_busy = (
                    bool(self._hints)
                    or self._scan_wanted
                    or self._fill_wanted
                    or self._stop.is_set()
                )
                self._listen(0.0 if is_busy else max(0.05, seconds))
        finally:
            if self._watch is not None:
                self._watch.close()
            self._leadership.release()

    def _update(self, *, leads: bool) -> None:
        """Scan if it is time, look at what was hinted at, and make the vectors that are missing."""
        is_due = time.monotonic() > self._again_at
        if (
            self._scan_wanted
            or is_due
            or (leads and time.monotonic() - self._scanned_at > self._scan_seconds)
        ):
            self._scan_wanted, self._fill_wanted = False, True
            began, self._again_at = time.monotonic(), float("inf")
            if self._carefully(self._core.compare_all):
                self._waits = _FIRST_WAIT
            self._scanned_at = time.monotonic()
            if (
                self._watch is not None
            ):  # where nothing is told of, looking takes a fiftieth of the time at most
                self._watch.poll_seconds = max(2.0, 50 * (self._scanned_at - began))
            with self._milestones:
                if not self._stop.is_set() and not self._scan_wanted:
                    self.settled.reach()
        paths, self._hints = self._hints, set()
        if paths:
            self._carefully(partial(self._core.look_at, paths))
            self._fill_wanted = True
        if (self._fill_wanted or time.monotonic() >= self._fill_at) and not self._stop.is_set():
            self._fill_wanted = False
            self._carefully(self._core.prune_history)  # something was written
            if self._embed:
                fill = partial(
                    self._core.embedding.fill_in_background,
                    self._core.rows.waiting,
                    self._is_interrupted,
                )
                again = self._carefully(partial(self._core.index.consistently, fill))
                self._fill_at = float("inf") if again is None else time.monotonic() + again
            with self._milestones:
                if not (self._fill_wanted or self._scan_wanted):
                    self._embedded.reach()

    def _is_interrupted(self) -> bool:
        """Whether something more urgent than vectors waits. What is left is taken up right after."""
        self._listen(0.0)
        if waits := bool(self._hints) or self._scan_wanted:
            self._fill_wanted = True
        return waits or self._stop.is_set()

    def _carefully(self, work: Callable[[], T]) -> T | None:
        """A failure in the background is logged and tried again with the next scan; it never ends the thread."""
        try:
            return work()
        except Stopped:
            self._stop.set()
        except (SimplememError, Damaged, OSError) as error:
            if self._again_at == float("inf"):  # not whatever else fails meanwhile
                _LOG.warning("the index could not be updated: %s", error)
                self._again_at = time.monotonic() + self._waits
                self._waits = min(2 * self._waits, _LONGEST_WAIT)
        except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
            _LOG.exception("the index could not be updated because of an unexpected error")
        return None


class Listeners:
    """Those who listen to one store. Each hears once of every change, whichever process made it."""

    def __init__(self, index: Sidecar, access: Access) -> None:
        self._index, self._access, self._guard = index, access, threading.Lock()
        self.heard_by: list[Listener] = []
        self._told: dict[
            str, int | None
        ] = {}  # the change of each note that was told last; None: that it went
        self._heard: Mark | None = (
            None  # up to which change of the index a follower was told of others...
        )
        self._heard_paths: set[str] = set()  # ...and the notes there were then

    def tell(self, paths: Iterable[str]) -> None:
        """Say which notes changed to all who listen, if nobody has told them of this very change. Not of hidden ones."""
        if not self.heard_by:
            return
        with self._guard:
            wanted, changes = {path for path in paths if not self._access.hides(path)}, {}
            with suppress(
                SimplememError, Damaged
            ):  # a change that is safe has not failed; it may be told of twice
                changes = {path: known.rev for path, known in self._index.known(wanted).items()}
            fresh = {
                path: changes.get(path)
                for path in wanted
                if self._told.get(path, -1) != changes.get(path)
            }
            self._told.update(fresh)
        if not fresh:
            return

        names = frozenset(map(name_of, fresh))
        for listener in tuple(self.heard_by):
            try:
                listener(names)
            except Exception:  # noqa: BLE001  (the change is made: an error of a listener must not look like its failure)
                _LOG.exception("%r, which listens to changes, raised an error", listener)

    def tell_of_others(self) -> None:
        """Tell what another process has indexed since this was last asked."""
        if (found := self._index.since(self._heard)).mark == self._heard:
            return
        there = set(self._index.known())
        if self._heard is not None:
            self.tell({known.path for known in found.notes} | (self._heard_paths - there))
        self._heard, self._heard_paths = found.mark, there


class CatchUp:
    """Catching up at the cost of what has changed, by the kernel's list of it; in doubt, by a look at all."""

    def __init__(self, core: Core) -> None:
        self._core, self._guard = core, threading.Lock()
        self._watch: Watching | None = None
        self._whole_at = 0.0
        self._whole: int | None = (
            None  # the generation of the index that was compared with the whole vault
        )

    def catch_up(self) -> None:
        """Have the index know all that was saved up to this moment."""
        core = self._core
        with self._guard:
            core.vault.finish_interrupted()
            whole, self._whole = (
                self._whole,
                None,
            )  # whatever fails from here on, the next time all is compared
            paths = (
                self._watch.paths(0)
                if self._watch is not None and whole == core.index.generation
                else {EVERYTHING}
            )
            long_ago = time.monotonic() - self._whole_at > 60 * core.settings.index.scan_minutes
            if EVERYTHING in paths or long_ago or core.is_in_doubt:
                self.end()
                if core.settings.index.watch == "auto":
                    # Other listeners than Linux's hear of a change a moment after it.
                    poll = sys.platform != "linux"
                    self._watch = core.vault.watch(poll=poll, poll_seconds=0, warn=_LOG.debug)
                core.compare_all()
                self._whole_at = time.monotonic()
            else:
                core.look_at(paths)
            self._whole = core.index.taken_up

    def end(self) -> None:
        if self._watch is not None:
            self._watch.close()
