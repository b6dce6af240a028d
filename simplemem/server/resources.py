"""MCP resources: notes as `memory://{+name}`, the feed `memory://changes`, or the knowledge graph.

A subscriber, of the 2025 or the 2026 protocol, is notified under the URI that it subscribed to,
however that URI spells the name of the note.
"""

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
    ServerEvent,
)
from mcp.shared.exceptions import MCPError

from simplemem.errors import Ambiguous, NotFound
from simplemem.features.ownership import is_in_a_folder_of_users, notes_of_users
from simplemem.note.names import compare_key, path_of
from simplemem.server.apps import URI as APP_URI
from simplemem.server.apps import app_resource
from simplemem.server.sdk_compat import connection_of
from simplemem.server.sessions import Sessions
from simplemem.tools.render import error_data, index_line, line, pretty

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from simplemem.features.graph.service import KnowledgeGraph
    from simplemem.models import IndexState, Listed, Memory
    from simplemem.server.executor import StoreExecutor
    from simplemem.store import EnhancedStore
    from simplemem.tools.session import Session

    Context = ServerRequestContext[Any, Any]

SCHEME = "memory://"
CHANGES = SCHEME + "changes"
_GRAPH = SCHEME + "knowledge-graph"
_PAGE_SIZE = 100  # resources of a list
_FEED_SIZE = 50  # notes in the feed
_MAX_ERROR_URI = 2000  # characters of a URI that an error repeats
_MAX_SUBSCRIPTIONS = 500  # of a session of 2025, or of a request of 2026
_MAX_SUBSCRIBED_URI = 4000  # characters
_TOO_MANY = (
    f"this client already has {_MAX_SUBSCRIPTIONS} subscriptions. Unsubscribe from some, or"
    " subscribe to memory://changes, which reports every change."
)
_ANY_CHANGE = ""  # the key of a URI that every change concerns
SLOW_CLIENT_SECONDS = 0.5  # that a client which does not read delays the others
# Stands for the list itself. Every change changes the list, which is sorted by time and has sizes.
_LIST_URI = ""
_MARKDOWN = "text/markdown"
_JSON = "application/json"


def _resource(
    uri: str, name: str, title: str, description: str, mime_type: str = _MARKDOWN, **more: Any
) -> types.Resource:
    """Return a resource as it is listed.

    `name` identifies it, and `title` is shown to people. `more` are other fields, such as its size.
    """
    return types.Resource(
        uri=uri,
        name=name,
        title=title,
        description=description or None,
        mime_type=mime_type,
        **more,
    )


_FEED = _resource(
    CHANGES,
    "changes",
    "Latest changes",
    "The most recently changed memories. Subscribe to be notified of every change.",
)
_GRAPH_RESOURCE = _resource(
    _GRAPH,
    "knowledge-graph",
    "Knowledge Graph",
    "All entities and relations of the knowledge graph",
    _JSON,
)
_NOTE = types.ResourceTemplate(
    name="memory",
    title="A memory",
    uri_template=SCHEME + "{+name}",
    description="One note of the vault by its name, with its frontmatter.",
    mime_type=_MARKDOWN,
)


def uri_of(name: str) -> str:
    """Return the URI of a note, such as `memory://people/Ada%20Lovelace`.

    It ends in `.md` if it would otherwise mean another resource or note: for the note `changes`,
    and for names that end in `.md` themselves.
    """
    uri = SCHEME + quote(name, safe="/!$&'()*+,;=:@", errors="surrogateescape")
    is_ambiguous = SCHEME + name == CHANGES or name.lower().endswith(".md")
    if is_ambiguous:
        return f"{uri}.md"
    return uri


def name_in(uri: str) -> str:
    """Return the name of the note that a URI means, without `.md`.

    Raises MCPError if the URI does not begin with `memory://`, or ends there.
    """
    if not uri.startswith(SCHEME) or len(uri) == len(SCHEME):
        message = "no such resource: URIs begin with memory://"
        raise MCPError(types.INVALID_PARAMS, message, data={"uri": uri[:_MAX_ERROR_URI]})

    name = unquote(uri.removeprefix(SCHEME), errors="surrogateescape")
    if name.lower().endswith(".md"):
        return name[: -len(".md")]
    return name


