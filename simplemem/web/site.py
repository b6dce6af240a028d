"""The vaults of one server, and who sees what of each: a view is a vault as one grant sees it, with a store and an index
of its own that hold nothing else, so that nothing else can be told by any tool, route, count or error."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.lowlevel import Server

from simplemem.errors import NotFound, SimplememError
from simplemem.profiles.profile import Profile
from simplemem.server.calls import assemble
from simplemem.server.executor import Companion, StoreExecutor, finishes_within
from simplemem.settings.files import user_config_path
from simplemem.settings.model import Settings
from simplemem.tools.tool import Tool
from simplemem.web.events import Feed, Sessions
from simplemem.web.limits import MAX_BODY_BYTES
from simplemem.web.tokens import Grant

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.web")

_MOMENT = 5.0  # seconds that requests in work have to be answered, when a view ends
_MOST_VIEWS = 256  # of parts of vaults
_MAX_OPEN = 16  # of these, with an open store: it has files and threads
_IDLE_SECONDS = (
    60.0  # after which a store that nobody asks is closed, and a view without a session ends
)
_SECONDS_BETWEEN_LOOKS = 5.0


@dataclass(frozen=True)
class Served:
    """A vault that is served: under which name ("" for the only one), with which profile, and how its store is opened."""

    name: str
    root: Path
    profile: Profile
    tools: tuple[Tool, ...]
    settings: Settings
    opening: Callable[[Settings], EnhancedStore]
    reading: Callable[[], Settings]  # what the settings are now
    beside: Companion | None = None  # what runs beside the store of the whole vault

    @property
    def prefix(self) -> str:
        return f"/{self.name}" if self.name else ""


class View:
    """A vault as one grant sees it: its store behind a door, and a server of the SDK for it.

    A view of a part of a vault opens its store when it is asked something, and closes it when nobody asks any more.
    """

    def __init__(self, served: Served, only: tuple[str, ...], *, stateless: bool) -> None:
        self.served, self.only = served, only
        self._requests = 0
        self._last_used = time.monotonic()
        settings = served.settings
        if only:
            access = settings.access.model_copy(update={"only": only})
            settings = settings.model_copy(update={"access": access})
        beside = None if only else served.beside
        self.door = StoreExecutor(
            partial(served.opening, settings), beside, private_folders=_folders_of(served)
        )
        self.stop = asyncio.Event()
        self.feed = Feed(lambda hear: self.door.on_change(hear))
        self.server: Server[Any] = assemble(served.profile, served.tools, self.door)
        self.manager = Sessions(
            self.server, stateless=stateless, max_request_body_size=MAX_BODY_BYTES
        )

    def begin_request(self) -> None:
        self._requests += 1

    def end_request(self) -> None:
        self._requests -= 1
        self._last_used = time.monotonic()

    @property
    def is_in_use(self) -> bool:
        """Whether a request is in progress. A stream that stays open is one."""
        return self._requests > 0

    def is_idle(self) -> bool:
        """Whether nobody has asked anything for a while."""
        return not self.is_in_use and time.monotonic() - self._last_used > _IDLE_SECONDS

    async def keep(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve MCP until the server ends, or this view does."""
        async with self.manager.run():
            task_status.started()
            await self.stop.wait()


def _folders_of(served: Served) -> frozenset[str]:
    """Return the folders of this machine that the errors of a vault could name."""
    index = served.settings.db
    folders = [
        served.root,
        user_config_path(os.environ).parent,
        Path.home(),
        *([index.parent] if index else []),
    ]
    spellings = {str(spelling) for folder in folders for spelling in (folder, folder.resolve())}
    return frozenset(
        spelling for spelling in spellings if len(Path(spelling).parts) > 1
    )  # `/` is in every path


async def _end(gone: Sequence[View]) -> None:
    """End views when what is in work has been answered."""
    for view in gone:
        view.stop.set()
        view.feed.end()
    await asyncio.sleep(_MOMENT)
    for view in gone:
        await asyncio.to_thread(view.door.close, writing=2.5, closing=2.5)


def _visible_places(settings: Settings, grant: Grant) -> tuple[str, ...]:
    """Return the places that a grant sees of a vault; none if it sees all that the settings show.

    Grants that see the same get the same places, whatever order they name them in, and so share one view.
    """
    shown = settings.access.only
    if not grant.only:
        return ()

    places = _without_covered(_both(shown, grant.only))
    return () if places == _without_covered(shown) else places


