"""The profile self-improving: lessons that an agent learns."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="self-improving",
    title="Lessons that an agent learns: a graph, entries, and their analysis",
    order=50,
    default_groups=(
        "strict-graph",
        "knowledge",
        "insight",
        "cache",
    ),
    tool_groups={
        "strict-graph": "simplemem.profiles.self_improving.tools:GRAPH",
        "knowledge": "simplemem.profiles.self_improving.tools:KNOWLEDGE",
        "insight": "simplemem.profiles.self_improving.tools:INSIGHT",
        "cache": "simplemem.profiles.self_improving.tools:CACHE",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
    vault=".claude-memory",
    vault_env="MEMORY_STORAGE_PATH",
)
