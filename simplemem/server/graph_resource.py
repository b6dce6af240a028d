"""The graph as a resource, `memory://knowledge-graph`, and word to whoever subscribed to it: after each change made here
(memento.md §2), and when a person or another process changed it. Both generations of subscription are served."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from simplemem.errors import SimplememError
from simplemem.faces.server_memory import graph_text
from simplemem.server.door import Door
from simplemem.server.hearing import Hearing

Context = ServerRequestContext[Any, Any]

log = logging.getLogger("simplemem.server")

URI: Final = "memory://knowledge-graph"
_JSON = "application/json"
_RESOURCE = Resource(
    uri=URI,
    name="knowledge-graph",
    title="Knowledge Graph",
    description="All entities and relations of the knowledge graph",
    mime_type=_JSON,
)


class GraphResource:
    """Answers `resources/*`."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._subscribed: ServerSession | None = None
        self._listening = 0
        self._hearing = Hearing(door, self._note)  # of changes to notes; whoever does not subscribe pays nothing for it
        self._told = 0  # what `changed_by_others` was when they were told last
        self._heard = False
        self._looking: asyncio.Task[None] | None = None

    async def shown(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[_RESOURCE])

    async def templates(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[])

    async def read(self, _ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        if params.uri != URI:
            raise MCPError(INVALID_PARAMS, f"MCP error -32602: Resource {params.uri} not found")

        def whole() -> str:
            from simplemem.kinds.graph.graph import graph_of

            return graph_text(graph_of(self._door.store()))

        contents = TextResourceContents(uri=URI, mime_type=_JSON, text=await self._door.read(whole))
        return ReadResourceResult(contents=[contents])

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        if params.uri == URI:
            self._subscribed = ctx.session
            self._hearing.begin()
        return EmptyResult()

    async def unsubscribe(self, _ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        if params.uri == URI:
            self._subscribed = None
        return EmptyResult()

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        counts = URI in (params.notifications.resource_subscriptions or [])
        self._listening += counts
        if counts:
            self._hearing.begin()
        try:
            return await self._listen(ctx, params)
        finally:
            self._listening -= counts

    async def tell(self) -> None:
        """The graph has changed."""
        await self._bus.publish(ResourceUpdated(URI))
        if self._subscribed is not None:
            await self._subscribed.send_resource_updated(URI)

    # -- what others change

    def _note(self, _names: frozenset[str]) -> None:
        self._heard = self._listening > 0 or self._subscribed is not None
        if self._heard and (self._looking is None or self._looking.done()):
            self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        """Tell of the graph's changes among those of all notes; of those made here a call has told already."""
        while self._heard:
            self._heard = False
            try:
                changed = await self._door.read(self._changed_by_others)
            except SimplememError as error:
                log.error("what changed in the graph cannot be said: %s", error.code)
                return
            if changed != self._told:
                self._told = changed
                await self.tell()

    def _changed_by_others(self) -> int:
        from simplemem.kinds.graph.graph import graph_of

        return graph_of(self._door.store()).changed_by_others()
