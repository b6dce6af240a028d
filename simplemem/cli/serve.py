"""The command `serve`. Standard output is the protocol's.

`__main__` calls `serve_main` before the rest of the command line is loaded, because a client waits
for its server. The server itself is in `server_start.py`.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import typer

from simplemem.cli.options import Command
from simplemem.cli.serve_options import ServeOptions
from simplemem.profiles.registry import built_in_profiles

_PROGRAM = "simplemem serve"
_EXAMPLES = (
    "simplemem serve",
    "simplemem serve --vault ~/notes",
    "simplemem serve --vault ~/notes --read-only",
    "simplemem serve --vault ~/notes --http",
)

commands = typer.Typer(add_completion=False)


class ServeCommand(Command):
    """The command `serve`, which accepts all that its earlier parser accepted.

    Configurations of clients contain command lines of `serve`. Such a line may have the unique
    beginning of a long option, as `--read` for `--read-only`, and `--http` without a value.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line into the context. Return those that are left over.

        Raises a usage error for a word that is no option of `serve`, and for a value that does not
        fit its option.
        """
        takes_value = dict.fromkeys(ctx.help_option_names, False)
        options: list[Any] = self.params
        for option in options:
            takes_value |= dict.fromkeys(option.opts, not option.is_flag)
        return super().parse_args(ctx, write_out_options(args, takes_value))


def write_out_options(words: Sequence[str], takes_value: Mapping[str, bool]) -> list[str]:
    """Return the words with whole names of options, and `--http=` for `--http` without a value.

    `takes_value` says of each option, by name, whether a value follows it. Values are returned as
    they are, and so are names that begin no option, or several. Raises a usage error for an option
    without its value.
    """
    written: list[str] = []
    remaining = deque(words)
    while remaining:
        name, equals, value = remaining.popleft().partition("=")
        name = _complete_option(name, takes_value)
        written.append(f"{name}{equals}{value}")
        if equals or not takes_value.get(name, False):
            continue

        is_followed_by_value = bool(remaining) and not remaining[0].startswith("-")
        if name == "--http" and not is_followed_by_value:
            written[-1] = "--http="
        elif remaining:
            written.append(_checked_value(name, remaining.popleft()))
    return written


def _checked_value(name: str, value: str) -> str:
    """Return the value of an option.

    Raises a usage error for one that looks like an option: `--vault --read-only` lacks a folder,
    and the server would not be read-only.
    """
    if value.startswith("--"):
        problem = f"{name} needs a value; if {value} is the value, write {name}={value}"
        raise typer.BadParameter(problem)
    return value


def _complete_option(beginning: str, names: Mapping[str, bool]) -> str:
    """Return the only long option that begins so, or else the text itself."""
    if not beginning.startswith("--") or beginning in names:
        return beginning

    matches = [name for name in names if name.startswith(beginning)]
    if len(matches) == 1:
        return matches[0]
    return beginning


def _run(**values: Any) -> None:
    """Serve with the values of the options. Raises typer.Exit with the exit code at the end."""
    from simplemem.cli.server_start import start_server

    raise typer.Exit(start_server(ServeOptions(**values)))


def _declare() -> None:
    """Declare the command: its options are the fields of `ServeOptions`."""
    _run.__signature__ = inspect.signature(ServeOptions)  # type: ignore[attr-defined]
    examples = [*_EXAMPLES]
    for profile in built_in_profiles().values():
        examples += profile.examples
    commands.command(
        "serve",
        cls=ServeCommand,
        rich_help_panel="Agents and servers",
        help=(
            "Serve the vault to agents over MCP and HTTP.\n\n"
            "MCP is served over standard input and output, or with --http over the network:"
            " see docs/network.md."
        ),
        epilog="\n".join(f"$ {example}" for example in examples),
        context_settings={"help_option_names": ["--help", "-h"]},
    )(_run)


_declare()


def parse_options(argv: Sequence[str]) -> ServeOptions:
    """Return the options of a command line of `serve`, without `simplemem serve` itself.

    Raises a usage error of Typer. Prints the help and raises typer.Exit for `--help`.
    """
    command = typer.main.get_command(commands)
    context = command.make_context(_PROGRAM, list(argv))
    return ServeOptions(**context.params)


def serve_main(argv: Sequence[str]) -> NoReturn:
    """Serve, and raise SystemExit with the exit code: 1 for a failure, 2 for wrong usage."""
    # Until all that stays for good is imported: a twentieth of the start. `serve_stdio` enables it.
    gc.disable()
    command = typer.main.get_command(commands)
    sys.exit(command.main(args=list(argv), prog_name=_PROGRAM))
