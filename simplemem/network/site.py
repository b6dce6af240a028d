"""The vaults of one server, and who sees what of each: a view is a vault as one grant sees it, with a store and an index
of its own that hold nothing else, so that nothing else can be told by any tool, route, count or error."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.lowlevel import Server

from simplemem.config import Settings, user_config_path
from simplemem.errors import NotFound, SimplememError
from simplemem.faces.face import Face, Tool
from simplemem.network.events import Feed, Sessions
from simplemem.network.guard import MOST_BODY
from simplemem.network.tokens import Grant
from simplemem.server.calls import assemble
from simplemem.server.serve import Beside, Door, within

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.network")

_MOMENT = 5.0  # seconds that requests in work have to be answered, when a view ends
_MOST_VIEWS = 64  # of parts of vaults: each has an index and threads


@dataclass(frozen=True)
class Served:
    """A vault that is served: under which name ("" for the only one), with which face, and how its store is opened."""

    name: str
    root: Path
    face: Face
    tools: tuple[Tool, ...]
    settings: Settings
    opening: Callable[[Settings], EnhancedStore]
    reading: Callable[[], Settings]  # what the settings are now
    beside: Beside | None = None  # what runs beside the store of the whole vault

    @property
    def prefix(self) -> str:
        return f"/{self.name}" if self.name else ""


class View:
    """A vault as one grant sees it: its store behind a door, and a server of the SDK for it."""

    def __init__(self, served: Served, only: tuple[str, ...], *, stateless: bool) -> None:
        self.served, self.only = served, only
        settings = served.settings
        if only:
            access = settings.access.model_copy(update={"only": _both(settings.access.only, only)})
            settings = settings.model_copy(update={"access": access})
        beside = None if only else served.beside
        self.door = Door(partial(served.opening, settings), beside, private_folders=_folders_of(served))
        self.stop = asyncio.Event()
        self.feed = Feed(lambda hear: self.door.store().on_change(hear))
        self.server: Server[Any] = assemble(served.face, served.tools, self.door)
        self.manager = Sessions(self.server, stateless=stateless, max_request_body_size=MOST_BODY)

    async def keep(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve MCP until the server ends, or this view does."""
        async with self.manager.run():
            task_status.started()
            await self.stop.wait()


def _folders_of(served: Served) -> frozenset[str]:
    """Return the folders of this machine that the errors of a vault could name."""
    index = served.settings.db
    folders = [served.root, user_config_path(os.environ).parent, Path.home(), *([index.parent] if index else [])]
    spellings = {str(spelling) for folder in folders for spelling in (folder, folder.resolve())}
    return frozenset(spelling for spelling in spellings if len(Path(spelling).parts) > 1)  # `/` is in every path


async def _end(gone: Sequence[View]) -> None:
    """End views when what is in work has been answered."""
    for view in gone:
        view.stop.set()
        view.feed.end()
    await asyncio.sleep(_MOMENT)
    for view in gone:
        await asyncio.to_thread(view.door.close, writing=2.5, closing=2.5)


def _both(mine: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """The places that both see: what the settings show of the vault, no grant widens."""
    if not mine:
        return theirs
    narrower = [each for some, others in ((theirs, mine), (mine, theirs)) for each in some if _is_within(each, others)]
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
                (await self._view(served, ())).door.tend()
            self.is_running.set()
            try:
                yield
            finally:
                self._tasks.cancel_scope.cancel()

    async def view(self, name: str, grant: Grant) -> View:
        """A vault as a grant sees it. One that it does not name is not there."""
        if (served := self.vaults.get(name)) is None or (grant.vaults and served.name not in grant.vaults):
            raise NotFound("there is no such vault here")
        return await self._view(served, grant.only)

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
            parts = [key for key in self._views if key[1]]
            for key in parts[:-_MOST_VIEWS]:
                self._tasks.start_soon(_end, [self._views.pop(key)])
            return view

    async def read_settings_again(self) -> None:
        """Go by what the settings say now. Whoever is in the midst of a session of MCP begins a new one."""
        for name, served in [*self.vaults.items()]:
            try:
                now = await asyncio.to_thread(served.reading)
                settings = now.model_copy(update={"db": served.settings.db})  # an index stays where it is
            except SimplememError as error:
                log.error("the settings were not read again: %s", error.message)
                continue
            if settings != served.settings:
                async with self._opening:
                    self.vaults[name] = replace(served, settings=settings)
                    gone = [self._views.pop(key) for key in [*self._views] if key[0] == name]
                (await self._view(self.vaults[name], ())).door.tend()
                await _end(gone)
        log.warning("the settings were read again")

    def views(self) -> list[View]:
        return [*self._views.values()]

    def close(self) -> None:
        """Let what was begun to be written finish, and the stores close; nobody waits long."""
        closing = [partial(view.door.close, writing=2.5, closing=0.7) for view in self.views()]
        within(3.5, lambda: [within(3.4, each) for each in closing])
