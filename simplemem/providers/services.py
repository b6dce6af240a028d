"""Create the right client for a service."""

from __future__ import annotations

from simplemem.providers.addresses import Address
from simplemem.providers.client import ServiceClient
from simplemem.providers.keys import Key
from simplemem.providers.voyage import VoyageClient


def create_client(
    provider: str,
    name: str,
    address: Address,
    key: Key,
    *,
    timeout: float = 30.0,
    section: str = "embed",
) -> ServiceClient:
    """Return a client of a service, without connecting; for Voyage, one that uses its package.

    `name` is for messages; `section` is the table of settings that their hints name. Raises
    Unavailable if Voyage's package is not installed.
    """
    if provider == "voyage":
        return VoyageClient(name, address, key, timeout=timeout, section=section)
    return ServiceClient(name, address, key, timeout=timeout, section=section)
