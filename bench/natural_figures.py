"""What the measurements of the natural material share: counts, and how texts are compared. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from simplemem.note.words import STOP_WORDS, STOP_WORDS_BY_LANGUAGE, without_accents

_WORD: Final = re.compile(r"[^\W_]+")
_STEM_LENGTH: Final = 6  # letters of a word that are compared: endings change
_LANGUAGES: Final = ("es", "de", "fr")  # of the material, besides English
_STOP_WORDS: Final = STOP_WORDS.union(*(STOP_WORDS_BY_LANGUAGE[name] for name in _LANGUAGES))


@dataclass(frozen=True)
class Count:
    """How many of so many."""

    number: int
    total: int

    @classmethod
    def of(cls, results: Iterable[bool]) -> Count:
        """Count the true ones among some results."""
        listed = list(results)
        return cls(sum(listed), len(listed))

    def __add__(self, other: Count) -> Count:
        """Return the sum of two counts."""
        return Count(self.number + other.number, self.total + other.total)

    @property
    def share(self) -> float:
        """The share, 0 of nothing."""
        return self.number / self.total if self.total else 0.0

    def __str__(self) -> str:
        return f"{self.number} / {self.total}"


def sum_counts(counts: Iterable[Count]) -> Count:
    """Return the sum of counts."""
    return sum(counts, start=Count(0, 0))


def content_stems(text: str) -> frozenset[str]:
    """Return the words of a text that are compared: without accents, case, endings and stop words.

    An ending is what a word has beyond six letters. Numbers are words. The stop words are those of
    English, Spanish, German and French, whatever the language of the text.
    """
    words = _WORD.findall(without_accents(text.casefold()))
    return frozenset(word[:_STEM_LENGTH] for word in words if word not in _STOP_WORDS)


def overlap(wanted: str, text: str) -> float:
    """Return the share of the content words of a text that another one has, 0 if it has none."""
    wanted_stems = content_stems(wanted)
    if not wanted_stems:
        return 0.0
    return len(wanted_stems & content_stems(text)) / len(wanted_stems)
