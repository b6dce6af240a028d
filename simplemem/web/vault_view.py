"""A served vault, and a view of it: the vault as one grant sees it.

A view has a store and an index of its own, which hold nothing else. So no tool, route, count or
error can reveal anything outside the view.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
from anyio.abc import TaskStatus
from mcp.server.lowlevel import Server

from simplemem.profiles.profile import Profile
from simplemem.server.calls import assemble
from simplemem.server.client_log import ClientLog
from simplemem.server.executor import Companion, StoreExecutor
from simplemem.settings.files import user_config_path
from simplemem.settings.model import Settings
from simplemem.tools.tool import Tool
from simplemem.web.events import ChangeFeed, HTTPSessions
from simplemem.web.limits import MAX_BODY_BYTES
from simplemem.web.tokens import Grant

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_IDLE_SECONDS: Final = 60.0
_NOTHING: Final = "\0"
"""A place that no vault has: no path contains this character."""

_EVERYTHING: Final = "/"
"""The rule that matches every path."""


class ViewScope(NamedTuple):
    """What a view shows: the places `only`, or the whole vault for ().

    With `only_proposes`, its changes are proposals.
    """

    only: tuple[str, ...] = ()
    only_proposes: bool = False

    @property
    def is_partial(self) -> bool:
        """Whether it allows less than the view of the owner, which shows and changes everything."""
        return bool(self.only) or self.only_proposes


@dataclass(frozen=True)
class MountedVault:
    """A vault that a server serves.

    Attributes:
        name: The first part of its paths; "" if the server has no other vault.
        root: The folder of the notes.
        profile: The profile that it is served with.
        tools: The tools of the profile that clients see.
        settings: The settings that the server applies.
        open_store: Opens a store of the vault with the settings that are passed to it.
        read_settings: Reads the settings that apply now. Raises SimplememError if they are wrong.
        companion: Starts the service that runs beside the store of the whole vault; None for none.
    """

    name: str
    root: Path
    profile: Profile
    tools: tuple[Tool, ...]
    settings: Settings
    open_store: Callable[[Settings], EnhancedStore]
    read_settings: Callable[[], Settings]
    companion: Companion | None = None

    @property
    def prefix(self) -> str:
        """What its paths begin with: `/name`, or "" for the only vault."""
        if not self.name:
            return ""
        return f"/{self.name}"

    def private_folders(self) -> frozenset[str]:
        """Return the folders of this machine that an error of this vault could name.

        Each is there as it is spelled, and with its links resolved. `/` is left out, because every
        path contains it.
        """
        folders = [self.root, user_config_path(os.environ).parent, Path.home()]
        if self.settings.db:
            folders.append(self.settings.db.parent)

        spellings = set()
        for folder in folders:
            for spelling in (folder, folder.resolve()):
                if len(spelling.parts) > 1:
                    spellings.add(str(spelling))
        return frozenset(spellings)


class VaultView:
    """A vault as one grant sees it, for MCP and for the other routes.

    `scope` says which places of the vault it shows, and whether changes are only proposed. `only`
    has these places. Guards the executor with the store, the sessions of MCP and their clients, the
    feed of changes, and the number of requests in progress. A view with a scope opens its store for
    the first request, and the registry closes it when it is idle.
    """

    def __init__(self, vault: MountedVault, scope: ViewScope, *, stateless: bool) -> None:
        self.vault = vault
        self.only = scope.only
        self.scope = scope
        self.executor = _create_executor(vault, scope)
        self.feed = ChangeFeed(self.executor.on_change)
        self.clients = ClientLog()
        self.server: Server[Any] = assemble(vault.profile, vault.tools, self.executor, self.clients)
        self.manager = HTTPSessions(
            self.server, stateless=stateless, max_request_body_size=MAX_BODY_BYTES
        )
        self._is_ended = asyncio.Event()
        self._requests = 0
        self._last_used = time.monotonic()

    def begin_request(self) -> None:
        """Count a request that begins. `end_request` must be called when it ends."""
        self._requests += 1

    def end_request(self) -> None:
        """Count a request that has ended. The view counts as used at this time."""
        self._requests -= 1
        self._last_used = time.monotonic()

    @property
    def is_in_use(self) -> bool:
        """Whether a request is in progress. An open stream is one."""
        return self._requests > 0

    def is_idle(self) -> bool:
        """Return whether the last request ended a minute ago or earlier."""
        return not self.is_in_use and time.monotonic() - self._last_used > _IDLE_SECONDS

    async def serve_mcp(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve MCP until the task is cancelled, or `end_streams` is called.

        `task_status` is notified when the view can be used, as `TaskGroup.start` requires.
        """
        async with self.manager.run():
            task_status.started()
            await self._is_ended.wait()

    def end_streams(self) -> None:
        """End the sessions of MCP and the streams of changes, before the store is closed.

        Requests in progress are still answered. Returns at once.
        """
        self._is_ended.set()
        self.feed.end()

    def close(self, *, writing: float, closing: float) -> None:
        """Close the store, after waiting for a write in progress. Call it in a thread.

        The arguments are the most seconds that the write and the closing may take. If the write
        takes longer, the store is left open.
        """
        self.executor.close(writing=writing, closing=closing)


