"""Read the timeframes of basic-memory: "7d", "2 weeks ago", "yesterday", a date."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from simplemem.errors import Invalid
from simplemem.models import Filter
from simplemem.store import EnhancedStore

_SPAN: Final = re.compile(r"(\d{1,4}) ?([hdwmy])[a-z]*+(?: ago)?")
_UNIT_NAMES: Final = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}
_UNIT_DAYS: Final = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


@dataclass(frozen=True)
class Timeframe:
    """A stretch of time up to now.

    Attributes:
        since: Its start, as a filter of the store takes it: `2 weeks ago`, `yesterday`, a date.
        label: What answers show: a number of days such as `14d`, else the text of the call.
    """

    since: str
    label: str


def read_timeframe(store: EnhancedStore, text: str) -> Timeframe:
    """Return the timeframe that a text means: a span such as 7d, or a date that the store reads.

    Raises Invalid if the text is empty or neither of them.
    """
    timeframe = _parse_timeframe(text)
    try:
        store.list(filter=Filter(since=timeframe.since or "?"), limit=1)
    except Invalid:
        raise Invalid(f"Could not parse timeframe: {text}") from None
    return timeframe


def _parse_timeframe(text: str) -> Timeframe:
    """Return the timeframe of a text: `yesterday`, or a number of units such as `2 weeks ago`.

    Any other text becomes the start as it is. The store has to check it.
    """
    if text == "yesterday":
        return Timeframe(text, "1d")

    span = _SPAN.fullmatch(text.strip().lower())
    if span is None:
        return Timeframe(text, text)

    number = span[1]
    unit = span[2]
    days = max(1, round(int(number) * _UNIT_DAYS[unit]))
    return Timeframe(f"{number} {_UNIT_NAMES[unit]}s ago", f"{days}d")
