"""Commits of what our tools changed, made behind the answers: a write never waits for one, and never fails by one.

Off unless the person's own settings say otherwise. What waits is in memory: what a process that died had not committed yet
is in the working tree, like any edit of the person's, and theirs to commit.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from simplemem.config import GitSettings
from simplemem.note.names import name_of
from simplemem.vault.vault import Vault, Version

_LOG = logging.getLogger(__name__)
_SOON, _LATE, _LATEST = 0.05, 2.0, 300.0  # seconds until it is tried again, doubled each time; what takes long is told
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
        self._ends: float | None = None
        self.said: list[str] = []  # why changes wait, and which are left to the person; each told once
        if settings.commit != "off" and not vault.read_only:
            vault.on_written = self.written

    def written(self, operation: str) -> None:
        """A change is made, and about to be answered."""
        if not is_in_git(self._vault.root):
            return
        with self._guard:
            self._waiting.append(operation)
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
                self._guard.wait_for(lambda: self._waiting or self._ends is not None)
                operation, ends = next(iter(self._waiting), None), self._ends
            if operation is None:
                return
            try:
                self._commit(operation)
            except Exception as error:  # noqa: BLE001  (the thread must outlive whatever it meets)
                is_busy = isinstance(error, Busy)  # which is mostly over in a moment
                if not is_busy or pause > _LATE:
                    self._say(f"changes wait to be committed to git: {error}")
                if ends is not None and (not is_busy or time.monotonic() > ends):
                    return
                with self._guard:
                    self._guard.wait(pause if ends is None else _SOON)
                pause = min(pause * 2, _LATEST)
            else:
                pause = _SOON
                with self._guard:
                    self._waiting.remove(operation)

    def _commit(self, operation: str) -> None:
        """Commit what an operation did to each note; it is the person's to commit when a text of it is no longer kept."""
        from simplemem import git

        patches, versions = [], self._vault.history.log.group(operation)
        for version in versions if any(version.effects for version in versions) else ():
            before, after = (None if sha is None else self._vault.history.kept(sha) for sha in version[9:11])
            if (before is None and version.before) or (after is None and version.after):
                return self._say(f"not committed to git, but left to you: the text of {version.id} is no longer kept")
            patches.append((version.path, version.new_path or version.path, before, after))
        if patches:
            try:
                when = int(datetime.fromisoformat(versions[-1].when).timestamp())
            except (ValueError, OverflowError):
                when = int(time.time())
            if why := git.commit(self._vault.root, patches, message(versions), when):
                self._say(f"not committed to git, but left to you: {why}")
        return None

    def _say(self, sentence: str) -> None:
        if sentence not in self.said:
            self.said.append(sentence)
            _LOG.warning("%s", sentence)


def message(versions: Sequence[Version]) -> str:
    """What an operation did, and as trailers who asked, by which tool, and why. It comes from agents and from names of
    notes: it is cut, and nothing in it can pass for a line of its own."""
    moved = {each: f" to {name_of(each.new_path)}" if each.new_path else "" for each in versions}
    did = [f"{each.op} {name_of(each.path)}{moved[each]}" for each in versions]
    listed = [f"- {_line(each)}\n" for each in did[:_MOST_LISTED]] if len(did) > 1 else []
    asked = {each: getattr(versions[0], field) for each, field in _TRAILERS.items()}
    trailers = [f"Simplemem-{key}: {line}\n" for key, value in asked.items() if (line := _line(value))]
    subject = f"{len(did)} notes changed" if listed else _line(did[0], 100)
    return "\n".join(["simplemem: " + subject + "\n", *(["".join(listed)] if listed else []), "".join(trailers)])


_TRAILERS = {"Actor": "who", "Tool": "tool", "Reason": "reason", "Version": "group"}


def _line(text: str, most: int = _LONGEST_LINE) -> str:
    """One line of printable text: what could hold two lines could hold a trailer of somebody else's."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else words[: most - 1] + "…"
