"""Choose which part of a note is quoted: the excerpt of a hit, and passages in answers. Pure.

HTML comments are never quoted. Obsidian comments, badges and text that many notes have are hidden
if other text of the note contains a word of the query. Otherwise they are only cut off at the ends
of an excerpt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from simplemem.index.door import Position
from simplemem.note.plain_text import Span, blank_spans, without_html_comments, without_unseen
from simplemem.search.rank import snippet, where_words_stand, words_begun

_LINK_TARGET = re.compile(r"\]\([^()\n]*\)")


class Quotable(NamedTuple):
    """The text of a note as it may be quoted, in versions: the one that hides most comes first.

    Each version has spaces in place of what it hides, so that offsets are those of the note.
    """

    versions: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Quotable:
        """Return two versions: without comments and badges, and without HTML comments only."""
        return cls((without_unseen(text), without_html_comments(text)))

    @property
    def whole(self) -> str:
        """The whole text without its HTML comments."""
        return self.versions[-1]

    def passage(self, place: Position, words: Sequence[str]) -> str:
        """Return the passage at a place; blank if nothing of it may be quoted.

        An Obsidian comment is quoted if the passage contains words of the query nowhere else.
        """
        with_words = (version for version in self.versions if _words_in(version, place, words))
        version = next(with_words, self.versions[0])
        return version[place.start : place.stop]


def quoted_heading(headings: Sequence[str]) -> str:
    """Return a path of headings as one line, without HTML comments."""
    lines = [" ".join(without_html_comments(heading).split()) for heading in headings]
    return " > ".join(lines)


class Excerpt(NamedTuple):
    """A part of a note as one line of text, the headings above it, and its first line's number."""

    text: str
    headings: tuple[str, ...]
    line: int


def choose_excerpt(
    text: str,
    passages: Sequence[Position],
    best: Position | None,
    repeated: Sequence[Span],
    words: Sequence[str],
    limit: int,
) -> Excerpt:
    """Return the part of a note to show, in at most `limit` characters.

    It surrounds `best`, the place that matched the query, unless the words that matched are hidden
    there. `repeated` are the blocks that many notes have. A note without anything to quote yields
    an empty excerpt.
    """
    versions = Quotable.of(text).versions
    visible = versions[0]
    unique = blank_spans(visible, repeated)
    version, place = _place_to_show(text, (unique, *versions), passages, best, words)

    around, place = where_words_stand(version, passages, place, words, limit)
    if around is None or not _has_text(version, around):
        around = _first_with_text(version, passages)
        place = None
    if around is None:
        return Excerpt("", (), 1)

    around = _without_edges(version, around)
    location = place or around
    if version is unique:
        # Repeated blocks are cut off at the ends only: without one in its middle, a list would lack
        # a step.
        version = visible
    return Excerpt(snippet(version, around, place, limit), location.headings, location.line)


def _place_to_show(
    text: str,
    versions: Sequence[str],
    passages: Sequence[Position],
    best: Position | None,
    words: Sequence[str],
) -> tuple[str, Position | None]:
    """Return the version that hides most and still has something to show, and the place in it.

    The place is `best` if words of the query are visible there, else the passage with most of them.
    If `best` contains none of the words, it is `best` itself, or None if nothing is visible there.
    """
    if best is not None and words_begun(text[best.start : best.stop], words):
        for version in versions:
            place = _place_with_words(version, passages, best, words)
            if place is not None:
                return version, place

    with_text = (version for version in versions if _first_with_text(version, passages) is not None)
    version = next(with_text, versions[-1])
    if best is not None and _has_text(version, best):
        return version, best
    return version, None


def _place_with_words(
    version: str, passages: Sequence[Position], best: Position, words: Sequence[str]
) -> Position | None:
    """Return `best` if words of the query are visible there, else the passage with most of them.

    Returns None if the words are visible nowhere.
    """
    if _words_in(version, best, words):
        return best

    most_words = 0
    place = None
    for passage in passages:
        word_count = _words_in(version, passage, words)
        if word_count > most_words:
            most_words = word_count
            place = passage
    return place


def _first_with_text(version: str, passages: Sequence[Position]) -> Position | None:
    return next((passage for passage in passages if _has_text(version, passage)), None)


def _words_in(version: str, place: Position, words: Sequence[str]) -> int:
    """Count the words of the query that are visible in a place. The addresses of links are not."""
    part = version[place.start : place.stop]
    if "](" in part:
        part = _LINK_TARGET.sub("]", part)
    return words_begun(part, words)


def _has_text(version: str, place: Position) -> bool:
    part = version[place.start : place.stop]
    return bool(part.strip())


def _without_edges(version: str, passage: Position) -> Position:
    """Return a passage from its first visible character to its last."""
    part = version[passage.start : passage.stop]
    start = passage.start + len(part) - len(part.lstrip())
    stop = passage.start + len(part.rstrip())
    if start >= stop:
        return passage

    line = passage.line + version.count("\n", passage.start, start)
    return passage._replace(start=start, stop=stop, line=line)
