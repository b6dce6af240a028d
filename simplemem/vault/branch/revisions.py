"""The commits of a branch as the revisions of its notes, and what reports new ones."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pygit2

from simplemem.errors import Unavailable
from simplemem.note.names import is_path
from simplemem.obsidian.settings import SETTINGS_FILES
from simplemem.vault.branch.log import BranchLog
from simplemem.vault.source import EVERYTHING

_LOCAL_SECONDS = 0.25  # between two looks at a branch on this computer
_REMOTE_SECONDS = 2.0  # between two looks at a branch elsewhere
_OUT_OF_REACH = (Unavailable, OSError, pygit2.GitError)


class BranchRevisions:
    """The commits of a branch, each of which is a revision of all notes in it."""

    def __init__(self, log: BranchLog) -> None:
        self._log = log
        self._branch = log.branch

    def current(self) -> str:
        """Return the newest commit that is here, "" if there is none, and bring the log up to it.

        Fetches nothing. Raises Unavailable if the branch cannot be read.
        """
        return self._log.follow()

    def fetch(self, revision: str) -> bool:
        """Return whether the branch includes a commit, after fetching if it does not yet.

        Raises Unavailable if the network fails.
        """
        if self.is_ancestor(revision, self.current()):
            return True
        return self._branch.fetch() and self.is_ancestor(revision, self.current())

    def is_ancestor(self, revision: str, other: str) -> bool:
        """Return whether a commit is the other one, or one of its ancestors."""
        return self._branch.is_before(revision, other)

    def changed_paths(self, since: str, until: str) -> set[str] | None:
        """Return the paths of the files that differ between two commits; fetches if necessary.

        The repository must have `until`. Returns None if all files may differ: the branch does not
        continue `since`, or Obsidian's settings, on which every note depends, are among the
        changes. Raises Unavailable if the network fails.
        """
        if not self.fetch(since):
            return None
        paths = self._branch.changed_files(since, until)
        if not paths.isdisjoint(SETTINGS_FILES):
            return None
        return {path for path in paths if is_path(path)}


class BranchWatcher:
    """Reports the files that new commits change. Guards the last commit that was reported."""

    poll_seconds = 0.0

    def __init__(self, log: BranchLog, revisions: BranchRevisions) -> None:
        self._branch = log.branch
        self._revisions = revisions
        self._woken = threading.Event()
        self._last_fetch = time.monotonic()
        self._last_commit = ""
        with suppress(*_OUT_OF_REACH):
            self._last_commit = revisions.current()

    def wake(self) -> None:
        """End a wait, or the next one."""
        self._woken.set()

    def close(self) -> None:
        """Do nothing: no file is open."""

    def paths(self, seconds: float) -> set[str]:
        """Return the files that new commits have changed; wait up to `seconds` for one.

        `EVERYTHING` is the only one if any file may have changed.

        Returns an empty set if the time is over or `wake` was called. Never raises for a branch
        that is out of reach: it is tried again.
        """
        deadline = time.monotonic() + seconds
        interval = _REMOTE_SECONDS if self._branch.url else _LOCAL_SECONDS
        while True:
            with suppress(*_OUT_OF_REACH):  # the next look may succeed
                paths = self._changed_paths()
                if paths:
                    return paths

            remaining = deadline - time.monotonic()
            if remaining <= 0 or self._woken.wait(min(remaining, interval)):
                self._woken.clear()
                return set()

    def _changed_paths(self) -> set[str]:
        """Return what changed since the last reported commit; nothing if it is the newest.

        Fetches if that is due. May raise Unavailable.
        """
        if time.monotonic() - self._last_fetch > _REMOTE_SECONDS:
            self._last_fetch = time.monotonic()
            self._branch.fetch()

        newest = self._revisions.current()
        if newest == self._last_commit:
            return set()
        last_commit = self._last_commit
        self._last_commit = newest
        return self._revisions.changed_paths(last_commit, newest) or {EVERYTHING}
