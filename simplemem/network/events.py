"""What a client that lost its connection may ask for again, kept for a while."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Final

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage

_MOST: Final = 64  # messages of a session; older ones cannot be asked for again


class Replay(EventStore):
    """The last messages of one session, in their order."""

    def __init__(self) -> None:
        self._kept: OrderedDict[EventId, tuple[StreamId, JSONRPCMessage | None]] = OrderedDict()

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        ident = secrets.token_hex(8)
        self._kept[ident] = (stream_id, message)
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return ident

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        if (last := self._kept.get(last_event_id)) is None:
            return None
        kept = [*self._kept.items()]
        for ident, (stream, message) in kept[[ident for ident, _ in kept].index(last_event_id) + 1 :]:
            if stream == last[0] and message is not None:
                await send_callback(EventMessage(message, ident))
        return last[0]


class Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with a memory of its own: streams of two sessions have the same names."""

    @property
    def event_store(self) -> EventStore | None:
        return Replay()

    @event_store.setter
    def event_store(self, _none: EventStore | None) -> None:
        pass
