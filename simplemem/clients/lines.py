"""Lines of a configuration file: their ends, their extent and their indentation. Pure."""

from __future__ import annotations


def line_end_of(text: str) -> str:
    """Return the line end that a text uses: "\\r\\n" if it occurs, else "\\n"."""
    if "\r\n" in text:
        return "\r\n"
    return "\n"


def end_last_line(text: str) -> str:
    """Return the text with a line end after its last line; an empty text stays empty."""
    if not text or text.endswith("\n"):
        return text
    return text + line_end_of(text)


def line_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the offsets of the beginning and the end of the lines that contain a range.

    `start` and `end` are the offsets of the range. The line end of the last line is included.
    """
    line_start = text.rfind("\n", 0, start) + 1
    next_line = text.find("\n", end) + 1
    return line_start, next_line or len(text)


def indentation(text: str, offset: int) -> str:
    """Return the blanks at the beginning of the line of an offset, at most up to the offset."""
    line_start, _ = line_span(text, offset, offset)
    line = text[line_start:offset]
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[:blanks]
