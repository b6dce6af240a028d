"""The command `simplemem`: which commands there are, and in which module each one is declared.

`--help` and completion of command names read the table below and load no command. A command's module is imported
when that command is asked for: importing all of them cost more than running most of them.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from simplemem import __version__
from simplemem.cli.options import Command, Group


@dataclass(frozen=True)
class Listed:
    """A command as `simplemem --help` shows it, and the module that declares it. A test keeps both the same."""

    name: str
    module: str
    panel: str
    summary: str


COMMANDS = (
    Listed("search", "find", "Find and read", "Find notes by words, by meaning and by links."),
    Listed("show", "find", "Find and read", "Print a note."),
    Listed("list", "find", "Find and read", "List notes, newest first."),
    Listed("tasks", "find", "Find and read", "List open tasks."),
    Listed("backlinks", "find", "Find and read", "List the notes that link to a note, and similar notes."),
    Listed("context", "find", "Find and read", "Collect the passages that answer a question, for a prompt."),
    Listed("new", "write", "Write", "Create a note."),
    Listed("edit", "write", "Write", "Edit a note in $EDITOR."),
    Listed("daily", "write", "Write", "Create today's daily note, or add text to it."),
    Listed("tag", "write", "Write", "Add, remove or list the tags of a note."),
    Listed("move", "write", "Write", "Move or rename a note. Links to it are updated."),
    Listed("delete", "write", "Write", "Delete notes without confirmation. `undo` restores them."),
    Listed("history", "past", "History", "List changes, newest first."),
    Listed("diff", "past", "History", "Show what a change did, or how two versions differ."),
    Listed("undo", "past", "History", "Undo the last change, or every change of one author."),
    Listed("redo", "past", "History", "Redo what `undo` took back."),
    Listed("restore", "past", "History", "Restore an earlier version of a note, or a deleted note."),
    Listed("facts", "remember", "Collections", "Facts that agents remember."),
    Listed("topics", "talk", "Collections", "Topics of conversations with agents."),
    Listed("lessons", "knowledge", "Collections", "Lessons of agents: errors, solutions, decisions and more."),
    Listed("documents", "remember", "Collections", "Documents and web pages, stored as notes."),
    Listed("init", "vault", "Vault", "Make a folder a vault. No note is changed."),
    Listed("index", "vault", "Vault", "Update the index, rebuild it, or move it to another database."),
    Listed("stats", "vault", "Vault", "Show the size of the vault and the state of its index."),
    Listed("inspect", "vault", "Vault", "Show the links, tags and unresolved links of each note."),
    Listed("doctor", "vault", "Vault", "Check the vault for problems, and fix broken links."),
    Listed("conflicts", "conflicts", "Vault", "List and merge conflict copies of notes."),
    Listed("sync", "past", "Vault", "Exchange changes with your other machines through git."),
    Listed("import", "importing", "Vault", "Import notes from other programs."),
    Listed("export", "graph", "Vault", "Export the knowledge graph."),
    Listed("config", "configuration", "Vault", "Show and change settings."),
    Listed("eval", "evaluate", "Vault", "Measure how well search finds your notes."),
    Listed(
        "connect",
        "client",
        "Agents and servers",
        "Connect Claude, Cursor, VS Code, Codex or another client.",
    ),
    Listed("disconnect", "client", "Agents and servers", "Remove this server from the configuration of a client."),
    Listed("tools", "tools", "Agents and servers", "Show the tools that an agent sees."),
    Listed("serve", "", "Agents and servers", "Serve the vault to agents over MCP and HTTP."),
    Listed("token", "token", "Agents and servers", "Manage the access tokens of served vaults."),
)


class CommandTable(MutableMapping[str, Any]):
    """The commands by name, each imported the first time it is looked up."""

    def __init__(self, declared: MutableMapping[str, Any]) -> None:
        self._loaded = dict(declared)
        self._listed = {command.name: command for command in COMMANDS}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded and name in self._listed:
            module = import_module(f"simplemem.cli.{self._listed[name].module}")
            for found_name, found in typer.main.get_group(module.commands).commands.items():
                self._loaded.setdefault(found_name, found)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        self._listed.pop(name, None)
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._listed, **self._loaded})

    def __len__(self) -> int:
        return len({*self._listed, *self._loaded})


class Program(Group):
    """The whole program: its help and the completion of a command's name come from the table."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = CommandTable(self.commands)

    def summaries(self, _ctx: Any) -> list[tuple[str, str, str]]:
        """The panel, name and summary of each command, in the order of the help."""
        return [(command.panel, command.name, command.summary) for command in COMMANDS]


app = typer.Typer(
    name="simplemem",
    cls=Program,
    help="Long-term memory that agents and people share: Markdown notes in a folder, found by words, meaning and links.",
    epilog="`simplemem COMMAND --help` shows examples. Exit codes: 0 success, 1 failure, 2 usage error.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"], "max_content_width": 100},
)


@app.command(
    "serve",
    cls=Command,
    rich_help_panel="Agents and servers",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
def serve(arguments: Annotated[list[str] | None, typer.Argument(metavar="[OPTIONS]")] = None) -> None:
    """Serve the vault to agents over MCP and HTTP."""
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
