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
from collections.abc import Sequence
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
_PATIENCE, _MOMENT = 2.0, 0.05  # another git at work is over in a moment
_AGAIN, _AGAIN_MOST = 5.0, 300.0  # seconds until what had to wait is tried again, doubled each time
_LONGEST_QUIET = 10  # a vault that is never quiet is committed after so many times the quiet that was asked for
_MOST_LISTED, _LONGEST_LINE = 30, 300
Operation = list[Version]


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
        self._due = math.inf
        self._first = 0.0  # when the oldest that waits was made
        self._ending = False
        self._ends = 0.0
        self._told: set[str] = set()
        self.said: list[str] = []  # what a person should know: why changes wait, and which are left to them
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
            if self._thread is None and not self._ending:
                self._thread = threading.Thread(target=self._run, name="simplemem-commits", daemon=True)
                self._thread.start()
            self._guard.notify_all()

    def state(self) -> dict[str, object]:
        """Whether changes are committed, and how many wait for it."""
        return {"commit": self._settings.commit, "waiting": len(self._waiting)}

    def close(self, seconds: float) -> None:
        """Commit what waits, taking no longer than so."""
        with self._guard:
            self._ending, self._ends = True, time.monotonic() + seconds
            self._guard.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        again = _AGAIN
        while True:
            with self._guard:
                while not self._ending and (left := self._due - time.monotonic()) > 0:
                    self._guard.wait(None if left == math.inf else left)
                wanted, self._due, ending = list(self._waiting), math.inf, self._ending
            try:
                why = self._commit(wanted)
            except Exception as error:  # noqa: BLE001  (the thread must outlive whatever it meets)
                why = str(error)
            if why:
                count = len(self._waiting)
                self._say(f"{count} change{' waits' if count == 1 else 's wait'} to be committed to git: {why}", why)
            if ending:
                return
            with self._guard:
                if why and self._due == math.inf:
                    self._due = time.monotonic() + again
            again = min(again * 2, _AGAIN_MOST) if why else _AGAIN

    def _say(self, sentence: str, about: str = "") -> None:
        """Say something to the person, once: on the standard error of a command, in the log of a server."""
        if (about or sentence) not in self._told:
            self._told.add(about or sentence)
            self.said.append(sentence)
            _LOG.warning("%s", sentence)

    # -- one round

    def _commit(self, wanted: Sequence[str]) -> str:
        """Commit operations, each by itself or in runs of one actor; why the rest has to wait, if it has."""
        from simplemem import git

        operations = [operation for each in wanted if (operation := self._vault.history.log.group(each))]
        gone = self._taken_back(number_of(wanted[0])) if wanted else set()
        runs = [[operation] for operation in operations]
        if self._settings.commit == "batch":
            runs = [list(run) for _, run in groupby(operations, key=lambda operation: operation[0].who)]
        for run in runs:
            patches = list(filter(None, (self._patches(operation, gone) for operation in run)))
            versions = [version for operation in run for version in operation]
            began = time.monotonic()
            while patches:
                try:
                    left = git.commit(self._vault.root, patches, message(versions), _seconds(versions[-1].when))
                except git.Busy as busy:
                    if time.monotonic() > (self._ends if self._ending else began + _PATIENCE):
                        return busy.message
                    time.sleep(_MOMENT)
                except (SimplememError, OSError) as error:
                    return str(error)
                else:
                    self._leave(left)
                    break
            done = {version.group for version in versions}
            with self._guard:
                self._waiting = [each for each in self._waiting if each not in done]
        with self._guard:  # what the log has no more
            self._waiting = [each for each in self._waiting if each not in wanted]
        self._told.clear()
        return ""

    def _patches(self, operation: Operation, gone: set[str]) -> list[Patch]:
        """What an operation did to each note, without what a person took back; nothing when a text is no longer kept."""
        from simplemem.git import Patch

        def text(sha256: str | None) -> bytes | None:
            data = None if sha256 is None else self._vault.history.kept(sha256)
            if data is None and sha256 is not None:
                raise NotFound(f"the text of {operation[0].id} is no longer kept")
            return data

        wanted = (version for version in operation if version.effects)
        wanted = (version for version in wanted if not gone.issuperset(path for path, _, _ in version.effects))
        try:
            return [Patch(v.path, v.new_path or v.path, text(v.before), text(v.after)) for v in wanted]
        except NotFound as error:
            self._leave([error.message])
            return []

    def _leave(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._say(f"not committed to git, but left to you: {sentence}")

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
            return "" if self._vault.access.hides(path) else self._vault.read(path).sha256
        except NotFound:
            return None
        except SimplememError:
            return ""


def _seconds(when: str) -> int:
    try:
        return int(datetime.fromisoformat(when).timestamp())
    except (ValueError, OverflowError):
        return int(time.time())


# -- what a commit says


def message(versions: Sequence[Version]) -> str:
    """What was done, and as trailers who asked, by which tool, and why. It comes from agents and from names of notes: it is
    cut, and nothing in it can pass for a line of its own."""
    did = list(dict.fromkeys(map(_did, versions)))
    notes = {version.new_path or version.path for version in versions}
    paragraphs = [f"simplemem: {_line(did[0], 100) if len(did) == 1 else f'{len(notes)} notes changed'}"]
    if len(did) > 1:
        more = [f"- and {len(did) - _MOST_LISTED} more"] if len(did) > _MOST_LISTED else []
        paragraphs.append("\n".join([*(f"- {_line(each)}" for each in did[:_MOST_LISTED]), *more]))
    trailers: list[str] = []
    for key, values in (
        ("Actor", [version.who for version in versions]),
        ("Tool", [version.tool for version in versions]),
        ("Reason", [version.reason for version in versions]),
        ("Version", [version.group for version in versions]),
    ):
        shown = [line for line in dict.fromkeys(map(_line, values)) if line]
        trailers += [f"Simplemem-{key}: {line}" for line in shown[:_MOST_LISTED]]
    return "\n\n".join([*paragraphs, "\n".join(trailers)]) + "\n"


def _did(version: Version) -> str:
    to = f" to {name_of(version.new_path)}" if version.new_path and version.new_path != version.path else ""
    return f"{version.op} {name_of(version.path)}{to}"


def _line(text: str, most: int = _LONGEST_LINE) -> str:
    """One line of printable text: what could hold two lines could hold a trailer of somebody else's."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else words[: most - 1] + "…"
