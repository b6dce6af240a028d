"""Find sections of a note, cut its text into passages, and compute fingerprints of texts. Pure.

Fingerprints tell equal texts: of two blocks, or of a passage now and when its vector was computed.
Sections are what people and agents name to read or change a part of a note. Passages are what
searches find and vectors are made of.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from simplemem.note.body import Body, Heading, read_body
from simplemem.note.header import read_header
from simplemem.note.plain_text import Span, without_html_comments
from simplemem.note.sentence_ends import find_end_marks
from simplemem.note.words import LINE_END, count_lines, count_tokens, newline_of, skip_blank

# -- fingerprints

_ADDRESS_OR_TAG = re.compile(r"\]\([^()\n]*\)|<[^<>\n]*>|(?<![a-z])[a-z]++://\S+")
_BLANK = re.compile(r"\s")
_MAX_PIECE_CHARACTERS = 100_000  # a list of all words of a long text would take much memory


def text_hash(text: str) -> bytes:
    """Return the first 16 bytes of the SHA-256 of a text, by which changes of it are noticed.

    The index stores it beside the vector that was computed from the text.
    """
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).digest()[:16]


def text_key(text: str) -> int | None:
    """Return a number that is equal for two blocks that read the same; None without words.

    Addresses, HTML tags and white space make no difference; letter case and marks do. The number
    has 64 bits and a sign. A text without letters and digits has no words.
    """
    if "](" in text or "<" in text or "://" in text:
        text = _ADDRESS_OR_TAG.sub(" ", text)

    # The digest of all words with one space between them, computed piece by piece.
    digest = hashlib.blake2b(digest_size=8)
    has_word = False
    separator = ""
    for piece in _pieces(text):
        words = " ".join(piece.split())
        if words:
            data = (separator + words).encode("utf-8", "surrogatepass")
            digest.update(data)
            separator = " "
            has_word = has_word or any(map(str.isalnum, words))
    if not has_word:
        return None
    return int.from_bytes(digest.digest(), "big", signed=True)


def _pieces(text: str) -> Iterator[str]:
    """Yield a long text in pieces of about 100,000 characters that end at white space.

    A text without white space is one piece. Joined, the pieces are the text.
    """
    start = 0
    while len(text) - start > _MAX_PIECE_CHARACTERS:
        blank = _BLANK.search(text, start + _MAX_PIECE_CHARACTERS)
        if blank is None:
            break
        yield text[start : blank.start()]
        start = blank.start()
    yield text[start:]


# -- sections

_ONLY_BLOCK_ID = re.compile(r"[ \t>]*+\^([A-Za-z0-9-]+)[ \t]*$")
_ASCII_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def heading_paths(body: Body) -> list[tuple[str, ...]]:
    """Return the path of each heading, outermost heading first, and an empty path behind them.

    A path has the texts of the headings, with that of the heading itself as the last. The empty
    path is for text above the first heading, whose heading has the index -1.
    """
    paths: list[tuple[str, ...]] = []
    open_headings: list[Heading] = []
    for heading in body.headings:
        while open_headings and open_headings[-1].level >= heading.level:
            open_headings.pop()
        open_headings.append(heading)
        paths.append(tuple([parent.text for parent in open_headings]))

    paths.append(())
    return paths


def find_section(text: str, body: Body, section: str) -> Span | None:
    """Return the start and end of a section or block, or None if the note has no such one.

    A section is named by its heading or by a part of the heading's path: "Heading", "#Heading#Sub"
    or "Heading > Sub". It goes from its heading to the next one of the same or a higher rank. A
    block is named by its id: "^id", also below a heading: "Heading > ^id". Of several with the
    name, the first is returned. Letter case and punctuation do not matter.
    """
    # A heading may contain " > " itself, so the name is first looked up as it is.
    for name in (section, section.replace(" > ", "#")):
        parts = [part.strip() for part in name.split("#") if part.strip()]
        if not parts:
            continue

        *headings, last_part = parts
        if last_part.startswith("^"):
            block_id = last_part.removeprefix("^")
            return _find_block_below(text, body, headings, block_id)

        span = _find_heading_section(text, body, parts)
        if span is not None:
            return span
    return None


def _find_block_below(
    text: str,
    body: Body,
    headings: Sequence[str],
    block_id: str,
) -> Span | None:
    """Return the span of the block with an id, if it is in the section that headings name.

    Without headings, the whole note is searched. Returns None if there is no such block or section.
    """
    block = _find_block(text, body, block_id)
    if block is None or not headings:
        return block

    section = _find_heading_section(text, body, headings)
    if section is None:
        return None

    block_start, _ = block
    section_start, section_end = section
    if not section_start <= block_start < section_end:
        return None
    return block


def _find_block(text: str, body: Body, block_id: str) -> Span | None:
    """Return the span of the block with an id, in any case of letters; None if there is none.

    If the id stands alone in a block, the span also has the block before it, which the id names.
    """
    line = _line_of_block_id(body, block_id)
    if line is None:
        return None

    index = bisect_right(body.blocks, line, key=lambda block: block.line) - 1
    block = body.blocks[index]
    block_text = text[block.start : block.end]

    # An id alone on its line names the block before it.
    if index > 0 and _ONLY_BLOCK_ID.fullmatch(block_text):
        block_before = body.blocks[index - 1]
        return block_before.start, block.end
    return block.start, block.end


def _line_of_block_id(body: Body, block_id: str) -> int | None:
    """Return the line of the first block id that is equal but for case; None if there is none."""
    key = block_id.casefold()
    for other_id, line in body.block_ids:
        if other_id.casefold() == key:
            return line
    return None


def _find_heading_section(
    text: str,
    body: Body,
    parts: Sequence[str],
) -> Span | None:
    """Return the span of the first section whose heading's path has these parts in this order.

    The last part is the section's own heading. Other headings of the path may be left out. Returns
    None if there is no such section.
    """
    keys = [_heading_key(part) for part in parts]
    paths = heading_paths(body)
    for index, heading in enumerate(body.headings):
        path_keys = [_heading_key(name) for name in paths[index]]
        if keys[-1] != path_keys[-1]:
            continue
        if _contains_in_order(path_keys, keys):
            return heading.start, _section_end(text, body, index)
    return None


def _contains_in_order(path_keys: Sequence[str], keys: Sequence[str]) -> bool:
    """Return whether all keys occur in a path in their order. Others may stand between them."""
    matched = 0
    for path_key in path_keys:
        if matched < len(keys) and path_key == keys[matched]:
            matched += 1
    return matched == len(keys)


def _section_end(text: str, body: Body, index: int) -> int:
    """Return where the next heading of the same or a higher rank begins, or the text ends."""
    level = body.headings[index].level
    for heading in body.headings[index + 1 :]:
        if heading.level <= level:
            return heading.start
    return len(text)


def _heading_key(heading: str) -> str:
    """Return a key that is equal for headings that a link does not distinguish.

    As in Obsidian, case, ASCII punctuation and repeated spaces make no difference. Neither do HTML
    comments: answers do not quote them, so an agent does not know them.
    """
    visible = without_html_comments(heading)
    words = _ASCII_PUNCTUATION.sub(" ", visible).casefold().split()
    return " ".join(words)


def section_span(text: str, section: str) -> Span | None:
    """Return the start and end of a section or block of a note, or None if it has none.

    `section` is its name, as in `find_section`.
    """
    body_start = read_header(text).body_start
    return find_section(text, read_body(text, body_start), section)


def add_line(
    text: str,
    section: str,
    line: str,
    at: int | None = None,
) -> str:
    """Return the note with a line added to a section: at the offset `at`, or at its end.

    `at` is an offset of the whole text, at the beginning of a line in the section; it is not
    checked. A section that does not exist is added at the end of the note as a heading of level 2,
    with the line; `at` is then not used.
    """
    newline = newline_of(text)
    span = section_span(text, section)

    if span is None:
        gap = _gap_before_heading(text, newline)
        new_section = f"## {section}{newline}{newline}{line}{newline}"
        return text + gap + new_section

    if at is not None:
        added = line + newline
        return text[:at] + added + text[at:]
    return _add_line_at_end(text, span, line, newline)


def _gap_before_heading(text: str, newline: str) -> str:
    """Return the line ends that a text lacks to end with a blank line."""
    if text.endswith(newline * 2):
        return ""
    if text.endswith(newline):
        return newline
    return newline * 2


def _add_line_at_end(text: str, span: Span, line: str, newline: str) -> str:
    """Return the text with a line behind the last text of a section.

    Blank lines at the end of the section stay below the new line.
    """
    start, end = span
    section_text = text[start:end].rstrip()
    insert_at = start + len(section_text)

    # A blank line separates the heading from the first line below it.
    has_only_heading = LINE_END.search(section_text) is None
    gap = newline * 2 if has_only_heading else newline
    added = gap + line
    rest = text[insert_at:] or newline  # the last line of the note gets a line end
    return text[:insert_at] + added + rest


# -- passages

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
    """Return the passages of a body in order: what searches find and vectors are made of.

    A passage has whole blocks with at most 200 tokens together; a longer block is cut. Neighbours
    in one section overlap by up to 50 tokens. A body without text has no passages.
    """
    pieces = _cut_pieces(text, body)
    paths = heading_paths(body)
    passages: list[Passage] = []
    first = 0
    while first < len(pieces):
        end = _find_passage_end(pieces, first)
        passage = _join_pieces(pieces[first:end], paths)
        passages.append(passage)
        first = _find_next_start(pieces, first, end)
    return tuple(passages)


def _find_passage_end(pieces: Sequence[_TextPiece], first: int) -> int:
    """Return the index behind the last piece of the passage that begins at index `first`.

    A passage has at least one piece. It does not end with a heading if the text below the heading
    would be in the next passage, unless the heading is its only piece.
    """
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
    """Return the index of the piece with which the passage after `pieces[first:end]` begins.

    That passage repeats the last pieces, of up to `OVERLAP_TOKENS` together, but never so many that
    its first new piece would not fit. Passages of different sections do not overlap. Returns `end`
    at the end of the pieces.
    """
    if end == len(pieces) or pieces[end].opens_section:
        return end

    free_tokens = min(OVERLAP_TOKENS, MAX_TOKENS - pieces[end].tokens)
    start = end
    while start - 1 > first and pieces[start - 1].tokens <= free_tokens:
        start -= 1
        free_tokens -= pieces[start].tokens
    return start


def _join_pieces(
    pieces: Sequence[_TextPiece],
    paths: Sequence[tuple[str, ...]],
) -> Passage:
    """Return the passage of some pieces, at least one, which follow each other.

    Its headings are those of its first piece that is no heading, or of the first piece if all are
    headings. `paths` are those of `heading_paths`, which the `heading` of a piece indexes.
    """
    first = pieces[0]
    texts = (piece for piece in pieces if not piece.is_heading)
    first_text = next(texts, first)
    return Passage(
        start=first.start,
        end=pieces[-1].end,
        line=first.line,
        headings=paths[first_text.heading],
    )


def _cut_pieces(text: str, body: Body) -> list[_TextPiece]:
    """Return the blocks of a body as pieces, in order. Blocks that are too long are cut.

    What the body has between blocks, such as rules and empty items, belongs to the block before.
    Blank blocks are left out.
    """
    pieces: list[_TextPiece] = []
    counted_to = 0
    line = 1
    borders = _block_borders(text, body)
    for index, (block_start, next_start) in enumerate(pairwise(borders)):
        start = skip_blank(text, block_start)
        block_text = text[start:next_start].rstrip()
        if not block_text:
            continue

        end = start + len(block_text)
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
    first_start = skip_blank(text, body.start)
    later_starts = [block.start for block in body.blocks[1:]]
    return [first_start, *later_starts, len(text)]


def _block_piece(
    text: str,
    body: Body,
    index: int,
    start: int,
    end: int,
    line: int,
) -> _TextPiece:
    """Return text[start:end] as a piece under the heading of the block with this index.

    `line` is its first line. A body without blocks has one piece under no heading.
    """
    tokens = count_tokens(text[start:end])
    if not body.blocks:
        return _TextPiece(start, end, line, heading=-1, tokens=tokens)

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
    """Yield the parts of a piece that is too long, each under the same heading.

    They are its lines or, of long lines, sentences, words or characters.
    """
    spans = _line_spans(text, piece.start, piece.end)
    for line, (line_start, line_end) in enumerate(spans, start=piece.line):
        for part_start, part_end, tokens in _line_parts(text, line_start, line_end):
            if tokens == 0:
                continue
            start = skip_blank(text, part_start)
            part = text[start:part_end].rstrip()
            end = start + len(part)
            yield _TextPiece(start, end, line, piece.heading, tokens)


def _line_spans(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the start and end of each line, without its line end."""
    line_start = start
    for match in LINE_END.finditer(text, start, end):
        yield line_start, match.start()
        line_start = match.end()
    yield line_start, end


