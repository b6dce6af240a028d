"""Update the index of a program that has no background thread, by reading only changed files."""

from __future__ import annotations

import logging
import sys
import threading
import time

from simplemem.index.service import IndexService
from simplemem.settings.model import IndexSettings
from simplemem.store.vault_index import IndexKeeper
from simplemem.vault.source import EVERYTHING, NoteSource, Watcher

_LOG = logging.getLogger(__name__)


class CatchUp:
    """Indexes the paths that the operating system reports as changed, or compares the whole vault.

    Guards the watch, and which generation of the index was compared with the whole vault last. An
    index that replaces another one has a new generation.
    """

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        keeper: IndexKeeper,
        settings: IndexSettings,
    ) -> None:
        self._vault = vault
        self._index = index
        self._keeper = keeper
        self._settings = settings
        self._guard = threading.Lock()
        self._watch: Watcher | None = None
        self._compared_at = 0.0
        self._compared_generation: int | None = None

    def catch_up(self) -> None:
        """Finish interrupted writes, and index everything that was saved up to this moment.

        Indexes the paths that were reported as changed. Compares the whole vault instead if the
        reports are not complete, the last comparison is older than `index.scan_minutes`, or the
        index is incomplete. Raises a SimplememError if that fails; the next call then compares
        everything.
        """
        with self._guard:
            self._vault.finish_interrupted()
            generation = self._compared_generation
            # Whatever fails from here on, the next call compares everything.
            self._compared_generation = None

            paths = self._changed_paths(generation)
            if EVERYTHING in paths or self._is_long_ago() or self._keeper.is_incomplete:
                self._compare_all()
            else:
                self._keeper.look_at(paths)
            self._compared_generation = self._index.seen_generation

    def _changed_paths(self, generation: int | None) -> set[str]:
        """Return the paths that may have changed since the index had this generation.

        It is {EVERYTHING} if nothing was watched, or the index has another generation now.
        """
        if self._watch is None or generation != self._index.generation:
            return {EVERYTHING}
        return self._watch.paths(0)

    def _is_long_ago(self) -> bool:
        """Return whether the settings say that everything is due to be compared again."""
        seconds = time.monotonic() - self._compared_at
        return seconds > 60 * self._settings.scan_minutes

    def _compare_all(self) -> None:
        """Compare the whole vault with the index, and watch it from then on.

        The settings may forbid to watch. An earlier watch ends.
        """
        self.end()
        if self._settings.watch == "auto":
            # Outside Linux, the system reports a change only a moment after it.
            poll = sys.platform != "linux"
            self._watch = self._vault.watch(poll=poll, poll_seconds=0, warn=_LOG.debug)
        self._keeper.compare_all()
        self._compared_at = time.monotonic()

    def end(self) -> None:
        """Stop watching; do nothing if nothing is watched."""
        if self._watch is not None:
            self._watch.close()
