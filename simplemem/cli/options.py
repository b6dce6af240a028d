"""The options that commands share, and completion, which asks the index as it stands: a shell must not hang on Tab."""

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

_SPECIAL = re.compile(r"[^\w@%+=:,./-]")
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
    """Help as plain text, without the names of Python's types: `--json`, not `--json <bool>`.

    Typer's own help draws boxes with Rich, which imports a Markdown parser and a syntax highlighter: half of what
    `simplemem --help` cost.
    """

    def __init__(self, **attributes: Any) -> None:
        attributes["rich_markup_mode"] = None
        super().__init__(**attributes)

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(
                each, "is_flag", True
            ):  # an argument has its name in capitals, and no flag to be
                vars(each)["display_type_rich"] = lambda *_, **__: None
            if (
                getattr(each, "_runtime_param", self) is None
            ):  # a Typer that converts values by Pydantic
                each._runtime_param = _Conversion()  # noqa: SLF001  (see there)
        return params

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write the examples line by line, as they would be typed; any other epilog as a paragraph."""
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
    """The class of a completion: of the Click within Typer, or of Click itself, on which an older Typer stands."""
    try:
        module = import_module("typer._click.shell_completion")
    except ImportError:
        module = import_module("click.shell_completion")
    return module.CompletionItem


class _Conversion:
    """Converts what was typed to the type of its parameter, without Pydantic where Python does it alone.

    Typer builds a Pydantic adapter for each parameter that a command has, used or not: importing Pydantic and
    building 17 of them was a fifth of what a search cost. Whatever is not certain here is left to Typer, which
    also words the errors.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The converted value. Raises what Typer raises for a value that does not fit."""
        is_multiple = param.multiple or param.nargs == -1
        if value is None:
            return () if is_multiple else None
        kind = param.type_descriptor.annotation
        if (
            kind == list[str]
            and isinstance(value, list | tuple)
            and all(isinstance(each, str) for each in value)
        ):
            return list(value)
        if kind is str and isinstance(value, str):
            return value
        if kind is bool and isinstance(value, bool):
            return value
        if kind is Path and isinstance(value, str):
            return Path(value)
        if isinstance(kind, type) and issubclass(kind, StrEnum) and value in [*kind]:
            return kind(value)
        if kind is int and _is_whole_number(value, param.type_descriptor.parameter_info):
            return int(value)
        from typer._coercion import build_runtime_param

        return build_runtime_param(param.type_descriptor).coerce(value, param, ctx)


def _is_whole_number(value: Any, bounds: Any) -> bool:
    """Whether a value is digits only, or a default, and within the bounds of its option."""
    if isinstance(value, str) and not (value.isascii() and value.isdecimal() and len(value) < 10):
        return False
    number = int(value)
    return (bounds.min is None or number >= bounds.min) and (
        bounds.max is None or number <= bounds.max
    )


class Command(_PlainHelp, TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an empty `--vault`, which an unset variable leaves: as a path it is the current folder."""
        if find_vault_option(args) == "":
            raise typer.BadParameter("--vault is empty; name a folder, or leave the option out")
        return super().parse_args(ctx, args)


class Group(_PlainHelp, TyperGroup):
    """Commands, by their names and by their hidden aliases."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name not in _ALIASES:
            return found

        name, _, subcommand = _ALIASES[cmd_name].partition(" ")
        group: Any = super().get_command(ctx, name)
        return group.get_command(ctx, subcommand) if subcommand and group is not None else group

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the help on stdout where a command is missing; the exit code says that one is."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def summaries(self, ctx: Any) -> list[tuple[str, str, str]]:
        """The section of the help, the name and the summary of each command."""
        found = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            summary = (command.help or "").partition("\n\n")[0]
            found.append((command.rich_help_panel or "Commands", name, summary))
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each section under its heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for section, name, summary in self.summaries(ctx):
            sections.setdefault(section, []).append((name, summary))
        width = max(len(name) for rows in sections.values() for name, _ in rows)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, summary in rows])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete the name of a command from its summary alone: no command is imported for that."""
        item = _completion_item()
        rows = self.summaries(ctx)
        items = [
            item(name, help=summary) for _, name, summary in rows if name.startswith(incomplete)
        ]
        # What the base class of a group adds: the options.
        return items + super(TyperGroup, self).shell_complete(ctx, incomplete)


class DefaultGroup(Group):
    """Commands of which the first one runs if none is named: `conflicts` is `conflicts list`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.no_args_is_help = False

    @property
    def default_name(self) -> str:
        """The name of the command that runs if none is named."""
        return next(iter(self.commands))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_help = args[:1] == ["--help"]
        is_completing_the_name = ctx.resilient_parsing and not args
        if not is_help and not is_completing_the_name and (not args or args[0].startswith("-")):
            args = self._with_name_first(args)
        return super().parse_args(ctx, args)

    def _with_name_first(self, args: list[str]) -> list[str]:
        """The arguments after the name of their command: options may stand before it, or it may be missing."""
        for position, word in enumerate(args):
            is_value = position > 0 and args[position - 1] == "--vault"
            if word in self.commands and not is_value:
                return [word, *args[:position], *args[position + 1 :]]
        return [self.default_name, *args]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the subcommands, then the options of the default command."""
        self.format_commands(ctx, formatter)
        default = self.commands[self.default_name]
        rows = [param.get_help_record(ctx) for param in default.get_params(ctx)]
        with formatter.section(
            f"Options of {self.default_name}, which runs if no command is named"
        ):
            formatter.write_dl([row for row in rows if row is not None])


