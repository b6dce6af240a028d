"""The time that a question speaks of, as values, and the day that a note is about.

`languages_of_time` looks at every query and is cheap. Only if it finds a word of time, `times.py`
is imported and reads the query. docs/internals/ranking.md describes both.
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

# The weight of this signal, where those of all others add up to 1. docs/internals/ranking.md has
# the figures.
DATED_WEIGHT = 0.15

# A note is about an event if a passage of it contains this share of the weight of its words.
MIN_EVENT_SHARE = 0.6

# The value of a day directly outside of a period is less than this share of the value of its days.
_MAX_VALUE_OUTSIDE = 0.5

Relation = Literal["before", "after", "since", "until"]

# Each line has a language and the first letters of its words of time; for Chinese, Japanese and
# Korean, parts of its phrases.
_BEGINNINGS: Final = Path(__file__).parent / "time_phrases/beginnings.txt"
_BEGINNING_LENGTH = 4  # of letters; shorter words are there as a whole

_WORD: Final = re.compile(r"[^\s\d.,;:'!?¿¡\"()]+")

# A year, a number before the Chinese, Japanese or Korean word for month, day or year, or `24.1`.
_NUMBER: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\d ?[月日年월일년]|\d\.\d")


class Period(NamedTuple):
    """A period of days, from `start` until before `end`.

    Up to `slack` days before and after it count less. `weight` is the value of its days, up to 1.
    """

    start: date
    end: date
    slack: int = 0
    weight: float = 1.0

    def value(self, day: date) -> float:
        """Return how well a day fits: `weight` inside, else less than half of it, down to 0.

        It is 0 for a day that is more than `slack` days outside.
        """
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

    A day fits if it fits one of the `periods`. `event` has the words of an event that the question
    names instead, as `plain_words` writes them, and `relation` says on which side of it the time
    is; they are "" and "since" if there is none. `in_order` is whether the question asks in what
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
    """Return the languages in which a text may speak of time; none for most texts.

    They are codes such as "en". A number that may be part of a date adds "any". Cheap: may return
    languages in which `times.read_time` then finds nothing, but never misses one that it can read.
    `text` is in the form of `plain_words`.
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
    """Codes of languages: by the first letters of a word, and by a part of a phrase.

    Parts are those of Chinese, Japanese and Korean phrases, whose words cannot be told apart.
    """

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
    """Return the day that a note is about, as an ISO day: of its name, else title, else creation.

    Returns "" for a note with none of them. When its file changed says little about its subject.
    """
    return date_in_name(base_name(row.path)) or full_day_in(row.title) or row.created[:10]


def shown_day(row: NoteRow) -> str:
    """Return the ISO day that a note is about; without one, that of its last change."""
    return day_of_note(row) or row.modified[:10]


def moment_of(row: NoteRow) -> str:
    """Return `shown_day` of a note, with the time of its creation if it was created on that day."""
    day = shown_day(row)
    if row.created.startswith(day):
        return row.created
    return day


def date_order(row: NoteRow) -> tuple[str, str]:
    """Return the key that sorts notes by `moment_of`, then by path."""
    return moment_of(row), row.path


def value_of_note(row: NoteRow, periods: Iterable[Period]) -> float:
    """Return how well `shown_day` of a note fits the best of some periods, from 0 to 1.

    Returns 0 without any period, and for a note whose day is no ISO day.
    """
    day = as_day(shown_day(row))
    if day is None:
        return 0.0
    return max((period.value(day) for period in periods), default=0.0)


def as_day(text: str) -> date | None:
    """Return the day of a text such as `2026-01-24`; None if it is no day in ISO 8601."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
