"""The commands `conflicts list` and `conflicts merge`, about conflict copies of notes.

Synchronisers and git keep such a copy of a note that was changed in two places.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from simplemem.cli.command import WHO, Answer, command, finish, opened, preview
from simplemem.cli.options import DryRunOption, VaultOption, argument, complete_name, default_group
from simplemem.cli.output import SHRINKS, WHOLE, Lines, Part, diff_lines
from simplemem.cli.write import undo_with
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import ConflictMerge, ConflictMerged

commands = typer.Typer()
_conflicts = default_group(
    commands,
    "Vault",
    "conflicts",
    "List and merge conflict copies of notes.\n\n"
    "Synchronisers and git keep a copy of a note that was changed in two places.",
    "$ simplemem conflicts\n$ simplemem conflicts merge Kite --dry-run",
)

Keep = StrEnum("Keep", "note copy both")
_MODES: dict[Keep | None, Literal["note", "copy", "marked", "merge"]] = {
    Keep.note: "note",
    Keep.copy: "copy",
    Keep.both: "marked",
    None: "merge",
}


@command(_conflicts, name="list")
def list_copies(vault: VaultOption = None) -> Answer:
    """List the conflict copies, each with its note.

    $ simplemem conflicts
    $ simplemem conflicts list --json"""
    with opened(vault) as store:
        copies = store.conflict_copies()

    facts = {"conflicts": [copy.as_dict() for copy in copies]}
    if not copies:
        return Answer(facts, [[("No conflict copies.", "green")]])

    rows: Lines = [[(copy.path, "cyan"), f"of {copy.of}", (copy.maker, "dim")] for copy in copies]
    next_step = ("  `simplemem conflicts merge NAME --dry-run` shows the differences", "dim")
    return Answer(facts, [[next_step]], rows, columns=(WHOLE, WHOLE, SHRINKS))


@command(_conflicts)
def merge(
    name: Annotated[
        str, argument("NAME", "A copy, or a note to merge with all its copies.", complete_name)
    ],
    dry_run: DryRunOption = False,
    keep: Annotated[
        Keep | None,
        typer.Option("--keep", help="Keep one text, or both with their differences marked."),
    ] = None,
    vault: VaultOption = None,
) -> Answer:
    """Merge conflict copies into their note.

    The note is written and the copies are moved to the trash, as one change that `undo` takes back.
    If the history has the text that both started from, lines that either side removed are removed;
    otherwise all lines are kept. If both sides changed the same lines, nothing is written: choose
    with --keep.

    $ simplemem conflicts merge Kite --dry-run
    $ simplemem conflicts merge Kite --keep note"""
    with opened(vault) as store:
        merges = store.conflict_merges(name, in_sequence=True)
        if dry_run:
            facts = {"merges": [merge.as_dict() for merge in merges]}
            return Answer(facts, _plan_lines(merges))

        results: list[ConflictMerged] = []
        lines = Lines()
        for merges_of_note in _group_by_note(merges):
            preview(Answer({}, _plan_lines(merges_of_note)))
            with finish():
                merged = store.merge_conflicts(merges_of_note, keep=_MODES[keep], who=WHO)
            lines += _merged_lines(merged)
            results += merged

    warnings = [warning for result in results for warning in result.warnings]
    return Answer({"merged": [result.as_dict() for result in results]}, lines, warnings=warnings)


def _group_by_note(merges: Sequence[ConflictMerge]) -> list[list[ConflictMerge]]:
    """Return the merges of each note; first the notes that need a decision of the user."""
    by_note: dict[str, list[ConflictMerge]] = {}
    for merge in merges:
        by_note.setdefault(merge.copy.original, []).append(merge)
    return sorted(by_note.values(), key=_are_clean)


def _are_clean(merges: Sequence[ConflictMerge]) -> bool:
    """Return whether all merges are possible without a decision of the user."""
    return all(merge.clean for merge in merges)


def _merged_lines(merged: Sequence[ConflictMerged]) -> Lines:
    """Return what was done with the copies of a note, and how to undo it.

    `merged` has at least one copy. A copy that did not change the note is called dropped.
    """
    lines = Lines()
    for result in merged:
        verb = "Merged " if result.changed else "Dropped "
        lines.append([(verb, "green"), (result.copy, "cyan")])
    lines.append(undo_with(merged[0].version))
    return lines


def _plan_lines(merges: Sequence[ConflictMerge]) -> Lines:
    """Return what each merge would do, or what prevents it, and its changes in the note."""
    lines = Lines()
    for merge in merges:
        copy: Part = (merge.copy.path, "cyan")
        note: Part = (merge.copy.of, "cyan")
        lines.append([copy, " into ", note, f": {merge.problem or _outcome(merge)}"])
        lines += diff_lines(merge.diff)
    return lines


def _outcome(merge: ConflictMerge) -> str:
    """Return in words how a merge ends, and where both texts come from."""
    if merge.conflicts:
        return f"both changed the same text in {format_count(merge.conflicts, 'place')}"
    if not merge.diff:
        return "the note already contains everything in the copy"
    if merge.base:
        return f"no conflicts; the common base is most likely {merge.base}"
    return "no conflicts; the common base is not known, so all lines are kept"
