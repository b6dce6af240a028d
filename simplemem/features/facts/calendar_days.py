"""Days of the calendar, such as the next 29 February and Easter Sunday. Pure."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from typing import Final

_SUNDAY: Final = 6
_MAX_YEARS_AHEAD: Final = 8  # in March 2096, the next 29 February is in 2104
_MAX_MONTHS_AHEAD: Final = 2  # on 31 January, the next 30th is in March


def day_of_date(year: int, month: int, day: int) -> date | None:
    """Return the day of a date, None if there is no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def next_day_of_date(today: date, month: int, day: int) -> date | None:
    """Return the next day of a date, today included; None if no year has such a day."""
    for year in range(today.year, today.year + _MAX_YEARS_AHEAD + 1):
        next_day = day_of_date(year, month, day)
        if next_day is not None and next_day >= today:
            return next_day
    return None


def next_day_of_month(today: date, day: int) -> date | None:
    """Return the next day with a number in its month, today included; None if no month has it."""
    for months_ahead in range(_MAX_MONTHS_AHEAD + 1):
        month_index = today.month - 1 + months_ahead
        year = today.year + month_index // 12
        month = month_index % 12 + 1
        next_day = day_of_date(year, month, day)
        if next_day is not None and next_day >= today:
            return next_day
    return None


def next_weekday(today: date, weekday: int) -> date:
    """Return the next day of a weekday after today. Monday is 0."""
    tomorrow = today + timedelta(days=1)
    return tomorrow + timedelta(days=(weekday - tomorrow.weekday()) % 7)


def sunday_of_week(today: date) -> date:
    """Return the Sunday with which the week of a day ends."""
    return today + timedelta(days=_SUNDAY - today.weekday())


def last_day_of_month(year: int, month: int) -> date:
    """Return the last day of a month."""
    _, day_count = monthrange(year, month)
    return date(year, month, day_count)


def last_weekday_of_month(year: int, month: int, weekday: int) -> date:
    """Return the last Monday (0) of a month, or another weekday."""
    last_day = last_day_of_month(year, month)
    return last_day - timedelta(days=(last_day.weekday() - weekday) % 7)


def weekday_of_month(year: int, month: int, weekday: int, number: int) -> date:
    """Return the first (1), second or a later Monday (0) of a month, or another weekday."""
    first_day = date(year, month, 1)
    first = first_day + timedelta(days=(weekday - first_day.weekday()) % 7)
    return first + timedelta(weeks=number - 1)


def easter_sunday(year: int) -> date:
    """Return Easter Sunday of a year, by the algorithm of Meeus, Jones and Butcher.

    The short names are those of the published algorithm.
    """
    a = year % 19
    century, rest = divmod(year, 100)
    d, e = divmod(century, 4)
    g = (8 * century + 13) // 25
    h = (19 * a + century - d - g + 15) % 30
    i, k = divmod(rest, 4)
    weekday = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 19 * weekday) // 433
    month = (h + weekday - 7 * m + 90) // 25
    day = (h + weekday - 7 * m + 33 * month + 19) % 32
    return date(year, month, day)
