"""Fix broken links whose target is certain: plan the changes, then make them as one change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Unpack

from simplemem.errors import SimplememError
from simplemem.index.api import Progress
from simplemem.index.notes import named_in_memory
from simplemem.index.service import IndexService
from simplemem.models import AuthorArgs, FixPlan, FixResult, NoteFix
from simplemem.note.diff import unified_diff
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.obsidian.link_edits import LinkTarget, redirect_links
from simplemem.obsidian.settings import FilesNamed, resolve_link
from simplemem.store.broken_links import BrokenLinkFinder
from simplemem.store.doctor import Doctor
from simplemem.store.vault_index import NoteWriter, ObsidianSettingsCache, author_of_call
from simplemem.vault.source import NoteSource
from simplemem.vault.values import FileChange


class _NotePlan(NamedTuple):
    """What fixing the links of a note changes, and why some of them cannot be fixed.

    `change` is None if nothing is changed. `problems` has a sentence for each such link, or one for
    a note that cannot be read or edited.
    """

    change: NoteFix | None
    problems: list[str]


class LinkFixer:
    """Fixes the broken links of a vault. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        doctor: Doctor,
        broken_links: BrokenLinkFinder,
        *,
        obsidian: ObsidianSettingsCache,
        writer: NoteWriter,
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._index = index
        self._doctor = doctor
        self._broken_links = broken_links
        self._obsidian = obsidian
        self._writer = writer

    def plan(self, progress: Progress | None = None, *, only: Collection[str] = ()) -> FixPlan:
        """Return what the doctor finds, and which broken links can be fixed. Writes no note.

        Runs the checks in `only`, or all of them if it is empty; links are fixed only if "links" is
        among them. `progress` is called while notes are read. In the result, `left` has the
        findings that the changes do not fix, and `problems` says why some fixes are not possible.
        Raises Invalid for an unknown check.
        """
        findings = self._doctor.examine(progress, only=only)
        # By note and current target: where the broken link is to lead.
        new_targets: dict[str, dict[str, LinkTarget]] = {}
        if not only or "links" in only:
            for link in self._broken_links.find():
                if link.new_target is not None:
                    new_targets.setdefault(link.finding.path, {})[link.target] = link.new_target

        files_named = named_in_memory(self._index.files())
        changes = dict[str, NoteFix]()
        problems = list[str]()
        for path in sorted(new_targets):
            plan = self._plan_note(path, new_targets[path], files_named)
            problems += plan.problems
            if plan.change is not None:
                changes[path] = plan.change

        remaining = [
            finding for finding in findings if not finding.fix or finding.path not in changes
        ]
        return FixPlan(findings, tuple(remaining), tuple(changes.values()), tuple(problems))

    def _plan_note(
        self,
        path: str,
        new_targets: Mapping[str, LinkTarget],
        files_named: FilesNamed,
    ) -> _NotePlan:
        """Return what fixing the links of one note changes. Reads the note and writes nothing.

        `new_targets` has the file that each broken link is to lead to, by the link's current
        target. Raises no SimplememError: if the note cannot be read or may not be edited,
        `problems` of the result says so.
        """
        try:
            self._access.check(path, is_named_by_caller=True)
            file = self._vault.read(path)
            note = read_note(file.data)
            note.check_editable(path)
        except SimplememError as error:
            return _NotePlan(None, [error.message])

        link_format = self._obsidian.current.link_format
        text = redirect_links(note, path, new_targets, files_named, link_format)

        # Some links cannot be rewritten: they are still in the new text, and still unresolved.
        unresolved = set[str]()
        for link in read_note(text.encode()).links:
            if resolve_link(link.target, path, files_named).path is None:
                unresolved.add(link.target)
        problems = [
            f"{path}: [[{target}]] cannot be rewritten to link to its note"
            for target in sorted(unresolved & new_targets.keys())
        ]

        descriptions = []
        for target, new_target in new_targets.items():
            if target not in unresolved:
                name = name_of(new_target.path)
                descriptions.append(f"[[{target}]] now leads to {name}")
        if not descriptions:
            return _NotePlan(None, problems)

        diff = unified_diff(file.data, text.encode(), (path, path), max_characters=None)
        change = NoteFix(path, tuple(descriptions), diff, file.sha256, text)
        return _NotePlan(change, problems)

    def fix(self, plan: FixPlan, **by: Unpack[AuthorArgs]) -> FixResult:
        """Make the planned changes as one operation, which one `undo` takes back.

        Indexes the changed notes. `by` says who asks; without a reason, the log says "fixed
        unresolved links". Returns the changed paths, and as warnings the problems of the plan and
        of the index; without planned changes, nothing is written, and `version` is "". Raises, with
        nothing changed: Conflict if one of the notes has changed since, NotFound if one is gone,
        and ReadOnly if the vault or one of the notes may not be changed.
        """
        if not plan.changes:
            return FixResult("", (), plan.problems)

        self._writer.check_writable()
        file_changes = [
            FileChange.update(change.path, change.sha256, change.text.encode())
            for change in plan.changes
        ]
        by["reason"] = by.get("reason") or "fixed unresolved links"
        author = author_of_call(by, "doctor")
        with self._writer.lock():
            written, warnings = self._writer.apply_changes(file_changes, author)
        changed_paths = tuple(result.path for result in written)
        return FixResult(written[0].version, changed_paths, (*plan.problems, *warnings))
