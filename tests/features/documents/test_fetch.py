"""What is fetched: pages of the public network, and of one's own only when that is allowed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from web_of_files import Web, web_server

from simplemem.errors import Invalid, NotFound, TooLong, Unavailable
from simplemem.features.documents import fetch as room
from simplemem.features.documents.fetch import checked, fetch, may_fetch

PUBLIC = "8.8.8.8 1.1.1.1 172.32.0.1 11.0.0.1 2606:4700::1111 [2001:4860:4860::8888] ::ffff:8.8.8.8 134744072 0x8.8.8.8 "
PUBLIC += "64:ff9b::808:808 example.org example.org. localhost.example.org xn--mnchen-3ya.de"
OTHERS = {
    "this machine": "127.0.0.1 127.8.9.1 ::1 0.0.0.0 :: 0.1.2.3 localhost LOCALHOST localhost. a.localhost",
    "odd spellings": "2130706433 0x7f.1 0x7f000001 127.1 0 017700000001 0177.0.0.1 [::1] 127.0.0.1. 10.1 3232235777",
    "mapped": "::ffff:127.0.0.1 [::ffff:127.0.0.1] ::ffff:7f00:1 ::ffff:10.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1",
    "translated": "64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::808:808 2002:7f00:1:: 2002:808:808:: 2001::1",
    "private": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12:3456::1 fec0::1",
    "link-local": "169.254.0.1 fe80::1 fe80::1%eth0 [fe80::1%25eth0]",
    "shared": "100.64.0.1 100.127.255.254",
    "metadata": "169.254.169.254 fd00:ec2::254 100.100.100.200 192.0.0.192 168.63.129.16 2852039166",
    "many at once": "224.0.0.1 239.255.255.250 ff02::1 255.255.255.255",
    "reserved": "240.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 192.88.99.1 2001:db8::1 3fff::1 100::1 4000::1",
    "nothing": "[] .",
}


@pytest.mark.parametrize("address", PUBLIC.split())
def test_what_is_public_may_be_fetched(address: str) -> None:
    assert may_fetch(address)


@pytest.mark.parametrize(
    ("kind", "address"),
    [(kind, address) for kind, all_ in OTHERS.items() for address in all_.split()],
)
def test_what_is_not_may_not(kind: str, address: str) -> None:
    assert not may_fetch(address), kind


@pytest.mark.parametrize("url", """file:///etc/passwd ftp://127.0.0.1/x javascript:alert(1) http:// gopher://x //h/x
    http://user@h/ https://user:word@h/ http:///x http://h:99999/ http://[::1 http://0177.0.0.1/ data:text/plain,x
    http://ex\ud800/ http://h\\@evil/ x""".split())  # fmt: skip
def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        checked(url)
    with pytest.raises(Invalid):
        fetch(url, allow_private=True)


def test_an_address_is_asked_without_its_fragment() -> None:
    assert str(checked(" https://Example.org/a?b=c#d ")) == "https://example.org/a?b=c"


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


def test_a_page_comes_with_its_type_charset_and_name(web: Web) -> None:
    web.pages["/a/menu.txt?x=1"] = ("Text/Plain; charset=ISO-8859-1", "Café".encode("latin-1"))
    found = fetch(web.url("/a/menu.txt?x=1#soup"), allow_private=True)
    assert found == ("menu.txt", "text/plain", "iso-8859-1", "Café".encode("latin-1"))


@pytest.mark.parametrize(
    "host", "127.0.0.1 localhost [::1] 2130706433 0x7f.1 127.1 127.0.0.2 [::ffff:127.0.0.1]".split()
)
def test_this_machine_is_not_asked_unless_that_is_allowed(web: Web, host: str) -> None:
    with pytest.raises(Invalid, match="this machine or its local network") as refused:
        fetch(web.url("/", host))
    assert not web.requests and "documents.allow_private" in refused.value.hint


