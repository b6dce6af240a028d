"""The profile hmlr: conversations by topic."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="hmlr",
    title="HMLR's five tools: conversations by topic, with facts and the user profile",
    order=60,
    default_groups=("hmlr",),
    tool_groups={
        "hmlr": "simplemem.profiles.hmlr.tools:HMLR_TOOLS",
        "talk": "simplemem.profiles.hmlr.tools:TOOLS",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
)
