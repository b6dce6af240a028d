"""Read on which day a statement ends: "until Friday", "for two weeks", "hasta finales de marzo".

The day is computed from the moment at which the statement was made. What was, what happens again
and what begins on a day has no end. An appointment, which has a day and a time of day, ends with
its day. `words/days/` has the words and patterns, one file per language. Pure, but for reading
those files on first use.
"""

from __future__ import annotations

import re
import tomllib
from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.note.small_letters import in_small_letters

_DAYS_FOLDER: Final = Path(__file__).parent / "words" / "days"
_LANGUAGE_CODES: Final = ("en", "es", "de", "fr")
_MAX_READ: Final = 400  # characters of a statement
_SUNDAY: Final = 6
_MAX_MONTHS_IN_WORDS: Final = 3  # a longer duration is a habit, or is over
_REFERENCE: Final = re.compile(r"\{([a-z_]+)\}")
_WORD_START: Final = re.compile(r"(?<![\w.,:/-])(?=\w)")
_ISO: Final = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b")
_NUMERIC: Final = re.compile(
    r"""
    (?P<first>\d{1,2}) / (?P<second>\d{1,2}) (?: / (?P<year>\d{4}|\d\d) )? (?![\d/])
    | (?P<first2>\d{1,2}) \. [ ]? (?P<second2>\d{1,2}) \. [ ]? (?P<year2>\d{4}|\d\d)? (?!\d)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class _DayLanguage:
    """The words and patterns of one language, as its file in `words/days/` has them."""

    is_month_first: bool  # in 10/02/2026
    months: tuple[str, ...]  # the first three letters of each
    weekdays: tuple[str, ...]  # from Monday
    numbers: Mapping[str, int]
    feasts: Mapping[str, int]  # days from Easter Sunday
    holidays: Mapping[str, str]  # as `_holiday_in` reads them
    days: Mapping[str, int]  # from the day on which something is said
    two_weeks: frozenset[str]  # what says "this week and the next"
    units: Mapping[str, int]  # days of a day, a week and a month, by the words for them
    patterns: Mapping[str, re.Pattern[str]]


class _NamedDay(NamedTuple):
    """A day that a text names, where its name ends, and whether it is only a weekday."""

    end: int
    day: date
    is_weekday: bool


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
    return _end_of_day_read_by(_appointed_day, text, at)


def _end_of_day_read_by(
    read_day: Callable[[_DayLanguage, str, date], date | None], text: str, at: datetime
) -> datetime | None:
    """Return the end of the day that a function reads in a text, in the first language that fits.

    None if it reads no day in any language.
    """
    plain = in_small_letters(text[:_MAX_READ])
    for language in _languages():
        day = read_day(language, plain, at.date())
        if day is not None:
            return datetime(day.year, day.month, day.day, 23, 59, 59, tzinfo=UTC)
    return None


def _last_day(language: _DayLanguage, plain: str, today: date) -> date | None:
    """Return the last day that a statement names, None if it names none, or is of the past."""
    patterns = language.patterns
    for match in patterns["until"].finditer(plain):
        named = _match_day(language, plain, match.end(), today)
        if named is None:
            continue
        before = plain[: match.start()]
        is_over = named.day >= today and patterns["past"].search(before)
        is_habit = named.is_weekday and patterns["again"].search(plain)
        if is_over or is_habit or patterns["not_then"].search(before):
            continue
        return named.day

    if patterns["past"].search(plain) or patterns["again"].search(plain):
        return None
    return _end_of_duration(language, plain, today)


def _appointed_day(language: _DayLanguage, plain: str, today: date) -> date | None:
    """Return the last day of an appointment, None for what is past, repeated or begins then."""
    for name in ("past", "again", "begins"):
        if language.patterns[name].search(plain):
            return None

    last_day: date | None = None
    position = 0
    for match in _WORD_START.finditer(plain):
        start = match.start()
        if start < position:
            continue
        named = _match_day(language, plain, start, today)
        if named is None:
            continue
        position = named.end
        if named.day >= today and _is_appointment(language, plain, start, named.end):
            last_day = max(last_day or named.day, named.day)
    return last_day


def _is_appointment(language: _DayLanguage, plain: str, start: int, end: int) -> bool:
    """Return whether something is said to happen on the day that is named at some offsets.

    That is so if it is due then, the day is a weekday with its date, or the text names a time of
    day or an event.
    """
    patterns = language.patterns
    before = plain[:start]
    if patterns["not_then"].search(before):
        return False
    if patterns["due"].search(before) or patterns["dated_weekday"].match(plain, start):
        return True
    without_day = f"{before} , {plain[end:]}"
    return any(patterns[name].search(without_day) for name in ("clock", "event"))


def _match_day(language: _DayLanguage, plain: str, start: int, today: date) -> _NamedDay | None:
    """Return the day that a text names at an offset, None without one.

    A date that does not exist is no day.
    """
    article = language.patterns["article"].match(plain, start)
    number_start = article.end() if article is not None else start
    for pattern, read in _NUMBER_READERS:
        match = pattern.match(plain, number_start)
        day = None if match is None else read(language, match.groupdict(), today)
        if match is not None and day is not None:
            return _NamedDay(match.end(), day, is_weekday=False)

    for name, read in _READERS:
        match = language.patterns[name].match(plain, start)
        day = None if match is None else read(language, match.groupdict(), today)
        if match is not None and day is not None:
            return _NamedDay(match.end(), day, is_weekday=name == "weekday")
    return None


def _read_date(language: _DayLanguage, parts: Mapping[str, str | None], today: date) -> date | None:
    """Return the day of a month that is named; without a year, the next such day."""
    month_name = parts["month"] or ""
    if month_name.isdigit():
        month = int(month_name)
    else:
        month = language.months.index(month_name[:3]) + 1
    return _next_date(today, parts.get("year"), month, int(parts["day"] or 0))


def _read_numeric_date(
    language: _DayLanguage, parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the day that two or three numbers name, in the language's order of day and month."""
    has_slash = parts["first"] is not None
    first = int(parts["first"] or parts["first2"] or 0)
    second = int(parts["second"] or parts["second2"] or 0)
    year = parts["year"] or parts["year2"]
    if not has_slash:
        return _next_date(today, year, month=second, day=first)

    if language.is_month_first:
        likelier, other = (first, second), (second, first)
    else:
        likelier, other = (second, first), (first, second)
    return _next_date(today, year, *likelier) or _next_date(today, year, *other)


def _read_day_of_month(
    _language: _DayLanguage, parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the next day with a number in its month, today included."""
    number = int(parts["day"] or 0)
    for months_ahead in range(3):
        year, month = _month_after(today, months_ahead)
        day = _date(year, month, number)
        if day is not None and day >= today:
            return day
    return None


def _read_month(
    language: _DayLanguage, parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the last day of the next month of a name."""
    month = language.months.index((parts["month"] or "")[:3]) + 1
    year = int(parts.get("year") or 0) or today.year + (month < today.month)
    return _last_day_of(year, month)


def _read_weekday(
    language: _DayLanguage, parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the next day of a weekday after today."""
    weekday = language.weekdays.index(parts["weekday"] or "")
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def _read_end_of_week(
    _language: _DayLanguage, _parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the Sunday of this week."""
    return _sunday_of_week(today)


def _read_end_of_month(
    _language: _DayLanguage, _parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the last day of this month."""
    return _last_day_of(today.year, today.month)


def _read_feast(
    language: _DayLanguage, parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the next day of a feast that moves with Easter."""
    offset = timedelta(days=language.feasts[parts["feast"] or ""])
    day = _easter_sunday(today.year) + offset
    return day if day >= today else _easter_sunday(today.year + 1) + offset


def _read_holiday(
    language: _DayLanguage, parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return the next day of a holiday with a fixed date."""
    for year in (today.year, today.year + 1):
        day = _holiday_in(language, language.holidays[parts["holiday"] or ""], year)
        if day >= today:
            return day
    return None


def _holiday_in(language: _DayLanguage, rule: str, year: int) -> date:
    """Return the day of a holiday in a year.

    The rule is a month and a day, as in "12-25", or a month, a weekday and which one of the month,
    as in "11 thursday 4" or "05 monday last".
    """
    month_text, separator, day_text = rule.partition("-")
    if separator:
        return date(year, int(month_text), int(day_text))

    month_text, weekday_name, which = rule.split()
    month = int(month_text)
    weekday = language.weekdays.index(weekday_name)
    if which == "last":
        last = _last_day_of(year, month)
        return last - timedelta(days=(last.weekday() - weekday) % 7)
    first = date(year, month, 1)
    first_such_day = first + timedelta(days=(weekday - first.weekday()) % 7)
    return first_such_day + timedelta(weeks=int(which) - 1)


def _read_relative_day(
    language: _DayLanguage, parts: Mapping[str, str | None], today: date
) -> date | None:
    """Return today or a day after it that has a name, such as "tomorrow"."""
    return today + timedelta(days=language.days[parts["relative"] or ""])


_DayReader = Callable[[_DayLanguage, Mapping[str, "str | None"], date], "date | None"]
_NUMBER_READERS: Final[tuple[tuple[re.Pattern[str], _DayReader], ...]] = (
    (_ISO, _read_date),
    (_NUMERIC, _read_numeric_date),
)
"""The patterns of dates in numbers, which are tried first, and what reads their matches."""

_READERS: Final[tuple[tuple[str, _DayReader], ...]] = (
    ("day_month", _read_date),
    ("month_day", _read_date),
    ("feast", _read_feast),
    ("holiday", _read_holiday),
    ("weekday_date", _read_day_of_month),
    ("week_end", _read_end_of_week),
    ("month_end", _read_end_of_month),
    ("month", _read_month),
    ("weekday", _read_weekday),
    ("relative", _read_relative_day),
    ("ordinal", _read_day_of_month),
)
"""The patterns of days in the order in which they are tried, and what reads their matches."""


def _end_of_duration(language: _DayLanguage, plain: str, today: date) -> date | None:
    """Return the last day of "this week" or "for two weeks", None if a text has no such words."""
    this = language.patterns["this"].search(plain)
    if this is not None:
        return _end_of_period(language, next(filter(None, this.groups())), today)

    duration = language.patterns["duration"].search(plain)
    if duration is None:
        return None
    parts = duration.groupdict()
    count_text = parts.get("count") or "1"
    count = int(count_text) if count_text.isdigit() else language.numbers[count_text]
    days_per_unit = language.units[parts.get("unit") or parts.get("unit2") or ""]
    days = count * days_per_unit
    return today + timedelta(days=days) if days <= _MAX_MONTHS_IN_WORDS * 31 else None


def _end_of_period(language: _DayLanguage, period: str, today: date) -> date:
    """Return the last day of this week, of this week and the next, or of this month."""
    if language.units.get(period) == language.units["month"]:
        return _last_day_of(today.year, today.month)
    sunday = _sunday_of_week(today)
    if period in language.two_weeks:
        return sunday + timedelta(days=7)
    return sunday


def _next_date(today: date, year_text: str | None, month: int, day: int) -> date | None:
    """Return a date; without a year, the next one that is not before today. None without one."""
    if year_text:
        year = int(year_text)
        return _date(year if year > 99 else 2000 + year, month, day)
    for year in (today.year, today.year + 1):
        found = _date(year, month, day)
        if found is not None and found >= today:
            return found
    return None


def _sunday_of_week(today: date) -> date:
    """Return the Sunday with which the week of a day ends."""
    return today + timedelta(days=_SUNDAY - today.weekday())


def _last_day_of(year: int, month: int) -> date:
    """Return the last day of a month."""
    return date(year, month, monthrange(year, month)[1])


def _month_after(today: date, months_ahead: int) -> tuple[int, int]:
    """Return the year and the month some months after that of a day."""
    index = today.month - 1 + months_ahead
    return today.year + index // 12, index % 12 + 1


def _date(year: int, month: int, day: int) -> date | None:
    """Return a date, None if there is no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _easter_sunday(year: int) -> date:
    """Return Easter Sunday of a year, by the algorithm of Meeus, Jones and Butcher."""
    a = year % 19
    century, rest = divmod(year, 100)
    d, e = divmod(century, 4)
    g = (8 * century + 13) // 25
    h = (19 * a + century - d - g + 15) % 30
    i, k = divmod(rest, 4)
    weekday = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 19 * weekday) // 433
    month = (h + weekday - 7 * m + 90) // 25
    day = (h + weekday - 7 * m + 33 * month + 19) % 32
    return date(year, month, day)


@cache
def _languages() -> tuple[_DayLanguage, ...]:
    """Return all languages. Their files are read by the first call."""
    return tuple(_load_language(code) for code in _LANGUAGE_CODES)


def _load_language(code: str) -> _DayLanguage:
    """Return the language with a code. Raise KeyError or re.error if its file is not complete."""
    file = _DAYS_FOLDER / f"{code}.toml"
    table: Mapping[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    months = tuple(table["words"]["months"].split())
    weekdays = tuple(table["words"]["weekdays"].split())
    sources = dict(table["patterns"])
    units = {"month": 31}
    for name, days in (("days_of", 1), ("weeks_of", 7), ("months_of", 31)):
        units |= dict.fromkeys(sources.pop(name).split(), days)

    sources["months"] = _any_of(months)
    sources["months_short"] = _any_of(name[:3] for name in months)
    sources["weekdays"] = _any_of(weekdays)
    sources["count_words"] = _any_of(table["numbers"])
    sources["feast"] = rf"(?:the )?(?P<feast>{_any_of(table['feasts'])})\b"
    sources["holiday"] = rf"(?P<holiday>{_any_of(table['holidays'])})\b"
    sources["relative"] = rf"(?P<relative>{_any_of(table['days'])})\b"
    return _DayLanguage(
        is_month_first=table["order"] == "mdy",
        months=tuple(name[:3] for name in months),
        weekdays=weekdays,
        numbers=table["numbers"],
        feasts=table["feasts"],
        holidays=table["holidays"],
        days=table["days"],
        two_weeks=frozenset(table.get("two_weeks", ())),
        units=units,
        patterns={name: _compile(source, sources) for name, source in sources.items()},
    )


def _any_of(words: Any) -> str:
    """Return a pattern of any of some words, of which the longest are tried first."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(longest_first)


def _compile(source: str, sources: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern, with the sources of all others that it names in braces."""
    while True:
        filled = _REFERENCE.sub(lambda reference: sources[reference[1]], source)
        if filled == source:
            return re.compile(source)
        source = filled
