"""The current time, and how moments are written and read. Pure but for the clock.

Notes, facts and tokens use this clock, which `SIMPLEMEM_NOW` can stop at a moment. The history of a
vault uses the real time. A date that notes state without an offset is in local time.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime
from functools import cache
from typing import Final

from simplemem.errors import Invalid

_DATE: Final = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")
_MAX_TIME_CHARACTERS: Final = 40  # longer texts are no times
_MIN_YEAR: Final = 1000  # years of fewer digits would not sort as texts


def now() -> datetime:
    """Return the current time with its offset, or the time that `SIMPLEMEM_NOW` names.

    Raise Invalid if `SIMPLEMEM_NOW` is not a time.
    """
    return _fixed() or datetime.now(UTC)


def local_now() -> datetime:
    """Return the current time in the local time zone without an offset, as notes have it.

    Raise Invalid if `SIMPLEMEM_NOW` is not a time.
    """
    return now().astimezone().replace(tzinfo=None)


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


def format_moment(moment: datetime) -> str:
    """Return a moment in UTC as frontmatter and answers have it: `2026-01-24T09:00:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_log_time(moment: datetime) -> str:
    """Return a moment in UTC as the history has it: `2026-01-24T09:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_local_time(moment: datetime) -> str:
    """Return a moment in local time as notes have it: `2026-01-24T09:00:00`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def parse_moment(text: str) -> datetime | None:
    """Return the moment that a text in ISO 8601 names, in UTC; None if it names none.

    A moment without an offset is in local time.
    """
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def sortable_time(text: str | None) -> str | None:
    """Return a date or time of a note in the form that sorts: `2026-01-24T12:00:00`.

    It is in local time, to the second. None for a text that is no date and no time.
    """
    if not text or len(text) > _MAX_TIME_CHARACTERS:
        return None

    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).astimezone().replace(tzinfo=None)
    except (OverflowError, OSError, ValueError):
        return None

    if moment.year < _MIN_YEAR:
        return None
    return moment.isoformat(timespec="seconds")


def file_time(mtime_ns: int) -> str:
    """Return the time of the last change of a file, in the form of `sortable_time`.

    A time that no calendar has gives the year 1970.
    """
    try:
        moment = datetime.fromtimestamp(mtime_ns / 1e9)  # noqa: DTZ006  (local time, as notes are)
    except (OverflowError, OSError, ValueError):
        return "1970-01-01T00:00:00"
    return moment.isoformat(timespec="seconds")


def date_in_name(name: str) -> str:
    """Return the last date in a name, as `2026-01-24`; "" if there is none."""
    for year, month, day in reversed(_DATE.findall(name)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return ""
