"""Ids of headings and blocks, so that links lead to them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from simplemem.web.markdown.addresses import block_id, heading_id
from simplemem.web.markdown.state import rendering_of
from simplemem.web.markdown.tokens import html_token, opening_position, plain_text

# At the end of a block, `^id` names it. On a line of its own, it names the block before.
_BLOCK_ID: Final = re.compile(r"(?:^|[ \t])\^(?P<id>[A-Za-z0-9-]{1,100})[ \t]*\Z")


def add_rules(parser: MarkdownIt) -> None:
    """Add the ids of headings and blocks to a parser."""
    parser.core.ruler.push("block_ids", _read_block_ids)
    parser.core.ruler.push("heading_ids", _add_heading_ids)


def _add_heading_ids(state: StateCore) -> None:
    """Give each heading of a note an id, and a link to itself. Embedded headings get none."""
    if rendering_of(state.env).is_embedded:
        return

    uses = Counter[str]()
    for position, token in enumerate(state.tokens):
        if token.type != "heading_open":
            continue
        inline = state.tokens[position + 1]
        children = inline.children or []
        title = plain_text(children).strip()
        anchor = heading_id(title)
        uses[anchor] += 1
        if uses[anchor] > 1:
            anchor = f"{anchor}-{uses[anchor]}"

        token.attrSet("id", anchor)
        label = escapeHtml(f"Link to “{title}”")
        link = f' <a class="anchor" href="#{escapeHtml(anchor)}" aria-label="{label}">#</a>'
        inline.children = [*children, html_token(link)]


def _read_block_ids(state: StateCore) -> None:
    """Remove the ids of blocks from the text, and give them to the elements of the blocks.

    In an embedded text they are only removed, because the id of an element must be unique.
    """
    is_embedded = rendering_of(state.env).is_embedded
    tokens = state.tokens
    removed = set[int]()
    for position, token in enumerate(tokens):
        name = _take_block_id(token)
        if not name:
            continue

        owner = _owner_of_id(tokens, position)
        if not (token.children or []):  # a paragraph that is nothing but the id
            removed.update((position - 1, position, position + 1))
        if owner is not None and not is_embedded:
            owner.attrSet("id", block_id(name))
    state.tokens = [token for position, token in enumerate(tokens) if position not in removed]


def _take_block_id(token: Token) -> str:
    """Return the id at the end of a text and remove it; "" if there is none."""
    children = token.children or []
    if token.type != "inline" or not children or children[-1].type != "text":
        return ""

    text = children[-1]
    match = _BLOCK_ID.search(text.content)
    is_line_start = len(children) == 1 or children[-2].type == "softbreak"
    if match is None or (match.start() == 0 and text.content[0] == "^" and not is_line_start):
        return ""

    text.content = text.content[: match.start()].rstrip()
    if not text.content:
        token.children = children[:-1]
        if token.children and token.children[-1].type == "softbreak":
            token.children.pop()
    return match["id"]


def _owner_of_id(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the token of the block that the id in the text at a position names.

    It is the paragraph, heading or list item of the text, or the block before a text that consisted
    of the id.
    """
    opening = tokens[position - 1]
    has_text = bool(tokens[position].children)
    if has_text:
        # The paragraph of a short list item has no element of its own.
        return tokens[position - 2] if opening.hidden and position > 1 else opening

    if position < len(("block", "paragraph_open", "inline")):
        return None
    before = tokens[opening_position(tokens, position - 2)]
    return before if before.level == opening.level else None
