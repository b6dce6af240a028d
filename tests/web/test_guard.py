"""Requests with foreign host names, without a token, too large or too frequent are refused."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.web.conftest import OWNER, Served, Session

EVERYWHERE = [
    "/mcp",
    "/api/v1/memories",
    "/api/v1/changes",
    "/sse",
    "/",
    "/metrics",
    "/health",
    "/ingest/webhook",
]


@pytest.fixture
def server(serve: Callable[..., Served]) -> Served:
    return serve("--sse")


def test_pages_of_other_origins_and_other_names_are_refused_everywhere(server: Served) -> None:
    port = server.port
    address = f"127.0.0.1:{port}"
    origins = f"http://evil.example null http://{address}.evil.example http://localhost:{port}@evil.example http://{address}/"
    origins += f" ftp://{address} http://127.0.0.1 http://127.0.0.1:{port + 1} http://["
    origins += f" http://localhost:{port}"  # served too, but by another name than this request's
    hosts = f"evil.example {address}.evil.example localhost.evil.example:{port} 127.0.0.1 [::1]:{port + 1}"
    for path in EVERYWHERE:
        for origin in origins.split():
            assert server.ask("POST", path, {}, headers={"Origin": origin}).status == 403, (
                path,
                origin,
            )
        for host in ("", *hosts.split()):
            status = server.ask("GET", path, headers={"Host": host}).status
            # A load balancer knows only the address, so its probes may use any name. A page may not.
            assert status == (200 if path == "/health" else 421), (path, host)
            rebound = {"Host": host, "Origin": f"http://{host}"}
            assert server.ask("GET", path, headers=rebound).status == 421, (path, host)
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert server.ask("GET", "/health", headers={"Host": host}).status == 200
    assert (
        server.ask("GET", "/health", headers={"Origin": f"http://127.0.0.1:{port}"}).status == 200
    )
    assert (
        "access-control-allow-origin"
        not in server.ask("OPTIONS", "/mcp", headers={"Origin": "http://evil.example"}).headers
    )


def test_only_health_and_readiness_need_no_token_and_tell_nothing(server: Served) -> None:
    alive = {"status": "ok", "neo4j": "not used", "database": "connected"}
    assert server.ask("GET", "/health", token=None).data == alive
    assert server.ask("GET", "/ready", token=None).data.keys() == {"status"}
    for path in [path for path in EVERYWHERE if path != "/health"]:
        for token in (None, "wrong", OWNER + "x"):
            answer = server.ask("GET", path, token=token, headers={"Accept": "application/json"})
            assert answer.status == 401, (path, token)
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert (
        server.ask("GET", f"/api/v1/memories?token={OWNER}&access_token={OWNER}", token=None).status
        == 401
    )
    assert server.ask("GET", "/api/v1/memories/health", token=None).status == 401


def test_a_refusal_says_whether_the_token_is_missing_unknown_or_misplaced(server: Served) -> None:
    def detail(**headers: str) -> str:
        return str(server.ask("GET", "/api/v1/tags", token=None, **headers).problem["detail"])

    assert detail() == "a token is needed"
    assert detail(Authorization="Bearer wrong") == "this token is unknown, revoked or expired"
    for header in (OWNER, f"Token {OWNER}", "Bearer", "Bearer "):
        assert detail(Authorization=header) == 'the header must be "Authorization: Bearer TOKEN"', (
            header
        )


def test_a_token_does_what_it_was_given_and_is_gone_when_revoked(server: Served) -> None:
    reads, writes = server.new_token("reader"), server.new_token("writer", "--write")
    note = {"name": "a", "content": "of the writer"}
    assert server.api("POST", "/memories", note, token=reads).status == 403
    assert server.api("POST", "/memories", note, token=writes).status == 201
    assert server.api("GET", "/memories/a", token=reads).status == 200
    assert server.api("GET", "/history/a").data["versions"][0]["who"] == "writer"
    written = Session(server, token=writes).ask(
        "tools/call", {"name": "create_memory", "arguments": {"name": "b", "content": "x"}}
    )
    assert '"isError":false' in written
    assert server.api("GET", "/history/b").data["versions"][0]["who"] == "writer: t 1"
    undone = server.tool("undo_change", by="writer", since="v1")
    assert {note["name"] for note in undone.data["notes"]} == {"a", "b"}
    refused = server.tool("delete_memory", token=reads, name="a")
    assert refused.status == 403 and server.api("GET", "/memories/a").status == 200
    assert [
        server.ask("GET", "/metrics", token=bearer).status for bearer in (reads, writes, OWNER)
    ] == [403, 403, 200]
    server_tokens = server.config / "simplemem" / "tokens.json"
    assert reads not in server_tokens.read_text() and server_tokens.stat().st_mode & 0o77 == 0
    rows = json.loads(server_tokens.read_text())
    server_tokens.write_text(json.dumps([row for row in rows if row["name"] != "reader"]))
    assert server.api("GET", "/memories/a", token=reads).status == 401
    server_tokens.write_text("[{]")
    assert (
        server.api("GET", "/memories/a", token=writes).status == 503
    )  # whoever may come in is not guessed at


def test_a_quota_counts_calls_and_what_is_sent_in_pieces(server: Served) -> None:
    few, little = (
        server.new_token("few", "--calls", "3"),
        server.new_token("little", "--write", "--kilobytes", "2"),
    )
    assert [server.api("GET", "/memories", token=few).status for _ in range(5)] == [
        200,
        200,
        200,
        429,
        429,
    ]
    assert int(server.api("GET", "/memories", token=few).headers["retry-after"]) > 0
    assert server.api("PUT", "/memories/a", {"content": "x" * 1000}, token=little).status == 201
    assert server.api("PUT", "/memories/b", {"content": "x" * 3000}, token=little).status == 429
    body = json.dumps({"content": "x" * 3000}).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    head = f"PUT /api/v1/memories/c HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {little}\r\n"
    head += (
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    assert b" 429 " in _raw(server, head.encode() + chunked)[:20]
    assert server.api("GET", "/memories").data["total"] == 1


def test_whoever_guesses_tokens_is_asked_to_wait(server: Served) -> None:
    assert {server.api("GET", "/tags", token=f"guess {n}").status for n in range(20)} == {401}
    assert server.api("GET", "/tags", token="guess").status == 429
    form = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    assert server.ask("POST", "/login", b"token=guess", token=None, headers=form).status == 429
    assert (
        server.api("GET", "/tags").status == 200
    )  # whoever has a token is not kept out by others of their address


def sign_in(server: Served, token: str, client: str = "") -> int:
    """The status of one try at the sign-in page, from a client that a proxy names."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    headers |= {"X-Forwarded-For": client} if client else {}
    return server.ask(
        "POST", "/login", f"token={token}".encode(), token=None, headers=headers
    ).status


