"""Cut a body into passages: the pieces that are searched and quoted. Pure.

Whole blocks are packed into passages of up to about 200 tokens. A passage begins with up to 50
tokens of the one before, so that a thought at the border stands complete in one of them. Together
the passages contain all text of the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from simplemem.note.body import Body
from simplemem.note.comments import Span
from simplemem.note.lines import LINE_END, count_lines
from simplemem.note.sections import heading_paths
from simplemem.note.sentence_ends import find_end_marks
from simplemem.note.sentences import skip_blank
from simplemem.note.words import count_tokens

MAX_TOKENS = 200
OVERLAP_TOKENS = 50

# A passage with as many tokens ends before a heading of level 1 or 2.
_MIN_SECTION_TOKENS = 100
_MAX_SECTION_LEVEL = 2

_WORD = re.compile(r"\S++")


class Passage(NamedTuple):
    """A stretch of the text, its first line, and the headings it stands under, outermost first."""

    start: int
    end: int
    line: int
    headings: tuple[str, ...]


class _TextPiece(NamedTuple):
    """What passages are packed from: a block, or a part of one that is too long for a passage."""

    start: int
    end: int
    line: int
    heading: int  # the index of the heading it stands under, -1 above the first
    tokens: int
    is_heading: bool = False
    opens_section: bool = False


def cut_passages(text: str, body: Body) -> tuple[Passage, ...]:
    """Return the passages of a body in order. A body without text has none."""
    pieces = _cut_pieces(text, body)
    paths = heading_paths(body)
    passages: list[Passage] = []
    first = 0
    while first < len(pieces):
        end = _find_passage_end(pieces, first)
        passages.append(_join_pieces(pieces[first:end], paths))
        first = _find_next_start(pieces, first, end)
    return tuple(passages)


def _find_passage_end(pieces: Sequence[_TextPiece], first: int) -> int:
    """Return the index behind the last piece of the passage that begins at index `first`."""
    tokens = pieces[first].tokens
    end = first + 1
    while end < len(pieces):
        piece = pieces[end]
        if tokens + piece.tokens > MAX_TOKENS:
            break
        if piece.opens_section and tokens >= _MIN_SECTION_TOKENS:
            break
        tokens += piece.tokens
        end += 1

    # A heading goes into the same passage as the text below it.
    last = end - 1
    if last > first and end < len(pieces):
        is_heading_cut_off = pieces[last].is_heading and not pieces[end].is_heading
        if is_heading_cut_off:
            return last
    return end


def _find_next_start(pieces: Sequence[_TextPiece], first: int, end: int) -> int:
    """Return with which piece the passage after `pieces[first:end]` begins.

    It repeats the last pieces of up to `OVERLAP_TOKENS`, but never so many that its first new
    piece would not fit. Sections do not overlap.
    """
    if end == len(pieces) or pieces[end].opens_section:
        return end

    free_tokens = min(OVERLAP_TOKENS, MAX_TOKENS - pieces[end].tokens)
    start = end
    while start - 1 > first and pieces[start - 1].tokens <= free_tokens:
        start -= 1
        free_tokens -= pieces[start].tokens
    return start


def _join_pieces(pieces: Sequence[_TextPiece], paths: Sequence[tuple[str, ...]]) -> Passage:
    """Return the passage of some pieces. Its headings are those of its first text."""
    first = pieces[0]
    first_text = next((piece for piece in pieces if not piece.is_heading), first)
    return Passage(
        start=first.start,
        end=pieces[-1].end,
        line=first.line,
        headings=paths[first_text.heading],
    )


def _cut_pieces(text: str, body: Body) -> list[_TextPiece]:
    """Return the blocks of a body as pieces. Blocks that are too long are cut.

    What the body has between blocks, such as rules and empty items, belongs to the block before.
    """
    pieces: list[_TextPiece] = []
    counted_to = 0
    line = 1
    for index, (block_start, next_start) in enumerate(pairwise(_block_borders(text, body))):
        start = skip_blank(text, block_start)
        end = start + len(text[start:next_start].rstrip())
        if start == end:
            continue

        line += count_lines(text, counted_to, start)
        counted_to = start
        piece = _block_piece(text, body, index, start, end, line)

        if piece.tokens > MAX_TOKENS:
            pieces.extend(_cut_piece(text, piece))
        else:
            pieces.append(piece)
    return pieces


def _block_borders(text: str, body: Body) -> list[int]:
    """Return where the body's text begins, where each block but the first begins, and the end.

    A body may have text before its first block, or no blocks, for example if it is only a rule.
    """
    later_starts = [block.start for block in body.blocks[1:]]
    return [skip_blank(text, body.start), *later_starts, len(text)]


def _block_piece(text: str, body: Body, index: int, start: int, end: int, line: int) -> _TextPiece:
    """Return the piece from `start` to `end`, which has the block of that index if there is one."""
    tokens = count_tokens(text[start:end])
    if not body.blocks:
        return _TextPiece(start, end, line, -1, tokens)

    block = body.blocks[index]
    if block.kind != "heading":
        return _TextPiece(start, end, line, block.heading, tokens)

    opens_section = body.headings[block.heading].level <= _MAX_SECTION_LEVEL
    return _TextPiece(
        start=start,
        end=end,
        line=line,
        heading=block.heading,
        tokens=tokens,
        is_heading=True,
        opens_section=opens_section,
    )


def _cut_piece(text: str, piece: _TextPiece) -> Iterator[_TextPiece]:
    """Yield the parts of a piece: its lines or, of long lines, sentences, words or characters."""
    spans = _line_spans(text, piece.start, piece.end)
    for line, (line_start, line_end) in enumerate(spans, start=piece.line):
        for part_start, part_end, tokens in _line_parts(text, line_start, line_end):
            if tokens > 0:
                start = skip_blank(text, part_start)
                end = start + len(text[start:part_end].rstrip())
                yield _TextPiece(start, end, line, piece.heading, tokens)


def _line_spans(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the start and end of each line, without its line end."""
    line_start = start
    for match in LINE_END.finditer(text, start, end):
        yield line_start, match.start()
        line_start = match.end()
    yield line_start, end


