"""A question and passages to scores: a provider a file, chosen by name. Off until a person asks for one.

A reranker reads the question and a passage together, so it orders a few candidates better than words and vectors do, and
costs far more for each. It never finds anything: what it scores was found before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from simplemem.errors import Invalid
from simplemem.remote.keys import Secret

PROVIDERS = ("none", "voyage", "http", "cross-encoder")


class Reranker(Protocol):
    """A provider that is ready. Texts leave this machine when it is `remote`."""

    name: str
    remote: bool

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """A score for each text, in the order of the texts; more is better, on whatever scale the provider has. Raises
        `Unavailable` rather than answer after the deadline (a `time.monotonic()`), or with fewer scores than texts."""
        ...

    def close(self) -> None: ...


def reranker_named(
    provider: str,
    *,
    url: str = "",
    model: str = "",
    key: Secret | Mapping[str, str] | None = None,
    key_setting: str = "rerank.api_key",
    download: bool = False,
) -> Reranker | None:
    """The provider of that name, loaded; None for "none". Nothing is asked over the network yet."""
    if provider == "none":
        return None
    if provider == "http":
        from simplemem.rerank.http import HttpReranker

        return HttpReranker(url, model, key)
    if provider == "voyage":
        from simplemem.rerank.voyage import VoyageReranker

        return VoyageReranker(model, key, key_setting=key_setting, url=url)
    if provider == "cross-encoder":
        from simplemem.rerank.cross_encoder import CrossEncoderReranker

        return CrossEncoderReranker(model, download=download)
    raise Invalid(f"there is no reranker called {provider!r}", hint=f"Known are: {', '.join(PROVIDERS)}.")
