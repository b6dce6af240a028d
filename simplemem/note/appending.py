"""Text added at the end of a note as a block of its own, or as more of the list or table that the note ends with. Pure."""

from __future__ import annotations

import re

from simplemem.note.blocks import Scan
from simplemem.note.body import newline_of
from simplemem.note.header import LINE_END
from simplemem.note.note import Note

_TAB_WIDTH = 4
_CODE_INDENT = 4  # columns from which CommonMark takes a line for code
_MARKER = re.compile(r"[ \t]*(?:([-+*])|[0-9]{1,9}([.)]))(?=[ \t]|$)")
_RULE = re.compile(r"[ \t]*(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_DELIMITER_ROW = re.compile(r"[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$")
_BAR = re.compile(r"(?<!\\)\|")
_BLOCK_STARTERS = frozenset("#>|`~<")


def append_content(note: Note, addition: str) -> str:
    """Return the note with text added at its end, below a blank line.

    There is no blank line if nothing stands above, if the addition continues the list or table that the
    note ends with, or if it begins with a space, which asks for none. Every byte of the note stays as it
    is; the addition gets the note's line ends.
    """
    text = note.text
    newline = newline_of(text)
    added = addition if newline == "\n" else LINE_END.sub(newline, addition)

    ending = "" if not text or _ends_line(text) else newline
    gap = newline if _needs_gap(note, added) else ""
    closing = "" if _ends_line(added) else newline
    return f"{text}{ending}{gap}{added}{closing}"


def open_at_end(note: Note) -> str:
    """Name what takes in all that is added at the end of a note, such as code that is not closed; "" for nothing."""
    scan = _scan_body(note)
    if scan.open == "fence":
        return "a code block"
    if scan.open == "html" and scan.html_end is not None:
        return "an HTML comment" if "<!--" in scan.lines[scan.first] else "an HTML block"

    prose = (note.text[block.start : block.end] for block in note.body.blocks if block.kind != "code")
    if sum(text.count("%%") for text in prose) % 2:
        return "an Obsidian comment"
    return ""


def _needs_gap(note: Note, added: str) -> bool:
    if not note.text[note.content_start :].strip():
        return False
    scan = _scan_body(note)
    ends_blank = not scan.lines[-1].strip()
    begins_blank = not _split_lines(added)[0].strip()
    if ends_blank or begins_blank or scan.open == "fence":
        return False
    return not (_asks_for_no_gap(scan, added) or _continues_list(scan, added) or _continues_table(scan, added))


def _asks_for_no_gap(scan: Scan, added: str) -> bool:
    """Whether the addition is indented as more of the last item, of indented code, or of the last paragraph."""
    if added[0] not in " \t":
        return False
    if scan.stack or scan.open == "code":
        return True
    line = _split_lines(added)[0]
    starts_block = line.lstrip()[0] in _BLOCK_STARTERS or _MARKER.match(line) or _RULE.match(line)
    return _indent_of(line) < _CODE_INDENT and not starts_block


def _continues_list(scan: Scan, added: str) -> bool:
    """Whether the addition begins with an item of one of the lists that are open at the end."""
    line = _split_lines(added)[0]
    marker = _MARKER.match(line)
    if marker is None or _RULE.match(line):
        return False

    indent = _indent_of(line)
    for width, mark in zip(scan.stack, scan.marks, strict=True):
        if mark == ">":
            return False
        if indent < width:
            return indent < _CODE_INDENT and mark == (marker[1] or marker[2])
        indent -= width
    return False


def _continues_table(scan: Scan, added: str) -> bool:
    """Whether the addition begins with a row of the table that the note ends with, and with no table of its own."""
    if scan.open != "table" or scan.stack:
        return False
    lines = _split_lines(added)
    if len(lines) > 1 and _DELIMITER_ROW.match(lines[1]):
        return False
    if lines[0].lstrip().startswith("|"):
        return True
    last_row = scan.lines[-1]
    is_like_last_row = not last_row.lstrip().startswith("|") and _BAR.search(last_row) is not None
    return is_like_last_row and len(_BAR.findall(lines[0])) == len(_BAR.findall(last_row))


def _scan_body(note: Note) -> Scan:
    """Read the body, and leave open what is open at its end."""
    scan = Scan(_split_lines(note.text[note.content_start :]))
    scan.read_lines()
    return scan


def _split_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends. The end of the last line begins no further line."""
    lines = LINE_END.split(text)
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def _ends_line(text: str) -> bool:
    return text.endswith(("\n", "\r"))


def _indent_of(line: str) -> int:
    """Return how many columns of space a line begins with."""
    blank = line[: len(line) - len(line.lstrip(" \t"))]
    return len(blank.expandtabs(_TAB_WIDTH))
