"""Read by rules of which memory type a statement is, and until when it is valid. Pure."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.features.facts.language import (
    Language,
    in_small_letters,
    language_of,
    plain_text,
)
from simplemem.features.facts.reading import read_statement

_REMEMBERED: Final = timedelta(days=23)  # from the day of an episode until it is forgotten
_ENDS_FILE: Final = Path(__file__).with_name("words") / "ends.toml"


class MemoryType(NamedTuple):
    """The type of a statement, and until when it is valid."""

    name: str  # "fact", "preference" or "episode"
    valid_to: datetime | None = None  # None if the statement does not say


class _EndPatterns(NamedTuple):
    """How one language says until when something is valid: by its end, or by how long it takes."""

    end: re.Pattern[str]
    duration: re.Pattern[str]


def memory_type_of(text: str, at: datetime) -> MemoryType:
    """Return the memory type of a statement that is made at a time, and its end.

    A statement is a fact unless the rules find that it is a preference, or an episode of the last
    23 days. The end of an episode is the end of its day. Nothing is raised.
    """
    plain = plain_text(text)
    language = language_of(plain)
    bound = language.patterns["bounded"].search(plain)
    if bound is not None:
        end = _day_in(language, plain[bound.end() :], at, is_ahead=True)
        if end is not None:
            return MemoryType("fact", end)

    if language.matches("liking", plain):
        return MemoryType("preference")
    if language.matches("state", plain) or not read_statement(text).is_episode:
        return MemoryType("fact")

    day = _day_in(language, plain, at, is_ahead=False)
    # What would be forgotten as soon as it is stored is stored as a fact.
    is_remembered = day is not None and at - day < _REMEMBERED
    return MemoryType("episode", day) if is_remembered else MemoryType("fact")


def states_end(text: str, *, is_ahead: bool) -> bool:
    """Return whether a text says until when something is valid.

    A duration, such as "for two weeks", counts only if the end `is_ahead` of the current time.
    """
    plain = in_small_letters(text)
    for patterns in _END_PATTERNS:
        if patterns.end.search(plain):
            return True
        if is_ahead and patterns.duration.search(plain):
            return True
    return False


def _day_in(language: Language, plain: str, at: datetime, *, is_ahead: bool) -> datetime | None:
    """Return the end of the day that a sentence names, None if it names none that exists.

    `plain` is the sentence, or its end, as `plain_text` returns it. A date without a year is the
    next one after `at` if the day `is_ahead`, else the last one before it. Words such as
    "yesterday" stand for the time `at` itself, unless the day is ahead.
    """
    match = language.patterns["date"].search(plain)
    if match is None:
        is_lately = not is_ahead and language.matches("lately", plain)
        return at if is_lately else None

    # The pattern has a group of each name per form of a date: "day", "day2", "day3".
    parts = {name.rstrip("23"): text for name, text in match.groupdict().items() if text}
    day = int(parts["day"])
    month = int(parts["month"]) if "month" in parts else language.month_number(parts["name"])
    if "year" in parts:
        return _end_of_day(int(parts["year"]), month, day)
    return _nearest_day(month, day, at, is_ahead=is_ahead)


def _nearest_day(month: int, day: int, at: datetime, *, is_ahead: bool) -> datetime | None:
    """Return the end of the next day of this date after a time, or of the last one before it.

    The next one is returned if it `is_ahead`. The last one may be a day later than the time, since
    the time zone of the user is unknown. Return None if no such day is in the year of the time or
    in the one next to it.
    """
    adjacent_year = at.year + 1 if is_ahead else at.year - 1
    for year in (at.year, adjacent_year):
        end = _end_of_day(year, month, day)
        if end is None:
            continue
        if is_ahead:
            is_match = end >= at
        else:
            is_match = end <= at + timedelta(days=1)
        if is_match:
            return end
    return None


def _end_of_day(year: int, month: int, day: int) -> datetime | None:
    """Return the end of a day, None if there is no such day."""
    try:
        return datetime(year, month, day, 23, 59, 59, tzinfo=UTC)
    except ValueError:
        return None


def _load_end_patterns() -> tuple[_EndPatterns, ...]:
    """Return the patterns of each language in `words/ends.toml`."""
    languages = tomllib.loads(_ENDS_FILE.read_text(encoding="utf-8"))
    patterns: list[_EndPatterns] = []
    for sources in languages.values():
        day = sources["day"]
        end = re.compile(sources["end"].replace("{day}", day))
        duration = re.compile(sources["duration"].replace("{day}", day))
        patterns.append(_EndPatterns(end, duration))
    return tuple(patterns)


_END_PATTERNS: Final = _load_end_patterns()
