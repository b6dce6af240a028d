"""Changes of a note by people after an agent changed it, found in the log. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from simplemem.features.review.folding import is_reason_of_merge

if TYPE_CHECKING:
    from simplemem.store import Version

EditsByPath: TypeAlias = "Mapping[str, Sequence[Version]]"
"""The changes by people of each note, oldest first, by the path of the note before."""


class LatestEdit(NamedTuple):
    """The last change of a note by a person, and the path of the note after it."""

    version: Version
    path: str


def edits_by_people(versions: Iterable[Version], undone: Collection[str]) -> EditsByPath:
    """Return the changes by people that are in effect. `versions` are all changes, newest first.

    An undo or a redo is none: it only takes back or repeats a change that is in the log itself.
    `undone` are the operations that are undone at present.
    """
    edits: defaultdict[str, list[Version]] = defaultdict(list)
    for version in versions:
        if _is_edit_by_person(version) and version.group not in undone:
            edits[version.path].append(version)
    return {path: changes[::-1] for path, changes in edits.items()}


def _is_edit_by_person(version: Version) -> bool:
    """Return whether a person wrote something new with a change."""
    if not version.is_by_person or version.op in ("recovered", "undo"):
        return False
    return not is_reason_of_merge(version.reason)


def find_latest_edit(edits: EditsByPath, path: str, number: int) -> LatestEdit | None:
    """Return the last change by a person after a change with this number; None if there is none.

    `path` is that of the note after the change. The note is followed if a person moved it.
    """
    latest = None
    while True:
        following = [version for version in edits.get(path, ()) if version.number > number]
        if not following:
            return latest
        version = following[0]
        path = version.new_path or path
        number = version.number
        latest = LatestEdit(version, path)
