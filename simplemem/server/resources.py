"""What is read and subscribed to: memories as `memory://{+name}` with the feed `memory://changes`, or the graph alone. A
subscriber, of 2025 or of 2026, is told under the very URI it asked for, however it spelt the name."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from weakref import WeakSet

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from simplemem.errors import Ambiguous, NotFound
from simplemem.faces.render import error_data, index_line, line, pretty
from simplemem.kinds.ownership import is_in_a_folder_of_users, notes_of_users
from simplemem.note.names import compare_key, path_of
from simplemem.server.sessions import Sessions

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from simplemem.faces.session import Session
    from simplemem.kinds.graph.graph import KnowledgeGraph
    from simplemem.memory import IndexState, Listed, Memory
    from simplemem.server.serve import Door
    from simplemem.store import EnhancedStore

    Context = ServerRequestContext[Any, Any]

SCHEME = "memory://"
CHANGES = SCHEME + "changes"
_GRAPH = SCHEME + "knowledge-graph"
_MOST, _LATEST = 100, 50
_LONGEST = 2000  # characters of a URI that an error repeats
_MOST_WANTED = 10_000
_DEAF = 0.5  # seconds after which others are told although one does not read
_THE_LIST = ""  # stands for the list itself, newest first with titles and sizes: every change changes it
_MARKDOWN, _JSON = "text/markdown", "application/json"


def _resource(uri: str, name: str, title: str, about: str, kind: str = _MARKDOWN, **more: Any) -> types.Resource:
    return types.Resource(uri=uri, name=name, title=title, description=about or None, mime_type=kind, **more)


_HEAR = "The memories that changed last. Subscribe to hear of every change."
_FEED = _resource(CHANGES, "changes", "Latest changes", _HEAR)
_ALL = "All entities and relations of the knowledge graph"
_THE_GRAPH = _resource(_GRAPH, "knowledge-graph", "Knowledge Graph", _ALL, _JSON)
_ABOUT = "A note of the vault by its name, whole, with its properties."
_NOTE = types.ResourceTemplate(
    name="memory", title="A memory", uri_template=SCHEME + "{+name}", description=_ABOUT, mime_type=_MARKDOWN
)


def uri_of(name: str) -> str:
    """The URI of a memory, `memory://people/Ada%20Lovelace`, ending in `.md` where it would else mean something else."""
    ending = ".md" if SCHEME + name == CHANGES or name.lower().endswith(".md") else ""
    return SCHEME + quote(name, safe="/!$&'()*+,;=:@", errors="surrogateescape") + ending


def name_in(uri: str) -> str:
    """The name a URI stands for; `.md` may be there or not."""
    if not uri.startswith(SCHEME) or len(uri) == len(SCHEME):
        why = "There is no such resource: they begin with memory://"
        raise MCPError(types.INVALID_PARAMS, why, data={"uri": uri[:_LONGEST]})
    name = unquote(uri.removeprefix(SCHEME), errors="surrogateescape")
    return name[:-3] if name.lower().endswith(".md") else name


def _connection(ctx: Context) -> Connection:
    return ctx.session._connection  # noqa: SLF001  (a session of the SDK is made for each request anew)


class Resources:
    """Answers `resources/*`. A subscriber is told of each URI once, however often it changes before the client has
    read; of the graph with each change made here, before its answer (memento.md §2), and when others changed it."""

    def __init__(
        self,
        door: Door,
        *,
        is_graph: bool = False,
        has_users: bool = False,
        sessions: Sessions | None = None,
    ) -> None:
        self._door = door
        self._sessions = sessions or Sessions()
        self._is_graph = is_graph
        self._has_users = has_users
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._wanted: set[str] = set()  # every URI that was ever asked for
        self._hearers: dict[str, WeakSet[Connection]] = {}  # who hears of a URI
        self._sending: dict[tuple[Connection, str], asyncio.Task[None]] = {}
        self._is_hearing = False
        self._untold: set[str] = set()
        self._telling: asyncio.Task[None] | None = None
        self._told = 0  # of the graph: how often others had changed it when word was given last

    async def templates(self, _ctx: Context, _params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[] if self._is_graph else [_NOTE])

    async def shown(self, _ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        if self._is_graph:
            return types.ListResourcesResult(resources=[_THE_GRAPH])
        cursor = params.cursor if params else None
        items, next_cursor, _ = await self._door.run(lambda: self._latest(_MOST, cursor))
        resources = [] if cursor else [_FEED]
        for item in items:
            about = line(item.description)
            resources.append(_resource(uri_of(item.name), item.name, line(item.title), about, size=item.size))
        return types.ListResourcesResult(resources=resources, next_cursor=next_cursor)

    def _latest(self, limit: int, cursor: str | None = None) -> tuple[list[Listed], str | None, IndexState]:
        """A page of the notes that may be shown, the last changed first, with the cursor of the next page.

        Where users' notes are hidden, further pages are read until one has something to show.
        """
        store = self._door.store()
        hides_users = self.hides_users(store)
        while True:
            page = store.list(sort="modified", limit=limit, cursor=cursor)
            items, cursor = [*page.items], page.next_cursor
            if hides_users:
                hidden = notes_of_users(store, (item.path for item in items))
                items = [item for item in items if item.path not in hidden]
            if items or cursor is None:
                return items, cursor, page.index

    def hides_users(self, store: EnhancedStore) -> bool:
        """Whether the notes of users are hidden: where calls name a user, unless the server was narrowed to one."""
        return self._has_users and not store.settings.access.only

    def names(self, prefix: str, limit: int) -> list[str]:
        """The names of notes that may be shown and begin so, for completion."""
        store = self._door.store()
        if not self.hides_users(store):
            return store.names(prefix, limit=limit)

        asked = limit
        while True:
            names = store.names(prefix, limit=asked)
            elsewhere = [name for name in names if not is_in_a_folder_of_users(path_of(name))]
            if len(elsewhere) >= limit or len(names) < asked:
                break
            asked *= 10
        hidden = notes_of_users(store, map(path_of, elsewhere[:limit]))
        return [name for name in elsewhere[:limit] if path_of(name) not in hidden]

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        session = self._sessions.of(ctx)
        try:
            text = await self._door.run(lambda: self._text(params.uri, session))
        except NotFound as error:
            data = {**error_data(error), "uri": params.uri[:_LONGEST]}
            raise MCPError(types.INVALID_PARAMS, line(error.message, 400), data=data) from None
        kind = _JSON if self._is_graph else _MARKDOWN
        part = types.TextResourceContents(uri=params.uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[part])

    def _text(self, uri: str, session: Session) -> str:
        """The graph; the feed: the memories that changed last, newest first; or a memory."""
        if self._is_graph and uri != _GRAPH:
            raise MCPError(types.INVALID_PARAMS, f"MCP error -32602: Resource {uri} not found")
        if self._is_graph:
            return pretty(self._graph().read().as_dict())
        store = self._door.store()
        if uri != CHANGES:
            memory = self._note(store, name_in(uri))
            session.record_read(memory)
            return memory.text
        latest, cursor, index = self._latest(_LATEST)
        while len(latest) < _LATEST and cursor is not None:  # a page without the notes of users is a short one
            more, cursor, index = self._latest(_LATEST, cursor)
            latest += more
        lines = [
            f"- {line(each.modified, 19)} [{line(each.name)}]({uri_of(each.name)}) {each.sha256[:12]}"
            for each in latest[:_LATEST]
        ]
        said = ["# Latest changes", "\n".join(lines) or "There is no memory yet.", index_line(index)]
        return "\n\n".join(filter(None, said)) + "\n"

    def _note(self, store: EnhancedStore, name: str) -> Memory:
        """The note of a name. A user's note that is hidden is as if it were not there, in candidates too."""
        if not self.hides_users(store):
            return store.read(name)

        with suppress(NotFound, Ambiguous):
            memory = store.read(name)
            if not notes_of_users(store, [memory.path]):
                return memory
        raise NotFound(f"there is no memory {name[:200]!r}")

    def _graph(self) -> KnowledgeGraph:
        from simplemem.kinds.graph.graph import graph_of

        return graph_of(self._door.store())

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """2025: word comes on the connection until it is unsubscribed."""
        if self._can_change(params.uri):
            self._hearers.setdefault(params.uri, WeakSet()).add(_connection(ctx))
            await self._hear_of([params.uri])
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._hearers.get(params.uri, WeakSet()).discard(_connection(ctx))
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """2026: word comes as long as this request lasts."""
        asked = list(filter(self._can_change, params.notifications.resource_subscriptions or []))
        await self._hear_of([*asked, _THE_LIST] if params.notifications.resources_list_changed else asked)
        return await self._listen(ctx, params)

    def _can_change(self, uri: str) -> bool:
        return uri == _GRAPH if self._is_graph else bool(name_in(uri))  # an error if it can be no memory's

    async def _hear_of(self, uris: list[str]) -> None:
        """Hear of changes from now on, from threads of the store's."""
        if len(self._wanted) > _MOST_WANTED:
            raise MCPError(types.INVALID_PARAMS, "Too many subscriptions: memory://changes tells of all.")
        if self._has_users:
            uris = await self._door.run(lambda: self._shown_among(uris))
        self._wanted.update(uris)
        loop = asyncio.get_running_loop()

        def hear(names: frozenset[str]) -> None:
            with suppress(RuntimeError):  # the loop has ended: there is nobody left to tell
                loop.call_soon_threadsafe(self.note, names)

        if not self._is_hearing:
            await self._door.run(lambda: self._door.store().on_change(hear))
            self._is_hearing = True

    def _shown_among(self, uris: list[str]) -> list[str]:
        """Without those of hidden notes: nobody is told when one of them changes."""
        store = self._door.store()
        if not self.hides_users(store):
            return uris
        paths = {uri: path_of(name_in(uri)) for uri in uris if uri not in (CHANGES, _THE_LIST)}
        there = [path for path in paths.values() if store.bench.is_taken(path)]
        hidden = notes_of_users(store, there)
        return [uri for uri in uris if uri not in paths or paths[uri] in set(there) - hidden]

    def note(self, names: frozenset[str]) -> None:
        """These memories changed. In the event loop."""
        always = {_GRAPH} if self._is_graph else {CHANGES, _THE_LIST}
        self._untold |= self._wanted & always
        if not self._is_graph:
            keys = {compare_key(name) for name in names}
            self._untold |= {uri for uri in self._wanted - always if compare_key(name_in(uri)) in keys}
        if self._untold and (self._telling is None or self._telling.done()):
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            uri = self._untold.pop()
            before = self._told
            if self._is_graph:  # of the changes made here a call has told already
                self._told = await self._door.run(lambda: self._graph().changed_by_others())
            if not self._is_graph or self._told != before:
                await self._publish(uri)

    async def _publish(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri) if uri != _THE_LIST else ResourcesListChanged())
        for each in [*self._hearers.get(uri, ())]:
            if (each, uri) not in self._sending:
                task = asyncio.ensure_future(each.notify("notifications/resources/updated", {"uri": uri}))
                self._sending[each, uri] = task
                task.add_done_callback(lambda _, key=(each, uri): self._sending.pop(key))
        if sending := [*self._sending.values()]:
            await asyncio.wait(sending, timeout=_DEAF)

    async def changed_here(self) -> None:
        """A call of a tool has changed something."""
        if self._is_graph:
            await self._publish(_GRAPH)