def test_sign_ins_that_succeed_are_not_counted_and_wrong_ones_do_not_lock_the_owner_out(
    server: Served,
) -> None:
    assert {sign_in(server, OWNER) for _ in range(25)} == {303}
    assert [sign_in(server, "wrong") for _ in range(22)] == [401] * 20 + [429] * 2
    assert sign_in(server, OWNER) == 303


def test_a_trusted_proxy_names_the_client_whose_wrong_tokens_are_counted(
    serve: Callable[..., Served],
) -> None:
    server = serve("--trusted-proxy", "192.0.2.0/24", "--trusted-proxy", "127.0.0.1")
    wrong = [sign_in(server, "wrong", "203.0.113.5, 192.0.2.7") for _ in range(21)]
    assert wrong == [401] * 20 + [429]
    assert sign_in(server, "wrong", "203.0.113.5") == 429
    assert sign_in(server, "wrong", "203.0.113.6") == 401
    bearer = {"X-Forwarded-For": "203.0.113.5"}
    assert server.api("GET", "/tags", token="wrong", headers=bearer).status == 429
    assert server.api("GET", "/tags", headers=bearer).status == 200


def test_nobody_but_a_trusted_proxy_chooses_a_client_s_address(
    serve: Callable[..., Served],
) -> None:
    for options in ((), ("--trusted-proxy", "192.0.2.1")):
        server = serve(*options)
        wrong = [sign_in(server, "wrong", f"203.0.113.{number}") for number in range(21)]
        assert wrong == [401] * 20 + [429]


