"""What became of a note that is not there under the name that somebody gives: where it is now, or how it went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from simplemem.errors import NotFound
from simplemem.note.names import is_named, name_of
from simplemem.vault.history import Version

MAX_STEPS = 200  # the latest changes, among which a note is looked for


class Fate(NamedTuple):
    """A note that had a name, and where the changes of our log took it."""

    name: str
    now: str | None  # what it is called now; None if it is gone
    version: str  # the last change of it
    is_deleted: bool  # by that change; else another program took the file away
    last_name: str  # what it was called when it went

    def error(self) -> NotFound:
        """Return the failure that says so, and what to do."""
        if self.now is not None:
            message = f"{self.name} is now {self.now} (version {self.version})"
            return NotFound(message, candidates=[self.now], version=self.version, new_name=self.now)

        what = self.name if self.last_name == self.name else f"{self.name} became {self.last_name}, which"
        if self.is_deleted:
            message = f"{what} was deleted (version {self.version})"
            hint = f'undo_change(version="{self.version}") brings it back.'
        else:
            message = f"{what} was removed or renamed outside simplemem (last change: version {self.version})"
            hint = f'read_memory(name="{self.last_name}", version="{self.version}") shows what it said.'
        return NotFound(message, hint=hint, version=self.version)


def find_fate(versions: Sequence[Version], name: str, exists: Callable[[str], bool]) -> Fate | None:
    """Return what became of the note that was last known by a name, or None if no change here is of such a note.

    `versions` are the newest first. Its later changes are followed forwards, so that a note which was
    moved to and fro ends where its last change left it.
    """
    changes = [version for version in versions if version.op != "recovered"]
    newest = next((at for at, version in enumerate(changes) if _path_named(version, name)), None)
    if newest is None:
        return None

    last = changes[newest]
    named_path = _path_named(last, name)
    path = last.new_path or last.path
    for later in reversed(changes[:newest]):
        is_another_note = last.after is None and later.op == "create"
        if is_another_note:
            break
        if later.path == path:
            last = later
            path = later.new_path or later.path

    is_deleted = last.after is None
    is_there = not is_deleted and exists(path)
    now = name_of(path) if is_there else None
    return Fate(name_of(named_path), now, last.id, is_deleted, name_of(path))


def _path_named(version: Version, reference: str) -> str:
    """Return the path of a change that a reference names; "" if it names none."""
    for path in (version.path, version.new_path):
        if path is not None and is_named(name_of(path), reference):
            return path
    return ""
