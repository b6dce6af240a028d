"""The faces of the server by name, and the toolsets that they choose from, imported when they are chosen. A toolset is
a tuple of tools and a line in `TOOLSETS`; a face a line in `PROFILES`, and a file in `instructions/` of under 400
tokens."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from simplemem.errors import Invalid
from simplemem.faces.face import Face, Tool

TOOLSETS: dict[str, tuple[str, str]] = {
    "core": ("core", "TOOLS"),
    "original": ("original", "TOOLS"),
    "graph": ("graph_tools", "TOOLS"),
    "server-memory": ("graph_tools", "SERVER_MEMORY"),
    "memento": ("memento", "TOOLS"),
    "strict-graph": ("self_improving", "GRAPH"),
    "knowledge": ("self_improving", "KNOWLEDGE"),
    "insight": ("self_improving", "INSIGHT"),
    "cache": ("self_improving", "CACHE"),
}
"""Name -> the module that holds it, and what it is called there."""

_FACES = (
    Face("default", "Twelve tools for a memory of linked notes", ("core",)),
    Face(
        "simplemem",
        "The eight tools of the original simplemem",
        ("original",),
        vault=".memories",
        settings_for=lambda *asked: importlib.import_module("simplemem.faces.original").original_settings(*asked),
    ),
    Face(
        "server-memory",
        "The nine tools of the graph memory server, its resource and its ways",
        ("server-memory",),
        known_as=("memory-server", "0.6.3"),
        file_env="MEMORY_FILE_PATH",
    ),
    Face(
        "memento",
        "Memento's seventeen tools: those nine, and the past, decay and meaning of the graph",
        ("memento",),
        known_as=("memento-mcp", "1.0.0"),
        file_env="MEMORY_FILE_PATH",
    ),
    Face(
        "self-improving",
        "What an agent learns: its graph, its knowledge, and what that shows",
        ("strict-graph", "knowledge", "insight", "cache"),
        vault=".claude-memory",
        vault_env="MEMORY_STORAGE_PATH",
    ),
)
PROFILES: dict[str, Face] = {face.name: face for face in _FACES}


def profile_called(name: str | None) -> Face:
    """The face of that name, the default one for none."""
    try:
        return PROFILES[name or "default"]
    except KeyError:
        raise Invalid(f"There is no profile {name!r}.", hint="There are " + ", ".join(PROFILES) + ".") from None


def choose(face: Face, changes: Sequence[str] = ()) -> tuple[Tool, ...]:
    """The tools of a face in their order, with toolsets added (`graph`) or taken away (`-core`)."""
    chosen = dict.fromkeys(face.toolsets)
    for change in changes:
        name = change.lstrip("+-")
        if name not in TOOLSETS:
            raise Invalid(f"There is no toolset {name!r}.", hint="There are " + ", ".join(TOOLSETS) + ".")
        chosen |= {name: None}
        if change.startswith("-"):
            del chosen[name]
    tools: dict[str, Tool] = {}
    for name in chosen:
        module, attribute = TOOLSETS[name]
        for tool in getattr(importlib.import_module(f"simplemem.faces.{module}"), attribute):
            if tools.setdefault(tool.name, tool) is not tool:
                hint = f"Choose one of them, or take one away: --tools -{next(iter(chosen))},{name}"
                raise Invalid(f"Two toolsets have a tool {tool.name!r} ({', '.join(chosen)}).", hint=hint)
    if not tools:
        raise Invalid("No tool is left to show.", hint="--tools adds toolsets; a minus before a name takes one away.")
    return tuple(tools.values())


def split_names(names: str | Sequence[str] | None) -> list[str]:
    """`core,graph` or a list of such, as a list of names."""
    parts = [names] if isinstance(names, str) else list(names or ())
    return [name.strip() for part in parts for name in part.split(",") if name.strip()]
