"""What is told as it happens, and kept for a while for clients that lost their connection: the messages of a session, and
which notes changed."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

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

_MOST: Final = 64  # messages of a session; older ones cannot be asked for again
_MOST_CHANGES, _MOST_NAMES = 1000, 200
_MAX_SESSIONS: Final = 1000
_MAX_SESSIONS_OF_TOKEN: Final = 100


class Replay(EventStore):
    """The last messages of one session, in their order. An event is named by its number and its stream, so that whoever
    was away for too long misses what is not kept any more, and hears what comes."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, StreamId, JSONRPCMessage | None]] = deque(maxlen=_MOST)
        self._last = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._last += 1
        self._kept.append((self._last, stream_id, message))
        return f"{self._last}-{stream_id}"

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        if (known := re.fullmatch(r"(\d{1,15})-(.+)", last_event_id, re.ASCII)) is None:
            return None
        kept = [each for each in self._kept if each[1] == known[2]]
        for number, stream, message in kept:
            if number > int(known[1]) and message is not None:
                await send_callback(EventMessage(message, f"{number}-{stream}"))
        return (
            known[2] if kept or known[2] == GET_STREAM_KEY else None
        )  # an answer that is not kept never comes


class Sessions(SessionManager):
    """The MCP sessions of one server, each with events of its own: streams of two sessions have the same names.

    A token that opens too many loses its oldest idle session, and nobody else loses one. A session is idle while none
    of its requests is in flight.
    """

    def __init__(self, server: Server[Any], *, stateless: bool, max_request_body_size: int) -> None:
        super().__init__(
            server,
            stateless=stateless,
            max_request_body_size=max_request_body_size,
            max_sessions=_MAX_SESSIONS,
        )

    def create_event_store(self) -> EventStore:
        return Replay()

    def make_room(self, owner: Owner | None) -> bool:
        """Return False if `owner` has too many sessions, all of them in use."""
        own_count = self.owners().count(owner) if owner is not None else 0
        if own_count >= _MAX_SESSIONS_OF_TOKEN and not self._close_oldest_idle(owner):
            return False

        if len(self.session_ids()) >= _MAX_SESSIONS:
            self._close_oldest_idle(self._owner_of_most())
        return True

    def _owner_of_most(self) -> Owner:
        """Return the owner of the most sessions."""
        owners = self.owners()
        counts = Counter(tuple(owner.items()) for owner in owners)
        [(most, _)] = counts.most_common(1)
        return next(owner for owner in owners if tuple(owner.items()) == most)

    def _close_oldest_idle(self, owner: Owner | None) -> bool:
        """Close the session of `owner` that was used least recently. Return False if all are in use."""
        for session_id in self.session_ids():
            if self.owner_of(session_id) == owner and self.is_idle(session_id):
                self.close_session(session_id)
                return True

        return False


class Feed:
    """Word of changed notes for all who listen to one view: heard once, kept for those who come back."""

    def __init__(self, subscribe: Callable[[Callable[[frozenset[str]], None]], None]) -> None:
        self._subscribe, self._epoch = subscribe, secrets.token_hex(4)
        self._kept: deque[tuple[int, str]] = deque(maxlen=_MOST_CHANGES)
        self._last, self._is_hearing, self._has_ended = 0, False, False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()

    def listen(self) -> None:
        """Hear of changes from now on. In the event loop, before `hear` in a thread."""
        self._loop = asyncio.get_running_loop()

    def hear(self) -> None:
        """Hear of changes from now on; once is enough."""
        if not self._is_hearing:
            self._is_hearing = True
            self._subscribe(self._tell)

    def _tell(self, names: frozenset[str]) -> None:
        with suppress(RuntimeError):  # the loop has ended: there is nobody left to tell
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._take, names)

    def _take(self, names: frozenset[str]) -> None:
        self._last += 1
        shown = sorted(names)[:_MOST_NAMES]
        self._kept.append(
            (self._last, json.dumps({"names": shown, "more": len(names) - len(shown)}))
        )
        news, self._news = self._news, asyncio.Event()
        news.set()

    def end(self) -> None:
        """Let all who listen go: they come back to what is there then."""
        self._has_ended = True
        self._news.set()

    async def events(self, last: str) -> AsyncIterator[dict[str, Any]]:
        """The changes since an event, then each as it comes. `missed` says that some are not kept any more, here or
        because whoever listens was too slow."""
        epoch, _, number = last.partition("-")
        is_known = (
            epoch == self._epoch and number.isascii() and number.isdecimal() and len(number) < 16
        )
        at = min(int(number), self._last) if is_known else -1 if last else self._last
        while not self._has_ended:
            news, missing = self._news, self._last - at
            if at < 0 or missing > len(self._kept):
                at, missing = self._last, 0
                yield {"event": "missed", "id": f"{self._epoch}-{at}", "data": "{}"}
            for at, data in [*self._kept][len(self._kept) - missing :]:
                yield {"event": "changed", "id": f"{self._epoch}-{at}", "data": data}
            if at == self._last:
                await news.wait()
