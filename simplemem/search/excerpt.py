"""The part of a note that is shown with a hit. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from simplemem.index.door import Position

_STEM = 4  # letters of a word that its forms share, and of an ending
_LOOKED_AT = 100  # words found


def passage_around(passages: Sequence[Position], place: Position | None) -> Position | None:
    """The passage a block stands in, or the passage itself."""
    if place is None:
        return passages[0] if passages else None
    for passage in passages:
        if passage.start <= place.start < passage.stop:
            return passage
    return place


def where_words_stand(
    text: str, passages: Sequence[Position], place: Position | None, words: Sequence[str], limit: int
) -> tuple[Position | None, Position | None]:
    """The passage to show and the place in it: in a long block, where most of the words stand together."""
    if place is None or place.stop - place.start <= limit:
        return passage_around(passages, place), place
    at = place.start + _first_of_most(_plain(text[place.start : place.stop]), words, limit)
    there = replace(place, start=at, line=place.line + text.count("\n", place.start, at))
    around = passage_around(passages, there)
    if around is None or at == place.start:
        return around, place
    return around, replace(there, start=max(around.start, at - limit // 4))


def _first_of_most(plain: str, words: Sequence[str], limit: int) -> int:
    """An offset where a stretch begins that holds most of the words; 0 when the beginning holds as many."""
    beginnings = {_plain(word)[: max(_STEM, len(word) - _STEM)] for word in words}
    found = sorted((m.start(), word) for word in beginnings for m in re.finditer(re.escape(word), plain))[:_LOOKED_AT]
    best, most = 0, len({word for at, word in found if at < limit * 3 // 4})
    for k, (start, _) in enumerate(found):
        held = len({word for at, word in found[k:] if at < start + limit * 2 // 3})
        if held > most:
            best, most = start, held
    return best


_SPACE = re.compile(r"\s+")


def snippet(text: str, passage: Position, place: Position | None, limit: int) -> str:
    """The passage in one line of at most `limit` characters, beginning near the place that was found."""
    if passage.stop - passage.start <= limit:
        return squeezed(text[passage.start : passage.stop])
    before = "… "
    start = passage.start if place is None else max(passage.start, min(place.start, passage.stop - limit + len(before)))
    if start > passage.start and not text[start - 1].isspace() and (space := text.find(" ", start, start + 30)) > 0:
        start = space + 1
    before = before if start > passage.start else ""
    shown = squeezed(text[start : min(passage.stop, start + 2 * limit)])
    if len(shown) + len(before) > limit:
        cut = shown.rfind(" ", limit // 2, limit - len(before) - 1)
        shown = shown[: cut if cut > 0 else limit - len(before) - 1] + "…"
    return before + shown


def _plain(text: str) -> str:
    """In small letters without accents, every character in its place."""
    return text.lower() if text.isascii() else "".join(map(_letter, text))


@lru_cache(maxsize=10_000)
def _letter(character: str) -> str:
    apart = unicodedata.normalize("NFD", character)
    return (apart[0] if len(apart) > 1 and unicodedata.combining(apart[1]) else character).lower()[0]


def squeezed(text: str) -> str:
    """Runs of space and line ends as one space."""
    return _SPACE.sub(" ", text).strip()
