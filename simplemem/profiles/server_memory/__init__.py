"""The profile server-memory: the reference MCP memory server."""

from __future__ import annotations

from simplemem.profiles.profile import Profile

PROFILE = Profile(
    name="server-memory",
    title="The nine tools of the MCP memory server, and its resource",
    order=30,
    default_groups=("server-memory",),
    tool_groups={
        "graph": "simplemem.profiles.server_memory.graph_group:TOOLS",
        "server-memory": "simplemem.profiles.server_memory.tools:TOOLS",
    },
    known_as=("memory-server", "0.6.3"),
    file_env="MEMORY_FILE_PATH",
    examples=("simplemem serve --profile server-memory",),
)
