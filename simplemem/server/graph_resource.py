"""The graph as a resource, `memory://knowledge-graph`, and word to whoever subscribed to it after each change made here
(memento.md §2). Both generations of subscription are served."""

from __future__ import annotations

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

from simplemem.server.door import Door
from simplemem.tools.server_memory import graph_text

Context = ServerRequestContext[Any, Any]

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

    async def shown(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[_RESOURCE])

    async def templates(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[])

    async def read(self, _ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        if params.uri != URI:
            raise MCPError(INVALID_PARAMS, f"MCP error -32602: Resource {params.uri} not found")

        def whole() -> str:
            from simplemem.graph.graph import graph_of

            return graph_text(graph_of(self._door.store()))

        contents = TextResourceContents(uri=URI, mime_type=_JSON, text=await self._door.read(whole))
        return ReadResourceResult(contents=[contents])

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        if params.uri == URI:
            self._subscribed = ctx.session
        return EmptyResult()

    async def unsubscribe(self, _ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        if params.uri == URI:
            self._subscribed = None
        return EmptyResult()

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        return await self._listen(ctx, params)

    async def tell(self) -> None:
        """The graph has changed."""
        await self._bus.publish(ResourceUpdated(URI))
        if self._subscribed is not None:
            await self._subscribed.send_resource_updated(URI)
