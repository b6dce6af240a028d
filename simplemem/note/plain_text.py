"""The text of a note as it is quoted: without markup, comments and badges. Pure.

Only quoted passages leave comments out. Searches, edits and whole notes have the complete text.
`simplemem/search/quality.py` decides which parts of a note are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

# -- markup

# The search for the end of a mark takes longer the more text follows, so the text is cut.
_MAX_CHARACTERS = 10_000

_SPACE = re.compile(r"\s+")
_CELL_END = re.compile(r"(?<!\\)\|")

# Each alternative is one kind of markup. The last named group that matched holds what remains
# visible; markup without such a group disappears. The order is: fenced code, lines that only
# separate, table rows, marks at the beginning of a line, and then markup inside a line.
_MARKUP = re.compile(
    r"""^(?:[ \t>]*+(?P<fence>`{3,}|~{3,})[^\n]*\n?(?P<fenced>(?s:.*?))
        (?:^[ \t>]*+(?P=fence)[^\n]*$|\Z)
      | [ \t>]*+\|?[ \t]*+:?-{3,}+[-:| \t]*+$ | [ \t]*+={3,}+[ \t]*+$
      | [ \t>]*+\|(?P<row>[^\n]*)$
      | [ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?|\#{1,6}[ \t]+|\[![^\]\n]+\][+-]?)
        | (?:[ \t]*+>)++)
      | (?=[`\\![<*~=_%^\#-])(?:
        (?<!`)(?P<tick>`+)(?!`)(?P<code>.{1,500}?)(?<!`)(?P=tick)(?!`)
      | \\(?P<escaped>[!-/:-@\[-`{-~])
      | !?\[\[(?P<target>[^\[\]|\n]+?)(?:\\?\|(?P<display>[^\[\]\n]+))?\]\]
      | !?\[(?P<words>[^\[\]\n]*)\]\((?:<[^<>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)
        (?:[ ]"[^"\n]*")?\)
      | \[\^[^\[\]\s]+\]:? | <(?P<address>[a-z]+:[^<>\s]+)> | <!--|--> | %% | </?[A-Za-z][^<>\n]*>
      | (?<=[ \t])(?:\^[A-Za-z0-9-]+|\#+)[ \t]*+$
      | (?P<mark>\*{2,3}+(?!\*)|~~(?!~)|==(?!=)|(?<![^\W_])(?:\*(?!\*)|_{1,3}+(?!_)))(?=\S)
        (?P<marked>[^\n]{1,500}?)(?<=\S)(?P=mark)(?!\*)(?<!\w_(?=\w)))""",
    re.VERBOSE | re.MULTILINE,
)

# The groups whose content may hold markup of its own.
_NESTING_GROUPS = frozenset({"marked", "words"})


def plain_text(text: str, depth: int = 3) -> str:
    """Return the first 10,000 characters of Markdown as its reader sees them, on one line.

    Markup is removed, HTML comments are left out, and of a link the displayed text stays. Markup
    within markup, such as a link in bold text, is removed `depth` levels deep.
    """
    source = without_html_comments(text[:_MAX_CHARACTERS])
    plain = _MARKUP.sub(lambda match: _visible_text(match, depth), source)
    return _SPACE.sub(" ", plain).strip()


def _visible_text(match: re.Match[str], depth: int) -> str:
    """Return what a reader sees of one piece of markup, a match of `_MARKUP`; "" for nothing."""
    group = match.lastgroup
    if group is None:
        return ""

    content = match[group]
    if group == "row":
        return _row_text(content)
    if group in _NESTING_GROUPS and depth > 0:
        return plain_text(content, depth - 1)
    return content


def _row_text(row: str) -> str:
    """Return the cells of a table row with dots between them, without separator cells."""
    cells = [plain_text(cell) for cell in _CELL_END.split(row)]
    return " · ".join(cell for cell in cells if cell.strip(" :-"))


# -- comments and badges

Span = tuple[int, int]
"""The first offset of a part of a text, and the offset behind it."""

# Code comes first, so that marks of comments within code are skipped.
_CODE_OR_COMMENT: Final = re.compile(
    r"""
    # a fenced code block, also in a quotation, up to its closing fence or the end of the text
    ^\ {0,3}(?:>\ ?)*+(?P<fence>`{3,}+|~{3,}+)
        (?s:.*?)
        (?:^\ {0,3}(?:>\ ?)*+(?P=fence)[`~]*+[ \t]*+$|\Z)
    # inline code; the limit keeps the search linear
    | (?<!`)(?P<tick>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=tick)(?!`)
    # the start of a comment, first of one that begins a line
    | ^[ \t>]*+(?P<html_line><!--)
    | (?P<html><!--)
    | (?P<obsidian>%%)
    """,
    re.VERBOSE | re.MULTILINE,
)
# An image with a web address, also as the text of a link.
_WEB_IMAGE: Final = re.compile(
    r"""\[?!\[[^\[\]\n]{0,300}\]\((?P<address>https?://[^()\s]{1,1000})[^()\n]{0,200}\)
        (?:\]\([^()\n]{0,1000}\))?""",
    re.VERBOSE,
)
# shields.io, badgen.net, badge.fury.io, .../badge.svg
_BADGE: Final = re.compile(r"shields\.io/|badge", re.IGNORECASE)
_NOT_NEWLINE: Final = re.compile(r"[^\n]")
_GAP_IN_LINE: Final = re.compile(r"(?<=\S)[ \t]{2,}+")
_TRAILING_BLANKS: Final = re.compile(r"(?<=\S)[ \t]++$", re.MULTILINE)
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t]*+\r?\n){2,}+")


def without_html_comments(text: str) -> str:
    """Return the text with spaces in place of its HTML comments. Comments within code stay.

    Offsets and line numbers stay the same.
    """
    if "<!--" not in text:
        return text
    return blank_spans(text, (span for is_html, span in _comments(text) if is_html))


def without_unseen(text: str) -> str:
    """Return the text with spaces in place of HTML comments, Obsidian comments and badges.

    Comments within code stay. Offsets and line numbers stay the same.
    """
    spans: list[Span] = []
    if "<!--" in text or "%%" in text:
        spans.extend(span for _, span in _comments(text))
    if "](http" in text and _BADGE.search(text):
        spans.extend(_badges(text))
    return blank_spans(text, spans)


def blank_spans(text: str, spans: Iterable[Span]) -> str:
    """Return the text with spaces in place of some spans, in any order, which may overlap.

    Newlines stay, so that offsets and line numbers keep their meaning.
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
    """Return a text without the runs of spaces and blank lines that blanked comments left.

    Indentation and single blank lines stay. Offsets change.
    """
    text = _TRAILING_BLANKS.sub("", text)
    text = _GAP_IN_LINE.sub(" ", text)
    return _BLANK_LINES.sub("\n\n", text)


def _badges(text: str) -> Iterator[Span]:
    """Yield the spans of the badges: images from the web whose address is that of a badge."""
    for image in _WEB_IMAGE.finditer(text):
        if _BADGE.search(image["address"]):
            yield image.span()


def _comments(text: str) -> Iterator[tuple[bool, Span]]:
    """Yield the comments outside of code, and whether each is an HTML comment.

    As in Obsidian, an HTML comment without an end goes to the end of the text if it begins a line;
    within a line it is no comment. `%%` without a second `%%` is no comment.
    """
    # Behind the last "-->", no opening is searched for its end: that would take quadratic time.
    last_end = text.rfind("-->")
    position = 0
    while True:
        token = _CODE_OR_COMMENT.search(text, position)
        if token is None:
            return

        position = token.end()
        if token["obsidian"]:
            end = text.find("%%", position)
            if end >= 0:
                position = end + len("%%")
                yield False, (token.start(), position)
            continue

        begins_line = token["html_line"] is not None
        is_code = not begins_line and token["html"] is None
        if is_code:
            continue

        start = position - len("<!--")
        if position <= last_end:
            position = text.index("-->", position) + len("-->")
            yield True, (start, position)
        elif begins_line:
            yield True, (start, len(text))
            return
