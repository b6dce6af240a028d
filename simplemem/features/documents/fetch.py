"""Fetch a page or a file from the web.

The addresses of each hop are checked, and the connection goes to an address that was checked:
nothing on this machine or its network is contacted unless the user allows that. No proxy, cookie
or password is used.
"""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

import httpx2

from simplemem.errors import Invalid, NotFound, TooLong, Unavailable
from simplemem.features.documents.convert import MAX_BYTES, SourceFile

_TIMEOUT: Final = 30.0  # seconds, for all redirects together
_MAX_REDIRECTS: Final = 5
_HEADERS: Final = {"User-Agent": "simplemem", "Accept-Encoding": "identity"}
_URL_HINT: Final = "Give http:// or https:// and a host, without a user name or password."
_PRIVATE_HINT: Final = "To allow it, set documents.allow_private in your own settings file."

_PUBLIC_IPV6: Final = ip_network("2000::/3")
# IPv6 addresses whose last 32 bits are an IPv4 address.
_EMBEDDING_IPV4: Final = [ip_network("::ffff:0:0/96"), ip_network("64:ff9b::/96")]
# Services of cloud providers, and tunnels to an embedded address. Python takes them for public.
_CLOSED: Final = [
    ip_network("168.63.129.16"),
    ip_network("192.0.0.0/24"),
    ip_network("192.88.99.0/24"),
    ip_network("2001::/32"),
    ip_network("2002::/16"),
    ip_network("3fff::/20"),
]


def may_fetch(host: str) -> bool:
    """Return whether a host is a public address, in any spelling, or a name other than localhost.

    A name is not resolved: its addresses have to be checked too.
    """
    bare = host.strip("[]").split("%")[0].rstrip(".").casefold()
    with suppress(OSError, ValueError):
        bare = socket.inet_ntoa(socket.inet_aton(bare))  # 2130706433, 0x7f.1, 127.1
    try:
        address = ip_address(bare)
    except ValueError:
        return bool(bare) and not f".{bare}".endswith(".localhost")

    if isinstance(address, IPv6Address):
        if any(address in network for network in _EMBEDDING_IPV4):
            address = IPv4Address(int(address) & 0xFFFFFFFF)
        elif address not in _PUBLIC_IPV6:
            return False
    if address.is_multicast or address.is_reserved:
        return False
    if any(address in network for network in _CLOSED):
        return False
    return address.is_global


def checked(url: str) -> httpx2.URL:
    """Return the URL of a page without its fragment. Raise Invalid if it is none."""
    with suppress(httpx2.InvalidURL, ValueError):
        parsed = httpx2.URL(url.strip()).copy_with(fragment=None)
        is_web = parsed.scheme in ("http", "https") and bool(parsed.host)
        has_valid_port = (parsed.port or 80) < 65_536
        if is_web and has_valid_port and not parsed.userinfo:
            return parsed
    raise Invalid(f"{url[:200]!r} is not the address of a web page", hint=_URL_HINT)


def fetch(url: str, *, allow_private: bool = False) -> SourceFile:
    """Return the file at a URL, and follow redirects.

    Raise Invalid if an address is not allowed, NotFound or Unavailable for what the server answers,
    TooLong if the file is too large, Unavailable after 30 seconds.
    """
    start = checked(url)
    # A thread, since the timeout of httpx2 is one per read.
    pool = ThreadPoolExecutor(1)
    with httpx2.Client(trust_env=False, headers=_HEADERS, timeout=_TIMEOUT) as client:
        try:
            return pool.submit(_follow, client, start, allow_private).result(_TIMEOUT)
        except (TimeoutError, httpx2.TimeoutException):
            raise Unavailable(f"{url[:200]} did not answer within {_TIMEOUT:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            reason = error or type(error).__name__
            raise Unavailable(f"{url[:200]} could not be fetched: {reason}") from error
        finally:
            pool.shutdown(wait=False)


def _follow(client: httpx2.Client, url: httpx2.URL, allow_private: bool) -> SourceFile:
    """Follow redirects until a response has a file."""
    for _ in range(_MAX_REDIRECTS + 1):
        with closing(_request(client, url, allow_private)) as response:
            if not response.has_redirect_location:
                return _read_file(response, url)
            location = str(url.join(response.headers["Location"]))
        previous = url
        url = checked(location)
    raise Unavailable(f"{str(previous)[:200]} redirects more than {_MAX_REDIRECTS} times")


def _read_file(response: httpx2.Response, url: httpx2.URL) -> SourceFile:
    """Read the body of a response up to the limit."""
    address = str(url)[:200]
    if response.status_code != 200:
        error = NotFound if response.status_code in (404, 410) else Unavailable
        raise error(f"{address} answered {response.status_code} {response.reason_phrase}")

    data = bytearray()
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > MAX_BYTES:
            raise TooLong(f"{address} is larger than {MAX_BYTES:,} bytes")

    content_type = response.headers.get("Content-Type", "").partition(";")[0]
    return SourceFile(
        name=url.path.rpartition("/")[2],
        content_type=content_type.strip().lower(),
        charset=response.charset_encoding or "",
        data=bytes(data),
    )


def _request(client: httpx2.Client, url: httpx2.URL, allow_private: bool) -> httpx2.Response:
    """Return the response of the first address of a host that accepts the connection.

    Raise Invalid unless all addresses of the host are public or private ones are allowed.
    """
    host = url.raw_host.decode()
    addresses = _addresses_of(host) if allow_private or may_fetch(host) else []
    if not allow_private and not (addresses and all(map(may_fetch, addresses))):
        raise Invalid(
            f"{url.host} is an address of this machine or its local network", hint=_PRIVATE_HINT
        )

    # The request goes to the address that was checked; the server still gets the host's name.
    options: Any = {
        "headers": {"Host": url.netloc.decode()},
        "extensions": {"sni_hostname": host},
    }
    for address in addresses:
        client.cookies.clear()
        request = client.build_request("GET", url.copy_with(host=address), **options)
        with suppress(httpx2.ConnectError):
            return client.send(request, stream=True)
    raise Unavailable(f"{url.host} refuses connections or has no valid certificate")


def _addresses_of(host: str) -> list[str]:
    """Resolve a host to its addresses, each once."""
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))
