"""The address on which a server listens: its names, its protection and its socket."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simplemem.errors import Invalid, Unavailable
from simplemem.web.certificates import check_is_readable, describe_error
from simplemem.web.connections import MAX_CONNECTIONS, client_address

_DEFAULT_HOST: Final = "127.0.0.1"
_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT: Final = 80
_HTTPS_PORT: Final = 443
_MAX_PORT: Final = 65535
_BACKLOG: Final = 2048  # connections that the system keeps until they are accepted
_FILES_PER_CONNECTION: Final = 4  # a connection is an open file, and so is much of a vault


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and the names under which clients reach it.

    Attributes:
        host: A host name or an IP address, without brackets.
        port: The port; 0 lets the system choose one.
        allowed: The names that clients use for the server, each with or without a port.
        certificate: The file of the TLS certificate; None to serve without TLS.
        key: The file of the key of the certificate.
        behind_proxy: Whether a proxy before the server speaks TLS with the clients.
        trusted_proxies: Addresses or networks of proxies that name their clients. If there are
            none and `behind_proxy` is set, those of this machine are trusted.
    """

    host: str = _DEFAULT_HOST
    port: int = 8080
    allowed: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    trusted_proxies: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server. False for a name except `localhost`."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    @property
    def is_https(self) -> bool:
        """Whether clients speak TLS, with the server itself or with a proxy before it."""
        return bool(self.certificate) or self.behind_proxy

    def host_names(self) -> frozenset[str]:
        """Return the values of the header `Host` that the server accepts.

        They are the allowed names, with the port if a name has none, and on a loopback address also
        the names of this machine.
        """
        names = set(self.allowed)
        if self.is_loopback:
            names.update(f"{name}:{self.port}" for name in _LOOPBACK_NAMES)
            if self.port in (_HTTP_PORT, _HTTPS_PORT):
                names.update(_LOOPBACK_NAMES)

        # Clients may spell out the usual port, also where a proxy or NAT maps it to another one.
        usual_port = _HTTP_PORT
        if self.is_https:
            usual_port = _HTTPS_PORT
        for name in self.allowed:
            if ":" not in name:
                names.update((f"{name}:{self.port}", f"{name}:{usual_port}"))
        return frozenset(names)

    def proxies(self) -> list[str]:
        """Return the addresses and networks whose `X-Forwarded-For` is believed; [] for none."""
        if self.trusted_proxies:
            return list(self.trusted_proxies)
        if self.behind_proxy:
            return ["127.0.0.1", "::1"]
        return []

    def is_proxy(self, address: str) -> bool:
        """Return whether a connection from an address comes from a trusted proxy.

        False for anything that is not an IP address. `check` must have accepted the networks.
        """
        try:
            parsed = ipaddress.ip_address(client_address(address))
        except ValueError:  # the system reported no address
            return False

        return any(parsed in ipaddress.ip_network(network) for network in self.proxies())

    def check(self) -> None:
        """Raise Invalid if an option is wrong, or other machines need more protection.

        An address that other machines can reach needs TLS and an allowed name.
        """
        if bool(self.certificate) != bool(self.key):
            raise Invalid("--tls-cert and --tls-key must be passed together")
        check_is_readable(self.certificate, "--tls-cert")
        check_is_readable(self.key, "--tls-key")
        for network in self.trusted_proxies:
            _check_network(network)

        if self.is_loopback:
            return

        missing = []
        if not self.is_https:
            missing.append("a certificate (--tls-cert and --tls-key, or --behind-proxy)")
        if not self.allowed:
            missing.append("the host name that clients use (--allow-host NAME)")
        if missing:
            raise Invalid(
                f"missing {' and '.join(missing)}: other machines can reach {self.host}",
                hint="Pass what is missing, or listen on 127.0.0.1.",
            )


def _check_network(text: str) -> None:
    """Raise Invalid unless a text is an IP address or a network of them."""
    try:
        ipaddress.ip_network(text)
        return
    except ValueError:
        hint = "Pass an address, such as 172.30.0.2, or a network, such as 172.30.0.0/24."

    with suppress(ValueError):  # an address in a network, such as 10.0.0.1/8
        hint = f"Did you mean {ipaddress.ip_network(text, strict=False)}?"
    raise Invalid(f"--trusted-proxy {text[:60]!r} is not an address or a network", hint=hint)


def parse_address(text: str, default_port: int) -> tuple[str, int]:
    """Return the host and the port of HOST:PORT, HOST, :PORT or PORT.

    A missing host is 127.0.0.1, and a missing port is `default_port`. An IPv6 address needs
    brackets, which the result does not have. Raises Invalid if the port is not a number up to
    65535.
    """
    host, port = _split_port(text.strip())
    if not port:
        return host or _DEFAULT_HOST, default_port

    is_number = port.isascii() and port.isdigit()
    if not is_number or int(port) > _MAX_PORT:
        raise Invalid(
            f"{text[:60]!r} is not an address to listen on",
            hint="Pass HOST:PORT, such as 127.0.0.1:8080.",
        )
    return host or _DEFAULT_HOST, int(port)


def _split_port(text: str) -> tuple[str, str]:
    """Return the host without brackets, and the port. Either is "" if it is missing.

    Digits alone are a port. The port may be any text.
    """
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if ":" in text:
        host, _, port = text.rpartition(":")
        return host, port
    if text.isdigit():
        return "", text
    return text, ""


def open_socket(address: Address) -> socket.socket:
    """Return a socket that listens on an address, and let this process open more files.

    Raises Unavailable if the system refuses the address, for example because it is in use.
    """
    _raise_file_limit()
    try:
        family = socket.AF_INET
        if ":" in address.host:
            family = socket.AF_INET6
        # asyncio turns off Nagle's algorithm, which delays answers, only for this protocol number.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
        return listening
    except OSError as error:
        place = f"{with_brackets(address.host)}:{address.port}"
        message = f"cannot listen on {place}: {describe_error(error)}"
        if error.errno == errno.EADDRINUSE:
            message = f"the address {place} is in use"
        hint = "Choose another address with --http HOST:PORT."
        raise Unavailable(message, hint=hint) from None


def with_brackets(host: str) -> str:
    """Return a host as it is written before a port: `[::1]` for `::1`."""
    if ":" in host:
        return f"[{host}]"
    return host


def _raise_file_limit() -> None:
    """Let this process open 4096 files, or as many as the system allows.

    Never lowers the limit. Does nothing on Windows.
    """
    if sys.platform == "win32":
        return

    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    max_files = _FILES_PER_CONNECTION * MAX_CONNECTIONS
    if hard != resource.RLIM_INFINITY:
        max_files = min(hard, max_files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, max_files), hard))


def max_connections() -> int:
    """Return how many connections there may be: 1024, or half of the files that may be open.

    The other half is for notes and indexes.
    """
    if sys.platform == "win32":
        return MAX_CONNECTIONS

    import resource

    max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if max_files == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max_files // 2)
