"""What was: the history of memories, and taking a change back."""

from __future__ import annotations

from functools import partial

from simplemem.errors import NotFound, SimplememError
from simplemem.memory import HistoryEntry, Undone
from simplemem.note.names import clean_reference, name_of, path_of
from simplemem.store.in_step import InStep
from simplemem.store.names import path_meant
from simplemem.store.reading import bytes_at
from simplemem.vault.difference import difference
from simplemem.vault.history import Version
from simplemem.vault.vault import Change

_LONGEST_DIFF = 40_000


def history(step: InStep, name: str | None, limit: int, *, diff: bool) -> tuple[HistoryEntry, ...]:
    """Changes of one memory, or of all, newest first."""
    path = None if name is None else _path_with_a_past(step, name)
    return tuple(_entry_of(step, version, diff=diff) for version in step.vault.history.versions(path, limit))


def undo(step: InStep, version_or_name: str, change: Change) -> Undone:
    """Take back a change by its version, or the last change of a memory by its name."""
    step.must_be_writable()
    version = _version_meant(step, version_or_name)
    with step.vault.lock():
        steps = step.vault.history.log.group(version.group)
        written = step.vault.undo(version.id, change)
        paths = {path for one in steps for path in (one.path, one.new_path) if path is not None}
        for path in paths | {one.path for one in written}:
            step.indexed(path, partial(step.look_at, {path}))
        step.fill_soon()
    # Of one operation the first change is what was asked for; links written again because of it came after.
    asked = step.vault.history.find(version.group)
    main = next((w for w in written if w.path in (asked.path, asked.new_path)), written[0])
    what = f"took back the {asked.op} of {name_of(asked.path)}"
    if asked.new_path:
        what += f" to {name_of(asked.new_path)}"
    return Undone(name_of(main.path), main.sha256, main.version, what)


def _path_with_a_past(step: InStep, name: str) -> str:
    """A memory that is there, or one that was."""
    try:
        return path_meant(step, name)
    except NotFound:
        path = path_of(clean_reference(name))
        if step.vault.history.versions(path, 1):
            return path
        raise


def _entry_of(step: InStep, version: Version, *, diff: bool) -> HistoryEntry:
    shown = None
    if diff:
        before = bytes_at(step, version, version.before) if version.before else b""
        after = bytes_at(step, version, version.after) if version.after else b""
        if before is not None and after is not None:
            shown = difference(before, after, ("before", "after"), _LONGEST_DIFF)
    return HistoryEntry(
        version=version.id,
        name=name_of(version.path),
        new_name=name_of(version.new_path) if version.new_path else None,
        when=version.when,
        op=version.op,
        who=version.who,
        tool=version.tool,
        reason=version.reason,
        before=version.before,
        sha256=version.after,
        diff=shown,
    )


def _version_meant(step: InStep, wanted: str) -> Version:
    try:
        return step.vault.history.find(wanted)
    except SimplememError:
        path = _path_with_a_past(step, wanted)
        versions = step.vault.history.versions(path, 1)
        if not versions:
            raise NotFound(f"nothing is known of earlier changes of {name_of(path)}") from None
        return versions[0]
