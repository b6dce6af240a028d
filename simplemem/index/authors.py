"""Who wrote something, as the log and a filter name them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from simplemem.vault.versions import Version

_RESERVED_NAMES = ("human", "unknown")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote something, and when at the latest (in UTC); "" if that is not known."""

    kind: Literal["human", "agent", "unknown"]
    name: str = ""
    when: str = field(default="", compare=False)


HUMAN = Origin("human")
UNKNOWN = Origin("unknown")


def author_of(version: Version) -> Origin:
    """Return who made a change: a person, or an agent by the name that its client states.

    An agent cannot pass for a person by its name.
    """
    if version.is_by_person:
        return Origin("human", "", version.when)

    name = version.who
    if not name:
        is_agent = "_" in version.tool  # as in the names of the tools of agents
        name = "an agent without a name" if is_agent else "a program"
    elif name.casefold() in _RESERVED_NAMES:
        name = f"an agent called {name}"
    return Origin("agent", name, version.when)


def is_called(who: str, name: str) -> bool:
    """Return whether a client is called so, with or without the version that it states.

    The name "" matches every client.
    """
    client = who.casefold()
    wanted_name = " ".join(name.split()).casefold()
    if wanted_name in ("", client):
        return True
    client_name, _, client_version = client.rpartition(" ")
    has_version = any(map(str.isdigit, client_version))
    return has_version and client_name == wanted_name