def test_a_form_of_another_page_is_not_taken_for_whoever_is_signed_in(server: Served) -> None:
    own, form = (
        {"Origin": f"http://127.0.0.1:{server.port}"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    )
    version = (
        server.api("PUT", "/memories/a", {"content": "mine"})
        and server.api("GET", "/history").data["versions"][0]
    )
    signed = server.ask(
        "POST",
        "/login",
        f"token={OWNER}&to=//evil.example".encode(),
        token=None,
        headers=own | form,
    )
    assert (signed.status, signed.headers["location"]) == (303, "/")
    cookie = signed.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and OWNER not in cookie
    cookie = {"Cookie": signed.headers["set-cookie"].partition(";")[0]}
    undo = f"version={version['version']}".encode()
    for origin in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}):
        assert (
            server.ask("POST", "/undo", undo, token=None, headers=cookie | form | origin).status
            == 403
        )
        assert (
            server.ask(
                "PUT", "/api/v1/memories/b", {"content": "x"}, token=None, headers=cookie | origin
            ).status
            == 403
        )
        assert server.ask("POST", "/mcp", {}, token=None, headers=cookie | origin).status == 403
    assert server.api("GET", "/memories").data["total"] == 1
    assert server.ask("POST", "/undo", undo, token=None, headers=cookie | form | own).status == 303
    assert server.api("GET", "/memories").data["total"] == 0
    assert server.ask("POST", "/login", b"a=1&" * 20, token=None, headers=own | form).status == 400
    assert server.ask("POST", "/logout", b"", token=None, headers=cookie | form | own).status == 303
    assert server.ask("GET", "/api/v1/memories", token=None, headers=cookie).status == 401


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        ("Content-Length: 9000000\r\n", b"", 413),
        ("Transfer-Encoding: chunked\r\n", b"900000\r\n" + b"x" * 0x900000 + b"\r\n0\r\n\r\n", 413),
        ("Content-Encoding: gzip\r\nContent-Length: 3\r\n", b"abc", 415),
        ("Content-Length: -1\r\n", b"", 400),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n", 400),
        ("X-A: b\r\n" * 200, b"", 431),
        ("X-A: " + "b" * 70_000 + "\r\n", b"", 400),
        ("Host: evil.example\r\n", b"", 400),
        ("Content-Type: application/json\r\nContent-Length: 8\r\n", b'{"a": "\xff', 400),
        ("Content-Type: application/json\r\nContent-Length: 200000\r\n", b"[" * 200_000, 400),
        ("Content-Type: text/plain\r\nContent-Length: 2\r\n", b"{}", 415),
    ],
    ids="long,long in pieces,compressed,negative,two lengths,headers,header,hosts,bytes,deep,kind".split(
        ","
    ),
)
def test_a_request_that_is_too_much_or_unclear_writes_nothing(
    server: Served, head: str, body: bytes, status: int
) -> None:
    first = f"PUT /api/v1/memories/a HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {OWNER}\r\n"
    answer = _raw(server, (first + head + "Connection: close\r\n\r\n").encode() + body)
    assert answer.split(b" ", 2)[1] == str(status).encode(), answer[:300]
    assert b"Traceback" not in answer
    assert server.api("GET", "/memories").data["total"] == 0


def _raw(server: Served, data: bytes) -> bytes:
    """What a server says to these bytes until it closes."""
    found = b""
    with socket.create_connection(("127.0.0.1", server.port), 20) as wire:
        with suppress(OSError):  # refused before all of it was sent
            wire.sendall(data)
        with suppress(ConnectionResetError):
            while part := wire.recv(65536):
                found += part
    return found
