"""Silent connections and incomplete requests block no other client and do not keep a server alive."""

from __future__ import annotations

import datetime
import http.client
import json
import os
import select
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from processes import run_program
from waiting import eventually

from tests.web.conftest import OWNER, Served


@pytest.mark.slow
def test_half_open_connections_are_closed_and_others_are_served_meanwhile(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    requests = [
        b"",
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1",
        b"\r\n",
        b"GET / HTTP/1.1\r\nX-A: b\r\n",
    ]
    slow = _connected(server, [requests[n % len(requests)] for n in range(300)])
    began = time.monotonic()
    assert server.ask("GET", "/health").status == 200
    left = set(slow)
    while left and time.monotonic() - began < 25:
        ready, _, _ = select.select(list(left), [], [], 1)
        left -= {wire for wire in ready if _is_closed(wire)}
    assert not left
    assert server.ask("GET", "/health").status == 200
    more = _connected(server, [b""] * 600)  # more than may say nothing at once
    assert sum(_says(wire, b" 503 ") for wire in more) >= 50
    for wire in (*slow, *more):
        wire.close()


@pytest.mark.slow
def test_a_body_that_never_comes_is_not_waited_for_beyond_its_time(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    head = f"PUT /api/v1/memories/a HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {OWNER}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    [wire] = _connected(server, [head.encode()])
    wire.settimeout(60)
    assert b" 408 " in wire.recv(65536)
    wire.close()
    assert server.api("GET", "/memories").data["total"] == 0


@pytest.mark.parametrize(
    "request_line", [b"GET /a b HTTP/1.1", b"GET", b"\x16\x03\x01", "GET /ü HTTP/1.1".encode()]
)
def test_what_is_no_http_request_is_answered_with_a_problem_document(
    serve: Callable[..., Served], request_line: bytes
) -> None:
    [wire] = _connected(serve(), [request_line + b"\r\nHost: localhost\r\n\r\n"])
    answer = http.client.HTTPResponse(wire)
    answer.begin()
    document = json.loads(answer.read())
    assert (
        answer.status == document["status"] == 400
        and document["code"] == "invalid"
        and document["hint"]
    )
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert _is_closed(wire)
    wire.close()


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_the_end_waits_for_no_half_open_connection_and_no_listener(
    serve: Callable[..., Served], signal_name: str
) -> None:
    import signal

    server = serve()
    server.api("PUT", "/memories/a", {"content": "kept"})
    get = f" HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {OWNER}\r\n\r\n"
    half = _connected(
        server, [b"GET /health HT"] * 300 + [f"GET /api/v1/changes{get}".encode()] * 20
    )
    began = time.monotonic()
    server.process.send_signal(getattr(signal, signal_name))
    assert server.process.wait(20) == 0
    assert time.monotonic() - began < 6  # what it promises, not how quick it is
    for wire in half:
        wire.close()
    again = serve()
    assert again.api("GET", "/memories/a").data["content"].strip() == "kept"


def test_silent_and_idle_connections_without_a_token_keep_nobody_out(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    ask = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    for sent in (b"", ask):
        with _many_files(), _open_together(server, sent, 1100):
            assert server.api("GET", "/tags").status == 200


def test_streams_of_one_token_keep_nobody_out_and_are_limited(serve: Callable[..., Served]) -> None:
    server = serve()
    reader = server.new_token("reader")
    head = f"GET /api/v1/changes HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {reader}\r\n\r\n"
    with _many_files(), _open_together(server, head.encode(), 1100) as streams:
        assert server.api("GET", "/tags").status == 200
        answers = [_first_line(stream) for stream in streams]
        assert answers.count("HTTP/1.1 200 OK") == 128
        assert set(answers) == {"HTTP/1.1 200 OK", "HTTP/1.1 429 Too Many Requests"}
        assert server.api("GET", "/tags", token=reader).status == 429
    with _many_files(), _open_together(server, head.encode(), 1) as [stream]:
        assert _first_line(stream) == "HTTP/1.1 200 OK"  # those that have ended are not counted


@pytest.mark.slow
def test_half_open_tls_handshakes_are_counted_closed_and_not_logged(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    certificate, key = _certificate(tmp_path)
    server = serve("--tls-cert", str(certificate), "--tls-key", str(key))
    with _many_files(), _open_together(server, b"\x16\x03\x01\x02\x00\x01", 600) as half_open:
        assert _ask_over_tls(server, "/api/v1/tags") == 200
        left = {wire for wire in half_open if not _ends_within(wire, 0.0)}
        assert len(left) <= 256  # the others gave way
        assert all(_ends_within(wire, 25.0) for wire in left)
        assert _ask_over_tls(server, "/api/v1/tags") == 200
    with _many_files(), _open_together(server, b"GET / HTTP/1.1\r\n\r\n", 50):
        assert _ask_over_tls(server, "/api/v1/tags") == 200
    assert server.end() == 0
    assert not _warnings(server)


@pytest.mark.parametrize(
    "said", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"]
)
def test_requests_that_are_refused_leave_no_line_in_the_log(
    serve: Callable[..., Served], said: bytes
) -> None:
    server = serve()
    for _ in range(3):
        with _open_together(server, said, 1) as [stream]:
            assert _first_line(stream)
    assert server.end() == 0
    assert not _warnings(server)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signal")
def test_a_certificate_that_cannot_be_reloaded_is_logged_and_the_old_one_stays(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    certificate, key = _certificate(tmp_path)
    first = certificate.read_bytes(), key.read_bytes()
    server = serve("--tls-cert", str(certificate), "--tls-key", str(key), "--log-level", "info")

    def reload_and_find(message: str) -> None:
        begin = len(server.log)
        server.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: any(message in line for line in server.log[begin:])), server.log[
            begin:
        ]

    _certificate(tmp_path)
    key.write_bytes(first[1])  # of another certificate
    reload_and_find(
        f"error simplemem.web: the certificate could not be reloaded: the key in {key} (--tls-key)"
    )
    certificate.write_text("nonsense")
    reload_and_find(
        f"could not be reloaded: {certificate} (--tls-cert) and {key} (--tls-key) are not a certificate"
    )
    certificate.unlink()
    reload_and_find(
        f"could not be reloaded: cannot read {certificate} (--tls-cert): No such file or directory"
    )
    certificate.write_bytes(first[0])
    assert _ask_over_tls(server, "/api/v1/tags") == 200  # with the certificate of the start

    _certificate(tmp_path)
    reload_and_find("info simplemem.web: the certificate was reloaded")
    assert (
        _ask_over_tls(server, "/api/v1/tags") == 200
    )  # with the new one, which the client reads from the file


@pytest.mark.parametrize("option", ["--tls-cert", "--tls-key"])
def test_a_certificate_that_cannot_be_read_ends_the_server_before_it_serves(
    tmp_path: Path, option: str
) -> None:
    certificate, key = _certificate(tmp_path)
    file = certificate if option == "--tls-cert" else key
    started = partial(
        _refused_start, tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)
    )
    file.write_text("nonsense")
    refused = started()
    assert str(file) in refused and option in refused and "PEM" in refused
    file.unlink()
    assert started() == f"simplemem: cannot read {file} ({option}): No such file or directory\n"


def _refused_start(tmp_path: Path, *options: str) -> str:
    """Return what a server prints that ends at its start with the exit code 1."""
    arguments = ["--yes", "--vault", str(tmp_path / "vault"), "--http", "127.0.0.1:0", *options]
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    ended = run_program("serve", *arguments, env=env)
    assert ended.returncode == 1 and "serves" not in ended.stderr, ended.stderr
    return ended.stderr


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that it signed itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "simplemem")])
    today = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(today - datetime.timedelta(days=1)).not_valid_after(
        today + datetime.timedelta(days=1)
    )
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
    )
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    )
    return folder / "cert.pem", folder / "key.pem"


