"""The current time, and how moments are written and read. Pure but for the clock.

Notes, facts and tokens use this clock, which `SIMPLEMEM_NOW` can stop at a moment. The history of a
vault uses the real time.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime
from functools import cache
from typing import Final

from simplemem.errors import Invalid


def format_moment(at: datetime) -> str:
    """Return a moment in UTC as frontmatter and answers have it: `2026-01-24T09:00:00Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_moment(text: str) -> datetime | None:
    """Return the moment that a text in ISO 8601 names, in UTC; None if it names none.

    A moment without an offset is in local time.
    """
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def now() -> datetime:
    """Return the current time with its offset, or the time that `SIMPLEMEM_NOW` names.

    Raise Invalid if `SIMPLEMEM_NOW` is not a time.
    """
    return _fixed() or datetime.now(UTC)


@cache
def _fixed() -> datetime | None:
    """Return the time that `SIMPLEMEM_NOW` names, which is read once; None if it is not set."""
    text = os.environ.get("SIMPLEMEM_NOW", "")
    if not text:
        return None

    moment = parse_moment(text)
    if moment is None:
        raise Invalid(
            f"SIMPLEMEM_NOW is {text[:60]!r}, which is not a time",
            hint="Write 2026-01-24T09:00:00Z.",
        )
    return moment


def local() -> datetime:
    """Return the current time in the local time zone without an offset, as notes have it.

    Raise Invalid if `SIMPLEMEM_NOW` is not a time.
    """
    return now().astimezone().replace(tzinfo=None)


_DATE: Final = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")


def date_in_name(name: str) -> str:
    """Return the last date in a name, as `2026-01-24`; "" if there is none."""
    for year, month, day in reversed(_DATE.findall(name)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return ""
