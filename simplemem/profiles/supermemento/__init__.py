"""The profile supermemento: a graph, and facts and documents of users."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile
from simplemem.profiles.variables import SETTINGS_ENV, UNREAD_VARIABLES

PROFILE = Profile(
    name="supermemento",
    title="Supermemento's eleven tools: a graph, facts that age, documents",
    order=80,
    default_groups=("supermemento",),
    tool_groups={
        "supermemento": "simplemem.profiles.supermemento.tools:TOOLS",
    },
    instructions_file=Path(__file__).with_name("instructions.md"),
    settings_env=SETTINGS_ENV,
    unread_variables=UNREAD_VARIABLES,
    has_users=True,
    routes="simplemem.profiles.supermemento.routes:ROUTES",
    port=8000,
    health={"neo4j": "not used"},
)
