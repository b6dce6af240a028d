"""The command config: which settings are in force, and where each came from. It sets none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from simplemem.cli.options import JsonOption, VaultOption, command

commands = typer.Typer()


@command(
    commands,
    "Keep",
    examples=[
        "simplemem config",
        "simplemem config --example > ~/.config/simplemem/config.toml",
        "SIMPLEMEM_SEARCH_LIMIT=10 simplemem config --json",
    ],
)
def config(
    example: Annotated[bool, typer.Option("--example", help="Print a settings file with everything in it.")] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the settings in force, and where each came from.

    A flag beats the environment, the environment beats the vault's `.simplemem/config.toml`, that beats your
    own `~/.config/simplemem/config.toml`, that beats the default.

    The vault is `--vault`, else `$SIMPLEMEM_VAULT`, else the setting, else the nearest folder upward with a
    `.simplemem/` in it, else `./.memories`, else `~/simplemem`.
    """
    from simplemem.cli import output
    from simplemem.config import EXAMPLE_CONFIG, find_vault, settings_with_sources

    if example:
        typer.echo(EXAMPLE_CONFIG, nl=False)
        return
    root = find_vault(vault)
    rows = [
        (key, root, _way_found(root) if source == "default" else source) if key == "vault" else (key, value, source)
        for key, value, source in settings_with_sources({"vault": vault}, vault=root)
    ]
    if as_json:
        output.print_json({key: {"value": _plain(value), "source": source} for key, value, source in rows})
        return
    output.print_table(
        [
            output.styled(key),
            output.styled((output.in_words(_plain(value)), "" if source == "default" else "bold")),
            output.styled((source, "dim")),
        ]
        for key, value, source in rows
    )


def _plain(value: Any) -> Any:
    """A setting as JSON has it: paths are texts, and a secret stays covered."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", "**********@", value)  # who asks and by which password, in an address
    return value if value is None or isinstance(value, (str, int, float, dict)) else str(value)


def _way_found(root: Path) -> str:
    """How a vault was found that nothing names."""
    here = Path.cwd()
    if (root / ".simplemem").is_dir() and root in (here, *here.parents):
        return "the nearest vault upward"
    return "./.memories" if root == here / ".memories" else "default"
