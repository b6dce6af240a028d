"""Shows beside each block of a note who last changed it, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from simplemem.web.markdown.context import Authorship, NoteContext
from simplemem.web.markdown.state import rendering_of
from simplemem.web.markdown.tokens import html_block_token

_DAY_LENGTH: Final = len("2026-01-24")
_KIND_NAMES: Final = {"human": "person", "agent": "agent"}


def add_rules(parser: MarkdownIt) -> None:
    """Add the authors of blocks to a parser. It shows them if the context has any."""
    parser.core.ruler.push("authorship", _show_authors)


def _show_authors(state: StateCore) -> None:
    """Put consecutive blocks of the same authors into a box, with a line that names them."""
    rendering = rendering_of(state.env)
    if rendering.is_embedded or not rendering.context.authorship:
        return

    changed: list[Token] = []
    authors_of_box = ""  # their line, as HTML; "" before the first box
    for token in state.tokens:
        begins_block = token.level == 0 and token.nesting >= 0 and token.map is not None
        if begins_block:
            authors = _authors_of_block(token, rendering.context)
            if authors != authors_of_box:
                changed.append(_start_of_box(authors, is_first=not authors_of_box))
                authors_of_box = authors
        changed.append(token)

    if authors_of_box:
        # Footnotes are below the text, and belong to no block.
        changed.insert(_end_of_blocks(changed), html_block_token("</div>\n"))
    state.tokens = changed


def _end_of_blocks(tokens: Sequence[Token]) -> int:
    """Return the position behind the last block that is not a footnote."""
    for position, token in enumerate(tokens):
        if token.type == "footnote_block_open":
            return position
    return len(tokens)


def _start_of_box(authors: str, *, is_first: bool) -> Token:
    """Return the token that closes the box before, if there is one, and opens the next."""
    closing = "" if is_first else "</div>\n"
    return html_block_token(f'{closing}<div class="written">\n{authors}\n')


def _authors_of_block(token: Token, context: NoteContext) -> str:
    """Return the HTML that says who changed the lines of a block, the latest author first."""
    first, end = token.map or (0, 0)
    first_line = context.first_line + first
    last_line = context.first_line + max(first, end - 1)
    changes = _changes_within(context.authorship, first_line, last_line)
    latest_first = sorted(changes, key=lambda change: change.when, reverse=True)

    kind = "human"
    if any(change.kind == "agent" for change in changes):
        kind = "agent"
    names = dict.fromkeys(_name_of(change) for change in latest_first)
    text = escapeHtml(", ".join(names)) + _day_of_latest(latest_first)
    return f'<p class="author author-{kind}">{text}</p>'


def _day_of_latest(latest_first: Sequence[Authorship]) -> str:
    """Return the HTML of the day of the first change; "" if there is none, or it is not known."""
    if not latest_first or not latest_first[0].when:
        return ""
    day = escapeHtml(latest_first[0].when[:_DAY_LENGTH])
    return f' <time datetime="{day}">{day}</time>'


def _changes_within(
    authorship: Sequence[Authorship], first_line: int, last_line: int
) -> list[Authorship]:
    """Return who changed the lines from `first_line` to `last_line`, which is included."""
    changes = []
    for position, change in enumerate(authorship):
        end = last_line + 1  # the last change reaches to the end of the note
        if position + 1 < len(authorship):
            end = authorship[position + 1].line
        if change.line <= last_line and end > first_line:
            changes.append(change)
    return changes


def _name_of(change: Authorship) -> str:
    """Return who made a change, with their kind if the name does not say it: `claude (agent)`."""
    who = change.who or "unknown"
    kind = _KIND_NAMES.get(change.kind, "")
    if not kind or kind == who:
        return who
    return f"{who} ({kind})"
