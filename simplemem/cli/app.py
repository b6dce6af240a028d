"""The command `simplemem`: which commands there are, and in which module each one is declared.

`--help` and completion of command names read the table below and load no command. A command's
module is imported when that command is asked for: importing all of them cost more than running most
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from simplemem import __version__
from simplemem.cli.options import Group


@dataclass(frozen=True)
class CommandEntry:
    """A command as `simplemem --help` shows it, and the module that declares it.

    A test compares it with what the module declares.
    """

    name: str
    module: str
    panel: str
    summary: str


COMMANDS = (
    CommandEntry(
        "search", "find", "Find and read", "Find notes by words, by meaning and by links."
    ),
    CommandEntry("show", "find", "Find and read", "Print a note."),
    CommandEntry("open", "find", "Find and read", "Edit a note, found by a part of its name."),
    CommandEntry("list", "find", "Find and read", "List notes, newest first."),
    CommandEntry("tasks", "find", "Find and read", "List open tasks."),
    CommandEntry(
        "backlinks",
        "find",
        "Find and read",
        "List the notes that link to a note, and similar notes.",
    ),
    CommandEntry(
        "context",
        "find",
        "Find and read",
        "Collect the passages that answer a question, for a prompt.",
    ),
    CommandEntry("new", "write", "Write", "Create a note."),
    CommandEntry("edit", "write", "Write", "Edit a note in $EDITOR."),
    CommandEntry("daily", "write", "Write", "Create today's daily note, or add text to it."),
    CommandEntry("tag", "write", "Write", "Add, remove or list the tags of a note."),
    CommandEntry("move", "write", "Write", "Move or rename a note. Links to it are updated."),
    CommandEntry(
        "delete", "write", "Write", "Delete notes without confirmation. `undo` restores them."
    ),
    CommandEntry("history", "past", "History", "List changes, newest first."),
    CommandEntry("diff", "past", "History", "Show what a change did, or how two versions differ."),
    CommandEntry("undo", "past", "History", "Undo the last change, or every change of one author."),
    CommandEntry("redo", "past", "History", "Redo what `undo` took back."),
    CommandEntry(
        "restore", "past", "History", "Restore an earlier version of a note, or a deleted note."
    ),
    CommandEntry("review", "review", "History", "Review what agents changed or propose."),
    CommandEntry("facts", "remember", "Collections", "Facts that agents remember."),
    CommandEntry("topics", "topics", "Collections", "Topics of conversations with agents."),
    CommandEntry(
        "lessons",
        "lessons",
        "Collections",
        "Lessons from agents: errors, solutions, decisions and more.",
    ),
    CommandEntry(
        "documents", "remember", "Collections", "Documents and web pages, stored as notes."
    ),
    CommandEntry("init", "vault", "Vault", "Make a folder a vault. No note is changed."),
    CommandEntry(
        "index", "index", "Vault", "Update the index, rebuild it, or move it to another database."
    ),
    CommandEntry(
        "stats", "vault", "Vault", "Show the size of the vault and the state of its index."
    ),
    CommandEntry(
        "inspect", "vault", "Vault", "Show the links, tags and unresolved links of each note."
    ),
    CommandEntry(
        "doctor", "doctor", "Vault", "Check the vault for problems, and fix broken links."
    ),
    CommandEntry("conflicts", "conflicts", "Vault", "List and merge conflict copies of notes."),
    CommandEntry("sync", "past", "Vault", "Exchange changes with your other machines through git."),
    CommandEntry("import", "importing", "Vault", "Import notes from other programs."),
    CommandEntry("export", "graph", "Vault", "Export the knowledge graph."),
    CommandEntry("config", "configuration", "Vault", "Show and change settings."),
    CommandEntry("eval", "evaluate", "Vault", "Measure how well search finds your notes."),
    CommandEntry(
        "connect",
        "client",
        "Agents and servers",
        "Connect Claude, Cursor, VS Code, Codex or another client.",
    ),
    CommandEntry(
        "disconnect",
        "client",
        "Agents and servers",
        "Remove this server from the configuration of a client.",
    ),
    CommandEntry("tools", "tools", "Agents and servers", "Show the tools that an agent sees."),
    CommandEntry(
        "plugins",
        "plugins",
        "Agents and servers",
        "List what other packages add to simplemem.",
    ),
    CommandEntry(
        "serve", "serve", "Agents and servers", "Serve the vault to agents over MCP and HTTP."
    ),
    CommandEntry(
        "token", "token", "Agents and servers", "Manage the access tokens of served vaults."
    ),
)


class CommandTable(MutableMapping[str, Any]):
    """The commands by name. A command's module is imported when the command is looked up.

    Names, `in` and `len` need no module. Whoever iterates over the values or the items imports all
    of them.
    """

    def __init__(self, declared: MutableMapping[str, Any]) -> None:
        """Begin with commands that are `declared` already, and those of COMMANDS."""
        self._loaded = dict(declared)
        self._entries = {command.name: command for command in COMMANDS}

    def __getitem__(self, name: str) -> Any:
        """Return a command. Imports its module; raises KeyError for an unknown name."""
        if name not in self._loaded and name in self._entries:
            self._load_module(self._entries[name].module)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        """Add a command, or replace the one of this name."""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        """Remove a command. Raises KeyError for an unknown name."""
        if name not in self:
            raise KeyError(name)

        self._entries.pop(name, None)
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a command of this name."""
        return name in self._loaded or name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Return the names of the commands, those of COMMANDS first."""
        return iter({**self._entries, **self._loaded})

    def __len__(self) -> int:
        """Return the number of commands."""
        return len({*self._entries, *self._loaded})

    def _load_module(self, name: str) -> None:
        """Import a module, and add its commands but for those that were deleted."""
        module = import_module(f"simplemem.cli.{name}")
        declared = typer.main.get_group(module.commands).commands
        for command_name, command in declared.items():
            if command_name in self._entries:
                self._loaded.setdefault(command_name, command)


class Program(Group):
    """The whole program: its help and the completion of a command's name come from the table."""

    def __init__(self, **attributes: Any) -> None:
        """Create the program, whose commands are a `CommandTable`."""
        super().__init__(**attributes)
        self.commands = CommandTable(self.commands)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands.

        Typer's own method would import every command for them.
        """
        return list(self.commands)

    def summaries(self, _ctx: Any) -> list[tuple[str, str, str]]:
        """Return the panel, name and summary of each command, in the order of the help."""
        return [(command.panel, command.name, command.summary) for command in COMMANDS]


app = typer.Typer(
    name="simplemem",
    cls=Program,
    help=(
        "Long-term memory that agents and people share: Markdown notes in a folder, found by words,"
        " meaning and links."
    ),
    epilog=(
        "`simplemem COMMAND --help` shows examples."
        " Exit codes: 0 success, 1 failure, 2 usage error."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"], "max_content_width": 100},
)


def _print_version(is_requested: bool) -> None:
    """Print the version and raise typer.Exit, if `--version` is passed."""
    if is_requested:
        typer.echo(f"simplemem {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Global options."""
