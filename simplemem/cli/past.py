"""Commands about what was: history and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.options import JsonOption, VaultOption, command, complete_name, limit_option
from simplemem.errors import NotFound

if TYPE_CHECKING:
    from rich.text import Text

    from simplemem.memory import HistoryEntry

commands = typer.Typer()
_PANEL = "Go back"


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem history",
        "simplemem history Dipper --diff",
        "simplemem history --limit 100 --json",
    ],
)
def history(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=complete_name,
            help="One note. Without it: all.",
        ),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what each change did.")] = False,
    limit: Annotated[int, limit_option("How many changes at most.")] = 20,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show changes, newest first: ours, each with a version that `undo` and `show --version` take."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    with opened(vault) as store:
        entries = store.history(name, limit=limit, diff=diff)
    if as_json:
        output.print_json({"versions": [entry.as_dict() for entry in entries]})
        return
    if not entries:
        output.say("No changes.")
    elif diff:
        for entry in entries:
            _print_change(entry)
    else:
        output.print_table(_row(entry) for entry in entries)


def _row(entry: HistoryEntry) -> list[Text]:
    from simplemem.cli import output

    name = f"{entry.name} → {entry.new_name}" if entry.new_name else entry.name
    return [
        output.styled((entry.version, "yellow")),
        output.styled(entry.op),
        output.styled((name, "cyan")),
        output.styled((output.ago(entry.when), "dim")),
        output.styled((" ".join(filter(None, (entry.who, entry.tool))), "dim")),
        output.styled((output.one_line(entry.reason), "dim")),
    ]


def _print_change(entry: HistoryEntry) -> None:
    from simplemem.cli import output

    screen = output.console()
    line = output.styled()
    for cell in _row(entry):
        if cell.plain:
            line += (output.styled("  ") if line.plain else output.styled()) + cell
    screen.print(line, soft_wrap=True)
    if entry.diff:
        output.print_diff(entry.diff, screen)
    screen.print()


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem undo",
        "simplemem undo Dipper",
        "simplemem undo 12",
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
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a change back. What it takes away stays in the history, so an undo can be undone."""
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing, opened

    with opened(vault) as store:
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
