"""Finds the words of a query in a text, so that a page can mark them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simplemem.note.words import content_words, is_unspaced, split_words, without_accents

_WORD: Final = re.compile(r"[^\W_]+")
_MIN_LENGTH_FOR_ENDINGS: Final = 4  # a shorter typed word matches only itself, and itself with "s"
_MAX_ADDED_LETTERS: Final = 3  # by which a word of the text may be longer than the typed one
_MIN_LENGTH_FOR_CUT: Final = 6  # from which the last letters of a typed word need not agree
_CUT_LETTERS: Final = 2  # the number of these last letters


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A part of a text, and whether it is a word of the query."""

    text: str
    is_match: bool


def mark_words(text: str, query: str) -> list[MarkedText]:
    """Split a text into parts, so that each word of the query is a part of its own.

    Letter case, accents and endings do not matter. Stop words are marked only if the query has no
    other words. The parts joined are the text, and none of them is empty.
    """
    typed_words = content_words(split_words(without_accents(query)))
    parts: list[MarkedText] = []
    split_until = 0
    for start, end in _spans_of_words(text, typed_words):
        parts.append(MarkedText(text[split_until:start], is_match=False))
        parts.append(MarkedText(text[start:end], is_match=True))
        split_until = end
    parts.append(MarkedText(text[split_until:], is_match=False))
    return [part for part in parts if part.text]


def _spans_of_words(text: str, typed_words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and the end of each word of a text that is a form of a typed word."""
    spans: list[tuple[int, int]] = []
    for word in _WORD.finditer(text):
        folded = without_accents(word[0]).lower()
        if is_unspaced(folded):
            spans += _spans_in_run(word[0], word.start(), typed_words)
        elif any(_is_form_of(folded, typed) for typed in typed_words):
            spans.append(word.span())
    return spans


def _spans_in_run(run: str, start: int, typed_words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the start and the end of each typed word in a run of a script without spaces.

    The run begins at `start` of the text, and the spans are positions in the text. They do not
    overlap; of typed words that begin at one position, the longest counts.
    """
    longest_first = sorted(filter(is_unspaced, typed_words), key=len, reverse=True)
    if not longest_first:
        return []
    pattern = "|".join(map(re.escape, longest_first))
    matches = re.finditer(pattern, run)
    return [(start + match.start(), start + match.end()) for match in matches]


def _is_form_of(word: str, typed: str) -> bool:
    """Return whether a word of the text is a typed word, perhaps with another ending."""
    if len(typed) < _MIN_LENGTH_FOR_ENDINGS:
        return word in (typed, f"{typed}s")

    stem = typed
    if len(typed) >= _MIN_LENGTH_FOR_CUT:
        stem = typed[:-_CUT_LETTERS]
    return word.startswith(stem) and len(word) <= len(typed) + _MAX_ADDED_LETTERS
