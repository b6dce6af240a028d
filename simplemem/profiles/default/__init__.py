"""The profile default: twelve tools for linked notes."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="default",
    title="Twelve tools for linked notes",
    order=10,
    default_groups=("core",),
    tool_groups={
        "core": "simplemem.tools.core:TOOLS",
        "review": "simplemem.tools.reviewing:TOOLS",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
)
