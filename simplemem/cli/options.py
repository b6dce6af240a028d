"""The options that commands share, the way a command is declared, and completion of names and tags.

Completion asks the index as it stands and never brings it in step: a shell that hangs on Tab is worse than a
list that is a moment old.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from simplemem.errors import SimplememError, Unavailable

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command whose failures are a line and a hint, or with `--json` an object, and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        as_json = bool(ctx.params.get("as_json"))
        try:
            return super().invoke(ctx)
        except SimplememError as error:
            failure = error
        except BrokenPipeError:
            raise
        except OSError as error:
            # What the system refuses (no space, no permission) is no fault of ours: its own words will do.
            where = f": {error.filename}" if error.filename else ""
            failure = Unavailable(f"{error.strerror or error}{where}")
        from simplemem.cli.output import print_error

        print_error(failure, as_json=as_json)
        raise typer.Exit(1)


def command(
    group: typer.Typer, panel: str, *, examples: Sequence[str], name: str | None = None, **settings: Any
) -> Callable[[_Function], _Function]:
    """Declare a command: where it stands in `--help`, and examples that end its own help."""
    shown = "\n".join(["[bold]Examples[/bold]", *(f"$ {_unmarked(line)}" for line in examples)])

    def declare(function: _Function) -> _Function:
        # Rich keeps line breaks as they stand: a paragraph is made one line, for the terminal to wrap.
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        shown_help = "\n\n".join(_unmarked(" ".join(each.split())) for each in paragraphs)
        declared = group.command(name, cls=Command, rich_help_panel=panel, help=shown_help, epilog=shown, **settings)
        return declared(function)

    return declare


def _unmarked(text: str) -> str:
    """A text that Rich shows as it is: brackets are its markup."""
    return text.replace("[", r"\[")


def _ask_index(ctx: typer.Context, question: Callable[[Any], Iterable[str]]) -> list[str]:
    """Ask the index for completions. Whatever goes wrong, a shell that completes shows nothing."""
    from simplemem import open_store
    from simplemem.config import find_vault, load_settings

    try:
        root = find_vault(ctx.params.get("vault"))
        with open_store(root, settings=load_settings(vault=root).for_a_person(), read_only=True) as store:
            found = list(question(store))
    except (SimplememError, OSError):
        return []
    if os.environ.get("_SIMPLEMEM_COMPLETE", "").endswith("bash"):
        # Bash puts in what it is given as it is; the other shells quote it themselves.
        return [_SPECIAL.sub(r"\\\g<0>", each) for each in found]
    return found


_SPECIAL = re.compile(r"[^\w@%+=:,./-]")


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of memories that begin with what was typed."""
    return _ask_index(ctx, lambda store: store.names(incomplete, limit=200))


def complete_copy(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of conflict copies, and of the notes they are copies of, that begin with what was typed."""
    return _ask_index(
        ctx,
        lambda store: sorted(
            {name for copy in store.conflict_copies() for name in (copy.name, copy.of) if name.startswith(incomplete)}
        ),
    )


def complete_tag(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tags that begin with what was typed."""
    return _ask_index(ctx, lambda store: [tag for tag in store.tags() if tag.startswith(incomplete)])


DASHED_WORDS = {"ignore_unknown_options": True}
"""For commands where `-word` is a word with a meaning of its own, not options run together."""


def refuse_unknown_options(ctx: typer.Context, words: Iterable[str]) -> None:
    """Where `-word` is allowed, a mistyped `--option` must still be told."""
    for word in words:
        if word.startswith("--"):
            given = word.partition("=")[0]
            near = get_close_matches(given, [name for param in ctx.command.params for name in param.opts], 1)
            raise typer.BadParameter(f"no such option: {given}" + (f" (did you mean {near[0]}?)" if near else ""))


VaultOption = Annotated[
    Path | None,
    typer.Option(
        "--vault",
        metavar="FOLDER",
        help="The folder of notes. Without it, one is found: see `simplemem config --help`.",
    ),
]
Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="Words, or a question.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", autocompletion=complete_name, help="A name, title, alias or path."),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        autocompletion=complete_tag,
        help="Only notes with this tag: `todo`, `status=done`. Again for more; any of them is enough.",
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="With several --tag: all of them are needed.")]
TypeOption = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only notes of this `type:`.")]
PrefixOption = Annotated[
    str | None,
    typer.Option("--prefix", metavar="FOLDER/", help="Only notes whose name begins so."),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Only notes changed since: `2026-01-24`, `yesterday`, `3 days ago`.",
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="WHEN", help="Only notes last changed before then."),
]
LinkToOption = Annotated[
    str | None,
    typer.Option(
        "--link-to",
        metavar="NAME",
        autocompletion=complete_name,
        help="Only notes that link to this one.",
    ),
]
LinkedByOption = Annotated[
    str | None,
    typer.Option(
        "--linked-by",
        metavar="NAME",
        autocompletion=complete_name,
        help="Only notes that this one links to.",
    ),
]

AuthorOption = Annotated[
    str | None,
    typer.Option(
        "--author",
        metavar="WHO",
        help="Only notes last changed by `human`, by `agent`, or by a client whose name begins so.",
    ),
]


def limit_option(what: str) -> Any:
    """The `--limit` option of a command."""
    return typer.Option("--limit", "-n", min=1, metavar="N", help=what)