def _line_parts(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the line, or the parts of one that is too long: start, end, tokens."""
    tokens = count_tokens(text[start:end])
    if tokens <= MAX_TOKENS:
        yield start, end, tokens
        return

    for sentence_start, sentence_end in _sentence_spans(text, start, end):
        tokens = count_tokens(text[sentence_start:sentence_end])
        if tokens <= MAX_TOKENS:
            yield sentence_start, sentence_end, tokens
        else:
            yield from _word_runs(text, sentence_start, sentence_end)


def _sentence_spans(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the start and end of each stretch up to a mark that may end a sentence.

    Abbreviations end a stretch too. Their list grows, but the passages of unchanged notes must
    stay as they are: the index stores them and their vectors.
    """
    position = start
    for mark in find_end_marks(text, start, end):
        yield position, mark.end()
        position = mark.end()
    if position < end:
        yield position, end


def _word_runs(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield runs of words of a long sentence: start, end, tokens.

    A run has a quarter of the tokens of a passage, so that passages of runs still overlap.
    A long word of other scripts is cut between characters. One in ASCII, such as an address or
    encoded data, stays whole.
    """
    is_ascii = text.isascii()
    run_start = start
    run_tokens = 0
    word_start = start  # with the blanks before the word
    for word_end in _word_ends(text, start, end):
        if is_ascii and word_end < end:
            # The same as count_tokens() of one word in ASCII, for speed.
            length = word_end - word_start
            tokens = length // 4 if length >= 12 else 2
        else:
            tokens = count_tokens(text[word_start:word_end])

        if run_tokens and run_tokens + tokens > OVERLAP_TOKENS:
            yield run_start, word_start, run_tokens
            run_start = word_start
            run_tokens = 0

        if tokens > MAX_TOKENS and not text[word_start:word_end].isascii():
            for cut in _character_cuts(word_start, word_end, tokens):
                yield run_start, cut, OVERLAP_TOKENS
                run_start = cut
            tokens = count_tokens(text[run_start:word_end])

        run_tokens += tokens
        word_start = word_end

    if run_tokens:
        yield run_start, end, run_tokens


def _word_ends(text: str, start: int, end: int) -> list[int]:
    """Return where each word ends, and the end of the text if there are blanks behind the last."""
    ends = [word.end() for word in _WORD.finditer(text, start, end)]
    if not ends or ends[-1] != end:
        ends.append(end)
    return ends


def _character_cuts(start: int, end: int, tokens: int) -> range:
    """Return where to cut a word of so many tokens into parts of about `OVERLAP_TOKENS`."""
    step = max(1, (end - start) * OVERLAP_TOKENS // tokens)
    return range(start + step, end, step)
