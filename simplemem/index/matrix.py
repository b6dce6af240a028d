"""All vectors of some notes in memory, each compared with every question."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import apsw

from simplemem.index import among
from simplemem.index.facts import BLOCK, SHIFT
from simplemem.index.vectors import Nearness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]
    Bytes = NDArray[np.int8]
    Number = TypeVar("Number", np.int8, np.uint8, np.float32)

_READ_AT_ONCE = 16_384  # rows
_AT_ONCE = 2_048  # rows, as the processor's cache holds them


@dataclass(frozen=True, slots=True)
class Matrix:
    """Vectors note by note, as they are stored: their bytes are sooner multiplied than numbers four times as large."""

    notes: Ids  # with a passage
    counts: NDArray[np.bool_]  # whether a note is what it was when it was loaded
    first_passages: Ids  # of each note
    passages: Bytes
    passages_by: Floats  # what makes each of unit length
    first_blocks: Ids  # of each note, and where its blocks end
    after_blocks: Ids
    blocks: Bytes
    blocks_by: Floats

    @classmethod
    def load(cls, db: apsw.Connection, dimension: int) -> Matrix:
        """The vectors of all notes."""
        many = [int(db.execute(f"SELECT count(*) FROM {table}").get) for table in ("passages", "blocks")]
        return cls._read(db, dimension, None, many)

    def of(self, db: apsw.Connection, notes: Sequence[int]) -> Matrix:
        """The vectors of some notes as they are now."""
        return self._read(db, self.passages.shape[1], notes, [16, 64])

    @classmethod
    def _read(cls, db: apsw.Connection, dimension: int, notes: Sequence[int] | None, many: Sequence[int]) -> Matrix:
        import numpy as np

        places, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        passages, blocks = (np.empty((count, dimension), np.int8) for count in many)
        for ids, raw in stored(db, dimension, notes):
            is_block = (ids & BLOCK).astype(bool)
            at, behind = sum(map(len, places)), sum(map(len, owners))
            places.append(ids[~is_block] >> SHIFT)
            owners.append(ids[is_block] >> SHIFT)
            passages = grown(passages, at + len(places[-1]))
            blocks = grown(blocks, behind + len(owners[-1]))
            passages[at : at + len(places[-1])] = raw[~is_block]
            blocks[behind : behind + len(owners[-1])] = raw[is_block]
        of_passages, of_blocks = np.concatenate(places), np.concatenate(owners)
        first = np.flatnonzero(np.diff(of_passages, prepend=-1))
        distinct = of_passages[first]
        begins, ends = (np.searchsorted(of_blocks, distinct, side) for side in ("left", "right"))
        passages, blocks = passages[: len(of_passages)], blocks[: len(of_blocks)]
        counts = np.ones(len(distinct), bool)
        return cls(distinct, counts, first, passages, _by_length(passages), begins, ends, blocks, _by_length(blocks))

    def joined(self, other: Matrix) -> Matrix:
        """The notes of both."""
        import numpy as np

        return Matrix(
            np.concatenate((self.notes, other.notes)),
            np.concatenate((self.counts, other.counts)),
            np.concatenate((self.first_passages, other.first_passages + len(self.passages))),
            np.concatenate((self.passages, other.passages)),
            np.concatenate((self.passages_by, other.passages_by)),
            np.concatenate((self.first_blocks, other.first_blocks + len(self.blocks))),
            np.concatenate((self.after_blocks, other.after_blocks + len(self.blocks))),
            np.concatenate((self.blocks, other.blocks)),
            np.concatenate((self.blocks_by, other.blocks_by)),
        )

    def without(self, notes: Collection[int]) -> Matrix:
        """All but these notes."""
        return replace(self, counts=self.counts & ~holds(notes, self.notes))

    def nearest(
        self, _: apsw.Connection, /, asked: Floats, ids: Ids | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]:
        """The nearest notes, and those in `also`."""
        import numpy as np

        keep = self.counts if ids is None else self.counts & np.isin(self.notes, ids)
        rows = np.flatnonzero(keep)
        if not len(rows):
            return {}
        if len(rows) < len(keep) // 4:
            ends = np.append(self.first_passages[1:], len(self.passages))[rows]
            at, starts = spread(self.first_passages[rows], ends)
            near = np.maximum.reduceat(_cosines(self.passages[at], self.passages_by[at], asked), starts)
        else:
            cosines = _cosines(self.passages, self.passages_by, asked)
            near = np.maximum.reduceat(cosines, self.first_passages)[rows]
        if len(rows) > limit:
            wanted = holds(also, self.notes[rows])
            wanted[np.argpartition(-near, limit)[:limit]] = True
            rows, near = rows[wanted], near[wanted]
        return together(self.notes[rows], near, self._best_blocks(rows, asked))

    def _best_blocks(self, rows: Ids, asked: Floats) -> Floats:
        """The best block of each of some notes; 0 where there is none."""
        import numpy as np

        best = np.zeros(len(rows), np.float32)
        there = self.after_blocks[rows] > self.first_blocks[rows]
        if there.any():
            at, starts = spread(self.first_blocks[rows][there], self.after_blocks[rows][there])
            best[there] = np.maximum.reduceat(_cosines(self.blocks[at], self.blocks_by[at], asked), starts)
        return best


def stored(
    db: apsw.Connection, dimension: int, notes: Sequence[int] | None, first: int = 0, after: int = 1 << SHIFT
) -> Iterator[tuple[Ids, Bytes]]:
    """The places and vectors of some notes, or of all, in order; of those places that lie from `first` to `after`."""
    import numpy as np

    values: dict[str, object] = {"dimension": dimension, "first": first, "after": after}
    if notes is None:
        sql = f"""SELECT id, vector FROM vectors
                  WHERE (id & {(1 << SHIFT) - 1}) >= :first AND (id & {(1 << SHIFT) - 1}) < :after
                    AND length(vector) = :dimension ORDER BY id"""
    else:
        sql = f"""SELECT v.id, v.vector FROM {among.TABLE} n CROSS JOIN vectors v
                  WHERE v.id >= (n.value << {SHIFT}) + :first AND v.id < (n.value << {SHIFT}) + :after
                    AND length(v.vector) = :dimension"""
        values["ids"] = among.bound(sorted(notes))
    found = db.execute(sql, values)
    while rows := list(itertools.islice(found, _READ_AT_ONCE)):
        ids, vectors = zip(*rows, strict=True)
        yield np.array(ids, np.int64), np.frombuffer(b"".join(vectors), np.int8).reshape(-1, dimension)


def together(notes: Ids, passages: Floats, blocks: Floats) -> dict[int, Nearness]:
    """How near notes are by their best passages and blocks."""
    rows = zip(notes.tolist(), passages.tolist(), blocks.tolist(), strict=True)
    return {note: Nearness(passage, max(passage, block)) for note, passage, block in rows}


def spread(first: Ids, after: Ids) -> tuple[Ids, Ids]:
    """Stretches that are not empty as all that lies in them, one after another, and where each begins among it."""
    import numpy as np

    counts = after - first
    starts = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(first - starts, counts), starts


def holds(some: Collection[int], notes: Ids) -> NDArray[np.bool_]:
    """Which of `notes` are among some."""
    import numpy as np

    return np.isin(notes, np.fromiter(some, np.int64, len(some)))


def unit(raw: Bytes) -> Floats:
    """Rows of unit length; those of zeros stay."""
    import numpy as np

    return raw.astype(np.float32) * _by_length(raw)[:, None]


def _by_length(raw: Bytes) -> Floats:
    import numpy as np

    lengths = np.empty(len(raw), np.float32)
    for first, part in _as_floats(raw):
        lengths[first : first + len(part)] = np.sqrt(np.einsum("ij,ij->i", part, part))
    return np.reciprocal(np.maximum(lengths, np.float32(1e-9)))


def _cosines(raw: Bytes, by_length: Floats, asked: Floats) -> Floats:
    import numpy as np

    found = np.empty(len(raw), np.float32)
    for first, part in _as_floats(raw):
        np.matmul(part, asked, out=found[first : first + len(part)])
    found *= by_length
    return found


def _as_floats(raw: Bytes) -> Iterator[tuple[int, Floats]]:
    """Rows a few at a time, in one place that stays in the processor's cache, and the number of the first."""
    import numpy as np

    room = np.empty((min(_AT_ONCE, len(raw)), raw.shape[1]), np.float32)
    for first in range(0, len(raw), _AT_ONCE):
        part = room[: min(_AT_ONCE, len(raw) - first)]
        np.copyto(part, raw[first : first + _AT_ONCE])
        yield first, part


def grown(rows: NDArray[Number], needed: int) -> NDArray[Number]:
    """Room for so many rows: the same, or a copy of twice that."""
    import numpy as np

    if needed <= len(rows):
        return rows
    larger = np.empty((2 * needed, *rows.shape[1:]), rows.dtype)
    larger[: len(rows)] = rows
    return larger
