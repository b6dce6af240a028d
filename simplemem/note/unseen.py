"""What a note holds that its reader does not see, or that says nothing of it: comments and badges. Pure.

A quoted passage leaves these out. They stay in the text that is searched, edited and read whole.
`simplemem/search/excerpt.py` decides what of a note is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Span = tuple[int, int]

_TOKEN = re.compile(
    r"""^\ {0,3}(?:>\ ?)*+(?P<fence>`{3,}+|~{3,}+)(?s:.*?)(?:^\ {0,3}(?:>\ ?)*+(?P=fence)[`~]*+[ \t]*+$|\Z)
      | (?<!`)(?P<tick>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=tick)(?!`)
      | (?P<html><!--) | (?P<obsidian>%%)""",
    re.VERBOSE | re.MULTILINE,
)
_LINE_START = re.compile(r"[ \t>]*+")
_IMAGE = re.compile(
    r"""\[?!\[[^\[\]\n]{0,300}\]\((?P<address>https?://[^()\s]{1,1000})[^()\n]{0,200}\)
        (?:\]\([^()\n]{0,1000}\))?""",
    re.VERBOSE,
)
_BADGE = re.compile(r"shields\.io/|badge", re.IGNORECASE)  # shields.io, badgen.net, badge.fury.io, .../badge.svg
_CHARACTER = re.compile(r"[^\n]")
_GAP_IN_LINE = re.compile(r"(?<=\S)[ \t]{2,}+")
_LINE_REST = re.compile(r"(?<=\S)[ \t]++$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\r?\n){2,}+")


def without_html_comments(text: str) -> str:
    """The text with spaces in place of its HTML comments, so that every other character keeps its place. What stands in
    code is no comment."""
    if "<!--" not in text:
        return text
    return blanked(text, (span for is_html, span in _comments(text) if is_html))


def without_unseen(text: str) -> str:
    """As `without_html_comments`, also without the comments of Obsidian and without badges."""
    spans: list[Span] = []
    if "<!--" in text or "%%" in text:
        spans += [span for _, span in _comments(text)]
    if "](http" in text and _BADGE.search(text):
        spans += [image.span() for image in _IMAGE.finditer(text) if _BADGE.search(image["address"])]
    return blanked(text, spans)


def blanked(text: str, spans: Iterable[Span]) -> str:
    """The text with spaces in place of some spans. Lines stay lines, and every other character keeps its place."""
    parts: list[str] = []
    end = 0
    for start, stop in sorted(spans):
        start = max(start, end)
        if start < stop:
            parts += [text[end:start], _CHARACTER.sub(" ", text[start:stop])]
            end = stop
    return "".join([*parts, text[end:]])


def without_gaps(text: str) -> str:
    """A blanked text without the room that its comments took: spaces in a row, and more than one blank line."""
    lines = _GAP_IN_LINE.sub(" ", _LINE_REST.sub("", text))
    return _BLANK_LINES.sub("\n\n", lines)


def _comments(text: str) -> Iterator[tuple[bool, Span]]:
    """The comments outside of code, and whether each is one of HTML. One that is never closed goes to the end of the
    text where it begins a line, and is none amid a line."""
    at = 0
    is_closed = True  # whether an HTML comment can still end: to look for the end again and again would be quadratic
    while token := _TOKEN.search(text, at):
        start, at = token.span()
        mark = "-->" if token["html"] else "%%"
        if not (token["html"] or token["obsidian"]) or (token["html"] and not is_closed):
            continue
        end = text.find(mark, at)
        if end >= 0:
            at = end + len(mark)
            yield token["html"] is not None, (start, at)
        elif token["html"]:
            is_closed = False
            line_start = text.rfind("\n", 0, start) + 1
            if _LINE_START.fullmatch(text, line_start, start):
                yield True, (start, len(text))
                return
