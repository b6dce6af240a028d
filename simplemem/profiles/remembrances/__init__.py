"""The profile remembrances: facts and documents of users."""

from __future__ import annotations

from pathlib import Path

from simplemem.profiles.profile import Profile
from simplemem.profiles.variables import SETTINGS_ENV, UNREAD_VARIABLES

PROFILE = Profile(
    name="remembrances",
    title="Remembrances' four tools: facts that users state, and what replaced them",
    order=70,
    default_groups=("remembrances",),
    tool_groups={
        "remembrances": "simplemem.profiles.remembrances.tools:TOOLS",
        "knowledge-base": "simplemem.profiles.remembrances.tools:KNOWLEDGE_BASE",
    },
    setting_groups={"documents.knowledge_base": "knowledge-base"},
    examples=("simplemem serve --profile remembrances",),
    instructions_file=Path(__file__).with_name("instructions.md"),
    settings_env=SETTINGS_ENV,
    unread_variables=UNREAD_VARIABLES,
    has_users=True,
    routes="simplemem.profiles.remembrances.routes:ROUTES",
)
