"""Reads and makes tokens of markdown-it, for the modules of several notations."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it.token import Token


def first_inline(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the text at the beginning of the block that opens at a position, or None.

    The block is a paragraph, or contains one at its beginning.
    """
    for token in tokens[position + 1 : position + 3]:
        if token.type == "inline":
            return token
    return None


def first_text(inline: Token) -> Token | None:
    """Return the first child of a text if it is plain text, else None."""
    children = inline.children or []
    if children and children[0].type == "text":
        return children[0]
    return None


def plain_text(children: Sequence[Token]) -> str:
    """Return the text of some tokens without its formatting."""
    parts = []
    for child in children:
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return "".join(parts)


def text_token(content: str) -> Token:
    """Return the token of a plain text, which the renderer escapes."""
    token = Token("text", "", 0)
    token.content = content
    return token


def html_token(content: str) -> Token:
    """Return a token within text that is finished HTML, which the renderer does not escape."""
    token = Token("html_inline", "", 0)
    token.content = content
    return token


def html_block_token(content: str) -> Token:
    """Return the token of a block that is finished HTML, which the renderer does not escape."""
    token = Token("html_block", "", 0)
    token.content = content
    return token


def opening_position(tokens: Sequence[Token], position: int) -> int:
    """Return the position of the token that opens the block that ends at a position.

    A block of one token opens and ends at the same position.
    """
    closing = tokens[position]
    if closing.nesting == 0:
        return position
    for earlier in range(position, -1, -1):
        token = tokens[earlier]
        if token.nesting == 1 and token.level == closing.level:
            return earlier
    return position
