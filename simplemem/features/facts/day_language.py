"""The words and patterns by which each language names days, as `words/days/` has them.

A file has these parts:

- `order`: "mdy" if the month comes before the day in 10/02/2026, else "dmy".
- `two_weeks`: what says "this week and the next".
- `words`: the months, the weekdays from Monday, and the words for a day, a week and a month.
- `numbers`, `feasts`, `holidays` and `days`: as the fields of `DayLanguage`.
- `patterns`: those that name a day (`named_days.py`), and those that say what happens then
  (`ends.py`). "{name}" in a pattern stands for the pattern, or any word of the list, of that name.

Pure, but for reading the files on first use.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from simplemem.features.pattern_pieces import fill_braces

DAYS_PER_MONTH: Final = 31  # of a duration

_FOLDER: Final = Path(__file__).parent / "words" / "days"
_LANGUAGE_CODES: Final = ("en", "es", "de", "fr")
_LETTERS_OF_SHORT_MONTH: Final = 3
_DAYS_OF_UNITS: Final = {"days_of": 1, "weeks_of": 7, "months_of": DAYS_PER_MONTH}


@dataclass(frozen=True)
class DayLanguage:
    """The words and patterns of one language. All words are in small letters."""

    is_month_first: bool  # in 10/02/2026
    months: tuple[str, ...]
    weekdays: tuple[str, ...]  # from Monday
    numbers: Mapping[str, int]
    feasts: Mapping[str, int]  # days from Easter Sunday
    holidays: Mapping[str, str]  # "12-25" or "11 thursday 4" or "05 monday last"
    days: Mapping[str, int]  # from the day on which something is said: "tomorrow" is 1
    two_weeks: frozenset[str]  # what says "this week and the next"
    units: Mapping[str, int]  # the days of a day, a week and a month, by the words for them
    patterns: Mapping[str, re.Pattern[str]]

    def month_number(self, name: str) -> int:
        """Return the number of a month, from 1, by its name or the first three letters of that.

        Raise ValueError if no month has this name.
        """
        if name in self.months:  # "juillet" begins like "juin"
            return self.months.index(name) + 1
        short_names = [month[:_LETTERS_OF_SHORT_MONTH] for month in self.months]
        return short_names.index(name) + 1

    def weekday_number(self, name: str) -> int:
        """Return the number of a weekday, of which Monday is 0. Raise ValueError if it is none."""
        return self.weekdays.index(name)


@cache
def day_languages() -> tuple[DayLanguage, ...]:
    """Return all languages in the order in which they are tried. The first call reads the files."""
    return tuple(_load(code) for code in _LANGUAGE_CODES)


def _load(code: str) -> DayLanguage:
    """Return the language with a code. Raise KeyError or re.error if its file is not complete."""
    file = _FOLDER / f"{code}.toml"
    table: Mapping[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    words: Mapping[str, str] = table["words"]

    units: dict[str, int] = {}
    for list_name, day_count in _DAYS_OF_UNITS.items():
        units |= dict.fromkeys(words[list_name].split(), day_count)

    sources = _sources_of_patterns(table)
    patterns: dict[str, re.Pattern[str]] = {}
    for name, source in sources.items():
        patterns[name] = re.compile(fill_braces(source, sources))

    return DayLanguage(
        is_month_first=table["order"] == "mdy",
        months=tuple(words["months"].split()),
        weekdays=tuple(words["weekdays"].split()),
        numbers=table["numbers"],
        feasts=table["feasts"],
        holidays=table["holidays"],
        days=table["days"],
        two_weeks=frozenset(table["two_weeks"]),
        units=units,
        patterns=patterns,
    )


def _sources_of_patterns(table: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the patterns in a file by name, and those made from its word lists."""
    months = table["words"]["months"].split()
    short_months = [month[:_LETTERS_OF_SHORT_MONTH] for month in months]
    return {
        **table["patterns"],
        "months": _any_of(months),
        "months_short": _any_of(short_months),
        "weekdays": _any_of(table["words"]["weekdays"].split()),
        "count_words": _any_of(table["numbers"]),
        "feast": rf"(?:the )?(?P<feast>{_any_of(table['feasts'])})\b",
        "holiday": rf"(?P<holiday>{_any_of(table['holidays'])})\b",
        "relative": rf"(?P<relative>{_any_of(table['days'])})\b",
    }


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of some words, of which the longest are tried first."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(longest_first)
