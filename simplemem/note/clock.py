"""What time it is, for all that is stamped or judged by it. The history goes by the real clock."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache

from simplemem.errors import Invalid


def now() -> datetime:
    """The moment, with its offset; `SIMPLEMEM_NOW` fixes it for the process."""
    return _fixed() or datetime.now(UTC)


@cache
def _fixed() -> datetime | None:
    if not (said := os.environ.get("SIMPLEMEM_NOW", "")):
        return None
    try:
        return datetime.fromisoformat(said).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(f"SIMPLEMEM_NOW is {said[:60]!r}, which is no time", hint="Write 2026-01-24T09:00:00Z.") from None


def local() -> datetime:
    """The moment on the wall, without an offset, as notes have it."""
    return now().astimezone().replace(tzinfo=None)
