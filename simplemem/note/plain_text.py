"""Plain text of Markdown: what a reader sees, without the marks. Pure.

Answers and excerpts show this text. Code that needs the places of links, tags or blocks in the
source reads the body instead (`body.py`).
"""

from __future__ import annotations

import re

from simplemem.note.comments import without_html_comments

# Looking for the end of a mark takes longer the more text follows, so only the beginning is read.
_MAX_CHARACTERS = 10_000

_SPACE = re.compile(r"\s+")
_CELL_END = re.compile(r"(?<!\\)\|")

# Each alternative is one kind of markup. The last named group that matched holds what remains
# visible; markup without such a group disappears. The order is: fenced code, lines that only
# separate, table rows, marks at the beginning of a line, and then markup inside a line.
_MARKUP = re.compile(
    r"""^(?:[ \t>]*+(?P<fence>`{3,}|~{3,})[^\n]*\n?(?P<fenced>(?s:.*?))
        (?:^[ \t>]*+(?P=fence)[^\n]*$|\Z)
      | [ \t>]*+\|?[ \t]*+:?-{3,}+[-:| \t]*+$ | [ \t]*+={3,}+[ \t]*+$
      | [ \t>]*+\|(?P<row>[^\n]*)$
      | [ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?|\#{1,6}[ \t]+|\[![^\]\n]+\][+-]?)
        | (?:[ \t]*+>)++)
      | (?=[`\\![<*~=_%^\#-])(?:
        (?<!`)(?P<tick>`+)(?!`)(?P<code>.{1,500}?)(?<!`)(?P=tick)(?!`)
      | \\(?P<escaped>[!-/:-@\[-`{-~])
      | !?\[\[(?P<target>[^\[\]|\n]+?)(?:\\?\|(?P<display>[^\[\]\n]+))?\]\]
      | !?\[(?P<words>[^\[\]\n]*)\]\((?:<[^<>\n]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)
        (?:[ ]"[^"\n]*")?\)
      | \[\^[^\[\]\s]+\]:? | <(?P<address>[a-z]+:[^<>\s]+)> | <!--|--> | %% | </?[A-Za-z][^<>\n]*>
      | (?<=[ \t])(?:\^[A-Za-z0-9-]+|\#+)[ \t]*+$
      | (?P<mark>\*{2,3}+(?!\*)|~~(?!~)|==(?!=)|(?<![^\W_])(?:\*(?!\*)|_{1,3}+(?!_)))(?=\S)
        (?P<marked>[^\n]{1,500}?)(?<=\S)(?P=mark)(?!\*)(?<!\w_(?=\w)))""",
    re.VERBOSE | re.MULTILINE,
)

# The groups whose content may hold markup of its own.
_NESTING_GROUPS = frozenset({"marked", "words"})


def plain_text(text: str, depth: int = 3) -> str:
    """Return the first 10,000 characters of Markdown as its reader sees them, on one line.

    HTML comments are left out. Marks inside marks are resolved `depth` levels deep.
    """
    source = without_html_comments(text[:_MAX_CHARACTERS])
    plain = _MARKUP.sub(lambda match: _visible_text(match, depth), source)
    return _SPACE.sub(" ", plain).strip()


def _visible_text(match: re.Match[str], depth: int) -> str:
    """Return what a reader sees of one piece of markup."""
    group = match.lastgroup
    if group is None:
        return ""

    content = match[group]
    if group == "row":
        return _row_text(content)
    if group in _NESTING_GROUPS and depth > 0:
        return plain_text(content, depth - 1)
    return content


def _row_text(row: str) -> str:
    """Return the cells of a table row with dots between them, without separator cells."""
    cells = [plain_text(cell) for cell in _CELL_END.split(row)]
    return " · ".join(cell for cell in cells if cell.strip(" :-"))
