"""The seventeen types of entities that self-improving-memory has, and its limits (capabilities.md SI-1 to SI-6, SI-30)."""

from __future__ import annotations

from typing import Final

ENTITY_TYPES: Final = (
    *("project", "component", "dependency"),
    *("error", "solution", "pattern", "insight", "decision"),
    *("user-intent", "user-preference", "requirement"),
    *("style-rule", "architectural-pattern", "tool-preference"),
    *("session-snapshot", "continuation-point", "work-in-progress"),
)
LONGEST_NAME: Final = 200
LONGEST_OBSERVATION: Final = 10_000
LONGEST_RELATION: Final = 100
LONGEST_QUERY: Final = 500
MOST_HITS: Final = 100
MOST_NAMES: Final = 50
