"""Commits of what our tools changed, made behind the answers: a write never waits for one, and never fails by one.

Off unless the person's own settings say otherwise. A thread is begun by the first change that is to be committed; it
commits what every process on the vault has left waiting, so that whoever dies leaves nothing behind for good.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.config import GitSettings
from simplemem.errors import NotFound, SimplememError
from simplemem.vault.log import number_of
from simplemem.vault.vault import Vault, Version

if TYPE_CHECKING:
    from simplemem.vault.repository import Repository
    from simplemem.vault.uncommitted import Uncommitted

_LOG = logging.getLogger(__name__)
_SECONDS = 30.0  # for one commit, in the background
_LOCK_SECONDS = 20.0
_AGAIN = 5.0  # seconds until what had to wait is tried again, doubled each time up to...
_AGAIN_MOST = 300.0
_LONGEST_QUIET = 10  # a vault that is never quiet is committed after so many times the quiet that was asked for


class Committing:
    """The commits of one vault. Nothing is imported, started or looked at while it is off."""

    def __init__(self, vault: Vault, settings: GitSettings) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due: float | None = None  # when to commit; None: nothing waits
        self._first = 0.0  # when the oldest change that waits was made
        self._again = _AGAIN
        self._ending = False
        self._told: set[str] = set()
        self.said: list[str] = []  # what a person should know: why changes wait, and which are left to them

    @cached_property
    def _uncommitted(self) -> Uncommitted:
        from simplemem.vault.uncommitted import Uncommitted

        return Uncommitted(self._vault.root)

    @property
    def is_on(self) -> bool:
        return self._settings.commit != "off" and not self._vault.read_only

    def writing(self, version: Version) -> None:
        """A write begins: whatever becomes of this process, its commit is wanted once the log has it."""
        if not self.is_on or not self._is_in_git():
            return
        try:
            self._uncommitted.add(version)
        except (OSError, SimplememError) as error:
            self._say(f"a change will not be committed to git: {error}")

    def written(self) -> None:
        """A write is done, and about to be answered."""
        if self.is_on and self._is_in_git():
            self._want(0.0 if self._settings.commit == "each" else self._settings.quiet_seconds)

    def begin(self) -> None:
        """A server starts: what others left waiting is committed, once it is quiet."""
        if self.is_on and self._is_in_git() and self.waiting():
            self._want(self._settings.quiet_seconds)

    def waiting(self) -> int:
        """How many changes wait for their commit."""
        try:
            return self._uncommitted.count()
        except (OSError, SimplememError):
            return 0

    def state(self) -> dict[str, object]:
        """Whether changes are committed, and how many wait for it."""
        return {"commit": self._settings.commit, "waiting": self.waiting() if self.is_on else 0}

    def close(self, seconds: float) -> None:
        """Commit what waits, taking no longer than so: what is left, the next process takes up."""
        with self._guard:
            self._ending = True
            thread = self._thread
            self._guard.notify_all()
        if thread is not None:
            thread.join(seconds)

    def _want(self, seconds: float) -> None:
        now = time.monotonic()
        with self._guard:
            if self._due is None:
                self._first = now
            latest = self._first + _LONGEST_QUIET * self._settings.quiet_seconds
            self._due = min(now + seconds, max(latest, now))
            self._again = _AGAIN
            if self._thread is None and not self._ending:
                self._thread = threading.Thread(target=self._run, name="simplemem-commits", daemon=True)
                self._thread.start()
            self._guard.notify_all()

    def _run(self) -> None:
        self._settle()
        while True:
            with self._guard:
                while not self._ending and (self._due is None or time.monotonic() < self._due):
                    self._guard.wait(None if self._due is None else max(self._due - time.monotonic(), 0.0))
                ending, wanted, self._due = self._ending, self._due is not None, None
            if wanted:
                self._commit_all()
            if ending:
                return

    def _settle(self) -> None:
        """End what a process died over while its commit took its place, at once: its lock holds up the person's git."""
        from simplemem.vault import commit_begun, repository, uncommitted

        try:
            found = repository.find(self._vault.root)
        except (SimplememError, OSError):
            return  # whoever commits says so
        try:
            if found is None or not commit_begun.is_begun(Path(found.git_dir)):
                return
            with uncommitted.taking_turns(found.git_dir, _LOCK_SECONDS) as held, repository.asking(found) as git:
                if held:  # else whoever has the turn has seen to it
                    git.as_the_person_would("rev-parse", "--git-dir")  # whose repository is it?
                    commit_begun.settle(git)
        except (SimplememError, OSError) as error:
            _LOG.warning("what an interrupted commit left could not be cleared up yet: %s", error)

    def _commit_all(self) -> None:
        why, told = "", True
        try:
            from simplemem.vault import repository, uncommitted

            found = repository.find(self._vault.root)
            if found is None:
                self._uncommitted.done(self._known())
                return
            with uncommitted.taking_turns(found.git_dir, _LOCK_SECONDS) as held:
                if held:
                    why = self._commit_waiting(found)
                else:  # whoever commits just now may have looked before our change was there
                    why, told = "another process is committing", False
        except (SimplememError, OSError) as error:
            why = str(error)
        except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
            _LOG.exception("committing failed unexpectedly")
            return
        if not why:
            self._told.clear()
            return
        if told:
            count = self.waiting()
            changes = "1 change waits" if count == 1 else f"{count} changes wait"
            self._say(f"{changes} to be committed to git: {why}", about=why)
        with self._guard:
            if self._due is None:
                self._due, self._first = time.monotonic() + self._again, time.monotonic()
                self._again = min(self._again * 2, _AGAIN_MOST)

    def _commit_waiting(self, found: Repository) -> str:
        """Commit what waits; why some of it has to wait on, if it has."""
        from simplemem.vault import commits, repository

        why = ""
        groups = self._known()
        gone = self._taken_back(groups)
        committer = commits.Committer(self._text_of)
        for portion in _portions(groups, each=self._settings.commit == "each"):
            versions = [version for group in portion for version in groups[group] if version.id not in gone]
            if not versions:
                self._uncommitted.done(portion)
                continue
            with repository.asking(found, _SECONDS) as git:
                done = committer.commit(git, versions)
            self._uncommitted.done(group for group in portion if group not in done.held)
            why = why or done.why
            for sentence in done.left:
                self._say(f"not committed to git, but left to you: {sentence}")
        return why

    def _taken_back(self, groups: Mapping[str, list[Version]]) -> set[str]:
        """Those of the changes that wait whose note is again what it was before: by no change of ours, so that whoever
        did it does not want them. Looked at again under the lock, since a change may just be on its way to the log."""
        from simplemem.vault.taken_back import taken_back

        first = min(map(number_of, groups), default=0)

        def look() -> set[str]:
            since = self._vault.history.log.since(first)
            return taken_back(since, groups.keys(), self._hash_of)

        if not groups or not look():
            return set()
        with self._vault.lock():
            return look()

    def _hash_of(self, path: str) -> str | None:
        """The hash of what lies at a path, None when nothing does, "" when that cannot be told here."""
        if self._vault.access.hides(path):
            return ""
        try:
            return self._vault.read(path).sha256
        except NotFound:
            return None
        except SimplememError:
            return ""

    def _text_of(self, version: Version, sha256: str) -> bytes | None:
        """A text that a version speaks of: kept in the history, or still in the vault."""
        data = self._vault.history.kept(sha256)
        for path in self._places(version) if data is None else ():
            if self._vault.entry(path) is not None:
                file = self._vault.read(path)
                if file.sha256 == sha256:
                    return file.data
        return data

    def _places(self, version: Version) -> list[str]:
        """Where a note may lie that a version speaks of: it may have moved on since."""
        since = self._vault.history.log.since(version.number + 1)
        places = [version.path, version.new_path or version.path]
        for later in since:
            if later.path == places[-1] and later.new_path is not None:
                places.append(later.new_path)
        return places

    def _known(self) -> dict[str, list[Version]]:
        """The changes that wait, in their order. What was never done, or is not in the log any more, is forgotten."""
        waiting = self._uncommitted.waiting()
        groups: dict[str, list[Version]] = {name: [] for name in waiting}
        first, newest = min(map(number_of, waiting), default=0), 0
        for version in self._vault.history.log.since(first) if waiting else ():
            newest = version.number
            if version.group in groups:
                groups[version.group].append(version)
        known = {name: found for name, found in groups.items() if found and waiting[name].is_of(found[0])}
        gone = [
            name for name, mark in waiting.items() if name not in known and (number_of(name) <= newest or mark.is_old)
        ]
        self._uncommitted.done(gone)
        return known

    def _is_in_git(self) -> bool:
        """Whether a repository may be there: cheap enough for every write, and no git is started for it."""
        real = Path(os.path.realpath(self._vault.root))
        return any(os.path.lexists(folder / ".git") for folder in (real, *real.parents))

    def _say(self, sentence: str, about: str = "") -> None:
        """Say something to the person, once: on the standard error of a command, in the log of a server."""
        if (about or sentence) not in self._told:
            self._told.add(about or sentence)
            self.said.append(sentence)
            _LOG.warning("%s", sentence)


def _portions(groups: dict[str, list[Version]], *, each: bool) -> list[list[str]]:
    """Which changes make a commit together: each its own, or all of one actor's, so that each line has one author.

    Where two actors changed the same note their changes stay in order, a commit whenever it is the other's turn.
    """
    if each:
        return [[group] for group in groups]
    owners: dict[str, set[str]] = {}
    for versions in groups.values():
        for version in versions:
            for path in (version.path, version.new_path or version.path):
                owners.setdefault(path, set()).add(version.who)
    mixed = any(len(whose) > 1 for whose in owners.values())
    portions: dict[tuple[str, int], list[str]] = {}
    turn, last = 0, ""
    for group, versions in groups.items():
        who = versions[0].who if versions else ""
        turn += who != last if mixed else 0
        last = who
        portions.setdefault((who, turn), []).append(group)
    return list(portions.values())
