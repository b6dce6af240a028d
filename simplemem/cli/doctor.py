"""The command `doctor`: what is wrong with a vault, and the fix of its broken links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import WHO, Answer, agree, command, finish, opened, preview, progress_bar
from simplemem.cli.options import VaultOption, YesOption, flag, option
from simplemem.cli.output import Lines, Part, diff_lines, one_line
from simplemem.cli.vault import list_own_files
from simplemem.cli.write import undo_with
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import Finding, FixPlan, FixResult

commands = typer.Typer()
_LABELS = {"error": "error", "warning": "warning", "note": "remark"}
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}  # the worst level first
_MAX_ALIKE = 3  # findings of one check and level that are shown


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
    checks = [name.strip() for names in only or () for name in names.split(",")]
    plan: FixPlan | None = None
    result: FixResult | None = None
    with opened(vault) as store:
        with progress_bar() as progress:
            if fix:
                plan = store.plan_fixes(progress, only=checks)
                findings = plan.left
            else:
                findings = store.doctor(progress, only=checks)
        own_files = store.own_files()

        if plan is not None and dry_run:
            findings = plan.findings
        elif plan is not None and plan.changes:
            _confirm(plan, yes=yes)
            finish()
            result = store.fix(plan, who=WHO)

    failed = any(finding.level != "note" for finding in findings)
    facts: dict[str, Any] = {
        "ok": not failed,
        "findings": [finding.as_dict() for finding in findings],
        "folder": [file.as_dict() for file in own_files],
    }
    lines = _finding_lines(findings, show_all=bool(only))
    if not only:
        lines += list_own_files(own_files)
    if plan is None:
        return Answer(facts, lines, failed=failed)

    facts["fix"] = _fix_facts(plan, result)
    if result is None:
        nothing: Lines = [[("Nothing can be fixed automatically.", "green")]]
        lines = (_change_lines(plan) or nothing) + lines
        return Answer(facts, lines, warnings=plan.problems, failed=failed)

    done: Part = (f"Fixed {format_count(len(result.changed), 'file')} in one step", "green")
    lines = [[done], undo_with(result.version), *lines]
    return Answer(facts, lines, warnings=result.warnings, failed=failed)


def _confirm(plan: FixPlan, *, yes: bool) -> None:
    """Show the planned changes, and have the user confirm them.

    Raises Invalid without a terminal.
    """
    preview(Answer({}, _change_lines(plan)))
    action = f"change {format_count(len(plan.changes), 'file')} in one step"
    refused = f"this would {action}, but there is no terminal to confirm it"
    hint = "Add --yes, or preview with --dry-run."
    agree(f"{action.capitalize()}?", refused=refused, hint=hint, yes=yes)


def _fix_facts(plan: FixPlan, result: FixResult | None) -> dict[str, Any]:
    """Return the part of the JSON answer that concerns `--fix`.

    `result` is None if nothing was changed.
    """
    changes = [
        {"path": change.path, "what": [*change.what], "diff": change.diff}
        for change in plan.changes
    ]
    facts = {"done": result is not None, "changes": changes, "unmended": [*plan.problems]}
    if result is not None:
        facts |= result.as_dict()
    return facts


def _change_lines(plan: FixPlan) -> Lines:
    """Return the planned changes, with a diff of each file."""
    lines = Lines()
    for change in plan.changes:
        descriptions = "; ".join(map(one_line, change.what))
        lines.append([(change.path, "cyan"), ": ", descriptions])
        lines += diff_lines(change.diff)
    return lines


def _finding_lines(findings: Sequence[Finding], *, show_all: bool) -> Lines:
    """Return a summary of the findings, then the findings, the worst first.

    Of the findings that have the same check and level, only a few are shown, unless `show_all`.
    """
    if not findings:
        return [[("No problems found.", "green")]]

    lines: Lines = [_summary(findings)]
    for (_, check), alike in _grouped(findings).items():
        shown_count = len(alike)
        if not show_all and len(alike) > _MAX_ALIKE + 1:
            shown_count = _MAX_ALIKE
        for finding in alike[:shown_count]:
            lines += _lines_of(finding)

        hidden_count = len(alike) - shown_count
        if hidden_count:
            notes = format_count(len({finding.path for finding in alike}), "note")
            command_line = f"simplemem doctor --only {check}"
            text = f"  and {hidden_count} more like these, in {notes} in all: {command_line}"
            lines.append([(text, "dim")])
    return lines


def _summary(findings: Sequence[Finding]) -> list[Part]:
    """Return the line with the number of findings of each level, in the style of the worst one."""
    levels = Counter[str](finding.level for finding in findings)
    text = ", ".join(format_count(levels[level], _LABELS[level]) for level in _STYLES)
    fixable = sum(bool(finding.fix) for finding in findings)
    if fixable:
        part = "all of it" if fixable == len(findings) else str(fixable)
        text += f"; `simplemem doctor --fix` can fix {part}"
    worst_style = next(style for level, style in _STYLES.items() if levels[level])
    return [(f"{text}.", worst_style)]


def _grouped(findings: Sequence[Finding]) -> dict[tuple[str, str], list[Finding]]:
    """Return the findings by level and check, the worst level first."""
    levels = list(_STYLES)
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: levels.index(finding.level)):
        groups.setdefault((finding.level, finding.check), []).append(finding)
    return groups


def _lines_of(finding: Finding) -> Lines:
    """Return a finding with its place, its hint, and what `--fix` would do about it."""
    place = ""
    if finding.line:
        place = f"{finding.path}:{finding.line}: "
    elif finding.path:
        place = f"{finding.path}: "

    label = (f"{_LABELS[finding.level]}: ", _STYLES[finding.level])
    check = (f"  [{finding.check}]", "dim")
    lines: Lines = [[label, (place, "cyan"), one_line(finding.message), check]]
    if finding.hint:
        lines.append([(f"  {one_line(finding.hint)}", "dim")])
    if finding.fix:
        lines.append([(f"  --fix would {one_line(finding.fix)}", "green")])
    return lines
