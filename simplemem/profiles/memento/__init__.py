"""The profile memento: a graph memory server with history and decay."""

from __future__ import annotations

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="memento",
    title="Memento's seventeen tools: those of server-memory, history, decay and search by meaning",
    order=40,
    default_groups=("memento",),
    tool_groups={
        "memento": "simplemem.profiles.memento.tools:TOOLS",
    },
    known_as=("memento-mcp", "1.0.0"),
    file_env="MEMORY_FILE_PATH",
    examples=(
        "simplemem serve --vault work=~/work --vault home=~/notes --profile work=memento --http",
    ),
)
