"""A page or a file from the web. The addresses of each hop are checked, and what was checked is what is connected to:
nothing of this machine or its network is asked unless a person allows it. No proxy, no cookie, no password."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from simplemem.errors import Invalid, NotFound, SimplememError, TooLong, Unavailable

MOST_BYTES: Final = 10_000_000
_MOST_SECONDS, _MOST_HOPS, _CHUNK = 30.0, 5, 65_536
_CARRIERS: Final = ("::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96", "2001::/32")
_EMBEDDING: Final = [ipaddress.ip_network(each) for each in _CARRIERS]  # IPv6 addresses that carry one of IPv4
_SAFE: Final = "/%:=&?~#+!$,;'@()*[]"


class Fetched(NamedTuple):
    """What an address gave, and which that was in the end."""

    url: str
    kind: str
    charset: str
    data: bytes


def may_fetch(address: str) -> bool:
    """Whether an address, as numbers, is of the public network."""
    ip = ipaddress.ip_address(address.split("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and any(ip in each for each in _EMBEDDING):
        shift = 80 if ip in _EMBEDDING[3] else 0
        carried = int(ip) >> shift & 0xFFFFFFFF
        return ip not in _EMBEDDING[5] and ip not in _EMBEDDING[2] and may_fetch(str(ipaddress.IPv4Address(carried)))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def fetch(url: str, *, allow_private: bool = False) -> Fetched:
    """What an address gives, after so many redirections at most."""
    ends = time.monotonic() + _MOST_SECONDS
    try:
        for _ in range(_MOST_HOPS + 1):
            found = _hop(checked(url), allow_private, ends)
            if isinstance(found, Fetched):
                return found
            url = urljoin(url, found)
    except SimplememError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unavailable(f"{url[:200]} could not be fetched: {error or type(error).__name__}") from error
    raise Unavailable(f"{url[:200]} was redirected more than {_MOST_HOPS} times")


def checked(url: str) -> SplitResult:
    """The parts of an address that may be fetched. Invalid says what is wrong."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Invalid(f"{url[:200]!r} is no address: {error}") from None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        hint = "Give http:// or https:// and a host, without a name or password."
        raise Invalid(f"{url[:200]!r} is no address of a page", hint=hint)
    return parts


def _hop(parts: SplitResult, allow_private: bool, ends: float) -> Fetched | str:
    """What one address gives, or where it leads."""
    host, is_tls = str(parts.hostname), parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    addresses = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not allow_private and not all(map(may_fetch, addresses)):
        hint = "documents.allow_private allows it in your own settings."
        raise Invalid(f"{host} is an address of this machine or its network", hint=hint)
    connection = http.client.HTTPConnection(host, port, timeout=_left(ends))
    connection.sock = socket.create_connection((addresses[0], port), timeout=_left(ends))
    try:
        if is_tls:
            connection.sock = ssl.create_default_context().wrap_socket(connection.sock, server_hostname=host)
        path = quote(f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}", safe=_SAFE)
        shown = host if port in (80, 443) else f"{f'[{host}]' if ':' in host else host}:{port}"
        headers = {"Host": shown, "Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "simplemem"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status in (301, 302, 303, 307, 308) and (led := answer.getheader("Location")):
            return led
        if answer.status != 200:
            failed = NotFound if answer.status in (404, 410) else Unavailable
            raise failed(f"{parts.geturl()[:200]} answered with {answer.status} {answer.reason}")
        data = bytearray()
        while chunk := answer.read1(_CHUNK):
            data += chunk
            if len(data) > MOST_BYTES:
                raise TooLong(f"{parts.geturl()[:200]} has more than {MOST_BYTES:,} bytes")
            connection.sock.settimeout(_left(ends)) if connection.sock else None
        if answer.length:
            raise Unavailable(f"{parts.geturl()[:200]} broke off after {len(data):,} bytes")
        return Fetched(
            parts.geturl(), answer.headers.get_content_type(), answer.headers.get_content_charset() or "", bytes(data)
        )
    finally:
        connection.close()


def _left(ends: float) -> float:
    if (left := ends - time.monotonic()) <= 0:
        raise Unavailable(f"no answer within {_MOST_SECONDS:g} s")
    return left
