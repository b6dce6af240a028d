"""A page or a file from the web. The addresses of each hop are checked, and what was checked is what is connected to:
nothing of this machine or its network is asked unless a person allows it. No proxy, no cookie, no password."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

import httpx2

from simplemem.errors import Invalid, NotFound, TooLong, Unavailable
from simplemem.features.documents.convert import MOST_BYTES, SourceFile

_MOST_SECONDS, _MOST_HOPS = 30.0, 5
_HEADERS: Final = {"User-Agent": "simplemem", "Accept-Encoding": "identity"}
_HINT: Final = "Give http:// or https:// and a host, without a user name or password."
_ALLOWED: Final = "To allow it, set documents.allow_private in your own settings file."
_PUBLIC, *_CARRIERS = map(
    ip_network, ("2000::/3", "::ffff:0:0/96", "64:ff9b::/96")
)  # these of IPv4, in 32 last bits
# Clouds' own services, and tunnels to whatever an address carries: Python takes them for public.
_CLOSED: Final = [
    *map(
        ip_network,
        "168.63.129.16 192.0.0.0/24 192.88.99.0/24 2001::/32 2002::/16 3fff::/20".split(),
    )
]


def may_fetch(host: str) -> bool:
    """Whether an address is of the public network, however it is spelled. A name may be asked for its addresses."""
    bare = host.strip("[]").split("%")[0].rstrip(".").casefold()
    with suppress(OSError, ValueError):
        bare = socket.inet_ntoa(socket.inet_aton(bare))  # 2130706433, 0x7f.1, 127.1
    try:
        ip = ip_address(bare)
    except ValueError:
        return bool(bare) and not f".{bare}".endswith(".localhost")
    if isinstance(ip, IPv6Address) and any(ip in each for each in _CARRIERS):
        ip = IPv4Address(int(ip) & 0xFFFFFFFF)
    is_closed = ip.is_multicast or ip.is_reserved or any(ip in each for each in _CLOSED)
    return ip.is_global and not is_closed and (ip.version == 4 or ip in _PUBLIC)


def checked(url: str) -> httpx2.URL:
    """An address that may be fetched, without its fragment. Invalid says what is wrong."""
    with suppress(httpx2.InvalidURL, ValueError):
        found = httpx2.URL(url.strip()).copy_with(fragment=None)
        if (
            found.scheme in ("http", "https")
            and found.host
            and not found.userinfo
            and (found.port or 80) < 65_536
        ):
            return found
    raise Invalid(f"{url[:200]!r} is not the address of a web page", hint=_HINT)


def fetch(url: str, *, allow_private: bool = False) -> SourceFile:
    """What an address gives, after so many redirections at most, within so many seconds."""
    start, pool = checked(url), ThreadPoolExecutor(1)
    with httpx2.Client(trust_env=False, headers=_HEADERS, timeout=_MOST_SECONDS) as client:
        try:
            return pool.submit(_follow, client, start, allow_private).result(_MOST_SECONDS)
        except (TimeoutError, httpx2.TimeoutException):
            raise Unavailable(f"{url[:200]} did not answer within {_MOST_SECONDS:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise Unavailable(
                f"{url[:200]} could not be fetched: {error or type(error).__name__}"
            ) from error
        finally:
            pool.shutdown(wait=False)


def _follow(client: httpx2.Client, url: httpx2.URL, allow_private: bool) -> SourceFile:
    for _ in range(_MOST_HOPS + 1):
        shown, data = str(url)[:200], bytearray()
        with closing(_asked(client, url, allow_private)) as answer:
            if answer.has_redirect_location:
                url = checked(str(url.join(answer.headers["Location"])))
                continue
            if answer.status_code != 200:
                failed = NotFound if answer.status_code in (404, 410) else Unavailable
                raise failed(f"{shown} answered {answer.status_code} {answer.reason_phrase}")
            for chunk in answer.iter_bytes():
                data += chunk
                if len(data) > MOST_BYTES:
                    raise TooLong(f"{shown} is larger than {MOST_BYTES:,} bytes")
            content_type = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            return SourceFile(
                url.path.rpartition("/")[2],
                content_type,
                answer.charset_encoding or "",
                bytes(data),
            )
    raise Unavailable(f"{shown} redirects more than {_MOST_HOPS} times")


def _asked(client: httpx2.Client, url: httpx2.URL, allow_private: bool) -> httpx2.Response:
    """The answer of the first of a host's addresses that takes the connection. All of them must be public."""
    name = url.raw_host.decode()
    known = (
        socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        if allow_private or may_fetch(name)
        else []
    )
    if not allow_private and not (known and all(may_fetch(str(each[4][0])) for each in known)):
        raise Invalid(
            f"{url.host} is an address of this machine or its local network", hint=_ALLOWED
        )
    more: Any = {"headers": {"Host": url.netloc.decode()}, "extensions": {"sni_hostname": name}}
    for address in dict.fromkeys(str(each[4][0]) for each in known):
        client.cookies.clear()
        with suppress(httpx2.ConnectError):
            return client.send(
                client.build_request("GET", url.copy_with(host=address), **more), stream=True
            )
    raise Unavailable(f"{url.host} refuses connections or has no valid certificate")
