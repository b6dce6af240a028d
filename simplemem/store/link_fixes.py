"""Fix broken links whose target is certain: plan the changes, then make them as one change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Unpack

from simplemem.errors import SimplememError
from simplemem.index.door import Progress
from simplemem.index.notes import named_in_memory
from simplemem.models import By, Mend, Mended, Mending
from simplemem.note.diff import unified_diff
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.obsidian.link_edits import LinkTarget, redirect_links
from simplemem.obsidian.links import FilesNamed, resolve_link
from simplemem.store.broken_links import find_broken_links
from simplemem.store.core import Core, change_by
from simplemem.store.doctor import examine
from simplemem.vault.values import FileChange


class _NotePlan(NamedTuple):
    """What fixing changes in a note, if anything, and why some of its links cannot be fixed."""

    change: Mend | None
    problems: list[str]


def plan_mending(
    core: Core, progress: Progress | None = None, *, only: Collection[str] = ()
) -> Mending:
    """Return what `examine` finds, and which of the broken links can be fixed. Writes nothing."""
    findings = examine(core, progress, only=only)
    aims = dict[str, dict[str, LinkTarget]]()  # by note: where its broken links are to lead
    if not only or "links" in only:
        for link in find_broken_links(core):
            if link.aim is not None:
                aims.setdefault(link.finding.path, {})[link.target] = link.aim

    files_named = named_in_memory(core.index.files())
    changes = dict[str, Mend]()
    problems = list[str]()
    for path in sorted(aims):
        plan = _plan_note(core, path, aims[path], files_named)
        problems += plan.problems
        if plan.change is not None:
            changes[path] = plan.change

    remaining = [finding for finding in findings if not finding.fix or finding.path not in changes]
    return Mending(findings, tuple(remaining), tuple(changes.values()), tuple(problems))


def _plan_note(
    core: Core, path: str, aims: Mapping[str, LinkTarget], files_named: FilesNamed
) -> _NotePlan:
    """Return what fixing the links of one note changes; the links are given by their targets."""
    try:
        core.vault.access.check(path, asked=True)
        file = core.vault.read(path)
        note = read_note(file.data)
        note.check_editable(path)
    except SimplememError as error:
        return _NotePlan(None, [error.message])

    text = redirect_links(note, path, aims, files_named, core.conventions.link_format)
    unresolved = set[str]()
    for link in read_note(text.encode()).links:
        if resolve_link(link.target, path, files_named).path is None:
            unresolved.add(link.target)

    problems = [
        f"{path}: [[{target}]] cannot be rewritten to link to its note"
        for target in sorted(unresolved & aims.keys())
    ]
    descriptions = [
        f"[[{target}]] now leads to {name_of(aim.path)}"
        for target, aim in aims.items()
        if target not in unresolved
    ]
    if not descriptions:
        return _NotePlan(None, problems)
    diff = unified_diff(file.data, text.encode(), (path, path), most=None)
    return _NotePlan(Mend(path, tuple(descriptions), diff, file.sha256, text), problems)


def mend(core: Core, mending: Mending, **by: Unpack[By]) -> Mended:
    """Make the planned changes as one change, which one `undo` takes back.

    Raises Conflict, with nothing changed, if one of the notes has changed since.
    """
    if not mending.changes:
        return Mended("", (), mending.unmended)

    core.must_be_writable()
    file_changes = [
        FileChange.update(change.path, change.sha256, change.text.encode())
        for change in mending.changes
    ]
    by["reason"] = by.get("reason") or "fixed unresolved links"
    with core.vault.lock():
        written, warnings = core.parts.writer.apply_changes(file_changes, change_by(by, "doctor"))
    changed_paths = tuple(result.path for result in written)
    return Mended(written[0].version, changed_paths, (*mending.unmended, *warnings))
