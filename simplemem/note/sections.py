"""Sections of a note: the paths of headings, the span of a section, a new line in one. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from simplemem.note.body import Body, Heading, read_body
from simplemem.note.comments import Span, without_html_comments
from simplemem.note.header import read_header
from simplemem.note.lines import newline_of

_ONLY_BLOCK_ID = re.compile(r"[ \t>]*+\^([A-Za-z0-9-]+)[ \t]*$")
_ASCII_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def heading_paths(body: Body) -> list[tuple[str, ...]]:
    """Return the path of each heading, outermost heading first, and an empty path behind them.

    The empty path is for text above the first heading, whose heading has the index -1.
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
    """Return the start and end of a section or block, or None if the note has none of that name.

    A section is named by its heading or by a part of the heading's path: "Heading",
    "#Heading#Sub" or "Heading > Sub". A block is named by its id: "^id", also below a heading:
    "Heading > ^id".
    """
    # A heading may contain " > " itself, so the name is first looked up as it is.
    for name in (section, section.replace(" > ", "#")):
        parts = [part.strip() for part in name.split("#") if part.strip()]
        if not parts:
            continue

        if parts[-1].startswith("^"):
            return _find_block_below(text, body, parts[:-1], parts[-1].removeprefix("^"))

        span = _find_heading_section(text, body, parts)
        if span is not None:
            return span
    return None


def _find_block_below(text: str, body: Body, headings: Sequence[str], block_id: str) -> Span | None:
    """Return the span of the block with an id, if it is in the section that headings name."""
    block = _find_block(text, body, block_id)
    if block is None or not headings:
        return block

    section = _find_heading_section(text, body, headings)
    if section is None or not section[0] <= block[0] < section[1]:
        return None
    return block


def _find_block(text: str, body: Body, block_id: str) -> Span | None:
    """Return the span of the block with an id, in any case of letters."""
    line = _line_of_block_id(body, block_id)
    if line is None:
        return None

    index = bisect_right(body.blocks, line, key=lambda block: block.line) - 1
    block = body.blocks[index]
    block_text = text[block.start : block.end]

    # An id alone on its line names the block before it.
    if index > 0 and _ONLY_BLOCK_ID.fullmatch(block_text):
        return body.blocks[index - 1].start, block.end
    return block.start, block.end


def _line_of_block_id(body: Body, block_id: str) -> int | None:
    key = block_id.casefold()
    for other_id, line in body.block_ids:
        if other_id.casefold() == key:
            return line
    return None


def _find_heading_section(text: str, body: Body, parts: Sequence[str]) -> Span | None:
    """Return the span of the first section whose heading's path has these parts in this order.

    The last part is the section's own heading. Other headings of the path may be left out.
    """
    keys = [_heading_key(part) for part in parts]
    paths = heading_paths(body)
    for index, heading in enumerate(body.headings):
        path_keys = [_heading_key(name) for name in paths[index]]
        if keys[-1] == path_keys[-1] and _contains_in_order(path_keys, keys):
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
    """Return what is equal for headings that a link does not distinguish.

    As in Obsidian, case, ASCII punctuation and repeated spaces make no difference. Neither do HTML
    comments: answers do not quote them, so an agent does not know them.
    """
    visible = without_html_comments(heading)
    words = _ASCII_PUNCTUATION.sub(" ", visible).casefold().split()
    return " ".join(words)


def section_span(text: str, section: str) -> Span | None:
    """Return the start and end of a section of a note, or None. See `find_section` for its name."""
    body_start = read_header(text).body_start
    return find_section(text, read_body(text, body_start), section)


def add_line(text: str, section: str, line: str, at: int | None = None) -> str:
    """Return the note with a line added to a section: at an offset in it, or at its end.

    A section that does not exist is added at the end of the note, with the line; `at` is not used.
    """
    newline = newline_of(text)
    span = section_span(text, section)

    if span is None:
        gap = _gap_before_heading(text, newline)
        return f"{text}{gap}## {section}{newline}{newline}{line}{newline}"
    if at is not None:
        return text[:at] + line + newline + text[at:]
    return _add_line_at_end(text, span, line, newline)


def _gap_before_heading(text: str, newline: str) -> str:
    """Return the line ends that a text lacks to end with a blank line."""
    if text.endswith(newline * 2):
        return ""
    if text.endswith(newline):
        return newline
    return newline * 2


def _add_line_at_end(text: str, span: Span, line: str, newline: str) -> str:
    """Return the text with a line behind the last text of a section."""
    start, end = span
    section_text = text[start:end].rstrip()
    insert_at = start + len(section_text)

    # A blank line separates the heading from the first line below it.
    has_only_heading = "\n" not in section_text
    gap = newline * 2 if has_only_heading else newline
    rest = text[insert_at:] or newline
    return text[:insert_at] + gap + line + rest
