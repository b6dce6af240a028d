"""Callouts: quotes that begin with `[!type]`, with a title, and with `+` or `-` foldable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from simplemem.web.markdown.tokens import first_inline, first_text, plain_text, text_token

_CALLOUT: Final = re.compile(r"\[!(?P<type>[\w-]{1,30})\](?P<fold>[+-]?)[ \t]*+")
_STYLES: Final = {
    "info": ("info", "note", "todo", "abstract", "summary", "tldr", "example"),
    "tip": ("tip", "hint", "important"),
    "success": ("success", "check", "done"),
    "warning": ("warning", "caution", "attention", "question", "help", "faq"),
    "danger": ("danger", "error", "bug", "failure", "fail", "missing"),
    "quote": ("quote", "cite"),
}
_STYLE_OF_TYPE: Final = {name: style for style, names in _STYLES.items() for name in names}


def add_rules(parser: MarkdownIt) -> None:
    """Add callouts to a parser."""
    parser.core.ruler.push("callouts", _show_callouts)


def _show_callouts(state: StateCore) -> None:
    """Make each quote that is a callout a box with a title, or `<details>` if it is foldable."""
    replacements: dict[int, list[Token]] = {}  # by the position of the token that they replace
    open_tags: list[str] = []  # of the quotes and callouts around a place
    for position, token in enumerate(state.tokens):
        if token.type == "blockquote_open":
            replacements |= _make_callout(state.tokens, position)
            open_tags.append(token.tag)
        elif token.type == "blockquote_close":
            token.tag = open_tags.pop()

    changed: list[Token] = []
    for position, token in enumerate(state.tokens):
        changed += replacements.get(position, [token])
    state.tokens = changed


def _make_callout(tokens: Sequence[Token], position: int) -> dict[int, list[Token]]:
    """Make the quote that opens at a position a callout, if it begins like one.

    Returns the tokens to replace, by position: the title comes out of the first paragraph, which is
    left out if it has no other text.
    """
    inline = first_inline(tokens, position)
    text = first_text(inline) if inline is not None else None
    match = _CALLOUT.match(text.content) if text is not None else None
    if inline is None or text is None or match is None:
        return {}

    text.content = text.content[match.end() :]
    title, body = _split_first_line(inline.children or [])
    if not plain_text(title).strip():
        title = [text_token(match["type"].replace("-", " ").capitalize())]
    title_tokens = _open_box(tokens[position], match["type"].lower(), match["fold"], title)

    paragraph = position + 1
    if body:
        inline.children = body
        return {paragraph: [*title_tokens, tokens[paragraph]]}
    return {paragraph: title_tokens, paragraph + 1: [], paragraph + 2: []}


def _split_first_line(children: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens of the first line of a text, and those of the other lines."""
    for position, child in enumerate(children):
        if child.type in ("softbreak", "hardbreak"):
            return list(children[:position]), list(children[position + 1 :])
    return list(children), []


def _open_box(opening: Token, kind: str, fold: str, title: list[Token]) -> list[Token]:
    """Make the opening token of a quote that of a callout, and return the tokens of its title.

    `fold` is "" for a callout that cannot be folded, "+" for an open one and "-" for a closed one.
    """
    opening.tag = "details" if fold else "div"
    style = _STYLE_OF_TYPE.get(kind, "info")
    opening.attrs = {"class": f"callout callout-{style}", "data-callout": kind}
    if fold == "+":
        opening.attrs["open"] = ""

    title_tag = "summary" if fold else "p"
    title_opening = Token("paragraph_open", title_tag, 1, block=True)
    title_opening.attrs = {"class": "callout-title"}
    inline = Token("inline", "", 0, children=title, block=True)
    return [title_opening, inline, Token("paragraph_close", title_tag, -1, block=True)]
