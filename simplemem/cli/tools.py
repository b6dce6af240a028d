"""The command `tools list`: the tools that an agent sees, as a server lists them."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command
from simplemem.cli.options import VaultOption, completing, default_group, option
from simplemem.cli.output import OPTIONAL, SHRINKS, WHOLE, Lines, one_line
from simplemem.errors import NotFound
from simplemem.note.words import count_tokens, format_count

if TYPE_CHECKING:
    from pathlib import Path

    from simplemem.tools.tool import Tool

commands = typer.Typer()
_tools = default_group(
    commands,
    "Agents and servers",
    "tools",
    "Show the tools that an agent sees.",
    "$ simplemem tools\n$ simplemem tools list --profile chatgpt",
)
_READ_BY_MODELS = ("name", "description", "inputSchema")
_STYLES = {"reads": "green", "writes": "yellow", "deletes": "red"}


def _profiles() -> list[str]:
    from simplemem.profiles.registry import all_profiles

    return [*all_profiles()]


@command(_tools, name="list")
def list_tools(
    profile: Annotated[
        str,
        option(
            "--profile", "NAME", "The profile: see `simplemem serve --help`.", completing(_profiles)
        ),
    ] = "",
    tools: Annotated[
        str,
        option("--tools", "GROUPS", "Tool groups to add; a minus before a name removes the group."),
    ] = "",
    vault: VaultOption = None,
) -> Answer:
    """List the tools of a profile, and how many tokens their descriptions take.

    The number of tokens is an estimate. It covers the name, the description and the arguments of each tool, which a
    client puts into the context of its model.

    $ simplemem tools
    $ simplemem tools list --profile chatgpt
    $ simplemem tools list --tools=-core,graph --json"""
    from simplemem.profiles.registry import DEFAULT_PROFILE, choose_tools, find_profile

    name = profile or os.environ.get("SIMPLEMEM_PROFILE") or DEFAULT_PROFILE
    chosen = find_profile(name)
    groups = tools or os.environ.get("SIMPLEMEM_TOOLS", "")
    may_delete = not _is_deleting_disabled(vault)
    shown = [
        _described(tool) for tool in choose_tools(chosen, groups) if may_delete or not tool.deletes
    ]

    tokens = sum(tool["tokens"] for tool in shown)
    instructions = count_tokens(chosen.instructions)
    rows: Lines = [
        [
            (tool["name"], "cyan"),
            (tool["effect"], _STYLES[tool["effect"]]),
            tool["title"],
            (tool["summary"], "dim"),
        ]
        for tool in shown
    ]
    summary = f"{format_count(len(shown), 'tool')}, about {tokens:,} tokens; instructions: about {instructions:,} tokens"
    facts = {"profile": name, "tools": shown, "tokens": tokens, "instructions_tokens": instructions}
    return Answer(facts, [[summary]], rows, columns=(WHOLE, WHOLE, OPTIONAL, SHRINKS))


def _described(tool: Tool) -> dict[str, Any]:
    """A tool as an agent sees it: its name, title, first sentence, effect on notes, and tokens."""
    listing = tool.listing()
    effect = "reads"
    if tool.writes:
        effect = "writes"
    if tool.deletes:
        effect = "deletes"
    read = {key: listing[key] for key in _READ_BY_MODELS}
    sentences = re.split(r"(?<=\.)(?<!e\.g\.)\s", one_line(listing["description"]), maxsplit=1)
    return {
        "name": tool.name,
        "title": listing.get("title", tool.title),
        "summary": sentences[0],
        "effect": effect,
        "annotations": listing.get("annotations", {}),
        "tokens": count_tokens(json.dumps(read, separators=(",", ":"), ensure_ascii=False)),
    }


def _is_deleting_disabled(vault: Path | None) -> bool:
    """Whether the settings hide the tools that delete."""
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import load_settings

    try:
        root = find_vault(vault)
    except NotFound:
        root = None
    return load_settings(vault=root).no_delete
