"""Limits on the connections of a server, and the listener that enforces them.

A client needs no token to open a connection, so the server never refuses one. It accepts each new
connection. If a limit is reached, it first closes the least important existing connection.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Protocol

log = logging.getLogger("simplemem.web")

MAX_CONNECTIONS: Final = 1024
_MAX_UNAUTHENTICATED: Final = 512  # connections that have sent no valid token
_MAX_UNAUTHENTICATED_PER_BLOCK: Final = 256
_MAX_RESERVE: Final = 64
_RESERVE_SHARE: Final = 16  # the reserve is at most one in so many connections
_HANDSHAKE_SECONDS: Final = 5.0
_OUT_OF_FILES: Final = (errno.EMFILE, errno.ENFILE)
# Until the next attempt to accept. The event loop closes the socket meanwhile.
_SECONDS_AFTER_CLOSING: Final = 0.05
_SECONDS_AFTER_FAILURE: Final = 0.5
_SECONDS_BETWEEN_WARNINGS: Final = 60.0


class Connection(Hashable, Protocol):
    """A connection that the server can close."""

    def abort(self) -> None:
        """Close at once, without waiting for the client."""


class Connections:
    """All open connections of a server, from the moment they are accepted.

    All methods must be called in the event loop.

    `max_connections` is the limit of all, and `is_proxy` says whether an address is that of a
    trusted proxy. If there are too many connections, one of them is closed, the first that exists
    of:

    1. the oldest unauthenticated one, unless only the reserve of unauthenticated connections is
       left;
    2. the oldest idle one of the token with the most idle connections;
    3. the oldest one of the token with the most requests in progress.

    The reserve keeps a new client long enough to send its token, even if a single token holds all
    other connections.
    """

    def __init__(self, max_connections: int, is_proxy: Callable[[str], bool]) -> None:
        self._max_connections = max_connections
        self._is_proxy = is_proxy
        # The values are the block of the client's address, or the holder of the token. The oldest
        # come first.
        self._unauthenticated: dict[Connection, str] = {}
        self._idle: dict[Connection, str] = {}
        self._busy: dict[Connection, str] = {}
        self._unauthenticated_by_block: dict[str, dict[Connection, None]] = {}

    def add(self, connection: Connection, address: str) -> None:
        """Add a new, unauthenticated connection of a client's address.

        Closes one other connection if a limit is reached: 512 unauthenticated connections, 256 of
        them from one block of addresses that is no proxy, or `max_connections` in all.
        """
        address = client_address(address)
        block = client_block(address)
        superfluous = self._find_superfluous(address, block)
        if superfluous is not None:
            self._close(superfluous)

        self._unauthenticated[connection] = block
        self._unauthenticated_by_block.setdefault(block, {})[connection] = None

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended. Does nothing if it is unknown."""
        self._idle.pop(connection, None)
        self._busy.pop(connection, None)
        block = self._unauthenticated.pop(connection, None)
        if block is None:
            return

        same_block = self._unauthenticated_by_block[block]
        del same_block[connection]
        if not same_block:
            del self._unauthenticated_by_block[block]

    def begin_request(self, connection: Connection, holder: str) -> None:
        """Record that a connection serves a request with a valid token.

        `holder` identifies the bearer of the token. Does nothing if the connection is unknown.
        """
        is_open = (
            connection in self._unauthenticated
            or connection in self._idle
            or connection in self._busy
        )
        if is_open:
            self.remove(connection)
            self._busy[connection] = holder

    def end_request(self, connection: Connection) -> None:
        """Record that a request has ended.

        After one without a valid token, the connection stays unauthenticated.
        """
        holder = self._busy.pop(connection, None)
        if holder is not None:
            self._idle[connection] = holder

    def close_least_important(self) -> bool:
        """Close the connection that is first in the order that the class describes.

        Returns whether there was a connection to close.
        """
        connection = self._find_least_important()
        if connection is None:
            return False

        self._close(connection)
        return True

    def _find_superfluous(self, address: str, block: str) -> Connection | None:
        """Return the connection to close before one more can be added; None if there is room.

        `address` is that of the new client, and `block` the block of addresses that it is in.
        """
        same_block = self._unauthenticated_by_block.get(block, {})
        if len(same_block) >= _MAX_UNAUTHENTICATED_PER_BLOCK and not self._is_proxy(address):
            return _first(same_block)

        if len(self._unauthenticated) >= _MAX_UNAUTHENTICATED:
            return _first(self._unauthenticated)

        if self._count() >= self._max_connections:
            return self._find_least_important()

        return None

    def _find_least_important(self) -> Connection | None:
        """Return the connection to close first, or None if there is no connection."""
        # A share, so that a server with few connections closes unauthenticated ones before any
        # other.
        reserve = min(_MAX_RESERVE, self._count() // _RESERVE_SHARE)
        if len(self._unauthenticated) > reserve:
            return _first(self._unauthenticated)

        if self._idle:
            return _first_of_largest_holder(self._idle)

        if self._busy:
            return _first_of_largest_holder(self._busy)

        return None

    def _count(self) -> int:
        """Return the number of all connections."""
        return len(self._unauthenticated) + len(self._idle) + len(self._busy)

    def _close(self, connection: Connection) -> None:
        """Close a connection at once, and forget it."""
        self.remove(connection)
        connection.abort()


def _first(connections: Mapping[Connection, Any]) -> Connection:
    """Return the oldest connection of a mapping that has the oldest first and is not empty."""
    return next(iter(connections))


def _first_of_largest_holder(holder_of: Mapping[Connection, str]) -> Connection:
    """Return the oldest connection of the holder that has the most of these connections.

    `holder_of` has the holder of each connection, the oldest connection first. It must not be
    empty.
    """
    counts = Counter(holder_of.values())
    [(largest_holder, _)] = counts.most_common(1)
    return next(connection for connection, holder in holder_of.items() if holder == largest_holder)


def client_address(address: str) -> str:
    """Return an IP address in its usual form: `192.0.2.1` also for `::ffff:192.0.2.1`.

    An IPv6 socket reports IPv4 addresses in the latter form. Anything that is not an IP address is
    returned unchanged.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address

    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)


def client_block(address: str) -> str:
    """Return the block of addresses that an address belongs to, whose limits it shares.

    It is an IPv4 address itself, or the /64 network of an IPv6 address, because a provider assigns
    at least a /64 network to each customer. Anything else is returned unchanged.
    """
    plain = client_address(address)
    if ":" not in plain:
        return plain

    try:
        return str(ipaddress.IPv6Network((plain, 64), strict=False))
    except ValueError:
        return plain


class PendingConnection:
    """An accepted socket whose TLS handshake may still be in progress.

    Owns the socket until a transport does.
    """

    def __init__(self, accepted: socket.socket) -> None:
        self.accepted = accepted
        self._task: asyncio.Task[None] | None = None
        self._has_transport = False

    def start(self, task: asyncio.Task[None]) -> None:
        """Remember the task that turns the socket into an HTTP connection; `abort` cancels it."""
        self._task = task

    def hand_over(self) -> None:
        """Leave the socket to a transport, which closes it from now on."""
        self._has_transport = True

    def close_socket(self) -> None:
        """Close the socket, unless a transport owns it."""
        if not self._has_transport:
            self.accepted.close()

    def abort(self) -> None:
        """Close at once, without waiting for the client."""
        if self._task is not None:
            self._task.cancel()
        self.close_socket()


class Listener:
    """Accepts the connections of a listening socket, from its construction until `close`.

    Guards the handshakes in progress. Unlike `asyncio.Server`, it counts a connection before its
    TLS handshake. `create_protocol` makes the HTTP connection of a pending connection and the
    client's address. Construct it in the event loop.
    """

    def __init__(
        self,
        listening: socket.socket,
        connections: Connections,
        create_protocol: Callable[[PendingConnection, str], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listening = listening
        self._connections = connections
        self._create_protocol = create_protocol
        self._tls = tls
        self._handshakes: set[asyncio.Task[None]] = set()
        self._next_warning = 0.0
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept_all())

    def close(self) -> None:
        """Stop accepting connections, and cancel the handshakes in progress."""
        self._accepting.cancel()
        for task in self._handshakes:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until the listener has stopped. `close` must be called first."""
        # `wait` does not raise the cancellation of these tasks, but still raises the one of the
        # caller.
        await asyncio.wait([self._accepting, *self._handshakes])

    async def _accept_all(self) -> None:
        """Accept connections until cancelled. Logs errors, and raises none."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(self._listening)
            except ConnectionError:  # the client has disconnected already
                continue
            except Exception as error:  # noqa: BLE001 - the loop must go on
                await self._recover(error)
                continue

            try:
                self._admit(accepted, peer)
            except Exception:
                accepted.close()
                if self._may_log():
                    log.exception("a connection could not be admitted")

            await asyncio.sleep(0)  # let other tasks run, however many connections arrive

    async def _recover(self, error: Exception) -> None:
        """Wait before the next attempt after a connection could not be accepted, and log why.

        If the process has no free file descriptor, closes the least important connection first.
        """
        if self._may_log():
            log.warning("connections cannot be accepted: %s", error)

        is_out_of_files = isinstance(error, OSError) and error.errno in _OUT_OF_FILES
        if is_out_of_files and self._connections.close_least_important():
            await asyncio.sleep(_SECONDS_AFTER_CLOSING)
        else:
            await asyncio.sleep(_SECONDS_AFTER_FAILURE)

    def _admit(self, accepted: socket.socket, peer: Any) -> None:
        """Count an accepted socket, and start the task that turns it into an HTTP connection.

        Closes another connection if there are too many. The socket is closed when the task ends
        without a connection; if this raises, the caller closes it. `peer` is the client's address
        as the system reports it: a tuple that begins with the host, or something empty.
        """
        address = ""
        if peer:  # some systems report none if the client has disconnected already
            address = str(peer[0])

        pending = PendingConnection(accepted)
        self._connections.add(pending, address)
        task = asyncio.create_task(self._connect(pending, address))
        pending.start(task)
        self._handshakes.add(task)

        def finish(task: asyncio.Task[None]) -> None:
            # A task that is cancelled before its first step runs none of its own code.
            self._handshakes.discard(task)
            self._connections.remove(pending)
            pending.close_socket()

        task.add_done_callback(finish)

    async def _connect(self, pending: PendingConnection, address: str) -> None:
        """Turn an accepted socket into an HTTP connection, after the TLS handshake if there is one.

        Raises nothing. A client that fails to connect, or that takes more than 5 seconds for the
        handshake, causes no log message. The callback of the task (`_admit`) closes the socket if
        no connection came of it.
        """

        def create_protocol() -> asyncio.Protocol:
            protocol = self._create_protocol(pending, address)
            pending.hand_over()
            return protocol

        loop = asyncio.get_running_loop()
        timeout = None
        if self._tls is not None:
            timeout = _HANDSHAKE_SECONDS
        try:
            await loop.connect_accepted_socket(
                create_protocol,
                pending.accepted,
                ssl=self._tls,
                ssl_handshake_timeout=timeout,
                ssl_shutdown_timeout=timeout,
            )
        except OSError:  # TLS errors are OSErrors, too
            pass
        except Exception:
            if self._may_log():
                log.exception("an accepted connection could not be set up")

    def _may_log(self) -> bool:
        """Return whether to log a failure now: at most one per minute.

        After True, the answer is False for a minute: the caller has to log.
        """
        now = time.monotonic()
        if now < self._next_warning:
            return False

        self._next_warning = now + _SECONDS_BETWEEN_WARNINGS
        return True
