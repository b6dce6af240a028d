"""Long notes in pages: cut where a section begins, else between paragraphs, and said how to go on. Pure.

A page is asked for with a number in brackets after the section's name, or alone for the whole note:
`section="Log [2]"`, `"[2]"`. The same text is always cut in the same places, so pages read one after
another are the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from simplemem.errors import NotFound

_PAGE = 20_000  # characters: about five thousand tokens of a script with spaces
_NUMBER = re.compile(r"\A(.{0,1000}?)\s*\[(\d{1,6})\]\s*\Z", re.DOTALL)
_SECTION = re.compile(r"^ {0,3}#{1,6}[ \t]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LongPage:
    """One page of a text, which begins at `start`. `following` is the `section` to ask for next, None on the last."""

    text: str
    number: int
    count: int
    following: str | None
    start: int = 0


def asked_page(section: str | None) -> tuple[str | None, int]:
    """The section and the page that `section` asks for: `"Log [2]"` is page 2 of Log."""
    if section and (found := _NUMBER.match(section)):
        return found[1].strip() or None, int(found[2])
    return section or None, 1


def page_size(text: str, tokens: int) -> int:
    """Characters on a page of this text, so that it has the tokens of any other."""
    return max(_PAGE // 4, min(_PAGE, len(text) * _PAGE // (4 * tokens))) if tokens else _PAGE


def page_of(text: str, section: str | None, number: int, size: int = _PAGE) -> LongPage:
    """Page `number` of a text; NotFound when there are not so many. No page but the last ends before its middle."""
    starts = [0]
    while len(text) - starts[-1] > size:
        middle, limit = starts[-1] + size // 2, starts[-1] + size
        sections = [found.start() for found in _SECTION.finditer(text, middle, limit)]
        gaps = ((text.rfind(gap, middle, limit), len(gap)) for gap in ("\n\n", "\r\n\r\n", "\n", " "))
        starts.append(sections[-1] if sections else next((at + length for at, length in gaps if at >= 0), limit))
    if not 1 <= number <= len(starts):
        raise NotFound(f"There is no page {number} here: there are {len(starts)}.", hint='Ask for section="[1]".')
    following = f"{section or ''} [{number + 1}]".strip() if number < len(starts) else None
    start, end = [*starts, len(text)][number - 1 : number + 1]
    return LongPage(text[start:end], number, len(starts), following, start)
