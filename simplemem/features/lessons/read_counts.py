"""How often each lesson was read, and when last.

The counts are in `.simplemem/state/access.jsonl`, one event per line, never in a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

FILE: Final = "state/access.jsonl"
_MAX_TIMES: Final = (1 << 53) - 1  # the greatest number that all JSON readers agree on


class ReadCount(NamedTuple):
    """How often a lesson was read, and when last (UTC); "" for never."""

    times: int
    last: str


NEVER_READ: Final = ReadCount(0, "")

ReadCounts = dict[str, ReadCount]
"""The counts by the ids of lessons. A lesson that was never read is missing."""


def add_reads(counts: ReadCounts, event: Mapping[str, Any]) -> None:
    """Add an event of the log to `counts`.

    An event has the `ids` of the lessons that were read, the time (`at`), and how many times they
    were read (`n`, 1 if it is absent). An event without valid ids, time or number is skipped.
    """
    ids = event.get("ids")
    at = event.get("at")
    times = event.get("n", 1)
    if not isinstance(ids, list) or not isinstance(at, str) or not isinstance(times, int):
        return
    if not 0 < times <= _MAX_TIMES:
        return

    for lesson_id in ids:
        if isinstance(lesson_id, str):
            previous = counts.get(lesson_id, NEVER_READ)
            last = max(previous.last, at)
            counts[lesson_id] = ReadCount(previous.times + times, last)
