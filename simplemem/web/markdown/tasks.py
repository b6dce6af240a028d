"""Tasks: list items that begin with `[ ]`, `[x]` or another mark in brackets."""

from __future__ import annotations

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from simplemem.web.markdown.state import Rendering, rendering_of
from simplemem.web.markdown.tokens import first_inline, first_text, html_token, plain_text

_TASK: Final = re.compile(r"\[(?P<mark>[^\[\]\n])\] ")
_MAX_LABEL_CHARACTERS: Final = 100


def add_rules(parser: MarkdownIt) -> None:
    """Add tasks to a parser."""
    parser.core.ruler.push("tasks", _show_tasks)


def _show_tasks(state: StateCore) -> None:
    """Replace the brackets at the beginning of each task by a checkbox."""
    rendering = rendering_of(state.env)
    for position, token in enumerate(state.tokens):
        if token.type == "list_item_open":
            inline = first_inline(state.tokens, position)
            if inline is not None:
                _show_task(token, inline, rendering)


def _show_task(item: Token, inline: Token, rendering: Rendering) -> None:
    """Replace the brackets of a task by a checkbox, which is checked unless they contain a space.

    The item gets the attribute `data-line`, its line in the file, by which the page changes it;
    embedded tasks have none. A list item that is no task stays as it is.
    """
    text = first_text(inline)
    if text is None:
        return
    match = _TASK.match(text.content)
    if match is None:
        return

    text.content = text.content[match.end() :]
    children = inline.children or []
    label = plain_text(children)[:_MAX_LABEL_CHARACTERS].strip() or "Task"
    checked = "" if match["mark"] == " " else " checked"
    box = f'<input type="checkbox" disabled{checked} aria-label="{escapeHtml(label)}"> '
    inline.children = [html_token(box), *children]

    item.attrSet("class", "task")
    if item.map is not None and not rendering.is_embedded:
        item.attrSet("data-line", str(rendering.context.first_line + item.map[0]))
