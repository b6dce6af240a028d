"""What was: the history of memories, and taking a change back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from simplemem.errors import Ambiguous, Conflict, Invalid, NotFound, SimplememError
from simplemem.memory import HistoryEntry, Undone
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.store import from_git
from simplemem.store.in_step import InStep
from simplemem.store.names import path_meant
from simplemem.store.reading import bytes_at
from simplemem.store.then import moment_of
from simplemem.vault.difference import difference
from simplemem.vault.history import Version
from simplemem.vault.vault import Change

_LONGEST_DIFF = 40_000
_MOST_COMMITS = 1000


@dataclass(frozen=True, slots=True)
class Which:
    """Which changes are asked for: by whom, with which tool, and since and until which date or version. "": any."""

    by: str = ""
    tool: str = ""
    since: str = ""
    until: str = ""


def history(step: InStep, name: str | None, limit: int, which: Which, *, diff: bool) -> tuple[HistoryEntry, ...]:
    """Changes of one memory, or of all, newest first; of one, what git knows of it as well."""
    path = None if name is None else path_with_a_past(step, name)
    found = islice(changes(step, path, which), max(limit, 0))
    ours = tuple(_entry_of(step, version, diff=diff) for version in found)
    return ours if path is None else _with_git(step, path, ours, limit, which, diff=diff)


def _with_git(
    step: InStep, path: str, ours: tuple[HistoryEntry, ...], limit: int, which: Which, *, diff: bool
) -> tuple[HistoryEntry, ...]:
    """Our changes of a memory and the commits of it, each in its own order, by their times."""
    commits = from_git.commits_of(step, path, limit if which == Which() else _MOST_COMMITS)
    if not commits:
        return ours
    first = moment_of(step, which.since, start=True).when if which.since else ""
    last = moment_of(step, which.until).when if which.until else "9"
    commits = [
        each
        for each in commits
        if first < each.when <= last
        and names(each.actor or each.who, which.by)
        and which.tool in ("", each.tool or "git")
    ]
    entries, folded = from_git.entries_of(
        step, commits[: max(limit, 0)], step.vault.history.versions(path, _MOST_COMMITS), diff=diff
    )
    groups = {version.id: version.group for version in step.vault.history.versions(path, limit)}
    told = [replace(each, commit=folded.get(groups.get(each.version, ""))) for each in ours]
    merged: list[HistoryEntry] = []
    while told or entries:
        newer = told if not entries or (told and told[0].when > entries[0].when) else entries
        merged.append(newer.pop(0))
    return tuple(merged[: max(limit, 0)])


def changes(step: InStep, path: str | None, which: Which) -> Iterator[Version]:
    """The changes that are asked for, newest first."""
    first = moment_of(step, which.since, start=True).number if which.since else 0
    last = moment_of(step, which.until).number if which.until else None
    by = " ".join(which.by.split())
    for version in step.vault.history.log.backwards(path, upto=last, by=by):
        if version.number <= first:
            return
        if last is not None and version.number > last:
            continue
        if is_by(version, by) and (not which.tool or version.tool == which.tool):
            yield version


def is_by(version: Version, by: str) -> bool:
    """Whether somebody made a change: by name, with or without the version a client tells with it."""
    return names(version.who, by)


def names(who: str, by: str) -> bool:
    """Whether a name is the one that is asked for, with or without the version a client tells with it."""
    who, wanted = who.casefold(), " ".join(by.split()).casefold()
    name, _, number = who.rpartition(" ")
    return wanted in ("", who) or (wanted == name and any(map(str.isdigit, number)))


def undo(step: InStep, version_or_name: str, change: Change) -> Undone:
    """Take back a change by its version, or the last change of a memory by its name."""
    step.must_be_writable()
    version = _version_meant(step, version_or_name)
    with step.vault.lock():
        steps = step.vault.history.log.group(version.group)
        try:
            written = step.vault.undo(version.id, change)
        except Conflict as error:
            again = f"Undo what came since first, or restore the note as it was before {version.id}."
            error.hint = f"Nothing was taken back. {again}"
            raise
        paths = {path for one in steps for path in (one.path, one.new_path) if path is not None}
        look_again(step, paths | {one.path for one in written})
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


def path_with_a_past(step: InStep, name: str, *, gone_first: bool = False) -> str:
    """A memory that is there, or one that was: by its path, or by its bare name when only one deleted one had that.

    With `gone_first` one that was and is not goes before one that is there and has the name for a title.
    """
    path = path_of(clean_reference(name))
    try:
        if gone_first and step.entry(path) is None and step.vault.history.versions(path, 1):
            return _moved_on(step, path)
        return path_meant(step, name)
    except NotFound:
        if step.vault.history.versions(path, 1):
            return _moved_on(step, path)
        key, gone = compare_key(clean_reference(name)), dict[str, None]()
        for version in step.vault.history.log.backwards():
            if version.after is None and compare_key(name_of(version.path).rsplit("/", 1)[-1]) == key:
                gone[version.path] = None
        if len(gone) > 1:
            candidates = [name_of(each) for each in gone]
            raise Ambiguous(
                f"{name!r} is the name of {len(gone)} deleted memories",
                candidates=candidates,
                hint="Use one of the candidates.",
            ) from None
        if gone:
            return next(iter(gone))
        # Deleted, and known to git alone: it may have gone to a hidden place, so where there are such it is not told.
        if not step.vault.rules.hidden and from_git.commits_of(step, path, 1):
            return path
        raise


def _moved_on(step: InStep, path: str) -> str:
    """Where the memory is, or was last, that once had this path and moved on."""
    seen = {path}
    while step.entry(path) is None and (last := step.vault.history.versions(path, 1)):
        following = last[0].new_path or path
        if following in seen:
            break
        path = following
        seen.add(path)
    return path


def look_again(step: InStep, paths: set[str]) -> None:
    """Index what was just written by hash, still under the lock."""
    for path in paths:
        step.indexed(path, partial(step.look_at, {path}))
    step.fill_soon()


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


def version_called(step: InStep, wanted: str) -> Version | None:
    """The version of this id, None for anything that is none."""
    try:
        return step.vault.history.find(wanted)
    except NotFound:
        return None


def _version_meant(step: InStep, wanted: str) -> Version:
    try:
        return step.vault.history.find(wanted)
    except SimplememError:
        if from_git.means_commit(step, wanted) and step.entry(path_of(clean_reference(wanted))) is None:
            held = from_git.changes_in(step, wanted)
            if len(held) == 1:
                return step.vault.history.find(held[0])
            hint = "Restore a note as it was at a commit, or revert the commit in git."
            if held:
                hint = f"It holds several changes, each of which can be undone: {', '.join(held)}."
            raise Invalid(f"{wanted} is a commit of git, and no one change to take back", hint=hint) from None
        return last_change(step, path_with_a_past(step, wanted))


def last_change(step: InStep, path: str) -> Version:
    """The last change of a memory. A text that was found is none."""
    for version in step.vault.history.log.backwards(path):
        if version.op != "recovered":
            return version
    hint = "Only changes made through simplemem are kept."
    raise NotFound(f"nothing is known of earlier changes of {name_of(path)}", hint=hint)
