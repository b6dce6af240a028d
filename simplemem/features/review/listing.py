"""What one person has to review: all groups of the log, and which of their items pass a filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from simplemem.features.review.agent_log import LogReading
from simplemem.features.review.folding import Group, Item, Operation, Standing, group_by_session
from simplemem.features.review.inbox import LAST_LOOK, InboxFilter, NoteChange
from simplemem.features.review.later_edits import EditsByPath, edits_by_people
from simplemem.features.review.state import PersonalReview
from simplemem.features.review.visits import Visit, find_last_look
from simplemem.models import is_called
from simplemem.note.dates import format_log_time

if TYPE_CHECKING:
    from simplemem.store import Version


class Listing(NamedTuple):
    """All groups of the log as one person has reviewed them, and what was read with them.

    `agents` and `folders` are those of all changes, for a filter. `edits` are the changes by
    people, and `visits` are when this person did something.
    """

    groups: Sequence[Group]
    agents: tuple[str, ...]
    folders: tuple[str, ...]
    reading: LogReading
    review: PersonalReview
    edits: EditsByPath
    visits: Sequence[Visit]
    is_complete: bool

    def last_look(self) -> str:
        """Return when the last visit of the person ended; "" if this is the first one."""
        return find_last_look(self.visits, format_log_time(datetime.now(UTC)))


def list_groups(
    reading: LogReading, review: PersonalReview, person: str, *, is_complete: bool
) -> Listing:
    """Return the operations of a reading as a person has reviewed them, by session."""

    def standing_of(operation: Operation) -> Standing:
        """Return whether an operation is undone or kept by the person, and since when."""
        undo = reading.undone.get(operation.version)
        if undo:
            decided_at = reading.times.get(undo, "")
        else:
            decided_at = review.decided_at(operation.fingerprints)
        return Standing(undo, decided_at, review.has_kept(operation.fingerprints))

    groups = group_by_session(reading.operations, standing_of)
    return Listing(
        groups=groups,
        agents=_agents_of(groups),
        folders=_folders_of(groups),
        reading=reading,
        review=review,
        edits=edits_by_people(reading.versions, reading.undone),
        visits=[*review.visits, *_undos_by(reading.versions, person)],
        is_complete=is_complete,
    )


def _undos_by(versions: Sequence[Version], person: str) -> list[Visit]:
    """Return when a person undid something, each time as a visit."""
    return [
        Visit(version.when, version.when)
        for version in versions
        if version.op == "undo" and version.is_by_person and is_called(version.who, person)
    ]


def _agents_of(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the authors of all changes, sorted."""
    return tuple(sorted({group.who for group in groups if group.who}))


def _folders_of(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the folders that contain a changed note, sorted, without the top of the vault."""
    folders = set()
    for group in groups:
        for item in group.items:
            for note in item.notes:
                folder, _, _ = note.current_name.rpartition("/")
                folders.add(folder)
    folders.discard("")
    return tuple(sorted(folders))


@dataclass(frozen=True)
class ItemConditions:
    """What an item must meet to pass a filter. A condition that is "" is met by all items.

    Changes after the time `after`, in UTC, pass. Whether items are decided does not matter.
    """

    agent: str
    folder: str
    after: str

    @staticmethod
    def of(conditions: InboxFilter, last_look: str) -> ItemConditions:
        """Return the conditions of a filter, except its dates, which the listing has applied.

        `last_look` is that of the listing.
        """
        after = ""
        if conditions.since == LAST_LOOK:
            after = last_look
        return ItemConditions(conditions.agent, conditions.folder.strip("/"), after)

    def are_met_by(self, item: Item) -> bool:
        """Return whether an item meets all conditions."""
        return self._is_by_agent(item) and self._is_in_folder(item) and self._is_late_enough(item)

    def _is_by_agent(self, item: Item) -> bool:
        """Return whether the agent of the filter made the change."""
        return not self.agent or is_called(item.first.who, self.agent)

    def _is_in_folder(self, item: Item) -> bool:
        """Return whether one of the notes is in the folder of the filter."""
        return not self.folder or any(_is_below(self.folder, note) for note in item.notes)

    def _is_late_enough(self, item: Item) -> bool:
        """Return whether the last change of the item was made after the time of the filter."""
        return not self.after or item.last.when > self.after


def _is_below(folder: str, note: NoteChange) -> bool:
    """Return whether a note is in a folder, or below it, before or after a change."""
    return any(name.startswith(f"{folder}/") for name in (note.name, note.current_name))
