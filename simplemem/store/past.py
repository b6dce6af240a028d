"""What was: the history of memories, and taking a change back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound, SimplememError
from simplemem.memory import HistoryEntry, Undone
from simplemem.note.authors import is_called
from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.store import from_git
from simplemem.store.core import Core
from simplemem.store.names import path_meant
from simplemem.store.reading import bytes_at
from simplemem.store.then import moment_of
from simplemem.vault.history import Version
from simplemem.vault.vault import Change

_MOST_COMMITS = 1000


@dataclass(frozen=True, slots=True)
class Which:
    """Which changes are asked for: by whom, with which tool, and since and until which date or version. "": any."""

    by: str = ""
    tool: str = ""
    since: str = ""
    until: str = ""


def history(core: Core, name: str | None, limit: int, which: Which, *, diff: bool) -> tuple[HistoryEntry, ...]:
    """Changes of one memory, or of all, newest first; of one, what git knows of it as well."""
    path = None if name is None else path_with_a_past(core, name)
    found = islice(changes(core, path, which, max(limit, 0)), max(limit, 0))
    ours = tuple(_entry_of(core, version, diff=diff) for version in found)
    return ours if path is None else _with_git(core, path, ours, limit, which, diff=diff)


def _with_git(
    core: Core, path: str, ours: tuple[HistoryEntry, ...], limit: int, which: Which, *, diff: bool
) -> tuple[HistoryEntry, ...]:
    """Our changes of a memory and the commits of it, each in its own order, by their times."""
    commits = from_git.commits_of(core, path, limit if which == Which() else _MOST_COMMITS)
    if not commits:
        return ours
    first = moment_of(core, which.since, start=True).when if which.since else ""
    last = moment_of(core, which.until).when if which.until else "9"
    commits = [
        each
        for each in commits
        if first < each.when <= last
        and is_called(each.actor or each.who, which.by)
        and which.tool in ("", each.tool or "git")
    ]
    entries, folded = from_git.entries_of(
        core, commits[: max(limit, 0)], core.changes.of(path, _MOST_COMMITS), diff=diff
    )
    groups = {version.id: version.group for version in core.changes.of(path, limit)}
    told = [replace(each, commit=folded.get(groups.get(each.version, ""))) for each in ours]
    merged: list[HistoryEntry] = []
    while told or entries:
        newer = told if not entries or (told and told[0].when > entries[0].when) else entries
        merged.append(newer.pop(0))
    return tuple(merged[: max(limit, 0)])


def changes(core: Core, path: str | None, which: Which, limit: int | None = None) -> Iterator[Version]:
    """The changes that are asked for, newest first."""
    first = moment_of(core, which.since, start=True).number if which.since else 0
    last = moment_of(core, which.until).number if which.until else None
    if path is None:
        yield from core.changes.recent(limit, after=first, upto=last, by=which.by, tool=which.tool)
        return
    for version in core.changes.of(path, limit if which == Which() else None):
        if version.number <= first:
            return
        if last is not None and version.number > last:
            continue
        if is_called(version.who, which.by) and which.tool in ("", version.tool):
            yield version


def undo(core: Core, version_or_name: str, change: Change) -> Undone:
    """Take back a change by its version, or the last change of a memory by its name."""
    core.must_be_writable()
    version = _version_meant(core, version_or_name)
    with core.vault.lock():
        steps = core.changes.step(version.group)
        try:
            written = core.vault.undo(version.id, change)
        except Conflict as error:
            again = f"Undo what came since first, or restore the note as it was before {version.id}."
            error.hint = f"Nothing was taken back. {again}"
            raise
        paths = {path for one in steps for path in (one.path, one.new_path) if path is not None}
        look_again(core, paths | {one.path for one in written})
    # Of one operation the first change is what was asked for; links written again because of it came after.
    asked = steps[0]
    main = next((w for w in written if w.path in (asked.path, asked.new_path)), written[0])
    what = f"took back the {asked.op} of {name_of(asked.path)}"
    if asked.new_path:
        what += f" to {name_of(asked.new_path)}"
    if asked.op == "undo" and len(steps) > 1:
        what += f" and of {len(steps) - 1} more"
    elif not asked.new_path and len(steps) > 1:
        more = len(steps) - 1
        what += f" and {more} more {'change' if more == 1 else 'changes'} of the same step"
    return Undone(name_of(main.path), main.sha256, main.version, what)


def path_with_a_past(core: Core, name: str, *, gone_first: bool = False) -> str:
    """A memory that is there, or one that was: by its path, or by its bare name when only one deleted one had that.

    With `gone_first` one that was and is not goes before one that is there and has the name for a title.
    """
    path = path_of(clean_reference(name))
    try:
        if gone_first and core.entry(path) is None and core.changes.of(path, 1):
            return _moved_on(core, path)
        return path_meant(core, name)
    except NotFound:
        if core.changes.of(path, 1):
            return _moved_on(core, path)
        key = compare_key(clean_reference(name))
        gone = [path for path in core.changes.gone() if compare_key(name_of(path).rsplit("/", 1)[-1]) == key]
        if len(gone) > 1:
            candidates = [name_of(each) for each in gone]
            raise Ambiguous(
                f"{name!r} is the name of {len(gone)} deleted memories",
                candidates=candidates,
                hint="Use one of the candidates.",
            ) from None
        if gone:
            return gone[0]
        # Deleted, and known to git alone: it may have gone to a hidden place, so where there are such it is not told.
        if not core.vault.access.hidden and from_git.commits_of(core, path, 1):
            return path
        raise


def _moved_on(core: Core, path: str) -> str:
    """Where the memory is, or was last, that once had this path and moved on."""
    seen = {path}
    while core.entry(path) is None and (last := core.changes.of(path, 1)):
        following = last[0].new_path or path
        if following in seen:
            break
        path = following
        seen.add(path)
    return path


def look_again(core: Core, paths: set[str]) -> None:
    """Index what was just written by hash, still under the lock."""
    for path in paths:
        core.indexed({path}, partial(core.look_at, {path}))
    core.fill_soon()


def _entry_of(core: Core, version: Version, *, diff: bool) -> HistoryEntry:
    shown = None
    if diff:
        before = bytes_at(core, version, version.before) if version.before else b""
        after = bytes_at(core, version, version.after) if version.after else b""
        if before is not None and after is not None:
            shown = unified_diff(before, after, ("before", "after"), LONG_DIFF)
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


def version_called(core: Core, wanted: str) -> Version | None:
    """The version of this id, None for anything that is none."""
    try:
        return core.changes.find(wanted)
    except NotFound:
        return None


def _version_meant(core: Core, wanted: str) -> Version:
    try:
        return core.changes.find(wanted)
    except SimplememError:
        if from_git.means_commit(core, wanted) and core.entry(path_of(clean_reference(wanted))) is None:
            held = from_git.changes_in(core, wanted)
            if len(held) == 1:
                return core.changes.find(held[0])
            hint = "Restore a note as it was at a commit, or revert the commit in git."
            if held:
                hint = f"It holds several changes, each of which can be undone: {', '.join(held)}."
            raise Invalid(f"{wanted} is a commit of git, and no one change to take back", hint=hint) from None
        return last_change(core, path_with_a_past(core, wanted))


def last_change(core: Core, path: str) -> Version:
    """The last change of a memory. A text that was found is none."""
    for version in core.changes.of(path):
        if version.op != "recovered":
            return version
    hint = "Only changes made through simplemem are kept."
    raise NotFound(f"nothing is known of earlier changes of {name_of(path)}", hint=hint)
