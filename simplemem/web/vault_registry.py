"""The vaults of one server, and the views of them that are in use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from simplemem.errors import NotFound, SimplememError
from simplemem.server.executor import finishes_within
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import MountedVault, VaultView, ViewScope, visible_places

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.web")

_SECONDS_TO_ANSWER: Final = 5.0  # that requests in progress have when their view ends
_MAX_PARTIAL_VIEWS: Final = 256
_MAX_OPEN_STORES: Final = 16  # of partial views: a store has files and threads
_SECONDS_BETWEEN_CHECKS: Final = 5.0
_WRITE_SECONDS: Final = 2.5  # that a write in progress may take when its store closes
_CLOSE_SECONDS: Final = 2.5

ViewKey: TypeAlias = "tuple[str, ViewScope]"
"""The name of a vault, and what a view shows of it."""


class VaultRegistry:
    """The vaults of a server by name, and their views.

    Guards the views: grants that see the same share one, the number of partial views and of their
    open stores is limited, and those that are idle end. All methods but `close` must be called in
    the event loop. `warm_up` is called in a thread with the store of each whole vault at the start,
    to read what the first request would have to wait for.
    """

    def __init__(
        self,
        vaults: Mapping[str, MountedVault],
        *,
        stateless: bool = False,
        warm_up: Callable[[EnhancedStore], None] | None = None,
    ) -> None:
        self.vaults = dict(vaults)
        self._warm_up = warm_up
        self.is_running = asyncio.Event()  # set when the views of all whole vaults exist
        self._stateless = stateless
        self._views: dict[ViewKey, VaultView] = {}  # the one that was used last comes last
        self._ending: list[VaultView] = []  # those that are no longer in `_views`, with open stores
        self._lock = asyncio.Lock()  # of the views
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep views until the context ends. The index of each whole vault is updated at once.

        `view` and `whole_view` can be called only within the context. Its end cancels the tasks of
        the views, and closes no store; `close` does.
        """
        async with anyio.create_task_group() as self._tasks:
            for vault in self.vaults.values():
                view = await self.whole_view(vault)
                view.executor.start_indexing()
                self._tasks.start_soon(self._prepare_first_request, view)
            self.is_running.set()
            self._tasks.start_soon(self._end_idle_views)

            try:
                yield
            finally:
                self._tasks.cancel_scope.cancel()

    async def _prepare_first_request(self, view: VaultView) -> None:
        """Warm up the store of a view. Does not raise: the first request gets the same error."""
        warm_up = self._warm_up
        if warm_up is not None:
            with suppress(SimplememError, OSError):
                await view.executor.run(lambda: warm_up(view.executor.store()))

    async def view(self, name: str, grant: Grant) -> VaultView:
        """Return a vault as a grant sees it.

        Raises NotFound if there is no vault of this name, or the grant is limited to others.
        """
        vault = self.vaults.get(name)
        if vault is None or not self.is_visible(name, grant):
            raise NotFound("no such vault")
        places = visible_places(vault.settings, grant)
        return await self._view(vault, ViewScope(places, grant.only_proposes))

    def is_visible(self, name: str, grant: Grant) -> bool:
        """Return whether there is a vault of this name, of which a grant may see something."""
        return name in self.vaults and (not grant.vaults or name in grant.vaults)

    async def whole_view(self, vault: MountedVault) -> VaultView:
        """Return the view of a whole vault, as its owner sees it."""
        return await self._view(vault, ViewScope())

    def views(self) -> list[VaultView]:
        """Return all views, the one that was used last at the end."""
        return list(self._views.values())

    def whole_views(self) -> list[VaultView]:
        """Return the views that show all of their vaults."""
        return [view for view in self._views.values() if not view.scope.is_partial]

    async def _view(self, vault: MountedVault, scope: ViewScope) -> VaultView:
        """Return the view of a vault with a scope, a new one if there is none.

        Begins to end other views, or to close their stores, if there are too many.
        """
        async with self._lock:
            key = (vault.name, scope)
            view = self._views.pop(key, None)
            if view is None:
                view = VaultView(vault, scope, stateless=self._stateless)
                await self._running_tasks().start(view.serve_mcp)

            self._views[key] = view
            self._limit_views(view)
            self._limit_open_stores(view)
            return view

    def _running_tasks(self) -> TaskGroup:
        """Return the tasks of this registry. It is an error unless it is `running`."""
        assert self._tasks is not None
        return self._tasks

    def _partial_views(self) -> list[VaultView]:
        """Return the views of parts of vaults, the one that was used last at the end."""
        return [view for view in self._views.values() if view.scope.is_partial]

    def _limit_views(self, current: VaultView) -> None:
        """Begin to end the partial views that were not used for longest, if there are over 256.

        Those in use and the current one stay, even if there are more.
        """
        excess = len(self._partial_views()) - _MAX_PARTIAL_VIEWS
        for key, view in list(self._views.items()):
            if excess <= 0:
                return
            if view.scope.is_partial and not view.is_in_use and view is not current:
                del self._views[key]
                self._running_tasks().start_soon(self._end, [view])
                excess -= 1

    def _limit_open_stores(self, current: VaultView | None = None) -> None:
        """Begin to close the stores of partial views not used for longest, if over 16 are open.

        Those in use stay open, even if there are more. The store of the current view counts as
        open, and stays open.
        """
        open_views = [
            view
            for view in self._partial_views()
            if view.executor.has_store and view is not current
        ]
        excess = len(open_views) - _MAX_OPEN_STORES
        if current is not None:
            excess += 1

        unused = [view for view in open_views if not view.is_in_use]
        for view in unused[: max(0, excess)]:
            self._running_tasks().start_soon(view.executor.rest)

    async def _end_idle_views(self) -> None:
        """Check the partial views every 5 seconds until cancelled, and end those that are idle.

        If an idle view has sessions of MCP, only its store is closed.
        """
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)
            for key, view in list(self._views.items()):
                # An earlier step of this loop may have waited, and the view may have ended.
                is_current = self._views.get(key) is view
                if not view.scope.is_partial or not view.is_idle() or not is_current:
                    continue

                if view.manager.has_sessions():
                    await view.executor.rest()
                else:
                    del self._views[key]
                    self._running_tasks().start_soon(self._end, [view])
            self._limit_open_stores()

    async def reload_settings(self) -> None:
        """Read the settings of each vault again, and apply them if they have changed.

        The views of a changed vault end, so a client in a session of MCP has to begin a new one.
        If settings cannot be read, the reason is logged and the vault keeps those that it has. A
        new place of the index takes effect only at the next start.
        """
        are_all_read = True
        for name, vault in list(self.vaults.items()):
            try:
                new_settings = await asyncio.to_thread(vault.read_settings)
            except SimplememError as error:
                log.error("the settings could not be reloaded: %s", error.message)
                are_all_read = False
                continue

            # An index stays where it is.
            settings = new_settings.model_copy(update={"db": vault.settings.db})
            if settings != vault.settings:
                await self._replace(name, replace(vault, settings=settings))

        if are_all_read:
            log.info("the settings were reloaded")

    async def _replace(self, name: str, vault: MountedVault) -> None:
        """Serve a vault with other settings, and end the views with the old ones.

        `vault` has the new settings. Returns when the old views have ended, at least 5
        seconds later.
        """
        async with self._lock:
            self.vaults[name] = vault
            old_keys = [key for key in self._views if key[0] == name]
            old_views = [self._views.pop(key) for key in old_keys]

        view = await self.whole_view(vault)
        view.executor.start_indexing()
        await self._end(old_views)

    async def _end(self, views: Sequence[VaultView]) -> None:
        """End the streams of views, wait 5 seconds, close their stores, and return then.

        In these seconds, requests in progress can be answered. A store whose write takes too long
        is left open. If this is cancelled, `close` closes the stores.
        """
        self._ending += views
        for view in views:
            view.end_streams()
        await asyncio.sleep(_SECONDS_TO_ANSWER)
        for view in views:
            self._ending.remove(view)
            await asyncio.to_thread(view.close, writing=_WRITE_SECONDS, closing=_CLOSE_SECONDS)

    def close(self) -> None:
        """Close all stores one after another, each after its write in progress.

        The stores of views that are ending are closed too. Call it when the event loop has ended.
        Returns after 3.5 seconds at the latest: what takes longer is not waited for, and its store
        may stay open.
        """

        def close_all() -> None:
            for view in [*self.views(), *self._ending]:
                close = partial(view.close, writing=_WRITE_SECONDS, closing=0.7)
                finishes_within(3.4, close)

        finishes_within(3.5, close_all)
