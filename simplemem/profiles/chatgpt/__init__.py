"""The profile chatgpt: the tools that ChatGPT's connectors call."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="chatgpt",
    title="The two tools of ChatGPT's connectors and deep research",
    order=100,
    default_groups=("chatgpt",),
    tool_groups={
        "chatgpt": "simplemem.profiles.chatgpt.tools:TOOLS",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
)
