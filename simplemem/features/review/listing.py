"""What one person has to review: all groups of the log, and which of their items pass a filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.features.review.agent_log import LogReading
from simplemem.features.review.folding import Group, Item, Operation, Standing, group_by_session
from simplemem.features.review.inbox import LAST_LOOK, InboxFilter, NoteChange
from simplemem.features.review.state import PersonalReview
from simplemem.models import is_called
from simplemem.note.dates import format_log_time

if TYPE_CHECKING:
    from simplemem.store import Version

_UNDONE_STAYS: Final = timedelta(days=1)  # in the list of what is to be reviewed


class Listing(NamedTuple):
    """All groups of the log as one person has reviewed them, and what was read with them.

    `agents` and `folders` are those of all changes, for a filter.
    """

    groups: Sequence[Group]
    agents: tuple[str, ...]
    folders: tuple[str, ...]
    reading: LogReading
    review: PersonalReview
    last_look: str
    is_complete: bool

    def items(self) -> Iterator[Item]:
        """Yield the items of all groups."""
        for group in self.groups:
            yield from group.items


def list_groups(
    reading: LogReading, review: PersonalReview, person: str, *, is_complete: bool
) -> Listing:
    """Return the operations of a reading as a person has reviewed them, by session."""

    def standing_of(operation: Operation) -> Standing:
        """Return how an operation stands for the person."""
        undo = reading.undone.get(operation.version)
        undone_at = reading.times.get(undo, "") if undo else ""
        return Standing(undo, undone_at, review.has_kept(operation.fingerprints))

    groups = group_by_session(reading.operations, standing_of)
    return Listing(
        groups,
        _agents_of(groups),
        _folders_of(groups),
        reading,
        review,
        last_look=max(review.last_look, _last_undo(reading.versions, person)),
        is_complete=is_complete,
    )


def _last_undo(versions: Sequence[Version], person: str) -> str:
    """Return when a person last undid something among changes, newest first; "" if never."""
    for version in versions:
        if version.op == "undo" and version.is_by_person and is_called(version.who, person):
            return version.when
    return ""


def _agents_of(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the authors of all changes, sorted."""
    return tuple(sorted({group.who for group in groups if group.who}))


def _folders_of(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the folders that contain a changed note, sorted, without the top of the vault."""
    folders = set()
    for group in groups:
        for item in group.items:
            folders |= {note.current_name.rpartition("/")[0] for note in item.notes}
    return tuple(sorted(folders - {""}))


@dataclass(frozen=True)
class ItemConditions:
    """Which items pass a filter; each condition that the filter does not set is met by all.

    `earliest` and `undone_since` are times in UTC. Later changes pass, and so do undone items that
    were undone later.
    """

    agent: str
    folder: str
    earliest: str
    only_unreviewed: bool
    undone_since: str

    @staticmethod
    def of(conditions: InboxFilter, listing: Listing) -> ItemConditions:
        """Return the conditions of a filter for a listing, as of now."""
        return ItemConditions(
            agent=conditions.agent,
            folder=conditions.folder.strip("/"),
            earliest=listing.last_look if conditions.since == LAST_LOOK else "",
            only_unreviewed=conditions.only_unreviewed,
            undone_since=format_log_time(datetime.now(UTC) - _UNDONE_STAYS),
        )

    def are_met_by(self, item: Item) -> bool:
        """Return whether an item meets all conditions."""
        return (
            self._is_by_agent(item)
            and self._is_in_folder(item)
            and self._is_late_enough(item)
            and self._is_listed(item)
        )

    def _is_by_agent(self, item: Item) -> bool:
        """Return whether the agent of the filter made the change."""
        return not self.agent or is_called(item.first.who, self.agent)

    def _is_in_folder(self, item: Item) -> bool:
        """Return whether one of the notes is in the folder of the filter."""
        return not self.folder or any(_is_below(self.folder, note) for note in item.notes)

    def _is_late_enough(self, item: Item) -> bool:
        """Return whether the last change of the item was made after the time of the filter."""
        return not self.earliest or item.last.when > self.earliest

    def _is_listed(self, item: Item) -> bool:
        """Return whether the item is to be reviewed, or was undone lately, or all are listed."""
        if not self.only_unreviewed or item.is_open:
            return True
        was_undone_lately = item.standings[-1].undone_at > self.undone_since
        return was_undone_lately and not item.is_kept


def _is_below(folder: str, note: NoteChange) -> bool:
    """Return whether a note is in a folder, or below it, before or after a change."""
    return any(name.startswith(f"{folder}/") for name in (note.name, note.current_name))
