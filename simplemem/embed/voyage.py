"""Vectors from Voyage, by its own package `voyageai` (the extra `voyage`). It is imported at the first use."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from typing import Any

from simplemem.embed import Choice
from simplemem.embed.asked import Asked, Purpose, in_order, name_of_space
from simplemem.embed.prefixes import Prefixes, prefixes_of
from simplemem.errors import Invalid, Unavailable
from simplemem.remote.address import Address, address_of
from simplemem.remote.keys import Key
from simplemem.remote.patience import Patience
from simplemem.remote.voyage import voyage_failure

_MODEL = "voyage-3.5"
_BATCH = 128
_LOCAL = ("voyage-4-nano",)  # its package would fetch this one and run it here


def voyage(choice: Choice) -> Voyage:
    """The embedder that the settings describe. Nothing is asked yet."""
    if importlib.util.find_spec("voyageai") is None:
        raise Unavailable(
            "the package voyageai is not installed", hint="`pip install 'simplemem-vault[voyage]'` brings it."
        )
    model = choice.model or _MODEL
    if model in _LOCAL:
        raise Invalid(f"{model} runs on this machine", hint="embed.provider = transformer is for such models.")
    address = address_of(choice.url) if choice.url else None
    prefixes = prefixes_of(model, choice.query_prefix, choice.document_prefix)
    where = address.host if address is not None else ""
    name = name_of_space("voyage", model, where=where, dimensions=choice.dimensions, prefixes=prefixes)
    return Voyage(
        Patience(name, timeout=choice.timeout_seconds),
        model,
        prefixes,
        address=address,
        key=Key(choice.api_key, otherwise="VOYAGE_API_KEY"),
        dimensions=choice.dimensions,
        batch=choice.batch or _BATCH,
    )


class Voyage(Asked):
    def __init__(
        self,
        patience: Patience,
        model: str,
        prefixes: Prefixes,
        *,
        address: Address | None,
        key: Key,
        dimensions: int | None,
        batch: int,
    ) -> None:
        # Always remote: its package sends through any proxy that the environment names, from this machine to this too.
        super().__init__(patience.name, remote=True, batch=batch, dimension=dimensions, prefixes=prefixes)
        self._patience = patience
        self._address = address
        self._key = key
        self._request: dict[str, Any] = {"model": model, "truncation": True}
        if dimensions is not None:
            self._request["output_dimension"] = dimensions

    def _vectors(
        self, texts: list[str], purpose: Purpose, deadline: float | None, stopped: Callable[[], bool]
    ) -> list[bytes]:
        return self._patience.call(
            lambda seconds: self._attempt(texts, purpose, seconds), deadline=deadline, stopped=stopped
        )

    def close(self) -> None:
        self._patience.close()

    def _attempt(self, texts: list[str], purpose: Purpose, seconds: float) -> list[bytes]:
        key = self._key.value()
        if key is None:
            raise Unavailable(
                f"{self.name} needs a key", hint="Set embed.api_key, or the environment variable VOYAGE_API_KEY."
            )
        import voyageai

        logging.getLogger("voyage").setLevel(logging.WARNING)  # it would log every text it sends
        given = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        try:
            # `Client.embed` forgets which vector belongs to which text; this is what it calls.
            answer = voyageai.Embedding.create(
                **self._request,
                input=given,
                input_type=purpose,
                api_key=key,
                base_url=self._address.url if self._address is not None else None,
                request_timeout=seconds,
            )
        except Exception as error:
            raise voyage_failure(error, self.name, given, key, "embed") from error
        return self._checked(in_order({"data": list(answer.data)}, len(texts), self.name), len(texts))
