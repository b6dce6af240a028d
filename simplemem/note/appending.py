"""Append text to a note. Pure.

The text becomes a block of its own, or continues the list or table that the note ends with.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

from simplemem.note.blocks import BlockScanner
from simplemem.note.note import Note
from simplemem.note.words import LINE_END, newline_of

_TAB_COLUMNS = 4
_MIN_CODE_COLUMNS = 4  # a line that is indented so far is code in CommonMark
_QUOTE_MARK = ">"
_BLOCK_STARTERS = frozenset("#>|`~<")

_LIST_MARKER = re.compile(
    r"""
    [ \t]*
    (?: (?P<bullet> [-+*] ) | [0-9]{1,9} (?P<delimiter> [.)] ) )
    (?= [ \t] | $ )
    """,
    re.VERBOSE,
)
_RULE = re.compile(
    r"""
    [ \t]*
    (?: (?: \* [ \t]* ){3,} | (?: - [ \t]* ){3,} | (?: _ [ \t]* ){3,} )
    $
    """,
    re.VERBOSE,
)
_DELIMITER_ROW = re.compile(  # of a table, such as `|---|:-:|`
    r"""
    [ \t]*+ \|? [ \t]*+
    :?-++:?  [ \t]*+
    (?: \| [ \t]*+ :?-++:? [ \t]*+ )*+
    \|? [ \t]*+ $
    """,
    re.VERBOSE,
)
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_BACKTICKS = re.compile(r"`+")
_CODE_OR_COMMENT = re.compile(r"\\[\\`] | (?P<backticks> `+ ) | (?P<comment> %% )", re.VERBOSE)


def append_content(note: Note, addition: str) -> str:
    """Return the text of the note with an addition at its end, below a blank line.

    No blank line is added if the note has no content, if one side has a blank line there already,
    if a fence is open, if the addition continues the list or table that the note ends with, or if
    it is indented as more of the last block. Every byte of the note stays as it is. The line ends
    of the addition become those of the note, and its last line is ended; an empty addition is a
    blank line. Does not check whether the addition becomes part of open code or of an open comment:
    `open_at_end` does.
    """
    text = note.text
    newline = newline_of(text)
    added = LINE_END.sub(newline, addition)

    parts = [text]
    if text and not _ends_line(text):
        parts.append(newline)
    if _needs_blank_line(note, added):
        parts.append(newline)
    parts.append(added)
    if not _ends_line(added):
        parts.append(newline)
    return "".join(parts)


def open_at_end(note: Note) -> str:
    """Return what an addition at the end would become part of, such as "a code block".

    The other values are "an HTML comment", "an HTML block" and "an Obsidian comment" (`%%`).
    Returns "" if nothing is open there. Indented code, lists and tables do not count.
    """
    scan = _scan_body(note)
    if scan.open == "fence":
        return "a code block"
    if scan.open == "html" and scan.html_end is not None:
        is_comment = "<!--" in scan.lines[scan.first]
        return "an HTML comment" if is_comment else "an HTML block"

    blocks = [block for block in note.body.blocks if block.kind != "code"]
    if _leaves_comment_open(note.text[block.start : block.end] for block in blocks):
        return "an Obsidian comment"
    return ""


def _leaves_comment_open(texts: Iterable[str]) -> bool:
    """Return whether the last `%%` in some blocks begins a comment that none of them closes.

    `texts` are the blocks in order, without code blocks; a comment may span several. In inline
    code, `%%` has no meaning.
    """
    is_open = False
    for text in texts:
        position = 0
        if is_open:
            end = text.find("%%")
            if end < 0:
                continue
            position = end + len("%%")
        is_open = _opens_comment(text, position)
    return is_open


def _opens_comment(text: str, position: int) -> bool:
    """Return whether a comment begins at or after an offset of a block and is not closed in it."""
    if "%%" not in text[position:]:
        return False

    backticks = _backticks_by_length(text)
    while True:
        token = _CODE_OR_COMMENT.search(text, position)
        if token is None:
            return False

        position = token.end()
        if token["comment"]:
            end = text.find("%%", position)
            if end < 0:
                return True
            position = end + len("%%")
        elif token["backticks"]:
            # Inline code ends with the next run of as many backticks; without one it is no code.
            length = len(token["backticks"])
            starts = backticks[length]
            index = bisect_left(starts, position)
            if index < len(starts):
                position = starts[index] + length


def _backticks_by_length(text: str) -> defaultdict[int, list[int]]:
    """Return where the runs of backticks in a text begin, in order, by the length of the run."""
    starts_by_length = defaultdict[int, list[int]](list)
    for run in _BACKTICKS.finditer(text):
        starts_by_length[len(run[0])].append(run.start())
    return starts_by_length


def _needs_blank_line(note: Note, added: str) -> bool:
    """Return whether a blank line has to be put between the note and the addition.

    None is needed if the note has no content, if either side has a blank line there, if a fence is
    open, or if the addition is meant to continue the last block. `added` has the line ends of the
    note.
    """
    if not note.text[note.content_start :].strip():
        return False

    scan = _scan_body(note)
    first_line = _split_lines(added)[0]
    ends_blank = not scan.lines[-1].strip()
    begins_blank = not first_line.strip()
    if ends_blank or begins_blank or scan.open == "fence":
        return False

    continues_block = (
        _is_indented_as_more(scan, added)
        or _continues_list(scan, added)
        or _continues_table(scan, added)
    )
    return not continues_block


def _is_indented_as_more(scan: BlockScanner, added: str) -> bool:
    """Return whether the addition is indented as more of what the note ends with.

    That is the last list item, code block or paragraph. Below a paragraph, a line that would begin
    a list, quote, heading or code does not count. The first line of `added` must not be blank.
    """
    if added[0] not in " \t":
        return False
    if scan.stack or scan.open == "code":
        return True

    # Below, the note ends with a block that is in no list item and no quote.
    line = _split_lines(added)[0]
    if _indent_columns(line) >= _MIN_CODE_COLUMNS:
        return False
    if line.lstrip()[0] in _BLOCK_STARTERS:
        return False
    return not (_LIST_MARKER.match(line) or _RULE.match(line))


def _continues_list(scan: BlockScanner, added: str) -> bool:
    """Return whether the addition begins with an item of a list that is open at the end.

    The item must have the same kind of marker as the list. Lists within quotes do not count.
    """
    line = _split_lines(added)[0]
    marker = _LIST_MARKER.match(line)
    if marker is None or _RULE.match(line):
        return False

    mark = marker["bullet"] or marker["delimiter"]
    indent = _indent_columns(line)
    for item_width, item_mark in zip(scan.stack, scan.marks, strict=True):
        if item_mark == _QUOTE_MARK:
            return False
        is_beside_item = indent < item_width  # else it is within the item
        if is_beside_item:
            return indent < _MIN_CODE_COLUMNS and item_mark == mark
        indent -= item_width
    return False


def _continues_table(scan: BlockScanner, added: str) -> bool:
    """Return whether the addition begins with a row of the table that the note ends with.

    A line that begins with a bar is a row. Any other line is one only if the last row does not
    begin with a bar either and has as many bars. An addition that is a table of its own does not
    count.
    """
    if scan.open != "table" or scan.stack:
        return False

    lines = _split_lines(added)
    if len(lines) > 1 and _DELIMITER_ROW.match(lines[1]):
        return False
    if lines[0].lstrip().startswith("|"):
        return True

    last_row = scan.lines[-1]
    if last_row.lstrip().startswith("|"):
        return False
    border_count = len(_CELL_BORDER.findall(last_row))
    return border_count > 0 and len(_CELL_BORDER.findall(lines[0])) == border_count


def _scan_body(note: Note) -> BlockScanner:
    """Return a scan of the body of a note, in which what is open at its end is still open."""
    scan = BlockScanner(_split_lines(note.text[note.content_start :]))
    scan.read_lines()
    return scan


def _split_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends; at least one, which may be "".

    The end of the last line begins no further line.
    """
    lines = LINE_END.split(text)
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def _ends_line(text: str) -> bool:
    """Return whether a text ends with a line end. An empty text does not."""
    return text.endswith(("\n", "\r"))


def _indent_columns(line: str) -> int:
    """Return how many columns of spaces and tabs a line begins with.

    A tab goes to the next multiple of four.
    """
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return len(indent.expandtabs(_TAB_COLUMNS))
