"""Finds the words of a query in a text, so that a page can mark them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simplemem.note.words import content_words, is_unspaced, split_words, without_accents

_WORD: Final = re.compile(r"[^\W_]+")
_SHORT_LENGTH: Final = 4  # a shorter typed word matches only itself, with or without an "s"
_LONG_LENGTH: Final = 6  # a typed word of this length may end differently from the word
_MAX_ENDING: Final = 3  # letters by which a word of the text may be longer than the typed one
_MAX_CUT: Final = 2  # last letters of such a long typed word, which need not agree


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A part of a text, and whether it is a word of the query."""

    text: str
    is_match: bool


def mark_words(text: str, query: str) -> list[MarkedText]:
    """Split a text into parts, so that each word of the query is a part of its own.

    Letter case, accents and endings do not matter. Stop words are marked only if the query has no
    others. No part is empty, and the parts joined are the text: an empty text has none.
    """
    typed_words = content_words(split_words(without_accents(query)))
    parts: list[MarkedText] = []
    end = 0
    for start, stop in _spans_of_words(text, typed_words):
        parts.append(MarkedText(text[end:start], is_match=False))
        parts.append(MarkedText(text[start:stop], is_match=True))
        end = stop
    parts.append(MarkedText(text[end:], is_match=False))
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
    if len(typed) < _SHORT_LENGTH:
        return word in (typed, f"{typed}s")
    stem = typed
    if len(typed) >= _LONG_LENGTH:
        stem = typed[:-_MAX_CUT]
    return word.startswith(stem) and len(word) <= len(typed) + _MAX_ENDING
