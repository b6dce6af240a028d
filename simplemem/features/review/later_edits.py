"""Changes of a note by people after an agent changed it, found in the log. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from simplemem.store import Version

EditsByPath: TypeAlias = "Mapping[str, Sequence[Version]]"
"""The changes by people of each note, oldest first, by the path of the note before."""


class LatestEdit(NamedTuple):
    """The last change of a note by a person, and the path of the note after it."""

    version: Version
    path: str


def edits_by_people(versions: Iterable[Version]) -> EditsByPath:
    """Return the changes by people. `versions` are all changes, newest first."""
    edits: defaultdict[str, list[Version]] = defaultdict(list)
    for version in versions:
        if version.is_by_person and version.op != "recovered":
            edits[version.path].append(version)
    return {path: changes[::-1] for path, changes in edits.items()}


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
