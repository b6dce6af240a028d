"""Read on which day a statement ends: "until Friday", "for two weeks", "hasta finales de marzo".

The day is computed from the moment at which the statement was made. What was, what happens again
and what begins on a day has no end. An appointment, which has a day and a time of day, ends with
its day. `named_days.py` reads the day that a text names, and `day_language.py` has the patterns.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from simplemem.features.facts.calendar_days import last_day_of_month, sunday_of_week
from simplemem.features.facts.day_language import DAYS_PER_MONTH, DayLanguage, day_languages
from simplemem.features.facts.named_days import NamedDay, read_day_at
from simplemem.note.small_letters import in_small_letters

_MAX_READ: Final = 400  # characters of a statement
_END_OF_DAY: Final = time(23, 59, 59, tzinfo=UTC)
_WEEK: Final = timedelta(days=7)
# What lasts longer is a habit, or is over.
_MAX_DURATION: Final = timedelta(days=3 * DAYS_PER_MONTH)
_WORD_START: Final = re.compile(r"(?<![\w.,:/-])(?=\w)")


def end_of_statement(text: str, at: datetime) -> datetime | None:
    """Return the end of the day with which a statement ends, None if it names no such day.

    `at` is when the statement was made. Only the first 400 characters are read.
    """
    return _end_of_day_read_by(_last_day, text, at)


def end_of_appointment(text: str, at: datetime) -> datetime | None:
    """Return the end of the day of an appointment, None if a statement states none.

    An appointment has a day that is not before `at`, and a time of day. Only the first 400
    characters are read.
    """
    return _end_of_day_read_by(_last_appointed_day, text, at)


def _end_of_day_read_by(
    read_day: Callable[[DayLanguage, str, date], date | None], text: str, at: datetime
) -> datetime | None:
    """Return the end of the day that a function reads in a text, in the first language that fits.

    None if it reads no day in any language.
    """
    plain = in_small_letters(text[:_MAX_READ])
    for language in day_languages():
        day = read_day(language, plain, at.date())
        if day is not None:
            return datetime.combine(day, _END_OF_DAY)
    return None


def _last_day(language: DayLanguage, plain: str, today: date) -> date | None:
    """Return the last day that a statement names, None if it names none, or is of the past."""
    for until in language.patterns["until"].finditer(plain):
        named = read_day_at(language, plain, until.end(), today)
        if named is None or named.day is None:
            continue
        if _ends_then(language, plain, until.start(), named, today):
            return named.day

    if _has_any(language, ("past", "again"), plain):
        return None
    end = _end_of_period(language, plain, today)
    if end is None:
        end = _end_of_duration(language, plain, today)
    return end


def _has_any(language: DayLanguage, names: Iterable[str], plain: str) -> bool:
    """Return whether a text has words that one of a language's patterns with these names finds."""
    for name in names:
        pattern = language.patterns[name]
        if pattern.search(plain) is not None:
            return True
    return False


def _ends_then(
    language: DayLanguage, plain: str, until_start: int, named: NamedDay, today: date
) -> bool:
    """Return whether a statement ends on a day that it names behind a word such as "until".

    It does not if it is over already ("I was in Rome until Friday"), happens each week ("until
    Friday every week") or says that it is not that day ("not until Friday").
    """
    before = plain[:until_start]
    is_ahead = named.day is not None and named.day >= today
    if is_ahead and _has_any(language, ["past"], before):
        return False
    if named.is_weekday and _has_any(language, ["again"], plain):
        return False
    return not _has_any(language, ["not_then"], before)


def _last_appointed_day(language: DayLanguage, plain: str, today: date) -> date | None:
    """Return the last day of an appointment, None for what is past, repeated or begins then."""
    if _has_any(language, ("past", "again", "begins"), plain):
        return None

    days: list[date] = []
    end_of_name = 0
    for word in _WORD_START.finditer(plain):
        start = word.start()
        if start < end_of_name:
            continue

        named = read_day_at(language, plain, start, today)
        if named is None:
            continue

        end_of_name = named.end
        if named.day is None or named.day < today:
            continue
        if _is_appointment(language, plain, start, named.end):
            days.append(named.day)
    return max(days, default=None)


def _is_appointment(language: DayLanguage, plain: str, start: int, end: int) -> bool:
    """Return whether something is said to happen on the day that is named at some offsets.

    That is so if it is due then, the day is a weekday with its date, or the text names a time of
    day or an event.
    """
    before = plain[:start]
    if _has_any(language, ["not_then"], before):
        return False
    if _has_any(language, ["due"], before):
        return True

    dated_weekday = language.patterns["dated_weekday"].match(plain, start)
    if dated_weekday is not None:
        return True

    without_day = f"{before} , {plain[end:]}"
    return _has_any(language, ("clock", "event"), without_day)


def _end_of_period(language: DayLanguage, plain: str, today: date) -> date | None:
    """Return the last day of "this week", "this week and the next" or "this month".

    None if a text has no such words.
    """
    match = language.patterns["this"].search(plain)
    if match is None:
        return None

    named_periods = [text for text in match.groups() if text]
    period = named_periods[0]
    if language.units.get(period) == DAYS_PER_MONTH:
        return last_day_of_month(today.year, today.month)
    if period in language.two_weeks:
        return sunday_of_week(today) + _WEEK
    return sunday_of_week(today)


def _end_of_duration(language: DayLanguage, plain: str, today: date) -> date | None:
    """Return the last day of "for two weeks", None if a text has no such words.

    None also for more than three months.
    """
    match = language.patterns["duration"].search(plain)
    if match is None:
        return None

    groups = {name: text for name, text in match.groupdict().items() if text}
    count_text = groups.get("count", "1")  # "for the next week" has no count
    if count_text.isdigit():
        count = int(count_text)
    else:
        count = language.numbers[count_text]

    unit = groups.get("unit") or groups["unit2"]
    days_per_unit = language.units[unit]
    duration = timedelta(days=count * days_per_unit)
    if duration > _MAX_DURATION:
        return None
    return today + duration
