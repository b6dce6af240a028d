"""Blank out what is not quoted from a note: HTML comments, Obsidian comments and badges. Pure.

Only quoted passages leave these out. Search, edits and whole notes have the complete text.
`simplemem/search/excerpt.py` decides which parts of a note are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""The first offset of a part of a text, and the offset behind it."""

# Code comes first, so that marks of comments within code are skipped.
_CODE_OR_COMMENT = re.compile(
    r"""
    # a fenced code block, also in a quotation, up to its closing fence or the end of the text
    ^\ {0,3}(?:>\ ?)*+(?P<fence>`{3,}+|~{3,}+)(?s:.*?)(?:^\ {0,3}(?:>\ ?)*+(?P=fence)[`~]*+[ \t]*+$|\Z)
    # inline code; the limit keeps the search linear
    | (?<!`)(?P<tick>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=tick)(?!`)
    # the start of a comment
    | (?P<html><!--)
    | (?P<obsidian>%%)
    """,
    re.VERBOSE | re.MULTILINE,
)
_INDENT_OR_QUOTE = re.compile(r"[ \t>]*+")
# An image with a web address, also as the text of a link.
_WEB_IMAGE = re.compile(
    r"""\[?!\[[^\[\]\n]{0,300}\]\((?P<address>https?://[^()\s]{1,1000})[^()\n]{0,200}\)
        (?:\]\([^()\n]{0,1000}\))?""",
    re.VERBOSE,
)
_BADGE = re.compile(
    r"shields\.io/|badge", re.IGNORECASE
)  # shields.io, badgen.net, badge.fury.io, .../badge.svg
_NOT_NEWLINE = re.compile(r"[^\n]")
_GAP_IN_LINE = re.compile(r"(?<=\S)[ \t]{2,}+")
_LINE_REST = re.compile(r"(?<=\S)[ \t]++$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\r?\n){2,}+")


def without_html_comments(text: str) -> str:
    """Return the text with spaces in place of its HTML comments. Comments within code stay."""
    if "<!--" not in text:
        return text
    return blanked(text, (span for is_html, span in _comments(text) if is_html))


def without_unseen(text: str) -> str:
    """Return the text with spaces in place of its HTML comments, Obsidian comments and badges."""
    spans: list[Span] = []
    if "<!--" in text or "%%" in text:
        spans.extend(span for _, span in _comments(text))
    if "](http" in text and _BADGE.search(text):
        spans.extend(
            image.span() for image in _WEB_IMAGE.finditer(text) if _BADGE.search(image["address"])
        )
    return blanked(text, spans)


def blanked(text: str, spans: Iterable[Span]) -> str:
    """Return the text with spaces in place of some spans. Newlines stay, so that offsets and line numbers hold.

    Spans may overlap.
    """
    parts: list[str] = []
    copied_until = 0
    for start, stop in sorted(spans):
        start = max(start, copied_until)
        if start < stop:
            parts.append(text[copied_until:start])
            parts.append(_NOT_NEWLINE.sub(" ", text[start:stop]))
            copied_until = stop
    parts.append(text[copied_until:])
    return "".join(parts)


def without_gaps(text: str) -> str:
    """Return a blanked text without the spaces and blank lines that its comments left."""
    lines = _GAP_IN_LINE.sub(" ", _LINE_REST.sub("", text))
    return _BLANK_LINES.sub("\n\n", lines)


def _comments(text: str) -> Iterator[tuple[bool, Span]]:
    """Yield the comments outside of code, and whether each is an HTML comment.

    As in Obsidian, an HTML comment without an end goes to the end of the text if it begins a line; amid a line it is no
    comment. `%%` without a second `%%` is no comment.
    """
    position = 0
    may_close = (
        True  # False once no "-->" follows: to search for it at each opening would be quadratic
    )
    line_start = 0
    searched = 0  # for newlines, up to here
    while token := _CODE_OR_COMMENT.search(text, position):
        start, position = token.span()
        is_html = token["html"] is not None
        if not is_html and token["obsidian"] is None:  # code
            continue

        mark = "-->" if is_html else "%%"
        end = text.find(mark, position) if may_close or not is_html else -1
        if end >= 0:
            position = end + len(mark)
            yield is_html, (start, position)
            continue
        if not is_html:
            continue

        may_close = False
        newline = text.rfind("\n", searched, start)
        if newline >= 0:
            line_start = newline + 1
        searched = start
        if _INDENT_OR_QUOTE.fullmatch(text, line_start, start):
            yield True, (start, len(text))
            return
