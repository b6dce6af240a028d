"""Commands that keep a vault in order: what is wrong with it, and conflict copies. What they would write is shown first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from simplemem.cli.command import WHO, Answer, agree, command, finish, finishing, opened, preview, progress_bar
from simplemem.cli.options import VaultOption, YesOption, argument, complete_name, flag, option
from simplemem.cli.output import Part, diff_lines, one_line
from simplemem.cli.write import undo_with
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.memory import ConflictMerge, ConflictMerged, Finding, Mended, Mending

commands = typer.Typer()
_STYLES = {"note": "dim", "warning": "yellow", "error": "bold red"}
_Keep = Literal["note", "copy", "marked", "merge"]
_KEEPS: dict[str, _Keep] = {"note": "note", "copy": "copy", "both": "marked", "": "merge"}


@command(commands, "Keep")
def doctor(
    fix: Annotated[bool, flag("--fix", "Mend broken links, as one change, after showing it and asking.")] = False,
    only: Annotated[
        list[str] | None, option("--only", "CHECK", "Only these checks: `links`, or `links,headers`.")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", "With --fix: show what it would do, and do none.")] = False,
    yes: YesOption = False,
    vault: VaultOption = None,
) -> Answer:
    """Check the vault, its index and the disk they are on. Ends with 0 when there is nothing, or notes only; with 1 for
    an error or a warning.

    It compares the index with one made anew, and looks for broken links and what they may mean, headers that cannot be
    read, secrets and conflict copies. Without `--fix` it changes nothing.

    The checks: index, headers, notes, links, conflicts, secrets, place.

    $ simplemem doctor --only links,headers --json
    $ simplemem doctor --fix
    """
    checks = [name.strip() for names in only or () for name in names.split(",")]
    mended: Mended | None = None
    with opened(vault) as store:
        with progress_bar() as progress:
            mending = store.plan_mending(progress, only=checks) if fix else None
            findings = mending.left if mending is not None else store.doctor(progress, only=checks)
        if mending is not None and dry_run:
            findings = mending.findings
        elif mending is not None and mending.changes:
            preview(Answer({}, _changes(mending)))
            what = f"change {counted(len(mending.changes), 'file')} in one step"
            refused, hint = f"this would {what}", "See it with --dry-run; agree with --yes."
            agree(f"{what.capitalize()}?", refused=refused, hint=hint, yes=yes)
            finish()
            mended = store.mend(mending, who=WHO)
    failed = any(finding.level != "note" for finding in findings)
    facts: dict[str, Any] = {"ok": not failed, "findings": [each.as_dict() for each in findings]}
    lines, warnings = _findings(findings), tuple[str, ...]()
    if mending is not None:
        changes = [{"path": each.path, "what": [*each.what], "diff": each.diff} for each in mending.changes]
        facts["fix"] = {"done": mended is not None, "changes": changes, "unmended": [*mending.unmended]}
        if mended is None:
            warnings = mending.unmended
            lines = (_changes(mending) or [[("Nothing can be mended without a person.", "green")]]) + lines
        else:
            warnings = mended.warnings
            facts["fix"] |= mended.as_dict()
            done: Part = (f"Mended {counted(len(mended.changed), 'file')} in one step", "green")
            lines = [[done], undo_with(mended.version), *lines]
    return Answer(facts, lines, warnings=warnings, failed=failed)


def _changes(mending: Mending) -> list[list[Part]]:
    """The whole change, as a diff of every note."""
    lines: list[list[Part]] = []
    for change in mending.changes:
        lines += [[(change.path, "cyan"), ": ", "; ".join(map(one_line, change.what))], *diff_lines(change.diff)]
    return lines


def _findings(findings: Sequence[Finding]) -> list[list[Part]]:
    """All findings, the worst last, where a person looks first; and their sum."""
    if not findings:
        return [[("All is well.", "green")]]
    lines: list[list[Part]] = []
    levels = Counter[str](finding.level for finding in findings)
    for finding in sorted(findings, key=lambda finding: list(_STYLES).index(finding.level)):
        place = f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: " if finding.path else ""
        level, check = (f"{finding.level}: ", _STYLES[finding.level]), (f"  [{finding.check}]", "dim")
        lines.append([level, (place, "cyan"), one_line(finding.message), check])
        lines += [["  ", (one_line(finding.hint), "dim")]] if finding.hint else []
        lines += [["  --fix would ", (one_line(finding.fix), "green")]] if finding.fix else []
    verdict = ", ".join(counted(levels[level], level) for level in ("error", "warning", "note"))
    if sure := sum(bool(finding.fix) for finding in findings):
        verdict += f"; `simplemem doctor --fix` can mend {sure if sure < len(findings) else 'all of it'}"
    return [*lines, [(f"{verdict}.", next(style for level, style in reversed(_STYLES.items()) if levels[level]))]]


# -- conflict copies


@command(commands, "Keep")
def conflicts(
    action: Annotated[
        str | None, argument("merge", "Bring copies and their note together. Without it: list the copies.")
    ] = None,
    name: Annotated[str | None, argument("NAME", "A copy, or a note: all copies of it.", complete_name)] = None,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be done, and do nothing.")] = False,
    keep: Annotated[
        str,
        option("--keep", "note|copy|both", "Keep the text of one, or of both, marked in the note where they differ."),
    ] = "",
    vault: VaultOption = None,
) -> Answer:
    """List the copies that synchronisers and git keep when a note was changed in two places, and merge them.

    A merge writes the note and puts the copy into the trash, as one change that `undo` takes back. Where the
    history knows the text both began as, what either side removed is removed; where it does not, all is kept.
    What both changed differently is never decided for you: see --keep.

    $ simplemem conflicts
    $ simplemem conflicts merge Kite --dry-run
    $ simplemem conflicts merge Kite --keep note
    """
    if (name is None or action != "merge" or keep not in _KEEPS) and (action or dry_run or keep):
        raise typer.BadParameter("either alone, or as: conflicts merge NAME [--keep note|copy|both]")
    with opened(vault) as store:
        if name is None:
            copies = store.conflict_copies()
            table: list[list[Part]] = [[(copy.path, "cyan"), f"of {copy.of}", (copy.maker, "dim")] for copy in copies]
            more: list[Part] = [("  see what differs with: simplemem conflicts merge NAME --dry-run", "dim")]
            facts = {"conflicts": [copy.as_dict() for copy in copies]}
            return Answer(facts, [more if copies else [("No conflict copies.", "green")]], table, gives_way=0)
        merges = store.conflict_merges(name)
        facts = {"merges": [merge.as_dict() for merge in merges]}
        if dry_run:
            return Answer(facts, _planned(merges))
        done: list[ConflictMerged] = []
        lines: list[list[Part]] = []
        for planned in sorted(merges, key=lambda merge: merge.clean):  # what cannot be merged says so before all others
            again = store.conflict_merges(planned.copy.name)  # the note has changed when another copy of it is merged
            merge = next(each for each in again if each.copy == planned.copy)
            preview(Answer({}, _planned([merge])))
            with finishing():
                done.append(store.merge_conflict(merge, keep=_KEEPS[keep], who=WHO))
            verb = "Merged " if done[-1].changed else "Dropped "
            lines += [[(verb, "green"), (merge.copy.name, "cyan")], undo_with(done[-1].version)]
    warnings = [warning for each in done for warning in each.warnings]
    return Answer({"merged": [each.as_dict() for each in done]}, lines, warnings=warnings)


def _planned(merges: Sequence[ConflictMerge]) -> list[list[Part]]:
    lines: list[list[Part]] = []
    for merge in merges:
        if merge.conflicts:
            found = f"both say something else in {counted(merge.conflicts, 'place')}"
        elif not merge.diff:
            found = "nothing in it is new to the note"
        elif merge.base:
            found = f"they fit together; both most likely began as {merge.base}"
        else:
            found = "they fit together; their base is not known, so all lines are kept"
        lines.append([(merge.copy.path, "cyan"), " into ", (merge.copy.of, "cyan"), f": {merge.problem or found}"])
        lines += diff_lines(merge.diff)
    return lines
