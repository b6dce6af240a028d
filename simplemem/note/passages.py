"""The pieces of a body: its sections, and the passages that are searched and shown. Pure. Blocks are
packed up to about 200 tokens; a passage begins with up to 50 of the one before (retrieval.md §2). None is left out."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from simplemem.note.body import Body, count_lines, newline_of, read_body
from simplemem.note.header import read_header
from simplemem.note.sentence_ends import marks
from simplemem.note.sentences import skip_blank
from simplemem.note.unseen import without_html_comments
from simplemem.note.words import count_tokens

MOST_TOKENS = 200
OVERLAP_TOKENS = 50
_SECTION_LEVEL = 2
_ENOUGH_FOR_A_SECTION = 100
_LINE_END = re.compile(r"\r\n?|\n")
_WORD = re.compile(r"\S++")
_ID_ALONE = re.compile(r"[ \t>]*+\^([A-Za-z0-9-]+)[ \t]*$")


class Passage(NamedTuple):
    """A stretch of the text, its first line, and the headings it stands under, outermost first."""

    start: int
    end: int
    line: int
    headings: tuple[str, ...]


class _Piece(NamedTuple):
    """A block, or a part of one that is too long: what passages are packed from."""

    start: int
    end: int
    line: int
    heading: int
    tokens: int
    is_heading: bool
    opens_section: bool


def cut_passages(text: str, body: Body) -> tuple[Passage, ...]:
    """The passages of a body, in order."""
    pieces = _pieces(text, body)
    paths = heading_paths(body)
    passages: list[Passage] = []
    first = 0
    while first < len(pieces):
        end, tokens = first, 0
        while end < len(pieces) and (end == first or tokens + pieces[end].tokens <= MOST_TOKENS):
            if tokens >= _ENOUGH_FOR_A_SECTION and pieces[end].opens_section:
                break
            tokens += pieces[end].tokens
            end += 1
        while (
            end < len(pieces)
            and end - 1 > first
            and pieces[end - 1].is_heading
            and not pieces[end].is_heading
        ):
            end -= 1  # a heading goes with what it heads
        named = next((piece for piece in pieces[first:end] if not piece.is_heading), pieces[first])
        start, stop = pieces[first].start, pieces[end - 1].end
        passages.append(Passage(start, stop, pieces[first].line, paths[named.heading]))
        # The next one begins a little before the end of this one, but never so that it could hold nothing new.
        is_apart = end == len(pieces) or pieces[end].opens_section
        room = 0 if is_apart else min(OVERLAP_TOKENS, MOST_TOKENS - pieces[end].tokens)
        last, first = first, end
        while first - 1 > last and pieces[first - 1].tokens <= room:
            first -= 1
            room -= pieces[first].tokens
    return tuple(passages)


def heading_paths(body: Body) -> list[tuple[str, ...]]:
    """For each heading its path from the outermost; the last entry (index -1) is for what is above all."""
    paths, open_headings = list[tuple[str, ...]](), list[tuple[int, tuple[str, ...]]]()
    for heading in body.headings:
        while open_headings and open_headings[-1][0] >= heading.level:
            open_headings.pop()
        path = (*(open_headings[-1][1] if open_headings else ()), heading.text)
        open_headings.append((heading.level, path))
        paths.append(path)
    return [*paths, ()]


def find_section(text: str, body: Body, wanted: str) -> tuple[int, int] | None:
    """The span of a section ("Heading", "#Heading#Sub", "Heading > Sub") or of the block with an id ("^id"), or None."""
    known = [tuple(map(_heading_key, path)) for path in heading_paths(body)[:-1]]
    for name in dict.fromkeys((wanted, wanted.replace(" > ", "#"))):
        parts = [part.strip() for part in name.split("#") if part.strip()]
        if parts and parts[-1].startswith("^"):
            wanted_id = parts[-1][1:].casefold()
            line = next(
                (line for name, line in body.block_ids if name.casefold() == wanted_id), None
            )
            if line is None:
                return None
            k = bisect_right([block.line for block in body.blocks], line) - 1
            block = body.blocks[k]
            # An id alone on its line names the block before it.
            is_alone = k > 0 and _ID_ALONE.fullmatch(text[block.start : block.end])
            return body.blocks[k - 1].start if is_alone else block.start, block.end
        keys = list(map(_heading_key, parts))
        for number, path in enumerate(known):
            rest = iter(path)
            if keys and keys[-1] == path[-1] and all(key in rest for key in keys):
                level, later = body.headings[number].level, body.headings[number + 1 :]
                end = next(
                    (heading.start for heading in later if heading.level <= level), len(text)
                )
                return body.headings[number].start, end
    return None


def section_span(text: str, section: str) -> tuple[int, int] | None:
    """Where a section of a note begins and ends."""
    return find_section(text, read_body(text, read_header(text).body_start), section)


def with_line(text: str, section: str, line: str, at: int | None = None) -> str:
    """The note with a bullet at the end of a section, which is made when it is not there, or at a place in it."""
    newline, place = newline_of(text), section_span(text, section)
    if place is None:
        gap = newline * (2 - text.endswith(newline) - text.endswith(newline * 2))
        return f"{text}{gap}## {section}{newline}{newline}{line}{newline}"
    if at is None:
        at = place[0] + len(text[slice(*place)].rstrip())
        is_heading = "\n" not in text[place[0] : at]
        return text[:at] + newline * (1 + is_heading) + line + (text[at:] or newline)
    return text[:at] + line + newline + text[at:]


def _heading_key(text: str) -> str:
    """Headings are compared without case, ASCII punctuation and double spaces (obsidian.md §1.1), and without HTML
    comments, which answers do not quote."""
    shown = without_html_comments(text)
    return " ".join(re.sub(r"[!-/:-@\[-`{-~]", " ", shown).casefold().split())


def _pieces(text: str, body: Body) -> list[_Piece]:
    """The blocks with whatever stands between them (rules, empty items), cut up where they are too long."""
    blocks = body.blocks
    pieces: list[_Piece] = []
    bounds = [skip_blank(text, body.start), *(block.start for block in blocks[1:]), len(text)]
    at, line = 0, 1
    for number, (start, stop) in enumerate(pairwise(bounds)):
        begins, end = skip_blank(text, start), start + len(text[start:stop].rstrip())
        if begins >= end:
            continue
        at, line = begins, line + count_lines(text, at, begins)
        heading = blocks[number].heading if blocks else -1
        tokens = count_tokens(text[begins:end])
        if tokens > MOST_TOKENS:
            pieces += _cut(text, begins, end, line, heading, tokens)
            continue
        is_heading = bool(blocks) and blocks[number].kind == "heading"
        opens = is_heading and body.headings[heading].level <= _SECTION_LEVEL
        pieces.append(_Piece(begins, end, line, heading, tokens, is_heading, opens))
    return pieces


def _cut(text: str, start: int, end: int, line: int, heading: int, tokens: int) -> Iterator[_Piece]:
    """An oversized stretch of so many tokens as pieces: lines, else sentences, else words, else characters."""
    at = start
    while at < end:
        found = _LINE_END.search(text, at, end)
        line_end = found.start() if found else end
        size = tokens if (at, line_end) == (start, end) else count_tokens(text[at:line_end])
        spans: Iterable[tuple[int, int, int]] = [(at, line_end, size)]
        if size > MOST_TOKENS:
            spans = (
                span for one in _by_marks(text, at, line_end) for span in _cut_sentence(text, *one)
            )
        for first, last, held in spans:
            if held:
                first = skip_blank(text, first)
                yield _Piece(
                    first, first + len(text[first:last].rstrip()), line, heading, held, False, False
                )
        at = found.end() if found else end
        line += 1


def _cut_sentence(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Words packed up to a quarter of a passage, so that passages of them still overlap; a short sentence as it is."""
    if (whole := count_tokens(text[start:end])) <= MOST_TOKENS:
        yield start, end, whole
        return
    at, last, tokens = start, start, 0
    plain = text.isascii()
    ends = [found.end() for found in _WORD.finditer(text, start, end)]
    for word_end in ends if ends and ends[-1] == end else [*ends, end]:
        # One word, with the blanks before it; the length of a plain one tells its tokens.
        if plain and word_end < end:
            size = (word_end - last) // 4 if word_end - last > 11 else 2
        else:
            size = count_tokens(text[last:word_end])
        if tokens and tokens + size > OVERLAP_TOKENS:
            yield at, last, tokens
            at, tokens = last, 0
        if size > MOST_TOKENS and not plain and not text[last:word_end].isascii():
            step = max(1, (word_end - last) * OVERLAP_TOKENS // size)
            while word_end - at > step:
                yield at, at + step, OVERLAP_TOKENS
                at += step
            size = count_tokens(text[at:word_end])
        tokens += size
        last = word_end
    if tokens:
        yield at, end, tokens


_NOT_BLANK = re.compile(r"\S")


def _by_marks(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches from mark to mark. Of passages these are kept in the index, so an abbreviation may end one."""
    for found in marks(text, start, end):
        yield start, found.end()
        start = found.end()
    if start < end:
        yield start, end


def text_hash(text: str) -> bytes:
    """What tells whether the vector of a passage still fits its text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


_ADDRESSES = re.compile(r"\]\([^()\n]*\)|<[^<>\n]*>|(?<![a-z])[a-z]++://\S+")


def text_key(text: str) -> int | None:
    """What is the same for two blocks that a reader sees as the same: addresses, tags of HTML and white space make no
    difference. None for a block without words."""
    if "](" in text or "<" in text or "://" in text:
        text = _ADDRESSES.sub(" ", text)
    words = " ".join(text.split())
    if not any(map(str.isalnum, words)):
        return None
    digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
