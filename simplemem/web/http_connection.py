"""An HTTP connection, in what uvicorn leaves open: how long one may take to say what it wants, and whose it is. A
connection that says nothing, or half of it, is closed; the end of the server waits for none."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from simplemem.web.connections import Connections, PendingConnection, client_address
from simplemem.web.problems import HTTPError, problem

HEAD_SECONDS: Final = 10.0
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class HTTPConnection(H11Protocol):
    """A connection with a bound on the time to send a request's head.

    Each request finds it as `scope["connection"]`.

    uvicorn does not document the attributes and methods of `H11Protocol` that this class uses and overrides
    (`conn`, `cycle`, `transport`, `app`, `handle_events`, `send_400_response`, `on_response_complete`). They were read
    in uvicorn 0.54.0.
    """

    _waiting: asyncio.TimerHandle | None = None

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
        self._serve = self.app
        self.app = self._serve_request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None:
            self.client = (client_address(self.client[0]), self.client[1])
        self._connections.remove(self._pending)
        self._connections.add(self, self._address)
        self._wait_for_head()

    async def _serve_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["connection"] = self
        try:
            await self._serve(scope, receive, send)
        finally:
            self._connections.end_request(self)

    def begin_request(self, holder: str) -> None:
        """Note that the request in progress has a valid token, and whose it is."""
        self._connections.begin_request(self, holder)

    def abort(self) -> None:
        """Close at once; a client that has no answer yet is told to come again."""
        has_answer = self.cycle is not None and self.cycle.response_started
        is_plain = self.scheme == "http"
        if is_plain and not has_answer:
            self.transport.write(_BUSY)
        if is_plain and not self.transport.get_write_buffer_size():
            self.transport.close()
        else:
            self.transport.abort()  # else what a client does not read would keep the connection

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._connections.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif (
            self._waiting is None and self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]
        ):
            self._wait_for_head()  # half of the next request

    def on_response_complete(self) -> None:
        if self.cycle is not None and self.cycle.more_body and not self.transport.is_closing():
            self.transport.close()  # refused before all of it was sent: the rest is not read
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the signature of uvicorn
        """Answer bytes that are no HTTP request with a problem document, and close the connection."""
        self._stop_waiting()
        refused = HTTPError(
            400,
            "this is not a valid HTTP request",
            hint="Check its first line and its headers. In a path, write a space as %20.",
            headers={"Connection": "close"},
        )
        answer = problem(refused)
        events: list[h11.Event] = [
            h11.Response(status_code=400, headers=answer.raw_headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ]
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait_for_head(self) -> None:
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()


def bounds() -> dict[str, Any]:
    """What uvicorn itself can bound."""
    return {
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 1,
        "h11_max_incomplete_event_size": 64 * 1024,
    }
