"""Read by rules of which memory type a statement is, and until when it is valid. Pure."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.features.facts.ends import end_of_appointment, end_of_statement
from simplemem.features.facts.language import MAX_READ, Language, language_of, plain_text
from simplemem.features.facts.reading import read_statement
from simplemem.note.small_letters import in_small_letters

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
    end = end_of_statement(text, at)
    if end is not None:
        return MemoryType("fact", end)

    if language.matches("liking", plain):
        return MemoryType("preference")
    reading = read_statement(text)
    if reading.slot is None:
        day_of_appointment = end_of_appointment(text, at)
        if day_of_appointment is not None:
            return MemoryType("fact", day_of_appointment)
    if language.matches("state", plain) or not reading.is_episode:
        return MemoryType("fact")

    day = _day_in(language, plain, at)
    # What would be forgotten as soon as it is stored is stored as a fact.
    is_remembered = day is not None and at - day < _REMEMBERED
    return MemoryType("episode", day) if is_remembered else MemoryType("fact")


def states_end(text: str, *, is_ahead: bool) -> bool:
    """Return whether a text says until when something is valid.

    A duration, such as "for two weeks", counts only if the end `is_ahead` of the current time.
    """
    plain = in_small_letters(text[:MAX_READ])
    for patterns in _END_PATTERNS:
        if patterns.end.search(plain):
            return True
        if is_ahead and patterns.duration.search(plain):
            return True
    return False


def _day_in(language: Language, plain: str, at: datetime) -> datetime | None:
    """Return the end of the day on which an episode was, None if a sentence names none.

    `plain` is the sentence as `plain_text` returns it. A date without a year is the last one before
    `at`. Words such as "yesterday" stand for the time `at` itself.
    """
    match = language.patterns["date"].search(plain)
    if match is None:
        return at if language.matches("lately", plain) else None

    # The pattern has a group of each name per form of a date: "day", "day2", "day3".
    parts = {name.rstrip("23"): text for name, text in match.groupdict().items() if text}
    day = int(parts["day"])
    month = int(parts["month"]) if "month" in parts else language.month_number(parts["name"])
    if "year" in parts:
        return _end_of_day(int(parts["year"]), month, day)
    return _last_day_before(month, day, at)


def _last_day_before(month: int, day: int, at: datetime) -> datetime | None:
    """Return the end of the last day of this date before a time, None if there is none.

    It may be a day later than the time, since the time zone of the user is unknown. Only the year
    of the time and the one before it are looked at.
    """
    for year in (at.year, at.year - 1):
        end = _end_of_day(year, month, day)
        if end is not None and end <= at + timedelta(days=1):
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
