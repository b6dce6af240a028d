"""The log as somebody sees it from whom notes are hidden: without the changes of those, and without their texts' hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simplemem.vault.log import Log, Version, no_version, number_of
from simplemem.vault.rules import Rules


class SeenLog(Log):
    """What is hidden has no past either. Numbers are those of the whole log: whoever appends must not use one twice."""

    def __init__(self, whole: Log, rules: Rules) -> None:
        super().__init__(whole.root, by_path=whole.by_path)
        self._whole = whole
        self._rules = rules
        self._hashes: set[str] = set()
        self._read_until = 0

    def backwards(self, path: str | None = None, *, upto: int | None = None, by: str = "") -> Iterator[Version]:
        """All changes that may be seen, as `Log.backwards` has them."""
        return filter(self._is_seen, self._whole.backwards(path, upto=upto, by=by))

    def find(self, version: str) -> Version:
        """The change of this id. A hidden one is refused as one that never was."""
        found = self._whole.find(version)
        if not self._is_seen(found):
            raise no_version(version)
        return found

    def group(self, group: str) -> list[Version]:
        """The changes of one operation that may be seen."""
        return list(filter(self._is_seen, self._whole.group(group)))

    def next_number(self) -> int:
        return self._whole.next_number()

    def knows(self, versions: Sequence[Version]) -> set[str]:
        return self._whole.knows(versions)

    def speaks_of(self, sha: str) -> bool:
        """Whether a change that may be seen found or left this text. The log only grows: what was read is not read again."""
        if sha in self._hashes:
            return True
        newest = self._read_until
        for version in self._whole.backwards():
            if version.number <= self._read_until:
                break
            newest = max(newest, version.number)
            if self._is_seen(version):
                self._hashes.update(each for each in (version.before, version.after) if each is not None)
        self._read_until = newest
        return sha in self._hashes

    def closed(self, groups: set[str]) -> set[str]:
        """Those of these operations that changed something hidden too."""
        found: set[str] = set()
        first = min(map(number_of, groups), default=0)
        for version in self._whole.backwards() if groups else ():
            if version.number < first:
                break
            if version.group in groups and not self._is_seen(version):
                found.add(version.group)
        return found

    def _is_seen(self, version: Version) -> bool:
        if version.op == "recovered" and version.path.rpartition("/")[2].startswith("."):
            return False  # found in a file of ours whose name does not tell of which note it is
        return self._rules.all_seen((version.path, version.new_path))
