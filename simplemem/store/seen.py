"""Which notes are others by now than those that were read: by what the index has noticed, and by what the disk says."""

from __future__ import annotations

from collections.abc import Collection

from simplemem.store.bench import Bench, Changes, Mark, Read, Stat


class Seen:
    """What a room above the store has read. `having` is the property whose notes it wants told apart. Not thread-safe."""

    def __init__(self, bench: Bench, having: str) -> None:
        self._bench = bench
        self._having = having
        self._mark: Mark | None = None
        self._stats: dict[str, Stat] = {}

    def noticed(self) -> Changes | None:
        """What changed in the index and was not yet taken in; None for nothing."""
        noticed = self._bench.since(self._mark, self._having)
        return None if noticed.mark == self._mark else noticed

    def take_in(self, noticed: Changes) -> None:
        """All that was noticed has been read. Whatever failed before this is said is noticed again."""
        self._mark = noticed.mark

    def keep(self, read: Read) -> None:
        """Remember the file that a note was read from."""
        self._stats[read.path] = read.stat

    def forget(self, path: str) -> None:
        self._stats.pop(path, None)

    def differing(self, paths: Collection[str]) -> set[str]:
        """Those whose file is another than the one that was read, or gone."""
        now = self._bench.stats(paths)
        return {path for path in paths if now.get(path) != self._stats.get(path)}
