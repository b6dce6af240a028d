"""Choose what a context pack quotes of one note: the whole note, a section, or passages. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from simplemem.index.api import NoteDetails, TextSpan
from simplemem.note.names import compare_key
from simplemem.note.plain_text import Span, blank_spans
from simplemem.note.words import STOP_WORDS, count_tokens, words_in_order
from simplemem.search.quality import Quotable, without_edges
from simplemem.search.rank import passage_around, words_begun

_MAX_PASSAGES = 8  # of one note

# A passage counts at most this share of the better passage before it, so that no note fills a pack.
_SHARE_OF_NEXT = 0.75


class Quoted(NamedTuple):
    """A part of a note as it is quoted."""

    span: TextSpan  # where it is in the note

    # It is as long as the span: spaces are in place of what is not quoted.
    text: str

    share: float  # how much it counts, compared with the best part of the note
    at: int  # the offset in `text` of the best block that matched the query, or 0


class Room(NamedTuple):
    """How many tokens a whole note and a whole section may take; 0 if neither is quoted whole."""

    note: int
    section: int


class QuotedNote:
    """Chooses the parts of one note to quote. Guards its text, and what of it may be quoted."""

    def __init__(
        self,
        details: NoteDetails,
        text: str,
        words: Sequence[str],
        unquoted: Span | None = None,
    ) -> None:
        """Take what the index knows of a note, its text, and the words of the query.

        `unquoted` is a span that must not be quoted. Comments are never quoted (`Quotable`).
        """
        self._details = details
        self._text = text
        self._words = words
        spans = [] if unquoted is None else [unquoted]
        self._quotable = Quotable.of(blank_spans(text, spans))
        self._starts = _starts_by_passage(details)

    def whole(self, max_tokens: int) -> list[Quoted]:
        """Return the whole note as one part.

        Returns nothing if it has more than `max_tokens`, or if nothing of it may be quoted.
        """
        span = self._short_span(self._details.passages, max_tokens)
        if span is None:
            return []
        return self._quoted_parts([(span, 1.0)])

    def parts(self, shares: Sequence[float], query: str, room: Room) -> list[Quoted]:
        """Return the parts to quote, those that count most first; nothing if nothing may be quoted.

        They are the whole note if there is room for it, else up to 8 passages. A section that the
        text of the query, `query`, names is one part if there is room for it, and replaces the
        passages in it. `shares` say how much of the query each passage of the note covers.

        If nothing of these parts may be quoted, returns the first passage of which something may.
        """
        parts = self.whole(room.note)
        if parts:
            return parts

        weighted = list(self._best_passages(shares))
        section = self._named_section(query, room.section)
        if section is not None:
            outside = [(span, share) for span, share in weighted if not _contains(section, span)]
            weighted = [(section, 1.0), *outside]
        return self._quoted_parts(weighted) or self._first_quotable()

    def _best_passages(self, shares: Sequence[float]) -> Iterator[tuple[TextSpan, float]]:
        """Yield the 8 best passages, each with how much it counts: 1 for the best, then less.

        Passages that cover equally much come in the order of their best blocks. One that covers
        nothing counts 0, unless it is the first.
        """
        passages = self._details.passages
        numbers_of_blocks = {span: number for number, span in enumerate(self._starts)}
        last = len(numbers_of_blocks)

        def order(number: int) -> tuple[float, int, int]:
            """Return the key that sorts the numbers of passages, the best first."""
            block_number = numbers_of_blocks.get(passages[number], last)
            return -shares[number], block_number, number

        numbers = sorted(range(len(passages)), key=order)[:_MAX_PASSAGES]
        if not numbers:
            return

        best = numbers[0]
        weight = 1.0
        yield passages[best], weight
        for number in numbers[1:]:
            relative_share = 0.0
            if shares[number]:
                relative_share = shares[number] / shares[best]
            weight = min(weight * _SHARE_OF_NEXT, relative_share)
            yield passages[number], weight

    def _named_section(self, query: str, max_tokens: int) -> TextSpan | None:
        """Return the section whose heading is a part of the query; None if there is none.

        Of several, it is the one whose heading has most words, then the first. A heading that is
        the title of the note names no section. Returns None too if the section has more than
        `max_tokens`.
        """
        title_key = compare_key(self._details.row.title)
        passages = self._details.passages
        first = 0
        most_words = 0
        for number, passage in enumerate(passages):
            if not passage.headings or compare_key(passage.headings[-1]) == title_key:
                continue
            word_count = _words_in_query(passage.headings[-1], query)
            if word_count > most_words:
                most_words = word_count
                first = number
        if not most_words:
            return None

        # A later section with the same heading is another one, unless nothing is between them.
        section = passages[first].headings
        inside = takewhile(
            lambda passage: passage.headings[: len(section)] == section, passages[first:]
        )
        return self._short_span(list(inside), max_tokens)

    def _short_span(self, passages: Sequence[TextSpan], max_tokens: int) -> TextSpan | None:
        """Return the span of some consecutive passages; None if it has more than `max_tokens`.

        Returns None too for no passages, and if `max_tokens` is 0.
        """
        if not passages or not max_tokens:
            return None
        span = passages[0]._replace(stop=passages[-1].stop)
        tokens = count_tokens(self._text[span.start : span.stop])
        if tokens > max_tokens:
            return None
        return span

    def _quoted_parts(self, weighted: Sequence[tuple[TextSpan, float]]) -> list[Quoted]:
        """Return parts of the note as they are quoted, without those of which nothing may be.

        `weighted` has the span of each part, and how much it counts. Text that many notes have is
        removed from the ends of a part. Parts with nothing else are returned, whole, only if there
        are no others.
        """
        parts: list[Quoted] = []
        repeated_parts: list[Quoted] = []
        for span, share in weighted:
            visible = self._quotable.passage(span, self._words)
            if not visible.strip():
                continue

            own_span = self._without_repeated_ends(span, visible)
            if own_span is not None:
                quoted = self._quoted(own_span, visible, span.start, share)
                parts.append(quoted)
            else:
                quoted = self._quoted(span, visible, span.start, share)
                repeated_parts.append(quoted)
        return parts or repeated_parts

    def _without_repeated_ends(self, span: TextSpan, visible: str) -> TextSpan | None:
        """Return a span without text at its ends that many notes have; None if nothing remains.

        `visible` is the text of the span as it is quoted. In the middle, text that many notes have
        stays: without it, a list would lack an item.
        """
        if not self._details.repeated:
            return span

        # The repeated spans as offsets in `visible`.
        inside = []
        for start, stop in self._details.repeated:
            if start < span.stop and span.start < stop:
                first = max(start, span.start) - span.start
                last = min(stop, span.stop) - span.start
                inside.append((first, last))

        unique = blank_spans(visible, inside)
        if not unique.strip():
            return None
        own = without_edges(unique, TextSpan(0, len(unique), span.line, span.headings))
        return own._replace(start=span.start + own.start, stop=span.start + own.stop)

    def _quoted(self, span: TextSpan, visible: str, visible_start: int, share: float) -> Quoted:
        """Return the part of the note at a span. `share` is how much it counts.

        `visible` is text as it is quoted; its first character is at `visible_start` in the note.
        """
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
    """Return the passages of the blocks that matched, each with the start of its first block.

    They are in the order of `details.blocks`. If no block matched, it is the one passage of
    `details.best`, such as the one most similar to the query, with its own start. Empty if there is
    none either.
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
    """Return the number of words of a heading if the query contains all of them, else 0.

    English stop words do not count.
    """
    words = [word for word in words_in_order(heading) if word not in STOP_WORDS]
    contained = words_begun(query, words)
    return contained if contained == len(words) else 0


def _contains(outer: TextSpan, inner: TextSpan) -> bool:
    """Return whether a span begins and ends within another."""
    return outer.start <= inner.start and inner.stop <= outer.stop
