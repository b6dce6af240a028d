"""The command `doctor`: what is wrong with a vault, and the fix of its broken links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import WHO, Answer, agree, command, finish, opened, preview, progress_bar
from simplemem.cli.options import VaultOption, YesOption, flag, option
from simplemem.cli.output import Lines, Part, diff_lines, one_line
from simplemem.cli.vault import list_own_files
from simplemem.cli.write import undo_with
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import Finding, FixPlan, FixResult, OwnFile
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_LEVELS = ("error", "warning", "note")  # the worst first
_LABELS = {"error": "error", "warning": "warning", "note": "remark"}
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_MAX_SIMILAR = 3  # findings of one check and level that are shown


@command(commands, "Vault")
def doctor(
    fix: Annotated[
        bool, flag("--fix", "Fix broken links in one step, after showing the changes.")
    ] = False,
    only: Annotated[
        list[str] | None, option("--only", "CHECK", "Only these checks: `links`, `links,headers`.")
    ] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "With --fix: show the changes, and change nothing.")
    ] = False,
    yes: YesOption = False,
    vault: VaultOption = None,
) -> Answer:
    """Check the vault for problems, and fix broken links.

    The command compares the index with the notes, and looks for broken links, frontmatter that
    cannot be read, secrets, conflict copies and problems with the disk. It also lists what
    `.simplemem/` contains. Without --fix, nothing is changed. The exit code is 1 if there is an
    error or a warning, and 0 otherwise.

    The checks: index, headers, notes, links, conflicts, secrets, place, git.

    $ simplemem doctor --only links,headers --json
    $ simplemem doctor --fix"""
    checks = _parse_checks(only or ())
    with opened(vault) as store:
        if fix:
            return _fix(store, checks, dry_run=dry_run, yes=yes)

        with progress_bar() as progress:
            findings = store.doctor(progress, only=checks)
        return _report(findings, store.own_files(), checks)


def _parse_checks(options: Iterable[str]) -> list[str]:
    """Return the names in options such as `links,headers`, without checking that they exist.

    An empty part, as in `links,`, gives an empty name.
    """
    checks: list[str] = []
    for option_value in options:
        names = option_value.split(",")
        checks += [name.strip() for name in names]
    return checks


def _report(
    findings: Sequence[Finding], own_files: Sequence[OwnFile], checks: Sequence[str]
) -> Answer:
    """Return the answer about what the doctor found.

    The exit code is 1 if there is an error or a warning. With `checks`, all findings of these
    checks are shown, and nothing else. Without them, similar findings are shown in part, and the
    lines end with the files in `.simplemem/`.
    """
    failed = any(finding.level != "note" for finding in findings)
    facts = {
        "ok": not failed,
        "findings": [finding.as_dict() for finding in findings],
        "folder": [file.as_dict() for file in own_files],
    }
    lines = _finding_lines(findings, show_all=bool(checks))
    if not checks:
        lines += list_own_files(own_files)
    return Answer(facts, lines, failed=failed)


def _fix(store: EnhancedStore, checks: Sequence[str], *, dry_run: bool, yes: bool) -> Answer:
    """Fix what can be fixed, after the user has confirmed it, and return the answer.

    With `dry_run`, nothing is changed. With `yes`, the user is not asked. Raises Invalid if the
    user has to be asked and there is no terminal, or there is no such check; Conflict or NotFound
    if a note has been changed or deleted meanwhile; ReadOnly if the vault must not be changed; and
    typer.Exit if the user declines.
    """
    with progress_bar() as progress:
        plan = store.plan_fixes(progress, only=checks)
    own_files = store.own_files()
    if dry_run:
        report = _report(plan.findings, own_files, checks)
        return _with_plan(report, plan)

    report = _report(plan.left, own_files, checks)
    if not plan.changes:
        return _with_plan(report, plan)

    _confirm(plan, yes=yes)
    finish()  # from here on, a Ctrl-C waits until the user can read what was changed
    result = store.fix(plan, who=WHO)
    return _with_fix(report, plan, result)


def _with_plan(report: Answer, plan: FixPlan) -> Answer:
    """Return a report with the planned changes before its lines. None of them was made.

    If there are none, it says that nothing can be fixed automatically.
    """
    change_lines = _change_lines(plan)
    if not change_lines:
        nothing: Part = ("Nothing can be fixed automatically.", "green")
        change_lines.append([nothing])

    facts = {**report.facts, "fix": _fix_fields(plan, None)}
    lines = [*change_lines, *report.lines]
    return replace(report, facts=facts, lines=lines, warnings=plan.problems)


def _with_fix(report: Answer, plan: FixPlan, result: FixResult) -> Answer:
    """Return a report with what was fixed, and how to undo it, before its lines."""
    files = format_count(len(result.changed), "file")
    verdict: Part = (f"Fixed {files} in one step", "green")
    facts = {**report.facts, "fix": _fix_fields(plan, result)}
    lines = [[verdict], undo_with(result.version), *report.lines]
    return replace(report, facts=facts, lines=lines, warnings=result.warnings)


def _confirm(plan: FixPlan, *, yes: bool) -> None:
    """Show the planned changes, and ask the user to confirm them.

    Raises typer.Exit if the user declines, and Invalid if there is no terminal. With `yes`, the
    user is not asked.
    """
    preview(Answer({}, _change_lines(plan)))
    files = format_count(len(plan.changes), "file")
    action = f"change {files} in one step"
    agree(
        f"{action.capitalize()}?",
        refused=f"this would {action}, but there is no terminal to confirm it",
        hint="Add --yes, or preview with --dry-run.",
        yes=yes,
    )


def _fix_fields(plan: FixPlan, result: FixResult | None) -> dict[str, Any]:
    """Return the field `fix` of the JSON answer. `result` is None if nothing was changed.

    Its fields are `done`, `changes` and `unmended`, and those of a FixResult if something was
    changed.
    """
    changes = [
        {"path": change.path, "what": list(change.what), "diff": change.diff}
        for change in plan.changes
    ]
    fields: dict[str, Any] = {
        "done": result is not None,
        "changes": changes,
        "unmended": list(plan.problems),
    }
    if result is not None:
        fields |= result.as_dict()
    return fields


def _change_lines(plan: FixPlan) -> Lines:
    """Return the planned changes, with a diff of each file. Without changes, there are no lines."""
    lines: Lines = []
    for change in plan.changes:
        sentences = [one_line(sentence) for sentence in change.what]
        description = "; ".join(sentences)
        path: Part = (change.path, "cyan")
        lines.append([path, ": ", description])
        lines += diff_lines(change.diff)
    return lines


def _finding_lines(findings: Sequence[Finding], *, show_all: bool) -> Lines:
    """Return a summary of the findings, then the findings, the worst first.

    Of many similar findings, only some are shown, unless `show_all`. Without findings, the only
    line is "No problems found."
    """
    if not findings:
        return [[("No problems found.", "green")]]

    lines: Lines = [_summary(findings)]
    for similar in _group_similar(findings):
        max_shown = len(similar) if show_all else _MAX_SIMILAR
        lines += _similar_lines(similar, max_shown)
    return lines


def _group_similar(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return the findings in groups of one level and check, the worst level first."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for level in _LEVELS:
        for finding in findings:
            if finding.level == level:
                key = (level, finding.check)
                groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _similar_lines(similar: Sequence[Finding], max_shown: int) -> Lines:
    """Return the lines of findings of one level and check, of which there is at least one.

    If there are more than `max_shown`, a last line says how many more there are, and in how many
    notes all of them are, with the command that shows them. If there is only one more, it is shown
    instead of that line.
    """
    if len(similar) == max_shown + 1:
        max_shown += 1
    lines: Lines = []
    for finding in similar[:max_shown]:
        lines += _lines_of(finding)

    hidden_count = len(similar) - max_shown
    if hidden_count > 0:
        paths = {finding.path for finding in similar}
        notes = format_count(len(paths), "note")
        command_line = f"simplemem doctor --only {similar[0].check}"
        text = f"  and {hidden_count} more like these, in {notes} in all: {command_line}"
        lines.append([(text, "dim")])
    return lines


def _summary(findings: Sequence[Finding]) -> list[Part]:
    """Return the line with the number of findings of each level, in the style of the worst one.

    It also says how many of them can be fixed. There is at least one finding.
    """
    counts = Counter[str](finding.level for finding in findings)
    texts = [format_count(counts[level], label) for level, label in _LABELS.items()]
    text = ", ".join(texts)

    fixable_count = sum(1 for finding in findings if finding.fix)
    if fixable_count == len(findings):
        text += "; `simplemem doctor --fix` can fix all of it"
    elif fixable_count > 0:
        text += f"; `simplemem doctor --fix` can fix {fixable_count}"

    worst_level = next(level for level in _LEVELS if counts[level])
    return [(f"{text}.", _STYLES[worst_level])]


def _lines_of(finding: Finding) -> Lines:
    """Return the lines of a finding: its place and message, its hint, and its fix."""
    label: Part = (f"{_LABELS[finding.level]}: ", _STYLES[finding.level])
    place: Part = (_place_of(finding), "cyan")
    message = one_line(finding.message)
    check: Part = (f"  [{finding.check}]", "dim")
    lines: Lines = [[label, place, message, check]]

    if finding.hint:
        hint = one_line(finding.hint)
        lines.append([(f"  {hint}", "dim")])
    if finding.fix:
        fix = one_line(finding.fix)
        lines.append([(f"  --fix would {fix}", "green")])
    return lines


def _place_of(finding: Finding) -> str:
    """Return where a problem is, with a colon after it: its path and line, its path, or ""."""
    if finding.line:
        return f"{finding.path}:{finding.line}: "
    if finding.path:
        return f"{finding.path}: "
    return ""
