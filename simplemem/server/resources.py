"""Memories as resources: `memory://{+name}`, the feed `memory://changes`, and word of changes to whoever
subscribed.

Both generations of subscription are served: `resources/subscribe` of 2025 and `subscriptions/listen` of
2026. A client is told under the very URI it asked for, however it spelt the name.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
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
    ResourceTemplate,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from simplemem.faces.render import index_line, line
from simplemem.note.names import compare_key
from simplemem.server.door import Door
from simplemem.server.hearing import Hearing

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

Context = ServerRequestContext[Any, Any]

SCHEME = "memory://"
CHANGES = SCHEME + "changes"
TEMPLATE = SCHEME + "{+name}"
_MARKDOWN = "text/markdown"
_PAGE = 100
_FEED = 50
_MOST_SUBSCRIBED = 1000
"""URIs a client may be told of. Each is looked at with every change."""
_THE_LIST = ""
"""Stands for the list itself, which shows titles and sizes, newest first: every change changes it."""


def uri_of(name: str) -> str:
    """The URI of a memory: `memory://people/Ada%20Lovelace`. It ends in `.md` only where it would mean
    something else without: a memory called `changes`, or one whose name ends so."""
    ending = ".md" if SCHEME + name == CHANGES or name.lower().endswith(".md") else ""
    return SCHEME + quote(name, safe="/!$&'()*+,;=:@", errors="surrogateescape") + ending


def name_in(uri: str) -> str:
    """The name a URI stands for; `.md` may be there or not."""
    if not uri.startswith(SCHEME) or len(uri) == len(SCHEME):
        raise MCPError(INVALID_PARAMS, "There is no such resource: they begin with memory://")
    name = unquote(uri.removeprefix(SCHEME), errors="surrogateescape")
    return name[:-3] if name.lower().endswith(".md") else name


class Resources:
    """Answers `resources/*` and tells subscribers what changed."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._hearing = Hearing(door, self._note)
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._listened: Counter[str] = Counter()
        self._subscribed: dict[str, ServerSession] = {}
        self._untold: set[str] = set()
        self._telling: asyncio.Task[None] | None = None

    # --- listing and reading

    async def templates(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        template = ResourceTemplate(
            name="memory",
            title="A memory",
            uri_template=TEMPLATE,
            description="A note of the vault by its name, whole, with its properties.",
            mime_type=_MARKDOWN,
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def shown(self, _ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        cursor = params.cursor if params else None
        page = await self._door.read(lambda: self._door.store().list(sort="modified", limit=_PAGE, cursor=cursor))
        found = [
            Resource(
                uri=uri_of(item.name),
                name=item.name,
                title=line(item.title),
                description=line(item.description) or None,
                mime_type=_MARKDOWN,
                size=item.size,
            )
            for item in page.items
        ]
        return ListResourcesResult(
            resources=found if cursor else [_FEED_RESOURCE, *found], next_cursor=page.next_cursor
        )

    async def read(self, _ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = params.uri
        name = None if uri == CHANGES else name_in(uri)

        def text() -> str:
            store = self._door.store()
            return latest_changes(store) if name is None else store.read(name).text

        contents = TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=await self._door.read(text))
        return ReadResourceResult(contents=[contents])

    # --- subscriptions

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        """2025: word comes on the connection, which is one a process here, until it is unsubscribed."""
        self._refuse_too_many([params.uri])
        self._subscribed[params.uri] = ctx.session
        self._hearing.begin()
        return EmptyResult()

    async def unsubscribe(self, _ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self._subscribed.pop(params.uri, None)
        return EmptyResult()

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """2026: word comes as long as this request lasts."""
        asked = list(params.notifications.resource_subscriptions or [])
        self._refuse_too_many(asked)
        if params.notifications.resources_list_changed:
            asked.append(_THE_LIST)
        self._listened.update(asked)
        self._hearing.begin()
        try:
            return await self._listen(ctx, params)
        finally:
            self._listened.subtract(asked)
            self._listened += Counter()

    def _refuse_too_many(self, asked: Sequence[str]) -> None:
        for uri in asked:
            name_in(uri)  # raises when it can be no memory's
        if len(self._subscribed.keys() | self._listened.keys() | set(asked)) > _MOST_SUBSCRIBED:
            raise MCPError(
                INVALID_PARAMS, f"At most {_MOST_SUBSCRIBED} resources can be subscribed to; {CHANGES} tells of all."
            )

    def _note(self, names: frozenset[str]) -> None:
        """Keep what is to be told, each URI once however often it changes before the client has read."""
        changed = {compare_key(name) for name in names}
        for uri in self._listened.keys() | self._subscribed.keys():
            if uri in (CHANGES, _THE_LIST) or compare_key(name_in(uri)) in changed:
                self._untold.add(uri)
        if self._untold and (self._telling is None or self._telling.done()):
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            uri = self._untold.pop()
            if uri in self._listened:
                await self._bus.publish(ResourceUpdated(uri) if uri != _THE_LIST else ResourcesListChanged())
            if (session := self._subscribed.get(uri)) is not None:
                await session.send_resource_updated(uri)


def latest_changes(store: EnhancedStore) -> str:
    """The feed: the memories that changed last, whoever changed them, newest first."""
    page = store.list(sort="modified", limit=_FEED)
    lines = [
        f"- {line(item.modified, 19)} [{line(item.name)}]({uri_of(item.name)}) {item.sha256[:12]}"
        for item in page.items
    ]
    said = ["# Latest changes", "\n".join(lines) or "There is no memory yet.", index_line(page.index)]
    return "\n\n".join(part for part in said if part) + "\n"


_FEED_RESOURCE = Resource(
    uri=CHANGES,
    name="changes",
    title="Latest changes",
    description="The memories that changed last. Subscribe to hear of every change.",
    mime_type=_MARKDOWN,
)
