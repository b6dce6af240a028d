"""The signs of all passages' vectors in memory, 32 bytes a passage of 256 numbers: they choose, the vectors decide.

The signs that differ least from the question's are weighed by the question's own numbers, and of the notes that remain
the vectors are read from the table and compared exactly. A filter that leaves few notes needs no signs at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import apsw

from simplemem.index.matrix import holds, stored, together, unit
from simplemem.index.text import BLOCK, SHIFT
from simplemem.index.vectors import Nearness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

_WEIGHED = 8_192  # passages: 400 for each of twenty that are wanted (limits.md B.2: 64 for each, unweighed)
_READ = 400  # notes at least, and twice as many as are wanted
_FEW = 1_000  # notes: their vectors are read at once
_AT_ONCE = 32_768  # passages, as the processor's cache holds them


@dataclass(frozen=True, slots=True)
class Codes:
    """The signs of passages, note by note: a row of words of 64 signs for each passage, word by word."""

    notes: Ids  # with a passage
    counts: NDArray[np.bool_]  # whether a note is what it was when it was loaded
    owners: NDArray[np.int32]  # of each passage, the row of its note
    words: NDArray[np.uint64]
    dimension: int

    @classmethod
    def load(cls, db: apsw.Connection, dimension: int, notes: Sequence[int] | None) -> Codes:
        """The signs of some notes, or of all."""
        import numpy as np

        places, parts = [np.empty(0, np.int64)], [np.empty((_words(dimension), 0), np.uint64)]
        for ids, raw in stored(db, dimension, notes, 0, BLOCK):
            places.append(ids >> SHIFT)
            parts.append(_signs(raw))
        of_passages = np.concatenate(places)
        first = np.diff(of_passages, prepend=-1) != 0
        distinct = of_passages[first]
        owners = (np.cumsum(first) - 1).astype(np.int32)
        return cls(distinct, np.ones(len(distinct), bool), owners, np.concatenate(parts, axis=1), dimension)

    def joined(self, other: Codes) -> Codes:
        """The notes of both."""
        import numpy as np

        return Codes(
            np.concatenate((self.notes, other.notes)),
            np.concatenate((self.counts, other.counts)),
            np.concatenate((self.owners, other.owners + np.int32(len(self.notes)))),
            np.concatenate((self.words, other.words), axis=1),
            self.dimension,
        )

    def without(self, notes: Collection[int]) -> Codes:
        """All but these notes."""
        return replace(self, counts=self.counts & ~holds(notes, self.notes))

    def nearest(
        self, db: apsw.Connection, /, asked: Floats, ids: Ids | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]:
        """The nearest notes, and those in `also`."""
        import numpy as np

        keep = self.counts if ids is None else self.counts & np.isin(self.notes, ids)
        rows = np.flatnonzero(keep)
        if len(rows) > max(_FEW, 2 * limit):
            likely = self._likely(asked, keep, max(_READ, 2 * limit))
            rows = np.union1d(likely, rows[holds(also, self.notes[rows])])
        chosen = np.sort(self.notes[rows])
        near = self._best(db, asked, chosen, 0, BLOCK)
        if len(chosen) > limit:
            wanted = holds(also, chosen)
            wanted[np.argpartition(-near, limit)[:limit]] = True
            chosen, near = chosen[wanted], near[wanted]
        return together(chosen, near, np.maximum(self._best(db, asked, chosen, BLOCK, 1 << SHIFT), 0))

    def _likely(self, asked: Floats, keep: NDArray[np.bool_], limit: int) -> Ids:
        """The rows of the notes that are likely the nearest."""
        import numpy as np

        differ = self._differences(asked)
        if not keep.all():
            differ[~keep[self.owners]] = self.dimension + 1
        upto = np.searchsorted(np.cumsum(np.bincount(differ)), min(_WEIGHED, len(differ)))
        near = np.flatnonzero(differ <= min(int(upto), self.dimension))
        near = near[np.argsort(differ[near], kind="stable")[: 2 * _WEIGHED]]
        signs = np.unpackbits(self.words[:, near].T.copy().view(np.uint8), axis=1, count=self.dimension)
        weighed = signs.astype(np.float32) @ asked
        best_first = self.owners[near[np.argsort(-weighed, kind="stable")]]
        _, first = np.unique(best_first, return_index=True)
        return best_first[np.sort(first)[:limit]].astype(np.int64)

    def _differences(self, asked: Floats) -> NDArray[np.uint16]:
        """In how many signs each passage differs from the question."""
        import numpy as np

        signs = _signs(asked.reshape(1, -1))[:, 0]
        differ = np.empty(self.words.shape[1], np.uint16)
        for first in range(0, len(differ), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            total = differ[part]
            total[:] = _ones(self.words[0, part] ^ signs[0])
            for word in range(1, len(signs)):
                total += _ones(self.words[word, part] ^ signs[word])
        return differ

    def _best(self, db: apsw.Connection, asked: Floats, notes: Ids, first: int, after: int) -> Floats:
        """The best of the vectors of each of some notes, which come in order; -1 where there is none."""
        import numpy as np

        best = np.full(len(notes), -1, np.float32)
        for ids, raw in stored(db, self.dimension, notes.tolist(), first, after):
            np.maximum.at(best, np.searchsorted(notes, ids >> SHIFT), unit(raw) @ asked)
        return best


def _words(dimension: int) -> int:
    return -(-dimension // 64)


def _signs(rows: NDArray[np.int8] | Floats) -> NDArray[np.uint64]:
    """The signs of rows, a column a row."""
    import numpy as np

    packed = np.zeros((len(rows), 8 * _words(rows.shape[1])), np.uint8)
    signs = np.packbits(rows > 0, axis=1)
    packed[:, : signs.shape[1]] = signs
    return np.ascontiguousarray(packed.view(np.uint64).T)


def _ones(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """How many bits are set."""
    import numpy as np

    if hasattr(np, "bitwise_count"):
        counted: NDArray[np.uint8] = np.bitwise_count(words)
        return counted
    words = words - ((words >> np.uint64(1)) & np.uint64(0x5555555555555555))  # numpy 1
    words = (words & np.uint64(0x3333333333333333)) + ((words >> np.uint64(2)) & np.uint64(0x3333333333333333))
    words = (words + (words >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint8)
