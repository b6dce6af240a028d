"""Commands that look at what was: history and diff. They change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.options import JsonOption, VaultOption, command, complete_name, limit_option

if TYPE_CHECKING:
    from rich.text import Text

    from simplemem.memory import HistoryEntry

commands = typer.Typer()
PANEL = "Go back"
WHEN = "a date or version: `2026-01-24`, `yesterday`, `v12`"

ByOption = Annotated[
    str,
    typer.Option("--by", metavar="WHO", help="Only changes of this client, with or without its version."),
]


@command(
    commands,
    PANEL,
    examples=[
        "simplemem history",
        "simplemem history Dipper --diff",
        "simplemem history --by claude-ai --since yesterday",
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
    by: ByOption = "",
    tool: Annotated[str, typer.Option("--tool", metavar="TOOL", help="Only what was done with this tool.")] = "",
    since: Annotated[str, typer.Option("--since", metavar="WHEN", help=f"Only changes since {WHEN}.")] = "",
    until: Annotated[str, typer.Option("--until", metavar="WHEN", help=f"Only changes up to {WHEN}.")] = "",
    limit: Annotated[int, limit_option("How many changes at most.")] = 20,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show changes, newest first: ours, each with a version that `undo` and `show --version` take.

    Of one note in a git repository its commits too, which `show --version` and `restore --at` take.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    with opened(vault) as store:
        entries = store.history(name, limit=limit, diff=diff, by=by, tool=tool, since=since, until=until)
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
    PANEL,
    examples=[
        "simplemem diff 12",
        "simplemem diff 9 12",
        "simplemem diff Dipper",
        "simplemem diff Dipper --since 'last week'",
    ],
)
def diff(
    what: Annotated[
        str,
        typer.Argument(
            metavar="VERSION|NAME",
            autocompletion=complete_name,
            help="A version of `history`: what it changed. Or a note: what changed in it.",
        ),
    ],
    other: Annotated[
        str | None,
        typer.Argument(metavar="[VERSION]", show_default=False, help="A second version, to compare the first with."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="WHEN", help=f"What changed in the note since {WHEN}. Else: its last change."),
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a version changed, what lies between two, or what changed in a note."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    with opened(vault) as store:
        found = store.diff(what, other, since=since)
    if as_json:
        output.print_json({"differences": [each.as_dict() for each in found]})
        return
    for each in found:
        moved = each.name != each.new_name and other is None
        if moved:
            output.say((f"{each.name} → {each.new_name}", "cyan"))
        if each.diff:
            output.print_diff(each.diff, output.console())
        elif not each.doubt and not moved:
            output.say(f"{each.new_name}: no difference.")
        if each.doubt:
            output.warn(f"{each.name}: {each.doubt}")
