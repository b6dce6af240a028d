"""Small codes of all passages' vectors in memory, 160 bytes a passage of 256 numbers: they choose, the vectors decide.

The signs of a vector say on which side of the middle of all vectors it lies, number by number. The passages whose signs
differ least from the question's are weighed by four bits a number; the vectors of the notes that remain are read from the
table and compared exactly. A filter that leaves few notes needs no codes at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import apsw

from simplemem.index.facts import BLOCK, SHIFT
from simplemem.index.matrix import grown, holds, stored, together, unit
from simplemem.index.vectors import Nearness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

_WEIGHED = 16_384  # passages
_WEIGHED_AT_ONCE = 4_096  # as the processor's cache holds them
_READ = 400  # notes at least, and twice as many as are wanted
_FEW = 1_000  # notes: their vectors are read at once
_AT_ONCE = 32_768  # passages' signs
_SAMPLE = 2_000  # notes, for the middle


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes note by note: of each passage a row of words of 64 signs, kept word by word, and a row of halves of bytes."""

    notes: Ids  # with a passage
    counts: NDArray[np.bool_]  # whether a note is what it was when it was loaded
    owners: NDArray[np.int32]  # of each passage, the row of its note
    signs: NDArray[np.uint64]
    halves: NDArray[np.uint8]
    steps: Floats  # of each passage, how much one of sixteen is
    middle: Floats

    @classmethod
    def load(cls, db: apsw.Connection, dimension: int) -> Codes:
        """The codes of all notes."""
        every = max(1, int(db.execute("SELECT count(*) FROM notes").get) // _SAMPLE)
        some = [row[0] for row in db.execute("SELECT id FROM notes WHERE id % ? = 0", (every,))]
        return cls._coded(db, None, _middle(db, dimension, some))

    def of(self, db: apsw.Connection, notes: Sequence[int]) -> Codes:
        """The codes of some notes as they are now."""
        return self._coded(db, notes, self.middle)

    @classmethod
    def _coded(cls, db: apsw.Connection, notes: Sequence[int] | None, middle: Floats) -> Codes:
        import numpy as np

        dimension, at = len(middle), 0
        most = 16 if notes is not None else int(db.execute("SELECT count(*) FROM passages").get)
        places, signs = [np.empty(0, np.int64)], [np.empty((-(-dimension // 64), 0), np.uint64)]
        halves, steps = np.empty((most, -(-dimension // 2)), np.uint8), np.empty(most, np.float32)
        for ids, raw in stored(db, dimension, notes, 0, BLOCK):
            rows = unit(raw) - middle
            places.append(ids >> SHIFT)
            signs.append(_signs(rows))
            halves, steps = grown(halves, at + len(ids)), grown(steps, at + len(ids))
            halves[at : at + len(ids)], steps[at : at + len(ids)] = _halves(rows)
            at += len(ids)
        of_passages = np.concatenate(places)
        first = np.diff(of_passages, prepend=-1) != 0
        distinct = of_passages[first]
        owners = (np.cumsum(first) - 1).astype(np.int32)
        return cls(
            distinct,
            np.ones(len(distinct), bool),
            owners,
            np.concatenate(signs, axis=1),
            halves[:at],
            steps[:at],
            middle,
        )

    def joined(self, other: Codes) -> Codes:
        """The notes of both."""
        import numpy as np

        return Codes(
            np.concatenate((self.notes, other.notes)),
            np.concatenate((self.counts, other.counts)),
            np.concatenate((self.owners, other.owners + np.int32(len(self.notes)))),
            np.concatenate((self.signs, other.signs), axis=1),
            np.concatenate((self.halves, other.halves)),
            np.concatenate((self.steps, other.steps)),
            self.middle,
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
        most = len(self.middle)
        if not keep.all():
            differ[~keep[self.owners]] = most + 1
        upto = np.searchsorted(np.cumsum(np.bincount(differ)), min(_WEIGHED, len(differ)))
        near = np.flatnonzero(differ <= min(int(upto), most))
        near = near[np.argsort(differ[near], kind="stable")[:_WEIGHED]]
        best_first = self.owners[near[np.argsort(-self._weighed(near, asked), kind="stable")]]
        _, first = np.unique(best_first, return_index=True)
        return best_first[np.sort(first)[:limit]].astype(np.int64)

    def _differences(self, asked: Floats) -> NDArray[np.uint16]:
        """In how many signs each passage differs from the question."""
        import numpy as np

        signs = _signs((asked - self.middle).reshape(1, -1))[:, 0]
        differ = np.empty(self.signs.shape[1], np.uint16)
        for first in range(0, len(differ), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            total = differ[part]
            total[:] = _ones(self.signs[0, part] ^ signs[0])
            for word in range(1, len(signs)):
                total += _ones(self.signs[word, part] ^ signs[word])
        return differ

    def _weighed(self, passages: Ids, asked: Floats) -> Floats:
        """The question's product with some passages, but for what is the same for all."""
        import numpy as np

        even, odd = np.zeros((2, self.halves.shape[1]), np.float32)
        even[:], odd[: len(asked) // 2] = asked[0::2], asked[1::2]
        found = np.empty(len(passages), np.float32)
        for first in range(0, len(passages), _WEIGHED_AT_ONCE):
            part = slice(first, first + _WEIGHED_AT_ONCE)
            halves = self.halves[passages[part]]
            found[part] = (halves >> 4).astype(np.float32) @ even + (halves & 15).astype(np.float32) @ odd
        found -= np.float32(8 * (even.sum() + odd.sum()))
        found *= self.steps[passages]
        return found

    def _best(self, db: apsw.Connection, asked: Floats, notes: Ids, first: int, after: int) -> Floats:
        """The best of the vectors of each of some notes, which come in order; -1 where there is none."""
        import numpy as np

        best = np.full(len(notes), -1, np.float32)
        for ids, raw in stored(db, len(self.middle), notes.tolist(), first, after):
            np.maximum.at(best, np.searchsorted(notes, ids >> SHIFT), unit(raw) @ asked)
        return best


def _middle(db: apsw.Connection, dimension: int, notes: Sequence[int]) -> Floats:
    """The mean of the passages of some notes: what all vectors have in common tells none from another."""
    import numpy as np

    total, count = np.zeros(dimension, np.float32), 0
    for ids, raw in stored(db, dimension, notes, 0, BLOCK):
        total += unit(raw).sum(axis=0)
        count += len(ids)
    return total / np.float32(max(1, count))


def _signs(rows: Floats) -> NDArray[np.uint64]:
    """The signs of rows, a column a row."""
    import numpy as np

    packed = np.zeros((len(rows), 8 * -(-rows.shape[1] // 64)), np.uint8)
    signs = np.packbits(rows > 0, axis=1)
    packed[:, : signs.shape[1]] = signs
    return np.ascontiguousarray(packed.view(np.uint64).T)


def _halves(rows: Floats) -> tuple[NDArray[np.uint8], Floats]:
    """Rows as numbers from 1 to 15, two a byte, and what one of them is worth."""
    import numpy as np

    if rows.shape[1] % 2:
        rows = np.pad(rows, ((0, 0), (0, 1)))
    steps = np.maximum(np.abs(rows).max(axis=1), np.float32(1e-9)) / np.float32(7)
    numbers = (np.rint(rows / steps[:, None]) + 8).astype(np.uint8)
    return numbers[:, 0::2] << 4 | numbers[:, 1::2], steps


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
