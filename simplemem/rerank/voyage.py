"""Voyage's rerankers, by their own client (the extra `voyage`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from simplemem.errors import Unavailable
from simplemem.remote.address import address_of
from simplemem.remote.client import retry_after
from simplemem.remote.failures import Passing, Refused
from simplemem.remote.keys import Key, Secret
from simplemem.remote.patience import Patience
from simplemem.remote.said import said
from simplemem.rerank.answer import in_order


class VoyageReranker:
    """One model of Voyage's. `url` stands in for Voyage's own address."""

    def __init__(
        self, model: str, key: Secret | Mapping[str, str] | None, *, key_setting: str = "rerank.api_key", url: str = ""
    ) -> None:
        _client_package()
        address = address_of(url, "rerank.url") if url.strip() else None
        self.name = f"voyage/{model}"
        self.remote = True  # its package sends through any proxy that the environment names, to this machine too
        self._model = model
        self._url = address.url if address is not None else None
        self._key = Key(key, setting=key_setting, otherwise="VOYAGE_API_KEY")
        self._key_setting = key_setting
        self._patience = Patience(self.name)

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        return self._patience.call(lambda seconds: self._asked(query, list(texts), seconds), deadline=deadline)

    def close(self) -> None:
        self._patience.close()

    def _asked(self, query: str, texts: list[str], seconds: float) -> list[float]:
        voyageai = _client_package()
        key = self._key.value()
        if key is None:
            raise Unavailable(
                f"{self.name} needs a key", hint=f"Set {self._key_setting} or the environment variable VOYAGE_API_KEY."
            )
        client = voyageai.Client(api_key=key, max_retries=0, timeout=seconds, base_url=self._url)
        try:
            found = client.rerank(query, texts, self._model, truncation=True).results
        except voyageai.error.VoyageError as error:
            raise self._failure(error, [query, texts], key) from None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise Unavailable(f"{self.name} gave an answer without scores") from None
        return in_order(self.name, ((row.index, row.relevance_score) for row in found), len(texts))

    def _failure(self, error: Any, sent: Any, key: str) -> Exception:
        """What a failure of the client means. Its own messages may repeat what was sent: they are not shown."""
        status = error.http_status
        if status is None:
            slow = type(error).__name__ == "Timeout"
            return Passing("no answer in time" if slow else "it cannot be reached, or broke off")
        body = error.http_body
        sentence = said(body.encode() if isinstance(body, str) else b"", sent, key)
        spoken = f"{status}, {sentence}" if sentence else str(status)
        if status == 429 or status >= 500:
            return Passing(spoken, retry_after=retry_after(error.headers or {}), status=status)
        if status in (401, 403):
            return Unavailable(
                f"{self.name} does not accept the key: {spoken}", hint=f"Set {self._key_setting}.", status=status
            )
        if status in (400, 413, 422):
            return Refused(f"{self.name} refused the request: {spoken}", status=status)
        return Unavailable(f"{self.name} gave an answer that is not JSON: {spoken}", status=status)


def _client_package() -> Any:
    try:
        import voyageai
    except ImportError as error:
        raise Unavailable(
            "the reranker voyage needs the package voyageai",
            hint="Install it: `pip install 'simplemem-vault[voyage]'`.",
        ) from error
    # It logs what was sent (debug) and what a refusal says, which may repeat it (info).
    logging.getLogger("voyage").setLevel(logging.WARNING)
    return voyageai
