"""What is read and subscribed to: memories as resources `memory://{+name}` with the feed `memory://changes`, or for the
faces of graph servers the graph as one resource; and word of changes to whoever subscribed.

Both generations of subscription are served: `resources/subscribe` of 2025 and `subscriptions/listen` of 2026. A client is
told under the very URI it asked for, however it spelt the name.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from simplemem.faces.render import index_line, line
from simplemem.note.names import compare_key
from simplemem.server.door import Door

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

Context = ServerRequestContext[Any, Any]

SCHEME = "memory://"
CHANGES = SCHEME + "changes"
GRAPH: Final = SCHEME + "knowledge-graph"
_MARKDOWN = "text/markdown"
_PAGE, _FEED = 100, 50
_THE_LIST = ""
"""Stands for the list itself, which shows titles and sizes, newest first: every change changes it."""


_TEMPLATE = types.ResourceTemplate(
    name="memory",
    title="A memory",
    uri_template=SCHEME + "{+name}",
    description="A note of the vault by its name, whole, with its properties.",
    mime_type=_MARKDOWN,
)
_FEED_RESOURCE = types.Resource(
    uri=CHANGES,
    name="changes",
    title="Latest changes",
    description="The memories that changed last. Subscribe to hear of every change.",
    mime_type=_MARKDOWN,
)
_GRAPH_RESOURCE = types.Resource(
    uri=GRAPH,
    name="knowledge-graph",
    title="Knowledge Graph",
    description="All entities and relations of the knowledge graph",
    mime_type="application/json",
)


def uri_of(name: str) -> str:
    """The URI of a memory: `memory://people/Ada%20Lovelace`. It ends in `.md` only where it would mean something else
    without: a memory called `changes`, or one whose name ends so."""
    ending = ".md" if SCHEME + name == CHANGES or name.lower().endswith(".md") else ""
    return SCHEME + quote(name, safe="/!$&'()*+,;=:@", errors="surrogateescape") + ending


def name_in(uri: str) -> str:
    """The name a URI stands for; `.md` may be there or not."""
    if not uri.startswith(SCHEME) or len(uri) == len(SCHEME):
        raise MCPError(types.INVALID_PARAMS, "There is no such resource: they begin with memory://")
    name = unquote(uri.removeprefix(SCHEME), errors="surrogateescape")
    return name[:-3] if name.lower().endswith(".md") else name


def _contents(uri: str, kind: str, text: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])


class NoteResources:
    """Answers `resources/*` for memories. A subscriber is told of each URI once, however often it changes before the client
    has read; who has none pays nothing for it."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._listened: Counter[str] = Counter()
        self._subscribed: dict[str, ServerSession] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._untold: set[str] = set()
        self._telling: asyncio.Task[None] | None = None

    async def templates(self, _ctx: Context, _params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[_TEMPLATE])

    async def shown(self, _ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        page = await self._door.read(lambda: self._door.store().list(sort="modified", limit=_PAGE, cursor=cursor))
        resources = [] if cursor else [_FEED_RESOURCE]
        for item in page.items:
            more: dict[str, Any] = {
                "description": line(item.description) or None,
                "mime_type": _MARKDOWN,
                "size": item.size,
            }
            resources.append(types.Resource(uri=uri_of(item.name), name=item.name, title=line(item.title), **more))
        return types.ListResourcesResult(resources=resources, next_cursor=page.next_cursor)

    async def read(self, _ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        name = None if params.uri == CHANGES else name_in(params.uri)

        def text() -> str:
            store = self._door.store()
            return _latest_changes(store) if name is None else store.read(name).text

        return _contents(params.uri, _MARKDOWN, await self._door.read(text))

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """2025: word comes on the connection until it is unsubscribed."""
        if self.check([params.uri]):
            self._subscribed[params.uri] = ctx.session
            self._begin()
        return types.EmptyResult()

    async def unsubscribe(self, _ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._subscribed.pop(params.uri, None)
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """2026: word comes as long as this request lasts."""
        asked = self.check(params.notifications.resource_subscriptions or [])
        if params.notifications.resources_list_changed:
            asked.append(_THE_LIST)
        self._listened.update(asked)
        self._begin()
        try:
            return await self._listen(ctx, params)
        finally:
            self._listened.subtract(asked)
            self._listened += Counter()

    def check(self, uris: Sequence[str]) -> list[str]:
        """Those that can be subscribed to; what cannot is refused."""
        for uri in uris:
            name_in(uri)  # raises when it can be no memory's
        return list(uris)

    def about(self, names: frozenset[str]) -> set[str]:
        """The URIs somebody waits for that a change of these memories may have changed."""
        changed = {compare_key(name) for name in names}
        return {uri for uri in self.wanted() if uri in (CHANGES, _THE_LIST) or compare_key(name_in(uri)) in changed}

    async def is_news(self, uri: str) -> bool:  # noqa: ARG002
        """Whether it has changed indeed."""
        return True

    def wanted(self) -> set[str]:
        return self._listened.keys() | self._subscribed.keys()

    async def publish(self, uri: str) -> None:
        """Tell whoever subscribed to it that something has changed."""
        if uri in self._listened:
            await self._bus.publish(ResourceUpdated(uri) if uri != _THE_LIST else ResourcesListChanged())
        if (session := self._subscribed.get(uri)) is not None:
            await session.send_resource_updated(uri)

    def note(self, names: frozenset[str]) -> None:
        """These memories changed. In the event loop."""
        self._untold |= self.about(names)
        if self._untold and (self._telling is None or self._telling.done()):
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            if await self.is_news(uri := self._untold.pop()):
                await self.publish(uri)

    def _begin(self) -> None:
        """Hear of changes from now on, from threads of the store's. A second time it does nothing."""
        if self._loop is None:
            loop = self._loop = asyncio.get_running_loop()

            def hear(names: frozenset[str]) -> None:
                with suppress(RuntimeError):  # the loop has ended: there is nobody left to tell
                    loop.call_soon_threadsafe(self.note, names)

            self._door.on_change(hear)
            self._door.tend()


def _latest_changes(store: EnhancedStore) -> str:
    """The feed: the memories that changed last, whoever changed them, newest first."""
    page = store.list(sort="modified", limit=_FEED)
    lines = [
        f"- {line(each.modified, 19)} [{line(each.name)}]({uri_of(each.name)}) {each.sha256[:12]}"
        for each in page.items
    ]
    said = ["# Latest changes", "\n".join(lines) or "There is no memory yet.", index_line(page.index)]
    return "\n\n".join(filter(None, said)) + "\n"


class GraphResource(NoteResources):
    """Answers `resources/*` for the graph. Subscribers are told after each change made here (memento.md §2), and when a
    person or another process changed it."""

    _told = 0  # what `changed_by_others` was when they were told last

    async def shown(self, _ctx: Context, _params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[_GRAPH_RESOURCE])

    async def templates(self, _ctx: Context, _params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read(self, _ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if params.uri != GRAPH:
            raise MCPError(types.INVALID_PARAMS, f"MCP error -32602: Resource {params.uri} not found")

        def text() -> str:
            from simplemem.faces.server_memory import graph_text
            from simplemem.kinds.graph.graph import graph_of

            return graph_text(graph_of(self._door.store()))

        return _contents(GRAPH, "application/json", await self._door.read(text))

    def check(self, uris: Sequence[str]) -> list[str]:
        return [uri for uri in uris if uri == GRAPH]

    def about(self, names: frozenset[str]) -> set[str]:  # noqa: ARG002
        return self.wanted() & {GRAPH}

    async def is_news(self, uri: str) -> bool:  # noqa: ARG002
        """Of the changes made here a call has told already."""

        def changed_by_others() -> int:
            from simplemem.kinds.graph.graph import graph_of

            return graph_of(self._door.store()).changed_by_others()

        before, self._told = self._told, await self._door.read(changed_by_others)
        return self._told != before

    async def tell(self) -> None:
        """The graph has changed."""
        await self.publish(GRAPH)
