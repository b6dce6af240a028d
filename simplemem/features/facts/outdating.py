"""What both forms of notes say of a fact that a new one supersedes or disputes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from simplemem.note.dates import format_moment


def superseded_properties(link: str, end: datetime) -> Mapping[str, Any]:
    """Return the properties of the note of a fact that a new one supersedes, and that ends then.

    `link` is a link to the note of the new one. The old one is disputed no longer.
    """
    return {
        "superseded_by": link,
        "valid_to": format_moment(end),
        "disputed": None,
        "disputed_by": None,
    }


def disputed_properties(link: str, since: datetime) -> Mapping[str, Any]:
    """Return the properties of the note of a fact that is disputed since a time.

    `link` is a link to the fact or the turn that puts it in doubt.
    """
    return {"disputed": format_moment(since), "disputed_by": link}
