"""Check the address of a service, and find out whether it is on this machine."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from simplemem.errors import Invalid

VOYAGE_URL = "https://api.voyageai.com/v1"
_EXAMPLE = "Give a URL such as http://localhost:1234/v1 or https://api.openai.com/v1."


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a service, without a secret in it."""

    url: str  # without a slash at its end
    host: str  # with its port, for messages
    is_local: bool  # whether the service is on this machine


def parse_address(url: str, setting: str = "embed.url") -> Address:
    """Return the address in the value of a setting. Sends nothing.

    `setting` is the name of the setting, for messages. Raises Invalid if the value is no http or
    https URL, or has a query, a fragment, a user name or a password: addresses are shown and
    logged, so they must not contain a key.
    """
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        raise Invalid(f"the setting {setting} is not a URL", hint=_EXAMPLE) from error

    hostname = parts.hostname
    if parts.scheme not in ("http", "https") or not hostname or parts.query or parts.fragment:
        raise Invalid(
            f"the setting {setting} must be an http or https URL without a query or fragment",
            hint=_EXAMPLE,
        )
    if parts.username is not None or parts.password is not None:
        raise Invalid(
            f"the setting {setting} contains a user name or a password",
            hint="Put the key into its own setting.",
        )

    is_ipv6 = ":" in hostname
    host = f"[{hostname}]{port}" if is_ipv6 else f"{hostname}{port}"
    path = parts.path.rstrip("/")
    return Address(f"{parts.scheme}://{host}{path}", host, _is_this_machine(hostname))


def _is_this_machine(hostname: str) -> bool:
    """Return whether a host is a loopback address or `localhost`. Resolves no name."""
    try:
        return ipaddress.ip_address(hostname).is_loopback
    except ValueError:  # a name
        return hostname == "localhost"
