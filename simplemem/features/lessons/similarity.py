"""How similar lessons are, by the vectors of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from simplemem.features.lessons.contradictions import Pair
    from simplemem.features.lessons.lesson import Lesson
    from simplemem.store import EnhancedStore

_BLOCK_SIZE: Final = 256  # lessons that are compared with all others at once
_MAX_SAMPLE: Final = 500  # lessons whose similarities give the usual ones
MAX_USUAL_THRESHOLD: Final = 0.75
"""Lessons of this similarity are about one thing in every vault."""

_ROUNDING: Final = 1e-6
_MIN_THRESHOLD: Final = 1e-9  # a lesson without a vector is similar to nothing


class SimilarityMatrix:
    """Guards the vectors of some lessons: one row per lesson, zeros for one without a vector."""

    def __init__(self, store: EnhancedStore, lessons: Sequence[Lesson]) -> None:
        """Read the vectors of these lessons from the index of a store."""
        # Imported here, since a process that saves a lesson does not need it.
        import numpy as np

        vectors = store.extension.vectors_of([lesson.path for lesson in lessons])
        width = max(map(len, vectors.values()), default=1)
        rows = [vectors.get(lesson.path) or [0.0] * width for lesson in lessons]
        self._rows: NDArray[np.float32] = np.array(rows, np.float32).reshape(-1, width)

    def usual_threshold(self) -> float:
        """Return the similarity from which two of these lessons are about one thing, up to 0.75.

        It is two standard deviations above the mean, because the similarities of embedders differ
        in height. Of more than 500 lessons, 500 are compared.
        """
        import numpy as np

        step = max(1, -(-len(self._rows) // _MAX_SAMPLE))
        sample = self._rows[::step]
        if len(sample) < 2:
            return MAX_USUAL_THRESHOLD
        similarities = (sample @ sample.T)[np.triu_indices(len(sample), 1)]
        threshold = float(similarities.mean() + 2 * similarities.std())
        return min(MAX_USUAL_THRESHOLD, threshold)

    def similar_pairs(self, min_similarity: float) -> list[Pair]:
        """Return all pairs of lessons with at least this similarity, each once.

        A pair has the positions of the lessons, the smaller one first. A lesson without a vector is
        in no pair.
        """
        import numpy as np

        threshold = max(_MIN_THRESHOLD, min_similarity - _ROUNDING)
        pairs: list[Pair] = []
        for start in range(0, len(self._rows), _BLOCK_SIZE):
            block = self._rows[start : start + _BLOCK_SIZE]
            is_similar = block @ self._rows[start:].T >= threshold

            # Within the block, each pair occurs twice, and each lesson is similar to itself.
            within_block = is_similar[:, : len(block)]
            within_block &= np.triu(np.ones_like(within_block), 1)
            positions = np.argwhere(is_similar) + start
            pairs += [(one, other) for one, other in positions.tolist()]
        return pairs

    def similarity(self, pair: Pair) -> float:
        """Return the similarity of two lessons, from 0 to 1; 0 if one has no vector."""
        one, other = pair
        similarity = float(self._rows[one] @ self._rows[other])
        return max(0.0, round(similarity, 4))
