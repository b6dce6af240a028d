"""The options that commands share, their help and their completion.

Completion never updates the index, because the shell waits for it. Typer has no hook for some of
what this module changes; each such place names the version in which it was read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from simplemem.cli.local import ask_server, find_vault_option
from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.models import Filter
    from simplemem.store import EnhancedStore

_SPECIAL = re.compile(r"[^\w@%+=:,./-]")  # which Bash needs escaped
_MAX_DIGITS = 9  # of a number that is converted without Typer
Completion = Callable[[typer.Context, str], list[str]]
_ALIASES = {
    # What other programs call them.
    "ls": "list",
    "cat": "show",
    "add": "new",
    "mv": "move",
    "rename": "move",
    "rm": "delete",
    "remove": "delete",
    # What earlier versions called them.
    "install": "connect",
    "uninstall": "disconnect",
    "atoms": "facts",
    "garden": "topics archive",
    "knowledge": "lessons",
    "ingest": "documents add",
}
"""Other names of commands, which neither the help nor completion shows."""


class _PlainHelp:
    """Writes help as plain text, without names of Python's types: `--json`, not `--json <bool>`.

    Typer's own help draws boxes with Rich, which imports a Markdown parser and a syntax
    highlighter: half of what `simplemem --help` cost.
    """

    def __init__(self, **attributes: Any) -> None:
        """Create a command or a group without the help that Rich draws."""
        attributes["rich_markup_mode"] = None
        super().__init__(**attributes)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command.

        They show no names of types in the help, and have our conversion (read in Typer 0.29).
        """
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            # An argument has no `is_flag`, and its help shows no type, only its name in capitals.
            if getattr(param, "is_flag", True):
                vars(param)["display_type_rich"] = lambda *_, **__: None
            # Only a Typer that converts values with Pydantic has this attribute.
            if getattr(param, "_runtime_param", self) is None:
                param._runtime_param = _Conversion()  # noqa: SLF001
        return params

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write examples line by line, and any other epilog as a paragraph."""
        epilog: str = self.epilog or ""  # type: ignore[attr-defined]
        if not epilog:
            return

        formatter.write_paragraph()
        if not epilog.startswith("$ "):
            formatter.write_text(epilog)
            return
        with formatter.section("Examples"):
            for example in epilog.split("\n"):
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def _completion_item() -> Any:
    """Return the class of a completion, from the Click inside Typer or beside an older Typer."""
    try:
        module = import_module("typer._click.shell_completion")
    except ImportError:
        module = import_module("click.shell_completion")
    return module.CompletionItem


class _Conversion:
    """Converts an argument to the type of its parameter, without Pydantic where possible.

    Typer builds a Pydantic adapter for each parameter of a command, used or not: importing Pydantic
    and building 17 adapters was a fifth of the cost of a search. Every other value is left to
    Typer, which also words the errors.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a parameter, in the type that its command declares.

        A parameter that is not passed has the value None, or () if it takes several values. Raises
        the usage error of Typer for a value that does not fit.
        """
        if value is None:
            is_multiple = param.multiple or param.nargs == -1
            return () if is_multiple else None

        descriptor = param.type_descriptor
        converted = _convert(value, descriptor.annotation, descriptor.parameter_info)
        if converted is not None:
            return converted

        from typer._coercion import build_runtime_param

        return build_runtime_param(descriptor).coerce(value, param, ctx)


def _convert(value: Any, kind: Any, bounds: Any) -> Any:
    """Return a value in the type `kind`; None if Typer has to convert or to refuse it.

    `bounds` has the smallest and the largest number that the option accepts, each None if there is
    none.
    """
    if kind in (str, bool):
        return value if isinstance(value, kind) else None
    if kind == list[str]:
        return list(value) if _is_list_of_texts(value) else None
    if kind is Path:
        return Path(value) if isinstance(value, str) else None
    if kind is int:
        return int(value) if _is_whole_number(value, bounds) else None
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value) if value in list(kind) else None
    return None


def _is_list_of_texts(value: Any) -> bool:
    """Return whether a value is a list or a tuple of texts."""
    if not isinstance(value, list | tuple):
        return False
    return all(isinstance(item, str) for item in value)


def _is_whole_number(value: Any, bounds: Any) -> bool:
    """Return whether a value is a number within the bounds of its option.

    A text is one if it has at most nine digits, and nothing else.
    """
    if isinstance(value, str):
        has_only_digits = value.isascii() and value.isdecimal()
        if not has_only_digits or len(value) > _MAX_DIGITS:
            return False

    number = int(value)
    if bounds.min is not None and number < bounds.min:
        return False
    return bounds.max is None or number <= bounds.max


class Command(_PlainHelp, TyperCommand):
    """A command with plain help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the command into the context. Return those that are left over.

        Raises a usage error for an empty `--vault`, which an unset variable leaves: it would be the
        current folder.
        """
        if find_vault_option(args) == "":
            raise typer.BadParameter("--vault is empty; name a folder, or leave the option out")
        return super().parse_args(ctx, args)


class Group(_PlainHelp, TyperGroup):
    """A group of commands, which are found by their names and by hidden aliases."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with a name or alias, or None."""
        command = super().get_command(ctx, cmd_name)
        if command is not None or cmd_name not in _ALIASES:
            return command

        name, _, subcommand = _ALIASES[cmd_name].partition(" ")
        group: Any = super().get_command(ctx, name)
        if group is None or not subcommand:
            return group
        return group.get_command(ctx, subcommand)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help on stdout if no command is named.

        The exit code is that of a usage error.
        """
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def summaries(self, ctx: Any) -> list[tuple[str, str, str]]:
        """Return the section of the help, the name and the summary of each command."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            summary = (command.help or "").partition("\n\n")[0]
            rows.append((command.rich_help_panel or "Commands", name, summary))
        return rows

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each section under its heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for section, name, summary in self.summaries(ctx):
            sections.setdefault(section, []).append((name, summary))
        width = max(len(name) for rows in sections.values() for name, _ in rows)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, summary in rows])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return completions for the name of a command.

        They come from the summaries: no command is imported.
        """
        item = _completion_item()
        rows = self.summaries(ctx)
        items = []
        for _, name, summary in rows:
            if name.startswith(incomplete):
                items.append(item(name, help=summary))
        # The base class of a group adds the options.
        return items + super(TyperGroup, self).shell_complete(ctx, incomplete)


class DefaultGroup(Group):
    """A group whose first command runs if none is named: `conflicts` is `conflicts list`."""

    def __init__(self, **attributes: Any) -> None:
        """Create a group that runs its first command instead of printing the help."""
        super().__init__(**attributes)
        self.no_args_is_help = False

    @property
    def default_name(self) -> str:
        """The name of the command that runs if none is named."""
        return next(iter(self.commands))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the group, with the name of the command put first.

        They are parsed unchanged if the help or a completion of that name is requested.
        """
        is_help = args[:1] == ["--help"]
        is_completing_the_name = ctx.resilient_parsing and not args
        starts_with_name = bool(args) and not args[0].startswith("-")
        if not (is_help or is_completing_the_name or starts_with_name):
            args = self._with_name_first(args)
        return super().parse_args(ctx, args)

    def _with_name_first(self, args: list[str]) -> list[str]:
        """Return the arguments with the name of their command first.

        Options may precede it, or it may be missing.
        """
        for position, word in enumerate(args):
            is_value = position > 0 and args[position - 1] == "--vault"
            if word in self.commands and not is_value:
                return [word, *args[:position], *args[position + 1 :]]
        return [self.default_name, *args]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the subcommands, then the options of the default command."""
        self.format_commands(ctx, formatter)
        default = self.commands[self.default_name]
        rows = [param.get_help_record(ctx) for param in default.get_params(ctx)]
        with formatter.section(
            f"Options of {self.default_name}, which runs if no command is named"
        ):
            formatter.write_dl([row for row in rows if row is not None])


def flag(names: str, description: str) -> Any:
    """Return an option without a value: `--yes -y`."""
    return typer.Option(*names.split(), help=description)


def option(
    names: str, metavar: str, description: str, complete: Completion | None = None, **bounds: Any
) -> Any:
    """Return an option with a value.

    `names` has spaces between the names, and `metavar` stands for the value in the help. `complete`
    returns completions, and `bounds` are `min` and `max`.
    """
    return typer.Option(
        *names.split(), metavar=metavar, help=description, autocompletion=complete, **bounds
    )


def argument(metavar: str, description: str, complete: Completion | None = None) -> Any:
    """Return a positional argument.

    `metavar` stands for it in the help. `complete` returns completions.
    """
    return typer.Argument(
        metavar=metavar, help=description, autocompletion=complete, show_default=False
    )


def default_group(
    commands: typer.Typer, panel: str, name: str, about: str, examples: str
) -> typer.Typer:
    """Add a group of commands and return it. Its first command runs if none is named.

    `panel` is the section of the help of `simplemem`, `about` the help of the group, and `examples`
    are command lines after `$`.
    """
    group = typer.Typer(cls=DefaultGroup)
    commands.add_typer(group, name=name, help=about, epilog=examples, rich_help_panel=panel)
    return group


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def duration(typed: str, option_name: str, *, least: timedelta = timedelta(0)) -> timedelta:
    """Return a duration: `12h`, `30d`, `8w`, or a number of days.

    Raises a usage error that names the option for anything else, and for less than `least`.
    """
    match = re.fullmatch(r"(\d{1,5})([hdw]?)", typed.strip())
    if match is None:
        problem = f"{typed[:20]!r} is not a duration such as 12h, 30d or 8w"
        raise typer.BadParameter(problem, param_hint=option_name)

    number, unit = match.groups()
    length = timedelta(**{_UNITS[unit or "d"]: int(number)})
    if length < least:
        problem = f"{typed!r} is too short: the minimum is {least // timedelta(hours=1)}h"
        raise typer.BadParameter(problem, param_hint=option_name)
    return length


def limit_option(description: str) -> Any:
    """Return the `--limit` option of a command."""
    return option("--limit -n", "N", description, min=1)


def _names(store: EnhancedStore, prefix: str) -> Iterable[str]:
    """Return names of notes that begin with a prefix, at most 200, or else similar names."""
    names = store.short_names(prefix, limit=200)
    if names:
        return names
    from simplemem.note.names import name_of

    return [name_of(match.path) for match in store.find_names(prefix)]


def _tags(store: EnhancedStore, prefix: str) -> Iterable[str]:
    """Return the tags that begin with a prefix."""
    return (tag for tag in store.tags() if tag.startswith(prefix))


COMPLETIONS: dict[str, Callable[[EnhancedStore, str], Iterable[str]]] = {
    "names": _names,
    "tags": _tags,
}
"""How completions are read from a store, by the kind that a completing shell or a server names."""


def _ask_index(ctx: typer.Context, kind: str, prefix: str) -> list[str]:
    """Return completions from a server of the vault, or else from its index.

    `kind` is a key of COMPLETIONS. Returns [] after a SimplememError or an error of the system.
    """
    vault = ctx.params.get("vault")
    request = {"complete": kind, "prefix": prefix}
    try:
        answer = ask_server(None if vault is None else str(vault), request)
        if answer is None:
            names = _read_index(vault, kind, prefix)
        else:
            names = [str(name) for name in answer["names"]]
    except (SimplememError, OSError):
        return []

    # Bash inserts a completion unchanged; the other shells quote it themselves.
    if os.environ.get("_SIMPLEMEM_COMPLETE", "").endswith("bash"):
        return [_SPECIAL.sub(r"\\\g<0>", name) for name in names]
    return names


def _read_index(vault: Path | None, kind: str, prefix: str) -> list[str]:
    """Return completions from the index of a vault in this process.

    `kind` is a key of COMPLETIONS. Raises NotFound if there is no vault, and Invalid or Unavailable
    if it cannot be opened.
    """
    from simplemem import open_store
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import load_settings

    root = find_vault(vault)
    settings = load_settings(vault=root).for_a_person()
    with open_store(root, settings=settings, read_only=True) as store:
        return list(COMPLETIONS[kind](store, prefix))


def completing(names: Callable[[], Iterable[str]]) -> Completion:
    """Return a completion to those names that begin with the typed text.

    `names` is called when the user asks for a completion.
    """

    def complete(_ctx: typer.Context, incomplete: str) -> list[str]:
        """Return the names that begin with the typed text."""
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of notes that begin with the typed text: unique file names, or paths."""
    return _ask_index(ctx, "names", incomplete)


