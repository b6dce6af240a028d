"""List notes, page by page."""

from __future__ import annotations

from simplemem.errors import Invalid
from simplemem.index.api import SORTS, NotePage
from simplemem.index.service import IndexService
from simplemem.models import Filter, Listed, Page
from simplemem.note.names import name_of
from simplemem.search.conditions import ConditionChecker
from simplemem.search.filters import FilterResolver
from simplemem.search.needs import IndexKeeper, IndexMonitor
from simplemem.search.pipeline import checked_limit

MAX_PAGE = 1000
_MAX_OFFSET_DIGITS = 9


class NoteLister:
    """Lists the notes that pass a filter. Guards no state."""

    def __init__(
        self,
        index: IndexService,
        *,
        keeper: IndexKeeper,
        monitor: IndexMonitor,
        filters: FilterResolver,
        conditions: ConditionChecker,
    ) -> None:
        self._index = index
        self._keeper = keeper
        self._monitor = monitor
        self._filters = filters
        self._conditions = conditions

    def list(self, filter: Filter | None, sort: str, limit: int, cursor: str | None) -> Page:
        """Return a page of the notes that pass a filter.

        `cursor` is the `next_cursor` of the page before; None for the first page. A limit above
        1,000 is read as 1,000. If no note passes, `degraded` says which condition no note meets.
        Raises Invalid for a limit below 1, for another order than `SORTS`, for a cursor of a list
        in another order, and for a filter that cannot be resolved.
        """
        limit = checked_limit(limit, MAX_PAGE, "limit")
        if sort not in SORTS:
            raise Invalid(f"cannot sort by {sort!r}", hint=f"Sort by one of {', '.join(SORTS)}.")
        self._keeper.prepare(vectors=False)
        earlier_state = self._monitor.state_if_behind()
        offset = _offset_of(cursor, sort)
        resolved = self._filters.resolve(filter or Filter())
        page = self._keeper.revalidated(
            lambda: self._index.page(resolved, sort, limit, offset), lambda page: page.rows
        )

        items = _items_of(page)
        end = offset + len(items)
        next_cursor = f"{end}-{sort}" if end < page.total else None
        degraded = "" if page.total else self._conditions.unmet(resolved)
        state = self._monitor.state_of_list(earlier_state)
        return Page(items, next_cursor, page.total, state, degraded)


def _offset_of(cursor: str | None, sort: str) -> int:
    """Return how many notes come before a page: 0 without a cursor.

    Raises Invalid for a cursor of a list in another order, and for a text that is no cursor.
    """
    if not cursor:
        return 0
    offset, _, cursor_sort = cursor.partition("-")
    is_number = offset.isdecimal() and len(offset) <= _MAX_OFFSET_DIGITS
    if cursor_sort != sort or not is_number:
        raise Invalid(
            "this cursor does not belong to this list", hint="Start again without a cursor."
        )
    return int(offset)


def _items_of(page: NotePage) -> tuple[Listed, ...]:
    """Return the notes of a page of the index as callers see them."""
    return tuple(
        Listed(
            name=name_of(row.path),
            path=row.path,
            title=row.title,
            description=row.description,
            type=row.type or "memory",
            tags=page.tags.get(row.id, ()),
            created=row.created or None,
            modified=row.modified,
            size=row.size,
            sha256=row.sha256,
            problem=row.problem,
        )
        for row in page.rows
    )
