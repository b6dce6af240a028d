"""Renders the Markdown of a note as HTML for the page.

HTML in a note is shown as text, and nothing that a note names is fetched from other hosts. Each
notation of Obsidian has a module in `simplemem.web.markdown`.
"""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin

from simplemem.web.markdown import (
    anchors,
    authorship,
    callouts,
    diagrams,
    embeds,
    formulas,
    links,
    tables,
    tasks,
)
from simplemem.web.markdown.comments import remove_comments
from simplemem.web.markdown.context import NoteContext
from simplemem.web.markdown.parts import MAX_CHARACTERS
from simplemem.web.markdown.state import Rendering


def render_note(text: str, prefix: str, context: NoteContext | None = None) -> str:
    """Return the HTML of the first 450,000 characters of a note's body.

    It lacks comments and block ids. `prefix` is that of the vault, for links. Without a context,
    each link leads to the note that has its target as name, and nothing is embedded.
    """
    context = context or NoteContext()
    rendering = Rendering(prefix, context, context.path)
    return _render_text(text[:MAX_CHARACTERS], rendering)


def _render_text(text: str, rendering: Rendering) -> str:
    """Return the HTML of a note, or of a text that is embedded in it."""
    html: str = _parser().render(remove_comments(text), rendering.environment())
    return html


@cache
def _parser() -> MarkdownIt:
    """Return the parser for CommonMark with tables, and with the notation of Obsidian.

    The environment of each text is that of its `Rendering`. It is made once per process.
    """
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable(["table", "strikethrough"])
    parser.use(footnote_plugin)
    links.add_rules(parser)
    formulas.add_rules(parser)
    diagrams.add_rules(parser)

    # In this order: a title of a callout may be a task, and an id is no part of either.
    anchors.add_rules(parser)
    callouts.add_rules(parser)
    tasks.add_rules(parser)
    embeds.add_rules(parser, _render_text)
    tables.add_rules(parser)
    authorship.add_rules(parser)
    return parser
