"""The command `doctor`: what is wrong, and with `--fix` what can be mended, shown whole before anything is written."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.options import JsonOption, VaultOption, command
from simplemem.errors import Invalid, ReadOnly

if TYPE_CHECKING:
    from simplemem.memory import Finding, Mend, Mended
    from simplemem.store import EnhancedStore
    from simplemem.store.doctor.plan import Mending

commands = typer.Typer()
_PANEL = "Keep"
_MOST_NOTES = 20  # of one kind that are named when all checks are asked for
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem doctor",
        "simplemem doctor --only links,headers --json",
        "simplemem doctor --fix",
        "simplemem doctor --fix --only links --yes",
    ],
)
def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what is sure, as one change, after showing it and asking.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="CHECK", help="Only these checks: `links`, or `links,names`."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --fix: show what it would do, and do none.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --fix: do it without asking.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 for a note as well.")] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the vault, its index and what they stand on. Ends with 0 when there is nothing, or notes only; with 1 for
    an error or a warning.

    It compares the index with one made anew, and looks for broken links and what they may mean, headers that cannot be
    read, names that collide, secrets, conflict copies, and files that lie about. Without `--fix` it changes nothing.

    The checks: index, vectors, headers, notes, names, links, conflicts, secrets, attachments, strays, place,
    system.
    """
    from simplemem.cli.opening import opened, progress_bar
    from simplemem.store.doctor.examine import CHECKS, asked_for

    if (dry_run or yes) and not fix:
        raise typer.BadParameter("--dry-run and --yes belong to --fix")
    try:
        checks = asked_for(name.strip() for given in only or () for name in given.split(","))
    except Invalid as error:
        raise typer.BadParameter(f"{error.message} {error.hint}".strip()) from error
    embed = not checks or not checks.isdisjoint({"index", "vectors"})
    assert checks <= CHECKS.keys()
    mending: Mending | None = None
    mended: Mended | None = None
    with opened(vault, embed=embed) as store:
        with progress_bar() as progress:
            if fix:
                mending = store.plan_mending(progress, only=checks)
            else:
                findings = store.doctor(progress, only=checks)
        if mending is not None:
            findings = mending.findings if dry_run else mending.left
            if mending.wishes and store.read_only and not dry_run:
                raise ReadOnly(f"the vault {store.root} is open for reading only", hint="See it with --dry-run.")
            if not as_json:
                _show(mending)
            if not dry_run and not mending.is_empty:
                _ask(mending, yes=yes, as_json=as_json)
                mended = _mend(store, mending)
        stands_on = store.surroundings() if as_json else {}
    if as_json:
        _print_json(findings, stands_on, strict=strict, mending=mending, mended=mended)
    else:
        _print(findings, whole=bool(checks), mending=mending, mended=mended)
    if any(strict or finding.level != "note" for finding in findings):
        raise typer.Exit(1)


def _show(mending: Mending) -> None:
    """The whole change, as a diff of every note."""
    from simplemem.cli import output

    screen = output.console()
    for change in mending.changes:
        output.say((_called(change), "cyan"), ": ", "; ".join(map(output.one_line, change.what)), screen=screen)
        if change.diff:
            output.print_diff(change.diff, screen)
    if mending.makes_index_anew:
        output.say(("the index", "cyan"), ": is made anew", screen=screen)


def _called(change: Mend) -> str:
    return f"{change.path} → {change.new_path}" if change.new_path else change.path


def _ask(mending: Mending, *, yes: bool, as_json: bool) -> None:
    """Have a person agree to what was shown; where nobody can be asked, say how to agree."""
    what = _in_words(mending)
    if yes:
        return
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Invalid(f"this would {what}", hint="See it with --dry-run; agree with --yes.")
    typer.confirm(f"{what[:1].upper()}{what[1:]}?", abort=True, err=True)


