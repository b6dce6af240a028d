"""The operations by agents in the log, kept in memory so that a page need not read them again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from simplemem.features.review.folding import (
    Operation,
    find_undone_by_merge,
    read_operations,
)

if TYPE_CHECKING:
    from simplemem.store import ExtensionAPI, Version

MAX_OPERATIONS: Final = 2000  # the latest ones, by agents and by people
_MAX_CHANGES_OF_NOTE: Final = 50
# Changes that are remembered before the log is read again.
_MAX_EXTENDED: Final = 2 * MAX_OPERATIONS


@dataclass(frozen=True, slots=True)
class LogReading:
    """A part of the log: its changes, newest first, and the operations by agents, oldest first.

    `undone` has for each undone operation the operation that undid it, and "" if it was undone
    together with everything by its author. `times` has the time of each operation in UTC.
    `is_complete` is false if the log may have older operations.
    """

    versions: Sequence[Version]
    operations: Sequence[Operation]
    undone: Mapping[str, str]
    times: Mapping[str, str]
    is_complete: bool


class AgentLog:
    """Guards the last reading of the log. It is thread-safe.

    A store that sees only a part of the vault reads the log each time: what it may see depends on
    where notes are now.
    """

    def __init__(self, extension: ExtensionAPI) -> None:
        """Begin without a reading."""
        self._extension = extension
        self._guard = threading.Lock()
        self._reading: LogReading | None = None

    def read(self) -> LogReading:
        """Return what the log has at present."""
        with self._guard:
            last = self._reading
            if last is None or self._extension.is_partial or not last.versions:
                return self._read_again()

            newest = last.versions[0]
            if not self._is_same_log(newest):
                return self._read_again()
            added = self._extension.changes(after=newest.number)
            if not added:
                return last
            return self._extend(last, added)

    def read_since(self, date: str) -> LogReading:
        """Return what the log has since a date or version.

        Raises NotFound for an unknown version and Invalid for what is no date.
        """
        return self._reading_of(self._extension.changes(since=date, limit=MAX_OPERATIONS))

    def read_note(self, path: str) -> LogReading:
        """Return what the log has of the note at a path: its latest 50 changes.

        Left out are changes of a former note at the path, and those that may be older than the
        latest 2,000 operations.
        """
        oldest = self._extension.last_version() - MAX_OPERATIONS
        changes = self._extension.changes_of(path, _MAX_CHANGES_OF_NOTE)
        recent = [change for change in changes if change.number > oldest]
        reading = self._reading_of(recent)
        present = list(_of_present_note(recent, path, reading.undone))
        return replace(reading, versions=present, operations=read_operations(present))

    def _is_same_log(self, newest: Version) -> bool:
        """Return whether the log still has the change that was the newest: it was not replaced."""
        changes = self._extension.changes(after=newest.number - 1, upto=newest.number)
        return changes == [newest]

    def _extend(self, last: LogReading, added: Sequence[Version]) -> LogReading:
        """Return and keep a reading that has further changes too."""
        versions = [*added, *last.versions]
        operations = [*last.operations, *read_operations(added)]
        if len(versions) > _MAX_EXTENDED:
            return self._read_again()
        reading = self._reading_of(versions, operations)
        self._reading = replace(reading, is_complete=last.is_complete)
        return self._reading

    def _read_again(self) -> LogReading:
        """Return and remember what the latest 2,000 operations of the log are."""
        self._reading = self._reading_of(self._extension.changes(limit=MAX_OPERATIONS))
        return self._reading

    def _reading_of(
        self, versions: Sequence[Version], operations: Sequence[Operation] | None = None
    ) -> LogReading:
        """Return the reading of changes, newest first. `operations` are those by agents."""
        if operations is None:
            operations = read_operations(versions)
        undone = self._extension.find_undone(versions)
        undone |= find_undone_by_merge(versions, undone)
        return LogReading(
            versions,
            operations,
            undone=undone,
            times={version.group: version.when for version in versions},
            is_complete=len({version.group for version in versions}) < MAX_OPERATIONS,
        )


def _of_present_note(
    versions: Sequence[Version], path: str, undone: Collection[str]
) -> Iterator[Version]:
    """Yield the changes of the note that is now at a path, newest first.

    They end with the change by which an earlier note left the path, unless that was undone.
    """
    for version in versions:
        is_removed = version.after is None
        is_moved_away = version.new_path is not None and version.new_path != path
        if (is_removed or is_moved_away) and version.group not in undone:
            return
        yield version
        if version.new_path == path:
            path = version.path
