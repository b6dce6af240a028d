"""Embedded notes, sections and blocks: `![[Note]]`, `![[Note#Heading]]`, `![[Note#^block]]`.

An embed that is a paragraph of its own is shown as a block with the embedded text. Within other
text, it is a link (`links`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from simplemem.web.markdown.addresses import Destination
from simplemem.web.markdown.context import MAX_EMBED_DEPTH, embed_key
from simplemem.web.markdown.links import EMBED, link_to_embedded
from simplemem.web.markdown.state import Rendering, rendering_of
from simplemem.web.markdown.tokens import html_block_token

_PARAGRAPH_LENGTH: Final = 3  # its tokens: paragraph_open, inline and paragraph_close

RenderText = Callable[[str, Rendering], str]
"""Returns the HTML of a text of the vault, within a rendering."""


def add_rules(parser: MarkdownIt, render_text: RenderText) -> None:
    """Add embeds to a parser. `render_text` renders what they contain, with the same parser."""

    def show_embeds(state: StateCore) -> None:
        state.tokens = _with_embedded_texts(state.tokens, rendering_of(state.env), render_text)

    parser.core.ruler.push("embeds", show_embeds)


def _with_embedded_texts(
    tokens: Sequence[Token], rendering: Rendering, render_text: RenderText
) -> list[Token]:
    """Return tokens in which each paragraph that is one embed has become the embedded text."""
    changed: list[Token] = []
    position = 0
    while position < len(tokens):
        block = None
        embed = _embed_of_paragraph(tokens, position)
        if embed is not None:
            block = _embedded_block(embed, rendering, render_text)

        if block is None:
            changed.append(tokens[position])
            position += 1
        else:
            block.map = tokens[position].map
            block.level = tokens[position].level
            changed.append(block)
            position += _PARAGRAPH_LENGTH
    return changed


def _embed_of_paragraph(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the embed that is the only content of the paragraph that opens at a position."""
    if tokens[position].type != "paragraph_open":
        return None

    children = tokens[position + 1].children or []
    if len(children) == 1 and children[0].type == EMBED:
        return children[0]
    return None


def _embedded_block(embed: Token, rendering: Rendering, render_text: RenderText) -> Token | None:
    """Return the token of an embedded text, as finished HTML.

    Returns None if the embed is shown within a paragraph: an image, an unresolved name, a file that
    is no note, a text that is embedded in itself or too deeply, or one beyond the limits of a page.
    """
    target = embed.meta["target"]
    subpath = embed.meta["subpath"]
    destination = rendering.destination(target, subpath)
    path = destination.path
    if not target:
        path = rendering.path

    key = embed_key(path, subpath)
    text = rendering.context.texts.get(key)
    is_nested_too_deeply = len(rendering.embeds) >= MAX_EMBED_DEPTH
    if text is None or is_nested_too_deeply or _is_around(key, path, rendering):
        return None
    if not rendering.budget.take(text):
        return None

    inner = replace(rendering, path=path, embeds=(*rendering.embeds, key))
    return html_block_token(_html_of_embed(destination, embed.meta, render_text(text, inner)))


def _is_around(key: str, path: str, rendering: Rendering) -> bool:
    """Return whether a text is already shown around this place, so that it would contain itself.

    The whole note contains each of its sections; a section may be shown in its own note.
    """
    whole_note = embed_key(path, "")
    is_whole_page = key == whole_note and path == rendering.context.path
    return is_whole_page or key in rendering.embeds or whole_note in rendering.embeds


def _html_of_embed(destination: Destination, meta: dict[str, Any], html: str) -> str:
    """Return the HTML of an embedded text below a link to where it is from."""
    link = link_to_embedded(destination, meta)
    return f'<div class="embed">\n<p class="embed-source">{link}</p>\n{html}</div>\n'
