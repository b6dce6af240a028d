"""The profile basic-memory: notes by permalink."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="basic-memory",
    title="Nine tools of basic-memory: notes by permalink, observations and relations",
    order=110,
    default_groups=("basic-memory",),
    tool_groups={
        "basic-memory": "simplemem.profiles.basic_memory.tools:TOOLS",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
    vault="~/basic-memory",
    vault_env="BASIC_MEMORY_HOME",
)
