"""The line ends of a note that was edited in a form, which knows only one kind. Pure.

A browser shows each line end of a text as LF, and sends CRLF for all of them.
"""

from __future__ import annotations

from simplemem.note.diff import match_lines
from simplemem.note.line_merge import LINE
from simplemem.note.words import LINE_END, newline_of

_BYTE_ORDER_MARK = "\ufeff"


def text_for_form(text: str) -> str:
    """Return the text of a note as a form shows it: with LF, and without a byte order mark."""
    return LINE_END.sub("\n", text.removeprefix(_BYTE_ORDER_MARK))


def restore_line_ends(original: str, typed: str) -> str:
    """Return the text of a form with the byte order mark and the line ends of the note it is of.

    A line that the user left as it was keeps its own line end, also if the note mixes several
    kinds. A new or changed line gets the first line end of the note. So a form that nobody changed
    gives the original text.
    """
    typed_text = text_for_form(typed)
    if typed_text == text_for_form(original):
        return original

    has_mark = original.startswith(_BYTE_ORDER_MARK)
    original_lines = LINE.findall(original.removeprefix(_BYTE_ORDER_MARK))
    typed_lines = LINE.findall(typed_text)
    newline = newline_of(original)

    matches = match_lines(_without_ends(typed_lines), _without_ends(original_lines))
    lines = []
    for typed_line, position in zip(typed_lines, matches, strict=True):
        text = typed_line.removesuffix("\n")
        end = typed_line[len(text) :]
        if end:
            end = newline
            if position >= 0:
                end = _end_of(original_lines[position]) or newline
        lines.append(text + end)

    mark = _BYTE_ORDER_MARK if has_mark else ""
    return mark + "".join(lines)


def _without_ends(lines: list[str]) -> list[str]:
    """Return lines without their line ends."""
    return [line.rstrip("\r\n") for line in lines]


def _end_of(line: str) -> str:
    """Return the line end of a line; "" if it has none."""
    return line[len(line.rstrip("\r\n")) :]