def _create_executor(vault: MountedVault, scope: ViewScope) -> StoreExecutor:
    """Return the executor of a view, which opens the store at its first work.

    Only a view of the whole vault starts the vault's companion, the service beside the store.
    """
    companion = None
    if not scope.is_partial:
        companion = vault.companion

    return StoreExecutor(
        partial(vault.open_store, _settings_within(vault.settings, scope)),
        companion,
        private_folders=vault.private_folders(),
    )


def _settings_within(settings: Settings, scope: ViewScope) -> Settings:
    """Return the settings of a vault with those that limit a store to the scope of a view."""
    if scope.only:
        access = settings.access.model_copy(update={"only": scope.only})
        settings = settings.model_copy(update={"access": access})
    if scope.only_proposes:
        write = settings.write.model_copy(update={"review": (_EVERYTHING,)})
        settings = settings.model_copy(update={"write": write})
    return settings


# --- the places that a grant sees


def visible_places(settings: Settings, grant: Grant) -> tuple[str, ...]:
    """Return the places of a vault that a grant sees; () if it sees all that the settings show.

    A place is a folder (`people/`), the notes of a folder without its subfolders (`people/*`) or a
    note (`people/Ada.md`). For grants that see the same, the places are equal and in the same
    order, so that these grants share one view.
    """
    if not grant.only:
        return ()

    places_of_settings = settings.access.only
    places = _without_covered(_intersect(places_of_settings, grant.only))
    if places == _without_covered(places_of_settings):
        return ()
    return places


def _intersect(visible: tuple[str, ...], granted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the places that are both visible and granted.

    A grant adds nothing to what the settings show of the vault. Without `visible` places,
    the settings show the whole vault. If no place is in both, the result is a place that no vault
    has, because () would mean the whole vault.
    """
    if not visible:
        return granted

    common = [place for place in granted if _is_covered(place, visible)]
    common += [place for place in visible if _is_covered(place, granted)]
    return tuple(dict.fromkeys(common)) or (_NOTHING,)


def _without_covered(places: Sequence[str]) -> tuple[str, ...]:
    """Return places in alphabetical order, without those that are a part of another of them."""
    by_length = sorted(set(places), key=lambda place: (len(place), place))
    kept_places: list[str] = []
    for place in by_length:
        if not _is_covered(place, kept_places):
            kept_places.append(place)
    return tuple(sorted(kept_places))


def _is_covered(place: str, places: Collection[str]) -> bool:
    """Return whether a place is one of these places, or lies in a folder among them.

    `people/*` stands for notes without the subfolders, so no other place lies in it.
    """
    if place in places:
        return True

    folders = [candidate for candidate in places if not candidate.endswith(("/*", ".md"))]
    prefixes = tuple(f"{folder.removesuffix('/')}/" for folder in folders)
    return f"{place}/".startswith(prefixes)
