"""Which connection closes when there are too many, and a listener that survives whatever a client does."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from simplemem.web.address import Address, max_connections
from simplemem.web.connections import Connections, Listener, PendingConnection, client_block


class Wire:
    """A connection that remembers whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def abort(self) -> None:
        self.is_closed = True


def closed(wires: list[Wire]) -> list[int]:
    return [number for number, wire in enumerate(wires) if wire.is_closed]


def test_the_oldest_without_a_token_gives_way_before_any_with_one() -> None:
    connections, wires = Connections(5, lambda _: False), [Wire() for _ in range(10)]
    for number, wire in enumerate(wires[:5]):
        connections.add(wire, f"192.0.2.{number}")
    for wire in wires[:3]:
        connections.begin_request(wire, "ada")
    connections.end_request(wires[2])  # idle now
    for number, wire in enumerate(wires[5:8]):
        connections.add(wire, f"192.0.2.{10 + number}")
        connections.begin_request(wire, "ben")
    assert closed(wires) == [2, 3, 4]


def test_among_requests_in_progress_whoever_has_most_gives_way() -> None:
    connections, wires = Connections(6, lambda _: False), [Wire() for _ in range(8)]
    for number, wire in enumerate(wires[:6]):
        connections.add(wire, "192.0.2.1")
        connections.begin_request(wire, "ada" if number < 1 else "ben")
    for wire in wires[6:]:
        connections.add(wire, "192.0.2.2")
        connections.begin_request(wire, "ada")
    assert closed(wires) == [1, 2]


def test_one_address_has_a_share_and_a_proxy_all_of_it() -> None:
    for proxies, number_closed in (((), 44), (("2001:db8::1",), 0)):
        connections, wires = Connections(1000, proxies.__contains__), [Wire() for _ in range(300)]
        for wire in wires:
            connections.add(wire, "2001:db8::1")
        assert closed(wires) == [*range(number_closed)]


def test_a_new_client_can_send_its_token_while_one_token_holds_all_other_connections() -> None:
    connections = Connections(160, lambda _: False)
    held = [Wire() for _ in range(160)]
    for wire in held:
        connections.add(wire, "192.0.2.1")
        connections.begin_request(wire, "ada")
        connections.end_request(wire)
    other = Wire()
    connections.add(other, "192.0.2.2")
    connections.begin_request(other, "ben")
    connections.end_request(other)

    newcomers = [Wire() for _ in range(30)]
    for number, wire in enumerate(newcomers):
        connections.add(wire, f"198.51.100.{number}")

    assert not any(wire.is_closed for wire in newcomers[-10:])  # a sixteenth of the connections
    assert closed(newcomers) == [*range(19)]
    assert closed(held) == [*range(12)]  # the oldest idle ones of the holder with the most
    assert not other.is_closed


def test_a_new_connection_closes_one_other_at_most() -> None:
    connections, wires = Connections(300, lambda _: False), [Wire() for _ in range(301)]
    for number, wire in enumerate(wires[:300]):
        connections.add(wire, "192.0.2.1" if number >= 44 else f"198.51.100.{number}")
    assert closed(wires) == []
    connections.add(wires[300], "192.0.2.1")  # beyond the limit of its address, and of all
    assert closed(wires) == [44]


def test_a_proxy_is_known_by_its_address_however_a_socket_reports_it() -> None:
    address = Address(trusted_proxies=("192.0.2.0/24",))
    reported: list[str] = []

    def is_proxy(text: str) -> bool:
        reported.append(text)
        return address.is_proxy(text)

    connections, wires = Connections(1000, is_proxy), [Wire() for _ in range(300)]
    for wire in wires:
        connections.add(wire, "::ffff:192.0.2.7")
    assert closed(wires) == []
    assert set(reported) == {"192.0.2.7"}
    assert not address.is_proxy("")  # some systems report no address


def test_what_has_ended_is_not_counted() -> None:
    connections, wires = Connections(3, lambda _: False), [Wire() for _ in range(9)]
    for wire in wires:
        connections.add(wire, "192.0.2.1")
        connections.begin_request(wire, "ada")
        connections.remove(wire)
        connections.end_request(wire)
        connections.begin_request(wire, "ada")  # too late
    assert closed(wires) == []


def test_a_network_of_64_bits_counts_as_one_address() -> None:
    assert (
        client_block("2001:db8::1")
        == client_block("2001:db8::ffff:1")
        != client_block("2001:db8:0:1::1")
    )
    assert (
        client_block("::ffff:192.0.2.1") == client_block("192.0.2.1") != client_block("192.0.2.2")
    )
    assert client_block("localhost") == "localhost"


class Greeting(asyncio.Protocol):
    """Sends a word on each connection that it is given."""

    def __init__(self, connections: Connections, pending: PendingConnection) -> None:
        self._connections = connections
        self._pending = pending

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.remove(self._pending)
        self._connections.add(self, "192.0.2.1")
        self._connections.begin_request(self, "ada")
        transport.write(b"hello")

    def abort(self) -> None:
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)


