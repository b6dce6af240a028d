"""The profile anthropic-memory: Claude's memory tool."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="anthropic-memory",
    title="Claude's memory tool: files below /memories",
    order=90,
    default_groups=("anthropic-memory",),
    tool_groups={
        "anthropic-memory": "simplemem.profiles.anthropic_memory.tools:TOOLS",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
)
