"""The days a question speaks of are understood, and words that only look like dates are left alone."""

from __future__ import annotations

from datetime import datetime

import pytest

from simplemem.search.dates import Span, day_in, spans_in

NOW = datetime(2026, 11, 18, 15, 30)  # noqa: DTZ001  (a Wednesday)


@pytest.mark.parametrize(
    ("question", "since", "until"),
    [
        ("what did we decide in March 2024?", "2024-03-01", "2024-04-01"),
        ("who came on 13 October, 2023", "2023-10-13", "2023-10-14"),
        ("who came on October 13th, 2023", "2023-10-13", "2023-10-14"),
        ("notes of 2024-03-12", "2024-03-12", "2024-03-13"),
        ("notes of 2024-12", "2024-12-01", "2025-01-01"),
        ("how often in 2023?", "2023-01-01", "2024-01-01"),
        ("what did I write last week", "2026-11-09", "2026-11-16"),
        ("what happened yesterday?", "2026-11-17", "2026-11-18"),
        ("what happened 3 days ago?", "2026-11-15", "2026-11-16"),
        ("what broke last Friday", "2026-11-13", "2026-11-14"),
        ("the past 2 weeks", "2026-11-04", "2026-11-19"),
        ("everything before March 2024", "", "2024-03-01"),
        ("everything since 5 May 2024", "2024-05-05", ""),
        ("what changed after June?", "2026-06-01", ""),
        ("what was there before December?", "", "2025-12-01"),
    ],
)
def test_days_are_understood(question: str, since: str, until: str) -> None:
    assert spans_in(question, NOW) == [Span(since, until)]


def test_a_month_without_a_year_is_that_of_any_year() -> None:
    (june,) = spans_in("Who went camping in June?", NOW)
    assert [june.holds(day) for day in ("2019-06-01", "2026-06-30", "2026-07-01")] == [True, True, False]
    (third,) = spans_in("who came on 3 June", NOW)
    assert [third.holds(day) for day in ("2019-06-03", "2026-06-30")] == [True, False]


@pytest.mark.parametrize(
    "question",
    [
        "may we march on?",
        "How many of the 2000 seats",
        "the summer of 69",
        "two weeks before 11 August 2023",
        "31 June 2024",
        "2024-13-45",
        "what does last mean",
        "",
    ],
)
def test_what_is_no_date_is_left_alone(question: str) -> None:
    days = ["2023-08-01", "2024-06-30", "2000-05-05", "2026-11-18"]
    assert not any(span.holds(day) for span in spans_in(question, NOW) for day in days)


def test_a_title_is_of_a_day_when_it_says_it_in_full() -> None:
    assert day_in("c00-s01 (1:56 pm on 8 May, 2023)") == "2023-05-08"
    assert day_in("2023-05-08") == "2023-05-08"
    assert [day_in(title) for title in ("May 2023", "8 May", "Launch")] == ["", "", ""]
