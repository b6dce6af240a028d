"""From the log of changes to what a person reviews: operations, items, and groups of items. Pure.

An operation is one step of the history, which one undo takes back. An item is one operation, or
several in which one session went on changing the same note. A group has the items of one session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.features.review.inbox import NoteChange
from simplemem.features.review.state import fingerprint_of
from simplemem.features.review.visits import is_pause
from simplemem.note.names import name_of
from simplemem.note.proposal import PROPOSING_TOOL

if TYPE_CHECKING:
    from collections.abc import Callable

    from simplemem.store import Version

_FOLDED_OPS: Final = ("create", "update", "move")
_UNDOES: Final = re.compile(r"undoes (v\d{1,15}), and keeps later changes")
_COPIED_BY: Final = "sync"  # the tool of changes that another machine made


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of the history by an agent: what it did to each note, and why.

    `version` and `number` are the id and the number of its first change.
    """

    version: str
    number: int
    when: str
    who: str
    tool: str
    reason: str
    session: str
    sources: tuple[str, ...]
    notes: tuple[NoteChange, ...]
    fingerprints: tuple[str, ...]


class Standing(NamedTuple):
    """How an operation stands: whether it is undone, and whether the person has kept it.

    `undo` is the operation that undid it: None if none did, and "" if it was undone with everything
    by its author. `decided_at` is the time of that undo in UTC, or when the person kept the
    operation; "" if it is neither, or if the time is not known.
    """

    undo: str | None
    decided_at: str
    is_kept: bool

    @property
    def is_undone(self) -> bool:
        """Whether the operation is undone at present."""
        return self.undo is not None


@dataclass(slots=True)
class Item:
    """Operations that are reviewed together, the oldest first. There is at least one.

    `standings` says how each of them stands: all are alike in whether they are undone and kept.
    """

    operations: list[Operation]
    standings: list[Standing]

    @property
    def first(self) -> Operation:
        """The first operation, which names the item."""
        return self.operations[0]

    @property
    def last(self) -> Operation:
        """The last operation."""
        return self.operations[-1]

    @property
    def is_open(self) -> bool:
        """Whether the person still has to decide: the operations are in effect, and not kept."""
        return not self.is_kept and not self.is_undone

    @property
    def is_kept(self) -> bool:
        """Whether the person has kept the operations."""
        return self.standings[0].is_kept

    @property
    def is_undone(self) -> bool:
        """Whether the operations are undone at present."""
        return self.standings[0].is_undone

    @property
    def decided_at(self) -> str:
        """When the person last kept or undid one of the operations; "" if not known."""
        return max(standing.decided_at for standing in self.standings)

    @property
    def versions(self) -> tuple[str, ...]:
        """The ids of the operations."""
        return tuple(operation.version for operation in self.operations)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """What identifies the changes of all operations."""
        return tuple(
            fingerprint for operation in self.operations for fingerprint in operation.fingerprints
        )

    @property
    def notes(self) -> tuple[NoteChange, ...]:
        """What became of each note, from before the first operation to after the last."""
        if len(self.operations) == 1:
            return self.first.notes
        # Several operations are one item only if each of them changed the same single note.
        return (_join_changes(self.first.notes[0], self.last.notes[0]),)

    @property
    def op(self) -> str:
        """What was done: the operation of the notes, or "batch" if these differ."""
        ops = {note.op for note in self.notes}
        if len(ops) == 1:
            return ops.pop()
        # A move updates the notes that link to the moved one, in the same operation.
        if ops == {"move", "update"}:
            return "move"
        return "batch"

    @property
    def tool(self) -> str:
        """The names of the tools, each once."""
        return ", ".join(_unique(operation.tool for operation in self.operations))

    @property
    def reason(self) -> str:
        """The reasons that the agent gave, each once."""
        return "; ".join(_unique(operation.reason for operation in self.operations))

    @property
    def sources(self) -> tuple[str, ...]:
        """What the agent had read before one of the operations, the latest first."""
        latest_first = reversed(self.operations)
        return tuple(_unique(name for operation in latest_first for name in operation.sources))

    def may_continue_with(self, operation: Operation, standing: Standing) -> bool:
        """Return whether an operation of the same session goes on changing the same note.

        It does if it began with the text that the item left, and is kept and undone like it.
        """
        if not _is_foldable(self.last) or not _is_foldable(operation):
            return False
        is_alike = (self.is_kept, self.is_undone) == (standing.is_kept, standing.is_undone)
        last = self.last.notes[0]
        note = operation.notes[0]
        is_continued = last.current_name == note.name and last.after == note.before
        return is_alike and is_continued


@dataclass(slots=True)
class Group:
    """The items of one session of an agent. `last_number` is that of its last change."""

    who: str
    session: str
    started: str
    ended: str
    last_number: int
    items: list[Item] = field(default_factory=list)
    _latest_items: dict[str, Item] = field(default_factory=dict)

    def add(self, operation: Operation, standing: Standing) -> None:
        """Add an operation to the item that it continues, or as an item of its own."""
        self.ended = operation.when
        self.last_number = operation.number

        item = self._latest_items.get(operation.notes[0].name)
        if item is not None and item.may_continue_with(operation, standing):
            item.operations.append(operation)
            item.standings.append(standing)
        else:
            item = Item([operation], [standing])
            self.items.append(item)
        self._latest_items[operation.notes[0].current_name] = item


