"""Days of the calendar, such as the next 29 February and Easter Sunday. Pure."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from typing import Final

_SUNDAY: Final = 6
_DAYS_PER_WEEK: Final = 7
_MONTHS_PER_YEAR: Final = 12
_YEARS_OF_MOON: Final = 19  # after which the moon is full on the same days again
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
    last_year = today.year + _MAX_YEARS_AHEAD
    for year in range(today.year, last_year + 1):
        next_day = day_of_date(year, month, day)
        if next_day is not None and next_day >= today:
            return next_day
    return None


def next_day_of_month(today: date, day: int) -> date | None:
    """Return the next day with a number in its month, today included; None if no month has it."""
    year = today.year
    month = today.month
    for _ in range(_MAX_MONTHS_AHEAD + 1):
        next_day = day_of_date(year, month, day)
        if next_day is not None and next_day >= today:
            return next_day

        month += 1
        if month > _MONTHS_PER_YEAR:
            year += 1
            month = 1
    return None


def next_weekday(today: date, weekday: int) -> date:
    """Return the next day of a weekday after today. Monday is 0."""
    tomorrow = today + timedelta(days=1)
    return _first_weekday_from(tomorrow, weekday)


def _first_weekday_from(day: date, weekday: int) -> date:
    """Return the first day of a weekday that is not before a day."""
    days_ahead = (weekday - day.weekday()) % _DAYS_PER_WEEK
    return day + timedelta(days=days_ahead)


def sunday_of_week(today: date) -> date:
    """Return the Sunday with which the week of a day ends."""
    return _first_weekday_from(today, _SUNDAY)


def last_day_of_month(year: int, month: int) -> date:
    """Return the last day of a month."""
    _, day_count = monthrange(year, month)
    return date(year, month, day_count)


def last_weekday_of_month(year: int, month: int, weekday: int) -> date:
    """Return the last Monday (0) of a month, or another weekday."""
    last_day = last_day_of_month(year, month)
    last_week_begins = last_day - timedelta(days=_DAYS_PER_WEEK - 1)
    return _first_weekday_from(last_week_begins, weekday)


def weekday_of_month(year: int, month: int, weekday: int, number: int) -> date:
    """Return the first (1), second or a later Monday (0) of a month, or another weekday."""
    first_day = date(year, month, 1)
    first = _first_weekday_from(first_day, weekday)
    return first + timedelta(weeks=number - 1)


def easter_sunday(year: int) -> date:
    """Return Easter Sunday of a year, the Sunday after the first full moon of spring.

    This is the algorithm of Meeus, Jones and Butcher.
    """
    century = year // 100
    days_to_moon = _days_to_full_moon(year % _YEARS_OF_MOON, century)
    days_to_sunday = _days_to_sunday(year % 100, century, days_to_moon)

    # A full moon that would be too late counts as one of a week before.
    lateness = year % _YEARS_OF_MOON + 11 * days_to_moon + 19 * days_to_sunday
    weeks_too_late = lateness // 433

    days = days_to_moon + days_to_sunday - _DAYS_PER_WEEK * weeks_too_late
    return date(year, 3, 22) + timedelta(days=days)


def _days_to_full_moon(year_of_cycle: int, century: int) -> int:
    """Return the days from 21 March to the full moon, by a year's place in the 19 of the moon."""
    left_out_leap_days = century - century // 4
    correction_of_moon = (8 * century + 13) // 25
    days = 19 * year_of_cycle + left_out_leap_days - correction_of_moon + 15
    return days % 30


def _days_to_sunday(year_of_century: int, century: int, days_to_moon: int) -> int:
    """Return the days from the day after a full moon of spring to the next Sunday."""
    shift_of_century = 2 * (century % 4)
    shift_of_year = 2 * (year_of_century // 4) - year_of_century % 4
    days = 32 + shift_of_century + shift_of_year - days_to_moon
    return days % _DAYS_PER_WEEK
