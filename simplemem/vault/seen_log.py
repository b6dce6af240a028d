"""The log as somebody sees it from whom notes are hidden: without the changes of those, and without their texts' hashes.

A note that was moved to a hidden place took its past there: it is not told under the names it had before either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simplemem.vault.log import Log, Version, no_version, number_of
from simplemem.vault.paths import Beneath
from simplemem.vault.rules import Rules


@dataclass(frozen=True, slots=True)
class _Known:
    """What was learned of the log up to a change: the numbers that are hidden, the hashes that may be seen."""

    until: int = 0
    hidden: frozenset[int] = frozenset()
    hashes: frozenset[str] = frozenset()


class SeenLog(Log):
    """What is hidden has no past either. Numbers are those of the whole log: whoever appends must not use one twice."""

    def __init__(self, whole: Log, rules: Rules) -> None:
        super().__init__(whole.root, by_path=whole.by_path)
        self._whole = whole
        self._rules = rules
        self._known = _Known()

    def backwards(self, path: str | None = None, *, upto: int | None = None, by: str = "") -> Iterator[Version]:
        """All changes that may be seen, as `Log.backwards` has them."""
        known = self._follow()
        for version in self._whole.backwards(path, upto=upto, by=by):
            if version.number <= known.until and version.number not in known.hidden:
                yield version  # what was added since is for the next question

    def find(self, version: str) -> Version:
        """The change of this id. A hidden one is refused as one that never was."""
        found = self._whole.find(version)
        if not self._is_seen(found):
            raise no_version(version)
        return found

    def group(self, group: str) -> list[Version]:
        """The changes of one operation that may be seen."""
        return list(filter(self._is_seen, self._whole.group(group)))

    def next_number(self, here: Beneath | None = None) -> int:
        """One more than the last version in the whole log."""
        return self._whole.next_number(here)

    def knows(self, versions: Sequence[Version]) -> set[str]:
        """Which of these ids the whole log has already."""
        return self._whole.knows(versions)

    def speaks_of(self, sha: str) -> bool:
        """Whether a change that may be seen found or left this text."""
        return sha in self._follow().hashes

    def closed(self, groups: set[str]) -> set[str]:
        """Those of these operations that changed something hidden too."""
        hidden = self._follow().hidden
        first = min(map(number_of, groups), default=0)
        found: set[str] = set()
        for version in self._whole.backwards() if groups else ():
            if version.number < first:
                break
            if version.group in groups and version.number in hidden:
                found.add(version.group)
        return found

    def _is_seen(self, version: Version) -> bool:
        return version.number not in self._follow().hidden

    def _follow(self) -> _Known:
        """Take in what the log has that was not read yet; all of it again when a note went into hiding, or came out."""
        before, newest, anew = self._known, 0, False
        hidden: set[int] = set()
        hashes: set[str] = set()
        ends: dict[str, bool] = {}  # of the names that moves lead from: whether the note is hidden in the end
        for version in self._whole.backwards():
            newest = newest or version.number
            if version.number <= before.until and not anew:
                anew = any(end != self._rules.hides(name) for name, end in ends.items())
                if not anew:
                    hidden |= before.hidden
                    hashes |= before.hashes
                    break
            if self._hides(version, ends):
                hidden.add(version.number)
            else:
                hashes.update(each for each in (version.before, version.after) if each is not None)
        if newest != before.until:
            self._known = _Known(newest, frozenset(hidden), frozenset(hashes))
        return self._known

    def _hides(self, version: Version, ends: dict[str, bool]) -> bool:
        """Whether a change is hidden: it names a hidden path, or is of a note that went there later."""
        path, new = version.path, version.new_path
        if version.op == "recovered":  # in a file of ours whose name does not tell of which note it is, perhaps
            return self._rules.hides(path) or path.rpartition("/")[2].startswith(".") or ends.get(path, False)
        if new is not None:
            ends[path] = ends.pop(new, self._rules.hides(new))
        hides = self._rules.hides(path) or (new is not None and self._rules.hides(new)) or ends.get(path, False)
        if version.op == "create":
            ends.pop(path, None)  # what had the name before was another note
        return hides
