"""Who wrote what in a vault: told from the log of our changes, and for whatever it does not explain, a person.

A note that no change of ours names is a person's without being read, and one that a single client made and changed is that
client's. Only where several wrote are earlier texts compared line by line (note/authors.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from simplemem.errors import SimplememError
from simplemem.note.authors import HUMAN, Authorship, Origin, State, origin_of, origins
from simplemem.store.authors_in_git import with_git
from simplemem.store.core import Core
from simplemem.vault.log import Version
from simplemem.vault.vault import File

_EMPTY = sha256(b"").hexdigest()
_FEW = 500  # notes: so many are looked up one by one
_MOST_KEPT = 5_000  # notes whose lines are remembered


@dataclass(frozen=True, slots=True)
class _Step:
    """What one change of ours found and left of a note."""

    number: int
    before: str | None
    after: str | None
    by: Origin


class Authors:
    """The authors of one vault, as far as the log goes or up to the change with the number `until`."""

    def __init__(self, core: Core, until: int | None = None) -> None:
        self._core = core
        self._until = until
        self._seen = 0  # the last change that was taken in
        self._steps: dict[str, list[_Step]] = {}  # by where each note is now
        self._lines: dict[tuple[str, bool], tuple[str, int, list[Origin]]] = {}
        self._found_at: object = None  # when it was last looked for notes that other programs renamed
        self._guard = threading.RLock()

    def of(self, path: str, *, git: bool = False) -> Authorship | None:
        """Who wrote which line of a note as it is now; None when it cannot be read. With `git` its commits are asked as
        well."""
        with self._guard:
            self._follow()
            self._find_again()
            file = self._read(path)
            if file is None:
                return None
            written = self._of(file, to_the_day=True)
        if not git or self._until is not None:
            return written
        return Authorship(written.text, with_git(self._core, file, written.origins))

    def _read(self, path: str) -> File | None:
        try:
            return self._core.vault.read(path)
        except SimplememError:
            return None

    def _of(self, file: File, *, to_the_day: bool) -> Authorship:
        path, sha256, text = file.path, file.sha256, file.data.decode("utf-8", "replace")
        steps = self._steps.get(path, [])
        last = steps[-1].number if steps else 0
        kept = self._lines.get((path, to_the_day))
        if kept is None or kept[:2] != (sha256, last):
            told = origins(text, self._states(path, steps, sha256), self._text, to_the_day=to_the_day)
            if len(self._lines) >= _MOST_KEPT:
                self._lines.clear()
            self._lines[path, to_the_day] = kept = sha256, last, told
        return Authorship(text, kept[2])

    def _states(self, path: str, steps: Sequence[_Step], sha256: str) -> list[State]:
        """Every state a note is known to have had, newest first. Between two changes of ours that do not meet, somebody
        changed it from outside."""
        states: list[State] = []
        after: str | None = sha256
        when = self._touched(path)
        for core in reversed(steps):
            if core.after != after:
                states.append(State(after, replace(HUMAN, when=when)))
            if core.before != core.after:  # else it was moved, which writes nothing
                states.append(State(core.after, core.by))
            after, when = core.before, core.by.when
        if after is not None:
            states.append(State(after, HUMAN))
        return states

    def _touched(self, path: str) -> str:
        entry = self._core.entry(path)
        try:
            return "" if entry is None else datetime.fromtimestamp(entry.mtime_ns / 1e9, UTC).isoformat()
        except (ValueError, OverflowError, OSError):
            return ""  # a file may bear any time, also one before all calendars

    def _text(self, sha256: str) -> str | None:
        data = self._core.vault.history.content(sha256)
        return None if data is None else data.decode("utf-8", "replace")

    def _follow(self) -> None:
        """Take in what the log has that was not seen yet."""
        fresh: list[Version] = []
        for version in self._core.vault.history.log.backwards():
            if version.number <= self._seen:
                break
            if self._until is None or version.number <= self._until:
                fresh.append(version)
        self._take_in(reversed(fresh))

    def _state(self) -> tuple[object, ...]:
        index = self._core.index
        return self._seen, index.generation, index.changed_since(1 << 60)[0]

    def _find_again(self) -> None:
        """A note that another program gave a new name keeps its authors: it is the one that has the text which the note
        that is gone had at last, or had it when a change of ours found it. Where two could be meant, none is."""
        state = self._state()
        if self._until is not None or state == self._found_at:
            return
        self._found_at, index = state, self._core.index
        every = index.all_known() if len(self._steps) > _FEW else None
        gone: dict[str, list[str]] = {}
        for path, steps in self._steps.items():
            text = steps[-1].after
            if text not in (None, _EMPTY) and (index.known(path) if every is None else every.get(path)) is None:
                gone.setdefault(text, []).append(path)
        heirs: dict[str, list[str]] = {}
        for path, known in (every or index.all_known()).items() if gone else ():
            own = self._steps.get(path)
            text = own[0].before if own else known.sha256
            if text in gone:
                heirs.setdefault(text, []).append(path)
        for text, paths in heirs.items():
            if len(paths) == len(gone[text]) == 1:
                (new,), (old,) = paths, gone[text]
                self._steps[new] = self._steps.pop(old) + self._steps.get(new, [])
                self._lines.clear()

    def _take_in(self, versions: Iterable[Version]) -> None:
        for version in versions:
            self._seen = version.number
            if version.op == "recovered":
                continue  # a text that was found: it stood nowhere
            steps = self._steps.pop(version.path, [])
            by = origin_of(version.who, version.tool, version.when)
            steps.append(_Step(version.number, version.before, version.after, by))
            self._steps[version.new_path or version.path] = steps
