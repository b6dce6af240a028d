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
    current = ""  # the line about the authors of the open box
    for token in state.tokens:
        begins_block = token.level == 0 and token.nesting >= 0 and token.map is not None
        if begins_block:
            author = _author_of_block(token, rendering.context)
            if author != current:
                changed += [_html_block(author, is_first=not current)]
                current = author
        changed.append(token)

    if current:
        end = Token("html_block", "", 0)
        end.content = "</div>\n"
        # Footnotes are below the text, and belong to no block.
        changed.insert(_end_of_blocks(changed), end)
    state.tokens = changed


def _end_of_blocks(tokens: Sequence[Token]) -> int:
    """Return the position behind the last block that is not a footnote."""
    for position, token in enumerate(tokens):
        if token.type == "footnote_block_open":
            return position
    return len(tokens)


def _html_block(author: str, *, is_first: bool) -> Token:
    """Return the token that closes the box before, if there is one, and opens one of an author."""
    closing = "" if is_first else "</div>\n"
    token = Token("html_block", "", 0)
    token.content = f'{closing}<div class="written">\n{author}\n'
    return token


def _author_of_block(token: Token, context: NoteContext) -> str:
    """Return the HTML that says who changed the lines of a block, the latest author first."""
    first, end = token.map or (0, 0)
    first_line = context.first_line + first
    last_line = context.first_line + max(first, end - 1)
    changes = _changes_within(context.authorship, first_line, last_line)
    latest_first = sorted(changes, key=lambda change: change.when, reverse=True)

    names = list(dict.fromkeys(_name_of(change) for change in latest_first))
    kinds = {change.kind for change in changes}
    kind = "agent" if "agent" in kinds else "human"
    day = latest_first[0].when[:_DAY_LENGTH] if latest_first else ""
    time = f' <time datetime="{escapeHtml(day)}">{escapeHtml(day)}</time>' if day else ""
    return f'<p class="author author-{kind}">{escapeHtml(", ".join(names))}{time}</p>'


def _changes_within(
    authorship: Sequence[Authorship], first_line: int, last_line: int
) -> list[Authorship]:
    """Return who changed the lines from `first_line` to `last_line`.

    Blank lines belong to their blocks, too: they are the authorship's, as all others.
    """
    changes = []
    for position, lines in enumerate(authorship):
        is_last = position + 1 == len(authorship)
        end = last_line + 1 if is_last else authorship[position + 1].line
        if lines.line <= last_line and end > first_line:
            changes.append(lines)
    return changes


def _name_of(change: Authorship) -> str:
    """Return who made a change, with what they are: `claude (agent)`."""
    who = change.who or "unknown"
    kind = _KIND_NAMES.get(change.kind, "")
    if not kind or kind == who:
        return who
    return f"{who} ({kind})"
