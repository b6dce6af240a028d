"""Notify functions of this process about notes that changed, whichever process changed them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from simplemem.errors import SimplememError
from simplemem.index.api import Mark
from simplemem.index.engine import Damaged
from simplemem.index.service import IndexService
from simplemem.note.names import name_of
from simplemem.vault.values import Access

_LOG = logging.getLogger(__name__)
_NEVER_NOTIFIED = -1  # no revision of a note

ChangeCallback = Callable[[frozenset[str]], None]


class Listeners:
    """The functions that want to know which notes have changed.

    Remembers the last revision of each note that they were notified of, so that each change is
    announced once, also if several scans see it.
    """

    def __init__(self, index: IndexService, access: Access) -> None:
        self.subscribers: list[ChangeCallback] = []
        self._index = index
        self._access = access
        self._guard = threading.Lock()
        self._notified_revisions: dict[str, int | None] = {}  # by path; None: the note is gone
        # Up to where a server that is not the leader has followed the index, and its notes then.
        self._seen_mark: Mark | None = None
        self._seen_paths: set[str] = set()

    def subscribe(self, listener: ChangeCallback) -> None:
        """Call a function with the names of notes that change from now on."""
        self.subscribers.append(listener)

    def notify(self, paths: Iterable[str]) -> None:
        """Call the listeners with the names of notes that changed, unless they know this change.

        Hidden notes are left out. An error of a listener is logged.
        """
        if not self.subscribers:
            return
        news = self._record_news(paths)
        if not news:
            return

        names = frozenset(name_of(path) for path in news)
        for listener in tuple(self.subscribers):
            try:
                listener(names)
            except Exception:  # noqa: BLE001
                # The change is made: this must not look like its failure.
                _LOG.exception("%r, which listens to changes, raised an error", listener)

    def _record_news(self, paths: Iterable[str]) -> list[str]:
        """Return the paths whose latest change was not announced yet, and remember it as announced.

        Hidden paths are left out.
        """
        visible = {path for path in paths if not self._access.hides(path)}
        with self._guard:
            revisions: dict[str, int] = {}
            with suppress(SimplememError, Damaged):
                rows = self._index.rows(visible)
                revisions = {path: row.rev for path, row in rows.items()}

            news = []
            for path in visible:
                revision = revisions.get(path)
                if self._notified_revisions.get(path, _NEVER_NOTIFIED) != revision:
                    self._notified_revisions[path] = revision
                    news.append(path)
        return news

    def notify_of_others(self) -> None:
        """Notify the listeners of what another process has indexed since the last call.

        The first call only remembers the current state.
        """
        changes = self._index.since(self._seen_mark)
        if changes.mark == self._seen_mark:
            return

        current_paths = set(self._index.rows())
        if self._seen_mark is not None:
            deleted = self._seen_paths - current_paths
            self.notify({row.path for row in changes.notes} | deleted)
        self._seen_mark = changes.mark
        self._seen_paths = current_paths
