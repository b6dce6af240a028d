"""The operations by agents in the log, kept in memory so that a page need not read them again."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class LogReading:
    """What the latest 2,000 operations of the log are.

    `versions` are all changes, newest first, and `operations` those by agents, oldest first.
    `undone` has each undone operation with the operation to undo for a redo, and `times` the time
    of each operation in UTC.
    """

    versions: Sequence[Version]
    operations: Sequence[Operation]
    undone: Mapping[str, str]
    times: Mapping[str, str]

    @property
    def is_complete(self) -> bool:
        """Whether the log has no older operations."""
        return not self.versions or self.versions[-1].number <= 1


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
                return self._keep(self._extension.changes(limit=MAX_OPERATIONS))

            newest = last.versions[0]
            if not self._is_same_log(newest):
                return self._keep(self._extension.changes(limit=MAX_OPERATIONS))
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
        """Return what the log has of one note: its latest 50 changes.

        Changes that may be older than the latest 2,000 operations are left out.
        """
        oldest = self._extension.last_version() - MAX_OPERATIONS
        changes = self._extension.changes_of(path, _MAX_CHANGES_OF_NOTE)
        return self._reading_of([change for change in changes if change.number > oldest])

    def _is_same_log(self, newest: Version) -> bool:
        """Return whether the log still has the change that was the newest: it was not replaced."""
        changes = self._extension.changes(after=newest.number - 1, upto=newest.number)
        return changes == [newest]

    def _extend(self, last: LogReading, added: Sequence[Version]) -> LogReading:
        """Return and keep a reading that has further changes too."""
        versions = [*added, *last.versions]
        operations = [*last.operations, *read_operations(added)]
        if len(versions) > 2 * MAX_OPERATIONS:
            return self._keep(self._extension.changes(limit=MAX_OPERATIONS))
        self._reading = self._reading_of(versions, operations)
        return self._reading

    def _keep(self, versions: Sequence[Version]) -> LogReading:
        """Return and keep the reading of some changes, newest first."""
        self._reading = self._reading_of(versions)
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
        )
