"""Pages of the inbox, which do not cut a session in two. Pure.

A position names a place between two items by numbers that stay when items leave the list, so that
no page skips an item after others were reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.features.review.folding import Group, Item

_POSITION: Final = re.compile(r"(\d{1,15})-(\d{1,15})")
_MAX_FACTOR: Final = 4  # how many times the size of a page a whole session may have


class Entry(NamedTuple):
    """An item with its session, and its place in the list."""

    group: Group
    item: Item

    @property
    def place(self) -> tuple[int, int]:
        """Numbers by which the entries are ordered, the largest first."""
        return self.group.last_number, self.item.last.number


class PageOfItems(NamedTuple):
    """The entries of a page, and the positions of the pages before and after; None if none."""

    entries: Sequence[Entry]
    newer: str | None
    older: str | None


def list_entries(groups: Sequence[Group]) -> list[Entry]:
    """Return the items of all groups in the order of the list."""
    return [Entry(group, item) for group in groups for item in group.items]


def page_of(
    entries: Sequence[Entry], position: str, limit: int, *, whole_sessions: bool
) -> PageOfItems:
    """Return the page that begins at a position, which is "" for the first page.

    A text that is no position counts as "".
    """
    start = _start_of(entries, position)
    end = min(start + limit, len(entries))
    newer_start = max(0, start - limit)
    if whole_sessions:
        end = _end_of_session(entries, start, end, limit)
        newer_start = _start_of_session(entries, newer_start, start, limit)

    older = _position_before(entries, end) if end < len(entries) else None
    newer = _position_before(entries, newer_start) if start > 0 else None
    return PageOfItems(entries[start:end], newer, older)


def _start_of(entries: Sequence[Entry], position: str) -> int:
    """Return the index of the first entry after a position."""
    match = _POSITION.fullmatch(position)
    if match is None:
        return 0
    place = (int(match[1]), int(match[2]))
    return sum(entry.place >= place for entry in entries)


def _position_before(entries: Sequence[Entry], index: int) -> str:
    """Return the position of the page that begins with the entry at an index."""
    if index == 0:
        return ""
    group_number, item_number = entries[index - 1].place
    return f"{group_number}-{item_number}"


def _end_of_session(entries: Sequence[Entry], start: int, end: int, limit: int) -> int:
    """Return the end of a page with the rest of its last session, unless that is very large."""
    last = min(start + _MAX_FACTOR * limit, len(entries))
    while 0 < end < last and entries[end].group is entries[end - 1].group:
        end += 1
    return end


def _start_of_session(entries: Sequence[Entry], start: int, end: int, limit: int) -> int:
    """Return the start of a page with the rest of its first session, unless that is very large."""
    first = max(0, end - _MAX_FACTOR * limit)
    while start > first and entries[start].group is entries[start - 1].group:
        start -= 1
    return start
