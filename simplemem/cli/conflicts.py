"""The command conflicts: copies that synchronisers and git left beside notes, listed, compared and merged."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.options import JsonOption, VaultOption, command, complete_copy
from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from rich.text import Text

    from simplemem.memory import ConflictCopy, ConflictMerge
    from simplemem.store import EnhancedStore
    from simplemem.store.conflicts import Keep

commands = typer.Typer()
_PANEL = "Keep"
_KEEPS: dict[str, Keep] = {"note": "note", "copy": "copy", "both": "marked"}


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem conflicts",
        "simplemem conflicts merge Kite --dry-run",
        "simplemem conflicts merge Kite --keep note",
        "simplemem conflicts merge --all",
    ],
)
def conflicts(
    action: Annotated[
        str | None,
        typer.Argument(metavar="merge", help="Bring copies and their notes together. Without it: list the copies."),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", autocompletion=complete_copy, help="A copy, or a note: all copies of it."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every copy that can be merged without a question; the others are told.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="note|copy|both",
            help="Keep the text of one of the two, or of both, marked in the note where they differ.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the copies that synchronisers and git keep when a note was changed in two places, and merge them.

    A merge writes the note and puts the copy into the trash, as one change that `undo` takes back. Where the
    history knows the text both began as, what either side removed is removed; where it does not, all is kept.
    What both changed differently is never decided for you: see --keep.
    """
    from simplemem.cli.opening import opened

    if action not in (None, "merge"):
        raise typer.BadParameter(f"only `merge` may stand here, not {action!r}")
    if action is None and (every or dry_run or keep):
        raise typer.BadParameter("--all, --dry-run and --keep belong to `conflicts merge`")
    if action and bool(names) == every:
        raise typer.BadParameter("either the names of copies or notes, or --all")
    if keep is not None and keep not in _KEEPS:
        raise typer.BadParameter(f"--keep takes note, copy or both, not {keep!r}")
    if keep and every:
        raise typer.BadParameter("--keep decides for copies that are named, not for --all")
    with opened(vault) as store:
        if action is None:
            _list(store.conflict_copies(), as_json)
            return
        found = store.conflict_merges() if every else _named(store, names or [])
        how = _KEEPS[keep] if keep else "merge"
        if dry_run:
            _show(found, as_json)
            return
        ask = not (yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
        _merge(store, found, how, every=every, ask=ask, as_json=as_json)


def _named(store: EnhancedStore, names: list[str]) -> list[ConflictMerge]:
    merges = [merge for name in names for merge in store.conflict_merges(name)]
    return list({merge.copy.path: merge for merge in merges}.values())


def _list(copies: tuple[ConflictCopy, ...], as_json: bool) -> None:
    from simplemem.cli import output

    if as_json:
        output.print_json({"conflicts": [copy.as_dict() for copy in copies]})
    elif not copies:
        output.say(("No conflict copies.", "green"))
    else:
        output.print_table((_row(copy) for copy in copies), gives_way=0)
        output.say(("  see what differs with: simplemem conflicts merge NAME --dry-run", "dim"))


def _row(copy: ConflictCopy) -> list[Text]:
    from simplemem.cli import output

    whose = " ".join(filter(None, (copy.maker, copy.by)))
    return [
        output.styled((copy.path, "cyan")),
        output.styled(f"of {copy.of}"),
        output.styled((whose, "dim")),
        output.styled((copy.when, "dim")),
    ]


def _show(merges: list[ConflictMerge] | tuple[ConflictMerge, ...], as_json: bool) -> None:
    from simplemem.cli import output

    if as_json:
        output.print_json({"merges": [merge.as_dict() for merge in merges]})
        return
    if not merges:
        output.say(("No conflict copies.", "green"))
    for merge in merges:
        _describe(merge)


def _describe(merge: ConflictMerge) -> None:
    """What a merge would do, and its difference."""
    from simplemem.cli import output

    output.say((merge.copy.path, "cyan"), " into ", (merge.copy.of, "cyan"), f": {_verdict(merge)}")
    if merge.diff:
        output.print_diff(merge.diff, output.console())


def _verdict(merge: ConflictMerge) -> str:
    if merge.problem:
        return f"cannot be merged: {merge.problem}"
    if merge.conflicts:
        return f"both say something else in {merge.conflicts} place{'' if merge.conflicts == 1 else 's'}"
    if not merge.diff:
        return "it says nothing that the note does not say"
    if not merge.base:
        return "they fit together; what both began as is not known, so every line is kept"
    return f"they fit together; both {'most likely ' if merge.removes else ''}began as {merge.base}"


def _merge(
    store: EnhancedStore,
    merges: list[ConflictMerge] | tuple[ConflictMerge, ...],
    how: Keep,
    *,
    every: bool,
    ask: bool,
    as_json: bool,
) -> None:
    """Merge one after the other, each as a change of its own; what is left over is told at the end."""
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing

    done: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    for merge in merges:
        # A note with two copies has changed when the first is in it: the second is looked at again.
        found = next((m for m in store.conflict_merges(merge.copy.path)), merge) if done else merge
        if (why := _why_not(found, how, every=every)) is not None:
            left.append({"copy": found.copy.path, "of": found.copy.of, "why": why})
            continue
        if not as_json:
            _describe(found)
        if ask and not typer.confirm(f"Write this to {found.copy.of}?" if how != "note" else "Drop the copy?"):
            left.append({"copy": found.copy.path, "of": found.copy.of, "why": "left as it is"})
            continue
        with finishing():
            try:
                merged = store.merge_conflict(found, keep=how, who=WHO, tool="conflicts")
            except SimplememError as error:
                if len(merges) == 1:
                    raise
                left.append({"copy": found.copy.path, "of": found.copy.of, "why": error.message})
                continue
            done.append(merged.as_dict())
            if not as_json:
                output.say(("Merged " if merged.changed else "Dropped ", "green"), (merged.copy, "cyan"))
                output.say((f"  undo with: simplemem undo {merged.version}", "dim"))
                for warning in merged.warnings:
                    output.warn(warning)
                if merged.links_left_unresolved:
                    output.warn(f"{merged.links_left_unresolved} links to the copy now lead nowhere")
    if as_json:
        output.print_json({"merged": done, "left": left})
    else:
        _say_left(left, anything=bool(done))
    if left:
        raise typer.Exit(1)


def _why_not(merge: ConflictMerge, how: Keep, *, every: bool) -> str | None:
    """Why a copy is not merged without a further word."""
    if how != "merge":
        return None
    if merge.problem or merge.conflicts:
        return _verdict(merge)
    if every and merge.removes:
        return "what both began as is not certain, and lines of the note would go: look, and merge it by its name"
    return None


def _say_left(left: list[dict[str, Any]], *, anything: bool) -> None:
    from simplemem.cli import output

    for each in left:
        output.warn(f"{each['copy']}: {each['why']}")
    if left:
        output.warn("look with `simplemem conflicts merge NAME --dry-run`; decide with --keep note, copy or both")
    elif not anything:
        output.say(("No conflict copies.", "green"))
