"""The words and numbers of a statement by which it is known what the statement is about. Pure.

Only the first 400 characters of a statement are read. Its words are stems.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from simplemem.features.changes.cues import Cues, language_of, words_in
from simplemem.note.small_letters import in_small_letters
from simplemem.note.stems import stem

_MAX_READ: Final = 400  # characters of a statement
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_LONG_NUMBER: Final = re.compile(r"(?<![\d.,:])\d{3,}(?:[.,]\d+)*\b|(?<![\d.,:])\d{1,3}[.,]\d{3}\b")
# A word, up to two short ones, and a number: "the TSH is 3.1". It is a lookahead, so that all words
# before a number are found. The stop of the sentence may follow, but not that of "4. Mai".
_MEASURED: Final = re.compile(
    r"\b(?=([^\W\d_]{3,}) (?:[^\s\d]{1,5} ){0,2}(\d++(?:[.,]\d++)*+)(?![:/-]|\.(?!\s*$)))"
)
# "131/84" and "148 over 94": two numbers of one measurement, such as a blood pressure.
_PAIR: Final = re.compile(
    r"(?<![\d/.,])([89]\d|[12]\d\d)(?:/| (?:over|zu|sobre|sur) )(\d{2,3})(?![\d/])"
)
_AMOUNT: Final = re.compile(r"(?<![\d.,:])(\d{1,3})[.,](\d{3})\b|(?<![\d.,:])(\d{2,4}) ?k\b")
_WORD_OF_PAIRS: Final = "/"  # stands for the word before two numbers of one measurement


def beginning_of(statement: str) -> str:
    """Return the part of a statement that is read, in small letters."""
    return in_small_letters(statement[:_MAX_READ])


@lru_cache(maxsize=20_000)
def naming_words(statement: str) -> frozenset[str]:
    """Return the stems of the words of a statement that may name what it is about.

    Numbers of three digits or more are among them.
    """
    text = beginning_of(statement)
    return naming_words_in(text, language_of(text))


def naming_words_in(text: str, cues: Cues) -> frozenset[str]:
    """Return the naming words of a text in small letters that is in a language."""
    stems = set[str](_LONG_NUMBER.findall(text))
    for word in words_in(text):
        if cues.names_something(word):
            stems.add(stem(word, cues.stemmer))
    return frozenset(stems)


def numbers_in(statement: str) -> frozenset[str]:
    """Return the numbers of a statement as they are written."""
    return frozenset(_NUMBER.findall(beginning_of(statement)))


@lru_cache(maxsize=20_000)
def measured_in(statement: str) -> frozenset[tuple[str, str]]:
    """Return the words of a statement behind which a number stands, as stems, and the numbers.

    A number has one word: of those that stand before it, the first that may name something. The
    pairs of `pairs_in` are among them.
    """
    text = beginning_of(statement)
    cues = language_of(text)
    words_by_start: dict[int, tuple[str, str]] = {}
    for match in _MEASURED.finditer(text):
        word, number = match.groups()
        if cues.names_something(word):
            words_by_start.setdefault(match.start(2), (stem(word, cues.stemmer), number))
    return pairs_in(statement).union(words_by_start.values())


def pairs_in(statement: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of numbers in a statement, such as "131/84", each behind the word "/"."""
    pairs = set[tuple[str, str]]()
    for first, second in _PAIR.findall(beginning_of(statement)):
        pairs.add((_WORD_OF_PAIRS, f"{first}/{second}"))
    return frozenset(pairs)


@lru_cache(maxsize=20_000)
def amounts_in(statement: str) -> frozenset[int]:
    """Return the numbers of a thousand or more in a statement, also of "178.000" and "178k"."""
    amounts = set[int]()
    for thousands, rest, thousands_before_k in _AMOUNT.findall(beginning_of(statement)):
        if thousands_before_k:
            amounts.add(int(thousands_before_k) * 1000)
        else:
            amounts.add(int(thousands + rest))
    return frozenset(amounts)
