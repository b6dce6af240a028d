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
class CommandEntry:
    """A command as `simplemem --help` shows it, and the module that declares it.

    A test compares it with what the module declares.
    """

    name: str
    module: str
    panel: str
    summary: str


COMMANDS = (
    CommandEntry("serve", "", "Serve", "Serve the vault to an agent: MCP over standard input and output."),
    CommandEntry("token", "token", "Serve", "Say who may reach a served vault."),
    CommandEntry(
        "install",
        "client",
        "Serve",
        "Tell a client of this server: Claude, Cursor, VS Code, Codex and others. `json` "
        "prints the lines for any other.",
    ),
    CommandEntry(
        "uninstall",
        "client",
        "Serve",
        "Take the entry of this server out of a client's file. Where nothing else changed, "
        "the file is as it was before.",
    ),
    CommandEntry("search", "find", "Find and read", "Find notes by words, by meaning and by links."),
    CommandEntry("list", "find", "Find and read", "List notes, newest first."),
    CommandEntry(
        "tasks",
        "find",
        "Find and read",
        "List open tasks, `- [ ] text`, of the 500 newest notes that have some. With --tag all of them are needed.",
    ),
    CommandEntry(
        "show",
        "find",
        "Find and read",
        "Print a note: in a terminal as it reads, a screen at a time; into a pipe as it is, to the byte.",
    ),
    CommandEntry(
        "backlinks",
        "find",
        "Find and read",
        "Show what links to a note, and which notes are like it.",
    ),
    CommandEntry(
        "context",
        "find",
        "Find and read",
        "Pack what bears on a question into one text, ready for a prompt.",
    ),
    CommandEntry("new", "write", "Write", "Make a note."),
    CommandEntry(
        "daily",
        "write",
        "Write",
        "Make the daily note of today, or add to it: where Obsidian's settings have it, of their template.",
    ),
    CommandEntry("edit", "write", "Write", "Edit a note in $EDITOR."),
    CommandEntry(
        "tag",
        "write",
        "Write",
        "Set and remove tags, in the notation the note has; without a change, show them.",
    ),
    CommandEntry(
        "move",
        "write",
        "Write",
        "Move or rename a note. Links to it follow, each in its own form.",
    ),
    CommandEntry("rm", "write", "Write", "Delete notes, without asking: `undo` brings them back."),
    CommandEntry(
        "ingest",
        "remember",
        "Write",
        "Keep documents: text, Markdown, HTML, PDF and DOCX become notes, and what they state becomes statements.",
    ),
    CommandEntry(
        "history",
        "past",
        "Go back",
        "Show changes, newest first: ours, each with a version that `undo` and `show --version` take.",
    ),
    CommandEntry(
        "diff",
        "past",
        "Go back",
        "Show what a version changed, what lies between two, or what changed in a note.",
    ),
    CommandEntry(
        "restore",
        "past",
        "Go back",
        "Bring an earlier text of a note back, to the byte. A deleted note needs no --at.",
    ),
    CommandEntry(
        "undo",
        "past",
        "Go back",
        "Undo a change, or everything a client changed. Again for the one before; `redo` goes forward.",
    ),
    CommandEntry(
        "redo",
        "past",
        "Go back",
        "Do again what `undo` took back last, while nothing else was changed since.",
    ),
    CommandEntry(
        "sync",
        "past",
        "Go back",
        "Exchange changes with your other machines, over the remote of the vault's git repository.",
    ),
    CommandEntry("export", "graph", "Knowledge graph", "Write what the vault knows in another form."),
    CommandEntry("import", "importing", "Bring in", "Bring in what another program kept."),
    CommandEntry(
        "init",
        "vault",
        "Keep",
        "Make a folder a vault, or look at the one it is. No note is changed.",
    ),
    CommandEntry(
        "index",
        "vault",
        "Keep",
        "Update the index. Other commands do so by themselves. What was made stays when it is"
        " ended halfway, and the next run goes on from there.",
    ),
    CommandEntry(
        "stats",
        "vault",
        "Keep",
        "Show what is in the vault and its index, and whatever lessens search.",
    ),
    CommandEntry(
        "inspect",
        "vault",
        "Keep",
        "Show what was read in each note: links, tags, aliases, and broken links.",
    ),
    CommandEntry("config", "vault", "Keep", "Show the settings in force, and where each came from."),
    CommandEntry(
        "doctor",
        "vault",
        "Keep",
        "Check the vault, its index and the disk they are on. Ends with 0 when there is "
        "nothing, or notes only; with 1 for an error or a warning.",
    ),
    CommandEntry(
        "conflicts",
        "vault",
        "Keep",
        "List the copies that synchronisers and git keep when a note was changed in two places, and merge them.",
    ),
    CommandEntry(
        "knowledge",
        "knowledge",
        "Keep",
        "What was learned: errors, solutions, decisions, patterns and insights, each a note in `knowledge/`.",
    ),
    CommandEntry(
        "topics",
        "talk",
        "Keep",
        "List the topics of conversation: active ones first, then what was spoken of last.",
    ),
    CommandEntry(
        "garden",
        "talk",
        "Keep",
        "Close topics that have been paused for long, as one change. Nothing is deleted; "
        "closed topics are still found.",
    ),
    CommandEntry("atoms", "remember", "Keep", "Look after the statements that agents keep."),
    CommandEntry(
        "eval",
        "evaluate",
        "Keep",
        "Measure how well search finds what is in your vault: questions from your own notes, no model needed.",
    ),
)


class CommandTable(MutableMapping[str, Any]):
    """The commands by name. A command's module is imported when the command is looked up.

    Names, `in` and `len` need no module. Whoever iterates over the values or the items imports all of them.
    """

    def __init__(self, declared: MutableMapping[str, Any]) -> None:
        self._loaded = dict(declared)
        self._entries = {command.name: command for command in COMMANDS}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded and name in self._entries:
            self._load_module(self._entries[name].module)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)

        self._entries.pop(name, None)
        self._loaded.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter({**self._entries, **self._loaded})

    def __len__(self) -> int:
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
        super().__init__(**attributes)
        self.commands = CommandTable(self.commands)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands. Typer's own method would import every command for them."""
        return list(self.commands)

    def summaries(self, _ctx: Any) -> list[tuple[str, str, str]]:
        """The panel, name and summary of each command, in the order of the help."""
        return [(command.panel, command.name, command.summary) for command in COMMANDS]


app = typer.Typer(
    name="simplemem",
    cls=Program,
    help="The memory agents and people share: Markdown notes in a folder, found by words, meaning and links.",
    epilog="Every command has examples in its own --help. Exit codes: 0 done, 1 failed, 2 wrong usage.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"], "max_content_width": 100},
)


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
