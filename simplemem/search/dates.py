"""Dates as people say them: a moment or a span for a filter, and the days that a question speaks of. Pure, given now.

The days of a question are no filter: they order the notes that were found. A month without a year is that month of any
year. Only what is unmistakably a date is taken for one: *may* and *march* are words as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from simplemem.errors import Invalid
from simplemem.index.door import Row
from simplemem.index.text import instant
from simplemem.note.names import base_name, date_in

DATED_NOTES = 40  # so many of the best are ordered by the days a question names
DATED_WEIGHT = 0.15  # beside 1 of all else; a plateau from 0.05 to 0.2

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAY = timedelta(days=1)
_AGO = re.compile(
    r"(?:(\d{1,4})|an?|one|two|three) (hour|day|week|month|year)s? ago|(?:last|past) (\d{1,4}) (hour|day|week|month|year)s?"
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}
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
    weekday = said.removeprefix("last ").removeprefix("on ")
    try:
        if said in named:
            return named[said]
        if weekday in _WEEKDAYS:
            back = (today.weekday() - _WEEKDAYS.index(weekday)) % 7 or (7 if said.startswith("last ") else 0)
            return today - back * _DAY, today - (back - 1) * _DAY
        if found := _AGO.fullmatch(said):
            count, unit = int(found[1] or found[3] or _NUMBERS[said.split()[0]]), found[2] or found[4]
            moment = now - count * _UNITS[unit]
            return (moment, now) if unit == "hour" or found[3] else (_midnight(moment), _midnight(moment) + _DAY)
        if re.fullmatch(r"\d{4}", said):
            start = datetime(int(said), 1, 1)  # noqa: DTZ001  (local time, as notes are)
            return start, start.replace(year=start.year + 1)
        if re.fullmatch(r"\d{4}-\d{2}", said):
            start = datetime(int(said[:4]), int(said[5:]), 1)  # noqa: DTZ001
            return start, _month_after(start)
        start = datetime.fromisoformat(instant(said.upper()) or "")
        return start, start + (_DAY if len(said) == 10 else timedelta(seconds=1))
    except (ValueError, OverflowError):
        return None


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _month_after(first: datetime) -> datetime:
    return (first + 32 * _DAY).replace(day=1)


# -- the days that a question speaks of

_BEFORE, _AFTER = ("before", "until", "till"), ("after", "since")
_IN = ("in", "on", "of", "during", "from", "by", "early", "late", "last", "this", *_BEFORE, *_AFTER)
_SPOKEN_OF = re.compile(
    rf"""\b(?P<iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)\b
      | \b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{"|".join(_MONTHS)})\b
        (?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<year>(?:19|20)\d\d)\b)?
      | \b(?P<alone>(?:19|20)\d\d)\b
      | \b(?P<said>yesterday|today|(?:last|this)\ (?:week|month|year)|last\ \w+day|\d{{1,3}}\ (?:day|week|month|year)s?\ ago
        |an?\ (?:day|week|month|year)\ ago|(?:last|past)\ \d{{1,3}}\ (?:day|week|month|year)s)\b""",
    re.VERBOSE,
)
_LENGTH = re.compile(r"\b(?:days?|weeks?|weekend|months?|years?|night|morning|evening)$")


@dataclass(frozen=True, slots=True)
class Days:
    """ISO days from `since` to before `until`, "" where it is open; with `month` and `day`, those of any year."""

    since: str = ""
    until: str = ""
    month: int = 0
    day: int = 0

    def holds(self, day: str) -> bool:
        if (self.month and int(day[5:7]) != self.month) or (self.day and int(day[8:10]) != self.day):
            return False
        return (not self.since or self.since <= day) and (not self.until or day < self.until)


def spans_in(text: str, now: datetime) -> list[Days]:
    """The days a text speaks of, in its order."""
    lowered = " ".join(text.casefold().split())
    found = (_days(term, lowered[: term.start()].rstrip(), now) for term in _SPOKEN_OF.finditer(lowered))
    return [days for days in found if days is not None]


def is_of(row: Row, spans: list[Days]) -> bool:
    """Whether a note is of some days: by the day in its name or title; without one, by when it was made and changed."""
    named = date_in(base_name(row.path)) or day_in(row.title)
    days = (named,) if named else (row.created[:10], row.modified[:10])
    return any(span.holds(day) for span in spans for day in days if day)


def day_in(title: str) -> str:
    """The day that a title says in full, `8 May, 2023` or `2023-05-08`, as an ISO day; "" when there is none."""
    for span in spans_in(title, datetime(2000, 1, 1)) if any(map(str.isdigit, title)) else []:  # noqa: DTZ001
        if span.since and span.until and date.fromisoformat(span.until) - date.fromisoformat(span.since) == _DAY:
            return span.since
    return ""


def _days(term: re.Match[str], before: str, now: datetime) -> Days | None:
    word, said = before.rpartition(" ")[2], term["iso"] or term["said"] or term["alone"]
    month, day = 0, int(term["day"] or term["day_after"] or 0)
    if term["year"]:
        said = f"{term['year']}-{_MONTHS.index(term['month']) + 1:02d}" + (f"-{day:02d}" if day else "")
    elif term["month"]:
        month = _MONTHS.index(term["month"]) + 1
        if day > 31 or (not day and term["month"] in ("march", "may") and word not in _IN):
            return None
    elif term["alone"] and word not in _IN:
        return None  # a number
    if month:  # the latest such month that has begun
        whole = Days(month=month, day=day)
        since = date(now.year - (month > now.month), month, min(day, 28) or 1).isoformat()
    elif (span := _span_said(said, now)) is not None:
        since = span[0].date().isoformat()
        whole = Days(since, ((span[1] - datetime.resolution).date() + _DAY).isoformat())
    else:
        return None  # the 31st of June
    if word not in (*_BEFORE, *_AFTER):
        return whole
    if _LENGTH.search(before.rpartition(" ")[0]):
        return None  # "two weeks before 11 August" is about that time, and not about all that was before
    return Days(until=since) if word in _BEFORE else Days(since=since)
