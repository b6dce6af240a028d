"""An HTTP connection, with the limits that uvicorn does not have.

A connection that sends nothing, or only a part of a request, is closed. So the end of the server
waits for no client.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from simplemem.web.connections import Connections, PendingConnection, client_address
from simplemem.web.problem_documents import HTTPError, problem

_HEAD_SECONDS: Final = 10.0  # that a client has to send the head of a request
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
    b"Retry-After: 2\r\nContent-Length: 0\r\n\r\n"
)
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class HTTPConnection(H11Protocol):
    """A connection that limits the time for a request's head, and is one of `Connections`.

    `pending` is the entry of the accepted socket in `connections`, which this connection replaces.

    Guards the timer of the limit. Each request finds its connection as `scope["connection"]`.

    uvicorn does not document the attributes and methods of `H11Protocol` that this class uses and
    overrides (`conn`, `cycle`, `transport`, `app`, `handle_events`, `send_400_response`,
    `on_response_complete`). They were read in uvicorn 0.54.0.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        connections: Connections,
        pending: PendingConnection,
        address: str,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._connections = connections
        self._pending = pending
        self._address = address
        self._head_timer: asyncio.TimerHandle | None = None
        self._inner_app = self.app
        self.app = self._serve_request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to receive. From now on, the limits on connections may close this one."""
        super().connection_made(transport)
        if self.client is not None:
            host, port = self.client
            self.client = (client_address(host), port)
        self._connections.remove(self._pending)
        self._connections.add(self, self._address)
        self._start_head_timer()

    async def _serve_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, as the ASGI application that uvicorn calls.

        Counts the connection as idle afterwards, whatever happens.
        """
        scope["connection"] = self
        try:
            await self._inner_app(scope, receive, send)
        finally:
            self._connections.end_request(self)

    def begin_request(self, holder: str) -> None:
        """Record that the request in progress has a valid token, which belongs to `holder`."""
        self._connections.begin_request(self, holder)

    def abort(self) -> None:
        """Close at once. Without TLS, a client that has no answer yet gets 503 with Retry-After."""
        has_answer = self.cycle is not None and self.cycle.response_started
        is_plain = self.scheme == "http"
        if is_plain and not has_answer:
            self.transport.write(_BUSY)

        has_unsent_bytes = self.transport.get_write_buffer_size() > 0
        if is_plain and not has_unsent_bytes:
            self.transport.close()
        else:
            # `close` would wait until the client has read everything.
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, which has ended."""
        self._stop_head_timer()
        self._connections.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle received bytes, and limit the time for the rest of a request's head.

        Stops the timer when a head is complete. Starts it when a part of the next head arrives and
        the last request has been answered.
        """
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:
            self._stop_head_timer()
            return

        has_part_of_head = bool(self.conn.trailing_data[0])
        is_answered = self.conn.our_state is h11.IDLE
        if self._head_timer is None and is_answered and has_part_of_head:
            self._start_head_timer()

    def on_response_complete(self) -> None:
        """Close the connection if the request was answered before all of its body has arrived."""
        has_unread_body = self.cycle is not None and self.cycle.more_body
        if has_unread_body and not self.transport.is_closing():
            self.transport.close()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the signature of uvicorn
        """Answer bytes that are not an HTTP request with a problem document (400), and close."""
        self._stop_head_timer()
        error = HTTPError(
            400,
            "this is not a valid HTTP request",
            hint="Check its first line and its headers. In a path, write a space as %20.",
            headers={"Connection": "close"},
        )
        answer = problem(error)
        events: list[h11.Event] = [
            h11.Response(status_code=400, headers=answer.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ]
        for event in events:
            data = self.conn.send(event)
            self.transport.write(data or b"")
        self.transport.close()

    def _start_head_timer(self) -> None:
        """Answer with 408 and close after ten seconds, unless the timer is stopped before."""
        self._head_timer = self.loop.call_later(_HEAD_SECONDS, self._close_slow)

    def _stop_head_timer(self) -> None:
        """Stop the timer. Does nothing if it is not running."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_slow(self) -> None:
        """Answer a client that took too long to send a head with 408, and close the connection."""
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()


def uvicorn_limits() -> dict[str, Any]:
    """Return the options of `uvicorn.Config` that limit connections, by name."""
    return {
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 1,
        "h11_max_incomplete_event_size": 64 * 1024,
    }
