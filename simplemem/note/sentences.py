"""Sentences of Markdown: where they stand, and whether two of them disagree. Pure.

Two sentences disagree if they are made of the same words except for one number, one date or a
negation, and that number or date is not what their notes are about ("Flight 2", "2026-01-24").
Which of the two is true, only a reader can decide.

To be compared, a sentence is split into its frame, values and negations. The frame of "The dam is
not 31 m high" is ("dam", "#", "m", "high"): the words that carry meaning, with a gap for each
value. Its value is "31".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from simplemem.note.sentence_ends import sentence_ends
from simplemem.note.words import STOP_WORDS, skip_blank, words_in_order

_LINE_START = re.compile(r"(?<=\n)")
# The marker of a list item, with the box of a task, or the first bar of a table row.
_MARKER = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?|\|[ \t]*)")
_HEADING = re.compile(r"[ \t>]*#{1,6}[ \t]")

_GAP = "#"  # in a frame: the place of a value
_MIN_FRAME_WORDS = 3  # a frame with fewer words, not counting gaps, says too little to compare

_NEGATIONS = frozenset("not never no cannot nicht kein keine nie pas jamais nunca".split())
_NAMED_VALUES = frozenset(
    """two three four five six seven eight nine ten eleven twelve hundred thousand million half
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday""".split()
)
_CONTRACTED_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_MAX_DIGITS = 1_000


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it stands in a text, from the offset `start`, and what it is compared by."""

    start: int
    text: str
    words: tuple[str, ...]  # all words in lower case
    frame: tuple[str, ...]  # the words that carry meaning, with gaps for numbers and dates
    values: tuple[str, ...]  # the number or date in each gap
    negated: bool

    def says_enough(self) -> bool:
        """Return whether the frame has enough words for a difference to mean something."""
        words = [word for word in self.frame if word != _GAP]
        return len(words) >= _MIN_FRAME_WORDS


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of some Markdown, without blanks around it.

    Each list item and table row with text is at least one sentence, without its marker. Headings
    are left out. Code is not recognised: callers must leave it out of `text`.
    """
    spans: list[tuple[int, int]] = []
    for run_start, run_end in _text_runs(text):
        position = run_start
        for stop in (*sentence_ends(text, run_start, run_end), run_end):
            start = skip_blank(text, position)
            if start < stop:
                sentence = text[start:stop].rstrip()
                spans.append((start, start + len(sentence)))
            position = stop
    return spans


def _text_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each paragraph, list item and table row, without its marker.

    Headings and blank lines are left out.
    """
    start: int | None = None
    end = 0
    offset = 0

    # The blank line at the end closes the last run.
    for line in [*_LINE_START.split(text), ""]:
        marker = _MARKER.match(line)
        is_heading = _HEADING.match(line) is not None
        is_blank = not line.strip()

        if start is not None and (marker or is_heading or is_blank):
            yield start, end
            start = None

        if not is_blank and not is_heading:
            if start is None:
                marker_length = marker.end() if marker else 0
                start = offset + marker_length
            end = offset + len(line)

        offset += len(line)


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a passage that have words, without its headings.

    Each has its words sorted by role, so that `contradicts` can compare it with others.
    """
    result: list[Sentence] = []
    for start, end in sentence_spans(text):
        sentence = _read_sentence(text[start:end], start)
        if sentence.words:
            result.append(sentence)
    return result


def _read_sentence(text: str, start: int) -> Sentence:
    """Return a sentence with its words sorted by role. `start` is its offset in the note."""
    words = words_in_order(_CONTRACTED_NOT.sub(" not", text))
    frame, values = _split_values(words)
    negations = sum(word in _NEGATIONS for word in words)

    return Sentence(
        start=start,
        text=text,
        words=tuple(words),
        frame=tuple(frame),
        values=tuple(values),
        negated=negations % 2 == 1,  # two negations cancel each other out
    )


def _split_values(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the frame of a sentence, and the values in its gaps.

    `words` are all its words. Neighbouring values count as one, such as `24 January 2026` and
    `31.2`.
    """
    frame: list[str] = []
    values: list[str] = []

    meaningful = [word for word in words if _carries_meaning(word)]
    for is_value, run in groupby(meaningful, _is_value):
        if is_value:
            frame.append(_GAP)
            values.append(" ".join(run))
        else:
            frame.extend(run)
    return frame, values


def _carries_meaning(word: str) -> bool:
    """Return whether a word is part of the frame: no negation, and no stop word unless a value."""
    if word in _NEGATIONS:
        return False
    return word not in STOP_WORDS or _is_value(word)


def _is_value(word: str) -> bool:
    """Return whether a word has a digit, or is the name of a number, month or day of the week."""
    return word in _NAMED_VALUES or _NUMBER.search(word) is not None


def contradicts(one: Sentence, other: Sentence, about_one: str, about_other: str) -> bool:
    """Return whether two sentences with the same frame differ in a negation or in one value.

    Returns False if they differ in both, in more than one value, or in nothing, and for sentences
    with too few words. `about_one` and `about_other` say what the notes of the sentences are about,
    such as their titles. A differing value that is mentioned there does not count.
    """
    if one.frame != other.frame or not one.says_enough():
        return False

    differences = _differing_values(one, other)
    is_negation_different = one.negated != other.negated
    if not differences:
        return is_negation_different
    if len(differences) > 1 or is_negation_different:
        return False

    value, other_value = differences[0]
    return not (_mentions(about_one, value) or _mentions(about_other, other_value))


def _differing_values(one: Sentence, other: Sentence) -> list[tuple[str, str]]:
    """Return the pairs of values, of `one` and of `other`, that differ in more than spaces.

    Both sentences must have the same frame.
    """
    pairs = zip(one.values, other.values, strict=True)
    return [
        (value, other_value)
        for value, other_value in pairs
        if value.replace(" ", "") != other_value.replace(" ", "")
    ]


def _mentions(about: str, value: str) -> bool:
    """Return whether a text has all numbers of a value or, if it has no numbers, all its words.

    Of a date, only the numbers are compared then: its month may be written in any way.
    """
    numbers = _numbers(value)
    if numbers:
        return numbers <= _numbers(about)
    return set(value.split()) <= set(words_in_order(about))


def _numbers(text: str) -> set[int | str]:
    """Return the numbers of a text: every run of digits as an integer.

    Runs of more than 1,000 digits stay text, because Python refuses to convert very long ones.
    """
    numbers: set[int | str] = set()
    for digits in _NUMBER.findall(text):
        if len(digits) <= _MAX_DIGITS:
            numbers.add(int(digits))
        else:
            numbers.add(digits)
    return numbers
