"""Long texts a page at a time. A page ends where a section begins, or else between paragraphs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from simplemem.errors import NotFound
from simplemem.tools.render import format_count

_PAGE_LENGTH: Final = 20_000  # characters: about 5,000 tokens of a script with spaces
_CHARACTERS_PER_TOKEN: Final = 4
_PAGE_NUMBER: Final = re.compile(r"\[(\d{1,6})\]\Z")
_SECTION: Final = re.compile(r"^ {0,3}#{1,6}[ \t]", re.MULTILINE)
_GAPS: Final = ("\n\n", "\r\n\r\n", "\n", " ")


@dataclass(frozen=True)
class LongPage:
    """One page of a text, from `start` on. `following` is the `section` of the next page."""

    text: str
    number: int
    total: int
    following: str | None
    start: int


def asked_page(section: str | None) -> tuple[str | None, int]:
    """Return the heading and the page that `section` asks for: `"Log [2]"` is page 2 of Log.

    The heading is None for the whole note. The page is 1 if none is named.
    """
    text = (section or "").strip()
    number = _PAGE_NUMBER.search(text)
    if number is None:
        return section or None, 1
    heading = text[: number.start()].strip()
    return heading or None, int(number[1])


def page_size(text: str, tokens: int) -> int:
    """Return how many characters a page has, so that pages of any script have as many tokens.

    `tokens` is the number of tokens of the whole text; 0 if it was not counted, for the largest
    page. A page has between 5,000 and 20,000 characters.
    """
    if not tokens:
        return _PAGE_LENGTH
    size = len(text) * _PAGE_LENGTH // (_CHARACTERS_PER_TOKEN * tokens)
    return max(_PAGE_LENGTH // 4, min(_PAGE_LENGTH, size))


def page_of(text: str, section: str | None, number: int, size: int = _PAGE_LENGTH) -> LongPage:
    """Return page `number` of a text, which counts from 1.

    `section` is the heading that the text belongs to, for the name of the next page. With the same
    `size`, in characters, a text is always cut in the same places. Raises NotFound if there is no
    page of this number.
    """
    starts = _page_starts(text, size)
    total = len(starts)
    if not 1 <= number <= total:
        message = f"no page {number}; the text has {format_count(total, 'page', 'pages')}"
        raise NotFound(message, hint='Pass section="[1]" for the first page.')

    start = starts[number - 1]
    if number == total:
        return LongPage(text[start:], number, total, None, start)

    following = f"{section or ''} [{number + 1}]".strip()
    return LongPage(text[start : starts[number]], number, total, following, start)


def _page_starts(text: str, size: int) -> list[int]:
    """Return where each page begins, in characters. No page is longer than `size`."""
    start = 0
    starts = [start]
    while len(text) - start > size:
        start = _page_end(text, start + size // 2, start + size)
        starts.append(start)
    return starts


def _page_end(text: str, middle: int, limit: int) -> int:
    """Return where to cut a page: before the last section, else after the last gap.

    Looks between `middle` and `limit`. Without either, returns `limit`.
    """
    sections = list(_SECTION.finditer(text, middle, limit))
    if sections:
        return sections[-1].start()
    for gap in _GAPS:
        position = text.rfind(gap, middle, limit)
        if position >= 0:
            return position + len(gap)
    return limit
