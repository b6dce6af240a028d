"""The profiles that there are, the tool groups, and the tools of a choice of groups."""

from __future__ import annotations

import importlib

from simplemem.errors import Invalid
from simplemem.profiles.profile import Profile
from simplemem.tools.tool import Tool

TOOLSETS: dict[str, tuple[str, str]] = {
    "core": ("tools.core", "TOOLS"),
    "original": ("profiles.original.tools", "TOOLS"),
    "graph": ("profiles.server_memory.tools", "TOOLS"),
    "server-memory": ("profiles.server_memory.tools", "SERVER_MEMORY"),
    "memento": ("profiles.memento.tools", "TOOLS"),
    "strict-graph": ("profiles.self_improving.tools", "GRAPH"),
    "knowledge": ("profiles.self_improving.tools", "KNOWLEDGE"),
    "insight": ("profiles.self_improving.tools", "INSIGHT"),
    "cache": ("profiles.self_improving.tools", "CACHE"),
    "hmlr": ("profiles.hmlr.tools", "FIVE"),
    "talk": ("profiles.hmlr.tools", "TOOLS"),
    "remembrances": ("profiles.remembrances.tools", "TOOLS"),
    "knowledge-base": ("profiles.remembrances.tools", "KNOWLEDGE_BASE"),
    "supermemento": ("profiles.supermemento.tools", "TOOLS"),
    "anthropic-memory": ("profiles.anthropic_memory.tools", "TOOLS"),
    "chatgpt": ("profiles.chatgpt.tools", "TOOLS"),
    "basic-memory": ("profiles.basic_memory.tools", "TOOLS"),
}
"""Name -> the module that holds it, and what it is called there."""

_BUILT_IN = (
    Profile("default", "Twelve tools for linked notes", ("core",)),
    Profile(
        "simplemem", "The eight tools of the original simplemem", ("original",), vault=".memories"
    ),
    Profile(
        "server-memory",
        "The nine tools of the MCP memory server, and its resource",
        ("server-memory",),
        known_as=("memory-server", "0.6.3"),
        file_env="MEMORY_FILE_PATH",
    ),
    Profile(
        "memento",
        "Memento's seventeen tools: those of server-memory, history, decay and search by meaning",
        ("memento",),
        known_as=("memento-mcp", "1.0.0"),
        file_env="MEMORY_FILE_PATH",
    ),
    Profile(
        "self-improving",
        "Lessons that an agent learns: a graph, entries, and their analysis",
        ("strict-graph", "knowledge", "insight", "cache"),
        vault=".claude-memory",
        vault_env="MEMORY_STORAGE_PATH",
    ),
    Profile(
        "hmlr",
        "HMLR's five tools: conversations by topic, with facts and the user profile",
        ("hmlr",),
    ),
    Profile(
        "remembrances",
        "Remembrances' four tools: facts that users state, and what replaced them",
        ("remembrances",),
        has_users=True,
    ),
    Profile(
        "supermemento",
        "Supermemento's eleven tools: a graph, facts that age, documents",
        ("supermemento",),
        has_users=True,
    ),
    Profile(
        "anthropic-memory", "Claude's memory tool: files below /memories", ("anthropic-memory",)
    ),
    Profile("chatgpt", "The two tools of ChatGPT's connectors and deep research", ("chatgpt",)),
    Profile(
        "basic-memory",
        "Nine tools of basic-memory: notes by permalink, observations and relations",
        ("basic-memory",),
        vault="~/basic-memory",
        vault_env="BASIC_MEMORY_HOME",
    ),
)
PROFILES: dict[str, Profile] = {profile.name: profile for profile in _BUILT_IN}


def choose_tools(profile: Profile, changes: str = "") -> tuple[Tool, ...]:
    """The tools of a profile in their order, with toolsets added or taken away: `-core,original`."""
    chosen = dict.fromkeys(profile.toolsets)
    for change in filter(None, map(str.strip, changes.split(","))):
        name = change.lstrip("+-")
        if name not in TOOLSETS:
            raise Invalid(
                f"no tool group called {name!r}",
                hint="The tool groups are " + ", ".join(TOOLSETS) + ".",
            )
        chosen |= {name: None}
        if change.startswith("-"):
            del chosen[name]
    tools: dict[str, Tool] = {}
    for name in chosen:
        module, attribute = TOOLSETS[name]
        for tool in getattr(importlib.import_module(f"simplemem.{module}"), attribute):
            if tools.setdefault(tool.name, tool) is not tool:
                hint = f"Choose one of them, or remove one with `--tools=-{next(iter(chosen))},{name}`."
                raise Invalid(
                    f"two tool groups have a tool {tool.name!r}: {', '.join(chosen)}", hint=hint
                )
    if not tools:
        hint = "--tools adds tool groups; a minus before a name removes one."
        raise Invalid("no tool is left", hint=hint)
    return tuple(tools.values())
