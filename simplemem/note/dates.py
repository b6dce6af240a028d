"""The clock, moments as notes and logs write them, and dates in words such as "last week". Pure.

A date given as text, such as the limit of a filter, is a whole phrase. In a title, a date stands
between other words; search/times.py reads the dates of queries.
"""

from __future__ import annotations

import os
import re
from datetime import MAXYEAR, UTC, date, datetime, time, timedelta
from functools import cache
from typing import Final, NamedTuple

from simplemem.errors import Invalid

# -- moments

_DATE: Final = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")
_MAX_TIME_CHARACTERS: Final = 40  # longer texts are no times
_MIN_YEAR: Final = 1000  # years of fewer digits would not sort as texts


def now() -> datetime:
    """Return the current time in UTC, or the time that `SIMPLEMEM_NOW` names.

    The variable, which tests and demos set, is read once. Raises Invalid if it is not a time.
    """
    return _fixed() or datetime.now(UTC)


def local_now() -> datetime:
    """Return the current time in the local time zone without an offset, as notes have it.

    Raises Invalid if `SIMPLEMEM_NOW` is not a time.
    """
    return now().astimezone().replace(tzinfo=None)


@cache
def _fixed() -> datetime | None:
    """Return the time that `SIMPLEMEM_NOW` names, which is read once; None if it is not set.

    Raises Invalid if it is not a time.
    """
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
    """Return a moment in UTC as frontmatter and answers have it: `2026-01-24T09:00:00Z`.

    A moment without an offset is taken as local time. Fractions of a second are cut off.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_log_time(moment: datetime) -> str:
    """Return a moment in UTC as the history has it: `2026-01-24T09:00:00.000Z`.

    A moment without an offset is taken as local time.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_local_time(moment: datetime) -> str:
    """Format a moment that is in local time already, as notes have it: `2026-01-24T09:00:00`.

    Converts nothing: an offset is left out, and so are fractions of a second.
    """
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def parse_moment(text: str) -> datetime | None:
    """Return the moment that a text in ISO 8601 names, in UTC; None if it names none.

    A text without an offset is in local time; one without a time is the beginning of that day.
    Never raises.
    """
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def sortable_time(text: str | None) -> str | None:
    """Return a date or time of a note in the form that sorts: `2026-01-24T12:00:00`.

    It is in local time, to the second; a date is the beginning of its day. Returns None for None,
    for a text that is no ISO date or time, for one of more than 40 characters, and for years before
    1000, which would not sort. Never raises.
    """
    if not text or len(text) > _MAX_TIME_CHARACTERS:
        return None

    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone().replace(tzinfo=None)
    except (OverflowError, OSError, ValueError):
        return None

    if moment.year < _MIN_YEAR:
        return None
    return moment.isoformat(timespec="seconds")


def file_time(mtime_ns: int) -> str:
    """Return the time of the last change of a file, in the form of `sortable_time`.

    `mtime_ns` counts nanoseconds since 1970. The time is local. One that the calendar does not have
    becomes the beginning of 1970.
    """
    try:
        moment = datetime.fromtimestamp(mtime_ns / 1e9)  # noqa: DTZ006  (local time, as notes are)
    except (OverflowError, OSError, ValueError):
        return "1970-01-01T00:00:00"
    return moment.isoformat(timespec="seconds")


def date_in_name(name: str) -> str:
    """Return the last date in a name, as `2026-01-24`; "" if there is none.

    A name may also have it as `20260124`. Digits that are no date of the calendar are skipped.
    """
    for year, month, day in reversed(_DATE.findall(name)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return ""


# -- dates in words

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_DAY = timedelta(days=1)
_LAST_MOMENT = datetime.max  # noqa: DTZ901  (local time, as notes are)
# From the first day of any month, this leads into the next one.
_MORE_THAN_A_MONTH = 32 * _DAY

_AGO = re.compile(r"(?P<count>\d{1,4}) (?P<unit>minute|hour|day|week|month|year)s? ago")
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": _DAY,
    "week": 7 * _DAY,
    "month": 30 * _DAY,
    "year": 365 * _DAY,
}
_ISO_WEEK = re.compile(r"\d{4}-?w\d\d")

# "2 hours ago" is a moment, "2 days ago" is a whole day.
_MOMENT_UNITS = ("minute", "hour")

# A day with its year: `2023-05-08`, `8 May, 2023`, `8th of May 2023` or `May 8, 2023`.
_FULL_DATE = re.compile(
    rf"""\b(?P<iso>(?:19|20)\d\d-\d\d-\d\d)\b
      | \b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{"|".join(_MONTHS)})\b
        (?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b)?,?\s+(?P<year>(?:19|20)\d\d)\b""",
    re.VERBOSE,
)


class _Period(NamedTuple):
    """A period of time: its first moment and the first moment after it; of a moment, the same."""

    start: datetime
    end: datetime