def test_a_name_that_leads_here_is_not_asked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [[(2, 1, 6, "", ("8.8.8.8", 0)), (2, 1, 6, "", ("127.0.0.1", 0))]]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.pop())
    with pytest.raises(Invalid):
        fetch(web.url("/", "two-faced.example.org"))
    assert not answers and not web.requests


def test_what_was_checked_is_what_is_connected_to(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name is asked for its address once a hop: a second answer may be another."""
    answers, ask = [(2, 1, 6, "", ("127.0.0.1", 0))], socket.getaddrinfo
    names: list[object] = []

    def resolve(host: object, *more: object, **options: object) -> object:
        names.append(host)
        return [answers.pop()] if host == "rebound.example.org" else ask(host, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    web.pages["/x"] = ("text/plain", b"here")
    assert fetch(web.url("/x", "rebound.example.org"), allow_private=True).data == b"here"
    assert (
        web.requests[0]["host"] == f"rebound.example.org:{web.port}"
        and "cookie" not in web.requests[0]
    )
    assert names.count("rebound.example.org") == 1


def test_a_secure_server_is_told_the_name_and_must_prove_it() -> None:
    hello: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                hello.append(connection.recv(4096))

        listening = threading.Thread(target=answer)
        listening.start()
        with pytest.raises(Unavailable, match=r"valid certificate|could not be fetched"):
            fetch(f"https://localhost:{server.getsockname()[1]}/", allow_private=True)
        listening.join()
    assert hello[0][:1] == b"\x16" and b"localhost" in hello[0]


def test_redirections_are_followed_each_checked_anew(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.pages = {f"/{at}": (302, f"/{at + 1}") for at in range(9)} | {"/5": ("text/plain", b"five")}
    assert fetch(web.url("/0"), allow_private=True).data == b"five"
    assert not any("cookie" in request for request in web.requests)
    for path, led in (("/loop", "/loop"), ("/file", "file:///etc/passwd"), ("/bad", "http://[x")):
        web.pages[path] = (302, led)
        with pytest.raises((Invalid, Unavailable)):
            fetch(web.url(path), allow_private=True)
    assert [request["path"] for request in web.requests].count("/loop") == 6
    monkeypatch.setattr(
        room, "may_fetch", lambda host: host == "127.0.0.1"
    )  # as if this server were a public one
    web.pages["/in"] = (302, web.url("/5", "127.0.0.2"))
    with pytest.raises(Invalid, match=r"127\.0\.0\.2 is an address of this machine"):
        fetch(web.url("/in"))


def test_no_proxy_of_the_environment_is_asked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.pages["/"] = ("text/plain", b"direct")
    assert fetch(web.url("/"), allow_private=True).data == b"direct"


def test_what_is_too_large_missing_or_broken_is_refused(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MAX_BYTES", 1000)
    web.pages = {
        "/1000": ("text/plain", b"x" * 1000),
        "/1001": ("text/plain", b"x" * 1001),
        "/500": (500, ""),
    }
    assert len(fetch(web.url("/1000"), allow_private=True).data) == 1000
    for path, error in (("/1001", TooLong), ("/none", NotFound), ("/500", Unavailable)):
        with pytest.raises(error):
            fetch(web.url(path), allow_private=True)
    with pytest.raises(Unavailable, match="refuses connections"):
        fetch("http://127.0.0.1:9/", allow_private=True)


def test_a_name_that_nobody_knows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(Unavailable, match="Name or service not known"):
        fetch("http://no-such-host.invalid/")


@pytest.mark.parametrize(
    "drip", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", b""]
)
def test_who_answers_too_slowly_is_not_waited_for(
    drip: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_TIMEOUT", 0.4)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection, suppress(OSError):
                connection.sendall(drip)
                while drip and not over.wait(0.05):
                    connection.sendall(b"x")
                over.wait()

        dripping = threading.Thread(target=answer)
        dripping.start()
        with pytest.raises(Unavailable, match="did not answer within"):
            fetch(f"http://127.0.0.1:{server.getsockname()[1]}/", allow_private=True)
        over.set()
        dripping.join()
