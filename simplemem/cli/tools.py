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
    "$ simplemem tools\n$ simplemem tools list --tools graph",
)
_READ_BY_MODELS = ("name", "description", "inputSchema")
_SENTENCE_END = re.compile(r"(?<=\.)(?<!e\.g\.)\s")
_STYLES = {"reads": "green", "writes": "yellow", "deletes": "red"}


def _profile_names() -> list[str]:
    """Return the names of all profiles, for completion in the shell."""
    from simplemem.profiles.registry import all_profiles

    return [*all_profiles()]


@command(_tools, name="list")
def list_tools(
    profile: Annotated[
        str,
        option(
            "--profile",
            "NAME",
            "The profile: see `simplemem serve --help`.",
            completing(_profile_names),
        ),
    ] = "",
    tools: Annotated[
        str,
        option("--tools", "GROUPS", "Tool groups to add; a minus before a name removes the group."),
    ] = "",
    vault: VaultOption = None,
) -> Answer:
    """List the tools of a profile, and how many tokens their descriptions take.

    The number of tokens is an estimate. It covers the name, the description and the arguments of
    each tool, which a client puts into the context of its model.

    $ simplemem tools
    $ simplemem tools list --tools graph
    $ simplemem tools list --tools=-core,graph --json"""
    from simplemem.profiles.registry import DEFAULT_PROFILE, choose_tools, find_profile

    name = profile or os.environ.get("SIMPLEMEM_PROFILE") or DEFAULT_PROFILE
    chosen = find_profile(name)
    groups = tools or os.environ.get("SIMPLEMEM_TOOLS", "")
    may_delete = not _is_deleting_disabled(vault)
    listed_tools = [
        _describe(tool) for tool in choose_tools(chosen, groups) if may_delete or not tool.deletes
    ]

    rows: Lines = []
    for tool in listed_tools:
        effect = tool["effect"]
        rows.append(
            [
                (tool["name"], "cyan"),
                (effect, _STYLES[effect]),
                tool["title"],
                (tool["summary"], "dim"),
            ]
        )

    tokens = sum(tool["tokens"] for tool in listed_tools)
    instructions_tokens = count_tokens(chosen.instructions)
    facts = {
        "profile": name,
        "tools": listed_tools,
        "tokens": tokens,
        "instructions_tokens": instructions_tokens,
    }
    summary = (
        f"{format_count(len(listed_tools), 'tool')}, about {tokens:,} tokens;"
        f" instructions: about {instructions_tokens:,} tokens"
    )
    return Answer(facts, [[summary]], rows, columns=(WHOLE, WHOLE, OPTIONAL, SHRINKS))


def _describe(tool: Tool) -> dict[str, Any]:
    """Return a tool as JSON: what an agent sees of it, its effect on notes, and its tokens.

    The keys are `name`, `title`, `summary` (the first sentence of the description), `effect`
    (`reads`, `writes` or `deletes`), `annotations` and `tokens`.
    """
    listing = tool.listing()
    effect = "reads"
    if tool.writes:
        effect = "writes"
    if tool.deletes:
        effect = "deletes"

    description = one_line(listing["description"])
    first_sentence = _SENTENCE_END.split(description, maxsplit=1)[0]
    read_by_models = {key: listing[key] for key in _READ_BY_MODELS}
    model_json = json.dumps(read_by_models, separators=(",", ":"), ensure_ascii=False)
    return {
        "name": tool.name,
        "title": listing.get("title", tool.title),
        "summary": first_sentence,
        "effect": effect,
        "annotations": listing.get("annotations", {}),
        "tokens": count_tokens(model_json),
    }


def _is_deleting_disabled(vault: Path | None) -> bool:
    """Return whether the settings of a vault, or of the user without one, forbid deleting.

    Raises Invalid if a setting is wrong.
    """
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import load_settings

    try:
        root = find_vault(vault)
    except NotFound:
        root = None
    return load_settings(vault=root).no_delete
