"""Removes `%%comments%%`, which Obsidian does not show, but not from code."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

_MARK: Final = re.compile(
    r"^[ \t>]*+(?P<fence>`{3,}+|~{3,}+)|(?P<code>`++)|(?P<comment>%%)", re.MULTILINE
)
_FENCE_END: Final = re.compile(r"^[ \t>]*+(?P<fence>`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_BACKTICKS: Final = re.compile(r"`++")
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*+\n")


def remove_comments(text: str) -> str:
    """Return a text without its comments. All line breaks stay, so that lines keep their numbers.

    A comment without an end reaches to the end of the text.
    """
    if "%%" not in text:
        return text

    code = _InlineCode(text)
    kept = []
    kept_until = 0
    mark = _MARK.search(text)
    while mark is not None:
        start, end = mark.span()
        if mark["comment"]:
            end = _end_of_comment(text, end)
            kept.append(text[kept_until:start])
            kept.append("\n" * text.count("\n", start, end))
            kept_until = end
        elif mark["fence"]:
            end = _end_of_fence(text, mark["fence"], end)
        else:
            end = code.end_of(start, end)
        mark = _MARK.search(text, end)
    kept.append(text[kept_until:])
    return "".join(kept)


def _end_of_comment(text: str, start: int) -> int:
    """Return where the comment ends whose content begins at `start`."""
    end = text.find("%%", start)
    return len(text) if end < 0 else end + len("%%")


def _end_of_fence(text: str, fence: str, start: int) -> int:
    """Return where fenced code ends: behind the line that closes it, or with the text."""
    for closing in _FENCE_END.finditer(text, start):
        if closing["fence"].startswith(fence):
            return closing.end()
    return len(text)


class _InlineCode:
    """Finds where inline code ends. Guards the places of all backticks of a text, read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: dict[int, list[int]] = {}  # by the number of backticks
        for run in _BACKTICKS.finditer(text):
            self._starts.setdefault(len(run[0]), []).append(run.start())
        self._blank_lines = [match.start() for match in _BLANK_LINE.finditer(text)]

    def end_of(self, start: int, end: int) -> int:
        """Return where the code ends that begins with the backticks text[start:end].

        If no equal run follows in the paragraph, the backticks are text, and `end` is returned.
        """
        length = end - start
        starts = self._starts.get(length, [])
        next_run = bisect_right(starts, start)
        if next_run == len(starts):
            return end

        next_blank_line = bisect_right(self._blank_lines, start)
        has_blank_line = next_blank_line < len(self._blank_lines)
        if has_blank_line and self._blank_lines[next_blank_line] < starts[next_run]:
            return end
        return starts[next_run] + length
