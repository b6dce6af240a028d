"""The command doctor: what is wrong, and with `--fix` what can be mended, shown whole before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, agree, command, finish, preview
from simplemem.cli.opening import WHO, opened, progress_bar
from simplemem.cli.options import VaultOption, flag, option
from simplemem.cli.text import diff_lines, one_line
from simplemem.errors import Invalid, ReadOnly
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.cli.text import Part
    from simplemem.memory import Finding, Mended, Mending

commands = typer.Typer()
_MOST_NOTES = 20  # of one kind that are named when all checks are asked for
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


@command(commands, "Keep")
def doctor(
    fix: Annotated[bool, flag("--fix", "Mend broken links, as one change, after showing it and asking.")] = False,
    only: Annotated[
        list[str] | None, option("--only", "CHECK", "Only these checks: `links`, or `links,names`.")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", "With --fix: show what it would do, and do none.")] = False,
    yes: Annotated[bool, flag("--yes -y", "With --fix: do it without asking.")] = False,
    strict: Annotated[bool, flag("--strict", "End with 1 for a note as well.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Check the vault, its index and the disk they are on. Ends with 0 when there is nothing, or notes only; with 1 for
    an error or a warning.

    It compares the index with one made anew, and looks for broken links and what they may mean, headers that cannot be
    read, names that collide, secrets and conflict copies. Without `--fix` it changes nothing.

    The checks: index, vectors, headers, notes, names, links, conflicts, secrets, place.

    $ simplemem doctor
    $ simplemem doctor --only links,headers --json
    $ simplemem doctor --fix
    $ simplemem doctor --fix --only links --yes
    """
    if (dry_run or yes) and not fix:
        raise typer.BadParameter("--dry-run and --yes belong to --fix")
    checks = [name.strip() for names in only or () for name in names.split(",")]
    mending: Mending | None = None
    mended: Mended | None = None
    with opened(vault, embed=not checks or "vectors" in checks) as store:
        try:
            with progress_bar() as progress:
                if fix:
                    mending = store.plan_mending(progress, only=checks)
                    findings = mending.findings if dry_run else mending.left
                else:
                    findings = store.doctor(progress, only=checks)
        except Invalid as error:
            raise typer.BadParameter(f"{error.message}. {error.hint}") from error
        if mending is not None and mending.changes and not dry_run:
            if store.read_only:
                raise ReadOnly(f"the vault {store.root} is open for reading only", hint="See it with --dry-run.")
            preview(Answer({}, _plan(mending)))
            what = f"change {counted(len(mending.changes), 'file')} in one step"
            refused, hint = f"this would {what}", "See it with --dry-run; agree with --yes."
            agree(f"{what.capitalize()}?", refused=refused, hint=hint, yes=yes)
            finish()
            mended = store.mend(mending, who=WHO)
    failed = any(strict or finding.level != "note" for finding in findings)
    facts: dict[str, Any] = {"ok": not failed, "findings": [each.as_dict() for each in findings]}
    lines: list[list[Part]] = []
    if mending is not None:
        changes = [{"path": each.path, "what": [*each.what], "diff": each.diff} for each in mending.changes]
        facts["fix"] = {"done": mended is not None, "changes": changes, "unmended": [*mending.unmended]}
        if mended is not None:
            facts["fix"] |= mended.as_dict()
            done = f"Mended {counted(len(mended.changed), 'file')} in one step"
            lines = [[(done, "green"), f"; undo with: simplemem undo {mended.version}"]]
        else:
            lines = _plan(mending) or [[("Nothing can be mended without a person.", "green")]]
    lines += [*_findings(findings, whole=bool(checks)), [_verdict(findings)]]
    warnings = mended.warnings if mended is not None else mending.unmended if mending is not None else ()
    return Answer(facts, lines, warnings=warnings, failed=failed)


def _plan(mending: Mending) -> list[list[Part]]:
    """The whole change, as a diff of every note."""
    lines: list[list[Part]] = []
    for change in mending.changes:
        lines += [[(change.path, "cyan"), ": ", "; ".join(map(one_line, change.what))], *diff_lines(change.diff)]
    return lines


def _findings(findings: Sequence[Finding], *, whole: bool) -> list[list[Part]]:
    """All findings, or of many notes of one kind the first."""
    lines: list[list[Part]] = []
    notes = Counter[str]()
    for finding in findings:
        notes[finding.check] += finding.level == "note"
        if finding.level == "note" and notes[finding.check] > _MOST_NOTES and not whole:
            continue
        place = f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: " if finding.path else ""
        level, check = (f"{finding.level}: ", _STYLES[finding.level]), (f"  [{finding.check}]", "dim")
        lines.append([level, (place, "cyan"), one_line(finding.message), check])
        lines += [["  ", (one_line(finding.hint), "dim")]] if finding.hint else []
        lines += [["  --fix would ", (one_line(finding.fix), "green")]] if finding.fix else []
    for check_name, number in notes.items():
        if number > _MOST_NOTES and not whole:
            more = f"{number - _MOST_NOTES:,} more notes of this kind"
            lines.append([(f"{more}: `simplemem doctor --only {check_name}` names them all.", "dim")])
    return lines


def _verdict(findings: Sequence[Finding]) -> Part:
    if not findings:
        return "All is well.", "green"
    levels = Counter[str](finding.level for finding in findings)
    verdict = ", ".join(counted(levels[level], level) for level in _STYLES)
    sure = sum(bool(finding.fix) for finding in findings)
    if sure:
        verdict += f"; `simplemem doctor --fix` can mend {sure if sure < len(findings) else 'all of it'}"
    return f"{verdict}.", "bold red" if levels["error"] else "yellow" if levels["warning"] else "green"
