"""The days that a question speaks of: "in March 2024", "before June", "last week", 2024-03-12. Pure, given now.

They are hints and no filter (priors.py): who means only these days says `since` and `until`. A month without a year is that
month of any year. Only what is unmistakably a date is taken for one: *may* and *march* are words as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from simplemem.errors import Invalid
from simplemem.search.dates import read_when

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_ALSO_WORDS = ("march", "may")
_BEFORE, _AFTER = ("before", "until", "till"), ("after", "since")
_IN = ("in", "on", "of", "during", "from", "by", "early", "late", "last", "this", *_BEFORE, *_AFTER)
_ANY_MONTH = "|".join(MONTHS)
_WRITTEN = re.compile(
    rf"""\b(?P<iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)\b
      | \b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{_ANY_MONTH})\b
        (?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<year>(?:19|20)\d\d)\b)?
      | \b(?P<alone>(?:19|20)\d\d)\b
      | \b(?P<said>yesterday|today|(?:last|this)\ (?:week|month|year)|last\ \w+day|\d{{1,3}}\ (?:day|week|month|year)s?\ ago
        |an?\ (?:day|week|month|year)\ ago|(?:last|past)\ \d{{1,3}}\ (?:day|week|month|year)s)\b""",
    re.VERBOSE,
)
_LENGTH = re.compile(r"\b(?:days?|weeks?|weekend|months?|years?|night|morning|evening)$")


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `since` to before `until`, as ISO days and "" where it is open; with `month`, of that month of any year,
    and with `day`, that day of it."""

    since: str = ""
    until: str = ""
    month: int = 0
    day: int = 0

    def holds(self, day: str) -> bool:
        if self.month and int(day[5:7]) != self.month:
            return False
        if self.day and int(day[8:10]) != self.day:
            return False
        return (not self.since or self.since <= day) and (not self.until or day < self.until)


def spans_in(text: str, now: datetime) -> list[Span]:
    """The days a text speaks of, in its order."""
    lowered = " ".join(text.casefold().split())
    found = (_span(term, lowered[: term.start()].rstrip(), now) for term in _WRITTEN.finditer(lowered))
    return [span for span in found if span is not None]


def day_in(title: str) -> str:
    """The day that a title says in full, `8 May, 2023` or `2023-05-08`, as an ISO day; "" when there is none."""
    written = spans_in(title, datetime(2000, 1, 1)) if any(map(str.isdigit, title)) else []  # noqa: DTZ001
    return next((span.since for span in written if _days(span) == 1), "")


def _span(term: re.Match[str], before: str, now: datetime) -> Span | None:
    word = before.rpartition(" ")[2]
    whole = _whole(term, word, now)
    if whole is None or not (word in _BEFORE or word in _AFTER):
        return whole
    if _LENGTH.search(before.rpartition(" ")[0]):
        return None  # "two weeks before 11 August" is about that time, and not about all that was before
    if whole.month:
        whole = _latest(whole, now)
    return Span(until=whole.since) if word in _BEFORE else Span(since=whole.since)


def _whole(term: re.Match[str], word: str, now: datetime) -> Span | None:
    """The days themselves, whatever stands before them."""
    if term["month"]:
        month, day = MONTHS.index(term["month"]) + 1, int(term["day"] or term["day_after"] or 0)
        if term["year"]:
            return _of(f"{term['year']}-{month:02d}" + (f"-{day:02d}" if day else ""), now)
        if not day and term["month"] in _ALSO_WORDS and word not in _IN:
            return None
        return Span(month=month, day=day) if day <= 31 else None
    if term["alone"] and word not in _IN:
        return None  # a number
    return _of(term["iso"] or term["alone"] or term["said"], now)


def _of(said: str, now: datetime) -> Span | None:
    try:
        return Span(read_when(said, now)[:10], _next_day(read_when(said, now, end=True)))
    except (Invalid, ValueError, OverflowError):
        return None  # the 31st of June


def _next_day(end: str) -> str:
    """The first day behind a moment that ends a span: midnight itself is that day already."""
    moment = datetime.fromisoformat(end)
    return (moment + timedelta(days=0 if moment.time().isoformat() == "00:00:00" else 1)).date().isoformat()


def _latest(span: Span, now: datetime) -> Span:
    """The latest such month that has begun."""
    year = now.year if span.month <= now.month else now.year - 1
    return Span(since=date(year, span.month, min(span.day, 28) or 1).isoformat())


def _days(span: Span) -> int:
    if span.month or not (span.since and span.until):
        return 0
    return (date.fromisoformat(span.until) - date.fromisoformat(span.since)).days


def any_holds(spans: Sequence[Span], days: Sequence[str]) -> bool:
    return any(span.holds(day) for span in spans for day in days if day)
