"""Renders blocks of code with the language `mermaid` as the source of a diagram.

The script `note-diagrams.js` draws the diagram. Without it, the page shows the source.
"""

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
    """Return the HTML of a block of code."""
    token = tokens[position]
    language = token.info.strip().lower()
    if language != "mermaid":
        return renderer.fence(tokens, position, options, environment)

    # `tabindex` allows scrolling a wide source by keyboard.
    source = escapeHtml(token.content)
    return f'<pre class="diagram" tabindex="0"><code>{source}</code></pre>\n'
