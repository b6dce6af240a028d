"""Blocks of code with the language `mermaid`: their source, which `note-diagrams.js` draws."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from simplemem.web.markdown.state import Environment


def add_rules(parser: MarkdownIt) -> None:
    """Add diagrams to a parser."""
    parser.add_render_rule("fence", _render_fence)


def _render_fence(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    position: int,
    options: OptionsDict,
    environment: Environment,
) -> str:
    """Return the HTML of a block of code. That of a diagram can be scrolled by keyboard."""
    token = tokens[position]
    if token.info.strip().lower() == "mermaid":
        return f'<pre class="diagram" tabindex="0"><code>{escapeHtml(token.content)}</code></pre>\n'
    return renderer.fence(tokens, position, options, environment)
