"""The profile simplemem: the original simplemem."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="simplemem",
    title="The eight tools of the original simplemem",
    order=20,
    default_groups=("original",),
    tool_groups={
        "original": "simplemem.profiles.simplemem.tools:TOOLS",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
    vault=".memories",
    settings_reader="simplemem.profiles.simplemem.settings:original_settings",
    examples=("simplemem serve --profile simplemem",),
)
