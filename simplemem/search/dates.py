"""The time that a question speaks of, as values, and the day of a note.

`languages_of_time` looks at every query and is cheap. Only if it finds a word of time, `times.py`
reads the query. docs/internals/ranking.md describes both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from simplemem.index.api import NoteRow
from simplemem.note.dates import date_in_name, full_day_in
from simplemem.note.names import base_name

# The time of a question changes the order of this many of the best notes; it filters nothing.
DATED_NOTES = 40

# Relative to 1 of all other signals. The ranking is equally good from 0.05 to 0.2.
DATED_WEIGHT = 0.15

# A note is about an event if a passage of it contains this share of the weight of its words.
MIN_EVENT_SHARE = 0.6

# Of a note just outside a period that is only about right.
_MAX_VALUE_OUTSIDE = 0.5

Relation = Literal["before", "after", "since", "until"]

_BEGINNINGS: Final = Path(__file__).parent / "time_phrases/beginnings.txt"
_BEGINNING_LENGTH = 4

_WORD: Final = re.compile(r"[^\s\d.,;:'!?¿¡\"()]+")

# A year, or a number before the word for month, day or year in scripts without spaces.
_NUMBER: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\d ?[月日年월일년]|\d\.\d")


class Period(NamedTuple):
    """A period of days, from `start` until before `end`.

    Days up to `slack` days outside count a little. `weight` is the value of its days, up to 1.
    """

    start: date
    end: date
    slack: int = 0
    weight: float = 1.0

    def value(self, day: date) -> float:
        """Return how well a day fits: `weight` inside, less just outside, else 0."""
        if self.start <= day < self.end:
            return self.weight
        if day < self.start:
            distance = (self.start - day).days
        else:
            distance = (day - self.end).days + 1
        if distance > self.slack:
            return 0.0
        return self.weight * _MAX_VALUE_OUTSIDE * (1 - distance / (self.slack + 1))


@dataclass(frozen=True, slots=True)
class TimeAsked:
    """The time that a question speaks of.

    `event` has the words of an event that the question names, and `relation` says on which side of
    it the time is; "" and "since" if there is none. `in_order` is whether the question asks in what
    order things happened.
    """

    periods: tuple[Period, ...] = ()
    event: str = ""
    relation: Relation = "since"
    in_order: bool = False


def plain_words(text: str) -> str:
    """Return a text in small letters with single spaces, without accents and points on letters.

    Digits and punctuation have their common form: full-width ones become those of ASCII.
    """
    text = text.replace("\u2019", "'")
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        # Vowel signs of Indian scripts have the class 0, the sign that removes a vowel has 9.
        kept = [letter for letter in decomposed if unicodedata.combining(letter) in (0, 9)]
        text = unicodedata.normalize("NFC", "".join(kept))
    return " ".join(text.casefold().split())


def languages_of_time(text: str) -> frozenset[str]:
    """Return the languages in which a text may speak of time; cheap, and never misses any.

    `text` is in the form of `plain_words`. A year alone gives the language "any".
    """
    by_word, by_part = _beginnings()
    languages: set[str] = set()
    for word in _WORD.findall(text):
        languages.update(by_word.get(word[:_BEGINNING_LENGTH], ()))
    if not text.isascii():
        for part, languages_of_part in by_part.items():
            if part in text:
                languages.update(languages_of_part)
    if _NUMBER.search(text):
        languages.add("any")
    return frozenset(languages)


class _Beginnings(NamedTuple):
    """Languages by the beginning of a word, and by a part of a text in a script without spaces."""

    by_word: dict[str, list[str]]
    by_part: dict[str, list[str]]


@cache
def _beginnings() -> _Beginnings:
    """Read the beginnings of words of time, once."""
    beginnings = _Beginnings({}, {})
    for line in _BEGINNINGS.read_text(encoding="utf-8").splitlines():
        language, *words = line.split(" ")
        for word in words:
            is_part = language in ("zh", "ja", "ko")
            table = beginnings.by_part if is_part else beginnings.by_word
            table.setdefault(word, []).append(language)
    return beginnings


def day_of_note(row: NoteRow) -> str:
    """Return the day that a note is about, as an ISO day: of its name, its title or its creation.

    Returns "" for a note with none of them: when its file changed says little.
    """
    return date_in_name(base_name(row.path)) or full_day_in(row.title) or row.created[:10]


def shown_day(row: NoteRow) -> str:
    """Return the day of a note as an ISO day, or the day of its last change if it has none."""
    return day_of_note(row) or row.modified[:10]


def moment_of(row: NoteRow) -> str:
    """Return the day of a note, with the time of its creation if it was created on that day."""
    day = shown_day(row)
    return row.created if row.created.startswith(day) else day


def date_order(row: NoteRow) -> tuple[str, str]:
    """Return what sorts notes by their days; those of one day by creation, then by path."""
    return moment_of(row), row.path


def value_of_note(row: NoteRow, periods: Iterable[Period]) -> float:
    """Return how well a note fits one of the periods, from 0 to 1.

    A note without a day of its own belongs to the day of its last change.
    """
    day = as_day(shown_day(row))
    if day is None:
        return 0.0
    return max((period.value(day) for period in periods), default=0.0)


def as_day(text: str) -> date | None:
    """Return the day that a text in ISO 8601 names; None if it names none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
