"""Connections that say nothing, or half of what they want, keep nobody out and no server alive (durability.md F70)."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence

import pytest

from tests.network.conftest import OWNER, Served


def test_half_open_connections_are_closed_and_others_are_served_meanwhile(serve: Callable[..., Served]) -> None:
    server = serve()
    said = [
        b"",
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1",
        b"\r\n",
        b"GET / HTTP/1.1\r\nX-A: b\r\n",
    ]
    slow = _connected(server, [said[n % len(said)] for n in range(300)])
    began = time.monotonic()
    assert server.ask("GET", "/health").status == 200
    left = set(slow)
    while left and time.monotonic() - began < 25:
        ready, _, _ = select.select(list(left), [], [], 1)
        left -= {each for each in ready if _is_closed(each)}
    assert not left
    assert server.ask("GET", "/health").status == 200
    more = _connected(server, [b""] * 600)  # more than may say nothing at once
    assert sum(_says(each, b" 503 ") for each in more) >= 50
    for each in (*slow, *more):
        each.close()


def test_a_body_that_never_comes_is_not_waited_for_beyond_its_time(serve: Callable[..., Served]) -> None:
    server = serve()
    head = f"PUT /api/v1/memories/a HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {OWNER}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    [wire] = _connected(server, [head.encode()])
    wire.settimeout(60)
    assert b" 408 " in wire.recv(65536)
    wire.close()
    assert server.api("GET", "/memories").data["total"] == 0


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_the_end_waits_for_no_half_open_connection_and_no_listener(
    serve: Callable[..., Served], signal_name: str
) -> None:
    import signal

    server = serve()
    server.api("PUT", "/memories/a", {"content": "kept"})
    get = f" HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {OWNER}\r\n\r\n"
    half = _connected(server, [b"GET /health HT"] * 300 + [f"GET /api/v1/changes{get}".encode()] * 20)
    began = time.monotonic()
    server.process.send_signal(getattr(signal, signal_name))
    assert server.process.wait(20) == 0
    assert time.monotonic() - began < 6  # what it promises, not how quick it is
    for each in half:
        each.close()
    again = serve()
    assert again.api("GET", "/memories/a").data["content"].strip() == "kept"


def _connected(server: Served, said: Sequence[bytes]) -> list[socket.socket]:
    found = []
    for each in said:
        found.append(socket.create_connection(("127.0.0.1", server.port), 10))
        found[-1].sendall(each)
    return found


def _is_closed(wire: socket.socket) -> bool:
    try:
        return not wire.recv(65536)
    except OSError:
        return True


def _says(wire: socket.socket, what: bytes) -> bool:
    wire.settimeout(0.2)
    try:
        return what in wire.recv(200)
    except OSError:
        return False
