"""Choose what a context pack quotes of one note: the whole note, a section, or passages. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from simplemem.index.api import NoteDetails, TextSpan
from simplemem.note.names import compare_key
from simplemem.note.plain_text import Span, blank_spans
from simplemem.note.words import STOP_WORDS, count_tokens, words_in_order
from simplemem.search.quality import Quotable, without_edges
from simplemem.search.rank import passage_around, words_begun

_MAX_PASSAGES = 8  # of one note

# Each further passage of a note counts at most this share of the one before it.
_SHARE_OF_NEXT = 0.75


class Quoted(NamedTuple):
    """A part of a note as it is quoted."""

    span: TextSpan

    # Spaces are in place of what is not quoted, so that offsets in it are offsets in the note.
    text: str

    share: float  # how much it counts, compared with the best part of the note
    at: int  # the offset in the text at which the words of the query begin


class Room(NamedTuple):
    """How many tokens a whole note and a whole section may take; 0 if only passages may."""

    note: int
    section: int


class QuotedNote:
    """A note of which parts are quoted. Guards its text as it may be quoted."""

    def __init__(
        self,
        details: NoteDetails,
        text: str,
        words: Sequence[str],
        unquoted: Span | None = None,
    ) -> None:
        """Take a note, its text, the words of the query, and a span that is not quoted."""
        self._details = details
        self._text = text
        self._words = words
        spans = [] if unquoted is None else [unquoted]
        self._quotable = Quotable.of(blank_spans(text, spans))
        self._starts = _starts_by_passage(details)

    def whole(self, max_tokens: int) -> list[Quoted]:
        """Return the whole note as one part; nothing if it has more than `max_tokens`.

        Nothing too if it cannot be quoted.
        """
        span = self._short_span(self._details.passages, max_tokens)
        return [] if span is None else self._quoted_parts([(span, 1.0)])

    def parts(self, shares: Sequence[float], query: str, room: Room) -> list[Quoted]:
        """Return the parts to quote, those that count most first.

        `shares` say how much of the query each passage of the note covers. A section that the
        `query` names is one part if there is room for it. If nothing of the parts may be quoted,
        returns the first passage of which something may be.
        """
        parts = self.whole(room.note)
        if parts:
            return parts

        passages = self._details.passages
        weighted = [(passages[number], share) for number, share in self._best_passages(shares)]
        section = self._named_section(query, room.section)
        if section is not None:
            outside = [(span, share) for span, share in weighted if not _contains(section, span)]
            weighted = [(section, 1.0), *outside]
        return self._quoted_parts(weighted) or self._first_quotable()

    def _best_passages(self, shares: Sequence[float]) -> Iterator[tuple[int, float]]:
        """Yield the numbers of the best passages, each with how much it counts.

        Passages that cover equally much come in the order of their best blocks.
        """
        passages = self._details.passages
        numbers_of_blocks = {span: number for number, span in enumerate(self._starts)}
        last = len(numbers_of_blocks)

        def order(number: int) -> tuple[float, int, int]:
            block_number = numbers_of_blocks.get(passages[number], last)
            return -shares[number], block_number, number

        numbers = sorted(range(len(passages)), key=order)[:_MAX_PASSAGES]
        weight = 1.0
        for place, number in enumerate(numbers):
            if place:
                relative_share = shares[number] / shares[numbers[0]] if shares[number] else 0.0
                weight = min(weight * _SHARE_OF_NEXT, relative_share)
            yield number, weight

    def _named_section(self, query: str, max_tokens: int) -> TextSpan | None:
        """Return the section whose heading is a part of the query; None if there is none.

        Of several, it is the one with most words, then the first. A heading that is the title of
        the note names no section, and a section with more than `max_tokens` does not count.
        """
        title_key = compare_key(self._details.row.title)
        passages = self._details.passages
        best_section: tuple[str, ...] = ()
        most_words = 0
        for passage in passages:
            if not passage.headings or compare_key(passage.headings[-1]) == title_key:
                continue
            word_count = _words_in_query(passage.headings[-1], query)
            if word_count > most_words:
                most_words = word_count
                best_section = passage.headings

        if not best_section:
            return None
        depth = len(best_section)
        inside = [passage for passage in passages if passage.headings[:depth] == best_section]
        return self._short_span(inside, max_tokens)

    def _short_span(self, passages: Sequence[TextSpan], max_tokens: int) -> TextSpan | None:
        """Return a span that has some consecutive passages; None if it has too many tokens."""
        if not passages or not max_tokens:
            return None
        span = passages[0]._replace(stop=passages[-1].stop)
        tokens = count_tokens(self._text[span.start : span.stop])
        return span if tokens <= max_tokens else None

    def _quoted_parts(self, weighted: Sequence[tuple[TextSpan, float]]) -> list[Quoted]:
        """Return parts of the note as they are quoted, without those that must not be.

        Text that many notes have is removed from their ends. A part with nothing else is left out
        unless there is no other.
        """
        parts: list[Quoted] = []
        repeated_parts: list[Quoted] = []
        for span, share in weighted:
            visible = self._quotable.passage(span, self._words)
            if not visible.strip():
                continue
            own_span = self._without_repeated_ends(span, visible)
            quoted = self._quoted(own_span or span, visible, span.start, share)
            (parts if own_span is not None else repeated_parts).append(quoted)
        return parts or repeated_parts

    def _without_repeated_ends(self, span: TextSpan, visible: str) -> TextSpan | None:
        """Return a span without text of many notes at its ends; None if it has nothing else.

        `visible` is its text as it is quoted. Such text stays in its middle: without it, a list
        would lack an item.
        """
        if not self._details.repeated:
            return span
        inside = [
            (max(start, span.start) - span.start, min(stop, span.stop) - span.start)
            for start, stop in self._details.repeated
            if start < span.stop and span.start < stop
        ]
        unique = blank_spans(visible, inside)
        if not unique.strip():
            return None
        own = without_edges(unique, TextSpan(0, len(unique), span.line, span.headings))
        return own._replace(start=span.start + own.start, stop=span.start + own.stop)

    def _quoted(self, span: TextSpan, visible: str, visible_start: int, share: float) -> Quoted:
        """Return a part as it is quoted. `visible` is the quoted text from `visible_start` on."""
        starts = [start for start in self._starts.values() if span.start <= start < span.stop]
        word_start = starts[0] if starts else span.start
        return Quoted(
            span=span,
            text=visible[span.start - visible_start : span.stop - visible_start],
            share=share,
            at=word_start - span.start,
        )

    def _first_quotable(self) -> list[Quoted]:
        """Return the first passage of which something may be quoted, if there is one.

        The note was then found by text that is not quoted.
        """
        for span in self._details.passages:
            visible = self._quotable.passage(span, self._words)
            if visible.strip():
                return [self._quoted(span, visible, span.start, 1.0)]
        return []


def _starts_by_passage(details: NoteDetails) -> dict[TextSpan, int]:
    """Return the passages of the best blocks, best first, each with the start of its block.

    If no block matched the query, it is the passage that is most similar, with its own start.
    """
    starts: dict[TextSpan, int] = {}
    for block in details.blocks:
        passage = passage_around(details.passages, block)
        if passage is not None:
            starts.setdefault(passage, block.start)

    if not starts:
        passage = passage_around(details.passages, details.best)
        if passage is not None:
            starts[passage] = passage.start
    return starts


def _words_in_query(heading: str, query: str) -> int:
    """Return the number of words of a heading if the query contains all of them, else 0."""
    words = [word for word in words_in_order(heading) if word not in STOP_WORDS]
    contained = words_begun(query, words)
    return contained if contained == len(words) else 0


def _contains(outer: TextSpan, inner: TextSpan) -> bool:
    """Return whether a span begins and ends within another."""
    return outer.start <= inner.start and inner.stop <= outer.stop
