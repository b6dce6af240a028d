"""What time it is, for all that is stamped or judged by it. The history goes by the real clock."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache

from simplemem.errors import Invalid


def stamp(at: datetime) -> str:
    """A moment as answers and headers say it, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(text: str) -> datetime | None:
    """The moment that a text of a header or a line says, in UTC; None when it says none."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def now() -> datetime:
    """The moment, with its offset; `SIMPLEMEM_NOW` fixes it for the process."""
    return _fixed() or datetime.now(UTC)


@cache
def _fixed() -> datetime | None:
    if not (said := os.environ.get("SIMPLEMEM_NOW", "")):
        return None
    if (at := moment_of(said)) is None:
        raise Invalid(
            f"SIMPLEMEM_NOW is {said[:60]!r}, which is not a time",
            hint="Write 2026-01-24T09:00:00Z.",
        )
    return at


def local() -> datetime:
    """The moment on the wall, without an offset, as notes have it."""
    return now().astimezone().replace(tzinfo=None)
