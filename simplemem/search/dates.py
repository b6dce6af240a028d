"""Dates as people say them: ISO in any precision, or "last week", "3 days ago", "yesterday". Pure, given now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from simplemem.errors import Invalid
from simplemem.index.facts import instant

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AGO = re.compile(
    r"(?:(\d{1,4})|an?|one|two|three) (hour|day|week|month|year)s? ago|(?:last|past) (\d{1,4}) (hour|day|week|month|year)s?"
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


def read_when(text: str, now: datetime, *, end: bool = False) -> str:
    """The moment a text means, in the form notes are sorted by. With `end`, the end of the span it names: "until
    2026-01" includes all of January."""
    cleaned = " ".join(text.strip().casefold().split())
    span = _span(cleaned, now)
    if span is None:
        raise Invalid(
            f"{text!r} is not a date that can be understood",
            hint='Use 2026-01-24, 2026-01, 2026-01-24T12:00:00, "yesterday", "last week" or "3 days ago".',
        )
    return span[1 if end else 0].strftime("%Y-%m-%dT%H:%M:%S")


def _span(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    monday = today - timedelta(days=today.weekday())
    named = {
        "now": (now, now),
        "today": (today, today + day),
        "yesterday": (today - day, today),
        "this week": (monday, monday + 7 * day),
        "last week": (monday - 7 * day, monday),
        "this month": (today.replace(day=1), _month_after(today)),
        "last month": ((today.replace(day=1) - day).replace(day=1), today.replace(day=1)),
        "this year": (today.replace(month=1, day=1), today.replace(year=today.year + 1, month=1, day=1)),
        "last year": (today.replace(year=today.year - 1, month=1, day=1), today.replace(month=1, day=1)),
    }
    if text in named:
        return named[text]
    weekday = text.removeprefix("last ").removeprefix("on ")
    if weekday in _WEEKDAYS:
        back = (today.weekday() - _WEEKDAYS.index(weekday)) % 7
        start = today - timedelta(days=back or (7 if text.startswith("last ") else 0))
        return start, start + day
    return _ago(text, now) or _written(text)


def _ago(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    found = _AGO.fullmatch(text)
    if found is None:
        return None
    count = int(found[1] or found[3] or _NUMBERS[text.split()[0]])
    unit = found[2] or found[4]
    step = timedelta(hours=count) if unit == "hour" else timedelta(days=count * _DAYS[unit])
    try:
        moment = now - step
    except OverflowError:
        return None
    if unit == "hour" or found[3]:
        return moment, now
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return start, start + timedelta(days=1)


def _written(text: str) -> tuple[datetime, datetime] | None:
    """ISO, and its shorter forms for a month or a year."""
    try:
        if re.fullmatch(r"\d{4}", text):
            start = datetime(int(text), 1, 1)  # noqa: DTZ001  (local time, as notes are)
            return start, start.replace(year=start.year + 1)
        if re.fullmatch(r"\d{4}-\d{2}", text):
            start = datetime(int(text[:4]), int(text[5:]), 1)  # noqa: DTZ001
            return start, _month_after(start)
        moment = instant(text.upper())
        if moment is None:
            return None
        start = datetime.fromisoformat(moment)
        return start, start + (timedelta(days=1) if len(text) == 10 else timedelta(seconds=1))
    except (ValueError, OverflowError):
        return None


def _month_after(moment: datetime) -> datetime:
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)
