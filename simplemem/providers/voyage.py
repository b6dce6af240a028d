"""The client of Voyage, which uses its package `voyageai` (the extra `voyage`)."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping
from typing import Any

from simplemem.errors import Unavailable, install_hint
from simplemem.providers.addresses import VOYAGE_URL, Address
from simplemem.providers.client import ServiceClient, is_web_page
from simplemem.providers.keys import Key
from simplemem.providers.retry import TransientError


class VoyageClient(ServiceClient):
    """Sends requests with the package `voyageai`, through any proxy that the environment names.

    Never raises errors of the package, because they quote what was sent.
    """

    def __init__(
        self,
        name: str,
        address: Address,
        key: Key,
        *,
        timeout: float = 30.0,
        section: str = "embed",
    ) -> None:
        """Create a client, without connecting.

        Raises Unavailable if the package `voyageai` is not installed.
        """
        if importlib.util.find_spec("voyageai") is None:
            raise Unavailable(
                "the provider voyage needs the package voyageai",
                hint=install_hint("voyage"),
            )
        super().__init__(name, address, key, timeout=timeout, section=section)

    def attempt(self, path: str, payload: Mapping[str, Any], seconds: float) -> Any:
        """Send a request once, and return {"data": rows} with the rows of the answer.

        `path` names the resource, "Embedding" or "Reranking". The client class of the package is
        not used: it loses which vector belongs to which text. Raises TransientError, RequestRefused
        or Unavailable, also if there is no key.
        """
        import requests  # with voyageai: 1 s
        import voyageai

        key = self.key.value()
        if key is None:
            raise Unavailable(
                f"{self.name} needs a key",
                hint=f"Set {self.key.setting}, or the environment variable VOYAGE_API_KEY.",
            )
        # Otherwise the package logs every text that it sends.
        logging.getLogger("voyage").setLevel(logging.WARNING)
        if not voyageai.requestssession:
            voyageai.requestssession = requests.Session()  # one connection for all threads

        # For Voyage itself, the package chooses the address by the kind of the key.
        base_url = None if self.address.url == VOYAGE_URL else self.address.url
        arguments = {
            **payload,
            "api_key": key,
            "base_url": base_url,
            "request_timeout": seconds,
        }
        try:
            rows = getattr(voyageai, path).create(**arguments).data
            return {"data": [dict(row) for row in rows]}
        except Exception as error:  # noqa: BLE001 - a strange answer can raise any error there
            raise self._translate(error, payload, key) from None

    def _translate(self, error: Exception, payload: Mapping[str, Any], key: str) -> Unavailable:
        """Return (not raise) our error for one of the package's, without what was sent."""
        import voyageai

        if isinstance(error, voyageai.error.Timeout):
            return TransientError("no answer in time")
        if isinstance(error, voyageai.error.APIConnectionError):
            return TransientError("it cannot be reached or the connection was interrupted")

        status = getattr(error, "http_status", None)
        body = str(getattr(error, "http_body", None) or "").encode()
        if is_web_page(body):
            return self.unexpected_page()
        if status is None or 200 <= status < 300:
            return TransientError("its answer does not follow the protocol or is incomplete")
        return self.error_for(status, getattr(error, "headers", {}), body, payload, key)