def _warnings(server: Served) -> list[str]:
    """What an ended server has complained about."""
    server.log_reader.join(5)
    return [line for line in server.log if " warning " in line or " error " in line]


def _ask_over_tls(server: Served, path: str) -> int:
    """The status of an answer to the owner."""
    trusted = ssl.create_default_context(cafile=str(server.config.parent / "cert.pem"))
    wire = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=trusted)
    wire.request("GET", path, headers={"Authorization": f"Bearer {OWNER}"})
    status = wire.getresponse().status
    wire.close()
    return status


@contextmanager
def _many_files() -> Iterator[None]:
    """Let this process open more sockets than is usual."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def _open_together(server: Served, data: bytes, number: int) -> Iterator[list[socket.socket]]:
    wires = _connected(server, [data] * number)
    try:
        yield wires
    finally:
        for wire in wires:
            wire.close()


def _first_line(wire: socket.socket) -> str:
    wire.settimeout(30)
    received = b""
    while b"\r\n" not in received and (part := wire.recv(1000)):
        received += part
    return received.partition(b"\r\n")[0].decode()


def _ends_within(wire: socket.socket, seconds: float) -> bool:
    """Whether the other side closes."""
    waiting = select.poll()
    waiting.register(wire, select.POLLIN)
    return bool(waiting.poll(seconds * 1000)) and _is_closed(wire)


def _connected(server: Served, requests: Sequence[bytes]) -> list[socket.socket]:
    found = []
    for request in requests:
        found.append(socket.create_connection(("127.0.0.1", server.port), 10))
        found[-1].sendall(request)
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