def _without_covered(places: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for place in sorted(set(places), key=lambda each: (len(each), each)):
        if not _is_within(place, tuple(kept)):
            kept.append(place)
    return tuple(sorted(kept))


def _both(mine: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """The places that both see: what the settings show of the vault, no grant widens."""
    if not mine:
        return theirs
    narrower = [
        each
        for some, others in ((theirs, mine), (mine, theirs))
        for each in some
        if _is_within(each, others)
    ]
    return tuple(dict.fromkeys(narrower)) or ("\0",)  # no place at all


def _is_within(place: str, others: tuple[str, ...]) -> bool:
    """Whether all of a place is in one of others."""
    wide = [each.removesuffix("/") for each in others if not each.endswith(("/*", ".md"))]
    return place in others or any(f"{place}/".startswith(f"{each}/") for each in wide)


@dataclass
class Site:
    """All that is served by this process."""

    vaults: dict[str, Served]
    stateless: bool = False
    is_running: asyncio.Event = field(default_factory=asyncio.Event)
    _views: dict[tuple[str, tuple[str, ...]], View] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While requests are answered. The index of each whole vault is updated from the start."""
        async with anyio.create_task_group() as self._tasks:
            for served in self.vaults.values():
                (await self._view(served, ())).door.start_indexing()
            self.is_running.set()
            self._tasks.start_soon(self._close_idle)
            try:
                yield
            finally:
                self._tasks.cancel_scope.cancel()

    async def view(self, name: str, grant: Grant) -> View:
        """A vault as a grant sees it. One that it does not name is not there."""
        if (served := self.vaults.get(name)) is None or (
            grant.vaults and served.name not in grant.vaults
        ):
            raise NotFound("no such vault")
        return await self._view(served, _visible_places(served.settings, grant))

    async def whole_view(self, served: Served) -> View:
        """A vault as its owner sees it."""
        return await self._view(served, ())

    async def _view(self, served: Served, only: tuple[str, ...]) -> View:
        async with self._opening:
            assert self._tasks is not None
            if (view := self._views.pop((served.name, only), None)) is None:
                view = View(served, only, stateless=self.stateless)
                await self._tasks.start(view.keep)
            self._views[served.name, only] = view  # the last one used is the last one
            parts = [
                key
                for key, other in self._views.items()
                if key[1] and not other.is_in_use and other is not view
            ]
            for key in parts[: max(0, len(self._parts()) - _MOST_VIEWS)]:
                self._tasks.start_soon(_end, [self._views.pop(key)])
            self._limit_open_stores(view)
            return view

    def _parts(self) -> list[View]:
        """Return the views of parts of vaults, those that were used last at the end."""
        return [view for view in self._views.values() if view.only]

    def _limit_open_stores(self, wanted: View | None = None) -> None:
        """Close the stores that were used least lately, where there are too many beside the one that is wanted."""
        assert self._tasks is not None
        others = [view for view in self._parts() if view.door.has_store and view is not wanted]
        unused = [view for view in others if not view.is_in_use]
        excess = len(others) - _MAX_OPEN if wanted is None else len(others) + 1 - _MAX_OPEN
        for view in unused[: max(0, excess)]:
            self._tasks.start_soon(view.door.rest)

    async def _close_idle(self) -> None:
        """Close the stores of parts that nobody asks, and end views that have no session either."""
        assert self._tasks is not None
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            for key, view in [*self._views.items()]:
                if not view.only or not view.is_idle() or self._views.get(key) is not view:
                    continue
                if view.manager.has_sessions():
                    await view.door.rest()
                else:
                    del self._views[key]
                    self._tasks.start_soon(_end, [view])
            self._limit_open_stores()

    async def read_settings_again(self) -> None:
        """Go by what the settings say now. Whoever is in the midst of a session of MCP begins a new one."""
        is_read = True
        for name, served in [*self.vaults.items()]:
            try:
                now = await asyncio.to_thread(served.reading)
                settings = now.model_copy(
                    update={"db": served.settings.db}
                )  # an index stays where it is
            except SimplememError as error:
                log.error("the settings could not be reloaded: %s", error.message)
                is_read = False
                continue
            if settings != served.settings:
                async with self._opening:
                    self.vaults[name] = replace(served, settings=settings)
                    gone = [self._views.pop(key) for key in [*self._views] if key[0] == name]
                (await self._view(self.vaults[name], ())).door.start_indexing()
                await _end(gone)
        if is_read:
            log.info("the settings were reloaded")

    def views(self) -> list[View]:
        return [*self._views.values()]

    def close(self) -> None:
        """Let what was begun to be written finish, and the stores close; nobody waits long."""
        closing = [partial(view.door.close, writing=2.5, closing=0.7) for view in self.views()]
        finishes_within(3.5, lambda: [finishes_within(3.4, each) for each in closing])
