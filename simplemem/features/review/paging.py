"""Pages of the inbox, which may end between sessions only. Pure.

A position names a place between two items by numbers that stay when items leave the list, so that
no page skips an item after others were reviewed. If a session goes on, it moves to the top.
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

    A text that is no position counts as "", and a limit below 1 as 1.
    """
    limit = max(1, limit)
    start = _start_of(entries, position)
    end = _end_of_page(entries, start, limit, whole_sessions=whole_sessions)

    newer = None
    if start > 0:
        newer_start = _start_of_page_before(entries, start, limit, whole_sessions=whole_sessions)
        newer = _position_before(entries, newer_start)
    older = None
    if end < len(entries):
        older = _position_before(entries, end)
    return PageOfItems(entries[start:end], newer, older)


def _start_of(entries: Sequence[Entry], position: str) -> int:
    """Return the index of the first entry after a position."""
    match = _POSITION.fullmatch(position)
    if match is None:
        return 0
    # Places fall: the entries before the position have a larger place, or its own.
    place = (int(match[1]), int(match[2]))
    return sum(entry.place >= place for entry in entries)


def _position_before(entries: Sequence[Entry], index: int) -> str:
    """Return the position of the page that begins with the entry at an index."""
    if index == 0:
        return ""
    group_number, item_number = entries[index - 1].place
    return f"{group_number}-{item_number}"


def _start_of_page_before(
    entries: Sequence[Entry], index: int, limit: int, *, whole_sessions: bool
) -> int:
    """Walk the pages from the first one, and return the start of the one that reaches an index.

    It may reach further, if items have left the list.
    """
    start = 0
    while True:
        end = _end_of_page(entries, start, limit, whole_sessions=whole_sessions)
        if end >= index:
            return start
        start = end


def _end_of_page(entries: Sequence[Entry], start: int, limit: int, *, whole_sessions: bool) -> int:
    """Return the end of the page that begins at an index.

    The page ends before or after the session that would be cut, whichever is nearer to the limit.
    It is at least half full, unless it is the last one, and has at most four times the limit.
    """
    end = min(start + limit, len(entries))
    if not whole_sessions:
        return end

    session_start, session_end = _session_across(entries, end)
    is_half_full = session_start - start >= limit / 2
    is_start_nearer = end - session_start <= session_end - end
    if is_half_full and is_start_nearer:
        return session_start
    return min(session_end, start + _MAX_FACTOR * limit)


def _session_across(entries: Sequence[Entry], index: int) -> tuple[int, int]:
    """Return the start and the end of the session that a cut at an index would divide.

    Both are the index itself if the cut is between two sessions.
    """
    start = end = index
    if not 0 < index < len(entries) or entries[index - 1].group is not entries[index].group:
        return start, end

    group = entries[index].group
    while start > 0 and entries[start - 1].group is group:
        start -= 1
    while end < len(entries) and entries[end].group is group:
        end += 1
    return start, end
