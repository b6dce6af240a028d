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
    closing = text.find("%%", start)
    if closing < 0:
        return len(text)
    return closing + len("%%")


def _end_of_fence(text: str, fence: str, start: int) -> int:
    """Return where the fenced code ends whose first line has the mark `fence` before `start`.

    Without a line that closes it, it ends with the text.
    """
    for closing in _FENCE_END.finditer(text, start):
        if closing["fence"].startswith(fence):
            return closing.end()
    return len(text)


class _InlineCode:
    """Finds where inline code ends. Guards the places of all backticks, which it reads once."""

    def __init__(self, text: str) -> None:
        self._starts: dict[int, list[int]] = {}  # of runs of backticks, by their length
        for run in _BACKTICKS.finditer(text):
            self._starts.setdefault(len(run[0]), []).append(run.start())
        self._blank_lines = [match.start() for match in _BLANK_LINE.finditer(text)]

    def end_of(self, start: int, end: int) -> int:
        """Return where the code ends that begins with the backticks text[start:end].

        If no equal run follows in the paragraph, the backticks are text, and `end` is returned.
        """
        length = end - start
        starts = self._starts.get(length, [])
        next_index = bisect_right(starts, start)
        if next_index == len(starts):
            return end

        closing = starts[next_index]
        blank_lines_before = bisect_right(self._blank_lines, start)
        is_in_paragraph = bisect_right(self._blank_lines, closing) == blank_lines_before
        if not is_in_paragraph:
            return end
        return closing + length
