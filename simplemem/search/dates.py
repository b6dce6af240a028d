"""Dates as people say them: a moment or a span for a filter, and the days that a question speaks of. Pure, given now.
The days of a question are no filter, they order what was found. *may* and *march* are words as well."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from simplemem.errors import Invalid
from simplemem.index.door import Row
from simplemem.index.text import instant
from simplemem.note.names import base_name, date_in

DATED_NOTES = 40  # so many of the best are ordered by the days a question names
DATED_WEIGHT = 0.15  # beside 1 of all else; a plateau from 0.05 to 0.2

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAY = timedelta(days=1)
_AGO = re.compile(r"(\d{1,4}) (hour|day|week|month|year)s? ago")
_UNITS = {"hour": timedelta(hours=1), "day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "year": 365 * _DAY}


def read_when(text: str, now: datetime, *, end: bool = False) -> str:
    """The moment a text means, in the form notes are sorted by; with `end`, the end of the span it names."""
    span = _span_said(" ".join(text.casefold().split()), now)
    if span is None:
        raise Invalid(
            f"{text!r} is not a date that can be understood",
            hint='Use 2026-01-24, 2026-01, 2026-01-24T12:00:00, "yesterday", "last week" or "3 days ago".',
        )
    return span[end].strftime("%Y-%m-%dT%H:%M:%S")


def _span_said(said: str, now: datetime) -> tuple[datetime, datetime] | None:
    """The span that a text names, from its first moment to before its last; None for what is no date."""
    today = _midnight(now)
    monday, month, year = today - today.weekday() * _DAY, today.replace(day=1), today.replace(month=1, day=1)
    named = {
        "now": (now, now),
        "today": (today, today + _DAY),
        "yesterday": (today - _DAY, today),
        "this week": (monday, monday + 7 * _DAY),
        "last week": (monday - 7 * _DAY, monday),
        "this month": (month, _month_after(month)),
        "last month": ((month - _DAY).replace(day=1), month),
        "this year": (year, year.replace(year=year.year + 1)),
        "last year": (year.replace(year=year.year - 1), year),
    }
    try:
        if said in named:
            return named[said]
        if found := _AGO.fullmatch(said):
            moment = now - int(found[1]) * _UNITS[found[2]]
            return (moment, now) if found[2] == "hour" else (_midnight(moment), _midnight(moment) + _DAY)
        if re.fullmatch(r"\d{4}(-\d{2})?", said):
            start = datetime(int(said[:4]), int(said[5:] or 1), 1)  # noqa: DTZ001  (local time, as notes are)
            return start, start.replace(year=start.year + 1) if len(said) == 4 else _month_after(start)
        start = datetime.fromisoformat(instant(said.upper()) or "")
        return start, start + (_DAY if len(said) == 10 else timedelta(seconds=1))
    except (ValueError, OverflowError):
        return None


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _month_after(first: datetime) -> datetime:
    return (first + 32 * _DAY).replace(day=1)


# -- the days that a question speaks of

_IN = ("in", "on", "of", "during", "from", "by", "early", "late", "last", "this")
_OPEN = ("before", "until", "till", "after", "since")  # "two weeks before 11 August" is not of that day
_SPOKEN_OF = re.compile(
    rf"""\b(?P<iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)\b
      | \b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{"|".join(_MONTHS)})\b
        (?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<year>(?:19|20)\d\d)\b)?
      | \b(?P<alone>(?:19|20)\d\d)\b
      | \b(?P<said>yesterday|today|(?:last|this)\ (?:week|month|year)|\d{{1,3}}\ (?:day|week|month|year)s?\ ago)\b""",
    re.VERBOSE,
)


def days_in(text: str, now: datetime) -> tuple[str, ...]:
    """How the ISO days begin that a text speaks of; `-06` is June of any year, where it names none."""
    lowered, found = " ".join(text.casefold().split()), list[str]()
    for term in _SPOKEN_OF.finditer(lowered):
        word = lowered[: term.start()].rstrip().rpartition(" ")[2]
        if word in _OPEN:
            continue
        day, year = term["day"] or term["day_after"], term["year"] or ""
        if term["month"] and (day or year or term["month"] not in ("march", "may") or word in _IN):
            found.append(f"{year}-{_MONTHS.index(term['month']) + 1:02d}" + (f"-{int(day):02d}" if day else ""))
        elif term["iso"] or (term["alone"] and word in _IN):  # any other number is a number
            found.append(term["iso"] or term["alone"])
        elif term["said"] and (span := _span_said(term["said"], now)) is not None:
            found += [(span[0] + k * _DAY).date().isoformat() for k in range((span[1] - span[0]).days)]
    return tuple(found)


def is_of(row: Row, days: tuple[str, ...]) -> bool:
    """Whether a note is of some days: by the day in its name or title; without one, by when it was made and changed."""
    named = date_in(base_name(row.path)) or day_in(row.title)
    of = (named,) if named else (row.created[:10], row.modified[:10])
    return any(day.startswith(days) or day[4:].startswith(days) for day in of)


def day_in(title: str) -> str:
    """The day that a title says in full, `8 May, 2023` or `2023-05-08`, as an ISO day; "" when there is none."""
    days = days_in(title, datetime(2000, 1, 1)) if any(map(str.isdigit, title)) else ()  # noqa: DTZ001
    return next((day for day in days if len(day) == len("2023-05-08")), "")