def read_operations(versions: Iterable[Version]) -> list[Operation]:
    """Return the operations by agents, oldest first. `versions` are changes, newest first.

    Left out are undos by agents, because what they undid is shown as undone; proposals, about which
    people decide elsewhere; changes that were copied from another machine; and texts that were only
    found after a crash.
    """
    operations = []
    for _, changes in groupby(versions, attrgetter("group")):
        group = [change for change in changes if change.op != "recovered"]
        group.reverse()
        if group and _is_to_be_reviewed(group[0]):
            operations.append(_read_operation(group))
    operations.reverse()
    return operations


def _is_to_be_reviewed(change: Version) -> bool:
    """Return whether an agent made a change on this machine that is no undo and no proposal."""
    if change.is_by_person or change.op == "undo":
        return False
    return change.tool not in (_COPIED_BY, PROPOSING_TOOL)


def _read_operation(changes: Sequence[Version]) -> Operation:
    """Return the operation that consists of some changes, the oldest first."""
    first = changes[0]
    return Operation(
        version=first.group,
        number=first.number,
        when=first.when,
        who=first.who,
        tool=first.tool,
        reason=first.reason,
        session=first.session,
        sources=first.sources,
        notes=tuple(note_change_of(change) for change in changes),
        fingerprints=fingerprints_of(changes),
    )


def fingerprints_of(changes: Iterable[Version]) -> tuple[str, ...]:
    """Return what identifies some changes in the logs of all machines, in their order."""
    return tuple(
        fingerprint_of(change.when, change.path, change.new_path, change.before, change.after)
        for change in changes
    )


def note_change_of(change: Version) -> NoteChange:
    """Return what a change did to its note."""
    new_name = None
    if change.new_path is not None:
        new_name = name_of(change.new_path)
    return NoteChange(change.op, name_of(change.path), new_name, change.before, change.after)


def group_by_session(
    operations: Iterable[Operation], standing_of: Callable[[Operation], Standing]
) -> list[Group]:
    """Return operations by session, the latest session first. `operations` are oldest first.

    Operations without a session belong together if they have the same author, and none of them is
    more than 30 minutes after the one before.
    """
    groups: dict[tuple[str, str], Group] = {}
    finished = []
    for operation in operations:
        key = (operation.who, operation.session)
        group = groups.get(key)
        if group is None:
            group = _begin_group(operation)
        elif not operation.session and is_pause(group.ended, operation.when):
            finished.append(group)
            group = _begin_group(operation)
        group.add(operation, standing_of(operation))
        groups[key] = group

    finished += groups.values()
    return sorted(finished, key=attrgetter("last_number"), reverse=True)


def _begin_group(operation: Operation) -> Group:
    """Return an empty group for the session of an operation, which is the first one in it."""
    return Group(
        operation.who,
        operation.session,
        started=operation.when,
        ended=operation.when,
        last_number=operation.number,
    )


def items_of(groups: Iterable[Group]) -> Iterator[Item]:
    """Yield the items of some groups, in their order."""
    for group in groups:
        yield from group.items


def filter_items(groups: Iterable[Group], condition: Callable[[Item], bool]) -> Iterator[Group]:
    """Yield the groups with only those of their items that meet a condition, newest items first.

    Groups without such an item are left out. The order of the groups stays.
    """
    for group in groups:
        items = [item for item in group.items if condition(item)]
        if items:
            items.sort(key=lambda item: item.last.number, reverse=True)
            yield replace(group, items=items)


def reason_of_merge(version: str) -> str:
    """Return the reason with which an undo that keeps later changes is written to the history."""
    return f"undoes {version}, and keeps later changes"


def is_reason_of_merge(reason: str) -> bool:
    """Return whether a change has the reason of an undo that keeps later changes."""
    return _UNDOES.fullmatch(reason) is not None


def find_undone_by_merge(versions: Iterable[Version], undone: Mapping[str, str]) -> dict[str, str]:
    """Return the operations that a person undid so that later changes stayed, each with its undo.

    `versions` are changes, newest first. An undo that is itself in `undone` does not count. Nor
    does a change by an agent: it could give its own changes such a reason to hide others.
    """
    undos: dict[str, str] = {}
    for version in versions:
        match = _UNDOES.fullmatch(version.reason)
        if match and version.is_by_person and version.group not in undone:
            undos.setdefault(match[1], version.group)  # the latest undo, because it comes first
    return undos


def _is_foldable(operation: Operation) -> bool:
    """Return whether an operation may be part of a larger item: it wrote one note."""
    return len(operation.notes) == 1 and operation.notes[0].op in _FOLDED_OPS


def _join_changes(first: NoteChange, last: NoteChange) -> NoteChange:
    """Return what several changes of a note, from `first` to `last`, did to it together."""
    new_name = None
    if last.current_name != first.name:
        new_name = last.current_name

    if first.before is None:
        op = "create"
    elif new_name is None:
        op = "update"
    else:
        op = "move"
    return NoteChange(op, first.name, new_name, first.before, last.after)


def _unique(texts: Iterable[str]) -> list[str]:
    """Return the texts that are not empty, each once, in order."""
    return [text for text in dict.fromkeys(texts) if text]
