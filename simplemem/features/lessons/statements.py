"""What the clauses of a lesson say, as far as two lessons can be compared by it. Pure.

`wording/` has the words of each language. A lesson in another language gives no clauses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from simplemem.features.lessons.lesson import Lesson, plain_text
from simplemem.features.lessons.wording import Wording, wording_of
from simplemem.note.sentences import sentence_spans
from simplemem.note.stems import stem
from simplemem.note.words import STOP_WORDS, language_of, words_in_order

_MAX_SENTENCES: Final = 20  # of one lesson that are compared
_AMOUNT: Final = re.compile(r"(?<![\w.])(\d{1,9}(?:\.\d{1,3})?|[a-z]{3,6})(?: |(?<=\d))([a-z%]+)")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")

Stems = frozenset[str]
"""Words that name something, each as its stem."""


Sides = Mapping[str, bool]
"""Of opposites (by their reason): True for the first of the two, False for the second."""


class Amount(NamedTuple):
    """A number with its unit, as in "5 seconds"."""

    number: float
    unit: str


class Order(NamedTuple):
    """What a sentence says to come earlier, and what later."""

    earlier: Stems
    later: Stems


class Cause(NamedTuple):
    """What a sentence says to happen, and why."""

    effect: Stems
    cause: Stems


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence, and what it says."""

    text: str  # in the form of `Wording.normalize`
    sentence: str  # the whole sentence, as it stands in the lesson
    stems: Stems
    denied: Stems  # the words of what it denies; none if it denies nothing
    is_over: bool  # it says that something ended or was replaced
    is_conditional: bool  # what it denies holds under a condition
    effect: str  # "none", "cure", "better" or "worse"; "" if it names none
    amounts: frozenset[Amount]
    measured: Stems  # the words before the first amount, or all if there are none
    sides: Sides  # which of two opposite things it says


@dataclass(frozen=True, slots=True)
class Reading:
    """A lesson, and what it says."""

    lesson: Lesson
    wording: Wording | None  # of its language
    stems: Stems  # of its text and its tags
    clauses: tuple[Clause, ...]
    orders: tuple[Order, ...]
    causes: tuple[Cause, ...]


def read_statements(lesson: Lesson) -> Reading:
    """Return what a lesson says in its first 20 sentences; no clauses without a wording."""
    text = plain_text(lesson.text)
    language = language_of(text)
    tags = " ".join(lesson.tags).replace("/", " ").replace("-", " ")
    wording = wording_of(language)
    if wording is None:
        words = words_in_order(f"{text} {tags}".lower())
        stems = frozenset(stem(word, language) for word in words if word not in STOP_WORDS)
        return Reading(lesson, None, stems, (), (), ())

    spans = sentence_spans(text)[:_MAX_SENTENCES]
    sentences = [text[start:end] for start, end in spans]
    clauses: list[Clause] = []
    orders: list[Order] = []
    causes: list[Cause] = []
    for sentence in sentences:
        normalized = wording.normalize(sentence)
        if normalized.endswith("?"):
            continue
        clauses += _read_clauses(wording, sentence, normalized)
        orders += _read_orders(wording, normalized)
        causes += _read_causes(wording, normalized)

    stems = _stems(wording, tags).union(*(clause.stems for clause in clauses))
    return Reading(lesson, wording, stems, tuple(clauses), tuple(orders), tuple(causes))


def _stems(wording: Wording, text: str) -> Stems:
    """Return the words of a text that name something, with the more general ones."""
    words: set[str] = set()
    for word in words_in_order(text):
        is_name = word not in STOP_WORDS and word not in wording.empty and len(word) > 1
        if is_name and not word.isdigit():
            words.add(word)
            words.add(wording.general.get(word, word))
    return frozenset(stem(word, wording.code) for word in words)


def _read_clauses(wording: Wording, sentence: str, normalized: str) -> Iterator[Clause]:
    """Yield the clauses of a sentence that name something.

    What a sentence with a condition denies, it denies only under that condition.
    """
    is_conditional = wording.condition.search(normalized) is not None
    for part in wording.clause_end.split(normalized):
        text = part.strip(" .!")
        stems = _stems(wording, text)
        if not stems:
            continue
        denied = _read_denied(wording, text)
        yield Clause(
            text=text,
            sentence=sentence,
            stems=stems,
            denied=denied,
            is_over=wording.is_over.search(text) is not None,
            is_conditional=is_conditional or wording.exception.search(text) is not None,
            effect=_read_effect(wording, text),
            amounts=frozenset(_read_amounts(wording, text)),
            measured=_read_measured(wording, text) or stems,
            sides=_read_sides(wording, text),
        )