def listen(
    body: Callable[[Listener, tuple[str, int]], Awaitable[None]],
    is_proxy: Callable[[str], bool] = lambda _: False,
    listening: type[socket.socket] = socket.socket,
    max_connections: int = 1000,
) -> None:
    """Run `body` beside a listener on a port of this machine."""

    async def run() -> None:
        connections = Connections(max_connections, is_proxy)
        with listening(socket.AF_INET, socket.SOCK_STREAM) as server:
            server.bind(("127.0.0.1", 0))
            server.listen(64)
            listener = Listener(
                server, connections, lambda pending, _: Greeting(connections, pending), None
            )
            try:
                await asyncio.wait_for(body(listener, server.getsockname()), 60)
            finally:
                listener.close()
                await listener.wait_closed()

    asyncio.run(run())


async def greeting(client: socket.socket) -> bytes:
    """What the listener sends to a client; nothing if it closes the connection."""
    client.setblocking(False)
    with suppress(ConnectionError):
        return await asyncio.get_running_loop().sock_recv(client, 100)
    return b""


class SocketWithoutPeer(socket.socket):
    """A socket that reports no peer for the first connection, as some systems do if it was reset."""

    accepted = 0

    def accept(self) -> tuple[socket.socket, object]:
        accepted, peer = super().accept()
        self.accepted += 1
        return accepted, None if self.accepted == 1 else peer


class SocketThatFails(socket.socket):
    """A socket that fails once, in a way that no system documents."""

    accepted = 0

    def accept(self) -> tuple[socket.socket, object]:
        self.accepted += 1
        if self.accepted == 1:
            raise ValueError("unexpected")
        return super().accept()


@pytest.mark.parametrize("listening", [SocketWithoutPeer, SocketThatFails])
def test_a_listener_goes_on_after_an_accept_that_went_wrong(listening: type[socket.socket]) -> None:
    async def body(_: Listener, address: tuple[str, int]) -> None:
        for _number in range(3):
            with socket.create_connection(address) as client:
                assert await greeting(client) == b"hello"

    listen(body, listening=listening)


def test_a_connection_that_cannot_be_admitted_is_closed_and_logged_and_the_next_one_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_broken = True

    class Unruly(Connections):
        def add(self, connection: object, address: str) -> None:
            if is_broken:
                raise RuntimeError("broken")
            super().add(connection, address)  # type: ignore[arg-type]

    async def run() -> None:
        nonlocal is_broken
        connections = Unruly(10, lambda _: False)
        with socket.create_server(("127.0.0.1", 0)) as server:
            listener = Listener(
                server, connections, lambda pending, _: Greeting(connections, pending), None
            )
            with socket.create_connection(server.getsockname()) as client:
                assert await asyncio.wait_for(greeting(client), 60) == b""
            is_broken = False
            with socket.create_connection(server.getsockname()) as client:
                assert await asyncio.wait_for(greeting(client), 60) == b"hello"
            listener.close()
            await listener.wait_closed()

    with caplog.at_level(logging.ERROR, "simplemem.web"):
        asyncio.run(run())
    [record] = caplog.records
    assert record.exc_info is not None and "broken" in str(record.exc_info[1])


@contextmanager
def no_more_files_than(number: int) -> Iterator[None]:
    """Let this process open that many more files only."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull, "rb") as highest:
        limit = highest.fileno() + number
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_connections_take_at_most_half_of_the_files_that_the_system_allows() -> None:
    import resource

    with no_more_files_than(100):
        max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert max_connections() == max_files // 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_server_without_a_free_file_closes_its_least_important_connection_for_a_new_one() -> None:
    async def body(_: Listener, address: tuple[str, int]) -> None:
        clients = [
            socket.create_connection(address) for _ in range(8)
        ]  # none is accepted before the next `await`
        try:
            with no_more_files_than(3):
                greetings = [await greeting(client) for client in clients]
        finally:
            for client in clients:
                client.close()
        assert greetings == [b"hello"] * 8

    listen(body)


def test_a_socket_is_closed_whose_task_is_cancelled_before_its_first_step() -> None:
    async def run() -> None:
        connections = Connections(1, lambda _: False)
        with socket.create_server(("127.0.0.1", 0)) as server:
            listener = Listener(
                server, connections, lambda pending, _: Greeting(connections, pending), None
            )
            ours, theirs = socket.socketpair()
            others, others_end = socket.socketpair()
            with ours, theirs, others, others_end:
                listener._admit(theirs, ("192.0.2.1", 1))
                listener._admit(
                    others_end, ("192.0.2.2", 1)
                )  # closes the first, which has not begun
                assert theirs.fileno() == -1
                listener.close()  # cancels the second
                await listener.wait_closed()
                await asyncio.sleep(0)
                assert others_end.fileno() == -1

    asyncio.run(run())


def test_whoever_waits_for_the_end_of_a_listener_can_be_cancelled() -> None:
    async def body(listener: Listener, _: tuple[str, int]) -> None:
        waiting = asyncio.create_task(listener.wait_closed())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    listen(body)
