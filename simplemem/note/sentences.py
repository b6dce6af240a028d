"""Sentences that say the same, and those that say it differently: what can be told by their words alone. Pure.

Two sentences disagree when they are made of the same words but for one number, one date or a negation, and that number
is not what their notes are about (*Flight 2*, *2026-01-24*). No subject is guessed at and nothing is rewritten: which
of them is true, only a reader can say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from simplemem.note.passages import sentence_spans
from simplemem.note.words import STOP_WORDS, words_in_order

_LEAST_WORDS = 3  # beside numbers and the words that only hold it together: fewer say too little to compare
_GAP = "#"

_NEGATIONS = frozenset("not never no cannot nicht kein keine nie pas jamais nunca".split())
_NAMED_VALUES = frozenset(
    """two three four five six seven eight nine ten eleven twelve hundred thousand million half
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday""".split()
)
_CONTRACTED = re.compile(r"n['’]t\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it stands in a text, from `start`, and what it is compared by."""

    start: int
    text: str
    words: tuple[str, ...]
    frame: tuple[str, ...]  # the words that carry meaning, with gaps for numbers and dates
    values: tuple[str, ...]  # what stands in the gaps
    negated: bool

    def says_enough(self) -> bool:
        """Whether it says enough for a difference to mean something."""
        return sum(word != _GAP for word in self.frame) >= _LEAST_WORDS


def sentences(text: str) -> list[Sentence]:
    """The sentences of a passage without its headings; every list item and row of a table is one at least."""
    found = (_sentence(start, text[start:stop]) for start, stop in sentence_spans(text))
    return [sentence for sentence in found if sentence.words]


def _sentence(start: int, said: str) -> Sentence:
    words = words_in_order(_CONTRACTED.sub(" not", said))
    kept = [word for word in words if word not in _NEGATIONS and (word not in STOP_WORDS or _is_value(word))]
    frame: list[str] = []
    values: list[str] = []
    for is_value, run in groupby(kept, _is_value):
        if is_value:  # `24 January 2026` and `31.2` are one value each
            frame.append(_GAP)
            values.append(" ".join(run))
        else:
            frame += run
    negated = sum(word in _NEGATIONS for word in words) % 2 == 1
    return Sentence(start, said, tuple(words), tuple(frame), tuple(values), negated)


def _is_value(word: str) -> bool:
    return word in _NAMED_VALUES or _NUMBER.search(word) is not None


def disagree(one: Sentence, other: Sentence, about_one: str, about_other: str) -> bool:
    """Whether two sentences of one frame differ in exactly one value, or in a negation. `about` is what the notes call
    themselves: a value that stands there tells two subjects apart and not two opinions."""
    if one.frame != other.frame or not one.says_enough():
        return False
    differing = [
        (a, b) for a, b in zip(one.values, other.values, strict=True) if a.replace(" ", "") != b.replace(" ", "")
    ]
    if not differing:
        return one.negated != other.negated
    if len(differing) > 1 or one.negated != other.negated:
        return False
    a, b = differing[0]
    return not (_names(a, about_one) or _names(b, about_other))


def _names(value: str, about: str) -> bool:
    """Whether a note is called by a value: all its numbers stand there, however a date is written."""
    numbers = {int(each) for each in _NUMBER.findall(value)}
    if not numbers:
        return set(value.split()) <= set(words_in_order(about))
    return numbers <= {int(each) for each in _NUMBER.findall(about)}
