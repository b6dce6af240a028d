"""Find out what became of a note whose name leads to no note now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simplemem.errors import Hint, HintSentence, NotFound
from simplemem.note.names import is_named, name_of
from simplemem.vault.values import Version

MAX_VERSIONS = 200  # of the change log, the latest: older changes are not searched for a name


@dataclass(frozen=True)
class FormerNote:
    """A note that once had a name, and where the change log says that it went.

    `last_name` is the name that its last change left it, or that it had when it was deleted.
    """

    name: str
    current_name: str | None  # None if the note is gone
    version: str  # the id of its last change
    # Whether that change deleted it. If it did not and the note is gone, another program moved or
    # deleted it.
    is_deleted: bool
    last_name: str

    def error(self) -> NotFound:
        """Return the NotFound for a reader who asked for `name`. Does not raise it.

        It has the current name as its `new_name` and candidate, or a hint that says how to restore
        the note or read its last text.
        """
        if self.current_name is not None:
            return NotFound(
                f"{self.name} is now {self.current_name} (version {self.version})",
                candidates=[self.current_name],
                version=self.version,
                new_name=self.current_name,
            )

        note = self.name
        if self.last_name != self.name:
            note = f"{self.name} became {self.last_name}, which"
        if self.is_deleted:
            message = f"{note} was deleted (version {self.version})"
            hint = HintSentence(
                "undo",
                f'undo_change(version="{self.version}") restores it.',
                {"version": self.version},
            )
        else:
            message = f"{note} was deleted or renamed outside simplemem"
            message += f" (last change: version {self.version})"
            hint = HintSentence(
                "read_version",
                f'read_memory(name="{self.last_name}", version="{self.version}") shows its text.',
                {"name": self.last_name, "version": self.version},
            )
        return NotFound(message, hint=Hint(hint), version=self.version)


def find_former_note(
    versions: Sequence[Version], name: str, exists: Callable[[str], bool]
) -> FormerNote | None:
    """Return the note that last had a name; None if no change among `versions` names it.

    `versions` are changes of the log, the newest first; texts found after a crash are ignored.
    `name` is a whole name or its last part. `exists` returns whether there is a note at a path. The
    changes after the one that names the note are followed from the oldest on, so that a note which
    was moved and moved back is found where its last change left it. Raises Invalid if `name` is not
    a valid reference.
    """
    changes = [version for version in versions if version.op != "recovered"]
    newest_index = _index_of_newest(changes, name)
    if newest_index is None:
        return None

    newest = changes[newest_index]
    later_changes = changes[:newest_index]
    last = _follow(newest, later_changes)
    path = _path_after(last)
    is_deleted = last.after is None
    current_name = None
    if not is_deleted and exists(path):
        current_name = name_of(path)
    return FormerNote(
        name=name_of(_path_named(newest, name)),
        current_name=current_name,
        version=last.id,
        is_deleted=is_deleted,
        last_name=name_of(path),
    )


def _index_of_newest(changes: Sequence[Version], name: str) -> int | None:
    """Return the index of the newest change that names a note; None if none does.

    `changes` are the newest first, so it is the first such index. Raises Invalid for an invalid
    name.
    """
    for index, change in enumerate(changes):
        if _path_named(change, name):
            return index
    return None


def _follow(change: Version, later_changes: Sequence[Version]) -> Version:
    """Return the last change of the note that `change` changed, or `change` if none follows.

    `later_changes` are the newest first. If the note was deleted and another one was put at its
    path, changes of that one are not followed.
    """
    last = change
    for later in reversed(later_changes):
        path = _path_after(last)
        if last.after is None and _puts_another_note_at(later, path):
            break
        if later.path == path:
            last = later
    return last


def _puts_another_note_at(change: Version, path: str) -> bool:
    """Return whether a change puts another note at the path of a deleted one.

    It creates a note there, or moves one to it.
    """
    is_created_there = change.op == "create" and change.path == path
    is_moved_there = change.new_path == path
    return is_created_there or is_moved_there


def _path_after(change: Version) -> str:
    """Return the path that a note has after a change, or had until the change deleted it."""
    return change.new_path or change.path


def _path_named(change: Version, reference: str) -> str:
    """Return the path before or after a change that a reference names; "" if it names neither.

    If it names both, the path before the change is returned. Raises Invalid for an invalid
    reference.
    """
    for path in (change.path, change.new_path):
        if path is not None and is_named(name_of(path), reference):
            return path
    return ""
