"""What pages of the graph were in the past, from the history of their notes and from git."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from simplemem.errors import SimplememError
from simplemem.features.graph.page import GraphPage, read_page
from simplemem.features.graph.values import Entity, Relation
from simplemem.note.names import name_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore, ExtensionAPI

V = TypeVar("V", Entity, Relation)

_MAX_CHANGES: Final = 10_000


class Period(NamedTuple, Generic[V]):
    """What an entity or relation was, since when and until when (UTC; None: now), and by whom."""

    value: V
    since: datetime
    until: datetime | None
    who: str


class PageState(NamedTuple):
    """A page after one of its changes, None if it was deleted; when (UTC) and by whom."""

    page: GraphPage | None
    since: datetime
    who: str


class PageHistory:
    """The states of pages. Guards a cache of them, from which changed pages are removed."""

    def __init__(self, extension: ExtensionAPI) -> None:
        self._extension = extension
        self._states: dict[str, list[PageState]] = {}
        self._seen_version = 0

    def remove(self, path: str) -> None:
        """Remove the states of a page from the cache."""
        self._states.pop(path, None)

    def states(self, store: EnhancedStore, path: str, *, cache: bool) -> list[PageState]:
        """Return a page after each of its changes, oldest first. `cache` keeps the answer."""
        self._remove_changed()
        cached = self._states.get(path)
        if cached is not None:
            return cached

        states = _read_states(store, path)
        if cache:
            self._states[path] = states
        return states

    def _remove_changed(self) -> None:
        newest = self._extension.last_version()
        if newest == self._seen_version:
            return
        for version in self._extension.changes(after=self._seen_version):
            self._states.pop(version.path, None)
            self._states.pop(version.new_path or "", None)
        self._seen_version = newest


def _read_states(store: EnhancedStore, path: str) -> list[PageState]:
    """Read the states of a page from its history, and the current one if no history has it."""
    states: list[PageState] = []
    name = name_of(path)
    last_sha256: str | None = None
    with suppress(SimplememError):  # no history, and perhaps no note
        for entry in reversed(store.history(name, limit=_MAX_CHANGES)):
            if entry.op == "recovered":
                continue

            # Text that our log does not have was written by another program.
            is_gap = last_sha256 and entry.before and entry.before != last_sha256
            if is_gap and entry.source != "git":
                previous = _page_in(store, entry.name, entry.before)
                states.append(PageState(previous, _as_utc(entry.when), ""))

            last_sha256 = entry.sha256 or ""
            changed = None
            if last_sha256:
                changed = _page_in(store, entry.new_name or entry.name, entry.version)
            states.append(PageState(changed, _as_utc(entry.when), entry.who))

    with suppress(SimplememError):
        current = store.read(name)
        if current.sha256 != last_sha256 and current.name == name:
            page = _page_in(store, current.name, None)
            states.append(PageState(page, _as_utc(current.modified), ""))
    return states


def _page_in(store: EnhancedStore, name: str, version: str | None) -> GraphPage | None:
    """Return a page in one of its versions, None for a version that cannot be read."""
    if version == "":
        return None
    with suppress(SimplememError):
        return read_page(f"{name}.md", store.read(name, version=version).text)
    return None


def _as_utc(moment: str) -> datetime:
    """Return a moment in UTC. Git's times, and those without an offset, are local."""
    return datetime.fromisoformat(moment).astimezone(UTC)


def periods_of(
    states: Iterable[PageState], name: str, read: Callable[[GraphPage], V | None]
) -> list[Period[V]]:
    """Return what `read` returned for the page of a name over time, oldest first.

    Changes that did not change the value are left out.
    """
    periods: list[Period[V]] = []
    for page, since, who in states:
        value = read(page) if page is not None and page.name == name else None
        last = periods[-1] if periods else None
        if last is not None and last.until is None:
            if last.value == value:
                continue
            periods[-1] = last._replace(until=max(since, last.since))
        if value is not None:
            periods.append(Period(value, since, None, who))
    return periods
