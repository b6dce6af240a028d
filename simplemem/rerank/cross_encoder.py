"""A cross-encoder on this machine, by sentence-transformers (the extra `transformer`). Nothing is sent anywhere, and
nothing is downloaded unless a person allowed it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simplemem.errors import SimplememError, Unavailable
from simplemem.remote.breaker import Breaker
from simplemem.rerank.answer import in_order

DEFAULT_MODEL = "cross-encoder/ms-marco-MiniLM-L6-v2"
_BATCH = 2  # texts between two looks at the clock


class CrossEncoderReranker:
    """A model in memory. Scoring is shared by threads, one at a time."""

    remote = False

    def __init__(self, model: str, *, download: bool) -> None:
        self.name = called(model)
        self._model = _loaded(model.strip() or DEFAULT_MODEL, download=download)
        self._lock = threading.Lock()
        self._breaker = Breaker()
        # The first pair takes far longer than those after it, and shows whether the model is one that scores pairs.
        in_order(self.name, enumerate(self._predicted("question", ["answer"], math.inf)), 1)

    def scores(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        if not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise Unavailable(f"{self.name} is still at work for another search")
        try:
            if not self._breaker.allows():
                rests = max(1, round(self._breaker.rests_for()))
                raise Unavailable(f"{self.name} failed or was too slow several times (it is tried again in {rests} s)")
            return self._counted(query, texts, deadline)
        finally:
            self._lock.release()

    def _counted(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        try:
            found = in_order(self.name, enumerate(self._predicted(query, texts, deadline)), len(texts))
        except SimplememError:
            self._breaker.failed()
            raise
        except BaseException:
            self._breaker.gave_up()
            raise
        self._breaker.succeeded()
        return found

    def _predicted(self, query: str, texts: Sequence[str], deadline: float) -> list[Any]:
        found: list[Any] = []
        while len(found) < len(texts):
            if time.monotonic() >= deadline:
                raise Unavailable(f"{self.name} had time for {len(found)} of {len(texts)} texts")
            pairs = [(query, text) for text in texts[len(found) : len(found) + _BATCH]]
            try:
                found += self._model.predict(pairs, batch_size=_BATCH, show_progress_bar=False).tolist()
            except (RuntimeError, ValueError, IndexError) as error:  # out of memory, or not a model for pairs
                raise Unavailable(f"{self.name} failed: {type(error).__name__}") from error
        return found

    def close(self) -> None:
        pass


def called(model: str) -> str:
    """The name of the reranker with this model, which need not be loaded for it."""
    chosen = model.strip() or DEFAULT_MODEL
    return chosen if chosen.startswith("cross-encoder/") else f"cross-encoder/{Path(chosen).name}"


def _loaded(model: str, *, download: bool) -> Any:
    try:
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging
    except ImportError as error:
        raise Unavailable(
            "a local cross-encoder needs the package sentence-transformers",
            hint="Install it: `pip install 'simplemem-vault[transformer]'`.",
        ) from error
    logging.disable_progress_bar()
    folder = _folder_of(model)
    if folder is None and not download:
        raise Unavailable(
            f"the model {model} is not on this machine",
            hint="rerank.model is the folder of a model, or the name of one that was downloaded before; "
            "rerank.download = true allows it to be fetched once.",
        )
    try:
        return CrossEncoder(folder or model, local_files_only=not download, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"the model {model} cannot be loaded", hint="It must be a cross-encoder with one score for a pair of texts."
        ) from error


def _folder_of(model: str) -> str | None:
    """Where a model lies: a folder, or its place among the downloaded ones. Looking it up here, and not by its name in
    the library, keeps the library from asking the network about it."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    place = Path(model).expanduser()
    if place.is_absolute() or model.startswith("."):
        return str(place) if place.is_dir() else None
    try:
        found = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return None
    return str(Path(found).parent) if isinstance(found, str) else None
