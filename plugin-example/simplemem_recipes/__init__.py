"""A profile for simplemem with two tools: an agent keeps recipes."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="recipes",
    title="Two tools for recipes",
    default_groups=("recipes",),
    tool_groups={"recipes": "simplemem_recipes.tools:TOOLS"},
    instructions_file=Path(__file__).with_name("instructions.md"),
)
