"""Everything that reaches into undocumented parts of the MCP SDK and of uvicorn's server.

Each part names the version in which it was read. Read those lines again before a new version of
either package is allowed in `pyproject.toml`. The rest of the program uses only their documented
interfaces, except for `web/http_connection.py`, a subclass of uvicorn's protocol: importing it here
costs each start over standard streams 8 ms.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, EventStore
from mcp.server.streamable_http import StreamableHTTPServerTransport as Transport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send
from uvicorn.config import STARTUP_FAILURE

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

Owner: TypeAlias = AuthorizationContext
"""The identity of the token that opened a session."""


def connection_of(ctx: ServerRequestContext[Any, Any]) -> Connection:
    """Return the connection that a request came over.

    The SDK makes a new `ctx.session` for each request, so only the connection can identify a
    client. It has no public accessor (mcp 2.3.0, `mcp/server/session.py`).
    """
    return ctx.session._connection  # noqa: SLF001


class SessionManager(StreamableHTTPSessionManager):
    """The SDK's manager of HTTP sessions, for a subclass that decides which session to close.

    Guards the table of open sessions, in the order of their last use, and the number of requests in
    flight of each. The SDK refuses each new session at its limit, for all clients alike, and lets
    nobody close an old one (mcp 2.3.0, `mcp/server/streamable_http_manager.py`).
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._requests_in_flight: Counter[str] = Counter()  # by the id of the session

    def create_event_store(self) -> EventStore | None:
        """Return the event store of a new session, or None to store no events.

        The SDK would give all sessions the same one.
        """
        return None

    def make_room(self, owner: Owner | None) -> bool:  # noqa: ARG002
        """Return whether `owner` may open one more session.

        Closes other sessions for it if necessary.
        """
        return True

    def has_sessions(self) -> bool:
        """Return whether any session is open. One that is closing does not count."""
        return bool(self._server_instances)

    def session_ids(self) -> list[str]:
        """Return the ids of the open sessions, the one that was used least recently first."""
        return list(self._server_instances)

    def owner_of(self, session_id: str) -> Owner | None:
        """Return the owner of a session, or None if it was opened without a token."""
        return self._session_owners.get(session_id)

    def owners(self) -> list[Owner]:
        """Return the owner of each session that has one, once per session."""
        return list(self._session_owners.values())

    def is_idle(self, session_id: str) -> bool:
        """Return whether no request of a session is in flight. An open stream is a request."""
        return session_id not in self._requests_in_flight

    def close_session(self, session_id: str) -> None:
        """End an open session that has an owner.

        Its place is free at once; its transport closes in the background. Raises KeyError if there
        is no such session.
        """
        transport = self._server_instances.pop(session_id)
        del self._session_owners[session_id]
        assert self._task_group is not None
        self._task_group.start_soon(self._discard_session, session_id, transport)

    @property
    def event_store(self) -> EventStore | None:
        return self.create_event_store()

    @event_store.setter
    def event_store(self, _store: EventStore | None) -> None:
        """Ignore the value: the constructor of the SDK assigns one."""

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request as the SDK does, and count it as one of its session until it ends."""
        session_id = Headers(scope=scope).get(MCP_SESSION_ID_HEADER, "")
        self._requests_in_flight[session_id] += 1
        try:
            await super()._handle_stateful_request(scope, receive, send)
        finally:
            self._requests_in_flight[session_id] -= 1
            if not self._requests_in_flight[session_id]:
                del self._requests_in_flight[session_id]
            self._put_last(session_id)

    def _put_last(self, session_id: str) -> None:
        """Record that a session was used last. Does nothing if it is not open."""
        transport = self._server_instances.pop(session_id, None)
        if transport is not None:
            self._server_instances[session_id] = transport

    def _admit_session(self, requestor: Owner | None) -> Transport | None:
        """Register a new session and return its transport.

        Returns None if there is no room; the SDK then answers 503.
        """
        if not self.make_room(requestor):
            return None
        return super()._admit_session(requestor)


class SocketListener(Protocol):
    """What uvicorn calls of the entries in `Server.servers`."""

    def close(self) -> None:
        """Stop accepting connections."""

    async def wait_closed(self) -> None:
        """Wait until the listener has stopped."""


class SocketServer(uvicorn.Server):
    """uvicorn's server, with listeners of our own. It ends at the first signal.

    `uvicorn.Server.startup` creates `asyncio` servers, which count no connection before its TLS
    handshake, and it has no hook for others (uvicorn 0.54.0, `uvicorn/server.py`).
    """

    def __init__(
        self,
        config: uvicorn.Config,
        create_listener: Callable[[SocketServer, socket.socket], SocketListener],
        on_started: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._create_listener = create_listener
        self._on_started = on_started  # called once, when connections are accepted

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then a listener per socket.

        Raises SystemExit if the application cannot start.
        """
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)

        listeners: Sequence[Any] = [
            self._create_listener(self, listening) for listening in sockets or ()
        ]
        self.servers: list[asyncio.Server] = [*listeners]
        self.started = True
        self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving when a signal arrives.

        uvicorn would raise the signal again afterwards, which would end the process too early.
        """
        super().handle_exit(sig, frame)
        self._captured_signals.clear()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections as uvicorn does, without an error in the log for an open stream."""
        uvicorn_log = logging.getLogger("uvicorn.error")
        uvicorn_log.addFilter(_is_worth_logging)
        try:
            await super().shutdown(sockets)
        finally:
            uvicorn_log.removeFilter(_is_worth_logging)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Return False for uvicorn's error about a response that the shutdown cut off.

    It concerns open streams, and reads "ASGI callable returned without completing response"
    (uvicorn 0.54.0).
    """
    return "without completing response" not in record.getMessage()
