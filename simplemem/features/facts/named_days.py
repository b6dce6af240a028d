"""Read the day that a text names: "Friday", "29 February", "3/4", "Easter Monday", "tomorrow".

A name stands for the next such day, seen from the day on which it was said. Each form of a name has
a pattern and a function that reads its match. `day_language.py` has the patterns. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, NamedTuple

from simplemem.features.facts.calendar_days import (
    day_of_date,
    easter_sunday,
    last_day_of_month,
    last_weekday_of_month,
    next_day_of_date,
    next_day_of_month,
    next_weekday,
    sunday_of_week,
    weekday_of_month,
)
from simplemem.features.facts.day_language import DayLanguage

_ISO_DATE: Final = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b")
_DATE_WITH_DOTS: Final = re.compile(
    r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})\. ?(?P<year>\d{4}|\d\d)?(?!\d)"
)
# Which of the two numbers is the month depends on the language.
_DATE_WITH_SLASHES: Final = re.compile(
    r"(?P<first>\d{1,2})/(?P<second>\d{1,2})(?:/(?P<year>\d{4}|\d\d))?(?![\d/])"
)
_CENTURY: Final = 2000  # of a year of two digits


class NamedDay(NamedTuple):
    """A day that a text names, where its name ends, and whether it is only a weekday."""

    end: int
    day: date | None  # None for a name of no day of the calendar, such as "February 31"
    is_weekday: bool


@dataclass(frozen=True)
class _DayMatch:
    """A match of a form of a name, for the function that reads its day."""

    language: DayLanguage
    groups: Mapping[str, str]  # the named groups of the match that have a text
    today: date  # the day on which the name was said


def read_day_at(language: DayLanguage, plain: str, start: int, today: date) -> NamedDay | None:
    """Return the day that a text names at an offset, None if no name begins there.

    The first form that fits decides: "February 31" is no day, and not the end of February. `plain`
    is the text in small letters, and `today` the day on which it was said.
    """
    article = language.patterns["article"].match(plain, start)
    start_of_number = start if article is None else article.end()
    for pattern, read_day in _FORMS_IN_NUMBERS:
        match = pattern.match(plain, start_of_number)
        if match is not None:
            day = _day_of(language, match, read_day, today)
            return NamedDay(match.end(), day, is_weekday=False)

    for name, read_day in _FORMS_IN_WORDS.items():
        match = language.patterns[name].match(plain, start)
        if match is not None:
            day = _day_of(language, match, read_day, today)
            return NamedDay(match.end(), day, is_weekday=name == "weekday")
    return None


def _day_of(
    language: DayLanguage, match: re.Match[str], read_day: _DayReader, today: date
) -> date | None:
    """Return the day that the match of a form names, None if there is no such day."""
    groups = {name: text for name, text in match.groupdict().items() if text}
    return read_day(_DayMatch(language, groups, today))


# One function per form of a name


def _read_date(match: _DayMatch) -> date | None:
    """Return the day of a date whose month is a name or a number."""
    month_text = match.groups["month"]
    if month_text.isdigit():
        month = int(month_text)
    else:
        month = match.language.month_number(month_text)
    return _day_in_named_year(match, month, int(match.groups["day"]))


def _read_date_with_slashes(match: _DayMatch) -> date | None:
    """Return the day of a date in the language's order of day and month, or else in the other."""
    first = int(match.groups["first"])
    second = int(match.groups["second"])
    by_month_first = _day_in_named_year(match, month=first, day=second)
    by_day_first = _day_in_named_year(match, month=second, day=first)
    if match.language.is_month_first:
        return by_month_first or by_day_first
    return by_day_first or by_month_first


def _day_in_named_year(match: _DayMatch, month: int, day: int) -> date | None:
    """Return a date in the year that a match names; without one, the next such day."""
    year_text = match.groups.get("year")
    if year_text is None:
        return next_day_of_date(match.today, month, day)

    year = int(year_text)
    if year < 100:
        year += _CENTURY
    return day_of_date(year, month, day)


def _read_number_of_day(match: _DayMatch) -> date | None:
    """Return the next day with a number in its month: "the 3rd"."""
    return next_day_of_month(match.today, int(match.groups["day"]))


def _read_month(match: _DayMatch) -> date:
    """Return the last day of a month: of the year that is named, else of the next such month."""
    month = match.language.month_number(match.groups["month"])
    year = int(match.groups.get("year", "0"))
    if year == 0:  # There is no such year.
        is_over_this_year = month < match.today.month
        year = match.today.year + 1 if is_over_this_year else match.today.year
    return last_day_of_month(year, month)


def _read_weekday(match: _DayMatch) -> date:
    """Return the next day of a weekday after today."""
    weekday = match.language.weekday_number(match.groups["weekday"])
    return next_weekday(match.today, weekday)


def _read_end_of_week(match: _DayMatch) -> date:
    """Return the Sunday of this week."""
    return sunday_of_week(match.today)


def _read_end_of_month(match: _DayMatch) -> date:
    """Return the last day of this month."""
    return last_day_of_month(match.today.year, match.today.month)


def _read_feast(match: _DayMatch) -> date:
    """Return the next day of a feast that moves with Easter."""
    days_from_easter = timedelta(days=match.language.feasts[match.groups["feast"]])
    day = easter_sunday(match.today.year) + days_from_easter
    if day >= match.today:
        return day
    return easter_sunday(match.today.year + 1) + days_from_easter


def _read_holiday(match: _DayMatch) -> date:
    """Return the next day of a holiday whose day is fixed by the calendar."""
    rule = match.language.holidays[match.groups["holiday"]]
    day = _holiday_in(match.language, rule, match.today.year)
    if day >= match.today:
        return day
    return _holiday_in(match.language, rule, match.today.year + 1)


def _holiday_in(language: DayLanguage, rule: str, year: int) -> date:
    """Return the day of a holiday in a year.

    The rule is a month and a day, as in "12-25", or a month, a weekday and which one of the month,
    as in "11 thursday 4" or "05 monday last".
    """
    month_text, separator, day_text = rule.partition("-")
    if separator:
        return date(year, int(month_text), int(day_text))

    month_text, weekday_name, which = rule.split()
    month = int(month_text)
    weekday = language.weekday_number(weekday_name)
    if which == "last":
        return last_weekday_of_month(year, month, weekday)
    return weekday_of_month(year, month, weekday, int(which))


def _read_relative_day(match: _DayMatch) -> date:
    """Return today or a day after it that has a name, such as "tomorrow"."""
    return match.today + timedelta(days=match.language.days[match.groups["relative"]])


_DayReader = Callable[[_DayMatch], date | None]

_FORMS_IN_NUMBERS: Final[tuple[tuple[re.Pattern[str], _DayReader], ...]] = (
    (_ISO_DATE, _read_date),
    (_DATE_WITH_SLASHES, _read_date_with_slashes),
    (_DATE_WITH_DOTS, _read_date),
)
"""The forms that are the same in all languages. They are tried first."""

_FORMS_IN_WORDS: Final[Mapping[str, _DayReader]] = {
    "day_month": _read_date,
    "month_day": _read_date,
    "feast": _read_feast,
    "holiday": _read_holiday,
    "weekday_date": _read_number_of_day,
    "week_end": _read_end_of_week,
    "month_end": _read_end_of_month,
    "month": _read_month,
    "weekday": _read_weekday,
    "relative": _read_relative_day,
    "ordinal": _read_number_of_day,
}
"""The forms of a language, by the names of their patterns, in the order in which they are tried."""
