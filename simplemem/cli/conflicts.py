"""The commands `conflicts list` and `conflicts merge`: the copies that synchronisers and git keep of a note."""

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
    table: Lines = [[(copy.path, "cyan"), f"of {copy.of}", (copy.maker, "dim")] for copy in copies]
    next_step: list[Part] = [
        ("  `simplemem conflicts merge NAME --dry-run` shows the differences", "dim")
    ]
    facts = {"conflicts": [copy.as_dict() for copy in copies]}
    lines = [next_step if copies else [("No conflict copies.", "green")]]
    return Answer(facts, lines, table, columns=(WHOLE, WHOLE, SHRINKS))


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

    The note is written and the copies are moved to the trash, as one change that `undo` takes back. If the history has
    the text that both started from, lines that either side removed are removed; otherwise all lines are kept. If both
    sides changed the same lines, nothing is written: choose with --keep.

    $ simplemem conflicts merge Kite --dry-run
    $ simplemem conflicts merge Kite --keep note"""
    with opened(vault) as store:
        merges = store.conflict_merges(name, in_sequence=True)
        if dry_run:
            return Answer({"merges": [planned.as_dict() for planned in merges]}, _planned(merges))
        done: list[ConflictMerged] = []
        lines = Lines()
        for of_note in _by_note(merges):
            preview(Answer({}, _planned(of_note)))
            with finish():
                merged = store.merge_conflicts(of_note, keep=_MODES[keep], who=WHO)
            for each in merged:
                verb = "Merged " if each.changed else "Dropped "
                lines.append([(verb, "green"), (each.copy, "cyan")])
            lines.append(undo_with(merged[0].version))
            done += merged
    warnings = [warning for each in done for warning in each.warnings]
    return Answer({"merged": [each.as_dict() for each in done]}, lines, warnings=warnings)


def _by_note(merges: Sequence[ConflictMerge]) -> list[list[ConflictMerge]]:
    """The merges of each note, those first that cannot be made without a decision."""
    by_note: dict[str, list[ConflictMerge]] = {}
    for merge in merges:
        by_note.setdefault(merge.copy.original, []).append(merge)
    return sorted(by_note.values(), key=lambda of_note: all(merge.clean for merge in of_note))


def _planned(merges: Sequence[ConflictMerge]) -> Lines:
    lines = Lines()
    for merge in merges:
        if merge.conflicts:
            found = f"both changed the same text in {format_count(merge.conflicts, 'place')}"
        elif not merge.diff:
            found = "the note already contains everything in the copy"
        elif merge.base:
            found = f"no conflicts; the common base is most likely {merge.base}"
        else:
            found = "no conflicts; the common base is not known, so all lines are kept"
        lines.append(
            [
                (merge.copy.path, "cyan"),
                " into ",
                (merge.copy.of, "cyan"),
                f": {merge.problem or found}",
            ]
        )
        lines += diff_lines(merge.diff)
    return lines
