"""The command doctor: what is wrong, and with `--fix` what can be mended, shown whole before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, agree, command, preview
from simplemem.cli.opening import WHO, finishing, opened, progress_bar
from simplemem.cli.options import VaultOption, flag, option
from simplemem.cli.text import diff_lines, one_line
from simplemem.errors import Invalid, ReadOnly
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.cli.text import Part
    from simplemem.memory import Finding, Mended
    from simplemem.store import EnhancedStore
    from simplemem.store.doctor.mending import Mending

commands = typer.Typer()
_MOST_NOTES = 20  # of one kind that are named when all checks are asked for
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


@command(commands, "Keep")
def doctor(
    fix: Annotated[bool, flag("--fix", "Mend what is sure, as one change, after showing it and asking.")] = False,
    only: Annotated[
        list[str] | None, option("--only", "CHECK", "Only these checks: `links`, or `links,names`.")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", "With --fix: show what it would do, and do none.")] = False,
    yes: Annotated[bool, flag("--yes -y", "With --fix: do it without asking.")] = False,
    strict: Annotated[bool, flag("--strict", "End with 1 for a note as well.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Check the vault, its index and what they stand on. Ends with 0 when there is nothing, or notes only; with 1 for
    an error or a warning.

    It compares the index with one made anew, and looks for broken links and what they may mean, headers that cannot be
    read, names that collide, secrets, conflict copies, and files that lie about. Without `--fix` it changes nothing.

    The checks: index, vectors, headers, notes, names, links, conflicts, secrets, attachments, strays, place,
    system.

    $ simplemem doctor
    $ simplemem doctor --only links,headers --json
    $ simplemem doctor --fix
    $ simplemem doctor --fix --only links --yes
    """
    from simplemem.store.doctor.examine import asked_for

    if (dry_run or yes) and not fix:
        raise typer.BadParameter("--dry-run and --yes belong to --fix")
    try:
        checks = asked_for(name.strip() for names in only or () for name in names.split(","))
    except Invalid as error:
        raise typer.BadParameter(f"{error.message} {error.hint}".strip()) from error
    mending: Mending | None = None
    mended: Mended | None = None
    with opened(vault, embed=not checks or not checks.isdisjoint({"index", "vectors"})) as store:
        with progress_bar() as progress:
            if fix:
                mending = store.plan_mending(progress, only=checks)
                findings = mending.findings if dry_run else mending.left
            else:
                findings = store.doctor(progress, only=checks)
        if mending is not None and not dry_run:
            if mending.wishes and store.read_only:
                raise ReadOnly(f"the vault {store.root} is open for reading only", hint="See it with --dry-run.")
            if not mending.is_empty:
                mended = _mend(store, mending, yes=yes)
        stands_on = store.surroundings()
    failed = any(strict or finding.level != "note" for finding in findings)
    facts = {"ok": not failed, "findings": [each.as_dict() for each in findings], "stands_on": stands_on}
    if mending is not None:
        facts["fix"] = _fix(mending, mended)
    lines = [*_what_was_mended(mending, mended), *_findings(findings, whole=bool(checks)), [_verdict(findings)]]
    warnings = mended.warnings if mended is not None else mending.unmended if mending is not None else ()
    return Answer(facts, lines, warnings=warnings, failed=failed)


def _fix(mending: Mending, mended: Mended | None) -> dict[str, Any]:
    changes = [change.as_dict() for change in mending.changes]
    plan = {"changes": changes, "makes_index_anew": mending.makes_index_anew, "unmended": list(mending.unmended)}
    return {"done": mended is not None, **plan, **(mended.as_dict() if mended is not None else {})}


def _mend(store: EnhancedStore, mending: Mending, *, yes: bool) -> Mended:
    """The notes first, which no Ctrl-C interrupts; then the index, which may be begun again at any time."""
    parts = [f"change {counted(len(mending.changes), 'file')} in one step"] if mending.changes else []
    what = " and ".join([*parts, *(["make the index anew"] if mending.makes_index_anew else [])])
    preview(Answer({}, _plan(mending)))
    question = f"{what[:1].upper()}{what[1:]}?"
    agree(question, refused=f"this would {what}", hint="See it with --dry-run; agree with --yes.", yes=yes)
    with finishing():
        mended = store.mend(replace(mending, makes_index_anew=False), who=WHO)
    if not mending.makes_index_anew:
        return mended
    with progress_bar() as progress:
        renewed = store.mend(replace(mending, changes=(), wishes=(), unmended=()), progress, who=WHO)
    return replace(mended, index_made_anew=renewed.index_made_anew, warnings=(*mended.warnings, *renewed.warnings))


def _plan(mending: Mending) -> list[list[Part]]:
    """The whole change, as a diff of every note."""
    lines: list[list[Part]] = []
    for change in mending.changes:
        path = f"{change.path} → {change.new_path}" if change.new_path else change.path
        lines += [[(path, "cyan"), ": ", "; ".join(map(one_line, change.what))], *diff_lines(change.diff)]
    return lines + ([[("the index", "cyan"), ": is made anew"]] if mending.makes_index_anew else [])


def _what_was_mended(mending: Mending | None, mended: Mended | None) -> list[list[Part]]:
    if mending is None:
        return []
    if mended is None:
        none = [("Nothing can be mended without a person.", "green")]
        return _plan(mending) + ([[*none]] if mending.is_empty and mending.findings else [])
    done = f"Mended {counted(len(mended.changed), 'file')} in one step"
    lines: list[list[Part]] = (
        [[(done, "green"), f"; undo with: simplemem undo {mended.version}"]] if mended.version else []
    )
    return lines + ([[("The index is made anew.", "green")]] if mended.index_made_anew else [])


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
