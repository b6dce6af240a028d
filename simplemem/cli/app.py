"""The command `simplemem`, assembled from its groups. What a command needs is imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from simplemem import __version__
from simplemem.cli import client, evaluate, find, graph, importing, knowledge, past, remember, talk, token, vault, write
from simplemem.cli.options import Command, Group

app = typer.Typer(
    name="simplemem",
    cls=Group,
    help="The memory agents and people share: Markdown notes in a folder, found by words, meaning and links.",
    epilog="Every command has examples in its own --help. Exit codes: 0 done, 1 failed, 2 wrong usage.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"]},
)

for group in (find, write, past, graph, importing, vault, knowledge, talk, remember, evaluate, token, client):
    app.add_typer(group.commands)


@app.command(
    "serve",
    cls=Command,
    rich_help_panel="Serve",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
def serve(arguments: Annotated[list[str] | None, typer.Argument(metavar="[OPTIONS]")] = None) -> None:
    """Serve the vault to an agent: MCP over standard input and output."""
    # The program sends `serve` on before any of this is loaded; here it stands in `--help` and in completion.
    from simplemem.cli.serve import serve_main

    raise typer.Exit(serve_main(arguments or []))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simplemem {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Global options."""
