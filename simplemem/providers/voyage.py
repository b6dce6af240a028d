"""Voyage, asked by its own package `voyageai` (the extra `voyage`), which is imported at the first use."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping
from typing import Any

from simplemem.errors import Unavailable
from simplemem.providers.client import VOYAGE, Passing, ServiceClient


class VoyageClient(ServiceClient):
    """Its resources, through any proxy of the environment, with errors in our words: its own repeat what was sent."""

    def __init__(self, *service: Any, **more: Any) -> None:
        if importlib.util.find_spec("voyageai") is None:
            way = "Install it with `pip install 'simplemem-vault[voyage]'`."
            raise Unavailable("the provider voyage needs the package voyageai", hint=way)
        super().__init__(*service, **more)

    def attempt(self, path: str, payload: Mapping[str, Any], seconds: float) -> Any:
        """The rows of one answer. The package's own client forgets which vector belongs to which text."""
        import requests
        import voyageai

        if (key := self.key.value()) is None:
            way = f"Set {self.key.setting}, or the environment variable VOYAGE_API_KEY."
            raise Unavailable(f"{self.name} needs a key", hint=way)
        logging.getLogger("voyage").setLevel(logging.WARNING)  # it would log every text it sends
        voyageai.requestssession = (
            voyageai.requestssession or requests.Session()
        )  # one connection for all threads
        try:
            base = (
                None if self.address.url == VOYAGE else self.address.url
            )  # at home the key says which it is
            asked = {**payload, "api_key": key, "base_url": base, "request_timeout": seconds}
            return {"data": [dict(row) for row in getattr(voyageai, path).create(**asked).data]}
        except Exception as error:  # noqa: BLE001 - the package's own, and what it stumbles over in an answer
            status, body = (
                getattr(error, "http_status", None),
                str(getattr(error, "http_body", None) or "").encode(),
            )
            if isinstance(error, voyageai.error.Timeout):
                raise Passing("no answer in time") from None
            if isinstance(error, voyageai.error.APIConnectionError):
                raise Passing("it cannot be reached or the connection was interrupted") from None
            if body.lstrip()[:1] == b"<":
                raise Unavailable(
                    f"{self.name} answered with a web page where JSON was expected"
                ) from None
            if status is None or 200 <= status < 300:
                raise Passing("its answer does not follow the protocol or is incomplete") from None
            raise self.failure_of(
                status, getattr(error, "headers", {}), body, payload, key
            ) from None