def read_when(text: str, now: datetime, *, end: bool = False) -> str:
    """Return the moment that a date given by a user means: local time, as in `sortable_time`.

    `text` is an ISO date or time, a month, a year, or words such as "last week" and "3 days ago",
    in any case of letters. A period gives its first moment; with `end`, the first moment behind it,
    or for a period that reaches the end of the calendar, 9999-12-31T23:59:59. `now` is the local
    time that the words refer to. Raises Invalid for a text that is no date, and for years before
    1000, which do not sort.
    """
    period = _period_of(" ".join(text.casefold().split()), now)
    if period is None or period.start.year < _MIN_YEAR:
        raise Invalid(
            f"{text!r} is not a valid date",
            hint='Use 2026-01-24, 2026-01, 2026-01-24T12:00, "yesterday", "last week", '
            '"3 days ago" or "10 minutes ago".',
        )

    moment = period.end if end else period.start
    return format_local_time(moment)


def _period_of(text: str, now: datetime) -> _Period | None:
    """Return the period that a text in small letters names; None if it is no date.

    Its spaces must be single. `now` is the local time that words such as "today" refer to.
    """
    named_periods = _named_periods(now)
    if text in named_periods:
        return named_periods[text]

    try:
        ago = _AGO.fullmatch(text)
        if ago is not None:
            return _period_ago(int(ago["count"]), ago["unit"], now)
        if re.fullmatch(r"\d{4}(-\d{2})?", text):
            return _year_or_month(text)
        return _day_or_second(text)
    except (ValueError, OverflowError):
        return None


def _named_periods(now: datetime) -> dict[str, _Period]:
    """Return the periods of now, today, yesterday, and this or last week, month or year.

    The keys are lower-case words, such as "last week". "now" has no length. Weeks begin on Monday.
    """
    today = datetime.combine(now, time.min)
    monday = today - today.weekday() * _DAY
    month = today.replace(day=1)
    year = today.replace(month=1, day=1)
    return {
        "now": _Period(now, now),
        "today": _Period(today, today + _DAY),
        "yesterday": _Period(today - _DAY, today),
        "this week": _Period(monday, monday + 7 * _DAY),
        "last week": _Period(monday - 7 * _DAY, monday),
        "this month": _Period(month, _next_month(month)),
        "last month": _Period((month - _DAY).replace(day=1), month),
        "this year": _Period(year, _next_year(year)),
        "last year": _Period(year.replace(year=year.year - 1), year),
    }


def _next_month(month: datetime) -> datetime:
    """Return the first day of the month after the one whose first day is given.

    After the last month of the calendar, December 9999, this is the end of that month.
    """
    if month.year == MAXYEAR and month.month == len(_MONTHS):
        return _LAST_MOMENT
    return (month + _MORE_THAN_A_MONTH).replace(day=1)


def _next_year(year: datetime) -> datetime:
    """Return the first day of the year after the one whose first day is given.

    After the year 9999, the last of the calendar, this is the end of that year.
    """
    december = year.replace(month=len(_MONTHS))
    return _next_month(december)


def _period_ago(count: int, unit: str, now: datetime) -> _Period:
    """Return the day that was so many units ago, or the moment for hours and minutes.

    A month counts as 30 days, a year as 365. Raises OverflowError for a moment before the year 1.
    """
    moment = now - count * _UNITS[unit]
    if unit in _MOMENT_UNITS:
        return _Period(moment, moment)

    day = datetime.combine(moment, time.min)
    return _Period(day, day + _DAY)


def _year_or_month(text: str) -> _Period:
    """Return the year or month of `2026` or `2026-01`.

    Raises ValueError if there is no such year or month.
    """
    year, _, month = text.partition("-")
    if month:
        first_day = datetime(int(year), int(month), 1)  # noqa: DTZ001  (local time, as notes are)
        return _Period(first_day, _next_month(first_day))

    first_day = datetime(int(year), 1, 1)  # noqa: DTZ001
    return _Period(first_day, _next_year(first_day))


def _day_or_second(text: str) -> _Period:
    """Return the day or week of an ISO date, or the second of one with a time.

    `2026-01-24`, `20260124` and `2026-w04-6` are days, `2026-w04` is a week. Raises ValueError for
    any other text, and for years before 1000.
    """
    local_time = sortable_time(text.upper())  # ISO 8601 has its T and Z as capitals
    if local_time is None:
        raise ValueError(text)

    start = datetime.fromisoformat(local_time)
    length = timedelta(seconds=1)
    if _ISO_WEEK.fullmatch(text):
        length = 7 * _DAY
    elif _has_no_time(text):
        length = _DAY
    is_last = start > _LAST_MOMENT - length
    end = _LAST_MOMENT if is_last else start + length
    return _Period(start, end)


def _has_no_time(text: str) -> bool:
    """Return whether a text is an ISO date without a time."""
    try:
        date.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


def full_day_in(title: str) -> str:
    """Return the first full day in a title as an ISO day; "" if there is none.

    A full day has day, month and year, and is in the calendar: `8 May, 2023` or `2023-05-08`. Words
    such as "yesterday" do not count.
    """
    if not any(map(str.isdigit, title)):
        return ""

    for match in _FULL_DATE.finditer(title.casefold()):
        try:
            return date.fromisoformat(_iso_day(match)).isoformat()
        except ValueError:
            continue  # the calendar does not have it
    return ""


def _iso_day(match: re.Match[str]) -> str:
    """Return a match of `_FULL_DATE` in the form of an ISO day, which may not exist."""
    if match["iso"]:
        return match["iso"]
    month = _MONTHS.index(match["month"]) + 1
    day = match["day"] or match["day_after"] or "0"
    return f"{match['year']}-{month:02d}-{int(day):02d}"
