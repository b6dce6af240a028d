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
    from simplemem.models import HistoryEntry
    from simplemem.store import EnhancedStore, ExtensionAPI

V = TypeVar("V", Entity, Relation)

_MAX_CHANGES: Final = 10_000  # of a page


class Period(NamedTuple, Generic[V]):
    """A time in which an entity or a relation did not change.

    Attributes:
        value: What it was.
        since: When it became so, in UTC.
        until: When it changed or was deleted, in UTC; None if it still is so.
        who: The author of the change that made it so, "" if unknown.
    """

    value: V
    since: datetime
    until: datetime | None
    who: str


class PageState(NamedTuple):
    """A page after one of its changes.

    Attributes:
        page: The page; None if it was deleted or that version cannot be read.
        since: When it was changed, in UTC.
        who: Who changed it, "" if unknown.
    """

    page: GraphPage | None
    since: datetime
    who: str


class PageHistory:
    """Reads the states of pages. Guards a cache of them, without those of pages that changed."""

    def __init__(self, extension: ExtensionAPI) -> None:
        """Create an empty cache. `extension` reports which pages change."""
        self._extension = extension
        self._states: dict[str, list[PageState]] = {}
        self._seen_version = 0

    def remove(self, path: str) -> None:
        """Remove the states of a page from the cache, if it has them."""
        self._states.pop(path, None)

    def states(
        self,
        store: EnhancedStore,
        path: str,
        *,
        cache: bool,
    ) -> list[PageState]:
        """Return a page after each of its changes, oldest first; [] for a page that never was.

        With `cache`, the answer is kept and returned again until the page changes. A history that
        cannot be read counts as empty; nothing is raised for it.
        """
        self._remove_changed()
        cached = self._states.get(path)
        if cached is not None:
            return cached

        states = _read_states(store, path)
        if cache:
            self._states[path] = states
        return states

    def _remove_changed(self) -> None:
        """Remove the states of pages that changed since the last call."""
        newest = self._extension.last_version()
        if newest == self._seen_version:
            return

        for version in self._extension.changes(after=self._seen_version):
            self.remove(version.path)
            if version.new_path:
                self.remove(version.new_path)
        self._seen_version = newest


def _read_states(store: EnhancedStore, path: str) -> list[PageState]:
    """Return the states of a page from its history, and the current one if no history has it."""
    name = name_of(path)
    entries: list[HistoryEntry] = []
    with suppress(SimplememError):  # no history, and perhaps no note
        entries = list(store.history(name, limit=_MAX_CHANGES))
    entries.reverse()

    states: list[PageState] = []
    last_sha256: str | None = None
    for entry in entries:
        if entry.op == "recovered":
            continue
        previous = _unlogged_state(store, entry, last_sha256)
        if previous is not None:
            states.append(previous)
        states.append(_state_after(store, entry))
        last_sha256 = entry.sha256 or ""

    current = _current_state(store, name, last_sha256)
    if current is not None:
        states.append(current)
    return states


def _unlogged_state(
    store: EnhancedStore, entry: HistoryEntry, last_sha256: str | None
) -> PageState | None:
    """Return the page as it was before a change, if another program had changed it unlogged.

    None if the change began at the text of the previous one, whose hash is `last_sha256`: "" if
    there was no note after it, None if there is no previous change. None for a change from git too.
    """
    if entry.source == "git" or not last_sha256 or not entry.before:
        return None
    if entry.before == last_sha256:
        return None
    page = _page_in(store, entry.name, entry.before)
    return PageState(page, _as_utc(entry.when), "")


def _state_after(store: EnhancedStore, entry: HistoryEntry) -> PageState:
    """Return the page after a change. It has no page if the change deleted the note."""
    page = None
    if entry.sha256:
        page = _page_in(store, entry.new_name or entry.name, entry.version)
    return PageState(page, _as_utc(entry.when), entry.who)


def _current_state(store: EnhancedStore, name: str, last_sha256: str | None) -> PageState | None:
    """Return the page as it is now; None if it is as after the last change, or cannot be read."""
    with suppress(SimplememError):
        current = store.read(name)
        if current.sha256 != last_sha256 and current.name == name:
            page = _page_in(store, current.name, None)
            return PageState(page, _as_utc(current.modified), "")
    return None


def _page_in(store: EnhancedStore, name: str, version: str | None) -> GraphPage | None:
    """Return a page in one of its versions, None for a version that cannot be read.

    Without a `version`, it is the page as it is now.
    """
    if version == "":
        return None
    with suppress(SimplememError):
        note = store.read(name, version=version)
        return read_page(f"{name}.md", note.text)
    return None


def _as_utc(moment: str) -> datetime:
    """Return a moment in UTC. Git's times, and those without an offset, are local."""
    return datetime.fromisoformat(moment).astimezone(UTC)


def periods_of(
    states: Iterable[PageState], name: str, read: Callable[[GraphPage], V | None]
) -> list[Period[V]]:
    """Return the values that the page of a name had over time, oldest first.

    `read` returns the value on a page, or None. Changes that did not change the value are left out,
    and so are the times in which the page had another name.
    """
    periods: list[Period[V]] = []
    for page, since, who in states:
        value = None
        if page is not None and page.name == name:
            value = read(page)

        if periods and periods[-1].until is None:
            last = periods[-1]
            if last.value == value:
                continue
            periods[-1] = last._replace(until=max(since, last.since))
        if value is not None:
            periods.append(Period(value, since, None, who))
    return periods
