"""How alike some entries are: by the vectors the index has of them, else by their words. One matrix, compared row by row.

Vectors are those of the passages, whichever embedder made them; nothing is embedded for it. Without any, words weighed by
how few entries have them stand in, and whoever asks is told.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from simplemem.kinds.learned.entries import Entry
from simplemem.note.words import content_words, words_in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BUCKETS: Final = 1024  # of words, where there are no vectors
_BLOCK: Final = 256


class Likeness:
    """Some entries and how near each is to each. `method` says by what, in a few words."""

    def __init__(self, rows: NDArray[np.float32], method: str, unknown: int = 0) -> None:
        self._rows = rows
        self.method = method
        self.unknown = unknown  # entries that nothing is known of

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, some: Sequence[int]) -> Likeness:
        """The likeness of some of them, counted anew."""
        return Likeness(self._rows[list(some)], self.method, self.unknown)

    def to(self, number: int) -> list[float]:
        """How near every entry is to one of them."""
        found: list[float] = (self._rows @ self._rows[number]).tolist()
        return found

    def near(self, number: int, least: float) -> list[int]:
        """The entries that are at least so near to one of them, itself not among them."""
        import numpy as np

        scores = self._rows @ self._rows[number]
        return [int(k) for k in np.flatnonzero(scores >= least - 1e-6) if k != number]

    def pairs(self, least: float) -> Iterator[tuple[int, int, float]]:
        """All pairs that are at least so near, each once."""
        import numpy as np

        for start in range(0, len(self._rows), _BLOCK):
            scores = self._rows[start : start + _BLOCK] @ self._rows.T
            for one, other in zip(*np.nonzero(scores >= least - 1e-6), strict=True):
                if start + one < other:
                    yield int(start + one), int(other), round(min(1.0, float(scores[one, other])), 4)


def likeness_of(entries: Sequence[Entry], vectors: Sequence[Sequence[bytes]], embedder: str) -> Likeness:
    """The likeness of entries, given the vectors of each one's passages."""
    if any(vectors):
        rows, unknown = _by_meaning(vectors)
        return Likeness(rows, f"embedding ({embedder})", unknown)
    return Likeness(_by_words(entries), "words (there are no vectors)")


def _by_meaning(vectors: Sequence[Sequence[bytes]]) -> tuple[NDArray[np.float32], int]:
    import numpy as np

    width = next(len(found[0]) for found in vectors if found)
    rows = np.zeros((len(vectors), width), np.float32)
    unknown = 0
    for k, found in enumerate(vectors):
        same = [each for each in found if len(each) == width]
        if not same:
            unknown += 1
            continue
        passages = np.frombuffer(b"".join(same), np.int8).reshape(len(same), width).astype(np.float32)
        rows[k] = _of_unit_length(passages).sum(axis=0)
    unit: NDArray[np.float32] = _of_unit_length(rows)
    return unit, unknown


def _by_words(entries: Sequence[Entry]) -> NDArray[np.float32]:
    import numpy as np

    counts = [Counter(content_words(words_in_order(entry.text))) for entry in entries]
    having = Counter(word for count in counts for word in count)
    rows = np.zeros((len(entries), _BUCKETS), np.float32)
    for k, count in enumerate(counts):
        for word, times in count.items():
            rare = math.log(1 + len(entries) / having[word])
            rows[k, zlib.crc32(word.encode()) % _BUCKETS] += (1 + math.log(times)) * rare
    unit: NDArray[np.float32] = _of_unit_length(rows)
    return unit


def _of_unit_length(rows: Any) -> Any:
    import numpy as np

    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