def _names_outside_user_folders(store: EnhancedStore, prefix: str, limit: int) -> list[str]:
    """Return up to `limit` names that begin with `prefix`, outside the folders of users.

    Asks for ten times as many names until there are enough, because most may be in such folders.
    """
    count = limit
    while True:
        all_names = store.names(prefix, limit=count)
        names = [name for name in all_names if not is_in_a_folder_of_users(path_of(name))]
        if len(names) >= limit or len(all_names) < count:
            return names[:limit]
        count *= 10


def _no_such_resource(error: NotFound, uri: str) -> MCPError:
    """Return the error of the protocol for a note that does not exist, with the URI in its data."""
    data = {**error_data(error), "uri": uri[:_MAX_ERROR_URI]}
    return MCPError(types.INVALID_PARAMS, line(error.message, 400), data=data)


class _Subscriptions:
    """The URIs that each client subscribed to. Used in the event loop only.

    A client is a connection of the 2025 protocol, or an object for a request of the 2026 protocol.
    The key of a URI says which changes concern it: `compare_key` of the name of its note, or
    `_ANY_CHANGE`.
    """

    def __init__(self) -> None:
        self._uris_of_client: dict[Any, set[str]] = {}
        self._clients_of_uri: dict[str, set[Any]] = {}
        self._key_of_uri: dict[str, str] = {}
        self._uris_of_key: dict[str, set[str]] = {}

    def add(self, client: Any, uri: str, key: str) -> None:
        """Subscribe a client to a URI with a key. Does nothing if it is subscribed already.

        Raises MCPError if the client already has 500 subscriptions.
        """
        uris = self._uris_of_client.setdefault(client, set())
        if uri not in uris and len(uris) >= _MAX_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, _TOO_MANY)

        uris.add(uri)
        self._clients_of_uri.setdefault(uri, set()).add(client)
        self._forget_key(uri)  # the URI may mean another note now
        self._key_of_uri[uri] = key
        self._uris_of_key.setdefault(key, set()).add(uri)

    def remove(self, client: Any, uri: str) -> None:
        """Unsubscribe a client from a URI. Does nothing if it is not subscribed."""
        self._uris_of_client.get(client, set()).discard(uri)
        clients = self._clients_of_uri.get(uri, set())
        clients.discard(client)
        if not clients:
            self._clients_of_uri.pop(uri, None)
            self._forget_key(uri)

    def drop(self, client: Any) -> None:
        """Unsubscribe a client from everything, because it has disconnected."""
        for uri in self._uris_of_client.pop(client, set()):
            self.remove(client, uri)

    def has(self, client: Any) -> bool:
        """Return whether a client has ever subscribed, and is still connected."""
        return client in self._uris_of_client

    def clients(self, uri: str) -> list[Any]:
        """Return the clients that are subscribed to a URI."""
        return [*self._clients_of_uri.get(uri, ())]

    def changed(self, names: frozenset[str]) -> set[str]:
        """Return the subscribed URIs that a change of the notes with these names concerns."""
        uris = set(self._uris_of_key.get(_ANY_CHANGE, ()))
        for name in names:
            uris |= self._uris_of_key.get(compare_key(name), set())
        return uris

    def _forget_key(self, uri: str) -> None:
        """Forget the key of a URI. Does nothing if it has none."""
        key = self._key_of_uri.pop(uri, None)
        if key is None:
            return

        uris = self._uris_of_key[key]
        uris.discard(uri)
        if not uris:
            del self._uris_of_key[key]


