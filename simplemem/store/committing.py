"""Commits of what our tools changed, made behind the answers: a write never waits for one, and never fails by one.

Off unless the person's own settings say otherwise. What waits is in memory: what a process that died had not committed yet
is in the working tree, like any edit of the person's, and theirs to commit.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.config import GitSettings
from simplemem.errors import NotFound, SimplememError
from simplemem.note.names import name_of
from simplemem.vault.history import number_of
from simplemem.vault.vault import Vault, Version

if TYPE_CHECKING:
    from simplemem.git import Patch

_LOG = logging.getLogger(__name__)
_SOON, _LATE, _LATEST = 0.05, 2.0, 300.0  # seconds until it is tried again, doubled each time; what takes long is told
_LONGEST_QUIET = 10  # a vault that is never quiet is committed after so many times the quiet that was asked for
_MOST_LISTED, _LONGEST_LINE = 30, 300


def is_in_git(root: Path) -> bool:
    """Whether a repository may be there: cheap enough for every write, and libgit2 is not loaded for it."""
    real = Path(os.path.realpath(root))
    return any(os.path.lexists(folder / ".git") for folder in (real, *real.parents))


class Committing:
    """The commits of one vault. Nothing is imported, started or looked at while it is off."""

    def __init__(self, vault: Vault, settings: GitSettings) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: list[str] = []  # operations by the id of their first version
        self._due, self._first = math.inf, 0.0  # when to commit, and when the oldest that waits was made
        self._ends: float | None = None
        self.said: list[str] = []  # why changes wait, and which are left to the person; each told once
        if settings.commit != "off" and not vault.read_only:
            vault.on_written = self.written

    def written(self, operation: str) -> None:
        """A change is made, and about to be answered."""
        if not is_in_git(self._vault.root):
            return
        now, quiet = time.monotonic(), 0.0 if self._settings.commit == "each" else self._settings.quiet_seconds
        with self._guard:
            self._first = self._first if self._waiting else now
            self._waiting.append(operation)
            self._due = min(now + quiet, max(self._first + _LONGEST_QUIET * quiet, now))
            if self._thread is None and self._ends is None:
                self._thread = threading.Thread(target=self._run, name="simplemem-commits", daemon=True)
                self._thread.start()
            self._guard.notify_all()

    def state(self) -> dict[str, object]:
        """Whether changes are committed, and how many wait for it."""
        return {"commit": self._settings.commit, "waiting": len(self._waiting)}

    def close(self, seconds: float) -> None:
        """Commit what waits, taking no longer than so."""
        with self._guard:
            self._ends = time.monotonic() + seconds
            self._guard.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        from simplemem.git import Busy

        pause = _SOON
        while True:
            with self._guard:
                while self._ends is None and (left := self._due - time.monotonic()) > 0:
                    self._guard.wait(None if left == math.inf else left)
                wanted, ends, self._due = list(self._waiting), self._ends, math.inf
            try:
                self._commit(wanted)
            except Exception as error:  # noqa: BLE001  (the thread must outlive whatever it meets)
                is_busy = isinstance(error, Busy)  # which is mostly over in a moment
                if not is_busy or pause > _LATE:
                    self._say(f"changes wait to be committed to git: {error}")
                if ends is not None and (not is_busy or time.monotonic() > ends):
                    return
                if ends is not None:
                    time.sleep(_SOON)
                with self._guard:
                    self._due = min(self._due, time.monotonic() + pause)
                pause = min(pause * 2, _LATEST)
            else:
                pause = _SOON
                if ends is not None:
                    return

    def _say(self, sentence: str) -> None:
        if sentence not in self.said:
            self.said.append(sentence)
            _LOG.warning("%s", sentence)

    # -- one round

    def _commit(self, wanted: Sequence[str]) -> None:
        """Commit operations, each by itself or in runs of one actor."""
        from simplemem import git

        operations = [operation for each in wanted if (operation := self._vault.history.log.group(each))]
        gone = self._taken_back(number_of(wanted[0])) if wanted else set()
        runs = [[operation] for operation in operations]
        if self._settings.commit == "batch":
            runs = [list(run) for _, run in groupby(operations, key=lambda operation: operation[0].who)]
        done = set(wanted) - {operation[0].group for operation in operations}  # what the log has no more
        for run in runs:
            patches = list(filter(None, (self._patches(operation, gone) for operation in run)))
            versions = [version for operation in run for version in operation]
            try:
                when = int(datetime.fromisoformat(versions[-1].when).timestamp())
            except (ValueError, OverflowError):
                when = int(time.time())
            for left in git.commit(self._vault.root, patches, message(versions), when) if patches else ():
                self._leave(left)
            done |= {version.group for version in versions}
            with self._guard:
                self._waiting = [each for each in self._waiting if each not in done]

    def _patches(self, operation: Iterable[Version], gone: set[str]) -> list[Patch]:
        """What an operation did to each note, without what a person took back; nothing when a text is no longer kept."""
        from simplemem.git import Patch

        patches = []
        for version in operation:
            texts = [None if sha is None else self._vault.history.kept(sha) for sha in (version.before, version.after)]
            if (texts[0] is None and version.before) or (texts[1] is None and version.after):
                self._leave(f"the text of {version.id} is no longer kept")
                return []
            if not gone.issuperset(path for path, _, _ in version.effects):
                patches.append(Patch(version.path, version.new_path or version.path, *texts))
        return patches

    def _leave(self, why: str) -> None:
        self._say(f"not committed to git, but left to you: {why}")

    def _taken_back(self, since: int) -> set[str]:
        """Notes that are again as they were before all changes since then, by none of them: by a person's `git checkout`,
        say, who does not want them committed. Under the lock, as a change may be on its way to the log."""
        ends: dict[str, tuple[str | None, str | None]] = {}
        with self._vault.lock():
            for version in self._vault.history.log.since(since):
                for path, before, after in version.effects:
                    ends[path] = (ends[path][0] if path in ends else before, after)
            return {path for path, (first, last) in ends.items() if first != last and self._hash_of(path) == first}

    def _hash_of(self, path: str) -> str | None:
        """The hash of what lies at a path, None when nothing does, "" when that cannot be told here."""
        try:
            return self._vault.read(path).sha256
        except NotFound:
            return None
        except SimplememError:
            return ""


# -- what a commit says


def message(versions: Sequence[Version]) -> str:
    """What was done, and as trailers who asked, by which tool, and why. It comes from agents and from names of notes: it is
    cut, and nothing in it can pass for a line of its own."""
    to = {
        each: f" to {name_of(each.new_path)}" if each.new_path and each.new_path != each.path else ""
        for each in versions
    }
    did = list(dict.fromkeys(f"{each.op} {name_of(each.path)}{to[each]}" for each in versions))
    notes = {version.new_path or version.path for version in versions}
    paragraphs = [f"simplemem: {_line(did[0], 100) if len(did) == 1 else f'{len(notes)} notes changed'}"]
    if len(did) > 1:
        paragraphs.append("\n".join(f"- {_line(each)}" for each in did[:_MOST_LISTED]))
    trailers: list[str] = []
    for key, field in (("Actor", "who"), ("Tool", "tool"), ("Reason", "reason"), ("Version", "group")):
        lines = filter(None, dict.fromkeys(_line(getattr(version, field)) for version in versions))
        trailers += [f"Simplemem-{key}: {line}" for line in list(lines)[:_MOST_LISTED]]
    return "\n\n".join([*paragraphs, "\n".join(trailers)]) + "\n"


def _line(text: str, most: int = _LONGEST_LINE) -> str:
    """One line of printable text: what could hold two lines could hold a trailer of somebody else's."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else words[: most - 1] + "…"
