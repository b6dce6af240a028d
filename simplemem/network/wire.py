"""The connections, in what uvicorn leaves open: how many there may be, and how long one may take to say what it wants. A
connection that says nothing, or half of it, is closed; the end of the server waits for none."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 10.0
MOST_CONNECTIONS: Final = 1024  # as listeners of changes stay; those that have said nothing yet are counted apart
_MOST_SILENT: Final = 512  # many may come at once, before the first has been read
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Wire(H11Protocol):
    """A connection with a bound on the time to send a request's head."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        silent = sum(1 for each in self.connections if getattr(each, "_waiting", None) is not None)
        if len(self.connections) > MOST_CONNECTIONS or silent >= _MOST_SILENT:
            transport.write(_BUSY)
            transport.close()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._waiting is None and self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait_for_head()  # half of the next request

    def on_response_complete(self) -> None:
        if self.cycle is not None and self.cycle.more_body and not self.transport.is_closing():
            self.transport.close()  # refused before all of it was sent: the rest is not read
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._stop_waiting()
        super().send_400_response(msg)

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
    return {"timeout_keep_alive": 30, "timeout_graceful_shutdown": 1, "h11_max_incomplete_event_size": 64 * 1024}
