"""Vectors of texts by the embedder that the settings name, so that their cosines can be weighed.

The weights of the router were found with the bundled word vectors. Other embedders find unrelated
texts more similar, or less. `calibration.toml` has texts by which their cosines are brought to the
scale of the bundled ones.
"""

from __future__ import annotations

import threading
import time
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.errors import Unavailable
from simplemem.providers.api import Embedder
from simplemem.providers.word_vectors import shared_multilingual

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

_MAX_CACHED: Final = 4_000  # texts
_RETRY_SECONDS: Final = 60.0  # after a failure
_MIN_LENGTH: Final = 1e-9  # the least divisor
_MIN_CONTRAST: Final = 0.05  # between texts that belong together and others


class Calibration(NamedTuple):
    """How the vectors and cosines of an embedder are brought to the scale of the bundled ones."""

    center: Rows  # is subtracted from each vector
    slope: float
    offset: float


class ConfiguredEmbedder:
    """Computes unit vectors with the configured embedder, within a time. Guards a cache of them.

    Any failure is one of the embedder: the caller compares by the bundled vectors instead.
    """

    def __init__(self, load: Callable[[], Embedder | None], seconds: float) -> None:
        """Make it without loading anything.

        `load` returns the embedder, None if the settings name none but the bundled one. `seconds`
        is how long one call of `unit_vectors` may take.
        """
        self._load = load
        self._seconds = seconds
        self._cache: OrderedDict[str, Rows] = OrderedDict()
        self._calibration: Calibration | None = None
        self._retry_at = 0.0
        self._lock = threading.Lock()  # of the cache and the calibration

    @property
    def is_usable(self) -> bool:
        """Whether there is an embedder that has not failed within the last minute."""
        return self._load() is not None and time.monotonic() >= self._retry_at

    @property
    def is_remote(self) -> bool:
        """Whether texts leave this machine."""
        embedder = self._load()
        return embedder is not None and embedder.remote

    @property
    def reads_sentences(self) -> bool:
        """Whether the embedder should get whole sentences, and not only content words."""
        embedder = self._load()
        return embedder is not None and embedder.reads_sentences

    def unit_vectors(self, texts: Sequence[str]) -> Rows:
        """Return the unit vectors of texts, around the mean of the embedder. Blank ones get zeros.

        Raises Unavailable if the embedder fails, or does not have all vectors in time. Those that
        it had are kept, so that a later call gets further.
        """
        import numpy as np

        deadline = time.monotonic() + self._seconds
        with self._lock:
            calibration = self._calibrate(deadline)
            rows = self._rows(texts, deadline)
        centred = _normalized(rows - calibration.center)
        is_blank = np.array([not text.strip() for text in texts])
        centred[is_blank] = 0
        return centred

    def scale(self, cosine: float) -> float:
        """Return what a cosine of this embedder would be among the bundled vectors.

        `unit_vectors` was called before.
        """
        if self._calibration is None:
            return cosine
        return self._calibration.slope * cosine + self._calibration.offset

    def _calibrate(self, deadline: float) -> Calibration:
        """Return the calibration, which the first call computes. Raises Unavailable."""
        if self._calibration is None:
            messages, replies = _calibration_texts()
            rows = self._rows([*messages, *replies], deadline)
            self._calibration = _calibration_of(rows, [*messages, *replies])
        return self._calibration

    def _rows(self, texts: Sequence[str], deadline: float) -> Rows:
        """Return the unit vectors of texts as the embedder makes them. Raises Unavailable."""
        import numpy as np

        embedder = self._load()
        if embedder is None:
            raise Unavailable("no embedder is configured")

        vectors: dict[str, Rows] = {}
        for text in dict.fromkeys(texts):
            if text in self._cache:
                self._cache.move_to_end(text)
                vectors[text] = self._cache[text]
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        for start in range(0, len(missing), embedder.batch):
            batch = missing[start : start + embedder.batch]
            rows = self._embed(embedder, batch, deadline, is_first=start == 0)
            vectors.update(zip(batch, rows, strict=True))
            self._keep(batch, rows)
        return np.stack([vectors[text] for text in texts])

    def _embed(
        self, embedder: Embedder, texts: Sequence[str], deadline: float, *, is_first: bool
    ) -> Rows:
        """Return the unit vectors of a batch of texts. Raises Unavailable.

        If the first batch of a call fails or is late, the embedder is not asked for a minute. One
        that is only slow gets further with each message.
        """
        import numpy as np

        def is_late() -> bool:
            return time.monotonic() > deadline

        if is_late():
            raise Unavailable(f"the embedder {embedder.name} takes too long")
        try:
            vectors = embedder.documents(texts, stopped=is_late)
        except Unavailable:
            if is_first or not is_late():
                self._retry_at = time.monotonic() + _RETRY_SECONDS
            raise
        rows = np.array([np.frombuffer(vector, np.int8) for vector in vectors], np.float32)
        return _normalized(rows)

    def _keep(self, texts: Sequence[str], rows: Rows) -> None:
        """Put the vectors of texts into the cache, and let those go that were used least lately."""
        self._cache.update(zip(texts, rows, strict=True))
        while len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)


def _calibration_texts() -> tuple[list[str], list[str]]:
    """Return the messages of `calibration.toml`, and their replies in the same order."""
    path = Path(__file__).with_name("calibration.toml")
    exchanges = tomllib.loads(path.read_text(encoding="utf-8"))["exchanges"]
    messages = [message for message, _ in exchanges]
    replies = [reply for _, reply in exchanges]
    return messages, replies


def _calibration_of(rows: Rows, texts: Sequence[str]) -> Calibration:
    """Return the calibration of an embedder that made `rows` of the texts of calibration.

    By it, a message and its reply have on average the cosine that they have among the bundled
    vectors, and so have a message and the reply to another one.
    """
    center = rows.mean(axis=0)
    related, unrelated = _mean_cosines(_normalized(rows - center))
    bundled = shared_multilingual().unit_vectors(texts)
    bundled_related, bundled_unrelated = _mean_cosines(bundled)

    contrast = max(related - unrelated, _MIN_CONTRAST)
    slope = (bundled_related - bundled_unrelated) / contrast
    return Calibration(center, slope, bundled_unrelated - slope * unrelated)


def _mean_cosines(rows: Rows) -> tuple[float, float]:
    """Return the mean cosine of a message and its reply, and of a message and another reply.

    The first half of the rows is of messages, the other one of their replies, in the same order.
    """
    count = len(rows) // 2
    cosines = rows[:count] @ rows[count:].T
    related = float(cosines.diagonal().mean())
    total = float(cosines.sum())
    unrelated = (total - related * count) / (count * (count - 1))
    return related, unrelated


def _normalized(rows: Rows) -> Rows:
    """Return rows of length one; rows of zeros stay as they are."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit_rows: Rows = rows / np.maximum(lengths, _MIN_LENGTH)
    return unit_rows
