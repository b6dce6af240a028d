"""How CommonMark knows its harder blocks by their first lines: HTML, tables, definitions. Pure.

Only questions about one line or two; what they mean for a note is `scan.py`'s.
"""

from __future__ import annotations

import re

# What CommonMark strips around text: all of Unicode's spaces, but fewer controls than str.strip() takes.
SPACES = " \t\n\v\f\r\xa0\u1680\u202f\u205f\u3000\u2028\u2029" + "".join(map(chr, range(0x2000, 0x200B)))

_BLOCK_NAMES = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div"
    "|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li"
    "|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td"
    "|tfoot|th|thead|title|tr|track|ul"
)
_VALUE = r"""(?:[^"'=<>`\x00-\x20]++|'[^']*'|"[^"]*")"""
_ATTRIBUTE = rf"(?:\s++[a-zA-Z_:][a-zA-Z0-9:._-]*+(?:\s*+=\s*+{_VALUE})?+)"
HTML_TAG = rf"(?:<[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTE}*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)"

# CommonMark 4.6: how an HTML block begins, what ends it (None: an empty line), may it end a paragraph.
_HTML_KINDS: tuple[tuple[re.Pattern[str], re.Pattern[str] | None, bool], ...] = (
    (
        re.compile(r"<(?a:script|pre|style|textarea)(?=\s|>|$)", re.IGNORECASE),
        re.compile(r"</(?a:script|pre|style|textarea)>", re.IGNORECASE),
        True,
    ),
    (re.compile(r"<!--"), re.compile(r"-->"), True),
    (re.compile(r"<\?"), re.compile(r"\?>"), True),
    (re.compile(r"<![A-Za-z]"), re.compile(r">"), True),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>"), True),
    (re.compile(rf"</?(?a:{_BLOCK_NAMES})(?=\s|/?>|$)", re.IGNORECASE), None, True),
    (re.compile(HTML_TAG + r"\s*$"), None, False),
)

_COLUMN = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")

# One line that is a link definition whatever stands around it, unless the next line begins a title.
_DEFINITION = re.compile(
    r"\[(?=\s*+[^\]\s])[^\[\]\\]++\]:[ \t]*+"
    r"(?!(?i:vbscript|javascript|file|data):)[^\s<>\\()&%\x00-\x1f\x7f]++"
    r"""([ \t]++(?:"[^"\\]*+"|'[^'\\]*+'))?[ \t]*+$"""
)
_LABEL_PART = re.compile(r"\\.|[\[\]]")


def html_block_kind(rest: str, in_paragraph: bool) -> tuple[bool, re.Pattern[str] | None]:
    """Whether an HTML block begins with this text, and what ends it: a pattern, or None for a blank line."""
    for start, end, interrupts in _HTML_KINDS:
        if start.match(rest):
            return interrupts or not in_paragraph, end
    return False, None


def is_table_head(header: str, delimiters: str) -> bool:
    """Whether these two lines begin a table: as many delimiters as there are header cells."""
    cells = [cell.strip() for cell in delimiters.split("|")]
    inner = [cell for k, cell in enumerate(cells) if cell or k not in (0, len(cells) - 1)]
    return all(_COLUMN.fullmatch(cell) for cell in inner) and 0 < len(inner) == _column_count(header)


def _column_count(row: str) -> int:
    """How many cells a table row has: bars divide them unless escaped, one at either end is a border."""
    row = row.strip(SPACES)
    cells = len(_BAR.findall(row)) + 1
    cells -= row.startswith("|")
    return cells - (cells > 0 and row.endswith("|") and not row.endswith("\\|"))


def is_definition(line: str, at: int, following: str) -> bool | None:
    """Whether a link definition begins here; None when only the parser knows. A footnote `[^1]:` is none."""
    if line.startswith("[^", at):
        return False
    for found in _LABEL_PART.finditer(line, at + 1):
        if found[0] == "[":
            return False
        if found[0] == "]":
            if not line.startswith(":", found.end()):
                return False
            break
    definition = _DEFINITION.match(line, at)
    if definition is None or (definition[1] is None and following.lstrip(" \t>")[:1] in ('"', "'", "(")):
        return None
    return True