class Resources:
    """Answers `resources/*` and notifies subscribers.

    `is_graph` says that the only resource is the knowledge graph, and `has_users` that calls of
    tools name a user. A client that does not read delays the notification of the others by
    `slow_client_seconds` at most.

    A client is notified of each URI once, however often it changes before the client reads the
    notification. A subscriber of the graph is notified of each change made by this server before
    the call is answered, and when another program changed the graph.
    """

    def __init__(
        self,
        executor: StoreExecutor,
        *,
        is_graph: bool = False,
        has_users: bool = False,
        sessions: Sessions | None = None,
        slow_client_seconds: float = SLOW_CLIENT_SECONDS,
    ) -> None:
        self._executor = executor
        self._slow_client_seconds = slow_client_seconds
        self._sessions = sessions or Sessions()
        self._is_graph = is_graph
        self._has_users = has_users
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._by_session = _Subscriptions()
        self._by_request = _Subscriptions()
        self._sending: dict[tuple[Connection, str], asyncio.Task[None]] = {}
        self._is_watching = False
        self._watching_lock = asyncio.Lock()  # so that two clients do not watch the store twice
        self._changed_uris: set[str] = set()  # of which no client has been notified
        self._notifying: asyncio.Task[None] | None = None
        self._graph_changes = 0  # how often others had changed the graph at the last notification

    async def templates(self, _ctx: Context, _params: Any) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`: the template of notes, or nothing for the graph."""
        templates = [_NOTE]
        if self._is_graph:
            templates = []
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def list_page(
        self, _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer `resources/list`: the feed, then the notes, the last changed first.

        A page has up to 100 notes, and only the first page has the feed. A server of the graph
        lists the graph alone. Raises Invalid if the cursor is not one of this server.
        """
        if self._is_graph:
            return types.ListResourcesResult(resources=[_GRAPH_RESOURCE])

        cursor = None
        if params is not None:
            cursor = params.cursor
        items, next_cursor, _ = await self._executor.run(lambda: self._latest(_PAGE_SIZE, cursor))

        resources = []
        if not cursor:
            resources.append(_FEED)
        for item in items:
            title = line(item.title)
            description = line(item.description)
            resources.append(
                _resource(uri_of(item.name), item.name, title, description, size=item.size)
            )
        return types.ListResourcesResult(resources=resources, next_cursor=next_cursor)

    def _latest(
        self, limit: int, cursor: str | None = None
    ) -> tuple[list[Listed], str | None, IndexState]:
        """Return a page of visible notes, the cursor of the next page, and the state of the index.

        The note that changed last comes first. A page without visible notes is skipped. The cursor
        is None at the end.
        """
        store = self._executor.store()
        hides_users = self.hides_users(store)
        while True:
            page = store.list(sort="modified", limit=limit, cursor=cursor)
            items = [*page.items]
            cursor = page.next_cursor
            if hides_users:
                hidden = notes_of_users(store, (item.path for item in items))
                items = [item for item in items if item.path not in hidden]
            if items or cursor is None:
                return items, cursor, page.index

    def hides_users(self, store: EnhancedStore) -> bool:
        """Return whether the notes of users are hidden from requests that name no user.

        This is so if calls of tools name a user and the server shows the whole vault.
        """
        return self._has_users and not store.settings.access.only

    def names(self, prefix: str, limit: int) -> list[str]:
        """Return up to `limit` names of visible notes that begin with `prefix`, for completion.

        Call it in a thread.
        """
        store = self._executor.store()
        if not self.hides_users(store):
            return store.names(prefix, limit=limit)

        names = _names_outside_user_folders(store, prefix, limit)
        hidden = notes_of_users(store, map(path_of, names))
        return [name for name in names if path_of(name) not in hidden]

    async def read(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer `resources/read`. A note that is read counts as read in the session.

        Raises MCPError if there is no such resource, Ambiguous if several notes have the name.
        """
        if params.uri == APP_URI and not self._is_graph:
            return app_resource()

        session = self._sessions.session_of(ctx)
        try:
            text = await self._executor.run(lambda: self._text(params.uri, session))
        except NotFound as error:
            raise _no_such_resource(error, params.uri) from None

        mime_type = _MARKDOWN
        if self._is_graph:
            mime_type = _JSON
        contents = types.TextResourceContents(uri=params.uri, mime_type=mime_type, text=text)
        return types.ReadResourceResult(contents=[contents])

    def _text(self, uri: str, session: Session) -> str:
        """Return the text of a resource: the graph, the feed, or a note, which counts as read.

        Raises NotFound or MCPError if there is no such resource. Call it in a thread.
        """
        if self._is_graph:
            if uri != _GRAPH:
                raise MCPError(types.INVALID_PARAMS, f"MCP error -32602: Resource {uri} not found")
            return pretty(self._graph().read().as_dict())

        if uri == CHANGES:
            return self._feed()

        memory = self._note(self._executor.store(), name_in(uri))
        session.record_read(memory)
        return memory.text

    def _feed(self) -> str:
        """Return the 50 notes that changed last, newest first, as a list in Markdown."""
        items, cursor, index = self._latest(_FEED_SIZE)
        # A page without the notes of users may be short.
        while len(items) < _FEED_SIZE and cursor is not None:
            more, cursor, index = self._latest(_FEED_SIZE, cursor)
            items += more

        rows = []
        for item in items[:_FEED_SIZE]:
            link = f"[{line(item.name)}]({uri_of(item.name)})"
            rows.append(f"- {line(item.modified, 19)} {link} {item.sha256[:12]}")
        notes = "\n".join(rows) or "There are no memories yet."
        paragraphs = ["# Latest changes", notes, index_line(index)]
        return "\n\n".join(filter(None, paragraphs)) + "\n"

    def _note(self, store: EnhancedStore, name: str) -> Memory:
        """Return a visible note by its name.

        Raises NotFound if there is none, also for a hidden note of a user, whose name is not among
        the candidates. Raises Ambiguous if several notes have the name and no notes are hidden.
        """
        if not self.hides_users(store):
            return store.read(name)

        with suppress(NotFound, Ambiguous):
            memory = store.read(name)
            if not notes_of_users(store, [memory.path]):
                return memory
        raise NotFound(f"no memory called {name[:200]!r}")

    def _graph(self) -> KnowledgeGraph:
        """Return the graph of the store. Call it in a thread."""
        from simplemem.features.graph.service import graph_of

        return graph_of(self._executor.store())

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer `resources/subscribe` of the 2025 protocol.

        The client is notified on its connection until it unsubscribes or disconnects. Raises
        MCPError if no such note exists, so that nobody can fill the server with invented names, or
        if the client has too many subscriptions. A server of the graph ignores other URIs.
        """
        connection = connection_of(ctx)
        uri = params.uri
        if not self._can_change(uri):
            return types.EmptyResult()

        key = _ANY_CHANGE
        if uri not in (_GRAPH, CHANGES):
            key = await self._executor.run(lambda: self._existing_key(uri))
        if not self._by_session.has(connection):
            connection.exit_stack.callback(self._by_session.drop, connection)
        self._by_session.add(connection, uri, key)
        await self._watch_store()
        return types.EmptyResult()

    def _existing_key(self, uri: str) -> str:
        """Return the key of the note that a URI means.

        Raises MCPError if there is none, Ambiguous if several notes have the name. Call it in a
        thread.
        """
        store = self._executor.store()
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
        """Answer `resources/unsubscribe` of the 2025 protocol, also if there is no subscription."""
        self._by_session.remove(connection_of(ctx), params.uri)
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer `subscriptions/listen` of the 2026 protocol.

        Returns when the client ends the request. Until then the client is notified, also of notes
        that do not exist yet, as the protocol requires; where users are hidden, only of visible
        notes that exist. Raises MCPError for a URI that is too long or is not one of a note, or for
        too many subscriptions.
        """
        request = object()
        try:
            uris = [
                uri
                for uri in params.notifications.resource_subscriptions or []
                if self._can_change(uri)
            ]
            if self._has_users:
                uris = await self._executor.run(lambda: self._visible_among(uris))
            for uri in uris:
                key = _ANY_CHANGE
                if uri not in (_GRAPH, CHANGES):
                    key = compare_key(name_in(uri))
                self._by_request.add(request, uri, key)
            if params.notifications.resources_list_changed:
                self._by_request.add(request, _LIST_URI, _ANY_CHANGE)
            await self._watch_store()
            return await self._listen(ctx, params)
        finally:
            self._by_request.drop(request)

    def _can_change(self, uri: str) -> bool:
        """Return whether a resource with this URI can change, and so be subscribed to.

        False for another URI than the graph's if the server has only the graph. Raises MCPError if
        the URI is too long or not one of a note.
        """
        if self._is_graph:
            return uri == _GRAPH
        if len(uri) > _MAX_SUBSCRIBED_URI:
            message = f"the URI is longer than {_MAX_SUBSCRIBED_URI} characters"
            raise MCPError(types.INVALID_PARAMS, message)
        return bool(name_in(uri))

    async def _watch_store(self) -> None:
        """Receive the changes of the store from now on. Does nothing if it does already.

        Threads of the store report the changes. Raises Unavailable if the store cannot be opened;
        the next call tries again.
        """
        loop = asyncio.get_running_loop()

        def report(names: frozenset[str]) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it all clients
                loop.call_soon_threadsafe(self.report_change, names)

        async with self._watching_lock:
            if not self._is_watching:
                await self._executor.run(lambda: self._executor.on_change(report))
                self._is_watching = True

    def _visible_among(self, uris: list[str]) -> list[str]:
        """Return the URIs without those of hidden notes: no client learns when these change.

        Where users are hidden, URIs of notes that do not exist are left out, too. Call it in a
        thread. Raises MCPError for a URI that is not one of a note.
        """
        store = self._executor.store()
        if not self.hides_users(store):
            return uris

        paths = {uri: path_of(name_in(uri)) for uri in uris if uri not in (CHANGES, _LIST_URI)}
        existing = {path for path in paths.values() if store.extension.exists(path)}
        visible = existing - notes_of_users(store, existing)
        return [uri for uri in uris if uri not in paths or paths[uri] in visible]

    def report_change(self, names: frozenset[str]) -> None:
        """Notify the clients that subscribed to these changed notes, in a task of its own.

        `names` are the names of the notes. Call it in the event loop.
        """
        self._changed_uris |= self._by_session.changed(names) | self._by_request.changed(names)
        is_notifying = self._notifying is not None and not self._notifying.done()
        if self._changed_uris and not is_notifying:
            self._notifying = asyncio.ensure_future(self._notify_all())

    async def _notify_all(self) -> None:
        """Notify the clients of all changed URIs.

        Of the graph, only changes by others: a tool call has already notified the clients of its
        own.
        """
        while self._changed_uris:
            uri = self._changed_uris.pop()
            if not self._is_graph:
                await self._publish(uri)
                continue

            old_count = self._graph_changes
            self._graph_changes = await self._executor.run(
                lambda: self._graph().changed_by_others()
            )
            if self._graph_changes != old_count:
                await self._publish(uri)

    async def _publish(self, uri: str) -> None:
        """Notify the clients of one URI.

        Waits `slow_client_seconds` at most for clients that do not read. A client to which a
        notification of the URI is being sent gets no second one.
        """
        event: ServerEvent = ResourceUpdated(uri)
        if uri == _LIST_URI:
            event = ResourcesListChanged()
        await self._bus.publish(event)

        for connection in self._by_session.clients(uri):
            key = (connection, uri)
            if key in self._sending:
                continue
            notification = connection.notify("notifications/resources/updated", {"uri": uri})
            task = asyncio.ensure_future(notification)
            self._sending[key] = task
            task.add_done_callback(lambda _, key=key: self._sending.pop(key))
        if self._sending:
            await asyncio.wait([*self._sending.values()], timeout=self._slow_client_seconds)

    async def changed_here(self) -> None:
        """Notify the subscribers of the graph that a tool call has changed it.

        Does nothing if the server has no graph: the store then reports each change.
        """
        if self._is_graph:
            await self._publish(_GRAPH)