def complete_tag(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return tags that begin with the typed text."""
    return _ask_index(ctx, "tags", incomplete)


_VAULT = "The folder of notes. By default the nearest vault is used: see `simplemem config --help`."
VaultOption = Annotated[Path | None, option("--vault", "FOLDER", _VAULT)]
Query = Annotated[list[str], argument("QUERY", "Words, or a question.")]
Name = Annotated[str, argument("NAME", "The name, title, alias or path of a note.", complete_name)]
YesOption = Annotated[bool, flag("--yes -y", "Do not ask for confirmation.")]
DryRunOption = Annotated[bool, flag("--dry-run", "Show what would change, and change nothing.")]
WHEN = "a date or version: `2026-01-24`, `yesterday`, `v12`"

_TAG = (
    "Only notes with this tag: `todo`, `status=done`. Repeat it for notes with any of several tags."
)
_SINCE = "Only notes changed since this date: `2026-01-24`, `yesterday`, `3 days ago`."
_AUTHOR = (
    "Only notes last changed by `human`, by `agent`, or by a client whose name begins with AUTHOR."
)
FILTERS: dict[str, Any] = {
    "tag": Annotated[list[str] | None, option("--tag", "TAG", _TAG, complete_tag)],
    "require_all": Annotated[
        bool, flag("--all", "With several --tag: only notes with all of these tags.")
    ],
    "kind": Annotated[str | None, option("--type", "TYPE", "Only notes of this `type:`.")],
    "prefix": Annotated[str | None, option("--prefix", "FOLDER/", "Only notes in this folder.")],
    "since": Annotated[str | None, option("--since", "WHEN", _SINCE)],
    "until": Annotated[
        str | None, option("--until", "WHEN", "Only notes last changed before this date.")
    ],
    "link_to": Annotated[
        str | None, option("--link-to", "NAME", "Only notes that link to this note.", complete_name)
    ],
    "linked_by": Annotated[
        str | None,
        option("--linked-by", "NAME", "Only notes that this note links to.", complete_name),
    ],
    "author": Annotated[str | None, option("--author", "AUTHOR", _AUTHOR)],
}
"""The options that filter notes, by the names of their arguments."""
NOTES = ("tag", "require_all", "kind", "prefix", "since", "until")
LINKS = ("link_to", "linked_by")


def filter_of(
    tag: Sequence[str] | None, require_all: bool, kind: str | None, **more: str | None
) -> Filter:
    """Return the filter that the filter options describe.

    `tag` has texts such as `todo` or `status=done`, of which a note needs one, or all with
    `require_all`. `kind` is the type of note, and `more` are other fields of the filter by name.
    Raises Invalid for tags that cannot be required. A wrong date is refused only by the search.
    """
    from simplemem.models import Filter

    tags: dict[str, str] = {}
    for text in tag or ():
        key, _, value = text.removeprefix("#").partition("=")
        if value and key in tags:
            # A filter has one value per key: the second value becomes a nested tag, `status/done`.
            key = f"{key}/{value}"
            value = ""
        tags[key] = value
    return Filter.of(tags=tags, require_all=require_all, type=kind, **more)
