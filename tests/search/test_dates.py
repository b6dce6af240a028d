"""Dates as people say them."""

from __future__ import annotations

from datetime import datetime

import pytest

from simplemem.errors import Invalid
from simplemem.search.dates import read_when

NOW = datetime(2026, 11, 18, 15, 30)  # noqa: DTZ001  (a Wednesday; local, as notes are)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("2026-01", "2026-01-01T00:00:00", "2026-02-01T00:00:00"),
        ("2026-12", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
        ("2026-01-24", "2026-01-24T00:00:00", "2026-01-25T00:00:00"),
        ("2026-01-24T12:00:00", "2026-01-24T12:00:00", "2026-01-24T12:00:01"),
        ("2026-01-24 12:00", "2026-01-24T12:00:00", "2026-01-24T12:00:01"),
        ("today", "2026-11-18T00:00:00", "2026-11-19T00:00:00"),
        ("Yesterday", "2026-11-17T00:00:00", "2026-11-18T00:00:00"),
        ("last week", "2026-11-09T00:00:00", "2026-11-16T00:00:00"),
        ("this month", "2026-11-01T00:00:00", "2026-12-01T00:00:00"),
        ("last month", "2026-10-01T00:00:00", "2026-11-01T00:00:00"),
        ("last year", "2025-01-01T00:00:00", "2026-01-01T00:00:00"),
        ("3 days ago", "2026-11-15T00:00:00", "2026-11-16T00:00:00"),
        ("a week ago", "2026-11-11T00:00:00", "2026-11-12T00:00:00"),
        ("2 hours ago", "2026-11-18T13:30:00", "2026-11-18T15:30:00"),
        ("last 7 days", "2026-11-11T15:30:00", "2026-11-18T15:30:00"),
        ("monday", "2026-11-16T00:00:00", "2026-11-17T00:00:00"),
        ("last wednesday", "2026-11-11T00:00:00", "2026-11-12T00:00:00"),
    ],
)
def test_a_date_means_a_span(text: str, start: str, end: str) -> None:
    assert read_when(text, NOW) == start
    assert read_when(text, NOW, end=True) == end


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13", "2026-02-30", "99999999999 days ago", "9999 years ago", "0000"]
)
def test_what_is_no_date_is_said_to_be_none(text: str) -> None:
    with pytest.raises(Invalid):
        read_when(text, NOW)
