"""Vectors from a model on this machine, by sentence-transformers (the extra `transformer`).

Nothing is fetched unless `embed.download` says so: a model is a gigabyte, and a memory should not surprise its owner.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from simplemem.embed import Choice
from simplemem.embed.asked import Asked, Purpose, name_of_space
from simplemem.embed.prefixes import Prefixes, prefixes_of
from simplemem.errors import Unavailable
from simplemem.remote.patience import Patience

_MODEL = "BAAI/bge-small-en-v1.5"
_BATCH = 32
_LOADING_SECONDS = 600.0


def transformer(choice: Choice) -> Transformer:
    """The embedder that the settings describe. The model itself is loaded at the first use."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise Unavailable(
            "the package sentence-transformers is not installed",
            hint="`pip install 'simplemem-vault[transformer]'` brings it, and PyTorch with it.",
        )
    model = choice.model or _MODEL
    prefixes = prefixes_of(model, choice.query_prefix, choice.document_prefix)
    name = name_of_space("transformer", model, where="", dimensions=choice.dimensions, prefixes=prefixes)
    return Transformer(name, os.path.expanduser(model), prefixes, choice)


class Transformer(Asked):
    def __init__(self, name: str, model: str, prefixes: Prefixes, choice: Choice) -> None:
        super().__init__(
            name, remote=False, batch=choice.batch or _BATCH, dimension=choice.dimensions, prefixes=prefixes
        )
        self._model_name = model
        self._dimensions = choice.dimensions
        self._download = choice.download
        self._model: Any = None
        self._loading = threading.Lock()
        self._patience = Patience(name, timeout=max(choice.timeout_seconds, _LOADING_SECONDS), attempts=1)

    def _vectors(
        self, texts: list[str], purpose: Purpose, deadline: float | None, stopped: Callable[[], bool]
    ) -> list[bytes]:
        """A question does not wait for the model to be loaded: it goes on without, and a later one finds it there."""
        return self._patience.call(lambda _: self._encoded(texts, purpose), deadline=deadline, stopped=stopped)

    def close(self) -> None:
        self._patience.close()

    def _encoded(self, texts: list[str], purpose: Purpose) -> list[bytes]:
        model = self._loaded()
        given = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        shape: dict[str, Any] = {"batch_size": self.batch, "show_progress_bar": False, "convert_to_numpy": True}
        try:
            if self._prefixes.query or self._prefixes.document:
                rows = model.encode(given, prompt="", **shape)  # the model's own words would come on top of ours
            elif purpose == "query":
                rows = model.encode_query(given, **shape)
            else:
                rows = model.encode_document(given, **shape)
        except (RuntimeError, ValueError, MemoryError) as error:
            raise Unavailable(f"{self.name} failed ({type(error).__name__})") from error
        return self._checked(rows, len(texts))

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                if not self._download:
                    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # its libraries ask for news of what they have
                try:
                    from sentence_transformers import SentenceTransformer

                    _without_bars()
                    self._model = SentenceTransformer(
                        self._model_name,
                        local_files_only=not self._download,
                        truncate_dim=self._dimensions,
                        trust_remote_code=False,
                    )
                except (ImportError, OSError, ValueError, RuntimeError) as error:
                    raise Unavailable(
                        f"the model {self._model_name} is not on this machine, or cannot be loaded",
                        hint="embed.download = true lets it be fetched; embed.model may also be the path of a folder.",
                    ) from error
            return self._model


def _without_bars() -> None:
    """Loading weights draws a bar on stderr, which is where a server's log goes."""
    with suppress(ImportError):
        from transformers.utils import logging

        logging.disable_progress_bar()
