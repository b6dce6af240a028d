"""The command `plugins`: what other installed packages add to simplemem."""

from __future__ import annotations

from collections.abc import Callable

import typer

from simplemem.cli.command import Answer, command
from simplemem.cli.output import SHRINKS, WHOLE, Lines
from simplemem.errors import SimplememError
from simplemem.plugins import KINDS, Plugin, plugins_of

commands = typer.Typer()


@command(commands, "Agents and servers", name="plugins")
def list_plugins() -> Answer:
    """List what other packages add to simplemem.

    Each plug-in is loaded. If that fails, the reason is shown.

    $ simplemem plugins
    $ simplemem plugins --json"""
    plugins = [plugin for kind in KINDS for plugin in plugins_of(kind).values()]
    facts = []
    rows = Lines()
    for plugin in plugins:
        problem = _problem_with(plugin)
        facts.append(
            {
                "kind": plugin.kind,
                "name": plugin.name,
                "package": plugin.package,
                "version": plugin.version,
                "error": problem or None,
            }
        )
        rows.append(
            [
                (plugin.kind, "dim"),
                (plugin.name, "cyan"),
                f"{plugin.package} {plugin.version}",
                (problem, "red"),
            ]
        )

    lines: Lines = []
    if not plugins:
        lines.append(["No installed package adds a plug-in."])
    return Answer({"plugins": facts}, lines, rows, columns=(WHOLE, WHOLE, WHOLE, SHRINKS))


def _problem_with(plugin: Plugin) -> str:
    """Load a plug-in, and return the message of its SimplememError; "" if there is none."""
    try:
        _loader_of(plugin.kind)(plugin)
    except SimplememError as error:
        return error.message
    return ""


def _loader_of(kind: str) -> Callable[[Plugin], object]:
    """Return the function that loads and checks plug-ins of a kind, which is one of KINDS."""
    if kind == "profiles":
        from simplemem.profiles.registry import load_profile

        return load_profile
    if kind == "importers":
        from simplemem.importers import load_source

        return load_source

    from simplemem.providers.plugin import load_embedder, load_reranker

    return load_embedder if kind == "embedders" else load_reranker
