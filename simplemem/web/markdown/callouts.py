"""Callouts: quotes that begin with `[!type]`.

The rest of that line is the title of the callout. A callout that begins with `[!type]+` or
`[!type]-` can be folded, and is displayed open or closed at first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from simplemem.web.markdown.tokens import first_inline, first_text, plain_text, text_token

MARKER: Final = re.compile(r"\[!(?P<type>[\w-]{1,30})\](?P<fold>[+-]?)[ \t]*+")
"""What a quote begins with that is a callout. It is folded with `-`."""

_PARAGRAPH_TOKENS: Final = 3  # the opening token, the text and the closing token
_DEFAULT_STYLE: Final = "info"
_TYPES_BY_STYLE: Final = {
    "info": ("info", "note", "todo", "abstract", "summary", "tldr", "example"),
    "tip": ("tip", "hint", "important"),
    "success": ("success", "check", "done"),
    "warning": ("warning", "caution", "attention", "question", "help", "faq"),
    "danger": ("danger", "error", "bug", "failure", "fail", "missing"),
    "quote": ("quote", "cite"),
}
_STYLE_BY_TYPE: Final = {
    callout_type: style
    for style, callout_types in _TYPES_BY_STYLE.items()
    for callout_type in callout_types
}


class _Callout(NamedTuple):
    """What the first line of a callout says.

    Attributes:
        type: Its type in lower case, such as "tip".
        fold: "+" for a callout that is open at first, "-" for a closed one, and "" for one that
            cannot be folded.
        title: The tokens of its title.
        has_more_text: Whether its first paragraph goes on after the first line.
    """

    type: str
    fold: str
    title: list[Token]
    has_more_text: bool


def add_rules(parser: MarkdownIt) -> None:
    """Add callouts to a parser."""
    parser.core.ruler.push("callouts", _convert_callouts)


def _convert_callouts(state: StateCore) -> None:
    """Convert each quote that is a callout to a box with a title.

    The element of the box is `<details>` if the callout can be folded, else `<div>`. If the title
    was all of the first paragraph, no paragraph is left of it.
    """
    converted: list[Token] = []
    open_tags: list[str] = []  # of the quotes and callouts around the token
    next_position = 0
    for position, token in enumerate(state.tokens):
        if position < next_position:
            continue

        converted.append(token)
        if token.type == "blockquote_open":
            callout = _take_callout(state.tokens, position)
            if callout is not None:
                _convert_to_box(token, callout)
                converted += _title_tokens(callout)
                if not callout.has_more_text:
                    next_position = position + 1 + _PARAGRAPH_TOKENS
            open_tags.append(token.tag)
        elif token.type == "blockquote_close":
            token.tag = open_tags.pop()
    state.tokens = converted


def _take_callout(tokens: Sequence[Token], position: int) -> _Callout | None:
    """Return the callout that the quote at a position is, and remove its first line from the text.

    Returns None, and changes nothing, if the quote is no callout.
    """
    inline = first_inline(tokens, position)
    if inline is None:
        return None
    text = first_text(inline)
    if text is None:
        return None
    marker = MARKER.match(text.content)
    if marker is None:
        return None

    text.content = text.content[marker.end() :]
    title, other_lines = _split_after_first_line(inline.children or [])
    inline.children = other_lines
    if not plain_text(title).strip():
        title = [_default_title(marker["type"])]
    return _Callout(marker["type"].lower(), marker["fold"], title, bool(other_lines))


def _split_after_first_line(children: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens of the first line of a text, and those of the other lines.

    The line break between them is in neither.
    """
    for position, child in enumerate(children):
        if child.type in ("softbreak", "hardbreak"):
            first_line = list(children[:position])
            other_lines = list(children[position + 1 :])
            return first_line, other_lines
    return list(children), []


def _default_title(callout_type: str) -> Token:
    """Return the title of a callout that has none: its type in words, such as "My type"."""
    words = callout_type.replace("-", " ")
    return text_token(words.capitalize())


def _convert_to_box(opening: Token, callout: _Callout) -> None:
    """Make the token that opens a quote open the box of a callout instead."""
    style = _STYLE_BY_TYPE.get(callout.type, _DEFAULT_STYLE)
    opening.tag = "details" if callout.fold else "div"
    opening.attrs = {"class": f"callout callout-{style}", "data-callout": callout.type}
    if callout.fold == "+":
        opening.attrs["open"] = ""


def _title_tokens(callout: _Callout) -> list[Token]:
    """Return the tokens of the title, which is the `<summary>` of a callout that can be folded."""
    tag = "summary" if callout.fold else "p"
    opening = Token("paragraph_open", tag, 1, block=True)
    opening.attrs = {"class": "callout-title"}
    inline = Token("inline", "", 0, children=callout.title, block=True)
    closing = Token("paragraph_close", tag, -1, block=True)
    return [opening, inline, closing]
