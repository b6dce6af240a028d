"""The log as somebody sees it from whom notes are hidden: without the changes of those, and without their texts' hashes.

A note that was moved to a hidden place took its past there: it is not told under the names it had before either. If somebody
else took a note away, nothing says where to; it may have gone to a hidden place, so its past is not told while it is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from simplemem.errors import SimplememError
from simplemem.vault import disk
from simplemem.vault.access import Access
from simplemem.vault.log import Log, Version, no_version, number_of
from simplemem.vault.paths import Beneath


class _Note:
    """A note as the log knows it: where it lies by the last change of ours, or lay when we deleted it in a hidden place; ""
    once we deleted it elsewhere, None once another note has its place and nobody said where it went."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path: str | None = path


class SeenLog(Log):
    """What is hidden has no past either. Numbers are those of the whole log: whoever appends must not use one twice."""

    def __init__(self, whole: Log, access: Access) -> None:
        super().__init__(whole.root, by_path=whole.by_path)
        self._whole = whole
        self._access = access
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._until = 0
        self._at: dict[str, _Note] = {}
        self._of: dict[int, _Note | None] = {}  # which note a change is of; None: it names what is hidden
        self._speaking: dict[str, list[int]] = {}  # the changes that found or left a text

    def backwards(self, path: str | None = None, *, upto: int | None = None, by: str = "") -> Iterator[Version]:
        """All changes that may be seen, as `Log.backwards` has them."""
        self._follow()
        known: dict[_Note, bool] = {}
        for version in self._whole.backwards(path, upto=upto, by=by):
            note = self._of.get(version.number)
            if note is None:
                continue  # hidden, or added since: for the next question
            if note not in known:
                known[note] = self._is_told(note)
            if known[note]:
                yield version

    def find(self, version: str) -> Version:
        """The change of this id. A hidden one is refused as one that never was."""
        found = self._whole.find(version)
        self._follow()
        if not self._is_seen(found.number):
            raise no_version(version)
        return found

    def group(self, group: str) -> list[Version]:
        """The changes of one operation that may be seen."""
        self._follow()
        return [version for version in self._whole.group(group) if self._is_seen(version.number)]

    def next_number(self, here: Beneath | None = None) -> int:
        """One more than the last version in the whole log."""
        return self._whole.next_number(here)

    def knows(self, versions: Sequence[Version]) -> set[str]:
        """Which of these ids the whole log has already."""
        return self._whole.knows(versions)

    def speaks_of(self, sha: str) -> bool:
        """Whether a change that may be seen found or left this text."""
        self._follow()
        return any(self._is_seen(number) for number in self._speaking.get(sha, ()))

    def closed(self, groups: set[str]) -> set[str]:
        """Those of these operations that changed something hidden too."""
        self._follow()
        first = min(map(number_of, groups), default=0)
        found: set[str] = set()
        for version in self._whole.backwards() if groups else ():
            if version.number < first:
                break
            if version.group in groups and version.number <= self._until and not self._is_seen(version.number):
                found.add(version.group)
        return found

    def _is_seen(self, number: int) -> bool:
        note = self._of.get(number)
        return note is not None and self._is_told(note)

    def _is_told(self, note: _Note) -> bool:
        """Whether a note may have a past: it lies where it may be seen, or we deleted it where it could be."""
        if not note.path:
            return note.path is not None
        if self._access.hides(note.path):
            return False
        try:
            with Beneath(self.root, by_path=self.by_path) as here:
                return disk.look(here, note.path) is not None
        except (OSError, SimplememError):
            return False

    def _follow(self) -> None:
        """Take in what the log has that was not read yet."""
        with self._lock:
            fresh: list[Version] = []
            for version in self._whole.backwards():
                if version.number < self._until and not fresh:
                    self._forget()  # another log, which begins anew
                if version.number <= self._until:
                    break
                fresh.append(version)
            for version in reversed(fresh):
                self._take_in(version)

    def _put(self, note: _Note, path: str) -> _Note:
        """A note takes a place; the one that was there has gone, and not by us unless we deleted it."""
        before = self._at.get(path)
        if before is not None and before.path == path:
            before.path = None
        self._at[path] = note
        return note

    def _take_in(self, version: Version) -> None:
        path, new, number = version.path, version.new_path, version.number
        note = self._at.get(path)
        if version.op == "recovered":  # in a file of ours whose name does not tell of which note it is, perhaps
            closed = self._access.hides(path) or path.rpartition("/")[2].startswith(".")
            note = note or _Note("")
        else:
            closed = self._access.hides(path) or (new is not None and self._access.hides(new))
            if note is None or version.op == "create":  # what had the name before was another note
                note = self._put(_Note(path), path)
            if new is not None:
                del self._at[path]
                self._put(note, new)
            note.path = new or (path if version.after is not None or closed else "")
        self._of[number] = None if closed else note
        for sha in {version.before, version.after} - {None} if not closed else ():
            self._speaking.setdefault(str(sha), []).append(number)
        self._until = number
