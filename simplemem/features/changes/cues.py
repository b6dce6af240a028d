"""The words by which each language says that something said before is outdated.

`cues/` has one file per language: the patterns of `Cues`, and words that name nothing. A text is in
the language of which it has the most stop words; short texts may be in several. Pure, but for
reading the files on first use.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, get_args

from simplemem.note.stems import stem
from simplemem.note.words import STOP_WORDS, STOP_WORDS_BY_LANGUAGE, without_accents

CueKind = Literal["correction", "moved", "died", "home", "ended", "returned", "changed"]
"""What a cue tells: "moved" is an appointment, and "home" that somebody moved to another home."""

_FOLDER: Final = Path(__file__).parent / "cues"
_STEMMERS: Final = {"en": "", "es": "es", "de": "de", "fr": "fr"}  # their names by language
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# "Beth's", "I've", "6th": endings that are no words.
_ENDING: Final = re.compile(r"(?<=\w)['’][a-z]{1,2}\b|(?<=\d)(?:st|nd|rd|th)\b")
_MIN_LETTERS: Final = 2  # of a word that names something


@dataclass(frozen=True)
class Cues:
    """The cues of one language. Their patterns match texts in small letters."""

    stemmer: str  # its name for the language, "" for English
    kinds: Mapping[CueKind, re.Pattern[str]]  # in the order in which they are tried
    home_words: frozenset[str]  # the stems of words that tell of a home
    hedged: re.Pattern[str]  # a question, a plan, a condition or hearsay
    joint: re.Pattern[str]  # what stands between two main clauses
    denied: re.Pattern[str]  # a number that the statement says is wrong, in its only group
    dependent: re.Pattern[str]  # a sentence that is understood only with the one before it
    stop_words: frozenset[str]  # without accents
    ignored: frozenset[str]  # other words that name nothing

    def names_something(self, word: str) -> bool:
        """Return whether a fact could be known by a word in small letters."""
        if len(word) < _MIN_LETTERS or word in self.ignored:
            return False
        return without_accents(word) not in self.stop_words


def words_in(text: str) -> list[str]:
    """Return the words of a text in their order, without numbers and endings such as "'s"."""
    return _WORD.findall(_ENDING.sub("", text))


def language_of(text: str) -> Cues:
    """Return the first language with the most stop words in a text in small letters."""
    return languages_of(text)[0]


def languages_of(text: str) -> list[Cues]:
    """Return the languages with the most stop words in a text in small letters.

    These are all languages if the text has none. The preferred one comes first.
    """
    words = [without_accents(word) for word in words_in(text)]
    counts = [sum(word in cues.stop_words for word in words) for cues in cue_languages()]

    most = max(counts)
    return [cues for cues, count in zip(cue_languages(), counts, strict=True) if count == most]


@cache
def cue_languages() -> tuple[Cues, ...]:
    """Return the cues of all languages. Their files are read by the first call."""
    return tuple(_load(code, stemmer) for code, stemmer in _STEMMERS.items())


def _load(code: str, stemmer: str) -> Cues:
    """Return the cues of a language. Raise KeyError or re.error if its file is not complete."""
    table = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    kinds: dict[CueKind, re.Pattern[str]] = {}
    for kind in get_args(CueKind):
        kinds[kind] = re.compile(table[kind])

    return Cues(
        stemmer=stemmer,
        kinds=kinds,
        home_words=frozenset(stem(word, stemmer) for word in table["home_words"].split()),
        hedged=re.compile(table["hedged"]),
        joint=re.compile(table["joint"]),
        denied=re.compile(table["denied"]),
        dependent=re.compile(table["dependent"]),
        stop_words=STOP_WORDS_BY_LANGUAGE[stemmer] if stemmer else STOP_WORDS,
        ignored=frozenset(table["ignored"].split()),
    )
