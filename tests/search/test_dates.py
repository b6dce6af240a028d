"""Dates as people say them: for a filter, in titles, and in a question, whose days come first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from simplemem.errors import Invalid
from simplemem.note.dates import full_day_in, read_when
from simplemem.store import EnhancedStore

Write = Callable[..., Path]

NOW = datetime(2026, 11, 18, 15, 30)  # noqa: DTZ001  (a Wednesday; local, as notes are)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
        ("2026-01", "2026-01-01T00:00:00", "2026-02-01T00:00:00"),
        ("2026-12", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
        ("2026-01-24", "2026-01-24T00:00:00", "2026-01-25T00:00:00"),
        ("20260124", "2026-01-24T00:00:00", "2026-01-25T00:00:00"),
        ("2026-W04-6", "2026-01-24T00:00:00", "2026-01-25T00:00:00"),
        ("2026-w04", "2026-01-19T00:00:00", "2026-01-26T00:00:00"),
        ("2026W04", "2026-01-19T00:00:00", "2026-01-26T00:00:00"),
        ("20260124T1000", "2026-01-24T10:00:00", "2026-01-24T10:00:01"),
        ("2026-01-24T12:00:00", "2026-01-24T12:00:00", "2026-01-24T12:00:01"),
        ("2026-01-24 12:00", "2026-01-24T12:00:00", "2026-01-24T12:00:01"),
        ("today", "2026-11-18T00:00:00", "2026-11-19T00:00:00"),
        ("Yesterday", "2026-11-17T00:00:00", "2026-11-18T00:00:00"),
        ("last week", "2026-11-09T00:00:00", "2026-11-16T00:00:00"),
        ("this month", "2026-11-01T00:00:00", "2026-12-01T00:00:00"),
        ("last month", "2026-10-01T00:00:00", "2026-11-01T00:00:00"),
        ("last year", "2025-01-01T00:00:00", "2026-01-01T00:00:00"),
        ("3 days ago", "2026-11-15T00:00:00", "2026-11-16T00:00:00"),
        ("2 hours ago", "2026-11-18T13:30:00", "2026-11-18T13:30:00"),
        ("10 minutes ago", "2026-11-18T15:20:00", "2026-11-18T15:20:00"),
        ("1000", "1000-01-01T00:00:00", "1001-01-01T00:00:00"),
        ("9998-12", "9998-12-01T00:00:00", "9999-01-01T00:00:00"),
        ("9999", "9999-01-01T00:00:00", "9999-12-31T23:59:59"),
        ("9999-12", "9999-12-01T00:00:00", "9999-12-31T23:59:59"),
        ("9999-12-31", "9999-12-31T00:00:00", "9999-12-31T23:59:59"),
        ("9999-12-31T23:59:59", "9999-12-31T23:59:59", "9999-12-31T23:59:59"),
    ],
)
def test_a_date_means_a_span(text: str, start: str, end: str) -> None:
    assert read_when(text, NOW) == start
    assert read_when(text, NOW, end=True) == end


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2026-13",
        "2026-02-30",
        "99999999999 days ago",
        "9999 years ago",
        "0000",
        "0999",
        "0999-12",
        "0999-12-31",
        "1500 years ago",
    ],
)
def test_what_is_no_date_is_said_to_be_none(text: str) -> None:
    with pytest.raises(Invalid):
        read_when(text, NOW)


def test_a_title_is_of_a_day_when_it_says_it_in_full() -> None:
    assert full_day_in("c00-s01 (1:56 pm on 8 May, 2023)") == "2023-05-08"
    assert full_day_in("2023-05-08") == "2023-05-08"
    assert [full_day_in(title) for title in ("May 2023", "8 May", "Launch")] == ["", "", ""]
    assert full_day_in("What 2 people said yesterday") == "", "no day is known for such words"
    assert full_day_in("99 May, 2023") == full_day_in("2023-02-30") == "", "no calendar has it"
    assert full_day_in("30 February 2023, or 1 March 2023") == "2023-03-01"


def names(store: EnhancedStore, question: str, **asked: object) -> list[str]:
    return [hit.name for hit in store.search(question, **asked).hits]  # type: ignore[arg-type]


def test_a_day_that_the_question_names_comes_first(store: EnhancedStore, write: Write) -> None:
    for day in ("2024-02-10", "2024-03-12", "2024-04-02", "2025-03-05"):
        write(f"daily/{day}.md", "We met the harbour master about the crane.\n")
    store.sync()
    assert names(store, "what did the harbour master say")[0] == "daily/2024-02-10"
    assert names(store, "what did the harbour master say in March 2024")[0] == "daily/2024-03-12"
    assert names(store, "what did the harbour master say in 2025")[0] == "daily/2025-03-05"
    assert set(names(store, "what did the harbour master say in March")[:2]) == {
        "daily/2024-03-12",
        "daily/2025-03-05",
    }
    assert (
        len(names(store, "what did the harbour master say in March 2024")) == 4
    )  # a hint is no filter
    found = store.search("what did the harbour master say in March 2024", explain=True)
    assert [hit.why is not None and hit.why.get("dated") for hit in found.hits] == [
        1.0,
        None,
        None,
        None,
    ]
