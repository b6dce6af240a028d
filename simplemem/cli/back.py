"""Commands that bring back what was: restore and undo. Each is a change like any other, and can be undone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.options import JsonOption, Name, VaultOption, command, complete_name
from simplemem.cli.past import PANEL, WHEN
from simplemem.errors import Invalid, NotFound

if TYPE_CHECKING:
    from simplemem.memory import UndoneMany
    from simplemem.store import EnhancedStore

commands = typer.Typer()
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="WHEN", help=f"As it was at {WHEN}. A day means its end."),
]


@command(
    commands,
    PANEL,
    examples=[
        "simplemem restore Dipper",
        "simplemem restore Dipper --at 12",
        "simplemem restore Dipper --at '3 days ago' --as 'Dipper as it was'",
    ],
)
def restore(
    name: Name,
    at: AtOption = None,
    new_name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Bring it back under this name, beside what is there.")
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring an earlier text of a note back, to the byte. A deleted note needs no --at.

    What the note says now stays in the history: `undo` takes a restore back.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing, opened

    with opened(vault) as store, finishing():
        restored = store.restore(name, at=at, new_name=new_name, who=WHO)
        if as_json:
            output.print_json(restored.as_dict())
            return
        already = "" if restored.changed else "already "
        output.say((f"{restored.name} is {already}as it was at {restored.at}.", "green"))
        for warning in restored.warnings:
            output.warn(warning)


@command(
    commands,
    PANEL,
    examples=[
        "simplemem undo",
        "simplemem undo Dipper",
        "simplemem undo 12",
        "simplemem undo --by claude-ai --since '2 hours ago' --dry-run",
        "simplemem undo --by claude-ai --since v40 --yes",
    ],
)
def undo(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION|NAME",
            autocompletion=complete_name,
            help="A version of `history`, or a note: its last change. Without it: the last change of all.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="WHO", help="Everything this client changed, with or without its version."),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="WHEN", help=f"With --by: since {WHEN}.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --by: only show what would become of what.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="With --by: show the differences too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --by: do not ask.")] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a change back, or everything a client changed. It stays in the history, so an undo can be undone.

    Of everything a client changed, what somebody else has changed since is left as it is, and named.
    """
    from simplemem.cli.opening import opened

    if (by is None) != (since is None) or (by is None and (dry_run or yes or diff)):
        raise Invalid("--by and --since go together", hint="simplemem undo --by WHO --since WHEN [--dry-run]")
    if by is not None and what is not None:
        raise Invalid("give a version or a name, or --by and --since, not both")
    with opened(vault) as store:
        if by is not None and since is not None:
            _undo_all(store, by, since, dry_run=dry_run, diff=diff, yes=yes, as_json=as_json)
        else:
            _undo_one(store, what, as_json=as_json)


def _undo_one(store: EnhancedStore, what: str | None, *, as_json: bool) -> None:
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing

    if what is None:
        last = store.history(limit=1)
        if not last:
            raise NotFound("There is nothing to undo.", hint="Only changes made through simplemem are kept.")
        what = last[0].version
    with finishing():
        undone = store.undo(what, who=WHO, tool="undo")
        if as_json:
            output.print_json(undone.as_dict())
        else:
            output.say((f"{undone.what[:1].upper()}{output.one_line(undone.what[1:])}", "green"))


def _undo_all(
    store: EnhancedStore, by: str, since: str, *, dry_run: bool, diff: bool, yes: bool, as_json: bool
) -> None:
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing

    shown = store.undo_all(by, since, preview=True, diff=diff)
    if not as_json:
        _print_plan(shown)
    if dry_run or not shown.notes:
        if as_json:
            output.print_json(shown.as_dict())
        return
    if not yes:
        if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Invalid(
                "nobody can be asked here, and nothing was changed", hint="Add --yes, or look with --dry-run."
            )
        typer.confirm("Do it?", abort=True, err=True)
    with finishing():
        done = store.undo_all(by, since, expected=shown.plan, diff=diff, who=WHO)
        if as_json:
            output.print_json(done.as_dict())
            return
        count = len(done.notes)
        output.say((f"Took back what {by} changed in {count} note{'' if count == 1 else 's'}", "green"))
        output.say((f"  undo with: simplemem undo {done.version}", "dim"))


def _print_plan(shown: UndoneMany) -> None:
    from simplemem.cli import output

    screen = output.console()
    if not shown.notes:
        output.say(f"Nothing that {shown.by} changed since {shown.since} is to be taken back.")
    rows = []
    for note in shown.notes:
        name = f"{note.name} → {note.new_name}" if note.new_name else note.name
        rows.append(
            [output.styled(note.becomes), output.styled((name, "cyan")), output.styled((f"before {note.since}", "dim"))]
        )
    if any(note.diff for note in shown.notes):
        for row, note in zip(rows, shown.notes, strict=True):
            output.print_table([row])
            if note.diff:
                output.print_diff(note.diff, screen)
    else:
        output.print_table(rows)
    for each in shown.left:
        output.say(("left as it is  ", "yellow"), (each.name, "cyan"), (f"  {each.why}", "dim"), screen=screen)