def _line_parts(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the line text[start:end], or its parts if it is too long: start, end, tokens.

    The parts are sentences, or of a long sentence runs of words.
    """
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
    """Yield runs of words of the long sentence text[start:end]: start, end, tokens.

    A run has a quarter of the tokens of a passage, so that passages of runs still overlap. A long
    word of other scripts is cut between characters. One in ASCII, such as an address or encoded
    data, stays whole.
    """
    is_ascii = text.isascii()
    run_start = start
    run_tokens = 0
    word_start = start  # with the blanks before the word
    for word_end in _word_ends(text, start, end):
        if is_ascii and word_end < end:  # at `end`, there may be only blanks
            # The same as count_tokens() of one word in ASCII, for speed.
            length = word_end - word_start
            tokens = length // 4 if length >= 12 else 2
        else:
            tokens = count_tokens(text[word_start:word_end])

        if run_tokens and run_tokens + tokens > OVERLAP_TOKENS:
            yield run_start, word_start, run_tokens
            run_start = word_start
            run_tokens = 0

        is_too_long = tokens > MAX_TOKENS
        if is_too_long and not text[word_start:word_end].isascii():
            for cut in _character_cuts(word_start, word_end, tokens):
                yield run_start, cut, OVERLAP_TOKENS
                run_start = cut
            tokens = count_tokens(text[run_start:word_end])  # of the rest of the word

        run_tokens += tokens
        word_start = word_end

    if run_tokens:
        yield run_start, end, run_tokens


def _word_ends(text: str, start: int, end: int) -> list[int]:
    """Return where each word of text[start:end] ends.

    If blanks follow the last word, or there is no word, `end` comes last.
    """
    words = _WORD.finditer(text, start, end)
    ends = [word.end() for word in words]
    if not ends or ends[-1] != end:
        ends.append(end)
    return ends


def _character_cuts(start: int, end: int, tokens: int) -> range:
    """Return where to cut a word of so many tokens into parts of about `OVERLAP_TOKENS`.

    `start` and `end` are its offsets; the cuts are between them.
    """
    length = end - start
    step = max(1, length * OVERLAP_TOKENS // tokens)
    return range(start + step, end, step)
