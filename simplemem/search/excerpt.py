"""What of a note is quoted: the excerpt that is shown with a hit, and passages in answers. Pure.

HTML comments are never shown. Comments of Obsidian, badges and text that stands in many notes are left out at the edges
of what is shown, and wherever the note has other text that holds a word of the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from simplemem.index.door import Position
from simplemem.note.unseen import Span, blanked, without_html_comments, without_unseen
from simplemem.search.rank import snippet, where_words_stand, words_begun

_LINK_TARGET = re.compile(r"\]\([^()\n]*\)")


class Quotable(NamedTuple):
    """The text of a note as it may be quoted, in versions from the one that leaves out most.

    Each version has spaces in place of what it leaves out, so that every other character keeps its place.
    """

    versions: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Quotable:
        """Without comments and badges, and without HTML comments, which are never quoted."""
        return cls((without_unseen(text), without_html_comments(text)))

    @property
    def whole(self) -> str:
        """The whole text, without what is never quoted."""
        return self.versions[-1]

    def passage(self, place: Position, words: Sequence[str]) -> str:
        """The passage at a place, blank if it holds nothing to quote.

        A comment of Obsidian is quoted if the passage holds words of the question there alone.
        """
        with_words = (shown for shown in self.versions if _words_in(shown, place, words))
        shown = next(with_words, self.versions[0])
        return shown[place.start : place.stop]


def quoted_heading(headings: Sequence[str]) -> str:
    """A path of headings on one line, as it is quoted."""
    return " > ".join(" ".join(without_html_comments(heading).split()) for heading in headings)


class Excerpt(NamedTuple):
    """A part of a note on one line, the headings it stands under, and its first line in the note."""

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
    """The part of a note's text to show in `limit` characters: around `best`, the place that was found, unless it was
    found by what is not shown. `repeated` are the blocks that many notes have."""
    versions = Quotable.of(text).versions
    seen = versions[0]
    own = blanked(seen, repeated)
    shown, place = _place_to_show(text, (own, *versions), passages, best, words)

    around, place = where_words_stand(shown, passages, place, words, limit)
    if around is None or not _has_text(shown, around):
        around = next((passage for passage in passages if _has_text(shown, passage)), None)
        place = None
    if around is None:
        return Excerpt("", (), 1)

    # Between blocks of its own, a block that other notes have too stays: a list would lack a step.
    around = _without_edges(shown, around)
    stands = place or around
    return Excerpt(snippet(seen if shown is own else shown, around, place, limit), stands.headings, stands.line)


def _place_to_show(
    text: str,
    versions: Sequence[str],
    passages: Sequence[Position],
    best: Position | None,
    words: Sequence[str],
) -> tuple[str, Position | None]:
    """The first of some versions of a note, from the one that leaves out most, which has a place to show, and that
    place: the one that was found, else the passage with most of the words."""
    if best is not None and words_begun(text[best.start : best.stop], words):
        for shown in versions:
            if _words_in(shown, best, words):
                return shown, best
            passage = max(passages, key=lambda passage: _words_in(shown, passage, words), default=None)
            if passage is not None and _words_in(shown, passage, words):
                return shown, passage
    with_text = (shown for shown in versions if any(_has_text(shown, passage) for passage in passages))
    shown = next(with_text, versions[-1])
    return shown, best if best is not None and _has_text(shown, best) else None


def _words_in(shown: str, place: Position, words: Sequence[str]) -> int:
    """How many of the words a reader sees in a place; the addresses of links are not seen."""
    part = shown[place.start : place.stop]
    return words_begun(_LINK_TARGET.sub("]", part) if "](" in part else part, words)


def _has_text(shown: str, place: Position) -> bool:
    return bool(shown[place.start : place.stop].strip())


def _without_edges(shown: str, passage: Position) -> Position:
    """A passage from its first character that is shown to its last."""
    part = shown[passage.start : passage.stop]
    start = passage.start + len(part) - len(part.lstrip())
    stop = passage.start + len(part.rstrip())
    if start >= stop:
        return passage
    line = passage.line + shown.count("\n", passage.start, start)
    return passage._replace(start=start, stop=stop, line=line)
