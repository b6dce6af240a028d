"""Which tools a client sees: toolsets by name, and profiles that choose among them. Only the chosen
toolsets are imported.

A new toolset is a module with `TOOLS`, and a line in `TOOLSETS`. Two tools of one name never meet:
choosing such a pair is refused, and a profile says which of the two it leaves out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid
from simplemem.faces.instructions import INSTRUCTIONS, LEARNING, ORIGINAL
from simplemem.faces.original_settings import original_settings
from simplemem.faces.tool import Tool

TOOLSETS: dict[str, str] = {
    "core": "simplemem.faces.core",
    "original": "simplemem.faces.original",
    "graph": "simplemem.faces.graph",
    "server-memory": "simplemem.faces.server_memory",
    "memento": "simplemem.faces.memento",
    "strict-graph": "simplemem.faces.strict_graph",
    "knowledge": "simplemem.faces.knowledge",
    "insight": "simplemem.faces.insight",
    "cache": "simplemem.faces.cache",
}
"""Name -> the module that holds it."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A face of the server. `without` names tools it does not show, as `core.list_memories`."""

    name: str
    title: str
    toolsets: tuple[str, ...]
    without: frozenset[str] = frozenset()
    instructions: str = INSTRUCTIONS
    vault: str = ""
    """The folder it works in when none is named, in place of searching for one."""
    vault_env: str = ""
    """The variable in which the server whose place it takes was told its folder."""
    settings_for: Callable[[Path, Mapping[str, str], Path | None], dict[str, Any]] | None = None
    """Reads its own files and variables, or the one file it is given, as dotted names."""
    known_as: tuple[str, str] | None = None
    """The name and version of the graph memory server in whose place it stands, for one that does."""


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("default", "Twelve tools for a memory of linked notes", ("core",)),
        Profile(
            "simplemem",
            "The eight tools of the original simplemem",
            ("original",),
            instructions=ORIGINAL,
            vault=".memories",
            settings_for=original_settings,
        ),
        Profile(
            "server-memory",
            "The nine tools of the graph memory server, its resource and its ways",
            ("server-memory",),
            instructions="",
            known_as=("memory-server", "0.6.3"),
        ),
        Profile(
            "memento",
            "Memento's seventeen tools: those nine, and the past, decay and meaning of the graph",
            ("memento",),
            instructions="",
            known_as=("memento-mcp", "1.0.0"),
        ),
        Profile(
            "self-improving",
            "What an agent learns: its graph, its knowledge, and what that shows",
            ("strict-graph", "knowledge", "insight", "cache"),
            instructions=LEARNING,
            vault=".claude-memory",
            vault_env="MEMORY_STORAGE_PATH",
        ),
    )
}


def profile_called(name: str | None) -> Profile:
    """The profile of that name, the default one for none."""
    try:
        return PROFILES[name or "default"]
    except KeyError:
        raise Invalid(f"There is no profile {name!r}.", hint="There are " + ", ".join(PROFILES) + ".") from None


def choose(profile: Profile, changes: Sequence[str] = ()) -> tuple[Tool[Any], ...]:
    """The tools of a profile in their order, with toolsets added (`graph`) or taken away (`-core`)."""
    chosen = list(profile.toolsets)
    for change in changes:
        name = change.removeprefix("-").removeprefix("+")
        if name not in TOOLSETS:
            raise Invalid(f"There is no toolset {name!r}.", hint="There are " + ", ".join(TOOLSETS) + ".")
        if change.startswith("-"):
            chosen = [each for each in chosen if each != name]
        elif name not in chosen:
            chosen.append(name)
    tools: dict[str, Tool[Any]] = {}
    for name in chosen:
        for tool in importlib.import_module(TOOLSETS[name]).TOOLS:
            if f"{name}.{tool.name}" in profile.without:
                continue
            if tool.name in tools:
                raise Invalid(
                    f"Two toolsets have a tool {tool.name!r} ({', '.join(chosen)}).",
                    hint="Choose one of them, or take one away: --tools " + f"-{chosen[0]},{name}",
                )
            tools[tool.name] = tool
    if not tools:
        raise Invalid("No tool is left to show.", hint="--tools adds toolsets; a minus before a name takes one away.")
    return tuple(tools.values())


def split_names(said: str | Sequence[str] | None) -> list[str]:
    """`core,graph` or a list of such, as a list of names."""
    parts = [said] if isinstance(said, str) else list(said or ())
    return [name.strip() for part in parts for name in part.split(",") if name.strip()]
