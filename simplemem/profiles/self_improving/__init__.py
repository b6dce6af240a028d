"""The profile self-improving: lessons that an agent learns."""

from __future__ import annotations

from pathlib import Path

from simplemem.features.lessons import VAULT_FOLDER, VAULT_VARIABLE
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
        "knowledge-search",
    ),
    tool_groups={
        "strict-graph": "simplemem.profiles.self_improving.graph_tools:GRAPH",
        "knowledge": "simplemem.profiles.self_improving.lesson_tools:KNOWLEDGE",
        "insight": "simplemem.profiles.self_improving.analysis_tools:INSIGHT",
        "cache": "simplemem.profiles.self_improving.cache_tools:CACHE",
        "knowledge-search": "simplemem.profiles.self_improving.search_tools:TOGETHER",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
    vault=VAULT_FOLDER,
    vault_env=VAULT_VARIABLE,
    examples=("simplemem serve --profile self-improving",),
)