def _in_words(mending: Mending) -> str:
    parts = [f"change {_count(len(mending.changes), 'file')} in one step"] if mending.changes else []
    return " and ".join([*parts, *(["make the index anew"] if mending.makes_index_anew else [])])


def _mend(store: EnhancedStore, mending: Mending) -> Mended:
    """The notes first, which no Ctrl-C interrupts; then the index, which may be begun again at any time."""
    from dataclasses import replace

    from simplemem.cli.opening import WHO, finishing, progress_bar

    with finishing():
        mended = store.mend(replace(mending, makes_index_anew=False), who=WHO)
    if not mending.makes_index_anew:
        return mended
    with progress_bar() as progress:
        renewed = store.mend(replace(mending, changes=(), wishes=(), unmended=()), progress, who=WHO)
    return replace(mended, index_made_anew=renewed.index_made_anew, warnings=(*mended.warnings, *renewed.warnings))


def _print_json(
    findings: Sequence[Finding],
    stands_on: dict[str, Any],
    *,
    strict: bool,
    mending: Mending | None,
    mended: Mended | None,
) -> None:
    from simplemem.cli import output

    ok = not any(strict or finding.level != "note" for finding in findings)
    answer: dict[str, Any] = {"ok": ok, "findings": [finding.as_dict() for finding in findings], "stands_on": stands_on}
    if mending is not None:
        done: dict[str, Any] = mended.as_dict() if mended is not None else {}
        answer["fix"] = {"done": mended is not None, "changes": [change.as_dict() for change in mending.changes]}
        answer["fix"] |= {"makes_index_anew": mending.makes_index_anew, "unmended": list(mending.unmended)} | done
    output.print_json(answer)


def _print(
    findings: Sequence[Finding], *, whole: bool, mending: Mending | None = None, mended: Mended | None = None
) -> None:
    from simplemem.cli import output

    if mending is not None:
        _print_mended(mending, mended)
    notes = Counter[str]()
    for finding in findings:
        notes[finding.check] += finding.level == "note"
        if finding.level != "note" or notes[finding.check] <= _MOST_NOTES or whole:
            _print_finding(finding)
    for check, number in notes.items():
        if number > _MOST_NOTES and not whole:
            more = (
                f"{number - _MOST_NOTES:,} more notes of this kind: `simplemem doctor --only {check}` names them all."
            )
            output.say((more, "dim"))
    output.say(_verdict(findings))


def _print_finding(finding: Finding) -> None:
    from simplemem.cli import output

    place = f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: " if finding.path else ""
    what = output.one_line(finding.message)
    output.say((f"{finding.level}: ", _STYLES[finding.level]), (place, "cyan"), what, (f"  [{finding.check}]", "dim"))
    if finding.hint:
        output.say("  ", (output.one_line(finding.hint), "dim"))
    if finding.fix:
        output.say("  --fix would ", (output.one_line(finding.fix), "green"))


def _print_mended(mending: Mending, mended: Mended | None) -> None:
    from simplemem.cli import output

    if mending.is_empty and mending.findings:
        output.say(("Nothing can be mended without a person.", "green"))
    if mended is not None and mended.version:
        output.say(
            (f"Mended {_count(len(mended.changed), 'file')} in one step", "green"),
            f"; `simplemem undo {mended.version}` takes it back.",
        )
    if mended is not None and mended.index_made_anew:
        output.say(("The index is made anew.", "green"))
    for warning in mended.warnings if mended is not None else mending.unmended:
        output.warn(warning)


def _verdict(findings: Sequence[Finding]) -> tuple[str, str]:
    if not findings:
        return "All is well.", "green"
    counted = Counter[str](finding.level for finding in findings)
    told = ", ".join(_count(counted[level], level) for level in _STYLES)
    sure = sum(bool(finding.fix) for finding in findings)
    if sure:
        told += f"; `simplemem doctor --fix` can mend {sure if sure < len(findings) else 'all of it'}"
    return told + ".", "bold red" if counted["error"] else "yellow" if counted["warning"] else "green"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
