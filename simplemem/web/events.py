"""Events of a server, kept for a while for clients that lost their connection.

They are the messages of each MCP session, and the changes of notes that a view shows.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from mcp.server.lowlevel import Server
from mcp.server.streamable_http import (
    GET_STREAM_KEY,
    EventCallback,
    EventId,
    EventMessage,
    EventStore,
    StreamId,
)
from mcp_types import JSONRPCMessage

from simplemem.server.sdk_compat import Owner, SessionManager

_MAX_MESSAGES: Final = 64  # of a session; older ones cannot be replayed
_MAX_CHANGES: Final = 1000  # of a feed
_MAX_NAMES: Final = 200  # of a change
_MAX_SESSIONS: Final = 1000
_MAX_SESSIONS_OF_TOKEN: Final = 100
_MAX_EVENT_DIGITS: Final = 15
_EVENT_ID: Final = re.compile(r"(\d{1,15})-(.+)", re.ASCII)

Listener: TypeAlias = Callable[[frozenset[str]], None]
"""A function that a store calls with the names of changed notes."""


class _StoredMessage(NamedTuple):
    """A stored event of a session."""

    number: int
    stream: StreamId
    message: JSONRPCMessage | None  # None for an event that only gives the client an id

    @property
    def event_id(self) -> EventId:
        """The id of the event: its number and its stream."""
        return f"{self.number}-{self.stream}"


class ReplayBuffer(EventStore):
    """The last 64 messages of one session, in their order.

    An event id contains the number of the event and its stream. So a client that was away for too
    long misses the messages that are not stored any more, and still gets the later ones.
    """

    def __init__(self) -> None:
        self._messages: deque[_StoredMessage] = deque(maxlen=_MAX_MESSAGES)
        self._last_number = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Store a message of a stream, and return the id of its event."""
        self._last_number += 1
        stored = _StoredMessage(self._last_number, stream_id, message)
        self._messages.append(stored)
        return stored.event_id

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send the later messages of the stream of an event again, and return the stream.

        Returns None if the id is malformed, or if nothing of the stream is stored and no more will
        come: each stream but the general one ends with the answer to a request.
        """
        match = _EVENT_ID.fullmatch(last_event_id)
        if match is None:
            return None

        last_number = int(match[1])
        stream = match[2]
        of_stream = [stored for stored in self._messages if stored.stream == stream]
        for stored in of_stream:
            if stored.number > last_number and stored.message is not None:
                await send_callback(EventMessage(stored.message, stored.event_id))

        if of_stream or stream == GET_STREAM_KEY:
            return stream
        return None


class HTTPSessions(SessionManager):
    """The MCP sessions of one server over HTTP, each with a replay buffer of its own.

    Two sessions have streams of the same names, so they cannot share a buffer. A token that opens
    more than 100 sessions loses the idle one that it used least recently, and no other token loses
    any. A session is idle while none of its requests is in flight.
    """

    def __init__(self, server: Server[Any], *, stateless: bool, max_request_body_size: int) -> None:
        super().__init__(
            server,
            stateless=stateless,
            max_request_body_size=max_request_body_size,
            max_sessions=_MAX_SESSIONS,
        )

    def create_event_store(self) -> EventStore:
        """Return an empty replay buffer."""
        return ReplayBuffer()

    def make_room(self, owner: Owner | None) -> bool:
        """Return whether `owner` may open one more session, after closing idle ones if necessary.

        `owner` is None without a token. It may not if it has 100 sessions, all of them in use. If
        the server has 1000 sessions, an idle one of the owner with the most is closed; if there is
        none, the result is still True, and the SDK refuses the session.
        """
        own_count = 0
        if owner is not None:
            own_count = self.owners().count(owner)
        if own_count >= _MAX_SESSIONS_OF_TOKEN and not self._close_oldest_idle(owner):
            return False

        if len(self.session_ids()) >= _MAX_SESSIONS:
            self._close_oldest_idle(self._owner_of_most())
        return True

    def _owner_of_most(self) -> Owner:
        """Return the owner of the most sessions. There must be a session that has an owner."""
        owners = self.owners()
        # An owner is a dictionary, which cannot be counted.
        counts = Counter(tuple(owner.items()) for owner in owners)
        [(items_of_most, _)] = counts.most_common(1)
        return next(owner for owner in owners if tuple(owner.items()) == items_of_most)

    def _close_oldest_idle(self, owner: Owner | None) -> bool:
        """Close the idle session of `owner` that was used least recently.

        Returns whether there was one. `owner` is None for sessions without a token.
        """
        for session_id in self.session_ids():
            if self.owner_of(session_id) == owner and self.is_idle(session_id):
                self.close_session(session_id)
                return True

        return False


class _StoredChange(NamedTuple):
    """A change of some notes: its number, and its data as JSON."""

    number: int
    data: str


class ChangeFeed:
    """The changes that one view shows, for all clients that follow them.

    Guards the last 1000 changes, which a client that was away can still get. Each process has event
    ids of its own, so no id of an earlier process is taken for one of this. The argument
    `subscribe` is called once, with the function that is to be called with each change.
    """

    def __init__(self, subscribe: Callable[[Listener], None]) -> None:
        self._subscribe = subscribe
        self._epoch = secrets.token_hex(4)
        self._changes: deque[_StoredChange] = deque(maxlen=_MAX_CHANGES)
        self._last_number = 0
        self._is_subscribed = False
        self._subscribing = threading.Lock()  # so that two threads do not subscribe twice
        self._has_ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()  # set by the next change, and then replaced

    def use_running_loop(self) -> None:
        """Deliver changes in the running event loop from now on. Call it before `subscribe`."""
        self._loop = asyncio.get_running_loop()

    def subscribe(self) -> None:
        """Receive the changes of the store from now on. Does nothing if this succeeded before.

        Call it in a thread, because it opens the store. Raises Unavailable or another
        SimplememError if the store cannot be opened; the next call tries again.
        """
        with self._subscribing:
            if not self._is_subscribed:
                self._subscribe(self._receive)
                self._is_subscribed = True

    def _receive(self, names: frozenset[str]) -> None:
        """Pass a change from a thread of the store to the event loop.

        Does nothing if the loop has ended, or no client has ever followed the changes.
        """
        with suppress(RuntimeError):  # the loop has ended, and with it all clients
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._store, names)

    def _store(self, names: frozenset[str]) -> None:
        """Store a change, and wake the clients that wait for one.

        Its data has up to 200 names in order, and in `more` the number of the others.
        """
        self._last_number += 1
        listed_names = sorted(names)[:_MAX_NAMES]
        data = {"names": listed_names, "more": len(names) - len(listed_names)}
        self._changes.append(_StoredChange(self._last_number, json.dumps(data)))

        self._wake_clients()

    def _wake_clients(self) -> None:
        """Wake the clients that wait for a change. Later ones wait for the next change."""
        news = self._news
        self._news = asyncio.Event()
        news.set()

    def end(self) -> None:
        """End the streams of all clients, for good. They reconnect to the view that exists then.

        Call it in the event loop.
        """
        self._has_ended = True
        self._news.set()

    async def events(self, last_event_id: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the changes after an event, then each change as it comes, until `end` is called.

        Without an id (""), only new changes are yielded. Each is a server-sent event with `event`,
        `id` and `data`. The event `missed` says that earlier changes are not stored any more,
        because the client was away or reads too slowly, or that the id is unknown.
        """
        position = self._position_of(last_event_id)
        while not self._has_ended:
            news = self._news  # before the changes are read, so that none is overlooked

            if position is None or self._last_number - position > len(self._changes):
                position = self._last_number
                yield self._event("missed", position, "{}")

            for change in self._changes_after(position):
                position = change.number
                yield self._event("changed", position, change.data)

            if position == self._last_number:
                await news.wait()

    def _position_of(self, last_event_id: str) -> int | None:
        """Return the number of the event with an id, or of the last change for "".

        Returns None for an id of another process, or one that is malformed.
        """
        if not last_event_id:
            return self._last_number

        epoch, _, digits = last_event_id.partition("-")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_EVENT_DIGITS
        if epoch != self._epoch or not is_number:
            return None
        return min(int(digits), self._last_number)

    def _changes_after(self, position: int) -> list[_StoredChange]:
        """Return the stored changes whose numbers are greater than `position`, in order."""
        return [change for change in self._changes if change.number > position]

    def _event(self, name: str, number: int, data: str) -> dict[str, Any]:
        """Return a server-sent event named `name`, whose id contains the number of a change."""
        return {"event": name, "id": f"{self._epoch}-{number}", "data": data}