def _read_denied(wording: Wording, text: str) -> Stems:
    """Return the words of what a clause denies or says to be over; none if it does neither.

    What only describes a thing ("a name that was not found") denies nothing.
    """
    main_text = wording.description.split(text, maxsplit=1)[0]
    if wording.no_denial.search(main_text):
        return frozenset()
    rest = wording.denies_rest.search(main_text)
    if rest is not None:
        return _stems(wording, main_text[rest.end() :])

    over = wording.is_over.search(main_text)
    if over is not None:
        named = _stems(wording, main_text[over.end() :])
        return named or _stems(wording, main_text)
    if wording.denies_clause.search(main_text):
        return _stems(wording, main_text)
    return frozenset()


def _read_effect(wording: Wording, text: str) -> str:
    """Return the name of the first effect that a clause matches; "" for none."""
    for name, pattern in wording.effects.items():
        if pattern.search(text):
            return name
    return ""


def _read_sides(wording: Wording, text: str) -> Sides:
    """Return which of two opposite things a clause says, without those of which it says both."""
    sides: dict[str, bool] = {}
    for opposites in wording.opposites:
        is_one = opposites.one.search(text) is not None
        is_other = opposites.other.search(text) is not None
        if is_one != is_other:
            sides[opposites.reason] = is_one
    return sides


def _read_amounts(wording: Wording, text: str) -> Iterator[Amount]:
    """Yield the amounts of a clause. Numbers that name something, and years, are none."""
    for match in _AMOUNT.finditer(text):
        numeral, unit_word = match.groups()
        text_before = text[: match.start()]
        if unit_word in STOP_WORDS:
            continue
        if _YEAR.fullmatch(numeral) or _is_name(wording, text_before):
            continue
        is_date = unit_word in wording.general
        is_limit = wording.bounds.search(text_before) is not None
        if is_date or is_limit:
            continue

        number = _read_number(wording, numeral)
        if number is not None:
            unit = wording.units.get(unit_word) or stem(unit_word, wording.code)
            yield Amount(number, unit)


def _read_number(wording: Wording, numeral: str) -> float | None:
    """Return the value of digits or a numeral; None for a word that is no numeral."""
    if numeral in wording.numbers:
        return wording.numbers[numeral]
    if numeral.isalpha():
        return None
    return float(numeral)


def _read_measured(wording: Wording, text: str) -> Stems:
    """Return the words of a clause before its first amount; none if there is no such word."""
    for match in _AMOUNT.finditer(text):
        numeral = match[1]
        if numeral.isdecimal() or numeral in wording.numbers:
            return _stems(wording, text[: match.start()])
    return frozenset()


def _is_name(wording: Wording, text_before: str) -> bool:
    """Return whether the number behind a text is a name, such as that of a version."""
    words = text_before.split()
    return bool(words) and words[-1] in wording.naming


def _read_orders(wording: Wording, text: str) -> Iterator[Order]:
    """Yield the order that a sentence prescribes, if it does. A denied order is none."""
    if wording.denies_clause.search(text):
        return
    for cue, is_earlier_first in ((wording.earlier_first, True), (wording.later_first, False)):
        match = cue.search(text)
        if match is None:
            continue
        left = _stems(wording, text[: match.start()])
        right = _stems(wording, text[match.end() :])
        yield Order(left, right) if is_earlier_first else Order(right, left)
        return


def _read_causes(wording: Wording, text: str) -> Iterator[Cause]:
    """Yield the cause that a sentence names, if it names one without denying it."""
    match = wording.cause.search(text)
    if match is None or wording.denies_clause.search(text[: match.start()]):
        return
    effect = _stems(wording, text[: match.start()])
    reason_text = wording.clause_end.split(text[match.end() :], maxsplit=1)[0]
    cause = _stems(wording, reason_text)
    if effect and cause:
        yield Cause(effect, cause)
