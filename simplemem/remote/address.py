"""Where a service lives: a checked URL, and whether that is this machine."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from simplemem.errors import Invalid


@dataclass(frozen=True, slots=True)
class Address:
    """A service's base URL without a slash at its end, and its host and port for people."""

    url: str
    host: str
    local: bool  # nothing sent there leaves this machine
    encrypted: bool


def address_of(url: str, setting: str = "embed.url") -> Address:
    """The address a setting names. A key inside it is refused: addresses are shown and logged, keys are not."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise Invalid(f"the setting {setting} is not a URL", hint=_EXAMPLE) from error
    if parts.username is not None or parts.password is not None:
        raise Invalid(
            f"the setting {setting} holds a name or a password", hint="Put the key into the setting for the key."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"the setting {setting} is not the URL of a service", hint=_EXAMPLE)
    if parts.query or parts.fragment:
        raise Invalid(f"the setting {setting} must end with a path, without ? and #", hint=_EXAMPLE)
    host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    place = host if port is None else f"{host}:{port}"
    clean = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
    return Address(clean, place, _is_this_machine(parts.hostname), parts.scheme == "https")


_EXAMPLE = "For example http://localhost:1234/v1 or https://api.openai.com/v1."


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or (mapped is not None and mapped.is_loopback)
