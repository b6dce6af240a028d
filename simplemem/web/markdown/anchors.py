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
    parser.core.ruler.push("block_ids", _move_block_ids)
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
        inline.children = [*children, _link_to_heading(anchor, title)]


def _link_to_heading(anchor: str, title: str) -> Token:
    """Return the link to the heading with an id, with a label for screen readers."""
    address = "#" + escapeHtml(anchor)
    label = escapeHtml(f"Link to “{title}”")
    return html_token(f' <a class="anchor" href="{address}" aria-label="{label}">#</a>')


def _move_block_ids(state: StateCore) -> None:
    """Remove the ids of blocks from the text, and give them to the elements of the blocks.

    A paragraph that consists of an id is removed too. In an embedded text, no element gets an id,
    because the ids of a page must be unique.
    """
    is_embedded = rendering_of(state.env).is_embedded
    removed = set[int]()
    for position, token in enumerate(state.tokens):
        if token.type != "inline":
            continue
        name = _take_block_id(token)
        if not name:
            continue

        if not token.children:
            removed.update((position - 1, position, position + 1))
        owner = _find_owner(state.tokens, position)
        if owner is not None and not is_embedded:
            owner.attrSet("id", block_id(name))

    tokens = enumerate(state.tokens)
    state.tokens = [token for position, token in tokens if position not in removed]


def _take_block_id(inline: Token) -> str:
    """Return the id at the end of a text and remove it, with the spaces or line break before it.

    Returns "", and changes nothing, if there is none.
    """
    children = list(inline.children or [])
    match = _match_block_id(children)
    if match is None:
        return ""

    last = children[-1]
    last.content = last.content[: match.start()].rstrip()
    if not last.content:
        children.pop()
        if children and children[-1].type == "softbreak":
            children.pop()
    inline.children = children
    return match["id"]


def _match_block_id(children: Sequence[Token]) -> re.Match[str] | None:
    """Return the match of an id in the last child of a text, or None if the text has no id.

    The id of a block is at the beginning of a line or after a space: there is none in `**a**^b`.
    """
    if not children or children[-1].type != "text":
        return None
    match = _BLOCK_ID.search(children[-1].content)
    if match is None:
        return None

    is_child_start = match[0].startswith("^")
    is_line_start = len(children) == 1 or children[-2].type == "softbreak"
    if is_child_start and not is_line_start:
        return None
    return match


def _find_owner(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the token whose element gets the id that was in the text at a position.

    It opens the paragraph, heading or list item of the text. If nothing is left of the text, it
    opens the block before, at the same depth; None if there is no such block.
    """
    has_text = bool(tokens[position].children)
    if has_text:
        return _opening_of_text(tokens, position)
    return _opening_of_block_before(tokens, position)


def _opening_of_text(tokens: Sequence[Token], position: int) -> Token:
    """Return the token that opens the paragraph, heading or list item of the text at a position."""
    opening = tokens[position - 1]
    if opening.hidden and position > 1:
        # The paragraph of a short list item has no element of its own.
        return tokens[position - 2]
    return opening


def _opening_of_block_before(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the token that opens the block before the paragraph of the text at a position.

    Returns None if no block before it has the same depth.
    """
    end_of_block = position - 2
    if end_of_block < 0:
        return None

    opening = tokens[position - 1]
    block = tokens[opening_position(tokens, end_of_block)]
    if block.level != opening.level:
        return None
    return block
