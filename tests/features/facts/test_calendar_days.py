"""Days of the calendar: the next day of a date or a number, weekdays of a month, Easter."""

from __future__ import annotations

from datetime import date

import pytest

from simplemem.features.facts.calendar_days import (
    easter_sunday,
    last_weekday_of_month,
    next_day_of_date,
    next_day_of_month,
    next_weekday,
    weekday_of_month,
)


@pytest.mark.parametrize(
    ("today", "next_day"),
    [
        (date(2026, 11, 22), date(2028, 2, 29)),
        (date(2028, 2, 29), date(2028, 2, 29)),
        (date(2028, 3, 1), date(2032, 2, 29)),
        (date(2096, 3, 1), date(2104, 2, 29)),  # 2100 is no leap year
    ],
)
def test_the_next_29_february_may_be_years_ahead(today: date, next_day: date) -> None:
    assert next_day_of_date(today, 2, 29) == next_day


def test_a_date_that_no_year_has_is_no_day() -> None:
    assert next_day_of_date(date(2026, 11, 22), 2, 30) is None
    assert next_day_of_date(date(2026, 11, 22), 13, 1) is None


def test_a_number_that_the_next_month_lacks_is_in_the_month_after_it() -> None:
    assert next_day_of_month(date(2027, 1, 31), 30) == date(2027, 3, 30)
    assert next_day_of_month(date(2027, 1, 31), 31) == date(2027, 1, 31)
    assert next_day_of_month(date(2027, 1, 31), 32) is None


def test_a_weekday_is_never_today() -> None:
    sunday = date(2026, 11, 22)
    assert next_weekday(sunday, 6) == date(2026, 11, 29)
    assert next_weekday(sunday, 0) == date(2026, 11, 23)


def test_weekdays_of_a_month() -> None:
    assert weekday_of_month(2026, 11, 3, 4) == date(2026, 11, 26)  # Thanksgiving
    assert last_weekday_of_month(2026, 5, 0) == date(2026, 5, 25)  # Memorial Day


@pytest.mark.parametrize("day", [date(2024, 3, 31), date(2026, 4, 5), date(2038, 4, 25)])
def test_easter_sunday(day: date) -> None:
    assert easter_sunday(day.year) == day
