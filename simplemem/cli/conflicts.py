"""The command conflicts: copies that synchronisers and git left beside notes, listed, compared and merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from simplemem.cli.command import Answer, can_ask, command, preview
from simplemem.cli.opening import WHO, finishing, opened
from simplemem.cli.options import VaultOption, YesOption, argument, complete_copy, flag, option
from simplemem.cli.text import diff_lines
from simplemem.cli.write import undo_with
from simplemem.errors import SimplememError
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.cli.text import Part
    from simplemem.memory import ConflictCopy, ConflictMerge, ConflictMerged
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_Keep = Literal["note", "copy", "marked", "merge"]
_KEEPS: dict[str, _Keep] = {"note": "note", "copy": "copy", "both": "marked", "": "merge"}
_NONE: list[Part] = [("No conflict copies.", "green")]


@command(commands, "Keep")
def conflicts(
    action: Annotated[
        str | None, argument("merge", "Bring copies and their notes together. Without it: list the copies.")
    ] = None,
    names: Annotated[list[str] | None, argument("NAME", "A copy, or a note: all copies of it.", complete_copy)] = None,
    every: Annotated[
        bool, flag("--all", "Every copy that can be merged without a question; the others are named.")
    ] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be done, and do nothing.")] = False,
    keep: Annotated[
        str,
        option("--keep", "note|copy|both", "Keep the text of one, or of both, marked in the note where they differ."),
    ] = "",
    yes: YesOption = False,
    vault: VaultOption = None,
) -> Answer:
    """List the copies that synchronisers and git keep when a note was changed in two places, and merge them.

    A merge writes the note and puts the copy into the trash, as one change that `undo` takes back. Where the
    history knows the text both began as, what either side removed is removed; where it does not, all is kept.
    What both changed differently is never decided for you: see --keep.

    $ simplemem conflicts
    $ simplemem conflicts merge Kite --dry-run
    $ simplemem conflicts merge Kite --keep note
    $ simplemem conflicts merge --all
    """
    if action not in (None, "merge"):
        raise typer.BadParameter(f"only `merge` may stand here, not {action!r}")
    if action is None and (every or dry_run or keep):
        raise typer.BadParameter("--all, --dry-run and --keep belong to `conflicts merge`")
    if action and bool(names) == every:
        raise typer.BadParameter("either the names of copies or notes, or --all")
    if keep not in _KEEPS or (keep and every):
        raise typer.BadParameter("--keep takes note, copy or both, for copies that are named")
    with opened(vault) as store:
        if action is None:
            return _listed(store.conflict_copies())
        named = [store.conflict_merges(name) for name in names] if names else [store.conflict_merges()]
        merges = list({merge.copy.path: merge for found in named for merge in found}.values())
        if dry_run:
            return _planned(merges)
        return _merged(store, merges, _KEEPS[keep], every=every, ask=not yes and can_ask())


def _listed(copies: Sequence[ConflictCopy]) -> Answer:
    table: list[list[Part]] = [[(copy.path, "cyan"), f"of {copy.of}", (copy.maker, "dim")] for copy in copies]
    more: list[Part] = [("  see what differs with: simplemem conflicts merge NAME --dry-run", "dim")]
    return Answer({"conflicts": [copy.as_dict() for copy in copies]}, [more if copies else _NONE], table, gives_way=0)


def _planned(merges: Sequence[ConflictMerge]) -> Answer:
    lines: list[list[Part]] = []
    for merge in merges:
        lines.append([(merge.copy.path, "cyan"), " into ", (merge.copy.of, "cyan"), f": {_verdict(merge)}"])
        lines += diff_lines(merge.diff)
    return Answer({"merges": [merge.as_dict() for merge in merges]}, lines or [_NONE])


def _merged(store: EnhancedStore, merges: Sequence[ConflictMerge], how: _Keep, *, every: bool, ask: bool) -> Answer:
    """Merge one after the other, each as a change of its own. What is left is named with the reason."""
    done: list[ConflictMerged] = []
    left: list[dict[str, Any]] = []
    for planned in merges:
        # A note with two copies has changed when the first is in it: the second is looked at again.
        merge = next(iter(store.conflict_merges(planned.copy.path)), planned) if done else planned
        why = ""
        if how == "merge" and (merge.problem or merge.conflicts):
            why = _verdict(merge)
        elif how == "merge" and every and merge.removes:
            why = "what both began as is not certain, and lines of the note would go: look, and merge it by its name"
        else:
            preview(_planned([merge]))
            question = "Drop the copy?" if how == "note" else f"Write this to {merge.copy.of}?"
            why = "left as it is" if ask and not typer.confirm(question) else ""
        if not why:
            try:
                with finishing():
                    done.append(store.merge_conflict(merge, keep=how, who=WHO, tool="conflicts"))
                continue
            except SimplememError as error:
                if len(merges) == 1:
                    raise
                why = error.message
        left.append({"copy": merge.copy.path, "of": merge.copy.of, "why": why})
    lines: list[list[Part]] = []
    for each in done:
        lines += [[("Merged " if each.changed else "Dropped ", "green"), (each.copy, "cyan")], undo_with(each.version)]
    warnings = [warning for each in done for warning in each.warnings]
    warnings += [f"{each['copy']}: {each['why']}" for each in left]
    if left:
        warnings.append("look with `simplemem conflicts merge NAME --dry-run`; decide with --keep note, copy or both")
    facts = {"merged": [each.as_dict() for each in done], "left": left}
    return Answer(facts, lines if lines or left else [_NONE], warnings=warnings, failed=bool(left))


def _verdict(merge: ConflictMerge) -> str:
    if merge.problem:
        return f"cannot be merged: {merge.problem}"
    if merge.conflicts:
        return f"both say something else in {counted(merge.conflicts, 'place')}"
    if not merge.diff:
        return "nothing in it is new to the note"
    if not merge.base:
        return "they fit together; what both began as is not known, so every line is kept"
    return f"they fit together; both {'most likely ' if merge.removes else ''}began as {merge.base}"