def flag(names: str, what: str) -> Any:
    """An option without a value: `--yes -y`."""
    return typer.Option(*names.split(), help=what)


def option(
    names: str, metavar: str, what: str, complete: Completion | None = None, **bounds: Any
) -> Any:
    """An option with a value."""
    return typer.Option(
        *names.split(), metavar=metavar, help=what, autocompletion=complete, **bounds
    )


def argument(metavar: str, what: str, complete: Completion | None = None) -> Any:
    """What stands without an option's name."""
    return typer.Argument(metavar=metavar, help=what, autocompletion=complete, show_default=False)


def default_group(
    commands: typer.Typer, panel: str, name: str, about: str, examples: str
) -> typer.Typer:
    """Add a group of commands of which the first one runs if none is named. Return the group, for its commands."""
    group = typer.Typer(cls=DefaultGroup)
    commands.add_typer(group, name=name, help=about, epilog=examples, rich_help_panel=panel)
    return group


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def duration(typed: str, option_name: str, *, least: timedelta = timedelta(0)) -> timedelta:
    """The length of time that was typed: `12h`, `30d`, `8w`, or a number of days. Raises a usage error."""
    found = re.fullmatch(r"(\d{1,5})([hdw]?)", typed.strip())
    if found is None:
        why = f"{typed[:20]!r} is not a duration such as 12h, 30d or 8w"
        raise typer.BadParameter(why, param_hint=option_name)
    length = timedelta(**{_UNITS[found[2] or "d"]: int(found[1])})
    if length < least:
        why = f"{typed!r} is too short: the minimum is {least // timedelta(hours=1)}h"
        raise typer.BadParameter(why, param_hint=option_name)
    return length


def limit_option(what: str) -> Any:
    """The `--limit` option of a command."""
    return option("--limit -n", "N", what, min=1)


def _names(store: EnhancedStore, prefix: str) -> Iterable[str]:
    return store.short_names(prefix, limit=200)


def _tags(store: EnhancedStore, prefix: str) -> Iterable[str]:
    return (tag for tag in store.tags() if tag.startswith(prefix))


COMPLETIONS: dict[str, Callable[[EnhancedStore, str], Iterable[str]]] = {
    "names": _names,
    "tags": _tags,
}
"""What the index is asked for when a shell completes: a server of the vault, or else the store."""


def _ask_index(ctx: typer.Context, kind: str, prefix: str) -> list[str]:
    """Ask the index for completions. Whatever goes wrong, a shell that completes shows nothing."""
    vault = ctx.params.get("vault")
    try:
        answer = ask_server(
            None if vault is None else str(vault), {"complete": kind, "prefix": prefix}
        )
        names = (
            _asked_here(vault, kind, prefix) if answer is None else list(map(str, answer["names"]))
        )
    except (SimplememError, OSError):
        return []
    # Bash puts in what it is given as it is; the other shells quote it themselves.
    bash = os.environ.get("_SIMPLEMEM_COMPLETE", "").endswith("bash")
    return [_SPECIAL.sub(r"\\\g<0>", each) for each in names] if bash else names


def _asked_here(vault: Path | None, kind: str, prefix: str) -> list[str]:
    from simplemem import open_store
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import load_settings

    root = find_vault(vault)
    with open_store(
        root, settings=load_settings(vault=root).for_a_person(), read_only=True
    ) as store:
        return list(COMPLETIONS[kind](store, prefix))


def completing(names: Callable[[], Iterable[str]]) -> Completion:
    """Complete to the names that begin with what was typed."""

    def complete(_ctx: typer.Context, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of notes that begin with what was typed: file names that are unique, or paths."""
    return _ask_index(ctx, "names", incomplete)


def complete_tag(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tags that begin with what was typed."""
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
"""The options that narrow which notes take part, by the names of their arguments."""
NOTES = ("tag", "require_all", "kind", "prefix", "since", "until")
LINKS = ("link_to", "linked_by")


def filter_of(
    tag: Sequence[str] | None, require_all: bool, kind: str | None, **more: str | None
) -> Filter:
    """What the filter options mean."""
    from simplemem.models import Filter

    wanted: dict[str, str] = {}
    for each in tag or ():
        key, _, value = each.removeprefix("#").partition("=")
        # Two values of one key (`status=open`, `status=done`) are asked for as two nested tags.
        if key in wanted and value:
            key, value = f"{key}/{value}", ""
        wanted[key] = value
    return Filter.of(tags=wanted, require_all=require_all, type=kind, **more)
