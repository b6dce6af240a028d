"""The connections of a server: how many there may be, and which one gives way to a new one.

Whoever can reach the server can open connections, so no number of them may keep others out. A new connection is
therefore always taken, and where that makes too many, the one closes that matters least.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final, Protocol

log = logging.getLogger("simplemem.network")

MAX_CONNECTIONS: Final = 1024
_MAX_STRANGERS: Final = 512  # connections that have shown no valid token
_MAX_STRANGERS_OF_ADDRESS: Final = 256
_HANDSHAKE_SECONDS: Final = 5.0
_PAUSE: Final = 0.5  # seconds until the next try when the system gives no more connections
_SECONDS_BETWEEN_WARNINGS: Final = 60.0


class Connection(Hashable, Protocol):
    """A connection as far as it can be asked to close."""

    def give_way(self) -> None:
        """Close at once, whatever the client does."""


class Connections:
    """All connections, from the moment they are accepted. Used in the event loop alone.

    When there are too many, the first of these closes: the oldest of those without a valid token; the oldest that has
    one and no request in progress; the oldest of whoever has most requests in progress.
    """

    def __init__(self, max_connections: int, is_proxy: Callable[[str], bool]) -> None:
        self._max_connections = max_connections
        self._is_proxy = is_proxy
        self._strangers: dict[Connection, str] = {}
        self._strangers_of: dict[str, dict[Connection, None]] = {}
        self._idle: dict[Connection, None] = {}
        self._busy: dict[Connection, str] = {}

    def add(self, connection: Connection, address: str) -> None:
        """Take a new connection in, of which only its address is known, and close another if there are too many."""
        if len(self._strangers) + len(self._idle) + len(self._busy) >= self._max_connections:
            self._close(self._least_important())

        block = client_block(address)
        same_block = self._strangers_of.setdefault(block, {})
        same_block[connection] = None
        self._strangers[connection] = block

        if len(same_block) > _MAX_STRANGERS_OF_ADDRESS and not self._is_proxy(address):
            self._close(next(iter(same_block)))
        elif len(self._strangers) > _MAX_STRANGERS:
            self._close(next(iter(self._strangers)))

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._idle.pop(connection, None)
        self._busy.pop(connection, None)
        block = self._strangers.pop(connection, None)
        if block is None:
            return

        same_block = self._strangers_of[block]
        del same_block[connection]
        if not same_block:
            del self._strangers_of[block]

    def begin_request(self, connection: Connection, holder: str) -> None:
        """Note that a connection serves a request of the holder of a valid token."""
        if self._has(connection):
            self.remove(connection)
            self._busy[connection] = holder

    def end_request(self, connection: Connection) -> None:
        """Note that a request is over. One without a valid token leaves its connection a stranger's."""
        if self._busy.pop(connection, None) is not None:
            self._idle[connection] = None

    def _has(self, connection: Connection) -> bool:
        return connection in self._strangers or connection in self._idle or connection in self._busy

    def _least_important(self) -> Connection:
        for connections in (self._strangers, self._idle):
            if connections:
                return next(iter(connections))

        [(most, _)] = Counter(self._busy.values()).most_common(1)
        return next(connection for connection, holder in self._busy.items() if holder == most)

    def _close(self, connection: Connection) -> None:
        self.remove(connection)
        connection.give_way()


def client_address(address: str) -> str:
    """Return an address as IPv4 if it is one, also where a socket of IPv6 shows it as `::ffff:192.0.2.1`."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address

    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def client_block(address: str) -> str:
    """Return what counts as one address: of IPv6 the network of 64 bits, which one client may have whole."""
    plain = client_address(address)
    if ":" not in plain:
        return plain

    try:
        return str(ipaddress.IPv6Network((plain, 64), strict=False))
    except ValueError:
        return plain


class Arrival:
    """A connection that was accepted and is no HTTP connection yet: a TLS handshake may still be going on."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def give_way(self) -> None:
        if self._task is not None:
            self._task.cancel()


class Listener:
    """Accepts the connections of a socket, as `asyncio.Server` does, but counts them before their TLS handshake."""

    def __init__(
        self,
        listening: socket.socket,
        connections: Connections,
        protocol: Callable[[Arrival, str], asyncio.Protocol],
        context: ssl.SSLContext | None,
    ) -> None:
        self._listening = listening
        self._connections = connections
        self._protocol = protocol
        self._context = context
        self._arriving: set[asyncio.Task[None]] = set()
        self._next_warning = 0.0
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        self._accepting.cancel()
        for task in self._arriving:
            task.cancel()

    async def wait_closed(self) -> None:
        with suppress(asyncio.CancelledError):
            await self._accepting

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(self._listening)
            except ConnectionError:  # the client has gone already
                continue
            except OSError as error:
                self._warn(error)
                await asyncio.sleep(_PAUSE)
                continue

            arrival = Arrival()
            task = asyncio.create_task(self._welcome(arrival, accepted, str(peer[0])))
            arrival.begin(task)
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)
            self._connections.add(arrival, str(peer[0]))
            await asyncio.sleep(0)  # others have their turn, however many come

    async def _welcome(self, arrival: Arrival, accepted: socket.socket, address: str) -> None:
        """Make an HTTP connection of what was accepted. A client that fails at it leaves no line in the log."""
        loop = asyncio.get_running_loop()
        timeout = None if self._context is None else _HANDSHAKE_SECONDS
        try:
            await loop.connect_accepted_socket(
                lambda: self._protocol(arrival, address),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=timeout,
                ssl_shutdown_timeout=timeout,
            )
        except OSError:  # the TLS errors too
            pass
        finally:
            self._connections.remove(arrival)

    def _warn(self, error: OSError) -> None:
        """Log that no connection can be accepted, not more than once a minute."""
        now = time.monotonic()
        if now >= self._next_warning:
            self._next_warning = now + _SECONDS_BETWEEN_WARNINGS
            log.warning("connections cannot be accepted: %s", error.strerror)
