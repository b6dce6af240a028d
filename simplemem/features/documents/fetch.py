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
_NOT_PUBLIC: Final = [
    ip_network("168.63.129.16"),
    ip_network("192.0.0.0/24"),
    ip_network("192.88.99.0/24"),
    ip_network("2001::/32"),
    ip_network("2002::/16"),
    ip_network("3fff::/20"),
]


def may_fetch(host: str) -> bool:
    """Return whether a host is a public address in any spelling, or a name other than localhost.

    A name is not resolved: the caller has to check its addresses too. "" is no host. Nothing is
    raised, whatever the text is.
    """
    bare_host = host.strip("[]").split("%")[0].rstrip(".").casefold()
    with suppress(OSError, ValueError):
        # Spellings such as 2130706433, 0x7f.1 and 127.1.
        bare_host = socket.inet_ntoa(socket.inet_aton(bare_host))
    try:
        address = ip_address(bare_host)
    except ValueError:
        is_localhost = f".{bare_host}".endswith(".localhost")
        return bool(bare_host) and not is_localhost
    return _is_public(address)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address belongs to a machine of the internet, not to a special network."""
    if isinstance(address, IPv6Address):
        if any(address in network for network in _EMBEDDING_IPV4):
            address = IPv4Address(int(address) & 0xFFFFFFFF)
        elif address not in _PUBLIC_IPV6:
            return False
    if address.is_multicast or address.is_reserved:
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global


def checked(url: str) -> httpx2.URL:
    """Return a text as the URL of a page, without its fragment.

    Raise Invalid if the text is no URL of the web, or has a user name or password. Nothing is
    fetched or resolved.
    """
    with suppress(httpx2.InvalidURL, ValueError):
        parsed = httpx2.URL(url.strip()).copy_with(fragment=None)
        is_web = parsed.scheme in ("http", "https") and bool(parsed.host)
        has_valid_port = parsed.port is None or parsed.port < 65_536
        if is_web and has_valid_port and not parsed.userinfo:
            return parsed
    raise Invalid(f"{url[:200]!r} is not the address of a web page", hint=_URL_HINT)


def fetch(url: str, *, allow_private: bool = False) -> SourceFile:
    """Return the file at a URL, and follow redirects.

    With `allow_private`, the addresses of this machine and its network are allowed too. Raise
    Invalid if an address is not allowed, NotFound if the server has no such file, TooLong if it is
    too large, and Unavailable if the server gives another error or needs more than 30 seconds.
    """
    start = checked(url)
    # A thread, since the timeout of httpx2 is one per read.
    pool = ThreadPoolExecutor(1)
    with httpx2.Client(trust_env=False, headers=_HEADERS, timeout=_TIMEOUT) as client:
        try:
            job = pool.submit(_follow_redirects, client, start, allow_private)
            return job.result(_TIMEOUT)
        except (TimeoutError, httpx2.TimeoutException):
            raise Unavailable(f"{url[:200]} did not answer within {_TIMEOUT:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(f"{url[:200]} could not be fetched: {reason}") from error
        finally:
            pool.shutdown(wait=False)


def _follow_redirects(
    client: httpx2.Client,
    url: httpx2.URL,
    allow_private: bool,
) -> SourceFile:
    """Return the file of the first response that is no redirect.

    Raise Invalid if an address is not allowed, NotFound if the server has no such file, TooLong if
    it is too large, and Unavailable for another status, or more than five redirects. Raise the
    errors of httpx2 and OSError if the network fails.
    """
    for _ in range(_MAX_REDIRECTS + 1):
        with closing(_request(client, url, allow_private)) as response:
            if not response.has_redirect_location:
                return _read_file(response, url)
            location = str(url.join(response.headers["Location"]))
        previous_url = url
        url = checked(location)

    address = str(previous_url)[:200]
    raise Unavailable(f"{address} redirects more than {_MAX_REDIRECTS} times")


def _read_file(response: httpx2.Response, url: httpx2.URL) -> SourceFile:
    """Read the body of a response to a request for a URL.

    Raise NotFound or Unavailable if the status is not 200, TooLong if the body is too large.
    """
    address = str(url)[:200]
    status = response.status_code
    if status != 200:
        message = f"{address} answered {status} {response.reason_phrase}"
        if status in (404, 410):
            raise NotFound(message)
        raise Unavailable(message)

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

    Its body is not read yet, and the caller closes it. Raise Invalid unless all addresses of the
    host are public or private ones are allowed, and Unavailable if no address accepts the
    connection. Raise OSError if the host cannot be resolved.
    """
    host = url.raw_host.decode()
    addresses = _allowed_addresses(host, allow_private)
    if not addresses:
        raise Invalid(
            f"{url.host} is an address of this machine or its local network",
            hint=_PRIVATE_HINT,
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
    """Resolve a host to its addresses, each once. Raise OSError if that fails."""
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _allowed_addresses(host: str, allow_private: bool) -> list[str]:
    """Resolve a host to its addresses. Return none of them if one may not be fetched from.

    With `allow_private`, all may be. Raise OSError if the host cannot be resolved.
    """
    if allow_private:
        return _addresses_of(host)
    if not may_fetch(host):
        return []

    addresses = _addresses_of(host)
    if not all(may_fetch(address) for address in addresses):
        return []
    return addresses
