"""What is read and subscribed to: memories as `memory://{+name}` with the feed `memory://changes`, or the graph alone. A
subscriber, of 2025 or of 2026, is told under the very URI it asked for, however it spelt the name."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.shared.exceptions import MCPError

from simplemem.errors import Ambiguous, NotFound
from simplemem.features.ownership import is_in_a_folder_of_users, notes_of_users
from simplemem.note.names import compare_key, path_of
from simplemem.server.sdk_compat import connection_of
from simplemem.server.sessions import Sessions
from simplemem.tools.render import error_data, index_line, line, pretty

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from simplemem.features.graph.graph import KnowledgeGraph
    from simplemem.models import IndexState, Listed, Memory
    from simplemem.server.executor import StoreExecutor
    from simplemem.store import EnhancedStore
    from simplemem.tools.session import Session

    Context = ServerRequestContext[Any, Any]

SCHEME = "memory://"
CHANGES = SCHEME + "changes"
_GRAPH = SCHEME + "knowledge-graph"
_MOST, _LATEST = 100, 50
_LONGEST = 2000  # characters of a URI that an error repeats
_MAX_SUBSCRIPTIONS = 500  # of a session of 2025, or of a request of 2026
_MAX_SUBSCRIBED_URI = 4000  # characters
_TOO_MANY = (
    f"this client already has {_MAX_SUBSCRIPTIONS} subscriptions. Unsubscribe from some, or subscribe to memory://changes,"
    " which reports every change."
)
_ALWAYS = ""  # the key of what every change concerns
_DEAF = 0.5  # seconds after which others are told although one does not read
_THE_LIST = (
    ""  # stands for the list itself, newest first with titles and sizes: every change changes it
)
_MARKDOWN, _JSON = "text/markdown", "application/json"


def _resource(
    uri: str, name: str, title: str, about: str, kind: str = _MARKDOWN, **more: Any
) -> types.Resource:
    return types.Resource(
        uri=uri, name=name, title=title, description=about or None, mime_type=kind, **more
    )


_HEAR = "The most recently changed memories. Subscribe to be notified of every change."
_FEED = _resource(CHANGES, "changes", "Latest changes", _HEAR)
_ALL = "All entities and relations of the knowledge graph"
_THE_GRAPH = _resource(_GRAPH, "knowledge-graph", "Knowledge Graph", _ALL, _JSON)
_ABOUT = "One note of the vault by its name, with its frontmatter."
_NOTE = types.ResourceTemplate(
    name="memory",
    title="A memory",
    uri_template=SCHEME + "{+name}",
    description=_ABOUT,
    mime_type=_MARKDOWN,
)


def uri_of(name: str) -> str:
    """The URI of a memory, `memory://people/Ada%20Lovelace`, ending in `.md` where it would else mean something else."""
    ending = ".md" if SCHEME + name == CHANGES or name.lower().endswith(".md") else ""
    return SCHEME + quote(name, safe="/!$&'()*+,;=:@", errors="surrogateescape") + ending


def name_in(uri: str) -> str:
    """The name a URI stands for; `.md` may be there or not."""
    if not uri.startswith(SCHEME) or len(uri) == len(SCHEME):
        why = "no such resource: URIs begin with memory://"
        raise MCPError(types.INVALID_PARAMS, why, data={"uri": uri[:_LONGEST]})
    name = unquote(uri.removeprefix(SCHEME), errors="surrogateescape")
    return name[:-3] if name.lower().endswith(".md") else name


def _no_such_resource(error: NotFound, uri: str) -> MCPError:
    data = {**error_data(error), "uri": uri[:_LONGEST]}
    return MCPError(types.INVALID_PARAMS, line(error.message, 400), data=data)


class _Subscriptions:
    """Which holder wants to hear of which URI: a session of 2025, or a request of 2026. Used in the event loop alone.

    A URI that stands for a note has that note's name as its key; others have none and are always meant.
    """

    def __init__(self) -> None:
        self._uris: dict[Any, set[str]] = {}
        self._holders: dict[str, set[Any]] = {}
        self._key_of: dict[str, str] = {}
        self._uris_of_key: dict[str, set[str]] = {}

    def add(self, holder: Any, uri: str, key: str) -> None:
        """Subscribe. MCPError if the holder has too many subscriptions."""
        uris = self._uris.setdefault(holder, set())
        if uri not in uris and len(uris) >= _MAX_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, _TOO_MANY)

        uris.add(uri)
        self._holders.setdefault(uri, set()).add(holder)
        self._forget_key(uri)  # a note of that name may have come since
        self._key_of[uri] = key
        self._uris_of_key.setdefault(key, set()).add(uri)

    def remove(self, holder: Any, uri: str) -> None:
        self._uris.get(holder, set()).discard(uri)
        holders = self._holders.get(uri, set())
        holders.discard(holder)
        if not holders:
            self._holders.pop(uri, None)
            self._forget_key(uri)

    def drop(self, holder: Any) -> None:
        """End all subscriptions of a holder that is gone."""
        for uri in self._uris.pop(holder, set()):
            self.remove(holder, uri)

    def has(self, holder: Any) -> bool:
        return holder in self._uris

    def holders(self, uri: str) -> list[Any]:
        return [*self._holders.get(uri, ())]

    def changed(self, names: frozenset[str]) -> set[str]:
        """Return the subscribed URIs that a change of these notes concerns."""
        uris = set(self._uris_of_key.get(_ALWAYS, ()))
        for name in names:
            uris |= self._uris_of_key.get(compare_key(name), set())
        return uris

    def _forget_key(self, uri: str) -> None:
        key = self._key_of.pop(uri, None)
        if key is None:
            return

        uris = self._uris_of_key[key]
        uris.discard(uri)
        if not uris:
            del self._uris_of_key[key]


class Resources:
    """Answers `resources/*`. A subscriber is told of each URI once, however often it changes before the client has
    read; of the graph with each change made here, before its answer, and when others changed it."""

    def __init__(
        self,
        door: StoreExecutor,
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
        self._by_session = _Subscriptions()
        self._by_request = _Subscriptions()
        self._sending: dict[tuple[Connection, str], asyncio.Task[None]] = {}
        self._is_hearing = False
        self._untold: set[str] = set()
        self._telling: asyncio.Task[None] | None = None
        self._told = 0  # of the graph: how often others had changed it when word was given last

    async def templates(self, _ctx: Context, _params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[] if self._is_graph else [_NOTE]
        )

    async def shown(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        if self._is_graph:
            return types.ListResourcesResult(resources=[_THE_GRAPH])
        cursor = params.cursor if params else None
        items, next_cursor, _ = await self._door.run(lambda: self._latest(_MOST, cursor))
        resources = [] if cursor else [_FEED]
        for item in items:
            about = line(item.description)
            resources.append(
                _resource(uri_of(item.name), item.name, line(item.title), about, size=item.size)
            )
        return types.ListResourcesResult(resources=resources, next_cursor=next_cursor)

    def _latest(
        self, limit: int, cursor: str | None = None
    ) -> tuple[list[Listed], str | None, IndexState]:
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

    async def read(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        session = self._sessions.session_of(ctx)
        try:
            text = await self._door.run(lambda: self._text(params.uri, session))
        except NotFound as error:
            raise _no_such_resource(error, params.uri) from None
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
        while (
            len(latest) < _LATEST and cursor is not None
        ):  # a page without the notes of users is a short one
            more, cursor, index = self._latest(_LATEST, cursor)
            latest += more
        lines = [
            f"- {line(each.modified, 19)} [{line(each.name)}]({uri_of(each.name)}) {each.sha256[:12]}"
            for each in latest[:_LATEST]
        ]
        said = [
            "# Latest changes",
            "\n".join(lines) or "There are no memories yet.",
            index_line(index),
        ]
        return "\n\n".join(filter(None, said)) + "\n"

    def _note(self, store: EnhancedStore, name: str) -> Memory:
        """The note of a name. A user's note that is hidden is as if it were not there, in candidates too."""
        if not self.hides_users(store):
            return store.read(name)

        with suppress(NotFound, Ambiguous):
            memory = store.read(name)
            if not notes_of_users(store, [memory.path]):
                return memory
        raise NotFound(f"no memory called {name[:200]!r}")

    def _graph(self) -> KnowledgeGraph:
        from simplemem.features.graph.graph import graph_of

        return graph_of(self._door.store())

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """2025: word comes on the connection until it is unsubscribed or the session ends.

        MCPError if no such note exists, so that nobody can fill the server with invented names.
        """
        connection = connection_of(ctx)
        uri = params.uri
        if self._can_change(uri):
            key = (
                _ALWAYS
                if uri in (_GRAPH, CHANGES)
                else await self._door.run(lambda: self._existing_key(uri))
            )
            if not self._by_session.has(connection):
                connection.exit_stack.callback(self._by_session.drop, connection)
            self._by_session.add(connection, uri, key)
            await self._hear_changes()
        return types.EmptyResult()

    def _existing_key(self, uri: str) -> str:
        """Return the key of the note that a URI means. Call it in a thread."""
        store = self._door.store()
        try:
            if self.hides_users(store):
                name = self._note(store, name_in(uri)).name
            else:
                name = store.resolve(name_in(uri))
        except NotFound as error:
            raise _no_such_resource(error, uri) from None
        return compare_key(name)

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._by_session.remove(connection_of(ctx), params.uri)
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """2026: word comes as long as this request lasts; also of notes that do not exist yet, as the protocol has it."""
        request = object()
        try:
            asked = [
                uri
                for uri in params.notifications.resource_subscriptions or []
                if self._can_change(uri)
            ]
            if self._has_users:
                asked = await self._door.run(lambda: self._shown_among(asked))
            for uri in asked:
                self._by_request.add(
                    request, uri, _ALWAYS if uri in (_GRAPH, CHANGES) else compare_key(name_in(uri))
                )
            if params.notifications.resources_list_changed:
                self._by_request.add(request, _THE_LIST, _ALWAYS)
            await self._hear_changes()
            return await self._listen(ctx, params)
        finally:
            self._by_request.drop(request)

    def _can_change(self, uri: str) -> bool:
        if self._is_graph:
            return uri == _GRAPH
        if len(uri) > _MAX_SUBSCRIBED_URI:
            raise MCPError(
                types.INVALID_PARAMS, f"the URI is longer than {_MAX_SUBSCRIBED_URI} characters"
            )
        return bool(name_in(uri))  # an error if it can be no memory's

    async def _hear_changes(self) -> None:
        """Hear of changes from now on, from threads of the store's."""
        loop = asyncio.get_running_loop()

        def hear(names: frozenset[str]) -> None:
            with suppress(RuntimeError):  # the loop has ended: there is nobody left to tell
                loop.call_soon_threadsafe(self.note, names)

        if not self._is_hearing:
            await self._door.run(lambda: self._door.on_change(hear))
            self._is_hearing = True

    def _shown_among(self, uris: list[str]) -> list[str]:
        """Without those of hidden notes: nobody is told when one of them changes."""
        store = self._door.store()
        if not self.hides_users(store):
            return uris
        paths = {uri: path_of(name_in(uri)) for uri in uris if uri not in (CHANGES, _THE_LIST)}
        there = [path for path in paths.values() if store.extension.exists(path)]
        hidden = notes_of_users(store, there)
        return [uri for uri in uris if uri not in paths or paths[uri] in set(there) - hidden]

    def note(self, names: frozenset[str]) -> None:
        """These memories changed. In the event loop."""
        self._untold |= self._by_session.changed(names) | self._by_request.changed(names)
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
        await self._bus.publish(
            ResourceUpdated(uri) if uri != _THE_LIST else ResourcesListChanged()
        )
        for each in self._by_session.holders(uri):
            if (each, uri) not in self._sending:
                task = asyncio.ensure_future(
                    each.notify("notifications/resources/updated", {"uri": uri})
                )
                self._sending[each, uri] = task
                task.add_done_callback(lambda _, key=(each, uri): self._sending.pop(key))
        if sending := [*self._sending.values()]:
            await asyncio.wait(sending, timeout=_DEAF)

    async def changed_here(self) -> None:
        """A call of a tool has changed something."""
        if self._is_graph:
            await self._publish(_GRAPH)
